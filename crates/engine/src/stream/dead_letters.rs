//! Messages that a consumer has given up on, kept in another stream: with who gave them up, why, after how many deliveries, and what they were.
//!
//! Invariant: a dead letter is on disk before the consumer's state says that the message is settled; one that is stored twice is stored once.

use super::publish_checks::Publication;
use super::stored_headers;
use super::stream::Stream;
use crate::consumer::core::DeadLetter;
use crate::storage::message::Message;

/// What the subjects of dead letters begin with; stream, consumer and the message's own subject follow.
const SUBJECT: &str = "dead";

const REASON: &[u8] = b"Jetlake-Dead-Reason";
const STREAM: &[u8] = b"Jetlake-Dead-Stream";
const CONSUMER: &[u8] = b"Jetlake-Dead-Consumer";
const DELIVERIES: &[u8] = b"Jetlake-Dead-Deliveries";
const ORIGINAL_SUBJECT: &[u8] = b"Jetlake-Dead-Subject";
const SEQUENCE: &[u8] = b"Jetlake-Dead-Sequence";
const MESSAGE_ID: &[u8] = b"Nats-Msg-Id";

/// Headers that would mean something to the stream the dead letter is stored in.
const MEANINGFUL: [&[u8]; 9] = [
    b"Nats-Msg-Id",
    b"Nats-Expected-",
    b"Nats-Rollup",
    b"Nats-TTL",
    b"Nats-Batch-",
    b"Nats-Schedule",
    b"Nats-Incr",
    b"Nats-Marker-Reason",
    b"Nats-Required-Api-Level",
];

/// A reason comes from a client, and a header has one line.
fn one_line(text: &str) -> String {
    text.replace(['\r', '\n'], " ")
}

/// A message as it is kept.
fn headers(message: &Message, stream: &str, consumer: &str, dead: &DeadLetter) -> Vec<u8> {
    let mut block = Vec::new();
    let is_meaningful = |name: &[u8]| MEANINGFUL.iter().any(|prefix| name.starts_with(prefix));
    stored_headers::copy_without(message.headers(), is_meaningful, &mut block);
    let id = format!(
        "dead/{stream}/{consumer}/{}/{}",
        dead.sequence, dead.deliveries
    );
    let mut add = |name, value: &[u8]| stored_headers::add(&mut block, 0, name, value);
    add(REASON, one_line(&dead.reason).as_bytes());
    add(STREAM, stream.as_bytes());
    add(CONSUMER, consumer.as_bytes());
    add(DELIVERIES, dead.deliveries.to_string().as_bytes());
    add(ORIGINAL_SUBJECT, message.subject());
    add(SEQUENCE, dead.sequence.to_string().as_bytes());
    add(MESSAGE_ID, id.as_bytes());
    block
}

impl Stream {
    /// Keeps messages that a consumer has given up, where the configuration says; returns what could not be kept, and why.
    pub(super) fn bury(&self, consumer: &str, dead: &[DeadLetter]) -> Result<(), String> {
        let settings = self.settings();
        let Some(name) = &settings.dead_letters else {
            return Ok(());
        };
        let Some(grave) = self.neighbour(name) else {
            return Err(format!(
                "there is no stream {name:?} for dead letters of {:?}: create it",
                settings.name
            ));
        };
        for letter in dead {
            // What is not there any more, or cannot be read, cannot be kept.
            let Ok(Some(message)) = self.store().read(letter.sequence) else {
                continue;
            };
            let subject = [SUBJECT, &settings.name, consumer].join(".").into_bytes();
            let subject = [subject.as_slice(), b".", message.subject()].concat();
            let headers = headers(&message, &settings.name, consumer, letter);
            grave.take_own(&Publication {
                subject: &subject,
                headers: &headers,
                payload: message.payload(),
                now_ns: self.now_ns(),
            });
        }
        grave
            .commit_own()
            .map_err(|error| format!("dead letters of {:?} are not kept: {error}", settings.name))
    }
}
