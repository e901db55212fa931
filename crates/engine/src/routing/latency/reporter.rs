//! The thread that publishes latency events, and what it works on.
//!
//! Workers only put what happened into the queue. The thread makes the events, and sees which requests were never answered. Invariant: at most `REPORTS_MAX` wait;
//! events beyond that are dropped, counted and logged, so that a service that is asked faster than events can be published keeps no memory.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::event;
use super::event::Outcome;
use super::measurement::Measurement;
use crate::common::clock::Clock;
use crate::common::events::Level;
use crate::common::random::Random;
use crate::routing::sender::{Outgoing, Sender};
use crate::routing::shared::Shared;

/// Reports that wait at most: some hundred milliseconds of the fastest service, and about 20 MB.
const REPORTS_MAX: usize = 65_536;

/// Letters of an event's id, as on nats-server.
const ID_LETTERS: usize = 22;

/// Something that the thread has to look at.
pub enum LatencyReport {
    Ended(Arc<Measurement>, Outcome),
    /// A subscription that matches where the answer is wanted has come or gone.
    InterestChanged(Arc<Measurement>),
    /// The time for an answer is over.
    Due(Arc<Measurement>),
}

#[derive(Default)]
pub struct LatencyQueue {
    state: Mutex<State>,
    arrived: Condvar,
    is_served: AtomicBool,
}

#[derive(Default)]
struct State {
    reports: VecDeque<LatencyReport>,
    /// Requests without an answer, by when that is due.
    awaited: BTreeMap<(u64, u64), Arc<Measurement>>,
    dropped: u64,
    is_closed: bool,
}

impl LatencyQueue {
    /// True for the first who serves it.
    pub fn claim(&self) -> bool {
        !self.is_served.swap(true, Ordering::AcqRel)
    }

    /// Has the thread end.
    pub fn close(&self) {
        self.state.lock().is_closed = true;
        self.arrived.notify_one();
    }

    /// One more request has to be answered.
    pub(super) fn add(&self, measurement: &Arc<Measurement>) {
        let mut state = self.state.lock();
        let key = measurement.key();
        let is_first = state.awaited.keys().next().is_none_or(|first| key < *first);
        state.awaited.insert(key, Arc::clone(measurement));
        if is_first {
            self.arrived.notify_one();
        }
    }

    /// Has the thread check whether a request still has a requester.
    pub(super) fn notice(&self, key: (u64, u64)) {
        let mut state = self.state.lock();
        if let Some(measurement) = state.awaited.get(&key).cloned() {
            self.push(&mut state, LatencyReport::InterestChanged(measurement));
        }
    }

    pub(super) fn report(&self, report: LatencyReport) {
        self.push(&mut self.state.lock(), report);
    }

    fn push(&self, state: &mut State, report: LatencyReport) {
        if state.reports.len() >= REPORTS_MAX {
            state.dropped += 1;
            return;
        }
        state.reports.push_back(report);
        self.arrived.notify_one();
    }

    fn remove(&self, measurement: &Measurement) {
        self.state.lock().awaited.remove(&measurement.key());
    }

    /// The next report to handle, if there is one now.
    fn next_report(&self, now_ms: u64) -> Option<LatencyReport> {
        let mut state = self.state.lock();
        if let Some(report) = state.reports.pop_front() {
            return Some(report);
        }
        let first = state.awaited.first_entry()?;
        (first.key().0 < now_ms).then(|| LatencyReport::Due(first.remove()))
    }

    /// Waits until there is something to do; false when there never will be.
    fn wait(&self, clock: &Clock) -> bool {
        let mut state = self.state.lock();
        loop {
            let now_ms = clock.now_ms();
            let due_ms = state.awaited.keys().next().map(|(due_ms, _)| *due_ms);
            if state.is_closed {
                return false;
            }
            if !state.reports.is_empty() || due_ms.is_some_and(|due_ms| due_ms < now_ms) {
                return true;
            }
            match due_ms {
                Some(due_ms) => {
                    // A moment later than due: until then an answer is in time.
                    let pause = Duration::from_millis(due_ms - now_ms + 1);
                    self.arrived.wait_for(&mut state, pause);
                }
                None => self.arrived.wait(&mut state),
            }
        }
    }

    fn take_dropped(&self) -> u64 {
        std::mem::take(&mut self.state.lock().dropped)
    }
}

/// What the thread does.
pub struct Reporter {
    shared: Arc<Shared>,
    queue: Arc<LatencyQueue>,
    sender: Sender,
    random: Random,
}

impl Reporter {
    pub fn new(shared: Arc<Shared>) -> Self {
        Self {
            queue: Arc::clone(&shared.latencies),
            sender: Sender::new(Arc::clone(&shared)),
            random: Random::seeded(shared.clock.wall_ns() as u64),
            shared,
        }
    }

    /// Publishes events until the queue is closed.
    pub fn run(mut self) {
        while self.queue.wait(&self.shared.clock) {
            while let Some(report) = self.queue.next_report(self.shared.clock.now_ms()) {
                self.handle(report);
            }
            self.sender.flush();
            let dropped = self.queue.take_dropped();
            if dropped > 0 {
                let text = format!(
                    "{dropped} latency events were dropped: services are asked faster than events can be published; lower `sampling` of their exports"
                );
                self.shared.events.log(Level::Warning, text);
            }
        }
    }

    fn handle(&mut self, report: LatencyReport) {
        let (measurement, outcome) = match report {
            LatencyReport::Ended(measurement, outcome) => (measurement, Some(outcome)),
            LatencyReport::InterestChanged(measurement) => {
                if measurement.has_requester() || !measurement.finish() {
                    return;
                }
                measurement.forget_answer();
                (measurement, Some(Outcome::RequesterGone))
            }
            LatencyReport::Due(measurement) => {
                measurement.forget_answer();
                let is_open = measurement.finish();
                (measurement, is_open.then_some(Outcome::TimedOut))
            }
        };
        self.queue.remove(&measurement);
        measurement.stop_watching();
        if let Some(outcome) = outcome {
            self.publish(&measurement, &outcome);
        }
    }

    fn publish(&mut self, measurement: &Measurement, outcome: &Outcome) {
        let id = self.random.text(ID_LETTERS);
        let payload = event::to_json(measurement, outcome, id);
        let outgoing = Outgoing {
            subject: measurement.subject.as_bytes(),
            reply: None,
            header: b"",
            payload: &payload,
        };
        self.sender.send(&measurement.exporter, &outgoing);
    }
}
