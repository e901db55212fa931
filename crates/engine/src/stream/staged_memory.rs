//! What is known of messages that wait for a commit, roll-ups and counters, and when it is forgotten.
//!
//! Invariant: nothing is forgotten that only a message which still waits would tell.

use super::{Ingest, Purge};

impl Ingest {
    /// What roll-ups have removed that are stored with everything up to a sequence, in their order.
    pub fn committed_roll_ups(&self, last_sequence: u64) -> Vec<Purge> {
        let mut purges = Vec::new();
        for (subject, sequence) in &self.rolled_up_subjects {
            if *sequence <= last_sequence {
                purges.push(Purge {
                    filter: Some(subject.to_vec()),
                    below_sequence: Some(*sequence),
                    keep: 0,
                });
            }
        }
        if (1..=last_sequence).contains(&self.rolled_up) {
            purges.push(Purge {
                filter: None,
                below_sequence: Some(self.rolled_up),
                keep: 0,
            });
        }
        purges
    }

    /// Forgets what was only known of messages that waited and do no more: everything up to a sequence.
    pub(super) fn forget_committed(&mut self, last_sequence: u64) {
        if self.pending.is_empty() {
            return self.forget_waiting();
        }
        if self.rolled_up <= last_sequence {
            self.rolled_up = 0;
        }
        self.rolled_up_subjects
            .retain(|(_, sequence)| *sequence > last_sequence);
        if self.counters.len() > 2 * self.pending.len() {
            self.forget_counters();
        }
    }

    /// Forgets counters that the store knows, too: those of subjects without a message waiting.
    pub fn forget_counters(&mut self) {
        self.pending.sort();
        let pending = &self.pending;
        self.counters
            .retain(|subject, _| pending.sequences_of(subject, 0).next().is_some());
    }

    /// Forgets what was known of messages that wait.
    pub(super) fn forget_waiting(&mut self) {
        self.rolled_up = 0;
        self.rolled_up_subjects.clear();
        self.counters.clear();
    }
}
