//! Taking messages out: one, many, the old ones; and overwriting their bytes where that is asked for.
//!
//! A removal is written down and synced before anything is overwritten, so a crash in between is finished by opening the store, and never
//! the other way round: bytes are not gone before it is certain that the message is.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::Arc;

use super::Store;
use crate::storage::index::MessageIndex;
use crate::storage::lookup::Matching;
use crate::storage::message::{Limits, Purge, StoreResult};
use crate::storage::removal::{self, Removal};
use crate::storage::segment_file::SegmentFile;

impl Store {
    /// Stages the removal of one message; false if there is none. With `erase` its bytes are overwritten when the removal is durable.
    pub fn remove(&self, sequence: u64, erase: bool) -> StoreResult<bool> {
        self.check_removable()?;
        let index = self.index.read();
        let mut staging = self.staging.lock();
        if index.locate(sequence).is_none() || !staging.begin_leaving(sequence) {
            return Ok(false);
        }
        staging.remove(Removal {
            first: sequence,
            last: sequence,
            erase,
        });
        Ok(true)
    }

    /// Stages the removal of many, of what is committed now; returns how many.
    pub fn purge(&self, purge: &Purge) -> StoreResult<u64> {
        self.check_removable()?;
        let index = self.index.read();
        let removals = match &purge.filter {
            None => purge_all(&index, purge),
            Some(filter) => purge_matching(&index, &index.matching(filter), purge),
        };
        let mut staging = self.staging.lock();
        let mut count = 0;
        for (removal, messages) in removals {
            staging.remove(removal);
            count += messages;
        }
        Ok(count)
    }

    /// Removes what is older than the stream keeps, or has expired; returns how many.
    pub fn expire(&self, now_ns: i64) -> StoreResult<u64> {
        self.check_removable()?;
        let age_ns_max = self.limits.lock().age_ns_max;
        let first_young = match age_ns_max.and_then(|age| now_ns.checked_sub(age)) {
            // One that is exactly as old as allowed goes too, as on nats-server.
            Some(oldest_ns) => self.sequence_at(oldest_ns.saturating_add(1))?,
            None => 0,
        };
        // Between taking effect and being staged nothing may be committed, or it would not be part of it.
        let _writer = self.writer.lock();
        let mut removed = Vec::new();
        {
            let mut index = self.index.write();
            while let Some(&(expires_ns, sequence)) = index.expiries.first() {
                if expires_ns > now_ns {
                    break;
                }
                if !index.remove(sequence) {
                    index.expiries.remove(&(expires_ns, sequence));
                }
                removed.push(sequence);
            }
            while index.messages > 0 && index.first_sequence < first_young {
                let first = index.first_sequence;
                index.remove(first);
                removed.push(first);
            }
        }
        removed.sort_unstable();
        let mut removals = Vec::new();
        for sequence in &removed {
            removal::push(&mut removals, single(*sequence));
        }
        self.staging.lock().remove_lazily(removals);
        Ok(removed.len() as u64)
    }

    /// When `expire` has something to do next.
    pub fn next_expiry_ns(&self) -> StoreResult<Option<i64>> {
        let (own, first) = {
            let index = self.index.read();
            let own = index.expiries.first().map(|(expires_ns, _)| *expires_ns);
            (own, (index.messages > 0).then_some(index.first_sequence))
        };
        let age_ns_max = self.limits.lock().age_ns_max;
        let aged = match (age_ns_max, first) {
            (Some(age), Some(first)) => self.time_of(first)?.map(|time| time.saturating_add(age)),
            _ => None,
        };
        Ok([own, aged].into_iter().flatten().min())
    }

    /// Other limits from now on; what exceeds them goes at once.
    pub fn set_limits(&self, limits: Limits) -> StoreResult<()> {
        // What the old limits have removed must be written down while they would ask for it again.
        self.commit_staged(true)?;
        self.enforce_limits(limits);
        Ok(())
    }

    pub(super) fn enforce_limits(&self, limits: Limits) {
        let _writer = self.writer.lock();
        *self.limits.lock() = limits;
        let mut lazy = Vec::new();
        self.index.write().enforce(&limits, &mut lazy);
        self.staging.lock().remove_lazily(lazy);
    }

    /// Overwrites the bytes of messages whose removal is durable.
    pub(super) fn erase(&self, removals: &[Removal]) -> io::Result<()> {
        let _upkeep = self.upkeep.lock();
        let mut touched: Vec<Arc<SegmentFile>> = Vec::new();
        for removal in removals {
            for sequence in removal.first..=removal.last {
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
        self.erasing.fetch_sub(1, Ordering::AcqRel);
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
