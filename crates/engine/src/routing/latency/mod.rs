//! Latency events: how long requests to an exported service take, published in the account that exports it.
//!
//! `sampling` chooses the requests, a `Measurement` goes along with the reply that is awaited, `event` is what is published, and `reporter` the thread that
//! publishes it. Invariant: each measured request makes exactly one event, and a service whose export does not ask for events costs nothing more.

mod event;
mod measurement;
pub mod reporter;
pub mod sampling;

use std::sync::Arc;

pub use event::Outcome;
pub use measurement::{Measurement, MeasurementBegin};
pub use reporter::{LatencyQueue, Reporter};

use crate::config::imports::LatencyOptions;

/// What an import of a service with latency events knows of them.
#[derive(Clone)]
pub struct Latency {
    pub subject: Arc<str>,
    pub sampling_percent: u8,
    pub queue: Arc<LatencyQueue>,
}

impl Latency {
    pub fn new(options: &LatencyOptions, queue: &Arc<LatencyQueue>) -> Self {
        Self {
            subject: options.subject.as_str().into(),
            sampling_percent: options.sampling_percent,
            queue: Arc::clone(queue),
        }
    }
}
