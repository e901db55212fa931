//! What a client may say, borrowed from the bytes it sent.
//!
//! Invariant: every slice points into the buffer that was parsed, so an operation costs no allocation and lives as long as one read.

/// One complete operation of the client protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation<'a> {
    /// The JSON object after `CONNECT`, not yet decoded.
    Connect(&'a [u8]),
    Publish(Publish<'a>),
    Subscribe {
        subject: &'a [u8],
        queue: Option<&'a [u8]>,
        sid: &'a [u8],
    },
    Unsubscribe {
        sid: &'a [u8],
        /// Deliveries after which the subscription ends by itself; `None` ends it now.
        delivered_max: Option<u64>,
    },
    Ping,
    Pong,
    /// `+OK` from a client: allowed, without effect.
    Acknowledged,
    /// `INFO` from a client: allowed, without effect, but it must be JSON.
    Information(&'a [u8]),
    /// `-ERR` from a client: it wants to leave.
    Failed,
}

/// A message as published. `body` is the header block (if any) and the payload; the two bytes after it are CR LF.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Publish<'a> {
    pub subject: &'a [u8],
    pub reply: Option<&'a [u8]>,
    /// The sizes as the publisher wrote them (`002` stays `002` on its way to a subscriber).
    pub header_size_text: &'a [u8],
    pub total_size_text: &'a [u8],
    pub header_len: usize,
    pub body: &'a [u8],
}

impl<'a> Publish<'a> {
    pub fn header(&self) -> &'a [u8] {
        &self.body[..self.header_len]
    }

    pub fn payload(&self) -> &'a [u8] {
        &self.body[self.header_len..]
    }
}
