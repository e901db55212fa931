//! The first block of a segment file: what the file is, twice.
//!
//! ```text
//! offset 0     the header, then its checksum
//! offset 2048  the same again
//! offset 4096  the first record
//! ```
//! Either copy is enough; the good one heals the other. Invariant: a header is never changed after it was written.

use std::io;

use xxhash_rust::xxh3::xxh3_64;

use super::bytes::{ByteReader, Put};
use super::encryption::TAG_BYTES;
use super::record::{Binding, LINK_BYTES};
use crate::storage::disk::file_system::File;

/// Where records begin.
pub const RECORDS_START: u64 = 4096;
pub const COPY_OFFSETS: [u64; 2] = [0, 2048];
const MAGIC: &[u8; 8] = b"JETLAKES";

/// The version of everything in a segment file. A file with a higher one is refused with a clear word; a lower one is read for ever.
///
/// Since 2 there are groups of messages (`group`).
pub const FORMAT_VERSION: u32 = 2;

const BODY_BYTES: usize = 8 + 4 + 4 + 5 * 8;
pub const HEADER_BYTES: usize = BODY_BYTES + 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentHeader {
    /// The version of the file: what it may hold.
    pub version: u32,
    /// Made by chance for every file, so that no record of another file is taken for one of this.
    pub identity: u64,
    /// The identity of the stream.
    pub stream: u64,
    /// The number in the name of the file.
    pub number: u64,
    /// No record in the file has a lower sequence.
    pub base_sequence: u64,
    pub created_ns: i64,
    /// Every record has a link.
    pub chained: bool,
    /// Every record is encrypted.
    pub encrypted: bool,
    /// Messages may be compressed, and a dictionary stands in front of them.
    pub compressed: bool,
    /// Made from older segments: what it holds is what was of use then.
    pub rewritten: bool,
}

const FLAG_CHAINED: u32 = 1;
const FLAG_ENCRYPTED: u32 = 2;
const FLAG_COMPRESSED: u32 = 4;
const FLAG_REWRITTEN: u32 = 8;

/// What was found where a header should be.
#[derive(Debug, PartialEq, Eq)]
pub enum HeaderState {
    Good(SegmentHeader),
    /// One copy was damaged; it has been written again.
    Healed(SegmentHeader),
    /// Made by a later version of this program.
    TooNew(u32),
    Lost,
}

impl SegmentHeader {
    pub fn binding(&self) -> Binding {
        Binding {
            identity: self.identity,
            base_sequence: self.base_sequence,
        }
    }

    /// Bytes every record has beyond those of a plain one.
    pub fn extra_bytes(&self) -> usize {
        let link = if self.chained { LINK_BYTES } else { 0 };
        let tag = if self.encrypted { TAG_BYTES } else { 0 };
        link + tag
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES);
        bytes.extend_from_slice(MAGIC);
        bytes.put_u32(self.version);
        let chained = if self.chained { FLAG_CHAINED } else { 0 };
        let encrypted = if self.encrypted { FLAG_ENCRYPTED } else { 0 };
        let compressed = if self.compressed { FLAG_COMPRESSED } else { 0 };
        let rewritten = if self.rewritten { FLAG_REWRITTEN } else { 0 };
        bytes.put_u32(chained | encrypted | compressed | rewritten);
        bytes.put_u64(self.identity);
        bytes.put_u64(self.stream);
        bytes.put_u64(self.number);
        bytes.put_u64(self.base_sequence);
        bytes.put_u64(self.created_ns as u64);
        let checksum = xxh3_64(&bytes);
        bytes.put_u64(checksum);
        bytes
    }

    /// Writes both copies; the caller syncs.
    pub fn write(&self, file: &dyn File) -> io::Result<()> {
        let bytes = self.encode();
        for offset in COPY_OFFSETS {
            file.write_all_at(&bytes, offset)?;
        }
        Ok(())
    }

    /// Reads the header and heals a damaged copy, if `heal` is set.
    pub fn read(file: &dyn File, heal: bool) -> io::Result<HeaderState> {
        let mut copies = [None, None];
        let mut newer = None;
        for (copy, offset) in copies.iter_mut().zip(COPY_OFFSETS) {
            let mut bytes = [0; HEADER_BYTES];
            match file.read_exact_at(&mut bytes, offset) {
                Ok(()) => match decode(&bytes) {
                    DecodedHeader::Header(header) => *copy = Some(header),
                    DecodedHeader::Version(version) => newer = Some(version),
                    DecodedHeader::Damaged => {}
                },
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {}
                Err(error) => return Err(error),
            }
        }
        match copies {
            [Some(first), Some(second)] if first == second => Ok(HeaderState::Good(first)),
            [Some(header), _] | [None, Some(header)] => {
                if heal {
                    header.write(file)?;
                    file.sync()?;
                }
                Ok(HeaderState::Healed(header))
            }
            [None, None] => Ok(newer.map_or(HeaderState::Lost, HeaderState::TooNew)),
        }
    }
}

enum DecodedHeader {
    Header(SegmentHeader),
    Version(u32),
    Damaged,
}

fn decode(bytes: &[u8; HEADER_BYTES]) -> DecodedHeader {
    let (body, checksum) = bytes.split_at(BODY_BYTES);
    if xxh3_64(body).to_le_bytes() != *checksum {
        return DecodedHeader::Damaged;
    }
    let mut reader = ByteReader::new(body);
    let header = || -> Option<DecodedHeader> {
        if reader.bytes(8)? != MAGIC {
            return None;
        }
        let version = reader.u32()?;
        if version > FORMAT_VERSION {
            return Some(DecodedHeader::Version(version));
        }
        let flags = reader.u32()?;
        Some(DecodedHeader::Header(SegmentHeader {
            version,
            identity: reader.u64()?,
            stream: reader.u64()?,
            number: reader.u64()?,
            base_sequence: reader.u64()?,
            created_ns: reader.u64()? as i64,
            chained: flags & FLAG_CHAINED != 0,
            encrypted: flags & FLAG_ENCRYPTED != 0,
            compressed: flags & FLAG_COMPRESSED != 0,
            rewritten: flags & FLAG_REWRITTEN != 0,
        }))
    };
    let mut header = header;
    header().unwrap_or(DecodedHeader::Damaged)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::storage::disk::file_system::{FileSystem, OpenMode};
    use crate::storage::disk::simulated::SimulatedDisk;

    #[test]
    fn a_flipped_bit_in_either_copy_is_healed() {
        let header = SegmentHeader {
            version: FORMAT_VERSION,
            identity: 99,
            stream: 5,
            number: 3,
            base_sequence: 17,
            created_ns: -1,
            chained: true,
            encrypted: false,
            compressed: true,
            rewritten: false,
        };
        let path = Path::new("/f");
        for bit in 0..HEADER_BYTES * 8 {
            for offset in [0, 2048] {
                let disk = SimulatedDisk::default();
                let file = disk.open(path, OpenMode::Create).unwrap();
                header.write(&*file).unwrap();
                disk.tamper(path, |bytes| bytes[offset + bit / 8] ^= 1 << (bit % 8));

                assert_eq!(
                    SegmentHeader::read(&*file, true).unwrap(),
                    HeaderState::Healed(header)
                );
                assert_eq!(
                    SegmentHeader::read(&*file, true).unwrap(),
                    HeaderState::Good(header)
                );
            }
        }
    }

    #[test]
    fn zeros_are_a_lost_header() {
        let disk = SimulatedDisk::default();
        let file = disk.open(Path::new("/f"), OpenMode::Create).unwrap();
        file.set_len(RECORDS_START).unwrap();

        assert_eq!(
            SegmentHeader::read(&*file, true).unwrap(),
            HeaderState::Lost
        );
    }
}
