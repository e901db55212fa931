//! A consumer that sends to a subject without being asked: whether there is a subscriber, how much may be under way,
//! and when a heartbeat is due.
//!
//! With flow control, bytes under way are counted, and the receiver is asked now and then to confirm how far it has
//! come. Invariant: at most one such question is open.

use std::sync::Arc;

use super::interest::Interest;
use super::outbound::Outbound;
use super::rate_limit::RateLimit;
use super::status;
use crate::common::random::Random;
use crate::consumer::settings::ConsumerSettings;
use crate::routing::account::Account;
use crate::routing::tree::Routes;
use crate::wire::ack_subject::AckPrefix;

/// Bytes that may be under way at most, and at first.
const WINDOW_BYTES_MAX: u64 = 32 * 1024 * 1024;
const WINDOW_BYTES_FIRST: u64 = 2 * 1024 * 1024;

pub struct Push {
    interest: Interest,
    is_bound: bool,
    /// The receiver has left since `take_departure`.
    has_departed: bool,
    heartbeat_due_ns: i64,
    rate: Option<RateLimit>,
    /// Nothing is sent before.
    rate_due_ns: i64,
    flow: Option<FlowControl>,
    /// Room for the status that is sent next.
    header: Vec<u8>,
}

/// How far a consumer is, as its heartbeats say.
#[derive(Debug, Clone, Copy)]
pub struct HeartbeatPosition {
    pub consumer_sequence: u64,
    /// Everything up to here was looked at.
    pub stream_sequence: u64,
}

/// Flow control.
struct FlowControl {
    window_bytes: u64,
    under_way_bytes: u64,
    question: Option<Question>,
}

struct Question {
    subject: Vec<u8>,
    bytes: u64,
}

impl Push {
    /// `None` if the consumer waits to be asked.
    pub fn new(
        account: &Account,
        settings: &ConsumerSettings,
        message_bytes_max: u64,
        now_ns: i64,
    ) -> Option<Self> {
        let subject = settings.deliver_subject.as_ref()?;
        let mut push = Self {
            interest: Interest::new(account, subject.as_bytes()),
            is_bound: false,
            has_departed: false,
            heartbeat_due_ns: now_ns.saturating_add(settings.idle_heartbeat_ns),
            rate: rate_limit(settings, message_bytes_max),
            rate_due_ns: 0,
            flow: settings.flow_control.then(FlowControl::new),
            header: Vec::new(),
        };
        push.look(account, settings);
        Some(push)
    }

    /// Another rate from now on.
    pub fn set_rate(&mut self, settings: &ConsumerSettings, message_bytes_max: u64) {
        self.rate = rate_limit(settings, message_bytes_max);
        self.rate_due_ns = 0;
    }

    /// Checks whether there is a subscriber.
    pub fn look(&mut self, account: &Account, settings: &ConsumerSettings) -> bool {
        self.interest.refresh(account);
        let group = settings.deliver_group.as_ref().map(String::as_bytes);
        let was_bound = self.is_bound;
        self.is_bound = self.interest.is_bound(group);
        self.has_departed = !self.is_bound && (was_bound || self.has_departed);
        self.is_bound
    }

    /// Whether the receiver has left since this was asked last: any check may be the first to notice.
    pub fn take_departure(&mut self) -> bool {
        std::mem::take(&mut self.has_departed)
    }

    /// Whether there was a subscriber at the last check.
    pub fn is_bound(&self) -> bool {
        self.is_bound
    }

    /// Whether a message may be sent now.
    pub fn is_ready(
        &mut self,
        account: &Account,
        settings: &ConsumerSettings,
        now_ns: i64,
    ) -> bool {
        self.look(account, settings) && !self.is_limited(now_ns) && !self.is_stalled()
    }

    /// Whether its rate does not let it send yet.
    pub fn is_limited(&self, now_ns: i64) -> bool {
        self.rate_due_ns > now_ns
    }

    /// Whether as much is under way as its receiver may have.
    pub fn is_stalled(&self) -> bool {
        self.flow.as_ref().is_some_and(FlowControl::is_full)
    }

    pub fn subject(&self) -> &[u8] {
        &self.interest.subject
    }

    pub fn routes(&self) -> &Arc<Routes> {
        self.interest.routes()
    }

    /// A message was sent; true if it is time to ask the receiver how far it is.
    pub fn note_sent(&mut self, settings: &ConsumerSettings, bytes: u64, now_ns: i64) -> bool {
        self.heartbeat_due_ns = now_ns.saturating_add(settings.idle_heartbeat_ns);
        if let Some(rate) = &mut self.rate {
            self.rate_due_ns = now_ns.saturating_add(rate.charge(now_ns, bytes));
        }
        self.flow.as_mut().is_some_and(|flow| flow.sent(bytes))
    }

    /// Says that it is alive, if that is due; true if it did.
    pub fn heartbeat(
        &mut self,
        settings: &ConsumerSettings,
        position: HeartbeatPosition,
        now_ns: i64,
        out: &mut Outbound,
    ) -> bool {
        if settings.idle_heartbeat_ns == 0 || now_ns < self.heartbeat_due_ns {
            return false;
        }
        self.heartbeat_due_ns = now_ns.saturating_add(settings.idle_heartbeat_ns);
        if !self.is_bound {
            return false;
        }
        self.header.clear();
        let stalled = self.flow.as_ref().and_then(|flow| flow.question());
        let (consumer, stream) = (position.consumer_sequence, position.stream_sequence);
        status::idle_heartbeat(&mut self.header, consumer, stream, stalled);
        let interest = &self.interest;
        let routes = Some(interest.routes());
        out.status(routes, &interest.subject, b"", &self.header);
        true
    }

    /// Asks the receiver how far it is, unless it was asked already.
    pub fn request_flow_response(
        &mut self,
        prefix: &AckPrefix,
        random: &mut Random,
        out: &mut Outbound,
    ) {
        let Some(flow) = self.flow.as_mut().filter(|flow| !flow.has_asked()) else {
            return;
        };
        let question = flow.begin(prefix, random);
        self.header.clear();
        status::flow_control_request(&mut self.header);
        let interest = &self.interest;
        let routes = Some(interest.routes());
        out.status(routes, &interest.subject, question, &self.header);
    }

    /// The receiver has answered; false if that was not the question.
    pub fn accept_flow_response(&mut self, subject: &[u8]) -> bool {
        let flow = self.flow.as_mut();
        flow.is_some_and(|flow| flow.answered(subject))
    }

    /// When the clock has to look at it next.
    pub fn next_due_ns(&self, settings: &ConsumerSettings, now_ns: i64) -> Option<i64> {
        let heartbeat = (settings.idle_heartbeat_ns > 0).then_some(self.heartbeat_due_ns);
        let rate = self.is_limited(now_ns).then_some(self.rate_due_ns);
        heartbeat.into_iter().chain(rate).min()
    }
}

fn rate_limit(settings: &ConsumerSettings, message_bytes_max: u64) -> Option<RateLimit> {
    (settings.rate_limit_bps > 0)
        .then(|| RateLimit::new(settings.rate_limit_bps, message_bytes_max))
}

impl FlowControl {
    fn new() -> Self {
        Self {
            window_bytes: WINDOW_BYTES_FIRST,
            under_way_bytes: 0,
            question: None,
        }
    }

    fn is_full(&self) -> bool {
        self.under_way_bytes > self.window_bytes
    }

    /// So much was sent; true if it is time to ask the receiver how far it is.
    fn sent(&mut self, bytes: u64) -> bool {
        self.under_way_bytes += bytes;
        let Some(question) = &mut self.question else {
            return self.under_way_bytes > self.window_bytes / 2;
        };
        // A message larger than the window would leave the window full after the answer, and nothing would ever be asked again.
        if self.under_way_bytes - question.bytes >= self.window_bytes {
            question.bytes += bytes;
        }
        false
    }

    fn has_asked(&self) -> bool {
        self.question.is_some()
    }

    /// The subject of the question that is open.
    fn question(&self) -> Option<&[u8]> {
        self.question
            .as_ref()
            .map(|question| question.subject.as_slice())
    }

    /// Asks; returns the subject on which to answer.
    fn begin(&mut self, prefix: &AckPrefix, random: &mut Random) -> &[u8] {
        let mut subject = Vec::new();
        prefix.encode_flow_control(random, &mut subject);
        let question = self.question.insert(Question {
            subject,
            bytes: self.under_way_bytes,
        });
        &question.subject
    }

    /// The receiver has answered; false if that was not the question.
    fn answered(&mut self, subject: &[u8]) -> bool {
        let Some(question) = self
            .question
            .take_if(|question| question.subject == subject)
        else {
            return false;
        };
        self.under_way_bytes = self.under_way_bytes.saturating_sub(question.bytes);
        self.window_bytes = (self.window_bytes * 2).min(WINDOW_BYTES_MAX);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_grows_with_each_answer_and_old_answers_count_for_nothing() {
        let mut flow = FlowControl::new();
        let mut random = Random::seeded(1);
        assert!(!flow.sent(WINDOW_BYTES_FIRST / 2));
        assert!(flow.sent(1));
        let prefix = AckPrefix::new("S", "C", None, None);
        let subject = flow.begin(&prefix, &mut random).to_vec();
        assert!(!flow.sent(WINDOW_BYTES_FIRST), "one question at a time");
        assert!(flow.is_full());

        assert!(!flow.answered(b"$JS.FC.S.C.none"));
        assert!(flow.answered(&subject));
        assert!(!flow.answered(&subject));

        assert!(!flow.is_full());
        assert_eq!(flow.window_bytes, 2 * WINDOW_BYTES_FIRST);
    }

    #[test]
    fn a_message_larger_than_the_window_does_not_leave_it_full_after_the_answer() {
        let mut flow = FlowControl::new();
        let prefix = AckPrefix::new("S", "C", None, None);
        assert!(flow.sent(WINDOW_BYTES_FIRST));
        let subject = flow.begin(&prefix, &mut Random::seeded(1)).to_vec();
        assert!(!flow.sent(3 * WINDOW_BYTES_FIRST));
        assert!(flow.is_full());

        assert!(flow.answered(&subject));

        assert!(!flow.is_full());
    }
}
