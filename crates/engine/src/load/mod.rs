//! The load generator behind `jetlake bench`: plain blocking clients on threads, written over the engine's own wire code.
//!
//! It speaks to any NATS server, so that both sides of a comparison see the same load. `plan` is what is asked for and
//! what was measured, `client` one connection and `stream` its socket, `workload` how a load is run, `latency` how long
//! messages took. What the connections do: `publish` and `request` for messages that are not stored; `store`,
//! `direct_get` and `consumers_create` for streams, all over `exchange`, which keeps a limited number of requests under
//! way; `fetch` and `push` for consumers, whose messages `delivery` checks.

mod client;
mod consumers_create;
mod delivery;
mod direct_get;
mod exchange;
mod fetch;
mod latency;
mod plan;
mod publish;
mod push;
mod request;
mod store;
mod stream;
mod websocket_stream;
mod workload;

pub use crate::load::plan::{LoadFigures, LoadPlan};

use crate::common::error::EngineError;

/// Runs one plan (JSON) and returns its figures (JSON).
pub fn run(plan: &[u8]) -> Result<Vec<u8>, EngineError> {
    let plan = LoadPlan::from_json(plan)?;
    let figures = workload::run(&plan)?;
    Ok(serde_json::to_vec(&figures).expect("numbers always serialise"))
}
