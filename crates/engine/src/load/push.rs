//! Whole streams sent by push consumers: each connection makes one as client libraries make their ordered ones, and counts until the last message.
//!
//! The time includes making the consumer. Flow control is answered, without which a server stops after some megabytes.

use std::time::Instant;

use super::client::{Client, Delivered};
use super::delivery;
use super::delivery::{DeliveryListener, Order, StreamPosition};
use super::exchange::ReplyInbox;
use super::latency::Samples;
use super::plan::LoadPlan;
use super::workload::{LoadOutcome, LoadWork};
use crate::common::error::EngineError;

/// The numbers of the inbox: where messages come, and where the API answers.
const DELIVERIES: u64 = 0;
const ANSWERS: u64 = 1;

/// What a status begins with that only says that the server is there.
const ALIVE_START: &[u8] = b"NATS/1.0 100 ";

/// In a heartbeat: where to report that the reader is ready, if the server still waits for that.
const STALLED: &[u8] = b"Nats-Consumer-Stalled:";

/// Makes the connection ready to receive messages.
pub fn prepare(
    plan: &LoadPlan,
    client: &mut Client,
    connection: u64,
) -> Result<LoadWork, EngineError> {
    let mut reader = PushReader::new(plan, connection);
    // One by one, as a push consumer sends nothing to those who listen to its subject with a wildcard only.
    for number in [DELIVERIES, ANSWERS] {
        client.send(format!("SUB {} {number}\r\n", reader.subject(number)).as_bytes())?;
    }
    client.synchronise()?;
    Ok(Box::new(move |plan, client| {
        run(client, &mut reader, plan.messages)
    }))
}

fn run(client: &mut Client, reader: &mut PushReader, messages: u64) -> LoadOutcome {
    client.send(&reader.create())?;
    while reader.received < messages {
        delivery::listen(client, reader, messages)?;
        if !reader.ready.is_empty() {
            client.send(&reader.ready)?;
            reader.ready.clear();
        }
    }
    let ended_at = Instant::now();
    client.send(&reader.delete())?;
    client.synchronise()?;
    Ok((Samples::default(), ended_at))
}

/// One connection's consumer.
struct PushReader {
    inbox: ReplyInbox,
    stream: String,
    consumer: String,
    first_sequence: u64,
    order: Order,
    received: u64,
    /// What tells the server that everything before has been read.
    ready: Vec<u8>,
}

impl PushReader {
    fn new(plan: &LoadPlan, connection: u64) -> Self {
        let nonce = getrandom::u64().expect("the system has random numbers");
        Self {
            inbox: ReplyInbox::new(connection),
            stream: plan.stream.clone(),
            consumer: format!("bench-{nonce:016x}"),
            first_sequence: plan.first_sequence,
            order: Order::new(plan.first_sequence, true),
            received: 0,
            ready: Vec::new(),
        }
    }

    fn subject(&self, number: u64) -> String {
        let mut subject = Vec::new();
        self.inbox.append(number, &mut subject);
        String::from_utf8(subject).expect("an inbox is made of letters and digits")
    }

    fn create(&self) -> Vec<u8> {
        let body = serde_json::json!({
            "stream_name": self.stream,
            "config": {
                "name": self.consumer,
                "deliver_subject": self.subject(DELIVERIES),
                "deliver_policy": "by_start_sequence",
                "opt_start_seq": self.first_sequence,
                "ack_policy": "none",
                "max_deliver": 1,
                "flow_control": true,
                "idle_heartbeat": 5_000_000_000_u64,
                "inactive_threshold": 60_000_000_000_u64,
                "mem_storage": true,
                "num_replicas": 1,
            },
        })
        .to_string();
        self.request("CREATE", &body)
    }

    fn delete(&self) -> Vec<u8> {
        self.request("DELETE", "")
    }

    fn request(&self, verb: &str, body: &str) -> Vec<u8> {
        let (stream, consumer) = (&self.stream, &self.consumer);
        let answers = self.subject(ANSWERS);
        let size = body.len();
        format!("PUB $JS.API.CONSUMER.{verb}.{stream}.{consumer} {answers} {size}\r\n{body}\r\n")
            .into_bytes()
    }
}

impl DeliveryListener for PushReader {
    fn on_message(&mut self, message: &Delivered<'_>, messages: u64) -> Result<(), String> {
        if let Some(position) = StreamPosition::of(message) {
            if self.received < messages {
                self.order.meet(position)?;
                self.received += 1;
            }
            return Ok(());
        }
        let text = || String::from_utf8_lossy(message.body).trim_end().to_owned();
        if message.body.starts_with(ALIVE_START) {
            if let Some(reply) = message.reply.or_else(|| stalled(message.body)) {
                self.ready.extend_from_slice(b"PUB ");
                self.ready.extend_from_slice(reply);
                self.ready.extend_from_slice(b" 0\r\n\r\n");
            }
            return Ok(());
        }
        if memchr::memmem::find(message.body, b"\"error\"").is_some()
            || self.inbox.number(message.subject)? != ANSWERS
        {
            return Err(format!("instead of a message: {}", text()));
        }
        Ok(())
    }

    fn received(&self) -> u64 {
        self.received
    }
}

/// Returns the subject after the header that a heartbeat has while the server waits.
fn stalled(headers: &[u8]) -> Option<&[u8]> {
    let start = memchr::memmem::find(headers, STALLED)? + STALLED.len();
    let line = headers[start..].split(|byte| *byte == b'\r').next()?;
    Some(line.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader() -> PushReader {
        let json = r#"{"url": "x:1", "workload": "push", "publishers": 1, "subscribers": 0, "payload_bytes": 0, "messages": 3, "subject": "s", "stream": "S"}"#;
        PushReader::new(&LoadPlan::from_json(json.as_bytes()).unwrap(), 0)
    }

    fn on_message(
        reader: &mut PushReader,
        subject: &str,
        reply: Option<&str>,
        body: &str,
    ) -> Result<(), String> {
        reader.on_message(
            &Delivered {
                subject: subject.as_bytes(),
                reply: reply.map(str::as_bytes),
                body: body.as_bytes(),
            },
            3,
        )
    }

    #[test]
    fn a_consumer_is_made_with_flow_control_at_the_first_sequence() {
        let reader = reader();

        let text = String::from_utf8(reader.create()).unwrap();

        assert!(
            text.starts_with("PUB $JS.API.CONSUMER.CREATE.S.bench-"),
            "{text}"
        );
        let (line, body) = text.split_once("\r\n").unwrap();
        let body = body.trim_end();
        assert!(line.ends_with(&format!(".1 {}", body.len())), "{line}");
        let request: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(request["config"]["flow_control"], true);
        assert_eq!(request["config"]["opt_start_seq"], 1);
    }

    #[test]
    fn messages_are_counted_in_order() {
        let mut reader = reader();

        for sequence in 1..=3 {
            let reply = format!("$JS.ACK.S.c.1.{sequence}.{sequence}.99.0");
            assert_eq!(on_message(&mut reader, "s", Some(&reply), "x"), Ok(()));
        }

        assert_eq!(reader.received, 3);
        assert!(reader.ready.is_empty());
    }

    #[test]
    fn flow_control_is_answered_and_a_plain_heartbeat_is_not() {
        let mut reader = reader();
        let deliveries = reader.subject(DELIVERIES);
        let heartbeat = "NATS/1.0 100 Idle Heartbeat\r\nNats-Last-Consumer: 4\r\n";

        on_message(
            &mut reader,
            &deliveries,
            Some("$JS.FC.S.c.1"),
            "NATS/1.0 100 FlowControl Request\r\n\r\n",
        )
        .unwrap();
        on_message(&mut reader, &deliveries, None, &format!("{heartbeat}\r\n")).unwrap();
        on_message(
            &mut reader,
            &deliveries,
            None,
            &format!("{heartbeat}Nats-Consumer-Stalled: $JS.FC.S.c.2\r\n\r\n"),
        )
        .unwrap();

        assert_eq!(
            reader.ready,
            b"PUB $JS.FC.S.c.1 0\r\n\r\nPUB $JS.FC.S.c.2 0\r\n\r\n"
        );
    }

    #[test]
    fn a_refused_consumer_and_another_status_are_failures() {
        let mut reader = reader();
        let (deliveries, answers) = (reader.subject(DELIVERIES), reader.subject(ANSWERS));

        let refused = r#"{"type":"x","error":{"code":404,"description":"stream not found"}}"#;
        assert_eq!(
            on_message(&mut reader, &answers, None, r#"{"name":"c"}"#),
            Ok(())
        );
        assert!(on_message(&mut reader, &answers, None, refused)
            .unwrap_err()
            .ends_with(refused));
        assert!(on_message(
            &mut reader,
            &deliveries,
            None,
            "NATS/1.0 409 Consumer Deleted\r\n\r\n"
        )
        .unwrap_err()
        .contains("409"));
    }
}
