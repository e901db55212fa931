//! Jetlake's data plane: everything that happens once per message. No Python in here.
//!
//! # Layout
//! Each part uses only those above it (`tests/style/test_layers.py`):
//! - `common`: subjects, timestamps, errors, threads, and events for Python.
//! - `config`: options as plain data.
//! - `wire`: the protocol as bytes.
//! - `storage`: messages on disk; `store` is the messages of one stream.
//! - `transport`: sockets, TLS, WebSocket, and the outbox that writes.
//! - `routing`: accounts, subscriptions, and the router that finds the receivers of a message.
//! - `consumer`: who gets which message of a stream next, and what is acknowledged.
//! - `bulk`: messages as Arrow, and Arrow as messages.
//! - `stream`: what happens to a message between the router and the store.
//! - `connection`: `listener` accepts, `worker` polls and reads, `session` converses with one client.
//! - `load`: the load generator behind `jetlake bench`.
//! - `engine`: starts all of it.
//!
//! # One publish
//! 1. `connection/worker/reading.rs` reads up to 512 KB from a socket.
//! 2. `wire/parser.rs` finds one `PUB` in it and borrows its parts.
//! 3. `connection/session/access.rs` checks what this client may do.
//! 4. `routing/router.rs` finds the receivers in the worker's `routing/cache.rs`, or in the account's `routing/tree.rs`.
//! 5. `routing/staging.rs` takes one line per receiver, and a copy of the body or only its position in the read buffer.
//! 6. After the whole read, `transport/outbox.rs` writes each receiver's bytes with one system call.
//! 7. If a stream is among the receivers, `stream/stream.rs` accepts the message, and `stream/publish/ingest.rs` checks it and stages it in
//!    `storage/store/staging.rs`.
//! 8. After the read, `storage/commit/scheduler.rs` is asked for a commit; one of its threads writes and syncs (`storage/store/writing.rs`).
//! 9. `stream/publish/answers.rs` sends the acknowledgements of everything that is durable now, through `routing/sender.rs`.
//!
//! # One delivery
//! 1. A pull request reaches `stream/api.rs`, which hands it to its `consumer/consumer.rs`.
//! 2. `consumer/pull/request.rs` reads it, `consumer/pull/pulling.rs` admits it, and it waits in `consumer/pull/waiting.rs`.
//! 3. A commit, a timer or a request starts a pass over `consumer/core.rs`: `consumer/delivery/delivering.rs` has `consumer/pull/pulling.rs` or
//!    `consumer/delivery/push.rs` say who is next,
//! 4. and finds the next message: one that comes again, from `consumer/acknowledgement/delivered.rs`, or a new one, from `storage/store/walking.rs`.
//! 5. `consumer/delivery/outbound.rs` sends it when the lock is released.
//! 6. An acknowledgement is a publish to `$JS.ACK.…` (`wire/ack_subject.rs`): `consumer/acknowledgement/acking.rs` changes what is known to be delivered,
//! 7. `consumer/journal/journal.rs` writes it to disk as a `consumer/journal/state_record.rs`, and confirms it.
//! 8. `stream/consumers/consuming.rs` removes what is no longer needed, many messages at once by
//!    `stream/consumers/removing.rs`.

pub mod bulk;
pub mod common;
pub mod config;
pub mod connection;
pub mod consumer;
pub mod engine;
pub mod load;
pub mod routing;
pub mod storage;
pub mod stream;
pub mod transport;
pub mod wire;
