//! Deliveries that reached nobody, and what clients have that have left.

use super::{AckPolicy, Core};

impl Core {
    /// Messages reached nobody; they are in the order in which they were sent. True if they counted as settled when they were sent, and do not now.
    pub fn take_back(&mut self, sequences: &[u64]) -> bool {
        self.count.invalidate();
        if self.settings.ack_policy != AckPolicy::None {
            for sequence in sequences.iter().rev() {
                self.acks.undo(*sequence);
            }
            return false;
        }
        // They may be sent again only if nothing was sent after them.
        let (Some(first), Some(last)) = (sequences.first(), sequences.last()) else {
            return false;
        };
        let is_last = self.acks.floor.stream == *last && self.lasts.is_none();
        if is_last {
            self.acks.undo_last(*first, sequences.len() as u64);
        }
        is_last
    }
}
