//! Reading on from a sequence, for whoever comes again for more: the messages that match, in order, and how many there are.
//!
//! A walk reads a piece of a segment at once and hands its messages out one by one, also over several calls. Finding a piece and reading it are two steps, so that whoever
//! holds a lock can let go of it before the disk is read. Invariant: what was removed since the piece was read is not handed out.

use std::sync::Arc;

use super::reading::read_error;
use super::Store;
use crate::common::subject;
use crate::storage::format::record::Record;
use crate::storage::index::messages::{MessageIndex, Segment};
use crate::storage::index::segments::Extent;
use crate::storage::message::{StoreError, StoreResult};
use crate::storage::segment::segment_file::{FoundRecord, SegmentFile};

/// Read at once at most.
const PIECE_BYTES_MAX: u64 = 256 * 1024;

/// Bytes between two messages that are rather read than left out.
const GAP_BYTES_MAX: u64 = 16 * 1024;

/// Messages whose subjects are looked at one by one before the index is asked where the next match is.
const LOOKED_AT_MAX: usize = 1024;

/// How often a message is read again with others that can be read by itself.
const TRIES_MAX: usize = 3;

/// Room that a walk keeps between pieces.
const KEPT_BYTES_MAX: usize = 64 * 1024;

/// What tells whether something has changed since one looked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Marks {
    pub first_sequence: u64,
    pub last_sequence: u64,
    /// Messages that were ever removed.
    pub removed: u64,
}

/// A piece that was read, and how far it has been handed out.
#[derive(Default)]
pub struct Walk {
    file: Option<Arc<SegmentFile>>,
    messages: Vec<(u64, Extent)>,
    next: usize,
    buffer: Vec<u8>,
    /// Where the buffer begins in the file.
    start: u64,
    body: Vec<u8>,
    /// The sequence that is to be asked for next, if one goes on.
    expected: u64,
    /// The piece is known, and not read yet.
    is_unread: bool,
}

impl Walk {
    /// Lets go of what was read.
    pub fn forget(&mut self) {
        self.messages.clear();
        self.next = 0;
        self.is_unread = false;
        self.file = None;
        self.buffer.truncate(KEPT_BYTES_MAX);
        self.buffer.shrink_to(KEPT_BYTES_MAX);
        self.body.clear();
        self.body.shrink_to(KEPT_BYTES_MAX);
    }

    fn holds(&self, from: u64) -> bool {
        self.next < self.messages.len() && self.expected == from
    }

    /// The message it would hand out next.
    pub fn next_sequence(&self) -> Option<u64> {
        self.messages.get(self.next).map(|(sequence, _)| *sequence)
    }
}

/// What a walk has come to.
pub enum WalkStep<T> {
    Message(T),
    /// Nothing up to this sequence matches.
    End(u64),
    /// The next piece is to be read first (`load`).
    Unread,
}

impl Store {
    pub fn marks(&self) -> Marks {
        marks(&self.index.read())
    }

    /// The subject of a message; `None` if there is none.
    pub fn subject_of(&self, sequence: u64) -> Option<Vec<u8>> {
        let index = self.index.read();
        let (at, rank) = index.locate(sequence)?;
        let id = index.segments[at].index.subject_ids[rank];
        Some(index.subjects.name(id).to_vec())
    }

    /// Whether there is a message of this sequence.
    pub fn contains(&self, sequence: u64) -> bool {
        self.index.read().locate(sequence).is_some()
    }

    /// Whether a message would be read from the segment that is being written, which the system has in memory.
    pub fn is_recent(&self, sequence: u64) -> bool {
        let index = self.index.read();
        let newest = index.segments.last();
        newest.is_none_or(|segment| segment.index.base_sequence <= sequence)
    }

    /// How many messages from `sequence` on match one of the patterns, or are there if none is given, and as of when.
    pub fn count_matching(&self, patterns: &[Vec<u8>], sequence: u64) -> (u64, Marks) {
        let index = self.index.read();
        let count = match sequence > index.last_sequence {
            true => 0,
            false => index.count_matches(&index.matching_any(patterns), sequence),
        };
        (count, marks(&index))
    }

    /// The same, when it is known that few have come since: their subjects are looked at one by one.
    pub fn count_new(&self, patterns: &[Vec<u8>], sequence: u64) -> (u64, Marks) {
        let index = self.index.read();
        let mut count = 0;
        let after = index
            .segments
            .partition_point(|segment| segment.index.last_sequence < sequence);
        for segment in &index.segments[after..] {
            let mut next = segment.next_live(segment.index.rank_from(sequence));
            while let Some(rank) = next {
                count += u64::from(is_wanted(&index, segment, rank, patterns));
                next = segment.next_live(rank + 1);
            }
        }
        (count, marks(&index))
    }

    /// Hands the next message from `from` on that matches to `visit`. About so many are read ahead.
    pub fn step<T>(
        &self,
        walk: &mut Walk,
        patterns: &[Vec<u8>],
        from: u64,
        ahead: usize,
        visit: impl FnOnce(&Record<'_>) -> T,
    ) -> StoreResult<WalkStep<T>> {
        let mut from = from;
        let mut tries = 0;
        loop {
            if !walk.holds(from) {
                if let Some(end) = self.find_piece(walk, patterns, from, ahead) {
                    return Ok(WalkStep::End(end));
                }
            }
            if walk.is_unread {
                if self.has_disk() {
                    return Ok(WalkStep::Unread);
                }
                self.load(walk)?;
            }
            let (sequence, extent) = walk.messages[walk.next];
            walk.next += 1;
            walk.expected = sequence + 1;
            from = walk.expected;
            if !self.contains(sequence) {
                continue;
            }
            let Some(file) = &walk.file else {
                continue;
            };
            let at = (extent.position - walk.start) as usize;
            let bytes = &mut walk.buffer[at..at + extent.length];
            match file.decode(sequence, extent.position, bytes, &mut walk.body) {
                FoundRecord::Message(record) => return Ok(WalkStep::Message(visit(&record))),
                FoundRecord::Erased => {}
                // Read once more by itself, which reports it.
                FoundRecord::Damaged => match self.read(sequence) {
                    Ok(Some(_)) if tries < TRIES_MAX => {
                        // The disk could not read it a moment ago, or it lies elsewhere now.
                        tries += 1;
                        walk.messages.clear();
                        from = sequence;
                    }
                    Ok(_) | Err(StoreError::Damaged { .. }) => {}
                    Err(error) => return Err(error),
                },
            }
        }
    }

    /// Finds the next piece; says up to where nothing matches if there is none.
    fn find_piece(
        &self,
        walk: &mut Walk,
        patterns: &[Vec<u8>],
        from: u64,
        ahead: usize,
    ) -> Option<u64> {
        walk.messages.clear();
        walk.next = 0;
        walk.is_unread = false;
        let index = self.index.read();
        let Some(first) = next_wanted(&index, patterns, from) else {
            return Some(index.last_sequence);
        };
        let Some((at, rank)) = index.locate(first) else {
            return Some(index.last_sequence);
        };
        let segment = &index.segments[at];
        gather(&index, segment, rank, patterns, ahead, &mut walk.messages);
        walk.file = Some(Arc::clone(&segment.file));
        walk.expected = from;
        walk.is_unread = true;
        None
    }

    /// Reads the piece that a walk has come to, if it is not read yet.
    pub fn load(&self, walk: &mut Walk) -> StoreResult<()> {
        let ends = (walk.messages.first(), walk.messages.last());
        let (Some((_, first)), Some((_, last)), true) = (ends.0, ends.1, walk.is_unread) else {
            return Ok(());
        };
        walk.start = first.position;
        let length = (last.position - first.position) as usize + last.length;
        walk.buffer.resize(length, 0);
        if let Some(file) = &walk.file {
            // What is gone turns out to be damaged.
            file.read_neighbours(&walk.messages, first.position, &mut walk.buffer)
                .map_err(read_error)?;
        }
        walk.is_unread = false;
        Ok(())
    }
}

fn marks(index: &MessageIndex) -> Marks {
    Marks {
        first_sequence: index.first_sequence,
        last_sequence: index.last_sequence,
        removed: index.removed,
    }
}

fn is_wanted(index: &MessageIndex, segment: &Segment, rank: usize, patterns: &[Vec<u8>]) -> bool {
    if patterns.is_empty() {
        return true;
    }
    let name = index.subjects.name(segment.index.subject_ids[rank]);
    patterns
        .iter()
        .any(|pattern| subject::matches(pattern, name))
}

fn next_wanted(index: &MessageIndex, patterns: &[Vec<u8>], from: u64) -> Option<u64> {
    let mut next = index.next_live(from);
    if patterns.is_empty() {
        return next;
    }
    for _ in 0..LOOKED_AT_MAX {
        let sequence = next?;
        let (at, rank) = index.locate(sequence)?;
        if is_wanted(index, &index.segments[at], rank, patterns) {
            return Some(sequence);
        }
        next = index.next_live(sequence + 1);
    }
    index.next_match(&index.matching_any(patterns), next?)
}

/// The messages that are read with the one at `rank`.
fn gather(
    index: &MessageIndex,
    segment: &Segment,
    rank: usize,
    patterns: &[Vec<u8>],
    ahead: usize,
    messages: &mut Vec<(u64, Extent)>,
) {
    let mut next = Some(rank);
    let mut start = 0;
    let mut end = 0;
    let mut looked_at = 0;
    while let Some(rank) = next {
        next = segment.next_live(rank + 1);
        looked_at += 1;
        if !messages.is_empty() && !is_wanted(index, segment, rank, patterns) {
            if looked_at >= LOOKED_AT_MAX {
                return;
            }
            continue;
        }
        let Some(extent) = segment.index.extent(rank) else {
            continue;
        };
        if messages.is_empty() {
            start = extent.position;
            end = extent.position;
        }
        let is_far = extent.position - end > GAP_BYTES_MAX;
        end = extent.position + extent.length as u64;
        if !messages.is_empty() && (is_far || end - start > PIECE_BYTES_MAX) {
            return;
        }
        messages.push((segment.index.sequence(rank), extent));
        if messages.len() >= ahead.max(1) {
            return;
        }
    }
}
