//! Consumers: everything that reads a stream message by message.
//!
//! - `consumers` has all of one stream, by their `definition`, which becomes `settings`; `journal` keeps them and their states on disk, as `state_record`s.
//! - `consumer` is one of them, with a `lifecycle`: what it knows is its `core`, behind one lock. `pulling` takes requests in, which are `waiting`; `acking` takes acknowledgements
//!   in; `choosing` finds the next receiver and `delivering` the next message; `removals` is what happens when messages leave the stream. What is to be
//!   sent is gathered in `outbound`, for receivers whose `interest` is known. `timers` remind it.
//! - `ack_state` is what was delivered and what of that is acknowledged, with the `pending_list` and the `census` of it; `archived_state` is the same in backups; `pending_count` how much is to come; `keys` which messages must wait for others.
//! - `push` is the way of consumers that send without being asked, at most as fast as their `rate_limit`.
//! - `pull_request`, `ack_body`, `ack_subject` are what clients send, with `json_text`, `go_duration` and `white_space`; `status` and `advisory` what they hear, the latter as often as
//!   the `sampler` says.

pub mod ack_body;
pub mod ack_state;
pub mod ack_subject;
mod acking;
pub mod advisory;
pub mod archived_state;
mod census;
mod choosing;
#[allow(clippy::module_inception, reason = "one noun, one module")]
pub mod consumer;
pub mod consumers;
pub mod core;
pub mod dead_letters;
pub mod definition;
mod delivering;
pub mod go_duration;
pub mod interest;
pub mod journal;
pub mod json_text;
pub mod keys;
mod lifecycle;
pub mod outbound;
pub mod pending_count;
pub mod pending_list;
pub mod pull_request;
mod pulling;
pub mod push;
pub mod rate_limit;
pub mod read_ahead;
mod removals;
pub mod sampler;
pub mod settings;
pub mod state_record;
pub mod status;
pub mod timers;
pub mod waiting;
pub mod white_space;
