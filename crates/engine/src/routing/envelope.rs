//! A message that goes on with other headers than it came with.

use crate::wire::{header_lines, Publish};

/// The headers of a message that goes on with others.
pub(super) struct Envelope {
    header: Vec<u8>,
}

impl Envelope {
    pub fn new(publish: &Publish<'_>) -> Self {
        Self {
            header: publish.header().to_vec(),
        }
    }

    /// Sets a header, in the place of all of its name.
    pub fn set(&mut self, name: &[u8], value: &[u8]) {
        let mut header = Vec::with_capacity(self.header.len() + value.len() + 64);
        header_lines::set(&self.header, name, value, &mut header);
        self.header = header;
    }

    pub fn into_body(self, payload: &[u8]) -> EnvelopeBody {
        let header_len = self.header.len();
        let mut bytes = self.header;
        bytes.extend_from_slice(payload);
        bytes.extend_from_slice(b"\r\n");
        EnvelopeBody { bytes, header_len }
    }
}

/// Headers and payload as if they had been read from a socket.
pub(super) struct EnvelopeBody {
    pub bytes: Vec<u8>,
    header_len: usize,
}

/// The sizes of a message as texts.
pub(super) type Digits = [itoa::Buffer; 2];

impl EnvelopeBody {
    pub fn publish<'a>(
        &'a self,
        subject: &'a [u8],
        reply: Option<&'a [u8]>,
        digits: &'a mut Digits,
    ) -> Publish<'a> {
        let total = self.bytes.len() - 2;
        let [header_digits, total_digits] = digits;
        Publish {
            subject,
            reply,
            header_size_text: header_digits.format(self.header_len).as_bytes(),
            total_size_text: total_digits.format(total).as_bytes(),
            header_len: self.header_len,
            body: &self.bytes[..total],
        }
    }
}
