//! What a batch, or a rewritten segment, changes in the index of the messages that are committed.
//!
//! Invariant: messages and removals of a batch take effect in the order in which they were staged, and the limits of the stream after each message.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::RwLockWriteGuard;

use super::rewriting::Rewritten;
use super::slices;
use super::slices::Pace;
use super::staging::StagedBatch;
use crate::storage::format::removal::Removal;
use crate::storage::format::segment_header::RECORDS_START;
use crate::storage::index::messages::{MessageIndex, Segment};
use crate::storage::index::segments::SegmentIndex;
use crate::storage::message::{Counting, Limits};
use crate::storage::segment::segment_file::SegmentFile;

/// Lets a durable batch take effect. Returns what the limits of the stream removed in return.
pub fn apply(
    index: &mut RwLockWriteGuard<'_, MessageIndex>,
    batch: &StagedBatch,
    opened: impl Iterator<Item = Arc<SegmentFile>>,
    counting: Counting,
    limits: &Limits,
) -> Vec<Removal> {
    let mut lazy = Vec::new();
    let mut pace = Pace::default();
    let mut opened = opened;
    let mut removals = batch.removals.iter().peekable();
    let mut applied = 0;
    for part in &batch.parts {
        if part.opens {
            let file = opened.next().expect("every segment begun has its file");
            begin_segment(index, file, counting);
        }
        let mut name_start = 0;
        let mut others = part.others.iter().peekable();
        for message in &part.messages {
            let position = message.placed.position;
            // A message ends where the next thing begins, so that must be known before anything is removed.
            while let Some(other) = others.next_if(|other| other.0 < position) {
                open_index(index).add_other(other.0, other.1);
            }
            while let Some((_, removal)) = removals.next_if(|(before, _)| *before <= applied) {
                slices::remove_range(index, *removal, &mut pace);
            }
            applied += 1;
            let name = &part.names[name_start..message.name_end];
            name_start = message.name_end;
            let id = index.add(&message.placed, name);
            if let Some(most) = limits.per_subject_max {
                index.trim_subject(id, most, &mut lazy);
            }
        }
        let open = open_index(index);
        for (position, end) in others {
            open.add_other(*position, *end);
        }
        open.removals.extend_from_slice(&part.removals);
    }
    for (_, removal) in removals {
        slices::remove_range(index, *removal, &mut pace);
    }
    if batch.last_sequence > index.last_sequence {
        // Sequences were passed over.
        index.last_sequence = batch.last_sequence;
        if index.messages == 0 {
            index.first_sequence = batch.last_sequence + 1;
        }
    }
    index.trim(limits, &mut lazy);
    lazy
}

/// Replaces segments by the one that was rewritten from them. Returns what is not in it and should be: it could not be read, and is lost.
pub fn exchange(
    index: &mut MessageIndex,
    run: Range<usize>,
    rewritten: Rewritten,
    path: PathBuf,
) -> Vec<u64> {
    let mut file = rewritten.file;
    file.path = path;
    let file = Arc::new(file);
    let contents = SegmentIndex {
        // Those in a footer are numbers of its own.
        subject_ids: rewritten.ids,
        ..rewritten.footer.index
    };
    let mut segment = Segment::new(file, contents, true);
    for rank in 0..segment.index.rank_count() {
        if index.locate(segment.index.sequence(rank)).is_none() {
            segment.dead.set(rank);
            continue;
        }
        segment.live_count += 1;
        segment.live_bytes += segment.counted_bytes(rank);
        let id = segment.index.subject_ids[rank];
        segment.subjects.set(id as usize);
    }
    let old_count: u64 = index.segments[run.clone()]
        .iter()
        .map(|old| old.live_count)
        .sum();
    let missing = match old_count == segment.live_count {
        true => Vec::new(),
        false => missing_from(&segment, &index.segments[run.clone()]),
    };
    for sequence in &missing {
        index.lose(*sequence);
    }
    index.segments.splice(run, [segment]);
    missing
}

/// Live messages of old segments that the new one does not have.
fn missing_from(new: &Segment, old: &[Segment]) -> Vec<u64> {
    let live = |one| {
        let one: &Segment = one;
        let ranks = std::iter::successors(one.next_live(0), |rank| one.next_live(rank + 1));
        ranks.map(|rank| one.index.sequence(rank))
    };
    let is_missing = |sequence: &u64| new.index.rank(*sequence).is_none();
    old.iter().flat_map(live).filter(is_missing).collect()
}

/// The index of the segment that is written to.
fn open_index(index: &mut MessageIndex) -> &mut SegmentIndex {
    let segment = index.segments.last_mut().expect("there is always one");
    Arc::get_mut(&mut segment.index).expect("nobody shares an open segment")
}

fn begin_segment(index: &mut MessageIndex, file: Arc<SegmentFile>, counting: Counting) {
    let base_sequence = file.header.base_sequence;
    if let Some(previous) = index.segments.last_mut() {
        previous.closed = true;
        let closed = Arc::get_mut(&mut previous.index).expect("nobody shares an open segment");
        closed.last_sequence = base_sequence - 1;
    }
    let mut open = SegmentIndex::new(base_sequence, RECORDS_START, index.last_time_ns);
    open.count_by(counting);
    index.segments.push(Segment::new(file, open, false));
}
