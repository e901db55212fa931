//! Sockets and the sessions on them: how bytes come in, and how deliveries go out.
//!
//! A connection has two halves. `Session` belongs to one worker thread and is never shared. `Connection` is the part that any thread
//! may touch: it has an outbox, some counters, and nothing else that moves.

pub mod connect_options;
mod input;
pub mod leaf_dialer;
pub mod listener;
mod session;
mod timers;
pub mod trace;
pub mod worker;

pub use crate::config::connection_type::ConnectionType;
pub use crate::routing::clients::connection::{Connection, Identity};
