//! TLS: what is configured, and the encrypted side of one connection.
//!
//! `configuration` turns options into what rustls needs, and refuses what makes no sense; `certificates` are the server's own, `clients` checks those of others, and
//! `throttle` is how often a handshake may begin. `channel` is the state of one encrypted
//! connection in either `role`, shared by the thread that reads it and the threads that write to it; `writing` is how the outbox writes through it.
//! `client` is TLS towards another server; `hello` distinguishes a client that speaks TLS from one that does not, and
//! `peer` is what a handshake showed about the client.

mod certificates;
pub mod channel;
pub mod client;
mod clients;
pub mod configuration;
pub mod hello;
pub mod peer;
mod role;
pub mod throttle;
pub mod writing;

pub use channel::TlsChannel;
pub use configuration::{server_config, settings, TlsSettings};

#[cfg(test)]
pub(crate) mod test_certificates;
