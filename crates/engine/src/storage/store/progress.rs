//! What became of everything staged, for a caller that asks now and then: how far it is durable, and what was refused
//! since the last time.
//!
//! Invariant: what was refused is reported once, in the order of its tickets, and never overlaps; what is committed only
//! grows.

use parking_lot::Mutex;

use crate::storage::message::{CommitProgress, Committed, Refused, StoreError, Ticket};

pub struct Progress(Mutex<CommitProgress>);

impl Progress {
    pub fn new(committed: Committed) -> Self {
        Self(Mutex::new(CommitProgress {
            committed,
            refused: Vec::new(),
            told_through: Ticket(0),
        }))
    }

    pub fn note_committed(&self, committed: Committed) {
        let mut progress = self.0.lock();
        debug_assert!(progress.committed.ticket <= committed.ticket);
        debug_assert!(progress.committed.last_sequence <= committed.last_sequence);
        progress.committed = committed;
    }

    /// Nothing staged after `after` will be stored; the next `drain` reports it.
    pub fn note_refused(&self, after: Ticket, through: Ticket, error: &StoreError) {
        let mut progress = self.0.lock();
        // What was refused before is not refused again.
        let after = after.max(progress.told_through);
        debug_assert!(after <= through);
        progress.told_through = through;
        match progress.refused.last_mut() {
            Some(last) if last.through == after => last.through = through,
            _ => progress.refused.push(Refused {
                after,
                through,
                error: error.clone(),
            }),
        }
    }

    /// What became of everything staged since the last time.
    pub fn drain(&self) -> CommitProgress {
        let mut progress = self.0.lock();
        CommitProgress {
            committed: progress.committed,
            refused: std::mem::take(&mut progress.refused),
            told_through: progress.told_through,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_refused_twice_in_a_row_is_told_as_one_and_only_once() {
        let progress = Progress::new(Committed::default());

        progress.note_refused(Ticket(0), Ticket(3), &StoreError::Full);
        progress.note_refused(Ticket(0), Ticket(5), &StoreError::Full);

        let told = progress.drain();
        assert_eq!(told.refused.len(), 1);
        assert_eq!(
            (told.refused[0].after, told.refused[0].through),
            (Ticket(0), Ticket(5))
        );
        assert!(progress.drain().refused.is_empty());
    }
}
