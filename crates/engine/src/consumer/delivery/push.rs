//! A consumer that sends to a subject without being asked: whether somebody listens, how much may be under way, and when it says that it is alive.
//!
//! With flow control, what is under way is counted in bytes, and the receiver is asked now and then to say that it has come so far. Invariant: at most one
//! such question is open.

use super::interest::Interest;
use super::rate_limit::RateLimit;
use crate::common::random::Random;
use crate::consumer::settings::ConsumerSettings;
use crate::routing::account::Account;
use crate::wire::ack_subject::AckPrefix;

/// Bytes that may be under way at most, and at first.
const WINDOW_BYTES_MAX: u64 = 32 * 1024 * 1024;
const WINDOW_BYTES_FIRST: u64 = 2 * 1024 * 1024;

pub struct Push {
    pub interest: Interest,
    pub is_bound: bool,
    pub heartbeat_due_ns: i64,
    pub rate: Option<RateLimit>,
    /// Nothing is sent before.
    pub rate_due_ns: i64,
    pub flow: Option<FlowControl>,
}

/// Flow control.
pub struct FlowControl {
    window_bytes: u64,
    under_way_bytes: u64,
    question: Option<Question>,
}

struct Question {
    subject: Vec<u8>,
    bytes: u64,
}

impl Push {
    pub fn new(
        account: &Account,
        settings: &ConsumerSettings,
        subject: &[u8],
        rate: Option<RateLimit>,
    ) -> Self {
        Self {
            interest: Interest::new(account, subject),
            is_bound: false,
            heartbeat_due_ns: 0,
            rate,
            rate_due_ns: 0,
            flow: settings.flow_control.then(FlowControl::new),
        }
    }

    /// Looks whether somebody listens.
    pub fn look(&mut self, account: &Account, settings: &ConsumerSettings) -> bool {
        self.interest.refresh(account);
        let group = settings.deliver_group.as_ref().map(String::as_bytes);
        self.is_bound = self.interest.is_bound(group);
        self.is_bound
    }
}

impl FlowControl {
    fn new() -> Self {
        Self {
            window_bytes: WINDOW_BYTES_FIRST,
            under_way_bytes: 0,
            question: None,
        }
    }

    pub fn is_full(&self) -> bool {
        self.under_way_bytes > self.window_bytes
    }

    /// So much was sent; true if it is time to ask the receiver how far it is.
    pub fn sent(&mut self, bytes: u64) -> bool {
        self.under_way_bytes += bytes;
        self.question.is_none() && self.under_way_bytes > self.window_bytes / 2
    }

    pub fn has_asked(&self) -> bool {
        self.question.is_some()
    }

    /// The subject of the question that is open.
    pub fn question(&self) -> Option<&[u8]> {
        self.question
            .as_ref()
            .map(|question| question.subject.as_slice())
    }

    /// Asks; returns the subject on which to answer.
    pub fn begin(&mut self, prefix: &AckPrefix, random: &mut Random) -> &[u8] {
        let mut subject = Vec::new();
        prefix.encode_flow_control(random, &mut subject);
        let question = self.question.insert(Question {
            subject,
            bytes: self.under_way_bytes,
        });
        &question.subject
    }

    /// The receiver has answered; false if that was not the question.
    pub fn answered(&mut self, subject: &[u8]) -> bool {
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
}
