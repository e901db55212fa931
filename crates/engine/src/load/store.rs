//! Messages to a stream, one by one or in atomic batches: each is done when the server says under which sequence it is stored.

use memchr::memmem::Finder;

use super::client::{Client, Delivered};
use super::exchange;
use super::exchange::{append_decimal, leading_decimal, subject_number, Exchange, ReplyInbox};
use super::plan::LoadPlan;
use super::workload::LoadWork;
use crate::common::error::EngineError;

/// Makes the connection ready to receive acknowledgements.
pub fn prepare(
    plan: &LoadPlan,
    client: &mut Client,
    connection: u64,
) -> Result<LoadWork, EngineError> {
    let mut publisher = LoadPublisher::new(plan, connection);
    publisher.inbox.subscribe(client)?;
    Ok(Box::new(move |plan, client| {
        let in_flight = (plan.in_flight / plan.atomic_batch).max(1);
        let batches = plan.messages / plan.atomic_batch;
        exchange::run(client, &mut publisher, batches, in_flight)
    }))
}

/// One connection's messages, a question being one message or one whole batch.
///
/// Invariant: `last_sequence` grows with every acknowledgement, as the messages of one connection are stored in the order they were sent.
struct LoadPublisher {
    inbox: ReplyInbox,
    subject: Vec<u8>,
    subjects: u64,
    connection: u64,
    connections: u64,
    /// What ids of messages and batches begin with; none without ids.
    message_id_prefix: Option<Vec<u8>>,
    batch_id_prefix: Vec<u8>,
    batch_messages: u64,
    payload_bytes: u64,
    /// With the end of its line.
    payload: Vec<u8>,
    /// The headers of the message that is written.
    headers: Vec<u8>,
    last_sequence: u64,
    sequence_key: Finder<'static>,
    count_key: Finder<'static>,
}

impl LoadPublisher {
    fn new(plan: &LoadPlan, connection: u64) -> Self {
        let nonce = getrandom::u64().expect("the system has random numbers");
        let id_prefix = format!("{nonce:016x}-").into_bytes();
        let mut payload = vec![b'.'; plan.payload_bytes];
        payload.extend_from_slice(b"\r\n");
        Self {
            inbox: ReplyInbox::new(connection),
            subject: plan.subject.clone().into_bytes(),
            subjects: plan.subjects,
            connection,
            connections: plan.publishers as u64,
            message_id_prefix: plan.message_ids.then(|| id_prefix.clone()),
            batch_id_prefix: id_prefix,
            batch_messages: plan.atomic_batch,
            payload_bytes: plan.payload_bytes as u64,
            payload,
            headers: Vec::new(),
            last_sequence: 0,
            sequence_key: Finder::new(b"\"seq\":"),
            count_key: Finder::new(b"\"count\":"),
        }
    }

    /// Sets `headers` to those of one message; `place` is its place in its batch, from 1.
    fn write_headers(&mut self, question: u64, message: u64, place: u64) {
        self.headers.clear();
        if self.message_id_prefix.is_none() && self.batch_messages == 1 {
            return;
        }
        self.headers.extend_from_slice(b"NATS/1.0\r\n");
        if let Some(prefix) = &self.message_id_prefix {
            self.headers.extend_from_slice(b"Nats-Msg-Id: ");
            self.headers.extend_from_slice(prefix);
            append_decimal(message, &mut self.headers);
            self.headers.extend_from_slice(b"\r\n");
        }
        if self.batch_messages > 1 {
            self.headers.extend_from_slice(b"Nats-Batch-Id: ");
            self.headers.extend_from_slice(&self.batch_id_prefix);
            append_decimal(question, &mut self.headers);
            self.headers.extend_from_slice(b"\r\nNats-Batch-Sequence: ");
            append_decimal(place, &mut self.headers);
            self.headers.extend_from_slice(b"\r\n");
        }
        if self.batch_messages > 1 && place == self.batch_messages {
            self.headers.extend_from_slice(b"Nats-Batch-Commit: 1\r\n");
        }
        self.headers.extend_from_slice(b"\r\n");
    }

    fn append_message(&mut self, question: u64, place: u64, output: &mut Vec<u8>) {
        let message = question * self.batch_messages + place - 1;
        self.write_headers(question, message, place);
        let verb: &[u8] = if self.headers.is_empty() {
            b"PUB "
        } else {
            b"HPUB "
        };
        output.extend_from_slice(verb);
        output.extend_from_slice(&self.subject);
        if self.subjects > 1 {
            output.push(b'.');
            let number = subject_number(message, self.connection, self.connections, self.subjects);
            append_decimal(number, output);
        }
        // Of a batch, only the first and the last are answered.
        if place == 1 || place == self.batch_messages {
            output.push(b' ');
            self.inbox.append(question, output);
        }
        let headers_bytes = self.headers.len() as u64;
        if headers_bytes > 0 {
            output.push(b' ');
            append_decimal(headers_bytes, output);
        }
        output.push(b' ');
        append_decimal(headers_bytes + self.payload_bytes, output);
        output.extend_from_slice(b"\r\n");
        output.extend_from_slice(&self.headers);
        output.extend_from_slice(&self.payload);
    }
}

impl Exchange for LoadPublisher {
    fn write_request(&mut self, number: u64, output: &mut Vec<u8>) {
        for place in 1..=self.batch_messages {
            self.append_message(number, place, output);
        }
    }

    fn on_answer(&mut self, answer: &Delivered<'_>) -> Result<Option<u64>, String> {
        let number = self.inbox.number(answer.subject)?;
        if self.batch_messages > 1 && answer.body.is_empty() {
            // The first of a batch has arrived.
            return Ok(None);
        }
        let text = || String::from_utf8_lossy(answer.body).trim_end().to_owned();
        // An error has sequence 0 or none, a duplicate an older one: neither grows.
        let sequence = value_of(&self.sequence_key, answer.body).unwrap_or(0);
        if sequence <= self.last_sequence {
            let last = self.last_sequence;
            return Err(format!(
                "an answer that stores nothing after sequence {last}: {}",
                text()
            ));
        }
        self.last_sequence = sequence;
        if self.batch_messages > 1
            && value_of(&self.count_key, answer.body) != Some(self.batch_messages)
        {
            return Err(format!("a batch that is not whole: {}", text()));
        }
        Ok(Some(number))
    }
}

/// Reads the number after a key.
fn value_of(key: &Finder<'_>, json: &[u8]) -> Option<u64> {
    let start = key.find(json)? + key.needle().len();
    leading_decimal(json[start..].trim_ascii_start())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::plan::LoadPlan;

    fn publisher(fields: &str) -> LoadPublisher {
        let json = format!(
            r#"{{"url": "x:1", "workload": "store", "publishers": 1, "subscribers": 0, "payload_bytes": 3, "messages": 6, "subject": "s"{fields}}}"#
        );
        LoadPublisher::new(&LoadPlan::from_json(json.as_bytes()).unwrap(), 0)
    }

    fn asked(publisher: &mut LoadPublisher, number: u64) -> String {
        let mut output = Vec::new();
        publisher.write_request(number, &mut output);
        String::from_utf8(output).unwrap()
    }

    fn on_answer(
        publisher: &mut LoadPublisher,
        number: u64,
        body: &str,
    ) -> Result<Option<u64>, String> {
        let mut subject = Vec::new();
        publisher.inbox.append(number, &mut subject);
        publisher.on_answer(&Delivered {
            subject: &subject,
            reply: None,
            body: body.as_bytes(),
        })
    }

    #[test]
    fn a_message_has_a_reply_subject_of_its_own() {
        let mut publisher = publisher("");

        let (first, second) = (asked(&mut publisher, 0), asked(&mut publisher, 1));

        assert!(first.starts_with("PUB s _INBOX."), "{first}");
        assert!(first.ends_with(".0 3\r\n...\r\n"), "{first}");
        assert_eq!(second, first.replace(".0 3", ".1 3"));
    }

    #[test]
    fn sizes_count_the_headers() {
        let mut publisher = publisher(r#", "message_ids": true, "subjects": 10"#);

        let text = asked(&mut publisher, 4);

        let (line, rest) = text.split_once("\r\n").unwrap();
        let (headers, payload) = rest.split_once("\r\n\r\n").unwrap();
        assert!(line.starts_with("HPUB s.4 _INBOX."), "{line}");
        let headers_bytes = headers.len() + 4;
        assert!(
            line.ends_with(&format!(" {headers_bytes} {}", headers_bytes + 3)),
            "{line}"
        );
        assert!(headers.starts_with("NATS/1.0\r\nNats-Msg-Id: "));
        assert!(headers.ends_with("-4"));
        assert_eq!(payload, "...\r\n");
    }

    #[test]
    fn a_batch_begins_and_ends_with_a_request() {
        let mut publisher = publisher(r#", "atomic_batch": 3"#);

        let text = asked(&mut publisher, 1);

        let lines: Vec<&str> = text
            .lines()
            .filter(|line| line.starts_with("HPUB"))
            .collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[0].contains(" _INBOX.") && lines[2].contains(" _INBOX."));
        assert!(!lines[1].contains(" _INBOX."));
        assert_eq!(text.matches("Nats-Batch-Commit: 1\r\n").count(), 1);
        assert_eq!(text.matches("-1\r\nNats-Batch-Sequence: ").count(), 3);
    }

    #[test]
    fn sequences_must_grow() {
        let mut publisher = publisher("");

        assert_eq!(
            on_answer(&mut publisher, 0, r#"{"stream":"S", "seq":5}"#),
            Ok(Some(0))
        );
        assert_eq!(
            on_answer(&mut publisher, 1, r#"{"stream":"S","seq": 9}"#),
            Ok(Some(1))
        );

        let duplicate = r#"{"stream":"S","seq":9,"duplicate":true}"#;
        assert!(on_answer(&mut publisher, 2, duplicate)
            .unwrap_err()
            .contains("after sequence 9"));
    }

    #[test]
    fn an_error_is_shown_in_the_words_of_the_server() {
        let mut publisher = publisher("");

        let full = r#"{"error":{"code":503,"err_code":10077,"description":"maximum messages exceeded"},"stream":"S","seq":0}"#;
        let nobody = "NATS/1.0 503\r\n\r\n";

        assert!(on_answer(&mut publisher, 0, full)
            .unwrap_err()
            .ends_with(full));
        assert!(on_answer(&mut publisher, 0, nobody)
            .unwrap_err()
            .ends_with("NATS/1.0 503"));
    }

    #[test]
    fn a_batch_is_done_when_it_is_committed_as_a_whole() {
        let mut publisher = publisher(r#", "atomic_batch": 3"#);

        assert_eq!(on_answer(&mut publisher, 0, ""), Ok(None));
        assert_eq!(
            on_answer(
                &mut publisher,
                0,
                r#"{"stream":"S","seq":3,"batch":"x","count":3}"#
            ),
            Ok(Some(0))
        );
        assert!(on_answer(
            &mut publisher,
            1,
            r#"{"stream":"S","seq":5,"batch":"y","count":2}"#
        )
        .unwrap_err()
        .contains("not whole"));
    }
}
