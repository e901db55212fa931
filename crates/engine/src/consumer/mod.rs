//! Consumers: everything that reads a stream message by message.
//!
//! - `consumers` has all of one stream, by their `definition`, which becomes `settings`. `consumer` is one of them, with a `lifecycle`; everything it
//!   knows is in its `core`, behind one lock. `host_stream` is what it asks of its stream, and says in which order locks are taken.
//! - `pull` takes pull requests in and keeps those that wait; `delivery` finds the next receiver and the next message, and sends; `acknowledgement`
//!   knows what was delivered and what of that is acknowledged.
//! - `journal` keeps definitions and states on disk; `confirming` answers acknowledgements when that is done.
//! - `removals` is what happens when messages leave the stream; `dead_letters` are messages that are given up; `activity` is when it was last used; `timers` remind; `advisory` is what is
//!   published about a consumer, as often as the `sampler` says.

pub mod acknowledgement;
pub mod activity;
pub mod advisory;
mod confirming;
#[allow(clippy::module_inception, reason = "one noun, one module")]
pub mod consumer;
pub mod consumers;
pub mod core;
pub mod dead_letters;
pub mod definition;
pub mod delivery;
pub mod host_stream;
pub mod journal;
mod lifecycle;
pub mod pull;
mod removals;
pub mod sampler;
pub mod settings;
pub mod timers;
