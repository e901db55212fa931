//! Reads on from a sequence, for a caller that comes back for more: the messages that match, in order, and how many
//! there are.
//!
//! A walk reads a piece of a segment at once and hands its messages out one by one, also over several calls. Finding a
//! piece and reading it are two steps, so that a caller can release a lock before the disk is read. Invariant: what was
//! removed since the piece was read is not handed out.

use std::sync::Arc;

use super::committed::CommittedMessages;
use super::reading::read_error;
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
    /// The sequence to ask for next, to go on.
    expected: u64,
    /// The piece is known, and not read yet.
    is_unread: bool,
}

/// What a walk has come to.
pub enum WalkStep<T> {
    Message(T),
    /// Nothing up to this sequence matches.
    End(u64),
    /// The next piece must be read first (`load`).
    Unread,
}

impl Walk {
    /// Hands the next matching message from `from` on to `visit`. About `ahead` messages are read ahead.
    pub fn step<T>(
        &mut self,
        messages: &CommittedMessages,
        patterns: &[Vec<u8>],
        from: u64,
        ahead: usize,
        visit: impl FnOnce(&Record<'_>) -> T,
    ) -> StoreResult<WalkStep<T>> {
        let mut from = from;
        let mut tries = 0;
        loop {
            if !self.holds(from) {
                if let Some(end) = self.find_piece(messages, patterns, from, ahead) {
                    return Ok(WalkStep::End(end));
                }
            }
            if self.is_unread {
                if messages.has_disk() {
                    return Ok(WalkStep::Unread);
                }
                self.load()?;
            }
            let (sequence, extent) = self.messages[self.next];
            self.next += 1;
            self.expected = sequence + 1;
            from = self.expected;
            if !messages.contains(sequence) {
                continue;
            }
            let Some(file) = &self.file else {
                continue;
            };
            let at = (extent.position - self.start) as usize;
            let bytes = &mut self.buffer[at..at + extent.length];
            match file.decode(sequence, extent.position, bytes, &mut self.body) {
                FoundRecord::Message(record) => return Ok(WalkStep::Message(visit(&record))),
                FoundRecord::Erased => {}
                // Read once more by itself, which reports it.
                FoundRecord::Damaged => match messages.read(sequence) {
                    Ok(Some(_)) if tries < TRIES_MAX => {
                        // The disk could not read it a moment ago, or it lies elsewhere now.
                        tries += 1;
                        self.messages.clear();
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
        &mut self,
        messages: &CommittedMessages,
        patterns: &[Vec<u8>],
        from: u64,
        ahead: usize,
    ) -> Option<u64> {
        self.messages.clear();
        self.next = 0;
        self.is_unread = false;
        let index = messages.index();
        let Some(first) = next_wanted(&index, patterns, from) else {
            return Some(index.last_sequence);
        };
        let Some((at, rank)) = index.locate(first) else {
            return Some(index.last_sequence);
        };
        let segment = &index.segments[at];
        gather(&index, segment, rank, patterns, ahead, &mut self.messages);
        self.file = Some(Arc::clone(&segment.file));
        self.expected = from;
        self.is_unread = true;
        None
    }

    /// Reads the piece that the walk has come to, if it is not read yet.
    pub fn load(&mut self) -> StoreResult<()> {
        let ends = (self.messages.first(), self.messages.last());
        let (Some((_, first)), Some((_, last)), true) = (ends.0, ends.1, self.is_unread) else {
            return Ok(());
        };
        self.start = first.position;
        let length = (last.position - first.position) as usize + last.length;
        self.buffer.resize(length, 0);
        if let Some(file) = &self.file {
            // What is gone turns out to be damaged.
            file.read_neighbours(&self.messages, first.position, &mut self.buffer)
                .map_err(read_error)?;
        }
        self.is_unread = false;
        Ok(())
    }

    /// Drops what was read.
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

pub(super) fn is_wanted(
    index: &MessageIndex,
    segment: &Segment,
    rank: usize,
    patterns: &[Vec<u8>],
) -> bool {
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
