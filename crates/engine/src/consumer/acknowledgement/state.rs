//! What a consumer has delivered, and what of that is acknowledged: the bare rules, without clocks, disks or receivers.
//!
//! A message is given a place in the order of deliveries, its consumer sequence, each time it is delivered. Below the floor everything is settled.
//! Invariants: what is pending lies above the floor and below the next sequence; what is queued is pending; the `Census` counts exactly the pending
//! entries; from `settled_from` up to the next sequence, each message that the filters take and that is not pending or given up was acknowledged.

use std::collections::BTreeMap;

use super::census::Census;
use super::pending_list::{PendingList, PendingMessage, Standing};
use super::redelivery_queue::RedeliveryQueue;
use crate::consumer::settings::AckPolicy;

/// How far something has come: in deliveries and in the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reached {
    pub consumer: u64,
    pub stream: u64,
}

/// What must be delivered again.
#[derive(Debug, PartialEq, Eq)]
pub enum Again {
    Deliver {
        sequence: u64,
    },
    /// It was delivered as often as it may be, and is given up.
    Exceeded {
        sequence: u64,
        deliveries: u32,
    },
}

#[derive(Debug)]
pub struct AckState {
    pub(in crate::consumer) policy: AckPolicy,
    /// From here on nothing was delivered.
    pub next_stream: u64,
    /// What the next delivery is counted as.
    pub next_consumer: u64,
    pub delivered_stream: u64,
    pub floor: Reached,
    pub(in crate::consumer) pending: PendingList,
    /// Given up, and not acknowledged since: how often they were delivered.
    pub(in crate::consumer) exceeded: BTreeMap<u64, u32>,
    queue: RedeliveryQueue,
    /// How many of `pending` stand how.
    census: Census,
    /// Messages below were passed over by an earlier filter, a start or a reset as often as they were acknowledged: of them nothing is known.
    pub(in crate::consumer) settled_from: u64,
    /// Messages are not delivered in the order of the stream.
    pub(in crate::consumer) out_of_order: bool,
    changed: Vec<u64>,
    changed_wholly: bool,
    is_changed: bool,
}

impl AckState {
    /// Nothing is delivered yet; the first message has this sequence or a later one.
    pub fn new(policy: AckPolicy, first_stream: u64) -> Self {
        let before = first_stream.saturating_sub(1);
        Self {
            policy,
            next_stream: first_stream.max(1),
            next_consumer: 1,
            delivered_stream: before,
            floor: Reached {
                consumer: 0,
                stream: before,
            },
            pending: PendingList::default(),
            exceeded: BTreeMap::new(),
            queue: RedeliveryQueue::default(),
            census: Census::default(),
            settled_from: first_stream.max(1),
            out_of_order: false,
            changed: Vec::new(),
            changed_wholly: true,
            is_changed: true,
        }
    }

    pub fn delivered(&self) -> Reached {
        Reached {
            consumer: self.next_consumer - 1,
            stream: self.delivered_stream,
        }
    }

    /// Messages that were delivered and are not acknowledged.
    pub fn pending_count(&self) -> usize {
        self.census.delivered() + self.census.queued()
    }

    /// Messages that were passed over for now.
    pub fn parked_count(&self) -> usize {
        self.census.parked()
    }

    /// The first message that was delivered and is not acknowledged.
    pub fn first_pending(&self) -> Option<u64> {
        let mut delivered = self.pending.iter().filter(|entry| entry.was_delivered());
        delivered.next().map(|entry| entry.stream_sequence)
    }

    /// The first pending message, if it lies below a sequence.
    pub fn first_below(&self, sequence: u64) -> Option<PendingMessage> {
        let first = self.pending.first_behind(0).copied();
        first.filter(|entry| entry.stream_sequence < sequence)
    }

    /// Up to `most` messages that were delivered and not acknowledged: sequence, start of the wait, number of deliveries.
    pub fn first_delivered(&self, most: usize) -> Vec<(u64, i64, u32)> {
        let delivered = self.pending.iter().filter(|entry| entry.was_delivered());
        delivered
            .take(most)
            .map(|entry| (entry.stream_sequence, entry.time_ns, entry.deliveries))
            .collect()
    }

    /// Messages that were given up and not acknowledged since.
    pub fn given_up_count(&self) -> usize {
        self.exceeded.len()
    }

    /// When the first of them has waited too long.
    pub fn earliest_deadline_ns(&self, wait_ns: impl Fn(u32) -> i64) -> Option<i64> {
        let delivered = self.pending.iter().filter(|entry| entry.was_delivered());
        delivered
            .map(|entry| entry.time_ns.saturating_add(wait_ns(entry.deliveries)))
            .min()
    }

    /// When the last of them has waited too long.
    pub fn latest_deadline_ns(&self, wait_ns: impl Fn(u32) -> i64) -> Option<i64> {
        let delivered = self.pending.iter().filter(|entry| entry.was_delivered());
        delivered
            .map(|entry| entry.time_ns.saturating_add(wait_ns(entry.deliveries)))
            .max()
    }

    pub fn redelivered_count(&self) -> usize {
        self.census.redelivered() + self.exceeded.len()
    }

    /// Messages that must be delivered again now.
    pub fn queued_count(&self) -> usize {
        self.census.queued()
    }

    pub fn is_pending(&self, sequence: u64) -> bool {
        self.pending.get(sequence).is_some()
    }

    pub fn entry(&self, sequence: u64) -> Option<&PendingMessage> {
        self.pending.get(sequence)
    }

    /// Whether a message whose subject it takes is not settled yet.
    pub fn needs(&self, sequence: u64) -> bool {
        if self.exceeded.contains_key(&sequence) {
            return true;
        }
        if sequence <= self.floor.stream {
            return false;
        }
        match self.policy {
            AckPolicy::Explicit => sequence >= self.next_stream || self.is_pending(sequence),
            AckPolicy::None | AckPolicy::All | AckPolicy::FlowControl => true,
        }
    }

    /// Whether a message whose subject it takes was acknowledged, and not merely passed over.
    pub fn has_settled(&self, sequence: u64) -> bool {
        (self.settled_from..self.next_stream).contains(&sequence) && !self.needs(sequence)
    }

    /// Other messages are of interest from now on: of those it has passed, it is no longer known which ones were acknowledged.
    pub fn forget_settled(&mut self) {
        if self.settled_from != self.next_stream {
            self.settled_from = self.next_stream;
            self.is_changed = true;
        }
    }

    /// A message is delivered for the first time; returns what it is counted as.
    pub fn deliver(&mut self, sequence: u64, now_ns: i64) -> u64 {
        let consumer_sequence = self.next_consumer;
        self.next_consumer += 1;
        self.next_stream = self.next_stream.max(sequence + 1);
        self.delivered_stream = self.delivered_stream.max(sequence);
        if self.policy == AckPolicy::None {
            self.floor = Reached {
                consumer: consumer_sequence,
                stream: sequence,
            };
            self.is_changed = true;
        } else {
            let standing = Standing::Delivered;
            self.insert(PendingMessage::new(
                sequence,
                consumer_sequence,
                now_ns,
                1,
                standing,
            ));
        }
        self.assert_invariant();
        consumer_sequence
    }

    /// A message is passed over for now.
    pub fn park(&mut self, sequence: u64) {
        self.next_stream = self.next_stream.max(sequence + 1);
        self.insert(PendingMessage::new(sequence, 0, 0, 0, Standing::Parked));
    }

    /// A message that was passed over is delivered; returns what it is counted as.
    pub fn deliver_parked(&mut self, sequence: u64, now_ns: i64) -> u64 {
        let consumer_sequence = self.next_consumer;
        self.next_consumer += 1;
        self.delivered_stream = self.delivered_stream.max(sequence);
        self.change(sequence, |entry| {
            entry.standing = Standing::Delivered;
            entry.deliveries = 1;
            entry.consumer_sequence = consumer_sequence;
            entry.time_ns = now_ns;
        });
        self.assert_invariant();
        consumer_sequence
    }

    /// Messages up to here do not belong to this consumer.
    pub fn pass_over(&mut self, next_stream: u64) {
        if next_stream > self.next_stream {
            self.next_stream = next_stream;
            self.is_changed = true;
        }
    }

    /// Stops delivering a message, though nobody acknowledged it.
    pub fn give_up(&mut self, sequence: u64) {
        if let Some(entry) = self.remove_pending(sequence) {
            self.exceeded.insert(sequence, entry.deliveries);
        }
    }

    /// The first in the queue is delivered again; returns what it is counted as, and how often it was delivered with that.
    pub fn redeliver(&mut self, sequence: u64, now_ns: i64) -> (u64, u32) {
        if self.queue.front() == Some(sequence) {
            self.queue.pop_front();
        }
        let consumer_sequence = self.next_consumer;
        self.next_consumer += 1;
        let changed = self.change(sequence, |entry| {
            entry.standing = Standing::Delivered;
            entry.deliveries = entry.deliveries.saturating_add(1);
            entry.time_ns = now_ns;
        });
        let deliveries = changed.map_or(1, |entry| entry.deliveries);
        self.assert_invariant();
        (consumer_sequence, deliveries)
    }

    /// A delivery reached nobody: it is as if it had not been, but for its number.
    pub fn undo(&mut self, sequence: u64) {
        let Some(entry) = self
            .pending
            .get(sequence)
            .filter(|entry| entry.was_delivered())
        else {
            return;
        };
        let was_queued = entry.standing == Standing::Queued;
        self.change(sequence, |entry| {
            entry.deliveries -= 1;
            entry.standing = Standing::Queued;
        });
        if !was_queued {
            self.queue.push_front(sequence);
        }
        self.assert_invariant();
    }

    /// The same for the last `count` deliveries, from `sequence` on, of a consumer that waits for no acknowledgements.
    pub fn undo_last(&mut self, sequence: u64, count: u64) {
        self.next_consumer = self.next_consumer.saturating_sub(count).max(1);
        self.next_stream = sequence;
        self.delivered_stream = sequence - 1;
        self.floor = Reached {
            consumer: self.next_consumer - 1,
            stream: sequence - 1,
        };
        self.is_changed = true;
    }

    /// One message is settled; returns what was known of it, if it was pending.
    pub fn acknowledge(&mut self, sequence: u64) -> Option<PendingMessage> {
        let taken = self.remove_pending(sequence);
        if let Some(entry) = &taken {
            self.raise_floor(sequence, entry.consumer_sequence);
        }
        self.settle_exceeded(sequence);
        self.assert_invariant();
        taken
    }

    fn settle_exceeded(&mut self, sequence: u64) {
        if self.exceeded.remove(&sequence).is_some() {
            // It may lie below the floor, where single changes are not written down.
            self.changed_wholly = true;
            self.is_changed = true;
        }
    }

    fn raise_floor(&mut self, sequence: u64, first_delivery: u64) {
        if self.settle_if_nothing_pends() {
            return;
        }
        if self.out_of_order {
            let first = self.pending.first_behind(0);
            self.floor = Reached {
                // A state from a backup may count less deliveries than it lists.
                consumer: (self.next_consumer - 1).saturating_sub(self.pending_count() as u64),
                stream: first.map_or(self.floor.stream, |first| first.stream_sequence - 1),
            };
            self.is_changed = true;
            return;
        }
        // A redelivery gets a new number, so the number after the floor may be that of a message after others that wait.
        let is_first = self.first_below(sequence).is_none();
        if first_delivery != self.floor.consumer + 1 || !is_first {
            return;
        }
        self.floor = match self.pending.first_behind(sequence) {
            Some(next) if next.consumer_sequence > 0 => Reached {
                consumer: next.consumer_sequence - 1,
                stream: next.stream_sequence - 1,
            },
            _ => Reached {
                consumer: first_delivery,
                stream: sequence,
            },
        };
        self.is_changed = true;
    }

    fn settle_if_nothing_pends(&mut self) -> bool {
        if !self.pending.is_empty() {
            return false;
        }
        let floor = self.delivered();
        if self.floor != floor {
            self.floor = floor;
            self.is_changed = true;
        }
        true
    }

    /// Everything up to a message is settled; returns false if it was already.
    ///
    /// What the delivery was counted as comes from a client, which may have it from before a reset, or have made it up.
    pub fn acknowledge_all(&mut self, sequence: u64, consumer_sequence: u64) -> bool {
        if consumer_sequence <= self.floor.consumer || sequence <= self.floor.stream {
            return false;
        }
        // Nothing of it is noted one by one: its record says how far the floor is.
        for entry in self.pending.drain_through(sequence) {
            self.census.leave(&entry);
        }
        self.floor = Reached {
            consumer: match consumer_sequence < self.next_consumer {
                true => consumer_sequence,
                false => self.deliveries_before(sequence),
            },
            stream: sequence,
        };
        self.is_changed = true;
        let above = self.exceeded.split_off(&(sequence + 1));
        if !self.exceeded.is_empty() {
            self.changed_wholly = true;
        }
        self.exceeded = above;
        self.assert_invariant();
        true
    }

    /// How many deliveries there were before the first that is pending after a message, which must itself be settled.
    fn deliveries_before(&self, sequence: u64) -> u64 {
        let all = self.next_consumer - 1;
        let next = self.pending.first_behind(sequence);
        let next = next.filter(|next| next.consumer_sequence > 0);
        next.map_or(all, |next| all.min(next.consumer_sequence - 1))
            .max(self.floor.consumer)
    }

    fn remove_pending(&mut self, sequence: u64) -> Option<PendingMessage> {
        let entry = self.pending.remove(sequence)?;
        self.census.leave(&entry);
        self.note(sequence);
        Some(entry)
    }

    /// Puts a message among those that are pending.
    fn insert(&mut self, entry: PendingMessage) {
        if let Some(before) = self.pending.get(entry.stream_sequence).copied() {
            self.census.leave(&before);
        }
        self.census.enter(&entry);
        self.pending.insert(entry);
        self.note(entry.stream_sequence);
    }

    /// Changes what is known of a pending message; returns it as it is then.
    fn change(
        &mut self,
        sequence: u64,
        change: impl FnOnce(&mut PendingMessage),
    ) -> Option<PendingMessage> {
        let entry = self.pending.get_mut(sequence)?;
        self.census.leave(entry);
        change(entry);
        self.census.enter(entry);
        let changed = *entry;
        self.note(sequence);
        Some(changed)
    }

    /// The receiver still works on a message: its wait restarts.
    pub fn touch(&mut self, sequence: u64, now_ns: i64) {
        self.change(sequence, |entry| entry.time_ns = now_ns);
    }

    /// Queues what has waited too long; `wait_ns` maps a number of deliveries to the time allowed. Returns when the
    /// next message will be due, and passes to `last` those that are never delivered again.
    pub fn expire(
        &mut self,
        now_ns: i64,
        wait_ns: impl Fn(u32) -> i64,
        deliveries_max: Option<u64>,
        mut last: impl FnMut(u64, u32),
    ) -> Option<i64> {
        let mut next_due: Option<i64> = None;
        let mut due = Vec::new();
        let delivered = |entry: &&PendingMessage| entry.standing == Standing::Delivered;
        for entry in self.pending.iter().filter(delivered) {
            let at = entry.time_ns.saturating_add(wait_ns(entry.deliveries));
            if at <= now_ns {
                due.push((entry.stream_sequence, entry.deliveries));
            } else {
                next_due = Some(next_due.map_or(at, |next| next.min(at)));
            }
        }
        for (sequence, deliveries) in due {
            if deliveries_max == Some(1) {
                self.give_up(sequence);
                last(sequence, deliveries);
            } else {
                self.requeue(sequence);
            }
        }
        next_due
    }

    /// Settles what is pending and not there any more; returns how many that were.
    pub fn drop_missing(&mut self, is_there: impl Fn(u64) -> bool) -> Vec<PendingMessage> {
        let missing: Vec<u64> = self
            .pending
            .iter()
            .map(|entry| entry.stream_sequence)
            .filter(|sequence| !is_there(*sequence))
            .collect();
        let mut dropped = Vec::new();
        for sequence in missing {
            dropped.extend(self.acknowledge(sequence));
        }
        let given_up: Vec<u64> = self.exceeded.keys().copied().collect();
        for sequence in given_up {
            if !is_there(sequence) {
                self.settle_exceeded(sequence);
            }
        }
        dropped
    }

    /// Nothing below a sequence is there any more, so nothing below it is waited for.
    pub fn settle_below(&mut self, first_stream: u64) {
        if self.pending.is_empty() {
            self.delivered_stream = self.delivered_stream.max(first_stream - 1);
            self.settle_if_nothing_pends();
        } else {
            // A message that was delivered under an earlier filter may still be open.
            let open = self.first_below(first_stream);
            let first = open.map_or(first_stream, |open| open.stream_sequence);
            let floor = self.floor.stream.max(first - 1);
            self.is_changed |= floor != self.floor.stream;
            self.floor.stream = floor;
        }
        self.assert_invariant();
    }

    /// The stream ends earlier than it did: forgets what was delivered beyond the end.
    pub fn cut(&mut self, last_stream: u64) {
        // One that has delivered nothing may begin beyond the end.
        if self.next_consumer == 1 || self.next_stream <= last_stream + 1 {
            return;
        }
        while let Some(beyond) = self.pending.first_behind(last_stream) {
            let sequence = beyond.stream_sequence;
            self.remove_pending(sequence);
        }
        self.exceeded.split_off(&(last_stream + 1));
        self.next_stream = last_stream + 1;
        self.settled_from = self.settled_from.min(self.next_stream);
        self.delivered_stream = self.delivered_stream.min(last_stream);
        self.floor.stream = self.floor.stream.min(last_stream);
        self.queue.retain(|sequence| sequence <= last_stream);
        self.changed_wholly = true;
        self.is_changed = true;
        self.settle_if_nothing_pends();
    }

    /// Restarts at a sequence.
    pub fn reset(&mut self, sequence: u64) {
        let out_of_order = self.out_of_order;
        *self = Self::new(self.policy, sequence);
        self.out_of_order = out_of_order;
    }

    /// Goes back to the floor, but for the count of deliveries.
    pub(in crate::consumer) fn rewind(&mut self) {
        let next_consumer = self.next_consumer;
        let exceeded = std::mem::take(&mut self.exceeded);
        let settled_from = self.settled_from;
        self.reset(self.floor.stream.saturating_add(1));
        self.settled_from = settled_from;
        self.exceeded = exceeded;
        self.next_consumer = next_consumer;
        self.floor.consumer = next_consumer - 1;
    }
}

#[path = "state_again.rs"]
mod again;
#[path = "state_changes.rs"]
mod changes;
#[path = "state_restoring.rs"]
mod restoring;
#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
