//! `STREAM.MSG.GET`: one message as JSON, for requests that are plain. Every other request is answered elsewhere, with the reason it is refused.

use base64::engine::general_purpose::STANDARD;
use base64::Engine as _;

use super::get_request::GetRequest;
use super::reads::ReadableStream;
use crate::common::error::EngineError;
use crate::common::timestamp;
use crate::routing::sender::{Outgoing, Sender};
use crate::storage::message::Message;
use crate::stream::publish::acknowledgement::put_text;
use crate::stream::refusals::store_error;
use crate::stream::registry::Streams;

const TYPE: &[u8] = b"{\"type\":\"io.nats.jetstream.api.v1.stream_msg_get_response\"";
const READ_FAILED: &[u8] =
    b",\"error\":{\"code\":503,\"err_code\":10077,\"description\":\"the message cannot be read from the disk\"}}";
const NOT_FOUND: &[u8] =
    b",\"error\":{\"code\":404,\"err_code\":10037,\"description\":\"no message found\"}}";

/// Which message is wanted.
#[derive(Debug, PartialEq, Eq)]
pub struct Query {
    which: Which,
    no_headers: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Which {
    Sequence(u64),
    Last(String),
    Next { subject: String, from: From },
    At(i64),
}

#[derive(Debug, PartialEq, Eq)]
enum From {
    Sequence(u64),
    Time(i64),
}

impl Query {
    /// What a request asks for; nothing unless it is plain.
    pub fn read(body: &[u8]) -> Option<Self> {
        let request = GetRequest::read(body).ok()?;
        let odd = request.has_unknown
            || request.batch != 0
            || request.bytes_max != 0
            || !request.multi_last.is_empty()
            || request.up_to_sequence != 0
            || request.up_to_time_ns.is_some();
        if odd {
            return None;
        }
        let GetRequest {
            sequence,
            last_by_subject: last,
            next_by_subject: next,
            start_time_ns,
            no_headers,
            ..
        } = request;
        let which = match (sequence, last.is_empty(), next.is_empty(), start_time_ns) {
            (1.., true, true, None) => Which::Sequence(sequence),
            (0, false, true, None) => Which::Last(last),
            (_, true, false, None) => Which::Next {
                subject: next,
                from: From::Sequence(sequence),
            },
            (0, true, false, Some(time_ns)) => Which::Next {
                subject: next,
                from: From::Time(time_ns),
            },
            (0, true, true, Some(time_ns)) => Which::At(time_ns),
            _ => return None,
        };
        Some(Self { which, no_headers })
    }
}

impl Query {
    /// How much it takes up besides itself.
    pub fn bytes(&self) -> usize {
        match &self.which {
            Which::Last(subject) | Which::Next { subject, .. } => subject.len(),
            Which::Sequence(_) | Which::At(_) => 0,
        }
    }
}

/// Reads the message and answers.
pub fn answer(source: &ReadableStream<'_>, query: &Query, reply: &[u8], sender: &mut Sender) {
    let mut out = TYPE.to_vec();
    match source
        .store
        .messages()
        .read_found(|| find(source, &query.which))
    {
        Err(_) => out.extend_from_slice(READ_FAILED),
        Ok(None) => {
            source.usage.note_miss();
            out.extend_from_slice(NOT_FOUND);
        }
        Ok(Some(message)) => {
            out.extend_from_slice(b",\"message\":{\"subject\":");
            put_text(&mut out, &String::from_utf8_lossy(message.subject()));
            out.extend_from_slice(b",\"seq\":");
            out.extend_from_slice(itoa::Buffer::new().format(message.sequence).as_bytes());
            if !message.headers().is_empty() && !query.no_headers {
                out.extend_from_slice(b",\"hdrs\":\"");
                out.extend_from_slice(STANDARD.encode(message.headers()).as_bytes());
                out.push(b'"');
            }
            if !message.payload().is_empty() {
                out.extend_from_slice(b",\"data\":\"");
                out.extend_from_slice(STANDARD.encode(message.payload()).as_bytes());
                out.push(b'"');
            }
            out.extend_from_slice(b",\"time\":\"");
            timestamp::write(&mut out, message.time_ns);
            out.extend_from_slice(b"\"}}");
        }
    }
    sender.send(
        source.account,
        &Outgoing {
            subject: reply,
            reply: None,
            header: b"",
            payload: &out,
        },
    );
}

fn find(source: &ReadableStream<'_>, which: &Which) -> Option<u64> {
    let store = source.store;
    match which {
        Which::Sequence(sequence) => Some(*sequence),
        Which::Last(filter) => store.messages().last_match(filter.as_bytes()),
        Which::Next { subject, from } => {
            let from = match from {
                From::Sequence(sequence) => *sequence,
                From::Time(time_ns) => store.messages().sequence_at(*time_ns).ok()?,
            };
            store.messages().next_match(subject.as_bytes(), from)
        }
        Which::At(time_ns) => {
            let first = store.messages().sequence_at(*time_ns).ok()?;
            store.messages().next_match(b">", first)
        }
    }
}
impl Streams {
    /// One message, for requests that Python answers; none if it is not there.
    pub fn stored_message(
        &self,
        account: &str,
        name: &str,
        sequence: u64,
    ) -> Result<Option<Message>, EngineError> {
        let stream = self.stream(account, name)?;
        let read = stream.store().messages().read_undamaged(sequence);
        read.map_err(|error| store_error(&error))
    }
}
