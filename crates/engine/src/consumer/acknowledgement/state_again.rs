//! What must be delivered again, and what of that may not be.
//!
//! Invariant: a message that is queued is pending and was delivered, or its delivery reached nobody; what is in the queue and does not stand there
//! any more is passed over.

use super::{AckState, Again, Standing};

impl AckState {
    /// What must be delivered again, if anything; one that is delivered must be noted by `redeliver`.
    pub fn next_again(&mut self, deliveries_max: Option<u64>) -> Option<Again> {
        while let Some(sequence) = self.queue.front() {
            let Some(deliveries) = self.deliveries_of_queued(sequence) else {
                self.queue.pop_front();
                continue;
            };
            if deliveries_max.is_none_or(|max| u64::from(deliveries) < max) {
                return Some(Again::Deliver { sequence });
            }
            self.queue.pop_front();
            self.give_up(sequence);
            return Some(Again::Exceeded {
                sequence,
                deliveries,
            });
        }
        None
    }

    /// A message that was to be delivered again and was delivered as often as it may be, wherever it stands in the queue: it is given up. Each is looked
    /// at once, however often this is asked.
    pub fn next_exceeded(&mut self, deliveries_max: Option<u64>) -> Option<(u64, u32)> {
        let most = deliveries_max?;
        while let Some(sequence) = self.queue.look_further(most) {
            let deliveries = self.deliveries_of_queued(sequence);
            if let Some(deliveries) = deliveries.filter(|count| u64::from(*count) >= most) {
                self.give_up(sequence);
                return Some((sequence, deliveries));
            }
        }
        None
    }

    fn deliveries_of_queued(&self, sequence: u64) -> Option<u32> {
        let entry = self.pending.get(sequence)?;
        (entry.standing == Standing::Queued).then_some(entry.deliveries)
    }

    /// Has a message that was delivered delivered again: at once.
    pub fn requeue(&mut self, sequence: u64) {
        if self.stands(sequence) == Some(Standing::Delivered) {
            self.change(sequence, |entry| entry.standing = Standing::Queued);
            self.queue.push_back(sequence);
        }
    }

    /// Has a message wait, after all.
    pub fn unqueue(&mut self, sequence: u64) {
        let entry = self.pending.get(sequence);
        if entry.is_some_and(|entry| entry.standing == Standing::Queued && entry.was_delivered()) {
            self.change(sequence, |entry| entry.standing = Standing::Delivered);
            self.queue.retain(|queued| queued != sequence);
        }
    }

    /// Has everything that is pending delivered again.
    pub fn requeue_all(&mut self) {
        let delivered = self.pending.iter().filter(|entry| entry.was_delivered());
        let all: Vec<u64> = delivered.map(|entry| entry.stream_sequence).collect();
        for sequence in all {
            self.requeue(sequence);
        }
    }

    fn stands(&self, sequence: u64) -> Option<Standing> {
        self.pending.get(sequence).map(|entry| entry.standing)
    }
}
