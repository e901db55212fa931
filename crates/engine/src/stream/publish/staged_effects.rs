//! What messages that wait for their commit will change: roll-ups, and the totals of counters.
//!
//! Invariant: nothing is forgotten that is known only from a message that still waits.

use ahash::AHashMap;

use super::counter::Counter;
use super::pending::PendingPublishes;
use crate::storage::message::Purge;

#[derive(Default)]
pub struct StagedEffects {
    /// Everything below is replaced, once that is committed.
    rolled_up: u64,
    /// The same for single subjects.
    rolled_up_subjects: Vec<(Box<[u8]>, u64)>,
    /// Counters of subjects that have a message waiting.
    counters: AHashMap<Box<[u8]>, Counter>,
}

impl StagedEffects {
    pub fn roll_up_all(&mut self, sequence: u64) {
        debug_assert!(sequence > self.rolled_up, "sequences only grow");
        self.rolled_up = sequence;
    }

    pub fn roll_up_subject(&mut self, subject: &[u8], sequence: u64) {
        self.rolled_up_subjects.push((subject.into(), sequence));
    }

    /// The sequence below which everything is replaced; 0 if nothing is.
    pub fn rolled_up(&self) -> u64 {
        self.rolled_up
    }

    /// The same on one subject.
    pub fn rolled_up_of(&self, subject: &[u8]) -> u64 {
        let subjects = self.rolled_up_subjects.iter();
        let own = subjects.rev().find(|(own, _)| **own == *subject);
        own.map_or(0, |(_, sequence)| *sequence).max(self.rolled_up)
    }

    pub fn counter(&self, subject: &[u8]) -> Option<&Counter> {
        self.counters.get(subject)
    }

    pub fn set_counter(&mut self, subject: &[u8], counter: Counter) {
        self.counters.insert(subject.into(), counter);
    }

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
    pub fn forget_committed(&mut self, last_sequence: u64, pending: &mut PendingPublishes) {
        if pending.is_empty() {
            return self.clear();
        }
        if self.rolled_up <= last_sequence {
            self.rolled_up = 0;
        }
        self.rolled_up_subjects
            .retain(|(_, sequence)| *sequence > last_sequence);
        if self.counters.len() > 2 * pending.len() {
            self.forget_counters(pending);
        }
    }

    /// Forgets counters that the store knows, too: those of subjects without a message waiting.
    pub fn forget_counters(&mut self, pending: &mut PendingPublishes) {
        pending.sort();
        self.counters
            .retain(|subject, _| pending.sequences_of(subject, 0).next().is_some());
    }

    pub fn clear(&mut self) {
        self.rolled_up = 0;
        self.rolled_up_subjects.clear();
        self.counters.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_roll_up_of_everything_counts_for_each_subject() {
        let mut effects = StagedEffects::default();

        effects.roll_up_subject(b"a", 3);
        effects.roll_up_all(5);
        effects.roll_up_subject(b"b", 7);

        assert_eq!(effects.rolled_up_of(b"a"), 5);
        assert_eq!(effects.rolled_up_of(b"b"), 7);
        assert_eq!(effects.rolled_up_of(b"c"), 5);
    }

    #[test]
    fn roll_ups_are_told_once_they_are_committed() {
        let mut effects = StagedEffects::default();
        effects.roll_up_subject(b"a", 3);
        effects.roll_up_all(5);
        let below = |purge: &Purge| purge.below_sequence;

        let early: Vec<_> = effects.committed_roll_ups(4).iter().map(below).collect();
        let all: Vec<_> = effects.committed_roll_ups(5).iter().map(below).collect();

        assert_eq!(early, [Some(3)]);
        assert_eq!(all, [Some(3), Some(5)]);
    }
}
