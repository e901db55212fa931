//! Everything a consumer knows, behind one lock: its parts, and what happens to several of them at once.
//!
//! Nothing is sent from here: messages to send go into an `Outbound`. Each part has its own invariant:
//! `DeliveredMessages` what was delivered and what became of it, `Upcoming` what is still to come, `Pulling` and `Push`
//! who gets it, `Activity` when it was used. The pass that brings them together is in `delivery/delivering`, the second
//! half of `Core`. Invariant: a consumer that is closed delivers nothing any more.

use std::sync::Arc;

use super::acknowledgement::acking::IncomingAck;
use super::acknowledgement::delivered::{DeliveredMessages, SideEffects};
use super::acknowledgement::pending_list::PendingMessage;
use super::acknowledgement::state::AckState;
use super::activity::Activity;
use super::advisory::{Advisory, AdvisoryPublisher};
use super::delivery::keys::Keys;
use super::delivery::outbound::{Outbound, Undelivered};
use super::delivery::push::{HeartbeatPosition, Push};
use super::delivery::status;
use super::delivery::upcoming::Upcoming;
use super::journal::state_record;
use super::journal::state_record::{Aside, SlicedRecord};
use super::pull::pulling::{Asked, Pin, PullRound, Pulling};
use super::settings::{AckPolicy, ConsumerSettings};
use crate::common::random::Random;
use crate::common::subject;
use crate::routing::account::Account;
use crate::storage::message::{Purge, StoreResult};
use crate::storage::store::committed::CommittedMessages;
use crate::wire::ack_subject::AckPrefix;
use crate::wire::stored_headers;

const LAST_CONSUMER: &[u8] = b"Nats-Last-Consumer";
const LAST_STREAM: &[u8] = b"Nats-Last-Stream";

const DELETED: &[u8] = b"Unacknowledged message was deleted";

/// What a consumer works on.
pub struct PassContext<'a> {
    pub messages: &'a CommittedMessages,
    pub account: &'a Arc<Account>,
    pub stream: &'a str,
    pub consumer: &'a str,
    pub domain: Option<&'a str>,
    pub prefix: &'a AckPrefix,
    /// What a message may have at most.
    pub message_bytes_max: u64,
    /// Whether the stream keeps what is given up.
    pub wants_dead_letters: bool,
}

pub struct Core {
    pub(super) settings: Arc<ConsumerSettings>,
    pub(super) deliveries: DeliveredMessages,
    pub(super) upcoming: Upcoming,
    pub(super) pulling: Pulling,
    pub(super) push: Option<Push>,
    pub(super) activity: Activity,
    /// Since when as much is under way as may be; 0 if it is not.
    pub(super) full_since_ns: i64,
    is_closed: bool,
    pub(super) random: Random,
    /// Room for the headers and the reply subject of the message that is sent next.
    pub(super) header: Vec<u8>,
    pub(super) reply: Vec<u8>,
}

impl Core {
    pub fn new(
        settings: Arc<ConsumerSettings>,
        restored: Option<(AckState, Aside, u64)>,
        context: &PassContext<'_>,
        seed: u64,
        now_ns: i64,
    ) -> StoreResult<Self> {
        let messages = context.messages;
        let (acks, upcoming) = match restored {
            Some((mut acks, aside, _)) => {
                acks.cut(messages.marks().last_sequence);
                let upcoming = Upcoming::resume(&settings, messages, &acks, aside);
                (acks, upcoming)
            }
            None => Upcoming::begin(&settings, messages)?,
        };
        let key = settings.key.clone();
        let keys = key.map(|key| Keys::restore(key, &acks, messages));
        let bytes_max = context.message_bytes_max;
        Ok(Self {
            push: Push::new(context.account, &settings, bytes_max, now_ns),
            settings,
            deliveries: DeliveredMessages::new(acks, keys, now_ns),
            upcoming,
            pulling: Pulling::default(),
            activity: Activity::new(now_ns),
            full_since_ns: 0,
            is_closed: false,
            random: Random::seeded(seed),
            header: Vec::new(),
            reply: Vec::new(),
        })
    }

    pub fn settings(&self) -> &Arc<ConsumerSettings> {
        &self.settings
    }

    /// What was delivered, and what of that is acknowledged.
    pub fn acks(&self) -> &AckState {
        self.deliveries.acks()
    }

    pub fn deliveries(&mut self) -> &mut DeliveredMessages {
        &mut self.deliveries
    }

    pub fn pulling(&mut self) -> &mut Pulling {
        &mut self.pulling
    }

    /// The client of a group that gets everything.
    pub fn pinned(&self) -> Option<&Pin> {
        self.pulling.pinned()
    }

    pub fn push(&self) -> Option<&Push> {
        self.push.as_ref()
    }

    pub fn activity(&self) -> &Activity {
        &self.activity
    }

    pub fn full_since_ns(&self) -> i64 {
        self.full_since_ns
    }

    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Delivers nothing any more.
    pub fn close(&mut self) {
        self.is_closed = true;
    }

    /// Whether a client could get a message.
    pub fn has_demand(&self) -> bool {
        self.push.is_some() || !self.pulling.is_empty()
    }

    /// Other settings from now on; where it is has nothing to do with them.
    pub fn update(
        &mut self,
        settings: Arc<ConsumerSettings>,
        context: &PassContext<'_>,
        now_ns: i64,
    ) {
        let before = std::mem::replace(&mut self.settings, Arc::clone(&settings));
        let bytes_max = context.message_bytes_max;
        if before.filters != settings.filters {
            self.upcoming.invalidate();
        }
        if before.deliver_subject != settings.deliver_subject {
            self.push = Push::new(context.account, &settings, bytes_max, now_ns);
            self.deliveries.requeue_all();
        }
        if before.rate_limit_bps != settings.rate_limit_bps {
            if let Some(push) = &mut self.push {
                push.set_rate(&settings, bytes_max);
            }
        }
        if before.priority_policy != settings.priority_policy {
            self.pulling.forget_pin();
        }
        self.deliveries.look_soon(now_ns);
        self.note_activity(now_ns);
    }

    /// Restarts at a sequence, or after the floor if that is 0; returns the sequence.
    pub fn reset(&mut self, sequence: u64, now_ns: i64) -> u64 {
        let sequence = match sequence {
            0 => self.acks().floor.stream + 1,
            sequence => sequence,
        };
        self.deliveries.reset(sequence);
        self.upcoming.reset();
        self.activity.reset_deliveries();
        self.note_activity(now_ns);
        sequence
    }

    /// Writes what has changed in the state, or all of it; true if that was all of it.
    pub fn write_state(&mut self, number: u64, wholly: bool, record: &mut Vec<u8>) -> bool {
        let aside = self.upcoming.aside();
        state_record::encode(
            self.deliveries.acks_to_write(),
            aside,
            number,
            wholly,
            record,
        )
    }

    /// Begins to write all of a large state.
    pub fn begin_record(&mut self, number: u64) -> SlicedRecord {
        let aside = self.upcoming.aside();
        SlicedRecord::begin(self.deliveries.acks_to_write(), aside, number)
    }

    pub fn is_paused(&self, now_ns: i64) -> bool {
        self.settings
            .pause_until_ns
            .is_some_and(|until_ns| until_ns > now_ns)
    }

    /// Brings the number of messages to come up to date, and returns it.
    pub fn recount(&mut self, messages: &CommittedMessages, now_ns: i64, exactly: bool) -> u64 {
        let (filters, acks) = (&self.settings.filters, self.deliveries.acks());
        self.upcoming
            .recount(messages, filters, acks, now_ns, exactly);
        self.upcoming.count()
    }

    /// Takes a pull request in; what is wrong with it is said at once.
    pub fn pull(
        &mut self,
        context: &PassContext<'_>,
        asked: &Asked<'_>,
        now_ns: i64,
        out: &mut Outbound,
    ) {
        if self.push.is_some() {
            self.header.clear();
            status::push_based(&mut self.header);
            return out.status(None, asked.reply, b"", &self.header);
        }
        let Some(request) = self.pulling.read(asked, out) else {
            return;
        };
        self.note_activity(now_ns);
        let is_paused = self.is_paused(now_ns);
        let Self {
            settings,
            deliveries,
            upcoming,
            pulling,
            ..
        } = self;
        let acks = deliveries.acks();
        let round = PullRound {
            settings,
            account: context.account,
            acks,
            pending: upcoming.count(),
            now_ns,
        };
        let there = || {
            let filters = &settings.filters;
            upcoming.recount(context.messages, filters, acks, now_ns, true);
            match is_paused {
                true => 0,
                false => upcoming.count() + acks.queued_count() as u64,
            }
        };
        pulling.admit(&round, asked, request, there, out);
    }

    /// Takes an acknowledgement. Returns the pull request that came with it.
    pub fn acknowledge<'a>(
        &mut self,
        context: &PassContext<'_>,
        ack: &IncomingAck<'a>,
        now_ns: i64,
        out: &mut Outbound,
    ) -> Option<&'a [u8]> {
        if self.deliveries.concerns(ack) {
            self.note_activity(now_ns);
            if ack.settles() {
                self.activity.acknowledged_ns = now_ns;
            }
            let mut publisher = AdvisoryPublisher {
                context,
                random: &mut self.random,
                out,
            };
            self.deliveries
                .acknowledge(&self.settings, ack, now_ns, &mut publisher);
        }
        ack.request()
    }

    /// The receiver of a push consumer has answered how far it is.
    pub fn hear_receiver(&mut self, subject: &[u8], header: &[u8]) {
        let was_asked = self
            .push
            .as_mut()
            .is_some_and(|push| push.accept_flow_response(subject));
        if !was_asked || self.settings.ack_policy != AckPolicy::FlowControl {
            return;
        }
        let number = |name| {
            let text = std::str::from_utf8(stored_headers::value(header, name)?).ok()?;
            text.parse::<u64>().ok()
        };
        if let (Some(consumer), Some(stream)) = (number(LAST_CONSUMER), number(LAST_STREAM)) {
            if stream < self.acks().next_stream {
                self.deliveries.release_through(stream, consumer);
            }
        }
    }

    /// Messages reached nobody. Returns where the stream is delivered from once more, if what counted as settled when it was sent does not now.
    pub fn take_back(&mut self, undelivered: &Undelivered) -> Option<u64> {
        self.upcoming.invalidate();
        let is_beside = self.upcoming.has_lasts();
        self.deliveries
            .take_back(undelivered, self.settings.ack_policy, is_beside)
    }

    /// What the clock asks for, before anything is delivered.
    pub fn look_at_clock(&mut self, context: &PassContext<'_>, now_ns: i64, out: &mut Outbound) {
        if now_ns >= self.deliveries.due_ns() {
            let mut given_up = Vec::new();
            self.deliveries
                .expire(&self.settings, now_ns, |sequence, deliveries| {
                    given_up.push((sequence, deliveries));
                });
            for (sequence, deliveries) in given_up {
                self.give_up(context, sequence, deliveries, out);
            }
        }
        let round = PullRound {
            settings: &self.settings,
            account: context.account,
            acks: self.deliveries.acks(),
            pending: self.upcoming.count(),
            now_ns,
        };
        self.pulling.look_at_clock(&round, out);
        self.look_at_push(context, now_ns, out);
        if self.pulling.is_pin_due(now_ns) {
            self.unpin(context, "timeout", out);
        }
    }

    fn look_at_push(&mut self, context: &PassContext<'_>, now_ns: i64, out: &mut Outbound) {
        let Some(push) = &mut self.push else {
            return;
        };
        let acks = self.deliveries.acks();
        push.look(context.account, &self.settings);
        let position = HeartbeatPosition {
            consumer_sequence: acks.delivered().consumer,
            stream_sequence: acks.next_stream - 1,
        };
        let is_told = push.heartbeat(&self.settings, position, now_ns, out);
        let waits_for_acks =
            self.settings.ack_policy == AckPolicy::FlowControl && acks.pending_count() > 0;
        if is_told && waits_for_acks {
            push.request_flow_response(context.prefix, &mut self.random, out);
        }
    }

    /// A message has used up its deliveries.
    pub(super) fn give_up(
        &mut self,
        context: &PassContext<'_>,
        sequence: u64,
        deliveries: u32,
        out: &mut Outbound,
    ) {
        let event = Advisory::MaxDeliveries {
            stream_sequence: sequence,
            deliveries: u64::from(deliveries),
        };
        self.publish_advisory(context, &event, out);
        self.deliveries.give_up(sequence);
    }

    fn publish_advisory(
        &mut self,
        context: &PassContext<'_>,
        event: &Advisory<'_>,
        out: &mut Outbound,
    ) {
        let mut publisher = AdvisoryPublisher {
            context,
            random: &mut self.random,
            out,
        };
        publisher.publish(event);
    }

    pub fn unpin(&mut self, context: &PassContext<'_>, reason: &str, out: &mut Outbound) {
        let mut publisher = AdvisoryPublisher {
            context,
            random: &mut self.random,
            out,
        };
        self.pulling.unpin(&self.settings, reason, &mut publisher);
    }

    /// Messages were purged. A consumer whose every message was goes on behind them, any other one that takes some of them from the first message there
    /// is.
    pub fn purged(&mut self, context: &PassContext<'_>, purge: &Purge) {
        let marks = context.messages.marks();
        self.upcoming.invalidate();
        if !self.takes_any(purge.filter.as_deref()) {
            self.drop_missing(context);
            return;
        }
        let filters = &self.settings.filters;
        let takes_part = match &purge.filter {
            None => true,
            Some(filter) => {
                !filters.is_empty() && filters.iter().all(|own| subject::covers(filter, own))
            }
        };
        let next = match (&purge.filter, takes_part) {
            (Some(_), true) => {
                let first = filters
                    .iter()
                    .filter_map(|own| context.messages.next_match(own, marks.first_sequence))
                    .min();
                first.unwrap_or(marks.last_sequence + 1)
            }
            _ => marks.first_sequence,
        };
        self.deliveries.pass_over(next);
        self.drop_missing(context);
        self.deliveries.settle_below(next);
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

    /// Settles what is pending and gone, and reports it in advisories. True if there was something.
    pub fn sweep(&mut self, context: &PassContext<'_>, out: &mut Outbound) -> bool {
        self.upcoming.invalidate();
        let dropped = self.drop_missing(context);
        for entry in &dropped {
            self.tell_deleted(context, entry, out);
        }
        !dropped.is_empty()
    }

    /// The same for what was removed from the front of the stream, as limits do: quickly, without a look at everything that is pending.
    pub(super) fn sweep_front(&mut self, context: &PassContext<'_>, out: &mut Outbound) -> bool {
        let first = context.messages.marks().first_sequence;
        let mut has_settled = false;
        while let Some(entry) = self.acks().first_below(first) {
            self.deliveries.release_missing(entry.stream_sequence);
            self.tell_deleted(context, &entry, out);
            has_settled = true;
        }
        has_settled
    }

    fn drop_missing(&mut self, context: &PassContext<'_>) -> Vec<PendingMessage> {
        let dropped = self.deliveries.drop_missing(context.messages);
        self.upcoming
            .retain_lasts(|sequence| context.messages.contains(sequence));
        dropped
    }

    /// One message was deleted; an advisory reports it if it was pending.
    pub fn message_deleted(
        &mut self,
        context: &PassContext<'_>,
        sequence: u64,
        out: &mut Outbound,
    ) {
        self.upcoming.invalidate();
        self.upcoming.retain_lasts(|last| last != sequence);
        self.pending_deleted(context, sequence, out);
    }

    /// A message that may be pending is gone; an advisory reports it if it was.
    pub fn pending_deleted(
        &mut self,
        context: &PassContext<'_>,
        sequence: u64,
        out: &mut Outbound,
    ) {
        let Some(entry) = self.acks().entry(sequence).copied() else {
            return;
        };
        self.deliveries.release_missing(sequence);
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
        self.publish_advisory(context, &event, out);
    }

    /// When the clock has something for it next; `None` is never.
    pub fn next_due_ns(&self, now_ns: i64) -> Option<i64> {
        let settings = &self.settings;
        let later = |due_ns: i64| (due_ns > now_ns).then_some(due_ns);
        let ever = |due_ns: i64| (due_ns < i64::MAX).then_some(due_ns);
        let push = self.push.as_ref();
        let due = [
            self.pulling.next_due_ns(),
            ever(self.deliveries.due_ns()),
            settings.pause_until_ns.and_then(later),
            push.and_then(|push| push.next_due_ns(settings, now_ns)),
            self.upcoming.replay_due_ns().and_then(later),
            ever(self.activity.check_ns()),
            ever(self.deliveries.letters_due_ns()),
        ];
        due.into_iter().flatten().min()
    }

    /// Checks whether the consumer has a receiver; true if it has had none for too long.
    pub fn is_abandoned(&mut self, context: &PassContext<'_>, now_ns: i64) -> bool {
        let threshold_ns = self.settings.inactive_threshold_ns;
        if self.push.as_mut().is_some_and(Push::take_departure) {
            self.activity.note_departure(now_ns);
        }
        if !self.activity.begin_check(now_ns) || threshold_ns == 0 {
            return false;
        }
        let is_there = match &self.push {
            Some(push) => push.is_bound(),
            None => {
                self.pulling.drop_without_interest(context.account);
                !self.pulling.is_empty()
            }
        };
        // A message that was delivered may still be acknowledged.
        let acknowledged_by_ns = match self.push {
            Some(_) => None,
            None => self
                .acks()
                .latest_deadline_ns(|deliveries| self.settings.wait_ns(deliveries)),
        };
        self.activity
            .end_check(is_there, threshold_ns, acknowledged_by_ns, now_ns)
    }

    /// Takes what others must learn: what the consumer knows has changed, or a client waits for that to be on disk.
    pub fn take_effects(&mut self) -> SideEffects {
        self.deliveries.take_effects()
    }

    /// Checks whether the subject of a push consumer has a subscriber.
    pub fn look_at_receiver(&mut self, context: &PassContext<'_>) -> bool {
        let push = self.push.as_mut();
        push.is_some_and(|push| push.look(context.account, &self.settings))
    }

    /// The consumer was used just now.
    fn note_activity(&mut self, now_ns: i64) {
        self.activity
            .note(self.settings.inactive_threshold_ns, now_ns);
    }
}
