//! Messages that must be delivered again, in their order, and how far they were looked at for those that may not be.
//!
//! Invariant: of the first `looked_at` of them, none that still waits was delivered `deliveries_max` times or more often.

use std::collections::VecDeque;

#[derive(Debug, Default)]
pub(super) struct RedeliveryQueue {
    sequences: VecDeque<u64>,
    looked_at: usize,
    /// As of the last look.
    deliveries_max: u64,
}

impl RedeliveryQueue {
    pub fn front(&self) -> Option<u64> {
        self.sequences.front().copied()
    }

    pub fn pop_front(&mut self) {
        self.sequences.pop_front();
        self.looked_at = self.looked_at.saturating_sub(1);
    }

    pub fn push_back(&mut self, sequence: u64) {
        self.sequences.push_back(sequence);
    }

    /// The last delivery of a message reached nobody, so it may be delivered once more.
    pub fn push_front(&mut self, sequence: u64) {
        self.sequences.push_front(sequence);
        self.looked_at += 1;
    }

    pub fn retain(&mut self, stays: impl Fn(u64) -> bool) {
        self.sequences.retain(|sequence| stays(*sequence));
        self.looked_at = 0;
    }

    /// The next one that was not looked at while messages may be delivered so often.
    pub fn look_further(&mut self, deliveries_max: u64) -> Option<u64> {
        if self.deliveries_max != deliveries_max {
            self.deliveries_max = deliveries_max;
            self.looked_at = 0;
        }
        let sequence = self.sequences.get(self.looked_at).copied()?;
        self.looked_at += 1;
        Some(sequence)
    }
}
