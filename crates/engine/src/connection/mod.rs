//! Sockets and the sessions on them: how bytes come in, and how deliveries go out.
//!
//! A connection has two halves. `Session` belongs to one worker thread and is never shared. `Connection` is the part that any thread
//! may touch: it has an outbox, some counters, and nothing else that moves.

pub mod closed_reason;
pub mod connect_options;
pub mod handle;
pub mod handshake;
mod input;
pub mod listener;
pub mod mailbox;
pub mod outbox;
mod session;
mod socket;
pub mod staging;
mod timers;
pub mod tls;
pub mod trace;
pub mod websocket;
pub mod worker;

pub use handle::{Connection, ConnectionType, Identity};
