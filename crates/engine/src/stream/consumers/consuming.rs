//! What a stream does for its consumers: it removes what nobody needs any more, and keeps what they give up where the configuration says.
//!
//! Invariant: where messages are kept only until they are taken, one that a consumer has not settled, or a follower not stored, stays.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use crate::common::error::EngineError;
use crate::consumer::consumer::Consumer;
use crate::consumer::dead_letters::{DeadLetter, HandedOver};
use crate::consumer::host_stream::HostStream;
use crate::storage::commit::work_pool::Job;
use crate::storage::message::{Purge, StoreResult};
use crate::storage::receipts::Receipt;
use crate::stream::refusals::store_error;
use crate::stream::replication::origin::Origin;
use crate::stream::settings::Retention;
use crate::stream::stream::Stream;

/// The stream as its consumers have it: it may be gone.
pub struct ConsumersHost {
    stream: Weak<Stream>,
    /// Shared with the stream, so that its consumers need none of its locks to know it.
    dead_letters_wanted: Arc<AtomicBool>,
}

impl ConsumersHost {
    pub fn new(stream: Weak<Stream>, dead_letters_wanted: &Arc<AtomicBool>) -> Self {
        Self {
            stream,
            dead_letters_wanted: Arc::clone(dead_letters_wanted),
        }
    }
}

impl HostStream for ConsumersHost {
    fn released(&self, consumer: &Consumer, released: &[(u64, u64)]) {
        if let Some(stream) = self.stream.upgrade() {
            stream.release(consumer, released);
        }
    }

    fn commit_released(&self) {
        if let Some(stream) = self.stream.upgrade() {
            stream.commit_released();
        }
    }

    fn try_commit_released(&self) -> bool {
        let stream = self.stream.upgrade();
        stream.is_none_or(|stream| stream.try_commit_released())
    }

    fn wants_dead_letters(&self) -> bool {
        self.dead_letters_wanted.load(Ordering::Acquire)
    }

    fn hand_over_dead_letter(
        &self,
        consumer: &Consumer,
        letter: &DeadLetter,
        receipt: Arc<dyn Receipt>,
    ) -> HandedOver {
        let stream = self.stream.upgrade();
        stream.map_or(HandedOver::Gone, |stream| {
            stream.hand_over_dead_letter(consumer, letter, receipt)
        })
    }
}

impl Stream {
    /// A consumer has settled messages.
    fn release(&self, consumer: &Consumer, released: &[(u64, u64)]) {
        let retention = self.settings().retention;
        if retention == Retention::Limits || !consumer.keeps() {
            return;
        }
        self.remove_settled(released);
    }

    /// Removes a settled message that no reader needs any more; true if there was one.
    pub(in crate::stream) fn remove_unneeded(&self, sequence: u64) -> bool {
        let Some(subject) = self.store().messages().subject_of(sequence) else {
            return false;
        };
        let retention = self.settings().retention;
        // A failure is in the store's status.
        self.is_unneeded(retention, &subject, sequence)
            && self.store().remove(sequence, false).unwrap_or(false)
    }

    /// The same for all of a range.
    pub(in crate::stream) fn remove_settled_between(&self, first: u64, last: u64) {
        let retention = self.settings().retention;
        self.remove_where(first, last, |subject, sequence| {
            self.is_unneeded(retention, subject, sequence)
        });
    }

    /// Whether no reader needs a message that a consumer has settled.
    fn is_unneeded(&self, retention: Retention, subject: &[u8], sequence: u64) -> bool {
        match retention {
            Retention::Limits => false,
            // Filters change, so another consumer may ask for it by now.
            Retention::WorkQueue => !self.consumers().need(subject, sequence),
            Retention::Interest => {
                !self.consumers().has_unserved()
                    && !self.consumers().need(subject, sequence)
                    && !self.is_followed_at(sequence)
            }
        }
    }

    /// What consumers have settled is out of the numbers when this returns. Waits for the disk if there is something.
    pub(in crate::stream) fn finish_removals(&self) {
        if self.settings().retention == Retention::Limits || self.consumers.is_empty() {
            return;
        }
        self.remove_released();
        // A failure is in the store's status.
        let _ = self.commit_own();
    }

    /// Removes everything that nobody needs: after followers have gone, or the rule has changed, or a crash has come between an acknowledgement and
    /// the removal.
    pub fn remove_all_unneeded(&self) {
        self.remove_unneeded_between(0, u64::MAX);
    }

    /// The same within these sequences.
    fn remove_unneeded_between(&self, first: u64, last: u64) {
        match self.settings().retention {
            Retention::Limits => {}
            Retention::WorkQueue => self.remove_acknowledged(first, last),
            Retention::Interest => self.remove_uninteresting(first, last, None),
        }
    }

    /// Removes from a work queue what was acknowledged. What its consumers have skipped waits for another one, or for a
    /// reset.
    fn remove_acknowledged(&self, first: u64, last: u64) {
        let all = self.consumers().all();
        self.remove_where(first, last, |subject, sequence| {
            let mut takers = all
                .iter()
                .filter(|consumer| consumer.keeps() && consumer.wants(subject))
                .peekable();
            takers.peek().is_some() && takers.all(|consumer| consumer.has_settled(sequence))
        });
    }

    /// Removes from an interest stream what nobody asks for, within these sequences; only what one consumer takes, if it is given.
    fn remove_uninteresting(&self, first: u64, last: u64, taken_by: Option<&Consumer>) {
        if self.consumers().has_unserved() {
            return;
        }
        if self.is_unwanted() {
            // A failure is in the store's status.
            let _ = self.purge(&Purge::default());
            return;
        }
        self.remove_where(first, last, |subject, sequence| {
            taken_by.is_none_or(|consumer| consumer.wants(subject))
                && !self.consumers().need(subject, sequence)
                && !self.is_followed_at(sequence)
        });
    }

    /// Puts another definition of a consumer in force. Where it asks for other messages, an interest stream removes those that nobody asks for now.
    pub fn update_consumer(&self, definition: &[u8]) -> Result<(), EngineError> {
        self.finish_removals();
        let (consumer, has_other_filters) = self.consumers().update(definition)?;
        if has_other_filters && self.settings().retention == Retention::Interest {
            self.remove_uninteresting(consumer.floor(), u64::MAX, None);
        }
        Ok(())
    }

    /// Restarts a consumer at a sequence, after its floor if that is 0; returns the sequence. The consumer loses its
    /// interest in what it skips, but a work queue keeps it.
    pub fn reset_consumer(&self, name: &str, sequence: u64) -> Result<u64, EngineError> {
        let consumer = self.consumers().consumer(name)?;
        self.finish_removals();
        let sequence = consumer
            .reset(sequence)
            .map_err(|error| store_error(&error))?;
        let floor = sequence - 1;
        let is_within = floor <= self.store().messages().marks().last_sequence;
        if is_within && self.settings().retention == Retention::Interest {
            self.remove_uninteresting(0, floor, Some(&consumer));
        }
        Ok(sequence)
    }

    /// Deletes a consumer, and what only it had kept.
    pub fn delete_consumer(&self, name: &str) -> Result<Arc<Consumer>, EngineError> {
        let consumer = self.consumers().delete(name)?;
        if self.settings().retention == Retention::Interest && consumer.keeps() {
            // What was taken while it was there is looked at, too. A failure is in the store's status.
            let _ = self.commit_own();
            self.remove_uninteresting(consumer.floor(), u64::MAX, None);
        }
        Ok(consumer)
    }

    /// Whether nobody reads what is stored.
    fn is_unwanted(&self) -> bool {
        self.followers.is_empty() && !self.consumers.all().iter().any(|consumer| consumer.keeps())
    }

    /// Whether a follower has not stored a message yet.
    fn is_followed_at(&self, sequence: u64) -> bool {
        self.followers.need(sequence)
    }

    /// A follower has stopped following: if messages are kept for followers, they are removed with the last one.
    pub fn lost_follower(&self) {
        if self.settings().retention == Retention::Interest {
            // A failure is in the store's status.
            let _ = self.commit_own();
            self.remove_all_unneeded();
        }
    }

    /// A follower has stored everything up to a sequence. What all have is removed, where messages are kept only until they are taken.
    pub fn release_through(&self, origin: &Origin, job: &Arc<Job>, sequence: u64) {
        let (before, taken) = self.followers.took(job, sequence);
        if taken <= before || self.settings().retention == Retention::Limits {
            return;
        }
        if !self.consumers.is_empty() {
            // What they had all taken before has been looked at, and goes when its consumer settles it.
            return self.remove_unneeded_between(before + 1, taken);
        }
        let mut count = 0;
        for filter in &origin.filters {
            let subject = filter.subject.as_bytes();
            let purge = Purge {
                filter: (!origin.takes_everything()).then(|| subject.to_vec()),
                below_sequence: Some(taken + 1),
                keep: 0,
            };
            let purged = match &purge.filter {
                None => self.store.purge(&purge),
                Some(filter) => self.purge_matching(filter, &purge).map(|(_, count)| count),
            };
            // A failure is in the store's status.
            count += purged.unwrap_or(0);
        }
        if count > 0 {
            self.scheduler.schedule();
        }
    }

    /// Another stream of the account.
    pub(in crate::stream) fn neighbour(&self, name: &str) -> Option<Arc<Self>> {
        self.replicator.neighbour(name)
    }

    /// What was taken is on disk when this returns. Must not be called where a disk must not be waited for.
    pub(in crate::stream) fn commit_own(&self) -> StoreResult<()> {
        let committed = self.store.commit();
        self.scheduler.schedule();
        committed.map(drop)
    }
}
