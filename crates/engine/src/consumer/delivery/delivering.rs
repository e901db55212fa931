//! Finds the next message and delivers it to the chosen client: first redeliveries, then messages passed over earlier,
//! then new ones. The second half of `Core`.
//!
//! Invariant: a message counts as delivered when it is in the `Outbound`, and everything in there is sent or taken back.

use std::sync::Arc;

use super::keys::PARKED_MAX;
use super::outbound::Outbound;
use super::push::Push;
use super::read_ahead::ReadAhead;
use crate::consumer::acknowledgement::delivered::DeliveryKind;
use crate::consumer::acknowledgement::state::Again;
use crate::consumer::advisory::AdvisoryPublisher;
use crate::consumer::core::{Core, PassContext};
use crate::consumer::pull::pulling::PullRound;
use crate::consumer::settings::{AckPolicy, PriorityPolicy};
use crate::storage::message::{Message, StoreError, StoreResult};
use crate::storage::store::walking::WalkStep;
use crate::wire::ack_subject::AckSubject;
use crate::wire::stored_headers;

/// Bytes that one pass sends at most.
const PASS_BYTES_MAX: usize = 1024 * 1024;

const PIN_ID: &[u8] = b"Nats-Pin-Id";
const MESSAGE_SIZE: &[u8] = b"Nats-Msg-Size";

/// Who gets a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DeliveryTarget {
    Push,
    /// The request at this place in the line.
    Pull(usize),
}

/// A stored message, wherever it comes from.
#[derive(Clone, Copy)]
struct StoredDelivery<'a> {
    sequence: u64,
    time_ns: i64,
    subject: &'a [u8],
    headers: &'a [u8],
    payload: &'a [u8],
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
    /// Delivers what can be delivered, `most` messages at most.
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
        self.recount(context.messages, now_ns, false);
        let settings = Arc::clone(&self.settings);
        reads.follow(&settings);
        let wanted = match self.push {
            Some(_) => most,
            None => self.pulling.wanted().min(most as u64) as usize,
        };
        loop {
            if out.len() >= most || out.byte_count() >= PASS_BYTES_MAX {
                return Ok(PassEnd::More);
            }
            if self.give_up_next(context, out) {
                continue;
            }
            if self.settings.priority_policy == PriorityPolicy::PinnedClient
                && !self.has_something()
            {
                // Nobody is chosen before there is something to choose for.
                self.pulling.end_impatient(out);
                return Ok(PassEnd::Done);
            }
            let Some(target) = self.choose(context, now_ns, out) else {
                if self.settings.priority_policy != PriorityPolicy::None {
                    self.pulling.end_unserved(out);
                }
                return Ok(PassEnd::Done);
            };
            if let Some(again) = self.deliveries.next_again(self.settings.max_deliver) {
                match again {
                    Again::Exceeded {
                        sequence,
                        deliveries,
                    } => self.give_up(context, sequence, deliveries, out),
                    Again::Deliver { sequence } => {
                        if self.deliveries.unqueue_terminated(sequence) {
                            // It only waits for its dead letter.
                            continue;
                        }
                        let Some(message) = reads.take_message(context.messages, sequence) else {
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
                most.saturating_sub(self.acks().pending_count())
            });
            if room == 0 && self.settings.ack_policy != AckPolicy::None {
                if self.sweep_front(context, out) {
                    continue;
                }
                if self.full_since_ns == 0 {
                    self.full_since_ns = now_ns;
                }
                if self.settings.ack_policy == AckPolicy::FlowControl {
                    if let Some(push) = &mut self.push {
                        push.request_flow_response(context.prefix, &mut self.random, out);
                    }
                }
                return Ok(PassEnd::Done);
            }
            self.full_since_ns = 0;
            let ready = self.deliveries.next_ready();
            if ready.is_none() && self.acks().parked_count() >= PARKED_MAX {
                return Ok(PassEnd::Done);
            }
            let next = match ready {
                Some(sequence) => Some((sequence, DeliveryKind::Parked)),
                None => self
                    .upcoming
                    .next_last(&mut self.deliveries)
                    .map(|sequence| (sequence, DeliveryKind::New)),
            };
            if let Some((sequence, kind)) = next {
                let Some(message) = reads.take_message(context.messages, sequence) else {
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

    /// Gives up a message that was delivered too often, once a request waits: whether that one may get messages makes no
    /// difference. True if there was one.
    fn give_up_next(&mut self, context: &PassContext<'_>, out: &mut Outbound) -> bool {
        if self.push.is_some() || self.pulling.is_empty() {
            return false;
        }
        let exceeded = self.deliveries.next_exceeded(self.settings.max_deliver);
        if let Some((sequence, deliveries)) = exceeded {
            self.give_up(context, sequence, deliveries, out);
        }
        exceeded.is_some()
    }

    /// Who gets the next message; requests that cannot have one any more are ended on the way.
    fn choose(
        &mut self,
        context: &PassContext<'_>,
        now_ns: i64,
        out: &mut Outbound,
    ) -> Option<DeliveryTarget> {
        if let Some(push) = &mut self.push {
            let is_ready = push.is_ready(context.account, &self.settings, now_ns);
            return is_ready.then_some(DeliveryTarget::Push);
        }
        let round = PullRound {
            settings: &self.settings,
            account: context.account,
            acks: self.deliveries.acks(),
            pending: self.upcoming.count(),
            now_ns,
        };
        let chosen = self.pulling.choose(&round, out);
        chosen.map(DeliveryTarget::Pull)
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
        let due_ns = self.upcoming.replay_due_ns();
        if due_ns.is_some_and(|due_ns| due_ns > now_ns) {
            return Ok(PassStep::Nothing);
        }
        let from = self.acks().next_stream;
        let step = walk.step(context.messages, filters, from, ahead, |record| {
            let stored = StoredDelivery {
                sequence: record.sequence,
                time_ns: record.time_ns,
                subject: record.subject,
                headers: record.headers,
                payload: record.payload,
            };
            let (sequence, subject) = (stored.sequence, stored.subject);
            if !self.upcoming.is_time(sequence, stored.time_ns, now_ns) {
                return false;
            }
            // It may have to wait for another of its key.
            if self.deliveries.park(sequence, subject, stored.headers) {
                return true;
            }
            let sent = self.send(context, &stored, DeliveryKind::New, target, now_ns, out);
            if !sent {
                self.deliveries.leave_key(sequence);
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
                self.deliveries.pass_over(last + 1);
                self.pulling.end_impatient(out);
                Ok(PassStep::Nothing)
            }
        }
    }

    fn has_something(&self) -> bool {
        self.upcoming.count() > 0 || self.acks().queued_count() > 0
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
                    self.upcoming.take_last();
                }
                let sent = self.send(context, &stored, kind, target, now_ns, out);
                if !sent && kind == DeliveryKind::New {
                    self.upcoming.put_back_last(sequence);
                }
            }
            Ok(None) | Err(StoreError::Damaged { .. }) => match kind {
                DeliveryKind::New => {
                    self.upcoming.take_last();
                    self.upcoming.take_one();
                }
                DeliveryKind::Again | DeliveryKind::Parked => {
                    self.deliveries.release_missing(sequence);
                }
            },
            Err(error) => return Err(error),
        }
        Ok(())
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
            self.upcoming.take_one();
        }
        let deliveries = match kind {
            DeliveryKind::Again => self
                .acks()
                .entry(stored.sequence)
                .map_or(0, |entry| entry.deliveries),
            DeliveryKind::New | DeliveryKind::Parked => 0,
        };
        let numbers = AckSubject {
            delivered_count: u64::from(deliveries) + 1,
            stream_sequence: stored.sequence,
            consumer_sequence: self.acks().next_consumer,
            time_ns: stored.time_ns,
            pending: self.upcoming.count(),
        };
        let mut reply = std::mem::take(&mut self.reply);
        reply.clear();
        context.prefix.encode(&numbers, &mut reply);
        let headers_only = self.settings.headers_only;
        let payload = if headers_only { b"" } else { stored.payload };
        let mut header = std::mem::take(&mut self.header);
        let sent = loop {
            self.pin(context, target, now_ns, out);
            self.extend_headers(stored, target, headers_only, &mut header);
            let header_block = if header.is_empty() {
                stored.headers
            } else {
                &header
            };
            let subject_bytes = match (target, &self.push) {
                (DeliveryTarget::Push, Some(push)) => push.subject().len(),
                (DeliveryTarget::Push, None) => 0,
                (DeliveryTarget::Pull(_), _) => stored.subject.len(),
            };
            let bytes = subject_bytes + reply.len() + header_block.len() + payload.len();
            if let DeliveryTarget::Pull(at) = target {
                let bytes_left = self.pulling.bytes_left(at);
                if bytes_left.is_some_and(|left| left < bytes as i64) {
                    self.pulling.refuse_large(at, out);
                    match self.choose(context, now_ns, out) {
                        Some(other) => target = other,
                        None => break false,
                    }
                    continue;
                }
            }
            let routes = match target {
                DeliveryTarget::Push => self.push.as_ref().map(Push::routes),
                DeliveryTarget::Pull(at) => self.pulling.routes(at),
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
            self.note_sent(context, stored.sequence, target, bytes as u64, now_ns, out);
            break true;
        };
        header.clear();
        self.header = header;
        self.reply = reply;
        if !sent {
            self.upcoming.invalidate();
            return false;
        }
        self.deliveries
            .note_delivered(stored.sequence, kind, &self.settings, now_ns);
        self.activity.delivered_ns = now_ns;
        true
    }

    /// Pins the chosen client, if the consumer pins clients: it gets everything from now on.
    fn pin(
        &mut self,
        context: &PassContext<'_>,
        target: DeliveryTarget,
        now_ns: i64,
        out: &mut Outbound,
    ) {
        if let DeliveryTarget::Pull(at) = target {
            let mut publisher = AdvisoryPublisher {
                context,
                random: &mut self.random,
                out,
            };
            self.pulling.pin(at, &self.settings, now_ns, &mut publisher);
        }
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
                Some(self.pulling.pinned().map_or("", |pin| &pin.id))
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

    /// A message is in the outbound: what that means for its receiver.
    fn note_sent(
        &mut self,
        context: &PassContext<'_>,
        sequence: u64,
        target: DeliveryTarget,
        bytes: u64,
        now_ns: i64,
        out: &mut Outbound,
    ) {
        match (target, &mut self.push) {
            (DeliveryTarget::Pull(at), _) => {
                let pulling = &mut self.pulling;
                self.deliveries
                    .note_receiver(sequence, || pulling.connection_id(at));
                pulling.note_sent(at, bytes, now_ns, out);
            }
            (DeliveryTarget::Push, Some(push)) => {
                if push.note_sent(&self.settings, bytes, now_ns) {
                    push.request_flow_response(context.prefix, &mut self.random, out);
                }
            }
            (DeliveryTarget::Push, None) => {}
        }
    }
}
