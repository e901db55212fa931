//! The pull side of a consumer: requests that are accepted and wait, which of them is next, and the client that is pinned.
//!
//! Invariants: a request is answered with a status, or waits, or its consumer is gone; a chosen client is subscribed, has
//! time left, and may get a message under the rules of its group; at most one client is pinned.

use std::sync::Arc;

use super::request;
use super::request::PullRequest;
use super::waiting;
use super::waiting::{PullWait, WaitingPulls};
use crate::config::options::API_LEVEL;
use crate::consumer::acknowledgement::state::AckState;
use crate::consumer::advisory::{Advisory, AdvisoryPublisher};
use crate::consumer::delivery::interest::Interest;
use crate::consumer::delivery::outbound::Outbound;
use crate::consumer::delivery::status;
use crate::consumer::settings::{ConsumerSettings, PriorityPolicy};
use crate::routing::account::Account;
use crate::routing::tree::Routes;
use crate::wire::stored_headers;

const REQUIRED_API_LEVEL: &[u8] = b"Nats-Required-Api-Level";

const PRIORITY_MAX: i64 = 9;

/// Letters of a pin.
const PIN_LETTERS: usize = 22;

/// A request as it came.
pub struct Asked<'a> {
    pub reply: &'a [u8],
    pub header: &'a [u8],
    pub body: &'a [u8],
    pub connection_id: u64,
}

/// One client of a group gets everything until it has been silent for a while.
pub struct Pin {
    pub id: String,
    pub since_ns: i64,
    due_ns: i64,
}

/// What requests are looked at with.
#[derive(Clone, Copy)]
pub struct PullRound<'a> {
    pub settings: &'a ConsumerSettings,
    pub account: &'a Arc<Account>,
    pub acks: &'a AckState,
    /// Messages to come, as of the last count.
    pub pending: u64,
    pub now_ns: i64,
}

#[derive(Default)]
pub struct Pulling {
    waiting: WaitingPulls,
    pin: Option<Pin>,
    /// Room for the status that is sent next.
    header: Vec<u8>,
}

impl Pulling {
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Messages all requests together may still get.
    pub fn wanted(&self) -> u64 {
        self.waiting.wanted()
    }

    pub fn pinned(&self) -> Option<&Pin> {
        self.pin.as_ref()
    }

    /// Reads a request; one that is not understood is refused at once.
    pub fn read<'a>(&mut self, asked: &Asked<'a>, out: &mut Outbound) -> Option<PullRequest<'a>> {
        self.header.clear();
        if !is_level_served(asked.header) {
            status::api_level_required(&mut self.header);
        } else {
            match request::read(asked.body) {
                Ok(request) => return Some(request),
                Err(bad) => status::bad_request(&mut self.header, &bad.reason),
            }
        }
        out.status(None, asked.reply, b"", &self.header);
        None
    }

    /// Admits a request, or answers at once what is wrong with it. `there` is how many messages could be delivered now.
    pub fn admit(
        &mut self,
        round: &PullRound<'_>,
        asked: &Asked<'_>,
        request: PullRequest<'_>,
        there: impl FnOnce() -> u64,
        out: &mut Outbound,
    ) {
        let mut block = std::mem::take(&mut self.header);
        block.clear();
        if self.refuses(round, &request, there, &mut block, out) {
            out.status(None, asked.reply, b"", &block);
        } else if self.waiting.len() < round.settings.max_waiting {
            self.push(round, asked, request);
        }
        self.header = block;
    }

    /// True if a request is refused with the status in `block`.
    fn refuses(
        &mut self,
        round: &PullRound<'_>,
        request: &PullRequest<'_>,
        there: impl FnOnce() -> u64,
        block: &mut Vec<u8>,
        out: &mut Outbound,
    ) -> bool {
        let PullRound {
            settings, now_ns, ..
        } = *round;
        if exceeds(settings, request, block)
            || self.breaks_group_rules(settings, request, now_ns, block)
        {
            return true;
        }
        if self.waiting.len() >= settings.max_waiting {
            self.waiting.expire(now_ns, round.account, out, block);
            block.clear();
        }
        if request.no_wait && self.has_nothing_for(request, there(), block) {
            return true;
        }
        let is_refused =
            self.waiting.len() >= settings.max_waiting && request.idle_heartbeat_ns <= 0;
        if is_refused {
            status::waiting_exceeded(block);
        }
        is_refused
    }

    fn push(&mut self, round: &PullRound<'_>, asked: &Asked<'_>, request: PullRequest<'_>) {
        let now_ns = round.now_ns;
        let heartbeat_ns = request.idle_heartbeat_ns.max(0);
        self.waiting.push(PullWait {
            interest: Interest::new(round.account, asked.reply),
            batch: request.batch,
            bytes: (request.max_bytes > 0).then_some(request.max_bytes),
            expires_ns: (request.expires_ns != 0)
                .then(|| now_ns.saturating_add(request.expires_ns)),
            no_wait: request.no_wait,
            heartbeat_ns,
            heartbeat_due_ns: now_ns.saturating_add(heartbeat_ns),
            delivered: 0,
            min_pending: request.min_pending.max(0) as u64,
            min_ack_pending: request.min_ack_pending.max(0) as u64,
            id: request.id.into_owned(),
            names_group: request.is_object,
            priority: match round.settings.priority_policy {
                PriorityPolicy::Prioritized if !request.is_object => u8::MAX,
                PriorityPolicy::Prioritized => request.priority as u8,
                _ => 0,
            },
            connection_id: asked.connection_id,
        });
        debug_assert!(self.waiting.len() <= round.settings.max_waiting);
    }

    fn breaks_group_rules(
        &mut self,
        settings: &ConsumerSettings,
        request: &PullRequest<'_>,
        now_ns: i64,
        block: &mut Vec<u8>,
    ) -> bool {
        let policy = settings.priority_policy;
        if !request.is_object {
            return false;
        }
        let mut refuse = |reason: &str| {
            status::bad_request(block, reason);
            true
        };
        let bounds = [request.min_pending, request.min_ack_pending];
        if policy != PriorityPolicy::Overflow && bounds != [0; 2] {
            return refuse(status::reason::NOT_OVERFLOW);
        }
        if policy != PriorityPolicy::PinnedClient && !request.id.is_empty() {
            return refuse(status::reason::NOT_PINNED_CLIENT);
        }
        if !(0..=PRIORITY_MAX).contains(&request.priority) {
            return refuse(status::reason::PRIORITY_OUT_OF_RANGE);
        }
        if policy != PriorityPolicy::None {
            if request.group.is_empty() {
                return refuse(status::reason::GROUP_MISSING);
            }
            let mut groups = settings.priority_groups.iter();
            if !groups.any(|group| **group == *request.group) {
                return refuse(status::reason::GROUP_INVALID);
            }
        }
        if let Some(pin) = self.pin.as_mut().filter(|_| !request.id.is_empty()) {
            if pin.id != *request.id {
                status::pin_mismatch(block);
                return true;
            }
            pin.due_ns = now_ns.saturating_add(settings.priority_timeout_ns);
        }
        false
    }

    fn has_nothing_for(&self, request: &PullRequest<'_>, there: u64, block: &mut Vec<u8>) -> bool {
        if there == 0 && request.expires_ns == 0 {
            status::no_messages(block);
            return true;
        }
        if there > 0 && there < self.waiting.wanted() {
            status::requests_pending(block);
            return true;
        }
        false
    }

    /// The request that gets the next message; those that cannot have one any more are ended on the way.
    pub fn choose(&mut self, round: &PullRound<'_>, out: &mut Outbound) -> Option<usize> {
        let mut at = 0;
        loop {
            let request = self.waiting.get_mut(at)?;
            if request
                .expires_ns
                .is_some_and(|expires_ns| expires_ns <= round.now_ns)
            {
                self.end(at, out, status::request_timeout);
                continue;
            }
            request.interest.refresh(round.account);
            if !request.interest.is_heard() {
                self.waiting.remove(at);
                continue;
            }
            match round.settings.priority_policy {
                PriorityPolicy::None | PriorityPolicy::Prioritized => return Some(at),
                PriorityPolicy::Overflow => {
                    let ack_pending = round.acks.pending_count() as u64;
                    let again = u64::from(round.acks.queued_count() > 0);
                    let bound = |least: u64, there: u64| least > 0 && there >= least;
                    let is_free = request.min_pending == 0 && request.min_ack_pending == 0;
                    if is_free
                        || bound(request.min_pending, round.pending + again)
                        || bound(request.min_ack_pending, ack_pending)
                    {
                        return Some(at);
                    }
                    at += 1;
                }
                PriorityPolicy::PinnedClient => {
                    let is_pinned = self.pin.as_ref().map(|pin| pin.id == request.id);
                    match (is_pinned, request.id.is_empty()) {
                        (Some(true), _) | (None, true) => return Some(at),
                        (Some(false), true) => at += 1,
                        (_, false) => self.end(at, out, status::wrong_pin),
                    }
                }
            }
        }
    }

    /// Ends a request with a status that says what is left of it.
    fn end(&mut self, at: usize, out: &mut Outbound, write: impl Fn(&mut Vec<u8>, i64, i64)) {
        if let Some(request) = self.waiting.remove(at) {
            self.header.clear();
            let (messages, bytes) = request.left();
            write(&mut self.header, messages, bytes);
            waiting::reply(out, &request, &self.header);
        }
    }

    /// Pins the chosen client, which gets everything from now on, unless one is pinned or its request names no group.
    pub fn pin(
        &mut self,
        at: usize,
        settings: &ConsumerSettings,
        now_ns: i64,
        publisher: &mut AdvisoryPublisher<'_>,
    ) {
        if settings.priority_policy != PriorityPolicy::PinnedClient || self.pin.is_some() {
            return;
        }
        let request = self.waiting.get_mut(at);
        let Some(request) = request.filter(|request| request.names_group) else {
            return;
        };
        let id = publisher.random.text(PIN_LETTERS);
        request.id.clone_from(&id);
        let group = settings.priority_groups.first();
        publisher.publish(&Advisory::Pinned {
            group: group.map_or("", |group| group),
            pinned_id: &id,
        });
        self.pin = Some(Pin {
            id,
            since_ns: now_ns,
            due_ns: now_ns.saturating_add(settings.priority_timeout_ns),
        });
    }

    /// Lets another client be chosen.
    pub fn unpin(
        &mut self,
        settings: &ConsumerSettings,
        reason: &str,
        publisher: &mut AdvisoryPublisher<'_>,
    ) {
        self.pin = None;
        let group = settings.priority_groups.first();
        publisher.publish(&Advisory::Unpinned {
            group: group.map_or("", |group| group),
            reason,
        });
    }

    /// The groups are others now.
    pub fn forget_pin(&mut self) {
        self.pin = None;
    }

    pub fn is_pin_due(&self, now_ns: i64) -> bool {
        self.pin.as_ref().is_some_and(|pin| pin.due_ns <= now_ns)
    }

    /// Bytes that a request may still get, if it named a limit.
    pub fn bytes_left(&self, at: usize) -> Option<i64> {
        self.waiting.get(at)?.bytes
    }

    pub fn routes(&self, at: usize) -> Option<&Arc<Routes>> {
        let request = self.waiting.get(at)?;
        Some(request.interest.routes())
    }

    /// Who asked; 0 if that is not known.
    pub fn connection_id(&self, at: usize) -> u64 {
        let request = self.waiting.get(at);
        request.map_or(0, |request| request.connection_id)
    }

    /// A request has got a message.
    pub fn note_sent(&mut self, at: usize, bytes: u64, now_ns: i64, out: &mut Outbound) {
        self.waiting
            .served(at, bytes, now_ns, out, &mut self.header);
    }

    /// Ends a request that the next message is too large for.
    pub fn refuse_large(&mut self, at: usize, out: &mut Outbound) {
        let id = self.waiting.get(at).map(|request| &request.id);
        if self.pin.as_ref().map(|pin| &pin.id) == id {
            self.pin = None;
        }
        self.end(at, out, status::message_too_large);
    }

    /// Ends requests that wait for nothing, though there is nothing they may have.
    pub fn end_unserved(&mut self, out: &mut Outbound) {
        self.waiting.end_unserved(out, &mut self.header);
    }

    /// Ends requests that do not wait for more than was there.
    pub fn end_impatient(&mut self, out: &mut Outbound) {
        self.waiting.end_impatient(out, &mut self.header);
    }

    /// Ends all requests with a status.
    pub fn end_all(&mut self, out: &mut Outbound, header: impl FnMut(&PullWait, &mut Vec<u8>)) {
        self.waiting.end_all(out, header);
    }

    /// Forgets requests whom nobody listens to any more.
    pub fn drop_without_interest(&mut self, account: &Account) {
        self.waiting.drop_without_interest(account);
    }

    /// What the clock asks for, if it does.
    pub fn look_at_clock(&mut self, round: &PullRound<'_>, out: &mut Outbound) {
        let due_ns = self.waiting.next_due_ns();
        if due_ns.is_none_or(|due_ns| due_ns > round.now_ns) {
            return;
        }
        let header = &mut self.header;
        self.waiting
            .expire(round.now_ns, round.account, out, header);
        // Whatever they wait for, they do not wait so long.
        self.waiting.end_impatient(out, header);
        self.waiting.end_unserved(out, header);
        header.clear();
        let delivered = round.acks.delivered();
        let scanned = round.acks.next_stream - 1;
        status::idle_heartbeat(header, delivered.consumer, scanned, None);
        self.waiting.heartbeat(round.now_ns, header, out);
    }

    /// When the clock has to look at requests, or at the pin, next.
    pub fn next_due_ns(&self) -> Option<i64> {
        let pin = self.pin.as_ref().map(|pin| pin.due_ns);
        self.waiting.next_due_ns().into_iter().chain(pin).min()
    }
}

fn exceeds(settings: &ConsumerSettings, request: &PullRequest<'_>, block: &mut Vec<u8>) -> bool {
    let is_over = |asked: i64, most: i64| most > 0 && asked > most;
    if is_over(request.batch, settings.max_batch) {
        status::batch_exceeded(block, settings.max_batch);
        return true;
    }
    if is_over(request.expires_ns, settings.max_expires_ns) {
        status::expires_exceeded(block, settings.max_expires_ns);
        return true;
    }
    if is_over(request.max_bytes, settings.max_bytes) {
        status::bytes_exceeded(block, settings.max_bytes);
        return true;
    }
    false
}

fn is_level_served(header: &[u8]) -> bool {
    if header.is_empty() {
        return true;
    }
    stored_headers::value(header, REQUIRED_API_LEVEL).is_none_or(|text| {
        let level = std::str::from_utf8(text)
            .ok()
            .and_then(|text| text.parse::<i64>().ok());
        text.is_empty() || level.is_some_and(|level| level <= i64::from(API_LEVEL))
    })
}
