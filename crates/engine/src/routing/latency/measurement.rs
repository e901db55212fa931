//! One request that is measured, until it is known how it ended.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use super::event::{Answer, Outcome};
use super::reporter::{LatencyQueue, LatencyReport};
use super::sampling::Headers;
use super::Latency;
use crate::common::clock;
use crate::routing::account::Account;
use crate::routing::client_information::ClientInformation;
use crate::routing::sink::Watcher;

/// Distinguishes measurements with the same deadline.
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

pub struct Measurement {
    pub(super) requester: ClientInformation,
    /// Those that made it part of the sample.
    pub(super) headers: Headers,
    pub(super) started_ns: i64,
    /// Where the event goes: a subject of the account that exports the service.
    pub(super) exporter: Arc<Account>,
    pub(super) subject: Arc<str>,
    queue: Arc<LatencyQueue>,
    awaited: OnceLock<Awaited>,
    is_over: AtomicBool,
    number: u64,
}

/// The answer to the request.
struct Awaited {
    /// Where the requester listens for it.
    account: Arc<Account>,
    reply: Box<[u8]>,
    /// Where the service sends it.
    expected: Box<[u8]>,
    due_ms: u64,
}

/// What a measurement begins with.
pub struct MeasurementBegin<'a> {
    pub latency: &'a Latency,
    pub exporter: &'a Arc<Account>,
    pub requester: ClientInformation,
    pub headers: Headers,
}

impl Measurement {
    pub fn begin(begin: MeasurementBegin<'_>) -> Arc<Self> {
        Arc::new(Self {
            requester: begin.requester,
            headers: begin.headers,
            started_ns: clock::system_ns(),
            exporter: Arc::clone(begin.exporter),
            subject: Arc::clone(&begin.latency.subject),
            queue: Arc::clone(&begin.latency.queue),
            awaited: OnceLock::new(),
            is_over: AtomicBool::new(false),
            number: NEXT_NUMBER.fetch_add(1, Ordering::Relaxed),
        })
    }

    /// Looks out for the deadline, and for the requester to stop listening on `reply`.
    pub fn await_answer(
        self: &Arc<Self>,
        account: &Arc<Account>,
        reply: &[u8],
        expected: &[u8],
        due_ms: u64,
    ) {
        let awaited = Awaited {
            account: Arc::clone(account),
            reply: reply.into(),
            expected: expected.into(),
            due_ms,
        };
        if self.awaited.set(awaited).is_ok() {
            account.watch(reply, Arc::clone(self) as Arc<dyn Watcher>);
            self.queue.add(self);
        }
    }

    /// An answer has come from this responder.
    pub fn answer(self: &Arc<Self>, responder: ClientInformation, arrived_ns: i64) {
        let answer = Answer::new(self, responder, arrived_ns);
        self.end(Outcome::Answered(Box::new(answer)));
    }

    /// Reports how the request ended, once.
    pub fn end(self: &Arc<Self>, outcome: Outcome) {
        if self.finish() {
            self.queue
                .report(LatencyReport::Ended(Arc::clone(self), outcome));
        }
    }

    /// True for the first who ends it.
    pub(super) fn finish(&self) -> bool {
        !self.is_over.swap(true, Ordering::AcqRel)
    }

    /// Its place among those that are awaited.
    pub(super) fn key(&self) -> (u64, u64) {
        let due_ms = self.awaited.get().map_or(0, |awaited| awaited.due_ms);
        (due_ms, self.number)
    }

    pub(super) fn has_requester(&self) -> bool {
        self.awaited.get().is_none_or(|awaited| {
            let (routes, _) = awaited.account.find(&awaited.reply);
            !routes.plain.is_empty() || !routes.groups.is_empty()
        })
    }

    /// Nobody waits for the answer any more.
    pub(super) fn forget_answer(&self) {
        if let (Some(awaited), Some(replies)) = (self.awaited.get(), self.exporter.replies()) {
            replies.forget(&awaited.expected);
        }
    }

    pub(super) fn stop_watching(self: &Arc<Self>) {
        if let Some(awaited) = self.awaited.get() {
            let own = Arc::clone(self) as Arc<dyn Watcher>;
            awaited.account.unwatch(&awaited.reply, &own);
        }
    }
}

impl Watcher for Measurement {
    /// Called by the worker that ends a subscription, which must not wait: the thread looks.
    fn notice(&self) {
        self.queue.notice(self.key());
    }
}
