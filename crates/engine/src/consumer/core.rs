//! Everything a consumer knows, behind one lock: what it has delivered, who waits, what the clock is to remind it of.
//!
//! Nothing is sent from here: what is to be sent goes into an `Outbound`. `choosing` finds the next receiver, `delivering` the next message, `pulling` takes
//! requests in and `acking` acknowledgements. Invariant: what waits for the journal in `confirmations` is answered when the state is on disk.

use std::collections::VecDeque;
use std::sync::Arc;

use super::acknowledgement::state::AckState;
use super::activity::Activity;
use super::advisory;
use super::advisory::Advisory;
use super::consumer::HostStream;
use super::dead_letters::PendingDeadLetters;
use super::delivery::keys::Keys;
use super::delivery::outbound::Outbound;
use super::delivery::pending_count::PendingCount;
use super::delivery::push::Push;
use super::delivery::rate_limit::RateLimit;
use super::delivery::status;
use super::journal::state_record::Aside;
use super::pull::waiting::WaitingPulls;
use super::settings::{AckPolicy, ConsumerSettings, DeliverPolicy, ReplayPolicy};
use crate::common::random::Random;
use crate::routing::account::Account;
use crate::storage::message::StoreResult;
use crate::storage::store::Store;
use crate::wire::ack_subject::AckPrefix;

/// What a consumer works on.
pub struct PassContext<'a> {
    pub store: &'a Store,
    pub account: &'a Arc<Account>,
    pub stream: &'a str,
    pub consumer: &'a str,
    pub domain: Option<&'a str>,
    pub prefix: &'a AckPrefix,
    /// What a message may have at most.
    pub message_bytes_max: u64,
    pub host: &'a dyn HostStream,
}

/// The last message of each subject as of a moment, which are delivered before everything that came after it.
pub struct Lasts {
    pub sequences: VecDeque<u64>,
    pub until: u64,
}

/// Delivering with the pauses there were when the messages came.
pub struct Replay {
    /// Up to here.
    pub until: u64,
    /// When the message before was stored.
    pub previous_time_ns: i64,
    /// The next one is delivered then.
    pub due_ns: i64,
}

/// One client of a group gets everything until it has not been heard of for a while.
pub struct Pin {
    pub id: String,
    pub since_ns: i64,
    pub due_ns: i64,
}

pub struct Core {
    pub settings: Arc<ConsumerSettings>,
    pub acks: AckState,
    pub waiting: WaitingPulls,
    pub push: Option<Push>,
    pub count: PendingCount,
    pub lasts: Option<Lasts>,
    pub replay: Option<Replay>,
    pub pin: Option<Pin>,
    pub keys: Option<Keys>,
    pub random: Random,
    /// When something pending may have waited too long; never later than that.
    pub ack_due_ns: i64,
    /// Since when as much is under way as may be; 0 if it is not.
    pub full_since_ns: i64,
    pub activity: Activity,
    /// Replies to acknowledgements that are given when the state is on disk.
    pub confirmations: Vec<Box<[u8]>>,
    /// Settled messages, from the first to the last, for streams that keep only what is needed.
    pub released: Vec<(u64, u64)>,
    pub letters: PendingDeadLetters,
    /// Something was given up since somebody looked.
    pub has_dead_letters: bool,
    pub is_closed: bool,
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
        let (acks, lasts) = match restored {
            Some((mut acks, aside, _)) => {
                acks.cut(context.store.marks().last_sequence);
                let lasts = Self::lasts_left(&settings, context.store, &acks, aside);
                (acks, lasts)
            }
            None => Self::begin(&settings, context.store)?,
        };
        let replay = match settings.replay_policy {
            ReplayPolicy::Original => Some(Replay {
                until: context.store.marks().last_sequence,
                previous_time_ns: 0,
                due_ns: 0,
            }),
            ReplayPolicy::Instant => None,
        };
        let push = Self::push_of(&settings, context, now_ns);
        let keys = settings
            .key
            .clone()
            .map(|key| Keys::restore(key, &acks, context.store));
        Ok(Self {
            settings,
            acks,
            waiting: WaitingPulls::default(),
            push,
            count: PendingCount::outdated(),
            lasts,
            replay,
            pin: None,
            keys,
            random: Random::seeded(seed),
            ack_due_ns: now_ns,
            full_since_ns: 0,
            activity: Activity::new(now_ns),
            confirmations: Vec::new(),
            released: Vec::new(),
            letters: PendingDeadLetters::default(),
            has_dead_letters: false,
            is_closed: false,
            header: Vec::new(),
            reply: Vec::new(),
        })
    }

    fn push_of(
        settings: &ConsumerSettings,
        context: &PassContext<'_>,
        now_ns: i64,
    ) -> Option<Push> {
        let subject = settings.deliver_subject.as_ref()?;
        let rate = (settings.rate_limit_bps > 0)
            .then(|| RateLimit::new(settings.rate_limit_bps, context.message_bytes_max));
        let mut push = Push::new(context.account, settings, subject.as_bytes(), rate);
        push.heartbeat_due_ns = now_ns.saturating_add(settings.idle_heartbeat_ns);
        push.look(context.account, settings);
        Some(push)
    }

    /// Where a new consumer begins.
    fn begin(settings: &ConsumerSettings, store: &Store) -> StoreResult<(AckState, Option<Lasts>)> {
        let marks = store.marks();
        let first = marks.first_sequence.max(1);
        let end = marks.last_sequence + 1;
        let mut lasts = None;
        let start = match settings.deliver_policy {
            DeliverPolicy::All => first,
            DeliverPolicy::New => end,
            DeliverPolicy::Last if settings.filters.is_empty() => marks.last_sequence,
            DeliverPolicy::Last => {
                let last = settings
                    .filters
                    .iter()
                    .filter_map(|filter| store.last_match(filter));
                last.max().unwrap_or(first)
            }
            DeliverPolicy::StartSequence(sequence) => sequence.max(first),
            DeliverPolicy::StartTime(time_ns) => {
                let start = store.sequence_at(time_ns)?;
                match settings.filters.as_slice() {
                    [filter] => store.next_match(filter, start).unwrap_or(start),
                    _ => start,
                }
            }
            DeliverPolicy::LastPerSubject => {
                let found = last_of_each(settings, store, marks.last_sequence);
                let start = found.front().copied().unwrap_or(marks.last_sequence);
                lasts = Some(Lasts {
                    sequences: found,
                    until: marks.last_sequence,
                });
                start
            }
        };
        let start = match settings.deliver_policy {
            DeliverPolicy::StartSequence(_) => start,
            _ => start.min(end),
        };
        let state = AckState::new(settings.ack_policy, start.max(first));
        Ok((state, lasts.filter(|lasts| !lasts.sequences.is_empty())))
    }

    /// What is left to deliver of the last messages of each subject.
    fn lasts_left(
        settings: &ConsumerSettings,
        store: &Store,
        acks: &AckState,
        aside: Aside,
    ) -> Option<Lasts> {
        if aside.lasts_until == 0 {
            return None;
        }
        let mut sequences = last_of_each(settings, store, aside.lasts_until);
        sequences.retain(|sequence| *sequence >= acks.next_stream);
        Some(Lasts {
            sequences,
            until: aside.lasts_until,
        })
    }

    pub fn aside(&self) -> Aside {
        Aside {
            lasts_until: self.lasts.as_ref().map_or(0, |lasts| lasts.until),
        }
    }

    /// Other settings from now on; where it is has nothing to do with them.
    pub fn update(
        &mut self,
        settings: Arc<ConsumerSettings>,
        context: &PassContext<'_>,
        now_ns: i64,
    ) {
        let before = std::mem::replace(&mut self.settings, Arc::clone(&settings));
        if before.filters != settings.filters {
            self.count.invalidate();
        }
        if before.deliver_subject != settings.deliver_subject {
            self.push = Self::push_of(&settings, context, now_ns);
            self.acks.requeue_all();
        }
        if before.rate_limit_bps != settings.rate_limit_bps {
            if let Some(push) = &mut self.push {
                push.rate = (settings.rate_limit_bps > 0)
                    .then(|| RateLimit::new(settings.rate_limit_bps, context.message_bytes_max));
                push.rate_due_ns = 0;
            }
        }
        if before.priority_policy != settings.priority_policy {
            self.pin = None;
        }
        // Deadlines may come earlier now.
        self.ack_due_ns = now_ns;
        self.note_activity(now_ns);
    }

    /// Begins anew at a sequence, or behind the floor if that is 0; returns the sequence.
    pub fn reset(&mut self, sequence: u64, now_ns: i64) -> u64 {
        let sequence = match sequence {
            0 => self.acks.floor.stream + 1,
            sequence => sequence,
        };
        self.acks.reset(sequence);
        self.lasts = None;
        self.letters.clear();
        if let Some(keys) = &mut self.keys {
            keys.clear();
        }
        self.activity.reset_deliveries();
        self.count.invalidate();
        self.note_activity(now_ns);
        sequence
    }

    pub fn is_paused(&self, now_ns: i64) -> bool {
        self.settings
            .pause_until_ns
            .is_some_and(|until_ns| until_ns > now_ns)
    }

    /// Brings the number of messages to come up to date.
    pub fn recount(&mut self, store: &Store, now_ns: i64, exactly: bool) {
        let parked = self.acks.parked_count() as u64;
        let (from, beside) = match &self.lasts {
            Some(lasts) => (
                (lasts.until + 1).max(self.acks.next_stream),
                parked + lasts.sequences.len() as u64,
            ),
            None => (self.acks.next_stream, parked),
        };
        let filters = &self.settings.filters;
        self.count
            .count(store, filters, from, beside, now_ns, exactly);
    }

    /// How long a message that was delivered so often may wait for its acknowledgement.
    pub fn ack_wait_ns(&self, deliveries: u32) -> i64 {
        let waits = &self.settings.back_off_ns;
        match waits.len() {
            0 => self.settings.ack_wait_ns,
            length => waits[(deliveries.max(1) as usize - 1).min(length - 1)],
        }
    }

    /// What the clock asks for, before anything is delivered.
    pub fn look_at_clock(&mut self, context: &PassContext<'_>, now_ns: i64, out: &mut Outbound) {
        if now_ns >= self.ack_due_ns {
            self.expire_pending(context, now_ns, out);
        }
        if self
            .waiting
            .next_due_ns()
            .is_some_and(|due_ns| due_ns <= now_ns)
        {
            let mut header = std::mem::take(&mut self.header);
            self.waiting
                .expire(now_ns, context.account, out, &mut header);
            // Whatever they wait for, they do not wait so long.
            self.waiting.end_impatient(out, &mut header);
            self.waiting.end_unserved(out, &mut header);
            header.clear();
            let delivered = self.acks.delivered();
            let scanned = self.acks.next_stream - 1;
            status::idle_heartbeat(&mut header, delivered.consumer, scanned, None);
            self.waiting.heartbeat(now_ns, &header, out);
            self.header = header;
        }
        self.look_at_push(context, now_ns, out);
        if self.pin.as_ref().is_some_and(|pin| pin.due_ns <= now_ns) {
            self.unpin(context, "timeout", out);
        }
    }

    fn expire_pending(&mut self, context: &PassContext<'_>, now_ns: i64, out: &mut Outbound) {
        self.ack_due_ns = i64::MAX;
        let waits = matches!(
            self.settings.ack_policy,
            AckPolicy::Explicit | AckPolicy::All
        );
        if !waits {
            return;
        }
        for sequence in self.letters.terminated() {
            self.acks.touch(sequence, now_ns);
        }
        let settings = Arc::clone(&self.settings);
        let wait_ns = |deliveries: u32| match settings.back_off_ns.len() {
            0 => settings.ack_wait_ns,
            length => settings.back_off_ns[(deliveries.max(1) as usize - 1).min(length - 1)],
        };
        let mut given_up = Vec::new();
        let next = self.acks.expire(
            now_ns,
            wait_ns,
            settings.max_deliver,
            |sequence, deliveries| given_up.push((sequence, deliveries)),
        );
        self.ack_due_ns = next.unwrap_or(i64::MAX);
        for (sequence, deliveries) in given_up {
            self.give_up(context, sequence, deliveries, out);
        }
    }

    /// A message has been delivered as often as it may be.
    pub fn give_up(
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
        self.tell(context, &event, out);
        self.has_dead_letters = true;
        if let Some(keys) = &mut self.keys {
            keys.settled(sequence, &mut self.acks);
        }
    }

    /// Tells whoever listens.
    pub fn tell(&mut self, context: &PassContext<'_>, event: &Advisory<'_>, out: &mut Outbound) {
        let subject = advisory::subject(context.stream, context.consumer, event);
        let (routes, _) = context.account.find(subject.as_bytes());
        if routes.plain.is_empty() && routes.groups.is_empty() {
            return;
        }
        let mut payload = Vec::new();
        let about = advisory::AdvisorySource {
            stream: context.stream,
            consumer: context.consumer,
            account: &context.account.name,
            domain: context.domain,
        };
        advisory::write(&mut payload, &about, event, &mut self.random);
        out.plain(subject.as_bytes(), &payload);
    }

    fn look_at_push(&mut self, context: &PassContext<'_>, now_ns: i64, out: &mut Outbound) {
        let settings = Arc::clone(&self.settings);
        let delivered = self.acks.delivered();
        let scanned = self.acks.next_stream - 1;
        let Some(push) = &mut self.push else {
            return;
        };
        let was_bound = push.is_bound;
        let is_bound = push.look(context.account, &settings);
        if was_bound && !is_bound {
            self.activity.note_departure(now_ns);
        }
        if settings.idle_heartbeat_ns == 0 || now_ns < push.heartbeat_due_ns {
            return;
        }
        push.heartbeat_due_ns = now_ns.saturating_add(settings.idle_heartbeat_ns);
        if !push.is_bound {
            return;
        }
        self.header.clear();
        let stalled = push.flow.as_ref().and_then(|flow| flow.question());
        status::idle_heartbeat(&mut self.header, delivered.consumer, scanned, stalled);
        let subject = push.interest.subject.clone();
        out.status(Some(push.interest.routes()), &subject, b"", &self.header);
        let waits_for_acks =
            settings.ack_policy == AckPolicy::FlowControl && self.acks.pending_count() > 0;
        if waits_for_acks {
            self.ask_receiver(context, out);
        }
    }

    /// Asks the receiver how far it is, unless it was asked already.
    pub fn ask_receiver(&mut self, context: &PassContext<'_>, out: &mut Outbound) {
        let Some(push) = &mut self.push else {
            return;
        };
        let Some(flow) = push.flow.as_mut().filter(|flow| !flow.has_asked()) else {
            return;
        };
        let question = flow.begin(context.prefix, &mut self.random);
        self.header.clear();
        status::flow_control_request(&mut self.header);
        let subject = &push.interest.subject;
        out.status(
            Some(push.interest.routes()),
            subject,
            question,
            &self.header,
        );
    }

    pub fn unpin(&mut self, context: &PassContext<'_>, reason: &str, out: &mut Outbound) {
        self.pin = None;
        let group = self.settings.priority_groups.first().cloned();
        let event = Advisory::Unpinned {
            group: group.as_deref().unwrap_or_default(),
            reason,
        };
        self.tell(context, &event, out);
    }

    /// When the clock has something for it next; `None` is never.
    pub fn next_due_ns(&self, now_ns: i64) -> Option<i64> {
        let settings = &self.settings;
        let later = |due_ns: i64| (due_ns > now_ns).then_some(due_ns);
        let ever = |due_ns: i64| (due_ns < i64::MAX).then_some(due_ns);
        let heartbeats = settings.idle_heartbeat_ns > 0;
        let push = self.push.as_ref();
        let due = [
            self.waiting.next_due_ns(),
            ever(self.ack_due_ns),
            settings.pause_until_ns.and_then(later),
            self.pin.as_ref().map(|pin| pin.due_ns),
            push.filter(|_| heartbeats)
                .map(|push| push.heartbeat_due_ns),
            push.and_then(|push| later(push.rate_due_ns)),
            self.replay.as_ref().and_then(|replay| later(replay.due_ns)),
            ever(self.activity.check_ns()),
            ever(self.letters.due_ns),
        ];
        due.into_iter().flatten().min()
    }

    /// Looks whether somebody is there; true if nobody has been for too long.
    pub fn is_abandoned(&mut self, context: &PassContext<'_>, now_ns: i64) -> bool {
        let threshold_ns = self.settings.inactive_threshold_ns;
        if !self.activity.begin_check(now_ns) || threshold_ns == 0 {
            return false;
        }
        let is_there = match &self.push {
            Some(push) => push.is_bound,
            None => {
                self.waiting.drop_without_interest(context.account);
                !self.waiting.is_empty()
            }
        };
        // Whoever got something may still acknowledge it.
        let acknowledged_by_ns = match self.push {
            Some(_) => None,
            None => self
                .acks
                .latest_deadline_ns(|deliveries| self.ack_wait_ns(deliveries)),
        };
        self.activity
            .end_check(is_there, threshold_ns, acknowledged_by_ns, now_ns)
    }

    /// Somebody is there, or was until just now.
    pub fn note_activity(&mut self, now_ns: i64) {
        self.activity
            .note(self.settings.inactive_threshold_ns, now_ns);
    }
}

fn last_of_each(settings: &ConsumerSettings, store: &Store, until: u64) -> VecDeque<u64> {
    let everything = [b">".to_vec()];
    let filters = match settings.filters.as_slice() {
        [] => &everything[..],
        filters => filters,
    };
    let mut sequences: Vec<u64> = Vec::new();
    for filter in filters {
        sequences.extend(store.last_of_each_up_to(filter, until, usize::MAX));
    }
    sequences.sort_unstable();
    sequences.dedup();
    sequences.into()
}
