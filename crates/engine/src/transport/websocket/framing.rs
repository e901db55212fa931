//! How what the outbox sends becomes messages: a header before the pieces, or all of them compressed.
//!
//! Frames are made where bytes are handed over, before any lock is taken; what the outbox queues and writes is ready for the wire.

use std::io::IoSlice;

use super::deflate;
use super::frames::{apply_mask, new_mask, MessageHeader, Opcode};

/// Less than this is not worth compressing; the same as nats-server's.
const COMPRESS_BYTES_MIN: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Framing {
    /// Agreed on with the other side.
    pub compresses: bool,
    /// This side is the client, whose messages are masked unless both agreed on doing without.
    pub masks: bool,
}

impl Framing {
    /// Makes one message of the pieces and hands it to `send`, as pieces again.
    pub fn frame<T>(self, pieces: &[IoSlice<'_>], send: impl FnOnce(&[IoSlice<'_>]) -> T) -> T {
        let total: usize = pieces.iter().map(|piece| piece.len()).sum();
        if self.compresses && total >= COMPRESS_BYTES_MIN {
            let pieces = pieces.iter().map(|piece| &**piece);
            return deflate::compress(pieces, |compressed| {
                self.send_message(&[IoSlice::new(compressed)], compressed.len(), true, send)
            });
        }
        self.send_message(pieces, total, false, send)
    }

    fn send_message<T>(
        self,
        pieces: &[IoSlice<'_>],
        total: usize,
        is_compressed: bool,
        send: impl FnOnce(&[IoSlice<'_>]) -> T,
    ) -> T {
        if self.masks {
            let mask = new_mask();
            let header = MessageHeader::masked(Opcode::Binary, is_compressed, total, mask);
            let mut payload = Vec::with_capacity(total);
            for piece in pieces {
                payload.extend_from_slice(piece);
            }
            apply_mask(&mut payload, mask, 0);
            return send(&[IoSlice::new(header.as_bytes()), IoSlice::new(&payload)]);
        }
        let header = MessageHeader::new(Opcode::Binary, is_compressed, total);
        let mut framed = Vec::with_capacity(pieces.len() + 1);
        framed.push(IoSlice::new(header.as_bytes()));
        framed.extend_from_slice(pieces);
        send(&framed)
    }
}
