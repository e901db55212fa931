//! What it means for a consumer that messages have left the stream.
//!
//! Invariant: a message that is gone is not pending for long, and is never waited for.

use super::acknowledgement::pending_list::PendingMessage;
use super::advisory::Advisory;
use super::consumer::Consumer;
use super::core::{Core, PassContext};
use super::delivery::outbound::Outbound;
use crate::common::subject;
use crate::storage::message::Purge;
use crate::storage::store::slices::SLICE_MESSAGES;

const DELETED: &[u8] = b"Unacknowledged message was deleted";

impl Consumer {
    /// Settles what is pending and gone where that is much: the core is free for others between two slices. Whoever listens hears of it if `tells`.
    pub(super) fn drop_missing(&self, tells: bool) {
        let mut behind = 0;
        let mut out = Outbound::default();
        loop {
            let slice = self.with_core(|core, _, _| {
                let is_much = core.acks.pending_count() > SLICE_MESSAGES;
                let pending = &core.acks.pending;
                is_much.then(|| pending.sequences_behind(behind, SLICE_MESSAGES))
            });
            let slice = slice.unwrap_or_default();
            let Some(last) = slice.last() else {
                return self.send_out(&mut out);
            };
            behind = *last;
            let missing = self.context.store.missing(&slice);
            self.with_core(|core, context, _| {
                for sequence in missing {
                    let Some(entry) = core.acks.entry(sequence).copied() else {
                        continue;
                    };
                    core.settle_missing(sequence);
                    if tells {
                        core.tell_deleted(context, &entry, &mut out);
                    }
                }
            });
        }
    }
}

impl Core {
    /// Messages were purged. A consumer whose every message was goes on behind them, any other one that takes some of them from the first message there
    /// is.
    pub fn purged(&mut self, context: &PassContext<'_>, purge: &Purge) {
        let marks = context.store.marks();
        self.count.invalidate();
        if !self.takes_any(purge.filter.as_deref()) {
            self.drop_missing(context);
            return;
        }
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
                    .filter_map(|own| context.store.next_match(own, marks.first_sequence))
                    .min();
                first.unwrap_or(marks.last_sequence + 1)
            }
            _ => marks.first_sequence,
        };
        self.acks.pass_over(next);
        self.drop_missing(context);
        self.acks.settle_below(next);
    }

    /// Whether messages of a purge may be this consumer's.
    fn takes_any(&self, purged: Option<&[u8]>) -> bool {
        let filters = &self.settings.filters;
        let Some(purged) = purged.filter(|_| !filters.is_empty()) else {
            return true;
        };
        let overlaps = |own: &Vec<u8>| subject::covers(purged, own) || subject::covers(own, purged);
        filters.iter().any(overlaps)
    }

    /// Settles what is pending and gone; whoever listens hears of it. True if there was something.
    pub fn sweep(&mut self, context: &PassContext<'_>, out: &mut Outbound) -> bool {
        let dropped = self.drop_missing(context);
        for entry in &dropped {
            self.tell_deleted(context, entry, out);
        }
        !dropped.is_empty()
    }

    /// The same for what was removed from the front of the stream, as limits do: quickly, without a look at everything that is pending.
    pub fn sweep_front(&mut self, context: &PassContext<'_>, out: &mut Outbound) -> bool {
        let first = context.store.marks().first_sequence;
        let mut has_settled = false;
        while let Some(entry) = self.acks.first_below(first) {
            self.settle_missing(entry.stream_sequence);
            self.tell_deleted(context, &entry, out);
            has_settled = true;
        }
        has_settled
    }

    /// Many are looked through in slices, before: see `Consumer::drop_missing`.
    fn drop_missing(&mut self, context: &PassContext<'_>) -> Vec<PendingMessage> {
        let is_there = |sequence| context.store.contains(sequence);
        let dropped = match self.acks.pending_count() <= SLICE_MESSAGES {
            true => self.acks.drop_missing(is_there),
            false => {
                let given_up = self.acks.exceeded.keys().copied();
                let missing: Vec<u64> = given_up.filter(|sequence| !is_there(*sequence)).collect();
                for sequence in missing {
                    self.acks.acknowledge(sequence);
                }
                Vec::new()
            }
        };
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
        context: &PassContext<'_>,
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
        self.tell_deleted(context, &entry, out);
    }

    fn tell_deleted(
        &mut self,
        context: &PassContext<'_>,
        entry: &PendingMessage,
        out: &mut Outbound,
    ) {
        let event = Advisory::Terminated {
            consumer_sequence: entry.consumer_sequence,
            stream_sequence: entry.stream_sequence,
            deliveries: u64::from(entry.deliveries),
            reason: DELETED,
        };
        self.tell(context, &event, out);
    }
}
