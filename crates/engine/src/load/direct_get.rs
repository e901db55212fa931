//! Stored messages asked for one by one, with direct gets.

use super::client::{Client, Delivered};
use super::exchange;
use super::exchange::{append_decimal, subject_number, Exchange, ReplyInbox};
use super::plan::{Get, LoadPlan};
use super::workload::LoadWork;
use crate::common::error::EngineError;

/// What the first line of an answer looks like that carries a status instead of a message.
const STATUS_START: &[u8] = b"NATS/1.0 ";

/// Makes the connection ready to receive answers.
pub fn prepare(
    plan: &LoadPlan,
    client: &mut Client,
    connection: u64,
) -> Result<LoadWork, EngineError> {
    let mut reader = DirectGetReader::new(plan, connection);
    reader.inbox.subscribe(client)?;
    Ok(Box::new(move |plan, client| {
        exchange::run(client, &mut reader, plan.messages, plan.in_flight)
    }))
}

/// One connection's questions.
struct DirectGetReader {
    inbox: ReplyInbox,
    /// `PUB <subject of the API>`.
    line_start: Vec<u8>,
    subject: Vec<u8>,
    get: Get,
    first_sequence: u64,
    sequences: u64,
    subjects: u64,
    connection: u64,
    connections: u64,
    body: Vec<u8>,
}

impl DirectGetReader {
    fn new(plan: &LoadPlan, connection: u64) -> Self {
        Self {
            inbox: ReplyInbox::new(connection),
            line_start: format!("PUB $JS.API.DIRECT.GET.{}", plan.stream).into_bytes(),
            subject: plan.subject.clone().into_bytes(),
            get: plan.get,
            first_sequence: plan.first_sequence,
            sequences: plan.sequences,
            subjects: plan.subjects,
            connection,
            connections: plan.publishers as u64,
            body: Vec::new(),
        }
    }

    /// Which message is asked for: its sequence, or the number of its subject.
    fn wanted(&self, number: u64) -> u64 {
        match self.get {
            Get::Sequential => self.first_sequence + number % self.sequences,
            Get::Random => {
                self.first_sequence + scattered(self.connection << 48 ^ number) % self.sequences
            }
            Get::Last => subject_number(number, self.connection, self.connections, self.subjects),
        }
    }
}

/// A number that looks random, always the same for the same number (splitmix64).
fn scattered(number: u64) -> u64 {
    let mut bits = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

impl Exchange for DirectGetReader {
    fn write_request(&mut self, number: u64, output: &mut Vec<u8>) {
        let wanted = self.wanted(number);
        output.extend_from_slice(&self.line_start);
        self.body.clear();
        if self.get == Get::Last {
            output.push(b'.');
            output.extend_from_slice(&self.subject);
            if self.subjects > 1 {
                output.push(b'.');
                append_decimal(wanted, output);
            }
        } else {
            self.body.extend_from_slice(b"{\"seq\":");
            append_decimal(wanted, &mut self.body);
            self.body.push(b'}');
        }
        output.push(b' ');
        self.inbox.append(number, output);
        output.push(b' ');
        append_decimal(self.body.len() as u64, output);
        output.extend_from_slice(b"\r\n");
        output.extend_from_slice(&self.body);
        output.extend_from_slice(b"\r\n");
    }

    fn on_answer(&mut self, answer: &Delivered<'_>) -> Result<Option<u64>, String> {
        let number = self.inbox.number(answer.subject)?;
        if answer.body.starts_with(STATUS_START) {
            return Err(format!(
                "message {} was not found: {}",
                self.wanted(number),
                String::from_utf8_lossy(answer.body).trim_end()
            ));
        }
        Ok(Some(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(fields: &str) -> DirectGetReader {
        let json = format!(
            r#"{{"url": "x:1", "workload": "directget", "publishers": 1, "subscribers": 0, "payload_bytes": 0, "messages": 9, "subject": "s", "stream": "S", {fields}}}"#
        );
        DirectGetReader::new(&LoadPlan::from_json(json.as_bytes()).unwrap(), 0)
    }

    fn asked(reader: &mut DirectGetReader, number: u64) -> String {
        let mut output = Vec::new();
        reader.write_request(number, &mut output);
        String::from_utf8(output).unwrap()
    }

    #[test]
    fn sequences_are_asked_for_in_turn_and_again_from_the_first() {
        let mut reader = reader(r#""get": "sequential", "first_sequence": 8, "sequences": 3"#);

        let first = asked(&mut reader, 0);

        assert!(
            first.starts_with("PUB $JS.API.DIRECT.GET.S _INBOX."),
            "{first}"
        );
        assert!(first.ends_with(".0 9\r\n{\"seq\":8}\r\n"), "{first}");
        assert!(asked(&mut reader, 2).ends_with("{\"seq\":10}\r\n"));
        assert!(asked(&mut reader, 3).ends_with("{\"seq\":8}\r\n"));
    }

    #[test]
    fn random_sequences_stay_in_the_range_and_differ() {
        let reader = reader(r#""first_sequence": 5, "sequences": 1000"#);

        let wanted: Vec<u64> = (0..1_000).map(|number| reader.wanted(number)).collect();

        assert!(wanted.iter().all(|sequence| (5..1_005).contains(sequence)));
        assert!(wanted.windows(2).filter(|pair| pair[0] == pair[1]).count() < 10);
    }

    #[test]
    fn the_last_of_a_subject_is_asked_for_without_a_body() {
        let mut reader = reader(r#""get": "last", "subjects": 10"#);

        let text = asked(&mut reader, 3);

        assert!(
            text.starts_with("PUB $JS.API.DIRECT.GET.S.s.3 _INBOX."),
            "{text}"
        );
        assert!(text.ends_with(".3 0\r\n\r\n"), "{text}");
    }

    #[test]
    fn a_status_is_a_failure_and_a_message_is_not() {
        let mut reader = reader(r#""sequences": 5"#);
        let mut subject = Vec::new();
        reader.inbox.append(4, &mut subject);
        let mut on_answer = |body: &str| {
            reader.on_answer(&Delivered {
                subject: &subject,
                reply: None,
                body: body.as_bytes(),
            })
        };

        assert_eq!(
            on_answer("NATS/1.0\r\nNats-Stream: S\r\nNats-Sequence: 1\r\n\r\nhi"),
            Ok(Some(4))
        );
        assert!(on_answer("NATS/1.0 404 Message Not Found\r\n\r\n")
            .unwrap_err()
            .ends_with("NATS/1.0 404 Message Not Found"));
    }
}
