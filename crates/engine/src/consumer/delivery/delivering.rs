//! Finding the next message and handing it to whoever is chosen: first what is to be delivered again, then what was passed over, then what is new.
//!
//! Invariant: a message counts as delivered when it is in the `Outbound`, and everything in there is sent or taken back.

use std::sync::Arc;

use super::choosing::DeliveryTarget;
use super::keys::PARKED_MAX;
use super::outbound::Outbound;
use super::read_ahead::ReadAhead;
use super::status;
use crate::consumer::acknowledgement::state::Again;
use crate::consumer::core::{Core, PassContext};
use crate::consumer::pull::waiting;
use crate::consumer::settings::{AckPolicy, PriorityPolicy};
use crate::storage::message::{Message, StoreError, StoreResult};
use crate::storage::store::walking::WalkStep;
use crate::wire::ack_subject::AckSubject;
use crate::wire::stored_headers;

/// Bytes that one pass sends at most.
const PASS_BYTES_MAX: usize = 1024 * 1024;

const PIN_ID: &[u8] = b"Nats-Pin-Id";
const MESSAGE_SIZE: &[u8] = b"Nats-Msg-Size";

/// Pauses up to so long are not kept when messages are replayed with theirs.
const PAUSE_MIN_NS: i64 = 1_000_000;

/// A stored message, wherever it comes from.
#[derive(Clone, Copy)]
struct StoredDelivery<'a> {
    sequence: u64,
    time_ns: i64,
    subject: &'a [u8],
    headers: &'a [u8],
    payload: &'a [u8],
}

/// What a delivery counts as.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DeliveryKind {
    New,
    Parked,
    Again,
}

/// A message that was looked up by its sequence.
struct Known {
    sequence: u64,
    message: StoreResult<Option<Message>>,
    kind: DeliveryKind,
}

/// Why a pass has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PassEnd {
    /// There may be more to do at once.
    More,
    /// Until something changes, there is nothing.
    Done,
    /// A message must be read first, which nobody should do who holds the core.
    Unread,
}

/// What one step of a pass has come to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PassStep {
    Sent,
    Nothing,
    Unread,
}

impl Core {
    /// Delivers what can be delivered, so many messages at most.
    pub fn deliver(
        &mut self,
        context: &PassContext<'_>,
        reads: &mut ReadAhead,
        now_ns: i64,
        most: usize,
        out: &mut Outbound,
    ) -> StoreResult<PassEnd> {
        if self.is_paused(now_ns) {
            return Ok(PassEnd::Done);
        }
        self.recount(context.store, now_ns, false);
        let settings = Arc::clone(&self.settings);
        reads.follow(&settings);
        let wanted = match self.push {
            Some(_) => most,
            None => self.waiting.wanted().min(most as u64) as usize,
        };
        loop {
            if out.len() >= most || out.byte_count() >= PASS_BYTES_MAX {
                return Ok(PassEnd::More);
            }
            if self.settings.priority_policy == PriorityPolicy::PinnedClient
                && !self.has_something()
            {
                // Nobody is chosen before there is something to choose for.
                self.end_impatient(out);
                return Ok(PassEnd::Done);
            }
            let Some(target) = self.choose(context, now_ns, out) else {
                if self.settings.priority_policy != PriorityPolicy::None {
                    let mut header = std::mem::take(&mut self.header);
                    self.waiting.end_unserved(out, &mut header);
                    self.header = header;
                }
                return Ok(PassEnd::Done);
            };
            if let Some(again) = self.acks.next_again(self.settings.max_deliver) {
                match again {
                    Again::Exceeded {
                        sequence,
                        deliveries,
                    } => self.give_up(context, sequence, deliveries, out),
                    // It only waits for its dead letter.
                    Again::Deliver { sequence } if self.letters.is_terminated(sequence) => {
                        self.acks.unqueue(sequence);
                    }
                    Again::Deliver { sequence } => {
                        let Some(message) = reads.take_message(context.store, sequence) else {
                            return Ok(PassEnd::Unread);
                        };
                        let known = Known {
                            sequence,
                            message,
                            kind: DeliveryKind::Again,
                        };
                        self.deliver_known(context, known, target, now_ns, out)?;
                    }
                }
                continue;
            }
            let room = self.settings.max_ack_pending.map_or(usize::MAX, |most| {
                most.saturating_sub(self.acks.pending_count())
            });
            if room == 0 && self.settings.ack_policy != AckPolicy::None {
                if self.sweep_front(context, out) {
                    continue;
                }
                if self.full_since_ns == 0 {
                    self.full_since_ns = now_ns;
                }
                if self.settings.ack_policy == AckPolicy::FlowControl {
                    self.ask_receiver(context, out);
                }
                return Ok(PassEnd::Done);
            }
            self.full_since_ns = 0;
            let ready = self
                .keys
                .as_mut()
                .and_then(|keys| keys.next_ready(&self.acks));
            if ready.is_none() && self.acks.parked_count() >= PARKED_MAX {
                return Ok(PassEnd::Done);
            }
            let next = match ready {
                Some(sequence) => Some((sequence, DeliveryKind::Parked)),
                None => self
                    .next_last()
                    .map(|sequence| (sequence, DeliveryKind::New)),
            };
            if let Some((sequence, kind)) = next {
                let Some(message) = reads.take_message(context.store, sequence) else {
                    return Ok(PassEnd::Unread);
                };
                let known = Known {
                    sequence,
                    message,
                    kind,
                };
                self.deliver_known(context, known, target, now_ns, out)?;
                continue;
            }
            let ahead = wanted.saturating_sub(out.len()).max(1).min(room);
            let filters = &settings.filters;
            match self.deliver_new(context, filters, reads, target, ahead, now_ns, out)? {
                PassStep::Sent => {}
                PassStep::Nothing => return Ok(PassEnd::Done),
                PassStep::Unread => return Ok(PassEnd::Unread),
            }
        }
    }

    /// The next of the last messages of each subject, as long as there is one.
    fn next_last(&mut self) -> Option<u64> {
        let lasts = self.lasts.as_mut()?;
        let next = lasts.sequences.front().copied();
        if next.is_none() {
            let until = lasts.until;
            self.lasts = None;
            self.acks.pass_over(until + 1);
        }
        next
    }

    /// Delivers the next message of the stream, if there is one and its time has come.
    #[allow(
        clippy::too_many_arguments,
        reason = "what one step of a pass works with"
    )]
    fn deliver_new(
        &mut self,
        context: &PassContext<'_>,
        filters: &[Vec<u8>],
        reads: &mut ReadAhead,
        target: DeliveryTarget,
        ahead: usize,
        now_ns: i64,
        out: &mut Outbound,
    ) -> StoreResult<PassStep> {
        let walk = &mut reads.walk;
        if self
            .replay
            .as_ref()
            .is_some_and(|replay| replay.due_ns > now_ns)
        {
            return Ok(PassStep::Nothing);
        }
        let from = self.acks.next_stream;
        let step = context.store.step(walk, filters, from, ahead, |record| {
            let stored = StoredDelivery {
                sequence: record.sequence,
                time_ns: record.time_ns,
                subject: record.subject,
                headers: record.headers,
                payload: record.payload,
            };
            if !self.is_time(&stored, now_ns) {
                return false;
            }
            if self.is_parked(&stored) {
                return true;
            }
            let sent = self.send(context, &stored, DeliveryKind::New, target, now_ns, out);
            if !sent {
                if let Some(keys) = &mut self.keys {
                    keys.leave(stored.sequence);
                }
            }
            sent
        })?;
        match step {
            WalkStep::Message(true) => Ok(PassStep::Sent),
            WalkStep::Message(false) => {
                walk.forget();
                Ok(PassStep::Nothing)
            }
            WalkStep::Unread => Ok(PassStep::Unread),
            WalkStep::End(last) => {
                walk.forget();
                self.acks.pass_over(last + 1);
                self.end_impatient(out);
                Ok(PassStep::Nothing)
            }
        }
    }

    fn has_something(&self) -> bool {
        self.count.value() > 0 || self.acks.queued_count() > 0
    }

    fn end_impatient(&mut self, out: &mut Outbound) {
        let mut header = std::mem::take(&mut self.header);
        self.waiting.end_impatient(out, &mut header);
        self.header = header;
    }

    /// Whether a message that is replayed with its pauses is due.
    fn is_time(&mut self, stored: &StoredDelivery<'_>, now_ns: i64) -> bool {
        let Some(replay) = &mut self.replay else {
            return true;
        };
        if stored.sequence > replay.until {
            self.replay = None;
            return true;
        }
        let pause_ns = match replay.previous_time_ns {
            0 => 0,
            previous => stored.time_ns - previous,
        };
        let was_awaited = replay.due_ns > 0;
        if pause_ns > PAUSE_MIN_NS && !was_awaited {
            replay.due_ns = now_ns + pause_ns;
            return false;
        }
        replay.due_ns = 0;
        replay.previous_time_ns = stored.time_ns;
        true
    }

    /// Whether a message has to wait for another of its key.
    fn is_parked(&mut self, stored: &StoredDelivery<'_>) -> bool {
        let Some(keys) = &mut self.keys else {
            return false;
        };
        let Some(key) = keys.of(stored.subject, stored.headers) else {
            return false;
        };
        if keys.enter(&key, stored.sequence) {
            return false;
        }
        self.acks.park(stored.sequence);
        true
    }

    /// Delivers a message that was looked up by its sequence.
    fn deliver_known(
        &mut self,
        context: &PassContext<'_>,
        known: Known,
        target: DeliveryTarget,
        now_ns: i64,
        out: &mut Outbound,
    ) -> StoreResult<()> {
        let Known {
            sequence,
            message,
            kind,
        } = known;
        match message {
            Ok(Some(message)) => {
                let stored = StoredDelivery {
                    sequence,
                    time_ns: message.time_ns,
                    subject: message.subject(),
                    headers: message.headers(),
                    payload: message.payload(),
                };
                if kind == DeliveryKind::New {
                    self.lasts_taken();
                }
                if self.send(context, &stored, kind, target, now_ns, out) {
                    if kind == DeliveryKind::Parked {
                        if let Some(keys) = &mut self.keys {
                            keys.take_ready();
                        }
                    }
                } else if kind == DeliveryKind::New {
                    if let Some(lasts) = &mut self.lasts {
                        lasts.sequences.push_front(sequence);
                    }
                }
            }
            Ok(None) | Err(StoreError::Damaged { .. }) => match kind {
                DeliveryKind::New => {
                    self.lasts_taken();
                    self.count.take_one();
                }
                DeliveryKind::Again | DeliveryKind::Parked => self.settle_missing(sequence),
            },
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn lasts_taken(&mut self) {
        if let Some(lasts) = &mut self.lasts {
            lasts.sequences.pop_front();
        }
    }

    /// A message that was to be delivered is not there any more.
    pub(in crate::consumer) fn settle_missing(&mut self, sequence: u64) {
        self.acks.acknowledge(sequence);
        if let Some(keys) = &mut self.keys {
            keys.settled(sequence, &mut self.acks);
        }
    }

    /// Puts a message into the outbound; false if nobody who waits can take it.
    fn send(
        &mut self,
        context: &PassContext<'_>,
        stored: &StoredDelivery<'_>,
        kind: DeliveryKind,
        target: DeliveryTarget,
        now_ns: i64,
        out: &mut Outbound,
    ) -> bool {
        let mut target = target;
        if kind != DeliveryKind::Again {
            self.count.take_one();
        }
        let deliveries = match kind {
            DeliveryKind::Again => self
                .acks
                .entry(stored.sequence)
                .map_or(0, |entry| entry.deliveries),
            DeliveryKind::New | DeliveryKind::Parked => 0,
        };
        let numbers = AckSubject {
            delivered_count: u64::from(deliveries) + 1,
            stream_sequence: stored.sequence,
            consumer_sequence: self.acks.next_consumer,
            time_ns: stored.time_ns,
            pending: self.count.value(),
        };
        let mut reply = std::mem::take(&mut self.reply);
        reply.clear();
        context.prefix.encode(&numbers, &mut reply);
        let headers_only = self.settings.headers_only;
        let payload = if headers_only { b"" } else { stored.payload };
        let sent = loop {
            self.pin(context, target, now_ns, out);
            let mut header = std::mem::take(&mut self.header);
            self.extend_headers(stored, target, headers_only, &mut header);
            let header_block = if header.is_empty() {
                stored.headers
            } else {
                &header
            };
            let subject_bytes = match target {
                DeliveryTarget::Push => self
                    .push
                    .as_ref()
                    .map_or(0, |push| push.interest.subject.len()),
                DeliveryTarget::Pull(_) => stored.subject.len(),
            };
            let bytes = subject_bytes + reply.len() + header_block.len() + payload.len();
            let is_too_large = match target {
                DeliveryTarget::Pull(at) => self
                    .waiting
                    .get(at)
                    .and_then(|request| request.bytes)
                    .is_some_and(|left| left < bytes as i64),
                DeliveryTarget::Push => false,
            };
            if !is_too_large {
                let routes = match target {
                    DeliveryTarget::Push => self.push.as_ref().map(|push| push.interest.routes()),
                    DeliveryTarget::Pull(at) => self
                        .waiting
                        .get(at)
                        .map(|request| request.interest.routes()),
                };
                if let Some(routes) = routes {
                    out.message(
                        routes,
                        stored.sequence,
                        stored.subject,
                        &reply,
                        header_block,
                        payload,
                    );
                }
                header.clear();
                self.header = header;
                self.note_receiver(stored.sequence, target);
                self.note_sent(context, target, bytes as u64, now_ns, out);
                break true;
            }
            header.clear();
            self.header = header;
            self.refuse_large(target, out);
            match self.choose(context, now_ns, out) {
                Some(other) => target = other,
                None => break false,
            }
        };
        self.reply = reply;
        if !sent {
            self.count.invalidate();
            return false;
        }
        self.count_delivery(stored.sequence, kind, now_ns);
        true
    }

    fn count_delivery(&mut self, sequence: u64, kind: DeliveryKind, now_ns: i64) {
        let deliveries = match kind {
            DeliveryKind::New => {
                self.acks.deliver(sequence, now_ns);
                1
            }
            DeliveryKind::Parked => {
                self.acks.deliver_parked(sequence, now_ns);
                1
            }
            DeliveryKind::Again => self.acks.redeliver(sequence, now_ns).1,
        };
        if self.settings.ack_policy == AckPolicy::None {
            self.released.push((sequence, sequence));
        } else {
            let due_ns = now_ns.saturating_add(self.ack_wait_ns(deliveries));
            self.ack_due_ns = self.ack_due_ns.min(due_ns);
        }
        self.activity.delivered_ns = now_ns;
    }

    /// The headers of a message with what the consumer says in them; empty if that is nothing.
    fn extend_headers(
        &self,
        stored: &StoredDelivery<'_>,
        target: DeliveryTarget,
        headers_only: bool,
        header: &mut Vec<u8>,
    ) {
        header.clear();
        let pin = match (self.settings.priority_policy, target) {
            (PriorityPolicy::PinnedClient, DeliveryTarget::Pull(_)) => {
                Some(self.pin.as_ref().map_or("", |pin| &pin.id))
            }
            _ => None,
        };
        if pin.is_none() && !headers_only {
            return;
        }
        header.extend_from_slice(stored.headers);
        if headers_only {
            let mut digits = itoa::Buffer::new();
            let size = digits.format(stored.payload.len());
            stored_headers::add(header, 0, MESSAGE_SIZE, size.as_bytes());
        }
        if let Some(pin) = pin {
            stored_headers::add(header, 0, PIN_ID, pin.as_bytes());
        }
    }

    fn refuse_large(&mut self, target: DeliveryTarget, out: &mut Outbound) {
        let DeliveryTarget::Pull(at) = target else {
            return;
        };
        if let Some(request) = self.waiting.remove(at) {
            if self.pin.as_ref().is_some_and(|pin| pin.id == request.id) {
                self.pin = None;
            }
            self.header.clear();
            let (messages, bytes) = request.left();
            status::message_too_large(&mut self.header, messages, bytes);
            waiting::reply(out, &request, &self.header);
        }
    }

    /// Remembers who has a message, where its key is held until that one is done.
    fn note_receiver(&mut self, sequence: u64, target: DeliveryTarget) {
        let (Some(keys), DeliveryTarget::Pull(at)) = (&mut self.keys, target) else {
            return;
        };
        let connection_id = self.waiting.get(at).map(|request| request.connection_id);
        keys.received(sequence, connection_id.unwrap_or(0));
    }

    /// Hands on what clients have that have left; true if there is something.
    pub fn hand_over(&mut self, is_connected: impl Fn(u64) -> bool) -> bool {
        let left = self.keys.as_ref().map(|keys| keys.left(is_connected));
        let left = left.unwrap_or_default();
        for sequence in &left {
            self.acks.requeue(*sequence);
            if let Some(keys) = &mut self.keys {
                keys.received(*sequence, 0);
            }
        }
        !left.is_empty()
    }

    fn note_sent(
        &mut self,
        context: &PassContext<'_>,
        target: DeliveryTarget,
        bytes: u64,
        now_ns: i64,
        out: &mut Outbound,
    ) {
        if let DeliveryTarget::Pull(at) = target {
            let mut header = std::mem::take(&mut self.header);
            self.waiting.served(at, bytes, now_ns, out, &mut header);
            self.header = header;
            return;
        }
        let heartbeat_ns = self.settings.idle_heartbeat_ns;
        let Some(push) = &mut self.push else {
            return;
        };
        push.heartbeat_due_ns = now_ns.saturating_add(heartbeat_ns);
        if let Some(rate) = &mut push.rate {
            push.rate_due_ns = now_ns.saturating_add(rate.charge(now_ns, bytes));
        }
        let asks = push.flow.as_mut().is_some_and(|flow| flow.sent(bytes));
        if asks {
            self.ask_receiver(context, out);
        }
    }
}

#[path = "undelivered.rs"]
mod undelivered;
