//! Consumers by the names of their streams: what Python decides about them reaches them here.
//!
//! Invariant: one change of an account at a time, as with streams.

use serde::Serialize;

use crate::common::error::EngineError;
use crate::consumer::acknowledgement::state::Reached;
use crate::consumer::core::{Core, PassContext};
use crate::consumer::delivery::outbound::Outbound;
use crate::consumer::delivery::push::Push;
use crate::stream::refusals::store_error;
use crate::stream::registry::Streams;

/// How far something has come, and when that was.
#[derive(Serialize)]
struct ReachedReport {
    consumer_sequence: u64,
    stream_sequence: u64,
    /// 0 is never.
    active_ns: i64,
}

#[derive(Serialize)]
struct PinReport<'a> {
    id: &'a str,
    since_ns: i64,
}

#[derive(Serialize)]
struct StateReport<'a> {
    delivered: ReachedReport,
    floor: ReachedReport,
    ack_pending: usize,
    redelivered: usize,
    waiting: usize,
    pending: u64,
    push_bound: bool,
    pinned: Option<PinReport<'a>>,
}

/// What might keep messages from moving.
#[derive(Serialize)]
struct Hindrances {
    paused: bool,
    ack_pending: usize,
    /// Since when as much is under way as may be; 0 if it is not.
    full_since_ns: i64,
    pending: u64,
    /// Messages in the stream that its filters match.
    matching: u64,
    waiting: usize,
    push_bound: bool,
    flow_stalled: bool,
    rate_limited: bool,
    /// To be delivered again, now.
    queued: usize,
    /// Held back because another of their key is under way.
    parked: usize,
    /// When the next one that is not acknowledged is delivered again; 0 if none is under way.
    next_again_ns: i64,
    given_up: usize,
}

/// Messages that were delivered and wait for their acknowledgement, listed at most: more would not fit into an answer.
const PENDING_LISTED_MAX: usize = 10_000;

/// Consumers that begin in one call: each has a few subjects to subscribe to, together some milliseconds.
const CONSUMERS_BEGUN_MAX: usize = 500;

/// What was delivered, message by message.
#[derive(Serialize)]
struct PendingReport {
    next_stream_sequence: u64,
    next_consumer_sequence: u64,
    /// Sequence, since when it waits, how often it was delivered.
    pending: Vec<(u64, i64, u32)>,
}

impl Streams {
    /// Why nothing can be stored in a stream at the moment; empty if it can.
    pub fn stream_hindrance(&self, account: &str, stream: &str) -> Result<String, EngineError> {
        let hindrance = self.stream(account, stream)?.store().hindrance();
        Ok(hindrance.map_or(String::new(), |error| error.to_string()))
    }

    /// What might keep a consumer's messages from moving, as JSON.
    pub fn consumer_hindrances(
        &self,
        account: &str,
        stream: &str,
        name: &str,
    ) -> Result<Vec<u8>, EngineError> {
        let consumer = self.stream(account, stream)?.consumers().consumer(name)?;
        consumer
            .with_core(hindrances)
            .map_err(|error| EngineError::Options(error.to_string()))
    }

    /// Definitions of consumers that are on disk and not opened yet.
    pub fn stored_consumers(
        &self,
        account: &str,
        stream: &str,
    ) -> Result<Vec<Vec<u8>>, EngineError> {
        self.stream(account, stream)?.consumers().load()
    }

    /// Opens one of them.
    pub fn open_consumer(
        &self,
        account: &str,
        stream: &str,
        definition: &[u8],
    ) -> Result<(), EngineError> {
        let _turn = self.turns.of(account);
        self.stream(account, stream)?.consumers().open(definition)
    }

    /// All consumers of a stream are opened: what they had settled before a crash is removed, where the stream keeps only what is needed.
    pub fn consumers_opened(&self, account: &str, stream: &str) -> Result<(), EngineError> {
        self.stream(account, stream)?.consumers_opened();
        Ok(())
    }

    /// Creates a consumer, which is neither durable nor delivers before `commit_consumers`; returns its state as JSON.
    pub fn create_consumer(
        &self,
        account: &str,
        stream: &str,
        definition: &[u8],
    ) -> Result<Vec<u8>, EngineError> {
        let _turn = self.turns.of(account);
        let stream = self.stream(account, stream)?;
        stream.finish_removals();
        let consumer = stream.consumers().create(definition)?;
        let report = consumer.with_core(report);
        report.map_err(|error| EngineError::Options(error.to_string()))
    }

    /// Makes durable all consumers of a stream that were created, and lets them deliver. Returns those for which that failed, and why: they are there
    /// no more.
    pub fn commit_consumers(
        &self,
        account: &str,
        stream: &str,
    ) -> Result<Vec<(String, String)>, EngineError> {
        let _turn = self.turns.of(account);
        let refused = self.stream(account, stream)?.consumers().commit();
        let refused = refused.into_iter();
        Ok(refused
            .map(|(name, error)| (name, store_error(&error).to_string()))
            .collect())
    }

    /// Lets some consumers of a stream that was restored deliver; false if none are left that do not.
    pub fn begin_consumers(&self, account: &str, stream: &str) -> Result<bool, EngineError> {
        let stream = self.stream(account, stream)?;
        Ok(stream.consumers().begin_ready(CONSUMERS_BEGUN_MAX))
    }

    pub fn update_consumer(
        &self,
        account: &str,
        stream: &str,
        definition: &[u8],
    ) -> Result<(), EngineError> {
        let _turn = self.turns.of(account);
        self.stream(account, stream)?.update_consumer(definition)
    }

    pub fn delete_consumer(
        &self,
        account: &str,
        stream: &str,
        name: &str,
    ) -> Result<(), EngineError> {
        let _turn = self.turns.of(account);
        self.stream(account, stream)?
            .delete_consumer(name)
            .map(drop)
    }

    /// How a consumer stands, as JSON.
    pub fn consumer_state(
        &self,
        account: &str,
        stream: &str,
        name: &str,
    ) -> Result<Vec<u8>, EngineError> {
        let stream = self.stream(account, stream)?;
        stream.finish_removals();
        let consumer = stream.consumers().consumer(name)?;
        consumer
            .with_core(report)
            .map_err(|error| EngineError::Options(error.to_string()))
    }

    /// The messages that a consumer has delivered and that wait for their acknowledgement, as JSON; the first ones, if there are many.
    pub fn consumer_pending(
        &self,
        account: &str,
        stream: &str,
        name: &str,
    ) -> Result<Vec<u8>, EngineError> {
        let consumer = self.stream(account, stream)?.consumers().consumer(name)?;
        consumer
            .with_core(|core, _, _| {
                serde_json::to_vec(&PendingReport {
                    next_stream_sequence: core.acks().next_stream,
                    next_consumer_sequence: core.acks().next_consumer,
                    pending: core.acks().first_delivered(PENDING_LISTED_MAX),
                })
            })
            .map_err(|error| EngineError::Options(error.to_string()))
    }

    /// Restarts a consumer at a sequence, after its floor if that is 0; returns the sequence.
    pub fn reset_consumer(
        &self,
        account: &str,
        stream: &str,
        name: &str,
        sequence: u64,
    ) -> Result<u64, EngineError> {
        self.stream(account, stream)?.reset_consumer(name, sequence)
    }

    /// Lets another client of a group be chosen.
    pub fn unpin_consumer(
        &self,
        account: &str,
        stream: &str,
        name: &str,
    ) -> Result<(), EngineError> {
        let consumer = self.stream(account, stream)?.consumers().consumer(name)?;
        let mut out = Outbound::default();
        consumer.with_core(|core, context, _| core.unpin(context, "admin", &mut out));
        consumer.send_out(&mut out);
        consumer.schedule();
        Ok(())
    }

    /// The first message of a stream that is not older than a moment.
    pub fn first_sequence_at(
        &self,
        account: &str,
        stream: &str,
        time_ns: i64,
    ) -> Result<u64, EngineError> {
        let stream = self.stream(account, stream)?;
        let found = stream.store().messages().sequence_at(time_ns);
        found.map_err(|error| store_error(&error))
    }
}

fn hindrances(
    core: &mut Core,
    context: &PassContext<'_>,
    now_ns: i64,
) -> serde_json::Result<Vec<u8>> {
    let pending = core.recount(context.messages, now_ns, true);
    core.pulling().drop_without_interest(context.account);
    let waiting = core.pulling().len();
    let push_bound = core.look_at_receiver(context);
    let settings = core.settings();
    let (matching, _) = context.messages.count_matching(&settings.filters, 0);
    let (acks, push) = (core.acks(), core.push());
    let next_again = acks.earliest_deadline_ns(|deliveries| settings.wait_ns(deliveries));
    serde_json::to_vec(&Hindrances {
        paused: core.is_paused(now_ns),
        ack_pending: acks.pending_count(),
        full_since_ns: core.full_since_ns(),
        pending,
        matching,
        waiting,
        push_bound,
        flow_stalled: push.is_some_and(Push::is_stalled),
        rate_limited: push.is_some_and(|push| push.is_limited(now_ns)),
        queued: acks.queued_count(),
        parked: acks.parked_count(),
        next_again_ns: next_again.unwrap_or(0),
        given_up: acks.given_up_count(),
    })
}

fn report(core: &mut Core, context: &PassContext<'_>, now_ns: i64) -> serde_json::Result<Vec<u8>> {
    let pending = core.recount(context.messages, now_ns, true);
    let reached = |reached: Reached, active_ns| ReachedReport {
        consumer_sequence: reached.consumer,
        stream_sequence: reached.stream,
        active_ns,
    };
    let push_bound = core.look_at_receiver(context);
    core.pulling().drop_without_interest(context.account);
    let waiting = core.pulling().len();
    let (acks, activity) = (core.acks(), core.activity());
    serde_json::to_vec(&StateReport {
        delivered: reached(acks.delivered(), activity.delivered_ns),
        floor: reached(acks.floor, activity.acknowledged_ns),
        ack_pending: acks.pending_count(),
        redelivered: acks.redelivered_count(),
        waiting,
        pending,
        push_bound,
        pinned: core.pinned().map(|pin| PinReport {
            id: &pin.id,
            since_ns: pin.since_ns,
        }),
    })
}
