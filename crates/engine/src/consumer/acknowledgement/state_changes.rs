//! What has changed in the state of acknowledgements since it was last written down, and whether it is consistent.
//!
//! Invariant: a message of which something is known now that was not then is in `changed`, or everything counts as changed.

use super::AckState;

/// Changes that are remembered one by one for the journal at most; beyond that the whole state is written.
const CHANGES_MAX: usize = 64 * 1024;

impl AckState {
    /// Checks what is said at the top of `state`, as far as that costs nothing: in debug builds, where the value has changed.
    pub(super) fn assert_invariant(&self) {
        debug_assert_eq!(
            self.census.delivered() + self.census.queued() + self.census.parked(),
            self.pending.len(),
            "the census counts the pending entries"
        );
        debug_assert!(
            self.out_of_order
                || self
                    .pending
                    .first_behind(0)
                    .is_none_or(|first| first.stream_sequence > self.floor.stream),
            "what is pending lies above the floor"
        );
        debug_assert!(
            self.floor.consumer < self.next_consumer,
            "nothing is acknowledged that was not delivered"
        );
    }

    pub(super) fn note(&mut self, sequence: u64) {
        self.is_changed = true;
        if self.changed_wholly {
            return;
        }
        if self.changed.len() >= CHANGES_MAX {
            self.changed_wholly = true;
            self.changed.clear();
        } else {
            self.changed.push(sequence);
        }
    }

    pub fn is_changed(&self) -> bool {
        self.is_changed
    }

    /// Whether the next record must hold the whole state.
    pub fn is_changed_wholly(&self) -> bool {
        self.changed_wholly
    }

    /// Messages that a whole record lists.
    pub fn known_count(&self) -> usize {
        self.pending.len() + self.exceeded.len()
    }

    /// What has changed since the last time: single messages, in order, or everything if that is `None`.
    pub fn take_changes(&mut self, wholly: bool) -> Option<Vec<u64>> {
        self.is_changed = false;
        let mut changed = std::mem::take(&mut self.changed);
        if std::mem::take(&mut self.changed_wholly) || wholly {
            return None;
        }
        changed.sort_unstable();
        changed.dedup();
        Some(changed)
    }
}
