//! Compression of a link between two servers: everything in S2 chunks, in both directions.
//!
//! Chunks are made where bytes are handed over, each by itself, so threads need not agree on an order. Invariant: whatever comes in, at most one block is
//! decompressed before its bytes are taken, and no chunk or block is held that is larger than was allowed.

use std::cell::RefCell;
use std::io::IoSlice;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::config::leaf::LeafCompression;
use crate::wire::s2_frames::{
    decompress_chunk, masked_checksum, Chunk, FrameError, BLOCK_BYTES_MAX, CHUNK_BYTES_MAX,
    STREAM_NAME,
};

/// What one chunk holds before compression: the most that every reader of the format takes.
const BLOCK_BYTES: usize = 64 * 1024;

/// Less than this is not worth compressing.
const COMPRESS_BYTES_MIN: usize = 64;

const COMPRESSED: u8 = 0x00;
const UNCOMPRESSED: u8 = 0x01;

/// How what the outbox sends becomes chunks.
///
/// The first of them carries the name of the format. It may not leave earlier: the other side reads what comes together with the line that announces compression as
/// if it were not compressed. Nobody but the connection's owner sends anything before the link is open, so it is known which one is the first.
#[derive(Debug)]
pub struct S2Framing {
    compresses: bool,
    has_begun: AtomicBool,
}

struct S2Scratch {
    encoder: snap::raw::Encoder,
    gathered: Vec<u8>,
    block: Vec<u8>,
    chunks: Vec<u8>,
}

thread_local! {
    static SCRATCH: RefCell<S2Scratch> = RefCell::new(S2Scratch::new());
}

impl S2Framing {
    pub fn new(compression: LeafCompression) -> Self {
        Self {
            compresses: compression != LeafCompression::S2Uncompressed,
            has_begun: AtomicBool::new(false),
        }
    }

    /// Makes chunks of the pieces and hands them to `send`.
    pub fn frame<T>(&self, pieces: &[IoSlice<'_>], send: impl FnOnce(&[IoSlice<'_>]) -> T) -> T {
        SCRATCH.with_borrow_mut(|scratch| {
            scratch.gathered.clear();
            for piece in pieces {
                scratch.gathered.extend_from_slice(piece);
            }
            scratch.chunks.clear();
            if !self.has_begun.swap(true, Ordering::Relaxed) {
                scratch.chunks.extend_from_slice(STREAM_NAME);
            }
            let gathered = std::mem::take(&mut scratch.gathered);
            for block in gathered.chunks(BLOCK_BYTES) {
                scratch.add_chunk(block, self.compresses);
            }
            scratch.gathered = gathered;
            scratch.gathered.shrink_to(CHUNK_BYTES_MAX);
            let result = send(&[IoSlice::new(&scratch.chunks)]);
            scratch.chunks.shrink_to(CHUNK_BYTES_MAX);
            result
        })
    }
}

impl S2Scratch {
    fn new() -> Self {
        Self {
            encoder: snap::raw::Encoder::new(),
            gathered: Vec::new(),
            block: Vec::new(),
            chunks: Vec::new(),
        }
    }

    fn add_chunk(&mut self, block: &[u8], compresses: bool) {
        let checksum = masked_checksum(block);
        let mut body = block;
        let mut kind = UNCOMPRESSED;
        if compresses && block.len() >= COMPRESS_BYTES_MIN {
            self.block
                .resize(snap::raw::max_compress_len(block.len()), 0);
            if let Ok(length) = self.encoder.compress(block, &mut self.block) {
                if length < block.len() {
                    body = &self.block[..length];
                    kind = COMPRESSED;
                }
            }
        }
        let length = (body.len() + size_of_val(&checksum)) as u32;
        let [low, middle, high, _] = length.to_le_bytes();
        self.chunks.extend_from_slice(&[kind, low, middle, high]);
        self.chunks.extend_from_slice(&checksum.to_le_bytes());
        self.chunks.extend_from_slice(body);
    }
}

/// Turns chunks back into the bytes of a session.
pub struct S2Unframing {
    /// What has come and was not looked at.
    received: Vec<u8>,
    looked_at: usize,
    is_named: bool,
    block: Vec<u8>,
    taken: usize,
    /// What a block may hold.
    block_bytes_max: usize,
}

impl Default for S2Unframing {
    fn default() -> Self {
        Self {
            received: Vec::new(),
            looked_at: 0,
            is_named: false,
            block: Vec::new(),
            taken: 0,
            block_bytes_max: BLOCK_BYTES_MAX,
        }
    }
}

impl S2Unframing {
    /// Refuses blocks that hold more than this, from now on.
    pub fn limit_blocks(&mut self, bytes_max: usize) {
        self.block_bytes_max = bytes_max;
    }

    /// Bytes of memory that are held.
    pub fn held_bytes(&self) -> usize {
        self.received.capacity() + self.block.capacity()
    }

    pub fn add(&mut self, bytes: &[u8]) {
        self.received.drain(..std::mem::take(&mut self.looked_at));
        self.received.extend_from_slice(bytes);
    }

    /// Whether bytes can be taken without more coming in.
    pub fn has_unread(&self) -> bool {
        self.taken < self.block.len() || Chunk::is_whole(&self.received[self.looked_at..])
    }

    /// Moves bytes of the session to the front of `target`, as much as there is and fits, and says how much.
    pub fn read_into(&mut self, target: &mut [u8]) -> Result<usize, FrameError> {
        let mut filled = 0;
        while filled < target.len() {
            if self.taken == self.block.len() && !self.next_block()? {
                break;
            }
            let count = (target.len() - filled).min(self.block.len() - self.taken);
            target[filled..filled + count].copy_from_slice(&self.block[self.taken..][..count]);
            self.taken += count;
            filled += count;
        }
        Ok(filled)
    }

    /// Decompresses the next chunk; false if it has not come as a whole.
    fn next_block(&mut self) -> Result<bool, FrameError> {
        self.block.clear();
        self.taken = 0;
        while self.block.is_empty() {
            let received = &self.received[self.looked_at..];
            let Some(chunk) = Chunk::read(received, self.is_named, self.block_bytes_max)? else {
                return Ok(false);
            };
            self.is_named = true;
            decompress_chunk(&chunk, self.block_bytes_max, &mut self.block)?;
            self.looked_at += chunk.length();
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(compression: LeafCompression, bytes: &[u8]) -> Vec<u8> {
        let mut all = Vec::new();
        S2Framing::new(compression).frame(&[IoSlice::new(bytes)], |pieces| {
            for piece in pieces {
                all.extend_from_slice(piece);
            }
        });
        all
    }

    fn read_all(unframing: &mut S2Unframing) -> Vec<u8> {
        let mut all = Vec::new();
        let mut part = [0; 1000];
        loop {
            match unframing.read_into(&mut part).unwrap() {
                0 => return all,
                count => all.extend_from_slice(&part[..count]),
            }
        }
    }

    #[test]
    fn what_was_framed_is_read_back_in_whatever_pieces_it_comes() {
        let plain: Vec<u8> = (0..300_000u32).map(|number| (number / 7) as u8).collect();
        for compression in [LeafCompression::S2Fast, LeafCompression::S2Uncompressed] {
            let framed = framed(compression, &plain);
            for size in [1, 7, 4096, framed.len()] {
                let mut unframing = S2Unframing::default();
                let mut read = Vec::new();
                for piece in framed.chunks(size) {
                    unframing.add(piece);
                    read.extend(read_all(&mut unframing));
                }
                assert!(read == plain, "{compression:?} {size}");
                assert!(!unframing.has_unread());
            }
        }
    }

    #[test]
    fn compression_makes_it_shorter() {
        let plain = vec![b'a'; 10_000];
        let fast = framed(LeafCompression::S2Fast, &plain);
        let plain_chunks = framed(LeafCompression::S2Uncompressed, &plain);

        assert!(fast.len() < 1_000 && plain_chunks.len() > plain.len());
    }

    #[test]
    fn a_stream_that_is_damaged_is_an_error_and_not_other_bytes() {
        let mut damaged = framed(LeafCompression::S2Uncompressed, b"hello");
        *damaged.last_mut().unwrap() ^= 1;
        let mut unframing = S2Unframing::default();
        unframing.add(&damaged);
        assert_eq!(unframing.read_into(&mut [0; 10]), Err(FrameError::Checksum));

        let mut unframing = S2Unframing::default();
        unframing.add(b"INFO {}\r\n");
        assert_eq!(unframing.read_into(&mut [0; 10]), Err(FrameError::NotS2));
    }

    #[test]
    fn a_chunk_larger_than_allowed_is_refused_before_it_has_come() {
        let promised = [STREAM_NAME, &[COMPRESSED, 0, 0, 0x40]].concat();
        let large = framed(LeafCompression::S2Fast, &[b'a'; 60_000]);
        assert!(large.len() < 10_000);
        for (bytes, block_bytes_max) in [(promised, 1_000_000), (large, 59_999)] {
            let mut unframing = S2Unframing::default();
            unframing.limit_blocks(block_bytes_max);
            unframing.add(&bytes);
            let refused = unframing.read_into(&mut [0; 10]);

            assert_eq!(refused, Err(FrameError::ChunkTooLarge));
            assert!(unframing.held_bytes() <= 2 * bytes.len());
        }
    }

    #[test]
    fn what_has_come_of_a_chunk_is_counted() {
        let mut unframing = S2Unframing::default();
        unframing.add(&[STREAM_NAME, &[COMPRESSED, 0, 0, 0x40], &[0; 100_000]].concat());

        assert_eq!(unframing.read_into(&mut [0; 10]), Ok(0));
        assert!(unframing.held_bytes() >= 100_000);
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>, named: bool) {
            let mut unframing = S2Unframing::default();
            if named {
                unframing.add(STREAM_NAME);
            }
            unframing.add(&bytes);
            let _ = unframing.read_into(&mut [0; 64]);
        }
    }
}
