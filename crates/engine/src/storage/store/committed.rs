//! The messages that are committed, as readers see them: which there are, how many match, and what becomes of them when something is committed, removed or rewritten.
//!
//! Everything here is answered from the index in memory; `reading` adds what must be read of the files. A change goes through one of the methods below, each of which leaves the
//! index whole. Invariants: a reader is shown only what is durable; after each change the limits hold; the sums of the index are those of its segments, and those are in order.

use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock, RwLockReadGuard};

use super::applying;
use super::folder::StoreFolder;
use super::rewriting::{Front, Rewritten};
use super::slices;
use super::slices::SLICE_MESSAGES;
use super::staging::StagedBatch;
use super::walking::is_wanted;
use crate::storage::finding::{Finding, Findings};
use crate::storage::format::removal::Removal;
use crate::storage::index::messages::{MessageIndex, Segment};
use crate::storage::index::segments::Extent;
use crate::storage::message::{Counting, Counts, Expired, Limits};
use crate::storage::segment::segment_file::SegmentFile;

/// Marks that show whether something has changed since they were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Marks {
    pub first_sequence: u64,
    pub last_sequence: u64,
    /// Messages that were ever removed.
    pub removed: u64,
}

pub struct CommittedMessages {
    index: RwLock<MessageIndex>,
    /// Changes, and is applied, while the writer of the store is held.
    limits: Mutex<Limits>,
    findings: Findings,
    /// Some segments may be those of another store as well, and must not be counted twice.
    shares_segments: AtomicBool,
    has_disk: bool,
}

impl CommittedMessages {
    pub(super) fn new(index: MessageIndex, findings: Vec<Finding>, has_disk: bool) -> Self {
        let shares_segments = index.segments.iter().any(|one| one.file.is_shared());
        debug_assert!(index.is_whole());
        Self {
            index: RwLock::new(index),
            limits: Mutex::default(),
            findings: Findings::new(findings),
            shares_segments: AtomicBool::new(shares_segments),
            has_disk,
        }
    }

    /// The index as it is now; nothing is committed or removed while it is held.
    pub(super) fn index(&self) -> RwLockReadGuard<'_, MessageIndex> {
        self.index.read()
    }

    /// What is committed, in numbers.
    pub fn counts(&self) -> Counts {
        let index = self.index();
        Counts {
            messages: index.messages,
            bytes: index.bytes,
            first_sequence: index.first_sequence,
            last_sequence: index.last_sequence,
        }
    }

    pub fn marks(&self) -> Marks {
        marks(&self.index())
    }

    /// Whether there is a message of this sequence.
    pub fn contains(&self, sequence: u64) -> bool {
        self.index().locate(sequence).is_some()
    }

    /// What the message of a sequence counts for in the size of the stream; `None` if there is none. Reads nothing.
    pub fn counted_bytes(&self, sequence: u64) -> Option<u64> {
        let index = self.index();
        let (at, rank) = index.locate(sequence)?;
        Some(index.segments[at].counted_bytes(rank))
    }

    /// The subject of a message; `None` if there is none.
    pub fn subject_of(&self, sequence: u64) -> Option<Vec<u8>> {
        let index = self.index();
        let (at, rank) = index.locate(sequence)?;
        let id = index.segments[at].index.subject_ids[rank];
        Some(index.subjects.name(id).to_vec())
    }

    /// Whether a message would be read from the segment that is being written, which the system has in memory.
    pub fn is_recent(&self, sequence: u64) -> bool {
        let index = self.index();
        let newest = index.segments.last();
        newest.is_none_or(|segment| segment.index.base_sequence <= sequence)
    }

    /// The first message from `sequence` on whose subject matches.
    pub fn next_match(&self, filter: &[u8], sequence: u64) -> Option<u64> {
        let index = self.index();
        index.next_match(&index.matching(filter), sequence)
    }

    /// How many messages from `sequence` on match.
    pub fn count_matches(&self, filter: &[u8], sequence: u64) -> u64 {
        let index = self.index();
        index.count_matches(&index.matching(filter), sequence)
    }

    /// How many messages a subject has, and the last sequence of the store as of that.
    pub fn subject_count(&self, subject: &[u8]) -> (u64, u64) {
        let index = self.index();
        let count = index.count_matches(&index.matching(subject), 0);
        (count, index.last_sequence)
    }

    /// Sequences between the first and the last message that have none, up to `most`, in order.
    pub fn gaps(&self, most: usize) -> Vec<u64> {
        let index = self.index();
        let mut gaps = Vec::new();
        let mut expected = index.first_sequence;
        for segment in &index.segments {
            let mut rank = 0;
            while let Some(live) = segment.next_live(rank) {
                let sequence = segment.index.sequence(live);
                for gap in expected..sequence {
                    if gaps.len() == most {
                        return gaps;
                    }
                    gaps.push(gap);
                }
                expected = sequence + 1;
                rank = live + 1;
            }
        }
        // After the last message there may be some that are gone.
        if index.messages > 0 {
            let behind = expected..=index.last_sequence;
            gaps.extend(behind.take(most - gaps.len()));
        }
        gaps
    }

    /// The last message that matches.
    pub fn last_match(&self, filter: &[u8]) -> Option<u64> {
        let index = self.index();
        index.last_match(&index.matching(filter))
    }

    /// The last message of every subject that matches, in the order of sequences.
    pub fn last_of_each(&self, filter: &[u8]) -> Vec<u64> {
        let index = self.index();
        let mut sequences = Vec::new();
        index.subjects.for_each_match(filter, |id| {
            sequences.push(index.subjects.summary(id).last);
        });
        sequences.sort_unstable();
        sequences
    }

    /// The last message up to a sequence of every subject that matches, up to `most`, in no order.
    pub fn last_of_each_up_to(&self, filter: &[u8], up_to: u64, most: usize) -> Vec<u64> {
        let index = self.index();
        let mut sequences = Vec::new();
        index.subjects.for_each_match(filter, |id| {
            if sequences.len() == most {
                return;
            }
            let last = index.subjects.summary(id).last;
            if last <= up_to {
                sequences.push(last);
            } else {
                sequences.extend(index.previous_of(id, up_to.saturating_add(1)));
            }
        });
        sequences
    }

    /// Subjects that match, with their numbers of messages.
    pub fn subject_counts(&self, filter: &[u8]) -> Vec<(Vec<u8>, u64)> {
        let index = self.index();
        let mut counts = Vec::new();
        index.subjects.for_each_match(filter, |id| {
            let name = index.subjects.name(id).to_vec();
            counts.push((name, index.subjects.summary(id).count));
        });
        counts
    }

    /// How many messages from `sequence` on match one of the patterns, or are there if none is given, and as of when.
    pub fn count_matching(&self, patterns: &[Vec<u8>], sequence: u64) -> (u64, Marks) {
        let index = self.index();
        let count = match sequence > index.last_sequence {
            true => 0,
            false => index.count_matches(&index.matching_any(patterns), sequence),
        };
        (count, marks(&index))
    }

    /// The same, when it is known that few have come since: their subjects are looked at one by one.
    pub fn count_new(&self, patterns: &[Vec<u8>], sequence: u64) -> (u64, Marks) {
        let index = self.index();
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

    /// Messages of a range, in order, with their subjects: as many as one slice has.
    pub fn live_between(&self, first: u64, last: u64) -> Vec<(u64, Vec<u8>)> {
        let index = self.index();
        let mut found = Vec::new();
        let mut next = index.next_live(first);
        while let Some(sequence) = next.filter(|sequence| *sequence <= last) {
            if let Some(name) = index.subject_name(sequence) {
                found.push((sequence, name.to_vec()));
            }
            if found.len() >= SLICE_MESSAGES {
                break;
            }
            next = index.next_live(sequence + 1);
        }
        found
    }

    /// Which of these messages are not there; they are not more than a slice has.
    pub fn missing(&self, sequences: &[u64]) -> Vec<u64> {
        let index = self.index();
        let is_missing = |sequence: &u64| index.locate(*sequence).is_none();
        sequences.iter().copied().filter(is_missing).collect()
    }

    /// Whether this store has shared a segment with another one since it was opened, or was found with one.
    pub fn shares_segments(&self) -> bool {
        self.shares_segments.load(Ordering::Relaxed)
    }

    /// Segments that other stores may have as well: the identity of each, and what its messages here count for.
    pub fn shared_segments(&self) -> Vec<(u64, u64)> {
        let index = self.index();
        let shared = index.segments.iter().filter(|one| one.file.is_shared());
        let held: Vec<(u64, u64)> = shared
            .map(|segment| (segment.file.header.identity, segment.live_bytes))
            .collect();
        held
    }

    /// What a fork up to this sequence would count for beyond the segments it shares.
    pub fn copied_by_fork(&self, last_sequence: u64) -> u64 {
        let index = self.index();
        let copied = index.segments.iter().filter(|segment| {
            let is_whole = segment.sealed && segment.index.last_sequence <= last_sequence;
            !is_whole && segment.index.base_sequence <= last_sequence
        });
        copied.map(|segment| segment.live_bytes).sum()
    }

    /// Whether reading may have to wait for a disk.
    pub fn has_disk(&self) -> bool {
        self.has_disk
    }

    pub(super) fn report(&self, finding: Finding) {
        self.findings.report(finding);
    }

    pub(super) fn take_findings(&self) -> Vec<Finding> {
        self.findings.drain()
    }

    /// The files of all segments, each with where its records end, and the last sequence in them.
    pub(super) fn files(&self) -> (Vec<(Arc<SegmentFile>, u64)>, u64) {
        let index = self.index();
        let segments = index.segments.iter();
        let files = segments.map(|segment| (Arc::clone(&segment.file), segment.index.end));
        (files.collect(), index.last_sequence)
    }

    pub(super) fn place_of(&self, sequence: u64) -> Option<(Arc<SegmentFile>, Extent)> {
        let index = self.index();
        let (at, rank) = index.locate(sequence)?;
        let segment = &index.segments[at];
        let extent = segment.index.extent(rank)?;
        Some((Arc::clone(&segment.file), extent))
    }

    pub(super) fn limits(&self) -> Limits {
        *self.limits.lock()
    }

    /// Lets a durable batch take effect. Returns what the limits of the stream removed in return.
    pub(super) fn apply(
        &self,
        batch: &StagedBatch,
        opened: impl Iterator<Item = Arc<SegmentFile>>,
        counting: Counting,
    ) -> Vec<Removal> {
        let limits = self.limits();
        let mut index = self.index.write();
        let removed = applying::apply(&mut index, batch, opened, counting, &limits);
        debug_assert!(index.is_whole());
        removed
    }

    /// Other limits from now on; returns what they removed.
    pub(super) fn set_limits(&self, limits: Limits) -> Vec<Removal> {
        *self.limits.lock() = limits;
        let mut removed = Vec::new();
        let mut index = self.index.write();
        slices::enforce(&mut index, &limits, &mut removed);
        debug_assert!(index.is_whole());
        removed
    }

    /// Removes what is due, and says what was.
    pub(super) fn expire(
        &self,
        now_ns: i64,
        first_young: u64,
        spare_last: bool,
    ) -> (Expired, Vec<Removal>) {
        let mut index = self.index.write();
        let expired = slices::expire(&mut index, now_ns, first_young, spare_last);
        debug_assert!(index.is_whole());
        expired
    }

    /// Notes that a message cannot be read; true if that is news.
    pub(super) fn lose(&self, sequence: u64) -> bool {
        self.index.write().lose(sequence)
    }

    /// Takes out a message that is erased on the disk.
    pub(super) fn forget_erased(&self, sequence: u64) {
        let mut index = self.index.write();
        index.remove(sequence);
        debug_assert!(index.is_whole());
    }

    /// Everything up to the last of the segments at the front that have no message any more.
    pub(super) fn emptied_front(&self) -> Option<Removal> {
        let index = self.index();
        let emptied = |segment: &&Segment| segment.closed && segment.live_count == 0;
        let front = index.segments.iter().take_while(emptied);
        // From the first sequence on: whichever of the files a crash brings back, this says why nothing comes before it.
        front.last().map(|segment| Removal {
            first: 1,
            last: segment.index.last_sequence,
            erase: false,
        })
    }

    /// Drops the segments up to a sequence, which have no messages any more; returns their files.
    pub(super) fn free_front(&self, last_sequence: u64) -> Vec<PathBuf> {
        let mut index = self.index.write();
        // The one that is written to stays, even if no sequence has come into it yet.
        let gone = index.segments.partition_point(|segment| {
            segment.closed && segment.index.last_sequence <= last_sequence
        });
        let gone = index.segments.drain(..gone);
        let files = gone.map(|segment| segment.file.path.clone()).collect();
        debug_assert!(index.is_whole());
        files
    }

    /// A segment that takes no more messages and has no footer yet.
    pub(super) fn first_unsealed(&self) -> Option<usize> {
        let is_open = |segment: &Segment| segment.closed && !segment.sealed;
        self.index().segments.iter().position(is_open)
    }

    pub(super) fn set_sealed(&self, at: usize) {
        let segment = &mut self.index.write().segments[at];
        debug_assert!(segment.closed);
        segment.sealed = true;
    }

    pub(super) fn front(&self) -> Front {
        let index = self.index();
        Front {
            base: index.segments[0].index.base_sequence,
            sequence: index.first_sequence,
        }
    }

    /// Replaces segments by the one that was rewritten from them; what could not be read for it is lost, and reported.
    pub(super) fn exchange(&self, run: Range<usize>, rewritten: Rewritten, path: PathBuf) {
        let mut index = self.index.write();
        let missing = applying::exchange(&mut index, run, rewritten, path);
        debug_assert!(index.is_whole());
        drop(index);
        for sequence in missing {
            let range = Removal::of(sequence);
            self.report(Finding::Lost { range });
        }
    }

    /// Ensures that the file with this message can be written into; the caller keeps segments as they are.
    pub(super) fn own_file(&self, sequence: u64, folder: &StoreFolder) -> io::Result<()> {
        let shared = {
            let index = self.index();
            let at = index.segment_of(sequence);
            let file = at.map(|at| Arc::clone(&index.segments[at].file));
            file.filter(|file| file.is_shared())
        };
        let Some(file) = shared else {
            return Ok(());
        };
        let own = Arc::new(file.own(&*folder.file_system, folder.stream_key.as_ref())?);
        let mut index = self.index.write();
        let at = index.segment_of(sequence).expect("segments stay");
        index.segments[at].file = own;
        Ok(())
    }

    /// Another store has some of the segments from now on.
    pub(super) fn note_shared(&self) {
        self.shares_segments.store(true, Ordering::Relaxed);
    }
}

fn marks(index: &MessageIndex) -> Marks {
    Marks {
        first_sequence: index.first_sequence,
        last_sequence: index.last_sequence,
        removed: index.removed,
    }
}
