//! Removes many messages of a stream: in slices, so that neither a thread that serves connections nor the index is held
//! up.
//!
//! A worker that receives an acknowledgement of a million messages leaves their removal to a job. Invariants:
//! acknowledged messages are out of the numbers when they are requested (`finish_removals`), and out of the stream when
//! their acknowledgement is confirmed (`commit_released`); a purge that was answered is complete on disk, one that was not
//! may be partly done.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::storage::commit::scheduler::StorageThreads;
use crate::storage::commit::work_pool::Job;
use crate::storage::message::{Purge, StoreResult};
use crate::storage::store::staged_work::StagedWork;
use crate::stream::settings::Retention;
use crate::stream::stream::Stream;

/// Up to this many settled messages are removed by the thread that settled them: about a millisecond, and what one read
/// from a socket brings.
const INLINE_MAX: u64 = 4096;

/// Removals of single messages that one commit has at most: they are written down while others wait to stage something.
const COMMIT_MESSAGES: u64 = 32 * 1024;

/// Settled messages whose removal is left to a job.
pub struct Releases {
    ranges: Mutex<VecDeque<(u64, u64)>>,
    /// Held by the thread that removes them.
    turn: Mutex<()>,
    job: Arc<Job>,
}

impl Releases {
    pub fn new(stream: Weak<Stream>, threads: &StorageThreads) -> Self {
        Self {
            ranges: Mutex::default(),
            turn: Mutex::default(),
            job: threads.committing(move || {
                if let Some(stream) = stream.upgrade() {
                    stream.remove_released();
                }
            }),
        }
    }

    /// Leaves ranges to the job; neighbours become one.
    fn add(&self, ranges: &[(u64, u64)]) {
        let mut waiting = self.ranges.lock();
        for (first, last) in ranges {
            match waiting.back_mut().filter(|back| back.1 + 1 == *first) {
                Some(back) => back.1 = *last,
                None => waiting.push_back((*first, *last)),
            }
        }
    }

    /// Whether everything that was left to the job is staged.
    fn is_idle(&self) -> bool {
        // In this order: a thread that has taken a range has the turn until it is staged.
        self.ranges.lock().is_empty() && !self.turn.is_locked()
    }
}

impl Stream {
    /// Removes settled messages that nobody needs: a few at once, many soon.
    pub(in crate::stream) fn remove_settled(&self, ranges: &[(u64, u64)]) {
        let count: u64 = ranges.iter().map(|(first, last)| last - first + 1).sum();
        if count > INLINE_MAX {
            self.releases.add(ranges);
            return self.releases.job.schedule();
        }
        let mut removed = false;
        for (first, last) in ranges {
            for sequence in *first..=*last {
                removed |= self.remove_unneeded(sequence);
            }
        }
        if removed {
            self.commit_soon();
        }
    }

    /// Removes what was left to the job; everything that was left before is staged when this returns.
    pub(in crate::stream) fn remove_released(&self) {
        let _turn = self.releases.turn.lock();
        loop {
            let range = self.releases.ranges.lock().pop_front();
            let Some((first, last)) = range else {
                return;
            };
            self.remove_settled_between(first, last);
        }
    }

    /// What consumers have released is out of the stream when this returns. Waits for the disk if there is something, and
    /// not for messages that others have staged since.
    pub(in crate::stream) fn commit_released(&self) {
        if self.settings().retention == Retention::Limits {
            return;
        }
        self.remove_released();
        // A failure is in the store's status. Every thread that stages something schedules a commit, too, which tells what became of it.
        let _ = self.store().commit_removals();
        self.say_usage(&self.ingest.lock());
    }

    /// The same on a thread that must not wait; false if it would have to.
    pub(in crate::stream) fn try_commit_released(&self) -> bool {
        if self.settings().retention == Retention::Limits {
            return true;
        }
        self.releases.is_idle() && (!self.store().is_removing() || self.scheduler.try_commit())
    }

    /// Removes messages of a range for which `is_removed` says so, by subject and sequence. No lock is held while it is asked.
    pub(in crate::stream) fn remove_where(
        &self,
        first: u64,
        last: u64,
        is_removed: impl Fn(&[u8], u64) -> bool,
    ) {
        let last = last.min(self.store().messages().marks().last_sequence);
        let mut next = first;
        while next <= last {
            let slice = self.store().messages().live_between(next, last);
            let Some((end, _)) = slice.last() else {
                return;
            };
            next = end + 1;
            let removed: Vec<u64> = slice
                .iter()
                .filter(|(sequence, subject)| is_removed(subject, *sequence))
                .map(|(sequence, _)| *sequence)
                .collect();
            // A failure is in the store's status.
            if self
                .store()
                .remove_all(&removed)
                .is_ok_and(|work| work.removed > 0)
            {
                self.commit_soon();
            }
        }
    }

    /// Removes messages by their subject. What is returned is still to be committed, what was staged before it is durable; with how many go in all.
    pub(in crate::stream) fn purge_matching(
        &self,
        filter: &[u8],
        purge: &Purge,
    ) -> StoreResult<(Vec<StagedWork>, u64)> {
        let mut under_way = self.store().begin_filtered_purge(filter, purge);
        let (mut staged, mut staged_messages, mut count) = (Vec::new(), 0, 0);
        while let Some(work) = self.store().stage_slice(&mut under_way)? {
            count += work.removed;
            staged_messages += work.removed;
            staged.push(work);
            if staged_messages >= COMMIT_MESSAGES {
                for work in staged.drain(..) {
                    self.store().commit_through(&work)?;
                }
                staged_messages = 0;
            }
        }
        Ok((staged, count))
    }
}
