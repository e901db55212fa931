//! Everything committed, as it is known in memory: which messages there are, where, and what their subjects are.
//!
//! Readers look here and nowhere else, so they see a message only once it is durable. Invariants: segments are in the order of their
//! sequences; `messages` and `bytes` are the sums over segments; a subject's count is the number of its live messages.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::bits::Bits;
use super::postings::Postings;
use super::segments::{Placed, RecordLocation, SegmentIndex};
use super::subjects::{SubjectId, SubjectIndex};
use crate::storage::format::removal;
use crate::storage::format::removal::Removal;
use crate::storage::message::{Limits, EXPIRES_NEVER_NS};
use crate::storage::segment::segment_file::SegmentFile;

/// What a message counts for beyond its own bytes in the size of a stream: nats-server counts 30, and the head of a record has 28.
const COUNTED_BEYOND_RECORD: u64 = 2;

/// One segment: its file, and what is in it.
pub struct Segment {
    pub file: Arc<SegmentFile>,
    pub index: Arc<SegmentIndex>,
    /// Ranks whose message was removed.
    pub dead: Bits,
    /// Subjects that have, or had, a message here.
    pub subjects: Bits,
    pub live_count: u64,
    pub live_bytes: u64,
    /// No message is added any more.
    pub closed: bool,
    pub sealed: bool,
    pub postings: Postings,
}

impl Segment {
    pub fn new(file: Arc<SegmentFile>, index: SegmentIndex, sealed: bool) -> Self {
        Self {
            file,
            index: Arc::new(index),
            dead: Bits::default(),
            subjects: Bits::default(),
            live_count: 0,
            live_bytes: 0,
            closed: sealed,
            sealed,
            postings: Postings::default(),
        }
    }

    pub fn is_live(&self, rank: usize) -> bool {
        self.index.place(rank) != RecordLocation::NONE && !self.dead.get(rank)
    }

    /// The first live rank from this one on.
    pub fn next_live(&self, rank: usize) -> Option<usize> {
        let mut rank = rank;
        loop {
            rank = self.dead.next_zero(rank, self.index.rank_count())?;
            if self.index.place(rank) != RecordLocation::NONE {
                return Some(rank);
            }
            rank += 1;
        }
    }

    pub fn last_live(&self) -> Option<usize> {
        let mut end = self.index.rank_count();
        loop {
            let rank = self.dead.last_zero(end)?;
            if self.index.place(rank) != RecordLocation::NONE {
                return Some(rank);
            }
            end = rank;
        }
    }

    /// What the message of a rank counts for in the size of the stream.
    pub fn counted_bytes(&self, rank: usize) -> u64 {
        counted_bytes(&self.index, self.file.header.extra_bytes(), rank)
    }

    /// Bytes in the file that nobody needs any more.
    pub fn dead_part(&self) -> f64 {
        if self.file.header.rewritten {
            // How many bytes its messages take here says nothing: they may be compressed, and removed ones still take some.
            let ranks = self.index.rank_count().max(1);
            return 1.0 - self.live_count.max(1) as f64 / ranks as f64;
        }
        let stored = self.index.end as f64;
        1.0 - (self.live_bytes as f64 / stored).min(1.0)
    }
}

/// What the message of a rank adds to the size of the stream; `extra_bytes` is what each record of the segment has
/// beyond a plain one.
pub fn counted_bytes(index: &SegmentIndex, extra_bytes: usize, rank: usize) -> u64 {
    if let Some(sizes) = &index.sizes {
        return u64::from(sizes[rank]);
    }
    let Some(extent) = index.extent(rank) else {
        return 0;
    };
    let has_expiry = !index.expiries.is_empty() && index.expires_ns(index.sequence(rank)).is_some();
    let extra = extra_bytes + if has_expiry { 8 } else { 0 };
    extent.length as u64 + COUNTED_BEYOND_RECORD - extra as u64
}

#[derive(Default)]
pub struct MessageIndex {
    pub segments: Vec<Segment>,
    pub subjects: SubjectIndex,
    pub messages: u64,
    pub bytes: u64,
    pub first_sequence: u64,
    pub last_sequence: u64,
    pub last_time_ns: i64,
    /// Messages with a time of their own, by that time.
    pub expiries: BTreeSet<(i64, u64)>,
    pub lost: Vec<Removal>,
    /// Messages that were ever removed; a caller that keeps a count compares it to see whether it must recount.
    pub removed: u64,
}

impl MessageIndex {
    /// Whether its sums are those of the segments, and those are in order; for assertions.
    pub fn is_whole(&self) -> bool {
        let sum = |of: fn(&Segment) -> u64| self.segments.iter().map(of).sum::<u64>();
        let is_ordered = self
            .segments
            .windows(2)
            .all(|pair| pair[0].index.last_sequence < pair[1].index.base_sequence);
        is_ordered
            && self.messages == sum(|segment| segment.live_count)
            && self.bytes == sum(|segment| segment.live_bytes)
            && self.first_sequence <= self.last_sequence + 1
    }

    /// The segment that answers for a sequence.
    pub fn segment_of(&self, sequence: u64) -> Option<usize> {
        let after = self
            .segments
            .partition_point(|segment| segment.index.base_sequence <= sequence);
        let index = after.checked_sub(1)?;
        (sequence <= self.segments[index].index.last_sequence).then_some(index)
    }

    /// Segment and rank of a live message.
    pub fn locate(&self, sequence: u64) -> Option<(usize, usize)> {
        let at = self.segment_of(sequence)?;
        let segment = &self.segments[at];
        let rank = segment.index.rank(sequence)?;
        segment.is_live(rank).then_some((at, rank))
    }

    /// Enters a message into the last segment.
    pub fn add(&mut self, placed: &Placed, subject: &[u8]) -> SubjectId {
        let id = self.subjects.intern(subject);
        self.subjects.add(id, 1, placed.sequence, placed.sequence);
        let segment = self.segments.last_mut().expect("there is always a segment");
        let index = Arc::get_mut(&mut segment.index).expect("nobody shares an open segment");
        index.add(placed, id);
        segment.subjects.set(id as usize);
        let counted = placed.counted_bytes;
        segment.live_count += 1;
        segment.live_bytes += counted;
        self.bytes += counted;
        if self.messages == 0 {
            self.first_sequence = placed.sequence;
        }
        self.messages += 1;
        self.last_sequence = placed.sequence;
        self.last_time_ns = placed.time_ns;
        if let Some(expires_ns) = placed.expires_ns {
            self.expiries.insert((expires_ns, placed.sequence));
        }
        id
    }

    /// Whether not even its age removes a message.
    pub fn stays_for_ever(&self, sequence: u64) -> bool {
        !self.expiries.is_empty() && self.expiries.contains(&(EXPIRES_NEVER_NS, sequence))
    }

    pub fn is_last_of_subject(&self, sequence: u64) -> bool {
        self.locate(sequence).is_some_and(|(at, rank)| {
            let id = self.segments[at].index.subject_ids[rank];
            self.subjects.summary(id).last == sequence
        })
    }

    /// Takes a message out; false if there is none.
    pub fn remove(&mut self, sequence: u64) -> bool {
        let Some((at, rank)) = self.locate(sequence) else {
            return false;
        };
        let segment = &mut self.segments[at];
        let counted = segment.counted_bytes(rank);
        let id = segment.index.subject_ids[rank];
        segment.dead.set(rank);
        segment.live_count -= 1;
        segment.live_bytes -= counted;
        if !segment.index.expiries.is_empty() {
            if let Some(expires_ns) = segment.index.expires_ns(sequence) {
                self.expiries.remove(&(expires_ns, sequence));
            }
        }
        self.messages -= 1;
        self.removed += 1;
        self.bytes -= counted;
        if self.subjects.remove(id, sequence) {
            let last = self.previous_of(id, sequence);
            self.subjects
                .set_last(id, last.expect("its count says there is one"));
        }
        if sequence == self.first_sequence || self.messages == 0 {
            self.first_sequence = self
                .next_live(sequence + 1)
                .unwrap_or(self.last_sequence + 1);
        }
        true
    }

    /// The subject of a message.
    pub fn subject_name(&self, sequence: u64) -> Option<&[u8]> {
        let (at, rank) = self.locate(sequence)?;
        let id = self.segments[at].index.subject_ids[rank];
        Some(self.subjects.name(id))
    }

    /// Takes out everything in a range; returns how many.
    pub fn remove_range(&mut self, range: Removal) -> u64 {
        let mut count = 0;
        let mut next = self.next_live(range.first);
        while let Some(sequence) = next.filter(|sequence| *sequence <= range.last) {
            self.remove(sequence);
            count += 1;
            next = self.next_live(sequence + 1);
        }
        count
    }

    /// Removes whatever exceeds the limits, of the whole stream and of each subject.
    pub fn enforce(&mut self, limits: &Limits, removed: &mut Vec<Removal>) {
        if let Some(most) = limits.per_subject_max {
            let mut over = Vec::new();
            self.subjects.for_each_match(b">", |id| over.push(id));
            for id in over {
                self.trim_subject(id, most, removed);
            }
        }
        self.trim(limits, removed);
    }

    /// Removes the oldest messages of a subject until at most `most` are left.
    pub fn trim_subject(&mut self, id: SubjectId, most: u64, removed: &mut Vec<Removal>) {
        while self.trim_subject_once(id, most, removed) {}
    }

    /// Removes the oldest message of a subject that has more than `most`; false if it has not.
    pub fn trim_subject_once(
        &mut self,
        id: SubjectId,
        most: u64,
        removed: &mut Vec<Removal>,
    ) -> bool {
        if self.subjects.summary(id).count <= most {
            return false;
        }
        let Some(first) = self.first_of(id) else {
            return false;
        };
        self.remove(first);
        removal::push(removed, Removal::of(first));
        true
    }

    /// Removes the oldest until the limits of the whole stream hold.
    pub fn trim(&mut self, limits: &Limits, removed: &mut Vec<Removal>) {
        while self.trim_once(limits, removed) {}
    }

    /// Removes the oldest message if one of the limits of the whole stream is exceeded; false if none is.
    pub fn trim_once(&mut self, limits: &Limits, removed: &mut Vec<Removal>) -> bool {
        let is_over = limits.messages_max.is_some_and(|most| self.messages > most)
            || limits.bytes_max.is_some_and(|most| self.bytes > most);
        if self.messages == 0 || !is_over {
            return false;
        }
        let first = self.first_sequence;
        self.remove(first);
        removal::push(removed, Removal::of(first));
        true
    }

    /// Notes that a message cannot be read; true if that is news.
    pub fn lose(&mut self, sequence: u64) -> bool {
        if !self.remove(sequence) {
            return false;
        }
        removal::push(
            &mut self.lost,
            Removal {
                first: sequence,
                last: sequence,
                erase: false,
            },
        );
        true
    }

    /// The first message from `sequence` on.
    pub fn next_live(&self, sequence: u64) -> Option<u64> {
        let after = self
            .segments
            .partition_point(|segment| segment.index.last_sequence < sequence);
        for segment in &self.segments[after..] {
            if segment.live_count == 0 {
                continue;
            }
            let from = segment.index.rank_from(sequence);
            if let Some(rank) = segment.next_live(from) {
                return Some(segment.index.sequence(rank));
            }
        }
        None
    }

    /// The message that `count` others come before.
    pub fn nth_live(&self, count: u64) -> Option<u64> {
        let mut left = count;
        for segment in &self.segments {
            if segment.live_count <= left {
                left -= segment.live_count;
                continue;
            }
            let mut rank = segment.next_live(0)?;
            for _ in 0..left {
                rank = segment.next_live(rank + 1)?;
            }
            return Some(segment.index.sequence(rank));
        }
        None
    }

    pub fn last_live(&self) -> Option<u64> {
        let mut segments = self.segments.iter().rev();
        let segment = segments.find(|segment| segment.live_count > 0)?;
        Some(segment.index.sequence(segment.last_live()?))
    }
}
