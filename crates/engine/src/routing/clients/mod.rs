//! Clients as the rest of the engine knows them.
//!
//! - `connection` is the part of a connection that any thread may touch: its outbox and its counters; `closed_reason` is why one ended.
//! - `mailbox` takes commands to the worker that owns a connection.

pub mod closed_reason;
pub mod connection;
pub mod mailbox;
