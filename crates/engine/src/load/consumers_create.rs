//! Durable consumers made one after the other or several at a time, each with a name that no other has.

use memchr::memmem::Finder;

use super::client::{Client, Delivered};
use super::exchange;
use super::exchange::{append_decimal, Exchange, ReplyInbox};
use super::plan::LoadPlan;
use super::workload::LoadWork;
use crate::common::error::EngineError;

/// Makes the connection ready to receive answers.
pub fn prepare(
    plan: &LoadPlan,
    client: &mut Client,
    connection: u64,
) -> Result<LoadWork, EngineError> {
    let mut creator = Creator::new(plan, connection);
    creator.inbox.subscribe(client)?;
    Ok(Box::new(move |plan, client| {
        exchange::run(client, &mut creator, plan.messages, plan.in_flight)
    }))
}

/// One connection's consumers.
struct Creator {
    inbox: ReplyInbox,
    stream: String,
    /// What names begin with.
    name_prefix: String,
    body: String,
    created_key: Finder<'static>,
}

impl Creator {
    fn new(plan: &LoadPlan, connection: u64) -> Self {
        let nonce = getrandom::u64().expect("the system has random numbers");
        Self {
            inbox: ReplyInbox::new(connection),
            stream: plan.stream.clone(),
            name_prefix: format!("bench-{nonce:016x}-"),
            body: String::new(),
            created_key: Finder::new(b"\"config\""),
        }
    }
}

impl Exchange for Creator {
    fn write_request(&mut self, number: u64, output: &mut Vec<u8>) {
        let (stream, prefix) = (&self.stream, &self.name_prefix);
        self.body = format!(
            r#"{{"stream_name":"{stream}","config":{{"name":"{prefix}{number}","durable_name":"{prefix}{number}","ack_policy":"explicit"}},"action":"create"}}"#
        );
        let line_start = format!("PUB $JS.API.CONSUMER.CREATE.{stream}.{prefix}{number} ");
        output.extend_from_slice(line_start.as_bytes());
        self.inbox.append(number, output);
        output.push(b' ');
        append_decimal(self.body.len() as u64, output);
        output.extend_from_slice(b"\r\n");
        output.extend_from_slice(self.body.as_bytes());
        output.extend_from_slice(b"\r\n");
    }

    fn on_answer(&mut self, answer: &Delivered<'_>) -> Result<Option<u64>, String> {
        let number = self.inbox.number(answer.subject)?;
        if self.created_key.find(answer.body).is_none() {
            let text = String::from_utf8_lossy(answer.body);
            return Err(format!("a consumer was not made: {}", text.trim_end()));
        }
        Ok(Some(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn creator() -> Creator {
        let json = r#"{"url": "x:1", "workload": "consumerscreate", "publishers": 1, "subscribers": 0, "payload_bytes": 0, "messages": 3, "subject": "s", "stream": "S"}"#;
        Creator::new(&LoadPlan::from_json(json.as_bytes()).unwrap(), 0)
    }

    #[test]
    fn every_consumer_has_a_name_of_its_own() {
        let mut creator = creator();
        let (mut first, mut second) = (Vec::new(), Vec::new());

        creator.write_request(0, &mut first);
        creator.write_request(1, &mut second);

        let text = String::from_utf8(first).unwrap();
        let (line, body) = text.split_once("\r\n").unwrap();
        let request: serde_json::Value = serde_json::from_str(body.trim_end()).unwrap();
        let name = request["config"]["durable_name"].as_str().unwrap();
        assert!(
            line.starts_with(&format!("PUB $JS.API.CONSUMER.CREATE.S.{name} _INBOX.")),
            "{line}"
        );
        assert!(line.ends_with(&format!(" {}", body.trim_end().len())));
        assert_ne!(text.into_bytes(), second);
    }

    #[test]
    fn an_answer_without_a_consumer_is_a_failure() {
        let mut creator = creator();
        let mut subject = Vec::new();
        creator.inbox.append(2, &mut subject);
        let mut on_answer = |body: &str| {
            creator.on_answer(&Delivered {
                subject: &subject,
                reply: None,
                body: body.as_bytes(),
            })
        };

        assert_eq!(on_answer(r#"{"name":"c","config":{}}"#), Ok(Some(2)));
        let refused = r#"{"error":{"code":404,"err_code":10059,"description":"stream not found"}}"#;
        assert!(on_answer(refused).unwrap_err().ends_with(refused));
    }
}
