//! What a stream does for its consumers: it removes what nobody needs any more, and keeps what they give up where the configuration says.
//!
//! Invariant: where messages are kept only until they are taken, one that a consumer has not settled, or a follower not stored, stays.

use std::sync::{Arc, Weak};

use super::origin::Origin;
use super::publish_checks::Publication;
use super::settings::Retention;
use super::stream::Stream;
use crate::consumer::consumer::{Consumer, Keeper};
use crate::consumer::core::DeadLetter;
use crate::storage::message::{Purge, StoreResult};
use crate::storage::work_pool::Job;

/// The stream as its consumers have it: it may be gone.
pub struct StreamKeeper(pub Weak<Stream>);

impl Keeper for StreamKeeper {
    fn released(&self, consumer: &Consumer, released: &[(u64, u64)]) {
        if let Some(stream) = self.0.upgrade() {
            stream.release(consumer, released);
        }
    }

    fn keeps_dead(&self) -> bool {
        let stream = self.0.upgrade();
        stream.is_some_and(|stream| stream.settings().dead_letters.is_some())
    }

    fn bury(&self, consumer: &str, dead: &[DeadLetter]) -> Result<(), String> {
        let stream = self.0.upgrade();
        stream.map_or(Ok(()), |stream| stream.bury(consumer, dead))
    }
}

impl Stream {
    /// A consumer has settled messages.
    fn release(&self, consumer: &Consumer, released: &[(u64, u64)]) {
        let retention = self.settings().retention;
        if retention == Retention::Limits || !consumer.keeps() {
            return;
        }
        let mut removed = false;
        for (first, last) in released {
            for sequence in *first..=*last {
                removed |= self.remove_unneeded(sequence);
            }
        }
        if removed {
            self.commit_soon();
        }
    }

    /// Removes a message that nobody needs any more; true if there was one.
    fn remove_unneeded(&self, sequence: u64) -> bool {
        let Some(subject) = self.store().subject_of(sequence) else {
            return false;
        };
        let is_needed = match self.settings().retention {
            Retention::Limits => true,
            Retention::WorkQueue => false,
            Retention::Interest => {
                self.consumers().need(&subject, sequence) || self.is_followed_at(sequence)
            }
        };
        // A failure is in the store's status.
        !is_needed && self.store().remove(sequence, false).unwrap_or(false)
    }

    /// What consumers have settled is out of the numbers when this returns. Waits for the disk if there is something.
    pub(super) fn finish_removals(&self) {
        if self.settings().retention == Retention::Limits || self.consumers.is_empty() {
            return;
        }
        // A failure is in the store's status.
        let _ = self.commit_own();
    }

    /// Removes everything that nobody needs: after consumers have gone, or the rule has changed, or a crash has come between the two.
    pub fn remove_all_unneeded(&self) {
        let retention = self.settings().retention;
        if retention == Retention::Limits {
            return;
        }
        if retention == Retention::Interest && self.is_unwanted() {
            // A failure is in the store's status.
            let _ = self.purge(&Purge::default());
            return;
        }
        let marks = self.store().marks();
        let all = self.consumers().all();
        let mut removed = false;
        for sequence in marks.first_sequence..=marks.last_sequence {
            let Some(subject) = self.store().subject_of(sequence) else {
                continue;
            };
            let mut takers = all
                .iter()
                .filter(|consumer| consumer.keeps() && consumer.wants(&subject));
            let is_needed = match retention {
                // What no consumer takes waits for one.
                Retention::WorkQueue => takers
                    .next()
                    .is_none_or(|consumer| consumer.needs(&subject, sequence)),
                _ => {
                    takers.any(|consumer| consumer.needs(&subject, sequence))
                        || self.is_followed_at(sequence)
                }
            };
            removed |= !is_needed && self.store().remove(sequence, false).unwrap_or(false);
        }
        if removed {
            self.commit_soon();
        }
    }

    /// Deletes a consumer, and what only it had kept.
    pub fn delete_consumer(&self, name: &str) -> Result<Arc<Consumer>, crate::error::EngineError> {
        let consumer = self.consumers().delete(name)?;
        if self.settings().retention == Retention::Interest && consumer.keeps() {
            // What was taken while it was there is looked at, too. A failure is in the store's status.
            let _ = self.commit_own();
            self.remove_all_unneeded();
        }
        Ok(consumer)
    }

    /// Whether nobody reads what is stored.
    fn is_unwanted(&self) -> bool {
        self.followers.is_empty() && !self.consumers.all().iter().any(|consumer| consumer.keeps())
    }

    /// Whether somebody who follows it has not stored a message yet.
    fn is_followed_at(&self, sequence: u64) -> bool {
        self.followers.need(sequence)
    }

    /// One that followed it follows no more: where messages are kept for followers, they go with the last.
    pub fn lost_follower(&self) {
        if self.settings().retention == Retention::Interest {
            // A failure is in the store's status.
            let _ = self.commit_own();
            self.remove_all_unneeded();
        }
    }

    /// A follower has stored everything up to a sequence. What all have is removed, where messages are kept only until they are taken.
    pub fn let_go(&self, origin: &Origin, job: &Arc<Job>, sequence: u64) {
        let taken = self.followers.took(job, sequence);
        if taken == 0 || self.settings().retention == Retention::Limits {
            return;
        }
        if !self.consumers.is_empty() {
            return self.remove_all_unneeded();
        }
        let mut count = 0;
        for filter in &origin.filters {
            let subject = filter.subject.as_bytes().to_vec();
            let purged = self.store.purge(&Purge {
                filter: (!origin.takes_everything()).then_some(subject),
                below_sequence: Some(taken + 1),
                keep: 0,
            });
            // A failure is in the store's status.
            count += purged.unwrap_or(0);
        }
        if count > 0 {
            self.keeper.ask();
        }
    }

    /// Another stream of the account.
    pub(super) fn neighbour(&self, name: &str) -> Option<Arc<Self>> {
        self.inflow.neighbour(name)
    }

    /// Takes a message from the server itself; `commit_own` must follow.
    pub(super) fn take_own(&self, publication: &Publication<'_>) {
        self.ingest.lock().take(&self.store, publication, b"");
    }

    /// What was taken is on disk when this returns. Must not be called where a disk must not be waited for.
    pub(super) fn commit_own(&self) -> StoreResult<()> {
        let committed = self.store.commit();
        self.keeper.ask();
        committed.map(drop)
    }
}
