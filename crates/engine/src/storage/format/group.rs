//! Messages that are stored together or not at all.
//!
//! A group record stands in front of its messages, in the same segment, and says how many they are, how many bytes they take, and which sectors of those
//! bytes hold anything. Where a group was never acknowledged, some of its sectors may be missing after a power cut, and a missing sector is blank; so a
//! group is whole if no sector is blank that should not be. A flipped bit does not make a sector blank, and therefore never takes a group away.
//! Invariant: the messages of a group have neighbouring sequences and lie directly after its record.

use std::io;

use super::bytes::{ByteReader, Put};
use super::record;
use super::record::{Record, RecordKind};
use crate::storage::disk::file_system::File;
use crate::storage::segment::scan::SECTOR_BYTES;

/// Read at once; sectors, so that no sector is cut in two.
const CHUNK_BYTES: u64 = 2048 * SECTOR_BYTES;

/// The first format version that knows groups.
pub const SINCE_VERSION: u32 = 2;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Where its record begins.
    pub position: u64,
    pub first_sequence: u64,
    pub last_sequence: u64,
    /// Where its messages begin and end.
    pub start: u64,
    pub end: u64,
    /// A bit for every sector the messages touch: it is not blank.
    written: Vec<u8>,
}

/// The payload size of a group record whose messages take `body_bytes`, wherever they lie.
pub fn payload_bytes(body_bytes: usize) -> usize {
    let sectors_max = body_bytes / SECTOR_BYTES as usize + 2;
    4 + 4 + sectors_max.div_ceil(8)
}

/// The payload of a group record whose messages are these bytes, from `start` of the segment on.
pub fn encode(messages: u32, start: u64, body: &[u8]) -> Vec<u8> {
    let mut payload = Vec::with_capacity(payload_bytes(body.len()));
    payload.put_u32(messages);
    payload.put_u32(body.len() as u32);
    payload.resize(payload_bytes(body.len()), 0);
    let end = start + body.len() as u64;
    for (number, (from, to)) in sectors(start, end).enumerate() {
        let sector = &body[(from - start) as usize..(to - start) as usize];
        if !is_blank(sector) {
            payload[8 + number / 8] |= 1 << (number % 8);
        }
    }
    payload
}

impl Group {
    /// What a group record at `position` says; `None` if it is not one we wrote.
    pub fn decode(record: &Record<'_>, position: u64) -> Option<Self> {
        let mut reader = ByteReader::new(record.payload);
        let messages = reader.u32()?;
        let body_bytes = reader.u32()?;
        let start = position + record.stored_bytes() as u64;
        let right = record.kind == RecordKind::Group
            && messages > 0
            && record.payload.len() == payload_bytes(body_bytes as usize)
            && body_bytes as usize % record::ALIGNMENT == 0;
        right.then(|| Self {
            position,
            first_sequence: record.sequence,
            last_sequence: record.sequence + u64::from(messages) - 1,
            start,
            end: start + u64::from(body_bytes),
            written: record.payload[8..].to_vec(),
        })
    }

    /// Whether one of its messages lies, or lay, here.
    pub fn contains(&self, position: u64) -> bool {
        self.start <= position && position < self.end
    }

    /// Whether everything of it has been written once, damaged since or not.
    pub fn is_whole(&self, file: &dyn File) -> io::Result<bool> {
        let there = self.end.min(file.len()?).max(self.start);
        let mut bytes = Vec::new();
        let mut chunk_start = self.start;
        for (number, (from, to)) in sectors(self.start, self.end).enumerate() {
            if to > there {
                // The file was never made as long as that.
                return Ok(false);
            }
            if from >= chunk_start + bytes.len() as u64 {
                chunk_start = from;
                let chunk_end = (from - from % SECTOR_BYTES + CHUNK_BYTES).min(there);
                bytes.resize((chunk_end - chunk_start) as usize, 0);
                file.read_exact_at(&mut bytes, chunk_start)?;
            }
            let sector = &bytes[(from - chunk_start) as usize..(to - chunk_start) as usize];
            let written = self.written[number / 8] & (1 << (number % 8)) != 0;
            if written && is_blank(sector) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn is_blank(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

/// The sectors of a stretch, the first and the last only as far as they belong to it.
fn sectors(start: u64, end: u64) -> impl Iterator<Item = (u64, u64)> {
    let first = start - start % SECTOR_BYTES;
    (first..end)
        .step_by(SECTOR_BYTES as usize)
        .map(move |from| (from.max(start), (from + SECTOR_BYTES).min(end)))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::storage::disk::file_system::{FileSystem, OpenMode};
    use crate::storage::disk::simulated::SimulatedDisk;

    /// A file with a body at `start`, and the group that describes it.
    fn group(start: u64, body: &[u8]) -> (SimulatedDisk, Group) {
        let disk = SimulatedDisk::default();
        let file = disk.open(Path::new("/f"), OpenMode::Create).unwrap();
        file.write_all_at(body, start).unwrap();
        let payload = encode(3, start, body);
        let record = Record {
            kind: RecordKind::Group,
            ..Record::removed(7, &payload)
        };
        let position = start - record.stored_bytes() as u64;
        let group = Group::decode(&record, position).unwrap();
        assert_eq!((group.first_sequence, group.last_sequence), (7, 9));
        assert_eq!((group.start, group.end), (start, start + body.len() as u64));
        (disk, group)
    }

    fn is_whole(disk: &SimulatedDisk, group: &Group) -> bool {
        let file = disk.open(Path::new("/f"), OpenMode::Read).unwrap();
        group.is_whole(&*file).unwrap()
    }

    /// Every length up to a few sectors, with and without sectors that are blank by themselves.
    #[test]
    fn a_missing_sector_is_noticed_and_a_flipped_bit_is_not_taken_for_one() {
        for start in [4500, 4608, 5116] {
            for length in (4..2200).step_by(52) {
                for blank in [false, true] {
                    let mut body = vec![9; length];
                    if blank {
                        let to = length - length / 3;
                        body[28.min(to)..to].fill(0);
                    }
                    let (disk, group) = group(start, &body);
                    assert!(is_whole(&disk, &group), "{start} {length}");

                    for (from, to) in sectors(group.start, group.end) {
                        let part = (from - start) as usize..(to - start) as usize;
                        let sector = from as usize..to as usize;
                        let missing = disk.copy();
                        missing.tamper(Path::new("/f"), |all| all[sector.clone()].fill(0));
                        assert_eq!(is_whole(&missing, &group), is_blank(&body[part]));
                        let flipped = disk.copy();
                        flipped.tamper(Path::new("/f"), |all| all[from as usize] ^= 2);
                        assert!(is_whole(&flipped, &group), "{start} {length} {from}");
                        let short = disk.copy();
                        short.tamper(Path::new("/f"), |all| all.truncate(from as usize));
                        assert!(!is_whole(&short, &group), "{start} {length} {from}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_group_larger_than_what_is_read_at_once_is_read_to_its_end() {
        let body = vec![1; 2 * CHUNK_BYTES as usize + 700];
        let (disk, group) = group(5000, &body);

        assert!(is_whole(&disk, &group));
        disk.tamper(Path::new("/f"), |all| {
            let end = all.len();
            all[end - 4..].fill(0);
        });
        assert_eq!(is_whole(&disk, &group), group.end % SECTOR_BYTES > 4);
        disk.tamper(Path::new("/f"), |all| {
            let end = all.len();
            all[end - 1024..].fill(0);
        });
        assert!(!is_whole(&disk, &group));
    }

    #[test]
    fn a_payload_we_did_not_write_is_no_group() {
        for payload in [&b""[..], &[1; 8], &[0; 9], &[1; 4000]] {
            let record = Record {
                kind: RecordKind::Group,
                ..Record::removed(7, payload)
            };
            assert_eq!(Group::decode(&record, 4096), None);
        }
    }
}
