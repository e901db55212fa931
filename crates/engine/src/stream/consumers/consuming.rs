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

    /// Whether no reader needs a message that a consumer has settled. Filters change, so in a queue another consumer may ask for it by now.
    fn is_unneeded(&self, retention: Retention, subject: &[u8], sequence: u64) -> bool {
        let may_go = match retention {
            Retention::Limits => false,
            Retention::WorkQueue => true,
            Retention::Interest => !self.consumers().has_unserved(),
        };
        may_go && self.is_needed_by_nobody(subject, sequence)
    }

    /// Whether all consumers and followers that take a message are done with it.
    fn is_needed_by_nobody(&self, subject: &[u8], sequence: u64) -> bool {
        !self.consumers().need(subject, sequence) && !self.followers.need(subject, sequence)
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
        match self.settings().retention {
            Retention::Limits => {}
            Retention::WorkQueue => self.remove_acknowledged(0, u64::MAX),
            Retention::Interest => self.remove_uninteresting(0, u64::MAX, None),
        }
    }

    /// Removes from a work queue what was acknowledged, within these sequences. What its consumers have skipped waits for
    /// another one, or for a reset.
    fn remove_acknowledged(&self, first: u64, last: u64) {
        let all = self.consumers().all();
        if all.is_empty() {
            return;
        }
        self.remove_where(first, last, |subject, sequence| {
            let mut takers = all
                .iter()
                .filter(|consumer| consumer.keeps() && consumer.wants(subject))
                .peekable();
            takers.peek().is_some()
                && takers.all(|consumer| consumer.has_settled(sequence))
                && !self.followers.need(subject, sequence)
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
                && self.is_needed_by_nobody(subject, sequence)
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

    /// A follower has stopped following: what was kept for it alone goes, where messages are kept only until they are taken.
    pub fn lost_follower(&self) {
        let retention = self.settings().retention;
        if retention == Retention::Limits {
            return;
        }
        // A failure is in the store's status.
        let _ = self.commit_own();
        self.remove_all_unneeded();
        if retention == Retention::WorkQueue {
            // That was what consumers have acknowledged; what the other followers have taken is for them to say.
            self.followers.look_again();
        }
    }

    /// A follower has stored everything up to a sequence, which it began to take at another. Where messages are kept only until they are taken, those go that nobody needs now.
    pub fn release_through(&self, origin: &Arc<Origin>, job: &Arc<Job>, begun: u64, sequence: u64) {
        let retention = self.settings().retention;
        if retention == Retention::Limits {
            return;
        }
        let has_ended = || self.closed.load(Ordering::Acquire);
        self.followers.took(job, origin, sequence, has_ended);
        // A consumer that is not there yet may need it: followers say so again when all are.
        if self.consumers.has_unserved() {
            return;
        }
        let Some((first, last)) = self.followers.release(job, origin) else {
            return;
        };
        let first = match retention {
            // What it has passed over waits for another reader, unless it was waiting only for this.
            Retention::WorkQueue if first < begun => {
                self.remove_acknowledged(first, last.min(begun - 1));
                begun
            }
            _ => first,
        };
        self.remove_where(first, last, |subject, sequence| {
            origin.takes(subject) && self.is_needed_by_nobody(subject, sequence)
        });
    }

    /// All consumers are served that are on disk: what they had settled before a crash goes, and what followers had taken.
    pub(in crate::stream) fn consumers_opened(&self) {
        self.consumers.end_opening();
        self.remove_all_unneeded();
        self.followers.schedule();
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
