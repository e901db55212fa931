//! Taking messages out: one, many, the old ones; and overwriting their bytes where that is asked for.
//!
//! A removal is written down and synced before anything is overwritten, so a crash in between is finished by opening the store, and never
//! the other way round: bytes are not gone before it is certain that the message is.

use std::io;
use std::sync::Arc;

use super::slices;
use super::staged_work::{Change, StagedWork};
use super::Store;
use crate::storage::format::removal;
use crate::storage::format::removal::Removal;
use crate::storage::index::lookup::Matching;
use crate::storage::index::messages::MessageIndex;
use crate::storage::message::{Expired, Limits, Purge, StoreResult, EXPIRES_NEVER_NS};
use crate::storage::segment::segment_file::SegmentFile;

impl Store {
    /// Stages the removal of all messages of a subject below a sequence, those that are staged themselves included.
    pub fn roll_up(&self, subject: &[u8], staged: &[u64], below_sequence: u64) -> StoreResult<()> {
        self.health.check_removable()?;
        let mut removals = Vec::new();
        {
            let index = self.index.read();
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
        let first = self.index.read().first_sequence;
        let mut staging = self.staging.lock();
        let mut work = staging.new_work();
        if next_sequence > staging.next_sequence {
            work.cover(staging.advance(first, next_sequence));
        }
        Ok(work)
    }

    /// Stages the removal of everything below a sequence, what is staged itself included.
    pub fn roll_up_all(&self, below_sequence: u64) -> StoreResult<()> {
        self.health.check_removable()?;
        let first = self.index.read().first_sequence;
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

    /// The same, for whoever commits it.
    pub fn stage_purge(&self, purge: &Purge) -> StoreResult<StagedWork> {
        self.health.check_removable()?;
        let index = self.index.read();
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
        let age_ns_max = self.limits.lock().age_ns_max;
        let first_young = match age_ns_max.and_then(|age| now_ns.checked_sub(age)) {
            Some(oldest_ns) => self.sequence_at(oldest_ns.saturating_add(1))?,
            None => 0,
        };
        let _writer = self.writer.lock();
        let (expired, removals) =
            slices::expire(&mut self.index.write(), now_ns, first_young, spare_last);
        self.staging.lock().remove_lazily(removals);
        Ok(expired)
    }

    /// When `expire` has something to do next.
    pub fn next_expiry_ns(&self) -> StoreResult<Option<i64>> {
        let age_ns_max = self.limits.lock().age_ns_max;
        let (own, first) = {
            let index = self.index.read();
            let own = index.expiries.first().map(|(expires_ns, _)| *expires_ns);
            let mut first = None;
            if age_ns_max.is_some() {
                first = index.next_live(index.first_sequence);
                while let Some(sequence) = first.filter(|first| index.stays_for_ever(*first)) {
                    first = index.next_live(sequence + 1);
                }
            }
            (own.filter(|own| *own < EXPIRES_NEVER_NS), first)
        };
        let aged = match (age_ns_max, first) {
            (Some(age), Some(first)) => self.time_of(first)?.map(|time| time.saturating_add(age)),
            _ => None,
        };
        Ok([own, aged].into_iter().flatten().min())
    }

    /// Other limits from now on; what exceeds them goes at once.
    pub fn set_limits(&self, limits: Limits) -> StoreResult<()> {
        // What the old limits have removed must be written down while they would ask for it again.
        let committed = self.commit_staged(true);
        // They hold all the same: what they remove is removed again by whoever opens the store with them.
        self.enforce_limits(limits);
        committed.map(drop)
    }

    pub(super) fn enforce_limits(&self, limits: Limits) {
        let _writer = self.writer.lock();
        *self.limits.lock() = limits;
        let mut lazy = Vec::new();
        slices::enforce(&mut self.index.write(), &limits, &mut lazy);
        self.staging.lock().remove_lazily(lazy);
    }

    /// Overwrites the bytes of messages whose removal is durable.
    pub(super) fn erase_removed(&self) -> io::Result<()> {
        let _maintaining = self.maintenance.lock();
        let removals = std::mem::take(&mut *self.erasures.lock());
        let erased = self.erase(&removals);
        if erased.is_err() {
            // Whoever asks next must not take it for done.
            self.erasures.lock().extend(removals);
        }
        erased
    }

    fn erase(&self, removals: &[Removal]) -> io::Result<()> {
        let mut touched: Vec<Arc<SegmentFile>> = Vec::new();
        for removal in removals {
            for sequence in removal.first..=removal.last {
                self.own_file(sequence)?;
                let place = {
                    let index = self.index.read();
                    index.segment_of(sequence).and_then(|at| {
                        let segment = &index.segments[at];
                        let rank = segment.index.rank(sequence)?;
                        Some((Arc::clone(&segment.file), segment.index.extent(rank)?))
                    })
                };
                if let Some((file, extent)) = place {
                    file.erase(sequence, extent)?;
                    touched.push(file);
                }
            }
        }
        touched.dedup_by(|one, other| Arc::ptr_eq(one, other));
        for file in touched {
            file.file.sync()?;
        }
        Ok(())
    }

    /// Sees to it that the file with this message can be written into; whoever calls keeps segments as they are.
    fn own_file(&self, sequence: u64) -> io::Result<()> {
        let shared = {
            let index = self.index.read();
            let at = index.segment_of(sequence);
            let file = at.map(|at| Arc::clone(&index.segments[at].file));
            file.filter(|file| file.is_shared())
        };
        let Some(file) = shared else {
            return Ok(());
        };
        let own = Arc::new(file.own(&*self.file_system, self.stream_key.as_ref())?);
        let mut index = self.index.write();
        let at = index.segment_of(sequence).expect("segments stay");
        index.segments[at].file = own;
        Ok(())
    }
}

/// Everything below a sequence, but not the last so many: one range.
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
