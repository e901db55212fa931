//! Staging removals: of one message, many, the old ones. The second half of `Store`: what is removed is looked up among what is committed and noted among what is staged.
//!
//! A removal is written down and synced before anything is overwritten, so a crash in between is finished by opening the store, and never
//! the other way round: bytes are not gone before it is certain that the message is.

use super::slices::FilteredPurge;
use super::staged_work::{Change, StagedWork};
use super::Store;
use crate::storage::format::removal;
use crate::storage::format::removal::Removal;
use crate::storage::index::lookup::Matching;
use crate::storage::index::messages::MessageIndex;
use crate::storage::message::{Expired, Limits, Purge, StoreResult};

impl Store {
    /// Stages the removal of all messages of a subject below a sequence, those that are staged themselves included.
    pub fn roll_up(&self, subject: &[u8], staged: &[u64], below_sequence: u64) -> StoreResult<()> {
        self.health.check_removable()?;
        let mut removals = Vec::new();
        {
            let index = self.messages.index();
            let matching = index.matching(subject);
            let mut next = index.next_match(&matching, 0);
            while let Some(sequence) = next.filter(|sequence| *sequence < below_sequence) {
                removal::push(&mut removals, single(sequence));
                next = index.next_match(&matching, sequence + 1);
            }
        }
        for sequence in staged {
            removal::push(&mut removals, single(*sequence));
        }
        let mut staging = self.staging.lock();
        for removal in removals {
            staging.remove(removal);
        }
        Ok(())
    }

    /// Stages the removal of a message that is staged itself.
    pub fn remove_staged(&self, sequence: u64) -> StoreResult<()> {
        self.health.check_removable()?;
        self.staging.lock().remove(single(sequence));
        Ok(())
    }

    /// Stages that the next message gets this sequence, and that everything below is removed. Nothing happens if it is not ahead.
    pub fn advance(&self, next_sequence: u64) -> StoreResult<StagedWork> {
        self.health.check_removable()?;
        let first = self.messages.index().first_sequence;
        let mut staging = self.staging.lock();
        let mut work = staging.new_work();
        if next_sequence > staging.next_sequence() {
            work.cover(staging.advance(first, next_sequence));
        }
        Ok(work)
    }

    /// Stages the removal of everything below a sequence, what is staged itself included.
    pub fn roll_up_all(&self, below_sequence: u64) -> StoreResult<()> {
        self.health.check_removable()?;
        let first = self.messages.index().first_sequence;
        if first < below_sequence {
            self.staging.lock().remove(Removal {
                first,
                last: below_sequence - 1,
                erase: false,
            });
        }
        Ok(())
    }

    /// Stages the removal of one message; false if there is none. With `erase` its bytes are overwritten when the removal is durable.
    pub fn remove(&self, sequence: u64, erase: bool) -> StoreResult<bool> {
        let change = Change {
            remove: &[sequence],
            erase,
            ..Change::default()
        };
        Ok(self.stage(&change)?.removed > 0)
    }

    /// Stages the removal of many, of what is committed now; returns how many.
    pub fn purge(&self, purge: &Purge) -> StoreResult<u64> {
        Ok(self.stage_purge(purge)?.removed)
    }

    /// The same, for a caller that commits it.
    pub fn stage_purge(&self, purge: &Purge) -> StoreResult<StagedWork> {
        self.health.check_removable()?;
        let index = self.messages.index();
        let removals = match &purge.filter {
            None => purge_all(&index, purge),
            Some(filter) => purge_matching(&index, &index.matching(filter), purge),
        };
        let mut staging = self.staging.lock();
        let mut work = staging.new_work();
        for (removal, messages) in removals {
            work.cover(staging.remove(removal));
            work.removed += messages;
        }
        Ok(work)
    }

    /// Removes what is older than the stream keeps, or has expired. Where `spare_last`, the last message of a subject is only reported.
    pub fn expire(&self, now_ns: i64, spare_last: bool) -> StoreResult<Expired> {
        self.health.check_removable()?;
        let age_ns_max = self.messages.limits().age_ns_max;
        let first_young = match age_ns_max.and_then(|age| now_ns.checked_sub(age)) {
            Some(oldest_ns) => self.messages.sequence_at(oldest_ns.saturating_add(1))?,
            None => 0,
        };
        let _writer = self.writer.lock();
        let (expired, removals) = self.messages.expire(now_ns, first_young, spare_last);
        self.staging.lock().remove_lazily(removals);
        Ok(expired)
    }

    /// Other limits from now on; what exceeds them goes at once.
    pub fn set_limits(&self, limits: Limits) -> StoreResult<()> {
        // What the old limits have removed must be written down while they would ask for it again.
        let committed = self.commit_staged(true);
        // The new limits apply even if that failed: what they remove is removed again when the store is next opened
        // with them.
        self.enforce_limits(limits);
        committed.map(drop)
    }

    pub(super) fn enforce_limits(&self, limits: Limits) {
        let _writer = self.writer.lock();
        let removed = self.messages.set_limits(limits);
        self.staging.lock().remove_lazily(removed);
    }

    /// Begins to remove messages by their subject: of what is committed now.
    pub fn begin_filtered_purge(&self, filter: &[u8], purge: &Purge) -> FilteredPurge {
        FilteredPurge::begin(&self.messages, filter, purge)
    }

    /// Stages the removal of the next slice of a purge; `None` if there is nothing left to look at.
    pub fn stage_slice(&self, purge: &mut FilteredPurge) -> StoreResult<Option<StagedWork>> {
        match purge.next_slice(&self.messages) {
            Some(found) => self.remove_all(&found).map(Some),
            None => Ok(None),
        }
    }

    /// Stages the removal of messages that are not more than a slice has; those that are gone, or that others remove, do not count.
    pub fn remove_all(&self, sequences: &[u64]) -> StoreResult<StagedWork> {
        self.stage(&Change {
            remove: sequences,
            ..Change::default()
        })
    }

    /// Whether the removal of a single message waits, or is being written.
    pub fn is_removing(&self) -> bool {
        self.staging.lock().removals_under_way().is_some()
    }

    /// Makes every removal of a single message that was staged before durable and visible, unless a commit of another thread has done so; what else
    /// is staged goes with it.
    pub fn commit_removals(&self) -> StoreResult<()> {
        let work = self.staging.lock().removals_under_way();
        work.map_or(Ok(()), |work| self.commit_through(&work).map(drop))
    }

    /// Stages a change as a whole. It is durable and visible when `commit_through` has returned without an error.
    pub fn stage(&self, change: &Change<'_>) -> StoreResult<StagedWork> {
        match change.append {
            [] => self.health.check_removable()?,
            _ => self.health.check_writable()?,
        }
        let index = self.messages.index();
        let mut staging = self.staging.lock();
        let mut work = staging.new_work();
        for appended in staging.append_all(change.append, &self.folder.options)? {
            work.sequences.push(appended.sequence);
            work.cover(appended.ticket);
        }
        for sequence in change.remove {
            if index.locate(*sequence).is_none() {
                continue;
            }
            if change.erase {
                work.note_erasure();
            }
            match staging.removal_of(*sequence) {
                Some(ticket) => work.cover(ticket),
                None => {
                    work.cover(staging.remove_one(*sequence, change.erase));
                    work.removed += 1;
                }
            }
        }
        Ok(work)
    }

    /// Stages a removal that was found to be due.
    pub(super) fn stage_range(&self, removal: Removal) -> StagedWork {
        let mut staging = self.staging.lock();
        let mut work = staging.new_work();
        work.cover(staging.remove(removal));
        work
    }
}

/// Everything below a sequence, but not the last `keep`: one range.
fn purge_all(index: &MessageIndex, purge: &Purge) -> Vec<(Removal, u64)> {
    let below = purge.below_sequence.unwrap_or(u64::MAX);
    let below = below.min(index.last_sequence + 1);
    let kept_from = match purge.keep {
        0 => below,
        keep if keep >= index.messages => return Vec::new(),
        keep => index.nth_live(index.messages - keep).unwrap_or(below),
    };
    let end = below.min(kept_from);
    if index.messages == 0 || end <= index.first_sequence {
        return Vec::new();
    }
    let count = index.messages - index.count_matches(&Matching::Everything, end);
    let removal = Removal {
        first: index.first_sequence,
        last: end - 1,
        erase: false,
    };
    vec![(removal, count)]
}

fn purge_matching(index: &MessageIndex, matching: &Matching, purge: &Purge) -> Vec<(Removal, u64)> {
    let below = purge.below_sequence.unwrap_or(u64::MAX);
    let mut sequences = Vec::new();
    let mut next = index.next_match(matching, 0);
    while let Some(sequence) = next.filter(|sequence| *sequence < below) {
        sequences.push(sequence);
        next = index.next_match(matching, sequence + 1);
    }
    let removed = sequences.len().saturating_sub(purge.keep as usize);
    let mut removals = Vec::new();
    for sequence in &sequences[..removed] {
        removal::push(&mut removals, single(*sequence));
    }
    removals
        .into_iter()
        .map(|removal| (removal, removal.last - removal.first + 1))
        .collect()
}

fn single(sequence: u64) -> Removal {
    Removal {
        first: sequence,
        last: sequence,
        erase: false,
    }
}
