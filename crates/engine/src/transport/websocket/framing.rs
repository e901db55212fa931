//! How what the outbox sends becomes messages: a header before the pieces, or all of them compressed.
//!
//! Frames are made where bytes are handed over, before any lock is taken; what the outbox queues and writes is ready for the wire.

use std::io::IoSlice;

use super::deflate;
use super::frames::{MessageHeader, Opcode};

/// Less than this is not worth compressing; the same as nats-server's.
const COMPRESS_BYTES_MIN: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Framing {
    /// Agreed on with the client.
    pub compresses: bool,
}

impl Framing {
    /// Makes one message of the pieces and hands it to `send`, as pieces again.
    pub fn frame<T>(self, pieces: &[IoSlice<'_>], send: impl FnOnce(&[IoSlice<'_>]) -> T) -> T {
        let total: usize = pieces.iter().map(|piece| piece.len()).sum();
        if self.compresses && total >= COMPRESS_BYTES_MIN {
            let pieces = pieces.iter().map(|piece| &**piece);
            return deflate::compress(pieces, |compressed| {
                let header = MessageHeader::new(Opcode::Binary, true, compressed.len());
                send(&[IoSlice::new(header.as_bytes()), IoSlice::new(compressed)])
            });
        }
        let header = MessageHeader::new(Opcode::Binary, false, total);
        let mut framed = Vec::with_capacity(pieces.len() + 1);
        framed.push(IoSlice::new(header.as_bytes()));
        framed.extend_from_slice(pieces);
        send(&framed)
    }
}
