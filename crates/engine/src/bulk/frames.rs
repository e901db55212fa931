//! What a server sends, in whatever pieces it comes, one whole message at a time.
//!
//! Invariant: between calls at most one unfinished message is kept, and it is no longer than `MESSAGE_BYTES_MAX`.

use crate::common::error::EngineError;
use crate::wire::encoder::PONG;
use crate::wire::reply::{parse_reply, Reply};

/// Servers allow 64 MiB at most.
pub const MESSAGE_BYTES_MAX: usize = 80 * 1024 * 1024;

/// Room that is kept between messages.
const KEPT_BYTES_MAX: usize = 1024 * 1024;

/// One message for a subscription.
#[derive(Debug, Clone, Copy)]
pub struct MessageFrame<'a> {
    pub subject: &'a [u8],
    pub sid: &'a [u8],
    pub reply: Option<&'a [u8]>,
    pub header: &'a [u8],
    pub payload: &'a [u8],
}

#[derive(Default)]
pub struct Frames {
    unfinished: Vec<u8>,
}

impl Frames {
    /// Hands every message that is complete to `take`; answers PINGs into `out`. What follows a message that `take` refuses is lost.
    pub fn feed(
        &mut self,
        data: &[u8],
        out: &mut Vec<u8>,
        mut take: impl FnMut(&MessageFrame<'_>, &mut Vec<u8>) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        if self.unfinished.is_empty() {
            let taken = read_all(data, out, &mut take)?;
            self.unfinished.extend_from_slice(&data[taken..]);
        } else {
            self.unfinished.extend_from_slice(data);
            let taken = read_all(&self.unfinished, out, &mut take)?;
            self.unfinished.drain(..taken);
            if self.unfinished.is_empty() {
                self.unfinished.shrink_to(KEPT_BYTES_MAX);
            }
        }
        match self.unfinished.len() > MESSAGE_BYTES_MAX {
            true => Err(EngineError::Protocol(format!(
                "the server sends a message of more than {MESSAGE_BYTES_MAX} bytes"
            ))),
            false => Ok(()),
        }
    }
}

/// Returns how many bytes were read.
fn read_all(
    data: &[u8],
    out: &mut Vec<u8>,
    take: &mut impl FnMut(&MessageFrame<'_>, &mut Vec<u8>) -> Result<(), EngineError>,
) -> Result<usize, EngineError> {
    let mut taken = 0;
    loop {
        let Some((reply, consumed)) = parse_reply(&data[taken..]).map_err(|_| not_nats())? else {
            return Ok(taken);
        };
        taken += consumed;
        match reply {
            Reply::Message {
                subject,
                sid,
                reply,
                header_len,
                body,
            } => {
                let (header, payload) = body.split_at(header_len);
                let frame = MessageFrame {
                    subject,
                    sid,
                    reply,
                    header,
                    payload,
                };
                take(&frame, out)?;
            }
            Reply::Ping => out.extend_from_slice(PONG),
            Reply::Error(text) => {
                let text = String::from_utf8_lossy(text);
                return Err(EngineError::Refused(text.trim_matches('\'').to_owned()));
            }
            Reply::Pong | Reply::Acknowledged | Reply::Information(_) => {}
        }
    }
}

fn not_nats() -> EngineError {
    EngineError::Protocol(
        "the bytes are not what a NATS server sends: check the address and TLS".to_owned(),
    )
}

/// Appends a publish without headers.
pub fn put_publish(out: &mut Vec<u8>, subject: &str, reply: &str, payload: &[u8]) {
    out.extend_from_slice(b"PUB ");
    out.extend_from_slice(subject.as_bytes());
    out.push(b' ');
    if !reply.is_empty() {
        out.extend_from_slice(reply.as_bytes());
        out.push(b' ');
    }
    out.extend_from_slice(itoa::Buffer::new().format(payload.len()).as_bytes());
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(payload);
    out.extend_from_slice(b"\r\n");
}

/// Appends a subscription.
pub fn put_subscribe(out: &mut Vec<u8>, subject: &str, sid: &str) {
    out.extend_from_slice(format!("SUB {subject} {sid}\r\n").as_bytes());
}

/// Appends the end of a subscription.
pub fn put_unsubscribe(out: &mut Vec<u8>, sid: &str) {
    out.extend_from_slice(format!("UNSUB {sid}\r\n").as_bytes());
}
