//! Streams of other servers, read as any client reads them: where a mirror or a source with `external` gets its messages.
//!
//! Each such origin has a thread of its own with a blocking socket. What a remote server says is trusted no more than what a client says.
//!
//! - `options` is what the configuration says about other servers; `remotes` finds the one that an origin means.
//! - `socket` is one connection in the clear or with TLS, `login` how a client says who it is, `connection` bytes as replies and requests as answers.
//! - `origin_api` asks about the stream and makes the consumer that reads it; `delivery` is one message of it, `pulls` what was asked for and has not come.
//! - `channel` is what the thread and the job that stores the messages share; `reader` is the thread.
//! - `trouble` is everything that can go wrong, in words for reports about the stream.

pub mod channel;
pub mod connection;
pub mod delivery;
pub mod login;
pub mod options;
pub mod origin_api;
pub mod pulls;
pub mod reader;
pub mod remotes;
pub mod socket;
pub mod trouble;
