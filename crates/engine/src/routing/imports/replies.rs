//! Where answers to imported requests go: reply subjects of the exporting account, each with the one it stands for.
//!
//! All of them are below one subject of the account, `_R_.<name>.<token>`, so that one subscription takes all answers and no request changes the tree. Invariant: at
//! most `REPLIES_MAX` are awaited, and each only until its time is over.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;

use ahash::AHashMap;
use parking_lot::Mutex;

use super::service_import::AnswerTerms;
use crate::common::identity;
use crate::config::imports::ResponseType;
use crate::routing::account::Account;
use crate::routing::latency::Measurement;
use crate::routing::subscription::{Receiver, Restrictions, Subscription};

pub const PREFIX: &[u8] = b"_R_.";

/// Answers that an account may owe at a time; requests beyond that find nobody. All are looked at once a second, which must not take a worker longer than some milliseconds.
const REPLIES_MAX: usize = 200_000;

/// How often those whose time is over are cleared away.
const SWEEP_MS: u64 = 1_000;

pub struct Replies {
    /// `_R_.<name>.`
    prefix: Vec<u8>,
    state: Mutex<RepliesState>,
}

#[derive(Default)]
struct RepliesState {
    by_token: AHashMap<u64, Arc<Subscription>>,
    next_sweep_ms: u64,
}

/// An answer that is awaited.
pub struct PendingReply {
    token: u64,
    /// Who asked: the account, and where it wants its answer.
    pub account: Arc<Account>,
    pub reply: Box<[u8]>,
    pub terms: AnswerTerms,
    due_ms: AtomicU64,
    is_over: AtomicBool,
    /// Measures how long the answer takes, if the export asks for latency events.
    pub measurement: Option<Arc<Measurement>>,
}

impl PendingReply {
    /// Whether one more answer is taken. The last one ends it.
    pub fn admit(&self, is_empty: bool, now_ms: u64) -> bool {
        if now_ms > self.due_ms.load(Ordering::Relaxed) {
            return false;
        }
        self.due_ms.store(
            now_ms.saturating_add(self.terms.timeout_ms),
            Ordering::Relaxed,
        );
        let is_last = match self.terms.responses {
            ResponseType::One => true,
            ResponseType::Stream => false,
            ResponseType::Chunked => is_empty,
        };
        if is_last {
            return !self.is_over.swap(true, Ordering::AcqRel);
        }
        !self.is_over()
    }

    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }
}

impl Default for Replies {
    fn default() -> Self {
        // Without randomness there is a name all the same: it separates accounts of several servers, and hides nothing.
        let name = identity::nonce().unwrap_or_default();
        let mut prefix = PREFIX.to_vec();
        prefix.extend(name.bytes().filter(u8::is_ascii_alphanumeric).take(8));
        prefix.push(b'.');
        Self {
            prefix,
            state: Mutex::default(),
        }
    }
}

impl Replies {
    /// What the account subscribes to for all of them.
    pub fn pattern(&self) -> Vec<u8> {
        [&self.prefix[..], b"*"].concat()
    }

    /// Returns the subject on which the answer to a request of `account` is awaited; `None` if too many are awaited.
    pub fn expect(
        &self,
        terms: &AnswerTerms,
        account: &Arc<Account>,
        reply: &[u8],
        now_ms: u64,
        measurement: Option<Arc<Measurement>>,
    ) -> Option<Vec<u8>> {
        let mut state = self.state.lock();
        if now_ms >= state.next_sweep_ms {
            state.next_sweep_ms = now_ms + SWEEP_MS;
            state.by_token.retain(|_, subscription| {
                matches!(&subscription.receiver, Receiver::Reply(pending)
                    if !pending.is_over() && pending.due_ms.load(Ordering::Relaxed) >= now_ms)
            });
        }
        if state.by_token.len() >= REPLIES_MAX {
            return None;
        }
        // An answer is taken from any client that sends it, so the subject must not be guessed.
        let token = getrandom::u64().ok()?;
        let mut subject = self.prefix.clone();
        subject.extend_from_slice(itoa::Buffer::new().format(token).as_bytes());
        let due_ms = now_ms.saturating_add(terms.timeout_ms);
        let pending = PendingReply {
            token,
            account: Arc::clone(account),
            reply: reply.into(),
            terms: terms.clone(),
            due_ms: AtomicU64::new(due_ms),
            is_over: AtomicBool::new(false),
            measurement: measurement.clone(),
        };
        let subscription = Subscription::new(
            Receiver::Reply(Arc::new(pending)),
            &subject,
            None,
            b"",
            Restrictions::default(),
        );
        state.by_token.insert(token, Arc::new(subscription));
        drop(state);
        if let Some(measurement) = &measurement {
            measurement.await_answer(account, reply, &subject, due_ms);
        }
        Some(subject)
    }

    /// What takes answers on this subject; none if nobody awaits any.
    pub fn find(&self, subject: &[u8]) -> Option<Arc<Subscription>> {
        let digits = std::str::from_utf8(subject.strip_prefix(&self.prefix[..])?).ok()?;
        let token: u64 = digits.parse().ok()?;
        self.state.lock().by_token.get(&token).cloned()
    }

    /// No answer is awaited there any more.
    pub fn forget(&self, subject: &[u8]) {
        if let Some(subscription) = self.find(subject) {
            if let Receiver::Reply(pending) = &subscription.receiver {
                self.state.lock().by_token.remove(&pending.token);
            }
        }
    }
}
