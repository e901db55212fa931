//! What it means for a consumer that messages have left the stream.
//!
//! Invariant: a message that is gone is not pending for long, and is never waited for.

use super::advisory::Event;
use super::core::{Core, Surroundings};
use super::outbound::Outbound;
use super::pending_list::Entry;
use crate::routing::subject;
use crate::storage::message::Purge;

const DELETED: &[u8] = b"Unacknowledged message was deleted";

impl Core {
    /// Messages were purged. A consumer whose every message was goes on behind them, any other one from the first message there is.
    pub fn purged(&mut self, around: &Surroundings<'_>, purge: &Purge) {
        let marks = around.store.marks();
        self.count.invalidate();
        let takes_part = match &purge.filter {
            None => true,
            Some(filter) => {
                let filters = &self.settings.filters;
                !filters.is_empty() && filters.iter().all(|own| subject::covers(filter, own))
            }
        };
        let next = match (&purge.filter, takes_part) {
            (Some(_), true) => {
                let first = self
                    .settings
                    .filters
                    .iter()
                    .filter_map(|own| around.store.next_match(own, marks.first_sequence))
                    .min();
                first.unwrap_or(marks.last_sequence + 1)
            }
            _ => marks.first_sequence,
        };
        self.acks.pass_over(next);
        self.drop_missing(around);
        self.acks.settle_below(next);
    }

    /// Settles what is pending and gone; whoever listens hears of it.
    pub fn sweep(&mut self, around: &Surroundings<'_>, out: &mut Outbound) {
        for entry in self.drop_missing(around) {
            self.tell_deleted(around, &entry, out);
        }
    }

    fn drop_missing(&mut self, around: &Surroundings<'_>) -> Vec<Entry> {
        let is_there = |sequence| around.store.contains(sequence);
        let dropped = self.acks.drop_missing(is_there);
        if let Some(keys) = &mut self.keys {
            for entry in &dropped {
                keys.settled(entry.stream_sequence, &mut self.acks);
            }
        }
        if let Some(lasts) = &mut self.lasts {
            lasts.sequences.retain(|sequence| is_there(*sequence));
        }
        dropped
    }

    /// One message was deleted; whoever listens hears of it if it was pending.
    pub fn message_deleted(
        &mut self,
        around: &Surroundings<'_>,
        sequence: u64,
        out: &mut Outbound,
    ) {
        self.count.invalidate();
        if let Some(lasts) = &mut self.lasts {
            lasts.sequences.retain(|last| *last != sequence);
        }
        let Some(entry) = self.acks.entry(sequence).copied() else {
            return;
        };
        self.settle_missing(sequence);
        self.tell_deleted(around, &entry, out);
    }

    fn tell_deleted(&mut self, around: &Surroundings<'_>, entry: &Entry, out: &mut Outbound) {
        let event = Event::Terminated {
            consumer_sequence: entry.consumer_sequence,
            stream_sequence: entry.stream_sequence,
            deliveries: u64::from(entry.deliveries),
            reason: DELETED,
        };
        self.tell(around, &event, out);
    }
}
