//! A stream as the checks of a publish see it: what is committed, and what waits for its commit after that.
//!
//! Invariant: a message counts once, whether it has been committed meanwhile or not.

use super::checks::View;
use super::counter::{Counter, CounterError};
use super::ingest::Ingest;
use crate::storage::message::Counts;
use crate::storage::store::Store;

/// The stream as it will be when everything staged is committed.
pub struct StagedView<'a> {
    pub store: &'a Store,
    pub ingest: &'a Ingest,
}

impl StagedView<'_> {
    fn counts(&self) -> (u64, u64) {
        let Counts {
            messages,
            bytes,
            last_sequence,
            ..
        } = self.store.messages().counts();
        let rolled_up = self.ingest.effects().rolled_up();
        if rolled_up > last_sequence {
            return self.ingest.pending().counts_behind(rolled_up - 1);
        }
        let (waiting, waiting_bytes) = self.ingest.pending().counts_behind(last_sequence);
        (messages + waiting, bytes + waiting_bytes)
    }
}

impl View for StagedView<'_> {
    fn is_kept(&self, subject: &[u8]) -> bool {
        self.ingest.is_kept(subject)
    }

    fn last_sequence(&self) -> u64 {
        self.store.last_given_sequence()
    }

    fn last_sequence_of(&self, filter: &[u8]) -> u64 {
        let committed = self.store.messages().last_match(filter).unwrap_or(0);
        let last = committed.max(self.ingest.pending().last_match(filter));
        if last < self.ingest.effects().rolled_up() {
            0
        } else {
            last
        }
    }

    fn messages(&self) -> u64 {
        self.counts().0
    }

    fn bytes(&self) -> u64 {
        self.counts().1
    }

    fn count_of(&self, subject: &[u8]) -> u64 {
        let (committed, last_sequence) = self.store.messages().subject_count(subject);
        let rolled_up = self.ingest.effects().rolled_up_of(subject);
        let behind = last_sequence.max(rolled_up.saturating_sub(1));
        let waiting = self.ingest.pending().sequences_of(subject, behind).count() as u64;
        if rolled_up > last_sequence {
            waiting
        } else {
            committed + waiting
        }
    }

    fn oldest_bytes_of(&self, subject: &[u8]) -> u64 {
        let first = self.store.messages().next_match(subject, 0);
        let bytes = first.and_then(|first| self.store.messages().counted_bytes(first));
        bytes.unwrap_or(0)
    }

    fn find_message_id(&self, id: &[u8]) -> Option<u64> {
        self.ingest.ids().find(id)
    }

    fn last_message_id(&self) -> &[u8] {
        self.ingest.ids().last()
    }

    fn is_server_full(&self) -> bool {
        self.ingest.usage().is_server_full()
    }

    fn account_has_room(&self, bytes: u64) -> bool {
        self.ingest.usage().has_room(bytes)
    }

    fn has_schedule(&self, subject: &[u8]) -> Option<bool> {
        if self.ingest.schedules().has(subject) {
            return Some(true);
        }
        (self.last_sequence_of(subject) > 0).then_some(false)
    }

    fn counter_of(&self, subject: &[u8]) -> Result<Counter, CounterError> {
        if let Some(counter) = self.ingest.effects().counter(subject) {
            return Ok(counter.clone());
        }
        while let Some(last) = self.store.messages().last_match(subject) {
            match self.store.messages().read(last) {
                Ok(Some(message)) => return Counter::read(message.headers(), message.payload()),
                // It was removed since it was looked up.
                Ok(None) if self.store.messages().last_match(subject) != Some(last) => {}
                // A total that cannot be read is not zero: counting on from there would give a wrong one.
                Ok(None) | Err(_) => return Err(CounterError::Broken),
            }
        }
        Ok(Counter::default())
    }
}
