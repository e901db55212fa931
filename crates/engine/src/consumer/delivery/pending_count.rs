//! How many messages a consumer has still to deliver, kept up to date by what changes instead of being counted each time.
//!
//! New messages are checked one by one. After a removal everything is recounted, but counting may take only a small
//! part of the time. Invariant: after `count` with `exactly` the number is right for the marks it was counted at.

use crate::storage::store::committed::{CommittedMessages, Marks};

/// Recounting may take one part in this many of the time.
const TIME_PART: i64 = 16;

#[derive(Debug, Default)]
pub struct PendingCount {
    value: u64,
    marks: Marks,
    is_outdated: bool,
    /// When everything was counted last, and how long that took.
    counted_ns: i64,
    took_ns: i64,
}

impl PendingCount {
    pub fn outdated() -> Self {
        Self {
            is_outdated: true,
            ..Self::default()
        }
    }

    /// The number is wrong for a reason of the consumer's own.
    pub fn invalidate(&mut self) {
        self.is_outdated = true;
    }

    pub fn value(&self) -> u64 {
        self.value
    }

    /// One of them was delivered.
    pub fn take_one(&mut self) {
        self.value = self.value.saturating_sub(1);
    }

    /// Updates the number: messages from `from` on, plus `beside` others.
    pub fn count(
        &mut self,
        messages: &CommittedMessages,
        patterns: &[Vec<u8>],
        from: u64,
        beside: u64,
        now_ns: i64,
        exactly: bool,
    ) {
        let marks = messages.marks();
        let removed = marks.removed != self.marks.removed;
        let is_time = exactly || now_ns - self.counted_ns >= self.took_ns * TIME_PART;
        if self.is_outdated || removed && is_time {
            let begun = std::time::Instant::now();
            let (count, marks) = messages.count_matching(patterns, from);
            self.value = count + beside;
            self.marks = marks;
            self.is_outdated = false;
            self.counted_ns = now_ns;
            self.took_ns = begun.elapsed().as_nanos() as i64;
        } else if marks.last_sequence > self.marks.last_sequence {
            let first_new = from.max(self.marks.last_sequence + 1);
            let (count, marks) = messages.count_new(patterns, first_new);
            self.value += count;
            self.marks.last_sequence = marks.last_sequence;
        }
    }
}
