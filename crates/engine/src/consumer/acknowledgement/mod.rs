//! What was delivered, and what of that is acknowledged.
//!
//! - `delivered` is everything a consumer has delivered and what became of it; `acking` takes an acknowledgement in, whose `body` says what kind it is.
//! - `state` is floors and pending messages, with `pending_list`, `redelivery_queue` and `census` as its parts; `state_again` is what must be delivered
//!   again, `state_changes` what happens to it, `state_restoring` how it is read from disk.

pub mod acking;
pub mod body;
pub mod census;
pub mod delivered;
pub mod pending_list;
mod redelivery_queue;
pub mod state;
