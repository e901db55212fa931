//! Jetlake's data plane: everything that happens once per message. No Python in here.
//!
//! # Layout
//! - `engine` starts the workers, `shared` is what they share; `config` its options and limits; `error` everything it can refuse; `threads` starts every thread
//!   there is.
//! - `connection` is sockets and sessions: `listener` accepts, `worker` polls and reads, `session` converses, `staging` gathers the
//!   deliveries of one read, `outbox` writes them, `tls` and `websocket` are between them and the socket where that is asked for.
//! - `wire` is the protocol as bytes: `parser`, `operation`, `encoder`, and `reply` for the client's side.
//! - `routing` finds receivers: `subject`, `tree`, `cache`, `router`; an `account` is one subject space, with `mappings`, and `imports` from others, to which `onward` sends.
//! - `services` is the server itself as a subscriber and publisher, for Python; `events` is what Python hears; `load` is the
//!   load generator behind `jetlake bench`.
//! - `message_trace` tells a publisher that asks where its message goes.
//! - Monitoring shows `statistics` in sums, `reports` one by one, and `closed`, the connections that ended last.
//! - `storage` keeps messages on disk: `store` is the messages of one stream, and every call to a disk is behind `file_system`.
//! - `stream` is what happens to a message between the router and the store; `sender` is how the server itself sends.
//! - `consumer` is what reads a stream: who gets which message next, and what is acknowledged.
//! - `remote` reads streams of other servers, for those that copy them.
//! - `bulk` turns a stream's messages into Arrow and Arrow into messages, for whoever treats streams as tables.
//! - `descriptors` divides the file descriptors of the process; `clock`, `random`, `identity`, `secret` are the small things the rest takes for granted.
//!
//! # The path of one message
//! 1. `connection::worker` reads up to 512 KB from a socket.
//! 2. `wire::parser` finds one `PUB` in it and borrows its parts.
//! 3. `connection::session` checks what this client may do.
//! 4. `routing::router` looks the receivers up in the worker's `cache`, or in the account's `tree`.
//! 5. `connection::staging` takes one `MSG` line per receiver, and a copy of the body or only its place in the read buffer.
//! 6. After the whole read, `connection::outbox` writes each receiver's bytes with one system call.

pub mod bulk;
pub mod clock;
pub mod closed;
pub mod config;
pub mod connection;
pub mod consumer;
pub mod descriptors;
pub mod engine;
pub mod error;
pub mod events;
pub mod identity;
pub mod load;
pub mod message_trace;
pub mod random;
pub mod remote;
pub mod reports;
pub mod routing;
pub mod secret;
pub mod sender;
pub mod services;
pub mod shared;
pub mod statistics;
pub mod storage;
pub mod stream;
pub mod system_events;
pub mod threads;
pub mod wire;
