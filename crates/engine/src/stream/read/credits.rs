//! Counts what a receiver has accepted of what was sent to it, so that no more is on the way than allowed.
//!
//! Invariant: `taken` never exceeds `sent`: what was not sent cannot have been taken.

use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::routing::router::Publisher;
use crate::routing::sink::Sink;
use crate::routing::staging::Staging;
use crate::wire::Publish;

#[derive(Default)]
pub struct Credits {
    flow: Mutex<ScanFlow>,
    arrived: Condvar,
}

#[derive(Default)]
struct ScanFlow {
    sent: usize,
    taken: usize,
}

impl Credits {
    /// Counts one that is being sent. To be called before it is: the receiver may be faster than we are.
    pub fn send(&self) {
        self.flow.lock().sent += 1;
    }

    /// How many the receiver has taken so far.
    pub fn taken(&self) -> usize {
        self.flow.lock().taken
    }

    /// Waits for at most `wait` until fewer than `in_flight_max` are on the way; returns whether that is so.
    pub fn wait(&self, in_flight_max: usize, wait: Duration) -> bool {
        let mut flow = self.flow.lock();
        if flow.sent - flow.taken >= in_flight_max {
            self.arrived.wait_for(&mut flow, wait);
        }
        flow.sent - flow.taken < in_flight_max
    }
}

impl Sink for Credits {
    fn accept(
        &self,
        _publisher: &Publisher<'_>,
        _publish: &Publish<'_>,
        _staging: &mut Staging,
    ) -> bool {
        let mut flow = self.flow.lock();
        flow.taken = flow.sent.min(flow.taken + 1);
        self.arrived.notify_one();
        true
    }

    fn finish_read(&self) {}
}
