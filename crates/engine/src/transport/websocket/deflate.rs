//! Compression of messages (permessage-deflate), each by itself: no context is kept from one to the next, in either direction.
//!
//! Invariant: a compressor is never asked to flush while it still holds output of before. It would hand over that and nothing else, and the message would have no end.

use std::cell::RefCell;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

/// How a compressed message ends; it is left out on the wire.
const TAIL: [u8; 4] = [0x00, 0x00, 0xff, 0xff];

/// What is inflated at once.
const STEP_BYTES: usize = 16 * 1024;

/// Room that a compressor has whenever it is called: more than it can hold itself.
const ROOM_BYTES: usize = 128 * 1024;

/// Room that is kept from one message to the next.
const KEPT_BYTES_MAX: usize = 512 * 1024;

thread_local! {
    static COMPRESS: RefCell<Compress> = RefCell::new(Compress::new(Compression::fast(), false));
    static COMPRESSED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static DECOMPRESS: RefCell<Decompress> = RefCell::new(Decompress::new(false));
}

/// Calls `send` with the pieces as one compressed message.
pub fn compress<'a, T>(pieces: impl Iterator<Item = &'a [u8]>, send: impl FnOnce(&[u8]) -> T) -> T {
    let mut out = COMPRESSED.take();
    out.clear();
    COMPRESS.with_borrow_mut(|compress| {
        compress.reset();
        for piece in pieces {
            put(compress, piece, FlushCompress::None, &mut out);
        }
        put(compress, b"", FlushCompress::Sync, &mut out);
    });
    debug_assert!(out.ends_with(&TAIL));
    let result = send(&out[..out.len() - TAIL.len()]);
    out.clear();
    out.shrink_to(KEPT_BYTES_MAX);
    COMPRESSED.set(out);
    result
}

/// Has the compressor take a piece, and everything it has to say about it.
fn put(compress: &mut Compress, piece: &[u8], flush: FlushCompress, out: &mut Vec<u8>) {
    let before = compress.total_in();
    loop {
        let taken = (compress.total_in() - before) as usize;
        out.reserve(ROOM_BYTES);
        // It fails only if there is nothing to do.
        let _ = compress.compress_vec(&piece[taken..], out, flush);
        let is_taken = (compress.total_in() - before) as usize == piece.len();
        if is_taken && out.len() < out.capacity() {
            return;
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub enum InflateError {
    /// It would be longer than allowed.
    TooLarge,
    Invalid,
}

/// Appends what a compressed message says, at most `bytes_max`. `compressed` is used up.
pub fn inflate(
    compressed: &mut Vec<u8>,
    out: &mut Vec<u8>,
    bytes_max: usize,
) -> Result<(), InflateError> {
    compressed.extend_from_slice(&TAIL);
    let start = out.len();
    let mut step = [0; STEP_BYTES];
    DECOMPRESS.with_borrow_mut(|decompress| {
        decompress.reset(false);
        loop {
            let (taken, given) = (decompress.total_in(), decompress.total_out());
            let status = decompress
                .decompress(
                    &compressed[taken as usize..],
                    &mut step,
                    FlushDecompress::Sync,
                )
                .map_err(|_| InflateError::Invalid)?;
            let count = (decompress.total_out() - given) as usize;
            if out.len() - start + count > bytes_max {
                return Err(InflateError::TooLarge);
            }
            out.extend_from_slice(&step[..count]);
            let is_stuck = count == 0 && decompress.total_in() == taken;
            if status == Status::StreamEnd || is_stuck {
                return Ok(());
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(pieces: &[&[u8]]) -> Vec<u8> {
        let mut out = b"before".to_vec();
        let mut compressed = compress(pieces.iter().copied(), <[u8]>::to_vec);
        inflate(&mut compressed, &mut out, usize::MAX).unwrap();
        out.split_off(6)
    }

    #[test]
    fn messages_of_any_size_come_back_as_they_were() {
        let mut random = crate::common::random::Random::seeded(3);
        let noise: Vec<u8> = (0..300_000).map(|_| random.below(256) as u8).collect();
        let zeros = vec![0; 1 << 20];

        for bytes in [&b""[..], b"x", &zeros, &noise] {
            assert!(round_trip(&[bytes]) == bytes);
        }
        for length in (1..noise.len()).step_by(4_999) {
            assert!(round_trip(&[&noise[..length]]) == noise[..length]);
        }
        assert_eq!(round_trip(&[b"INFO ", b"", b"{}\r\n"]), b"INFO {}\r\n");
    }

    #[test]
    fn a_message_that_grows_too_large_is_given_up_early() {
        let zeros = vec![0; 16 << 20];
        let mut out = Vec::new();
        let mut compressed = compress([&zeros[..]].into_iter(), <[u8]>::to_vec);
        assert!(compressed.len() < 100_000);

        let result = inflate(&mut compressed, &mut out, 1 << 20);

        assert_eq!(result, Err(InflateError::TooLarge));
        assert!(out.capacity() < 4 << 20);
    }

    #[test]
    fn nonsense_is_refused() {
        let mut out = Vec::new();
        let result = inflate(&mut vec![0xff; 64], &mut out, 1 << 20);
        assert_eq!(result, Err(InflateError::Invalid));
    }
}
