//! Reading a segment record by record, over damaged places.
//!
//! Where bytes are not a record, the scan looks for the next one: records are bound to their positions, so whatever decodes further on
//! really belongs there. What lies between is a hole. What follows the last record is the tail: blank where nothing was written, otherwise a
//! write that was torn, or a record that was damaged.

use std::io;

use crate::storage::disk::file_system::File;
use crate::storage::format::group::Group;
use crate::storage::format::record;
use crate::storage::format::record::{
    decode, Binding, NotARecord, Record, RecordKind, ALIGNMENT, HEAD_BYTES,
};
use crate::storage::format::round::Round;
use crate::storage::format::segment_header::RECORDS_START;

/// What a disk writes as a whole, or not at all.
pub const SECTOR_BYTES: u64 = 512;

/// Read at once.
const CHUNK_BYTES: usize = 1 << 20;

/// Behind damage anything may look like the length of a record. Those longer than this are read only …
const LONG_BYTES: usize = 1 << 20;

/// … up to this sum, so that a payload made of such numbers does not take minutes: as much as a segment usually has.
const SEARCHED_BYTES_MAX: usize = 64 << 20;

/// A stretch of a segment that holds no readable record although records follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hole {
    pub start: u64,
    pub end: u64,
}

/// What follows the last record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tail {
    Blank,
    /// Something was written there that cannot be read.
    Torn,
}

#[derive(Debug)]
pub struct SegmentScan {
    pub holes: Vec<Hole>,
    /// Where the next record goes.
    pub end: u64,
    pub tail: Tail,
    /// After the last bytes that are not blank.
    pub dirty_end: u64,
    /// What follows the last record begins like one that would end beyond the file.
    pub beyond: bool,
    /// The round of the last record.
    pub round: Round,
    /// Everything up to here was durable before the last round began.
    pub durable_end: u64,
    /// The groups after that.
    pub groups: Vec<Group>,
    /// What follows the last record begins with a group that was never finished.
    pub unfinished_group: Option<Group>,
}

/// Where something begins that was never finished.
pub struct Unfinished {
    pub position: u64,
    /// If it is a group: the disk may have its first messages.
    pub group: Option<Group>,
}

/// Calls `found` with every record, its position and its bytes.
pub fn scan(
    file: &dyn File,
    binding: Binding,
    until: u64,
    mut found: impl FnMut(Record<'_>, u64, &[u8]),
) -> io::Result<SegmentScan> {
    let mut window = Window::new(file, until);
    let mut position = RECORDS_START;
    let mut holes = Vec::new();
    let mut search = Search::default();
    let mut end = RECORDS_START;
    let mut written_behind_end = false;
    let mut dirty_end = RECORDS_START;
    let mut beyond = false;
    let mut round = Round::default();
    let mut durable_end = RECORDS_START;
    let mut groups: Vec<Group> = Vec::new();
    while position < until {
        let mut bytes = window.at(position, HEAD_BYTES)?;
        let mut decoded = decode(bytes, binding, position);
        if let Err(NotARecord::Short { bytes_needed }) = decoded {
            // A length beyond the file is damage, not a reason to read it all.
            let fits = position + bytes_needed as u64 <= until;
            beyond |= !fits && position == end;
            bytes = match fits && search.is_worth(position, bytes_needed) {
                true => window.at(position, bytes_needed)?,
                false => &[1][..],
            };
            decoded = match decode(bytes, binding, position) {
                Err(NotARecord::Short { .. }) => Err(NotARecord::Damaged),
                other => other,
            };
        }
        match decoded {
            Ok((record, length)) => {
                if let Some(damage) = search.damage.take() {
                    holes.push(Hole {
                        start: damage.start,
                        end: position,
                    });
                }
                let exact = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
                match record.kind {
                    // Nothing is erased before it is durable.
                    RecordKind::Erased => durable_end = position + length as u64,
                    _ => {
                        if record.round.is_first() {
                            durable_end = position;
                        } else if !record.round.is_same(round) {
                            // Its first one is missing, so what is missing before it may be of either round.
                            durable_end = end;
                        }
                        round = record.round;
                    }
                }
                groups.retain(|group| group.position >= durable_end);
                if record.kind == RecordKind::Group {
                    groups.extend(Group::decode(&record, position));
                }
                found(record, position, &bytes[..exact as usize]);
                position += length as u64;
                end = position;
                dirty_end = position;
                beyond = false;
                written_behind_end = false;
            }
            Err(error) => {
                search.begin(position, window.at(position, HEAD_BYTES)?);
                if error == NotARecord::Blank {
                    position = window.skip_blank(position)?;
                } else {
                    written_behind_end = true;
                    position += ALIGNMENT as u64;
                    dirty_end = (position + HEAD_BYTES as u64).min(until);
                }
            }
        }
    }
    Ok(SegmentScan {
        holes,
        end,
        tail: if written_behind_end {
            Tail::Torn
        } else {
            Tail::Blank
        },
        dirty_end,
        beyond,
        round,
        durable_end,
        groups,
        unfinished_group: None,
    })
}

impl SegmentScan {
    /// Where a write begins that was never finished: a group of which something is missing, or what follows a missing
    /// sector.
    pub fn unfinished(&self, file: &dyn File) -> io::Result<Option<Unfinished>> {
        let torn_at = self.torn_at(file)?;
        let before = |group: &&Group| torn_at.is_none_or(|torn_at| group.position < torn_at);
        for group in self.groups.iter().take_while(before) {
            if !group.is_whole(file)? {
                return Ok(Some(Unfinished {
                    position: group.position,
                    group: Some(group.clone()),
                }));
            }
        }
        let position = torn_at;
        Ok(position.map(|position| Unfinished {
            position,
            group: None,
        }))
    }

    /// Where a write that was never finished shows outside of groups: sectors of it are there, and one before them is not.
    ///
    /// Such a sector is blank, because everything after the last record always is before it is written; damage leaves
    /// something else.
    fn torn_at(&self, file: &dyn File) -> io::Result<Option<u64>> {
        let mut bytes = Vec::new();
        let grouped = |hole: &Hole| self.groups.iter().any(|group| group.contains(hole.start));
        let unsure = |hole: &&Hole| hole.start >= self.durable_end && !grouped(hole);
        for hole in self.holes.iter().filter(unsure) {
            bytes.resize((hole.end - hole.start) as usize, 0);
            file.read_exact_at(&mut bytes, hole.start)?;
            let first_sector = hole.start.next_multiple_of(SECTOR_BYTES);
            // The sector a hole begins in may hold the end of what is before it, as it was or because it is blank anyway.
            let shared = (hole.start, first_sector);
            let sectors = (first_sector..hole.end).step_by(SECTOR_BYTES as usize);
            let mut pieces = sectors
                .map(|start| (start, start + SECTOR_BYTES))
                .chain((shared.0 < shared.1).then_some(shared));
            let blank = |(start, end): (u64, u64)| {
                let piece = bytes.get((start - hole.start) as usize..(end - hole.start) as usize);
                piece.is_some_and(|piece| piece.iter().all(|byte| *byte == 0))
            };
            if pieces.any(blank) {
                return Ok(Some(hole.start));
            }
        }
        Ok(None)
    }
}

/// The first thing that is not a record, where one was to follow.
struct Damage {
    start: u64,
    /// What stands there as its length.
    length: u32,
}

/// The search for the next record behind damage.
#[derive(Default)]
struct Search {
    damage: Option<Damage>,
    /// Read so far in vain, of long ones.
    bytes: usize,
}

impl Search {
    /// There is no record here; nothing new while the search is on.
    fn begin(&mut self, position: u64, bytes: &[u8]) {
        let four = bytes.first_chunk().copied().unwrap_or_default();
        self.damage.get_or_insert(Damage {
            start: position,
            length: u32::from_le_bytes(four),
        });
    }

    /// Whether to read what would be a record of this length, if it is one.
    fn is_worth(&mut self, position: u64, length: usize) -> bool {
        let Some(damage) = &self.damage else {
            return true;
        };
        if length <= LONG_BYTES || damage.may_end_at(position) {
            return true;
        }
        self.bytes += length;
        self.bytes <= SEARCHED_BYTES_MAX
    }
}

impl Damage {
    /// Whether it was a record up to here, of whose length one bit may be wrong.
    fn may_end_at(&self, position: u64) -> bool {
        let ends_here =
            |length: u32| self.start + record::padded(length as usize) as u64 == position;
        ends_here(self.length) || (0..u32::BITS).any(|bit| ends_here(self.length ^ (1 << bit)))
    }
}

/// A part of the file in memory.
struct Window<'a> {
    file: &'a dyn File,
    until: u64,
    start: u64,
    bytes: Vec<u8>,
}

impl<'a> Window<'a> {
    fn new(file: &'a dyn File, until: u64) -> Self {
        Self {
            file,
            until,
            start: 0,
            bytes: Vec::new(),
        }
    }

    /// The bytes from `position` on: at least `count`, unless the file ends before.
    fn at(&mut self, position: u64, count: usize) -> io::Result<&[u8]> {
        let wanted_end = (position + count as u64).min(self.until);
        let held_end = self.start + self.bytes.len() as u64;
        if position < self.start || wanted_end > held_end {
            let length = (self.until - position).min(CHUNK_BYTES.max(count) as u64) as usize;
            self.bytes.resize(length, 0);
            self.file.read_exact_at(&mut self.bytes, position)?;
            self.start = position;
        }
        Ok(&self.bytes[(position - self.start) as usize..])
    }

    /// The first place from `position` on where something might begin that is not zero.
    fn skip_blank(&mut self, position: u64) -> io::Result<u64> {
        let mut position = position;
        while position < self.until {
            let bytes = self.at(position, HEAD_BYTES)?;
            match first_nonzero(bytes) {
                Some(0) => return Ok(position + ALIGNMENT as u64),
                Some(zeros) => {
                    let step = zeros - zeros % ALIGNMENT;
                    return Ok(position + step.max(ALIGNMENT) as u64);
                }
                None => position += bytes.len() as u64,
            }
        }
        Ok(self.until)
    }
}

/// Where the first byte is that is not zero. A segment is preallocated, so there may be megabytes of zeros: they are compared block by block.
fn first_nonzero(bytes: &[u8]) -> Option<usize> {
    const ZEROS: [u8; 512] = [0; 512];
    let is_blank = |block: &[u8]| block == &ZEROS[..block.len()];
    let mut blocks = bytes.chunks(ZEROS.len());
    let blank_count = blocks.by_ref().take_while(|block| is_blank(block)).count();
    let behind = bytes.get(blank_count * ZEROS.len()..)?;
    let found = behind.iter().position(|byte| *byte != 0)?;
    Some(blank_count * ZEROS.len() + found)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    const BINDING: Binding = Binding {
        identity: 7,
        base_sequence: 1,
    };

    /// Bytes in memory that count what is read of them.
    struct CountedFile {
        bytes: Vec<u8>,
        read: AtomicU64,
    }

    impl File for CountedFile {
        fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
            self.read.fetch_add(buffer.len() as u64, Ordering::Relaxed);
            buffer.copy_from_slice(&self.bytes[offset as usize..][..buffer.len()]);
            Ok(())
        }

        fn write_all_at(&self, _bytes: &[u8], _offset: u64) -> io::Result<()> {
            unreachable!("nothing is written")
        }

        fn sync(&self) -> io::Result<()> {
            Ok(())
        }

        fn len(&self) -> io::Result<u64> {
            Ok(self.bytes.len() as u64)
        }

        fn set_len(&self, _length: u64) -> io::Result<()> {
            unreachable!("nothing is written")
        }

        fn links(&self) -> io::Result<u64> {
            Ok(1)
        }
    }

    /// Bytes that look like lengths which fit into the file, wherever one begins to read.
    fn misleading(count: usize) -> Vec<u8> {
        [0x20, 0x20, 0x20, 0x00].repeat(count / 4)
    }

    /// A segment of messages with these payloads, and where each begins.
    fn segment(payloads: &[&[u8]]) -> (CountedFile, Vec<u64>) {
        let mut bytes = vec![0; RECORDS_START as usize];
        let mut places = Vec::new();
        for (number, payload) in payloads.iter().enumerate() {
            let position = bytes.len() as u64;
            places.push(position);
            let record = Record {
                kind: RecordKind::Message,
                ..Record::removed(BINDING.base_sequence + number as u64, payload)
            };
            record.encode(&mut bytes, BINDING, position, None);
        }
        let read = AtomicU64::new(0);
        (CountedFile { bytes, read }, places)
    }

    fn sequences(file: &CountedFile) -> Vec<u64> {
        let mut found = Vec::new();
        let until = file.bytes.len() as u64;
        scan(file, BINDING, until, |record, _, _| {
            found.push(record.sequence)
        })
        .unwrap();
        found
    }

    #[test]
    fn damage_in_a_payload_that_looks_like_lengths_does_not_take_long() {
        let (mut file, places) = segment(&[&misleading(3 << 20), &misleading(2 << 20), b"last"]);
        file.bytes[places[0] as usize + 100] ^= 1;

        let found = sequences(&file);

        assert_eq!(found, [2, 3]);
        let read = file.read.into_inner();
        assert!(read < 2 * SEARCHED_BYTES_MAX as u64, "{read} bytes");
    }

    #[test]
    fn a_wrong_bit_in_a_length_costs_one_message_however_long_the_next_ones_are() {
        for bit in 0..32 {
            let long = misleading(LONG_BYTES + 1_000);
            let (mut file, places) = segment(&[b"first", &long, &long, b"last"]);
            file.bytes[places[1] as usize + bit / 8] ^= 1 << (bit % 8);

            assert_eq!(sequences(&file), [1, 3, 4], "bit {bit}");
        }
    }

    proptest! {
        #[test]
        fn the_first_byte_that_is_not_zero_is_found_wherever_it_is(
            length in 0usize..2_000,
            others in prop::collection::vec((0usize..2_000, 1u8..), 0..3),
        ) {
            let mut bytes = vec![0u8; length];
            for (place, value) in others.into_iter().filter(|(place, _)| *place < length) {
                bytes[place] = value;
            }

            prop_assert_eq!(first_nonzero(&bytes), bytes.iter().position(|byte| *byte != 0));
        }
    }
}
