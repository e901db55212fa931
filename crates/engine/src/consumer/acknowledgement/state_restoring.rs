//! The state of acknowledgements put back from its records, after a start.
//!
//! Invariant: what was restored counts as unchanged, so that nothing is written again that is on disk.

use super::{AckState, PendingMessage, Standing};

impl AckState {
    /// Puts back what a record says of one message.
    pub(in crate::consumer) fn restore(&mut self, entry: PendingMessage) {
        self.remove_pending(entry.stream_sequence);
        self.exceeded.remove(&entry.stream_sequence);
        if entry.standing == Standing::Queued {
            self.queue.push_back(entry.stream_sequence);
        }
        self.insert(entry);
    }

    pub(in crate::consumer) fn restore_exceeded(&mut self, sequence: u64, deliveries: u32) {
        self.remove_pending(sequence);
        self.exceeded.insert(sequence, deliveries);
    }

    pub(in crate::consumer) fn restore_gone(&mut self, sequence: u64) {
        self.remove_pending(sequence);
        self.exceeded.remove(&sequence);
    }

    /// Forgets what lies below the floor, as its record has no more to say about it.
    pub(in crate::consumer) fn restore_floor(&mut self) {
        while let Some(first) = self.pending.first_behind(0) {
            let first = first.stream_sequence;
            if first > self.floor.stream {
                break;
            }
            self.remove_pending(first);
        }
        // A client's acknowledgement of a delivery that never was could once be recorded as it came.
        self.floor.consumer = self.floor.consumer.min(self.next_consumer - 1);
        self.is_changed = false;
        self.changed.clear();
        self.changed_wholly = false;
    }
}
