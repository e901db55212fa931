//! Reading S2 streams, as nats-server's snapshots are: chunks in the framing of Snappy, with blocks that may say "the same distance again".
//!
//! Blocks of Snappy itself are read too, and written: every reader of S2 takes them, so the encoder of the crate `snap` does for writing. Its
//! decoder does not for reading, because it knows neither the larger blocks nor the repeats.
//!
//! Invariant: whatever the bytes, at most one chunk and one block are in memory, and each is at most as large as the limits here say.

use std::fmt;
use std::io::{self, Read};

/// What a block may hold when it is decompressed: the most that the format allows.
pub const BLOCK_BYTES_MAX: usize = 4 * 1024 * 1024;

/// What a chunk may hold on the wire.
pub const CHUNK_BYTES_MAX: usize = chunk_bytes_max(BLOCK_BYTES_MAX);

/// The same for smaller blocks: one that compression made longer, with its checksum. The format's own bound for that is a sixth more.
const fn chunk_bytes_max(block_bytes_max: usize) -> usize {
    block_bytes_max + block_bytes_max / 6 + 1024
}

const CHUNK_HEAD_BYTES: usize = 4;
const CHECKSUM_BYTES: usize = 4;

const COMPRESSED: u8 = 0x00;
const UNCOMPRESSED: u8 = 0x01;
/// Chunks from here on may be passed over, up to the last one, which is the name of the format.
const SKIPPABLE_MIN: u8 = 0x80;
const FORMAT_NAME: u8 = 0xff;

const S2_NAME: &[u8] = b"S2sTwO";
const SNAPPY_NAME: &[u8] = b"sNaPpY";

/// What a stream begins with.
pub const STREAM_NAME: &[u8] = b"\xff\x06\x00\x00S2sTwO";

/// Why a stream cannot be read.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub enum FrameError {
    /// It does not begin with the name of the format.
    NotS2,
    /// It ends in the middle of a chunk.
    Truncated,
    /// A chunk is of a kind that must be understood and is not.
    UnknownChunk,
    /// A chunk is larger than any may be.
    ChunkTooLarge,
    /// A block is larger than any may be, or its parts do not fit together.
    Damaged,
    /// The bytes are not those that were written.
    Checksum,
}

impl fmt::Display for FrameError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::NotS2 => "it is not a valid S2 stream",
            Self::Truncated => "the S2 stream ends too early",
            Self::UnknownChunk => "the S2 stream has a chunk of an unknown kind",
            Self::ChunkTooLarge => "the S2 stream has a chunk that is too large",
            Self::Damaged => "the S2 stream has a damaged block",
            Self::Checksum => "the S2 stream has a block with a wrong checksum",
        })
    }
}

impl std::error::Error for FrameError {}

impl From<FrameError> for io::Error {
    fn from(error: FrameError) -> Self {
        Self::new(io::ErrorKind::InvalidData, error)
    }
}

/// One chunk of a stream that comes in pieces.
pub struct Chunk<'a> {
    kind: u8,
    body: &'a [u8],
}

impl<'a> Chunk<'a> {
    /// Whether the chunk at the front of `bytes` has come as a whole.
    pub fn is_whole(bytes: &[u8]) -> bool {
        let head = bytes.first_chunk();
        head.is_some_and(|head| bytes.len() >= CHUNK_HEAD_BYTES + body_length(*head))
    }

    /// Reads the chunk at the front of `bytes`; `None` when it has not come as a whole. The first one must be the name of the format; a block may hold
    /// `block_bytes_max`.
    pub fn read(
        bytes: &'a [u8],
        is_named: bool,
        block_bytes_max: usize,
    ) -> Result<Option<Self>, FrameError> {
        let Some(head) = bytes.first_chunk::<CHUNK_HEAD_BYTES>() else {
            return Ok(None);
        };
        let (kind, length) = (head[0], body_length(*head));
        if !is_named && kind != FORMAT_NAME {
            return Err(FrameError::NotS2);
        }
        if length > chunk_bytes_max(block_bytes_max) {
            return Err(FrameError::ChunkTooLarge);
        }
        let body = bytes[CHUNK_HEAD_BYTES..].get(..length);
        Ok(body.map(|body| Self { kind, body }))
    }

    /// Bytes of the chunk, with its head.
    pub fn length(&self) -> usize {
        CHUNK_HEAD_BYTES + self.body.len()
    }
}

fn body_length([_, low, middle, high]: [u8; CHUNK_HEAD_BYTES]) -> usize {
    usize::from(low) | usize::from(middle) << 8 | usize::from(high) << 16
}

/// Appends what a chunk holds, at most `bytes_max`; nothing if it only names the format or may be passed over.
pub fn decompress_chunk(
    chunk: &Chunk<'_>,
    bytes_max: usize,
    block: &mut Vec<u8>,
) -> Result<(), FrameError> {
    match chunk.kind {
        FORMAT_NAME if chunk.body == S2_NAME || chunk.body == SNAPPY_NAME => Ok(()),
        FORMAT_NAME => Err(FrameError::NotS2),
        COMPRESSED if block_length(chunk.body)? > bytes_max => Err(FrameError::ChunkTooLarge),
        COMPRESSED | UNCOMPRESSED => decompress_block(chunk.body, chunk.kind == COMPRESSED, block),
        SKIPPABLE_MIN.. => Ok(()),
        _ => Err(FrameError::UnknownChunk),
    }
}

/// How long the block of a chunk says that it is.
fn block_length(body: &[u8]) -> Result<usize, FrameError> {
    let mut input = S2Input { rest: body };
    input.take_bytes(CHECKSUM_BYTES)?;
    input.varint()
}

/// Decompresses the body of a chunk: a checksum, and the block. On an error nothing of it is left.
fn decompress_block(
    body: &[u8],
    is_compressed: bool,
    block: &mut Vec<u8>,
) -> Result<(), FrameError> {
    let Some((checksum, body)) = body.split_first_chunk::<CHECKSUM_BYTES>() else {
        return Err(FrameError::Damaged);
    };
    if is_compressed {
        decompress(body, block)?;
    } else if body.len() > BLOCK_BYTES_MAX {
        return Err(FrameError::Damaged);
    } else {
        block.extend_from_slice(body);
    }
    if masked_checksum(block) != u32::from_le_bytes(*checksum) {
        block.clear();
        return Err(FrameError::Checksum);
    }
    Ok(())
}

/// The decompressed bytes of a stream.
pub struct S2FrameReader<R> {
    inner: R,
    named: bool,
    chunk: Vec<u8>,
    block: Vec<u8>,
    /// How much of the block has been read.
    taken: usize,
}

impl<R: Read> S2FrameReader<R> {
    pub fn new(inner: R) -> Self {
        Self {
            inner,
            named: false,
            chunk: Vec::new(),
            block: Vec::new(),
            taken: 0,
        }
    }

    /// Reads chunks until there is a block; false at the end of the stream.
    fn next_block(&mut self) -> io::Result<bool> {
        self.block.clear();
        self.taken = 0;
        loop {
            let mut head = [0; CHUNK_HEAD_BYTES];
            match fill(&mut self.inner, &mut head)? {
                0 => return Ok(false),
                CHUNK_HEAD_BYTES => {}
                _ => return Err(FrameError::Truncated.into()),
            }
            let (kind, length) = (head[0], body_length(head));
            if !self.named && kind != FORMAT_NAME {
                return Err(FrameError::NotS2.into());
            }
            // What may be passed over may be longer, and is not kept.
            let is_kept = kind < SKIPPABLE_MIN || kind == FORMAT_NAME;
            if is_kept && length > CHUNK_BYTES_MAX {
                return Err(FrameError::ChunkTooLarge.into());
            }
            match kind {
                FORMAT_NAME => {
                    self.read_chunk(length)?;
                    if self.chunk != S2_NAME && self.chunk != SNAPPY_NAME {
                        return Err(FrameError::NotS2.into());
                    }
                    self.named = true;
                }
                COMPRESSED | UNCOMPRESSED => {
                    self.read_chunk(length)?;
                    decompress_block(&self.chunk, kind == COMPRESSED, &mut self.block)?;
                    if !self.block.is_empty() {
                        return Ok(true);
                    }
                }
                SKIPPABLE_MIN.. => self.pass_over(length as u64)?,
                _ => return Err(FrameError::UnknownChunk.into()),
            }
        }
    }

    /// Reads the body of a chunk. Room is made for what comes and not for what is promised.
    fn read_chunk(&mut self, length: usize) -> io::Result<()> {
        self.chunk.clear();
        let count = self
            .inner
            .by_ref()
            .take(length as u64)
            .read_to_end(&mut self.chunk)?;
        if count < length {
            return Err(FrameError::Truncated.into());
        }
        Ok(())
    }

    fn pass_over(&mut self, length: u64) -> io::Result<()> {
        let count = io::copy(&mut self.inner.by_ref().take(length), &mut io::sink())?;
        if count < length {
            return Err(FrameError::Truncated.into());
        }
        Ok(())
    }
}

impl<R: Read> Read for S2FrameReader<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() || (self.taken == self.block.len() && !self.next_block()?) {
            return Ok(0);
        }
        let count = out.len().min(self.block.len() - self.taken);
        out[..count].copy_from_slice(&self.block[self.taken..][..count]);
        self.taken += count;
        Ok(count)
    }
}

/// Fills the buffer as far as there are bytes, and says how far.
fn fill(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match reader.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// The checksum as the format stores it: rotated and added to, because a CRC of bytes that contain their own CRC is weak.
pub fn masked_checksum(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
        .rotate_right(15)
        .wrapping_add(0xa282_ead8)
}

/// The bytes of a block that is being read.
struct S2Input<'a> {
    rest: &'a [u8],
}

impl<'a> S2Input<'a> {
    fn take_bytes(&mut self, count: usize) -> Result<&'a [u8], FrameError> {
        let (front, rest) = self
            .rest
            .split_at_checked(count)
            .ok_or(FrameError::Damaged)?;
        self.rest = rest;
        Ok(front)
    }

    /// A number of up to four bytes, the lowest first.
    fn number(&mut self, bytes: usize) -> Result<usize, FrameError> {
        let taken = self.take_bytes(bytes)?.iter().rev();
        Ok(taken.fold(0, |number, byte| number << 8 | usize::from(*byte)))
    }

    /// A number in groups of seven bits.
    fn varint(&mut self) -> Result<usize, FrameError> {
        let mut number = 0;
        for group in 0..5 {
            let byte = self.take_bytes(1)?[0];
            number |= usize::from(byte & 0x7f) << (7 * group);
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(FrameError::Damaged)
    }
}

/// Decompresses one block into `out`, and replaces what it holds.
///
/// A block is its length and then literals and copies. The two lowest bits of a tag say which: 0 a literal, 1 to 3 a copy whose distance takes
/// that many bytes about. A copy of kind 1 with distance 0, which Snappy does not have, repeats the distance of the copy before it.
pub fn decompress(block: &[u8], out: &mut Vec<u8>) -> Result<(), FrameError> {
    let mut input = S2Input { rest: block };
    let length = input.varint()?;
    if length > BLOCK_BYTES_MAX {
        return Err(FrameError::Damaged);
    }
    out.clear();
    let mut distance = 0;
    while !input.rest.is_empty() {
        let tag = usize::from(input.take_bytes(1)?[0]);
        let count = match tag & 3 {
            0 => {
                let count = match tag >> 2 {
                    short @ 0..60 => short,
                    long => input.number(long - 59)?,
                } + 1;
                if count > length - out.len() {
                    return Err(FrameError::Damaged);
                }
                out.extend_from_slice(input.take_bytes(count)?);
                continue;
            }
            1 => {
                let near = input.number(1)? | (tag & 0xe0) << 3;
                let short = tag >> 2 & 7;
                if near > 0 {
                    distance = near;
                    short + 4
                } else {
                    match short {
                        5 => input.number(1)? + 8,
                        6 => input.number(2)? + (1 << 8) + 4,
                        7 => input.number(3)? + (1 << 16) + 4,
                        short => short + 4,
                    }
                }
            }
            2 => {
                distance = input.number(2)?;
                (tag >> 2) + 1
            }
            _ => {
                distance = input.number(4)?;
                (tag >> 2) + 1
            }
        };
        if distance == 0 || distance > out.len() || count > length - out.len() {
            return Err(FrameError::Damaged);
        }
        copy_within(out, distance, count);
    }
    if out.len() == length {
        Ok(())
    } else {
        Err(FrameError::Damaged)
    }
}

/// Appends what lies `distance` back; the copy may reach into what it appends.
fn copy_within(out: &mut Vec<u8>, distance: usize, count: usize) {
    let start = out.len() - distance;
    let mut left = count;
    while left > 0 {
        let piece = left.min(out.len() - start);
        out.extend_from_within(start..start + piece);
        left -= piece;
    }
}

#[cfg(test)]
#[path = "s2_frames_tests.rs"]
mod tests;
