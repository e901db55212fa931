//! Where the messages of one segment are, and what their subjects are.
//!
//! Six bytes a message or eight: its place in the file and the number of its subject. Messages are found by rank: their distance from the
//! first sequence, or, where most are gone, their position in a sorted list of sequences. Invariant: the three lists have one item per rank.

use super::subjects::SubjectId;
use crate::storage::format::record::ALIGNMENT;
use crate::storage::format::removal::Removal;
use crate::storage::message::Counting;

/// Sequences without a message that get a rank, one after the other. From a longer gap on, sequences are listed.
const UNUSED_RANKS_MAX: usize = 64;

/// Where a record begins, and how many bytes of padding follow it.
///
/// Records begin at multiples of four, so the padding fits into the two bits that are always zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordLocation(pub u32);

impl RecordLocation {
    /// No message of that sequence.
    pub const NONE: Self = Self(0);

    pub fn new(position: u64, length: usize) -> Self {
        let padding = length.next_multiple_of(ALIGNMENT) - length;
        Self(position as u32 | padding as u32)
    }

    pub fn position(self) -> u64 {
        u64::from(self.0 & !3)
    }

    pub fn padding(self) -> usize {
        (self.0 & 3) as usize
    }
}

/// Where a record lies, without its padding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    pub position: u64,
    pub length: usize,
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct SegmentIndex {
    pub base_sequence: u64,
    /// The highest sequence this segment answers for; below the base if it has none yet.
    pub last_sequence: u64,
    /// Distances from the base, where not every sequence has a rank.
    pub sequences: Option<Vec<u32>>,
    pub places: Vec<u32>,
    pub subject_ids: Vec<SubjectId>,
    /// What messages count for in the size of the stream, if their records do not show it.
    pub sizes: Option<Vec<u32>>,
    /// Where something else than a message begins: a removal, or damage.
    pub others: Vec<u32>,
    pub removals: Vec<Removal>,
    /// Distance from the base, and when it expires.
    pub expiries: Vec<(u32, i64)>,
    /// Messages that were damaged beyond reading.
    pub lost: Vec<Removal>,
    /// After the last record.
    pub end: u64,
    pub first_time_ns: i64,
    pub last_time_ns: i64,
}

/// A message to be entered.
#[derive(Debug, Clone, Copy)]
pub struct Placed {
    pub sequence: u64,
    pub position: u64,
    pub length: usize,
    pub time_ns: i64,
    pub expires_ns: Option<i64>,
    /// What it counts for in the size of the stream.
    pub counted_bytes: u64,
}

impl SegmentIndex {
    /// One without messages, after others of which the last was stored at this time.
    pub fn new(base_sequence: u64, end: u64, time_ns: i64) -> Self {
        Self {
            base_sequence,
            last_sequence: base_sequence - 1,
            end,
            first_time_ns: time_ns,
            last_time_ns: time_ns,
            ..Self::default()
        }
    }

    pub fn rank_count(&self) -> usize {
        self.places.len()
    }

    pub fn rank(&self, sequence: u64) -> Option<usize> {
        let delta = u32::try_from(sequence.checked_sub(self.base_sequence)?).ok()?;
        match &self.sequences {
            None => ((delta as usize) < self.places.len()).then_some(delta as usize),
            Some(sequences) => sequences.binary_search(&delta).ok(),
        }
    }

    /// The first rank whose sequence is not below this one.
    pub fn rank_from(&self, sequence: u64) -> usize {
        let delta = sequence.saturating_sub(self.base_sequence);
        match &self.sequences {
            None => delta.min(self.places.len() as u64) as usize,
            Some(sequences) => sequences.partition_point(|one| u64::from(*one) < delta),
        }
    }

    pub fn sequence(&self, rank: usize) -> u64 {
        self.base_sequence
            + match &self.sequences {
                None => rank as u64,
                Some(sequences) => u64::from(sequences[rank]),
            }
    }

    pub fn place(&self, rank: usize) -> RecordLocation {
        RecordLocation(self.places[rank])
    }

    /// If a message's length does not show what it counts for, that is kept for each.
    pub fn count_by(&mut self, counting: Counting) {
        if counting == Counting::Memory {
            self.sizes = Some(Vec::new());
        }
    }

    /// Enters a message after all others. Sequences between the last one and this one are lost or were never given.
    pub fn add(&mut self, placed: &Placed, subject_id: SubjectId) {
        let delta = (placed.sequence - self.base_sequence) as usize;
        if self.places.is_empty() {
            self.first_time_ns = placed.time_ns;
        }
        if self.sequences.is_none() && delta > self.places.len() + UNUSED_RANKS_MAX {
            // Ranks stay what they are: others know messages by them.
            self.sequences = Some((0..self.places.len() as u32).collect());
        }
        if self.sequences.is_some() {
            self.last_time_ns = placed.time_ns;
            return self.add_sparse(placed, subject_id);
        }
        debug_assert!(delta >= self.places.len());
        self.places.resize(delta, RecordLocation::NONE.0);
        self.subject_ids.resize(delta, 0);
        self.places
            .push(RecordLocation::new(placed.position, placed.length).0);
        self.subject_ids.push(subject_id);
        if let Some(sizes) = &mut self.sizes {
            sizes.resize(delta, 0);
            sizes.push(placed.counted_bytes as u32);
        }
        if let Some(expires_ns) = placed.expires_ns {
            self.expiries.push((delta as u32, expires_ns));
        }
        self.last_sequence = placed.sequence;
        self.last_time_ns = placed.time_ns;
        self.end = placed.position + placed.length.next_multiple_of(ALIGNMENT) as u64;
    }

    /// Enters a message after all others into an index that lists its sequences.
    pub fn add_sparse(&mut self, placed: &Placed, subject_id: SubjectId) {
        let delta = (placed.sequence - self.base_sequence) as u32;
        let sequences = self.sequences.as_mut().expect("it lists its sequences");
        sequences.push(delta);
        self.places
            .push(RecordLocation::new(placed.position, placed.length).0);
        self.subject_ids.push(subject_id);
        if let Some(sizes) = &mut self.sizes {
            sizes.push(placed.counted_bytes as u32);
        }
        if let Some(expires_ns) = placed.expires_ns {
            self.expiries.push((delta, expires_ns));
        }
        self.last_sequence = placed.sequence;
        self.end = placed.position + placed.length.next_multiple_of(ALIGNMENT) as u64;
    }

    /// Something else than a message begins here.
    pub fn add_other(&mut self, position: u64, end: u64) {
        self.others.push(position as u32);
        self.end = end;
    }

    /// Where the message of a rank lies.
    pub fn extent(&self, rank: usize) -> Option<Extent> {
        let place = self.place(rank);
        if place == RecordLocation::NONE {
            return None;
        }
        let position = place.position();
        let next_message = self.places[rank + 1..]
            .iter()
            .find(|place| **place != RecordLocation::NONE.0)
            .map_or(self.end, |place| RecordLocation(*place).position());
        let other = self
            .others
            .partition_point(|other| u64::from(*other) <= position);
        let next_other = self
            .others
            .get(other)
            .map_or(self.end, |other| u64::from(*other));
        let end = next_message.min(next_other);
        Some(Extent {
            position,
            length: (end - position) as usize - place.padding(),
        })
    }

    pub fn expires_ns(&self, sequence: u64) -> Option<i64> {
        let delta = (sequence - self.base_sequence) as u32;
        let found = self
            .expiries
            .binary_search_by_key(&delta, |(delta, _)| *delta)
            .ok()?;
        Some(self.expiries[found].1)
    }

    /// Bytes of memory this takes.
    pub fn memory_bytes(&self) -> usize {
        let sequences = self.sequences.as_ref().map_or(0, Vec::len);
        let sizes = self.sizes.as_ref().map_or(0, Vec::len);
        4 * (self.places.len() + self.subject_ids.len() + self.others.len() + sequences + sizes)
            + 16 * self.expiries.len()
            + 24 * (self.removals.len() + self.lost.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(sequence: u64, position: u64, length: usize) -> Placed {
        Placed {
            sequence,
            position,
            length,
            time_ns: 7,
            expires_ns: None,
            counted_bytes: 0,
        }
    }

    #[test]
    fn a_message_ends_where_the_next_thing_begins() {
        let mut index = SegmentIndex::new(10, 4096, 0);
        index.add(&placed(10, 4096, 41), 0);
        index.add_other(4140, 4200);
        index.add(&placed(13, 4200, 50), 1);

        let extent = |position, length| Some(Extent { position, length });
        assert_eq!(index.extent(0), extent(4096, 41));
        assert_eq!(index.extent(1), None);
        assert_eq!(index.extent(3), extent(4200, 50));
        assert_eq!(index.rank(13), Some(3));
        assert_eq!(index.rank(9), None);
        assert_eq!(index.rank(14), None);
        assert_eq!(index.end, 4252);
    }

    #[test]
    fn a_sparse_index_knows_only_its_own_sequences() {
        let index = SegmentIndex {
            base_sequence: 100,
            last_sequence: 1_000_000,
            sequences: Some(vec![5, 70_000]),
            places: vec![
                RecordLocation::new(4096, 40).0,
                RecordLocation::new(4136, 40).0,
            ],
            subject_ids: vec![0, 0],
            end: 4176,
            ..SegmentIndex::default()
        };

        assert_eq!(index.rank(105), Some(0));
        assert_eq!(index.rank(106), None);
        assert_eq!(index.rank_from(106), 1);
        assert_eq!(index.sequence(1), 70_100);
        assert_eq!(index.extent(1).unwrap().position, 4136);
    }
}
