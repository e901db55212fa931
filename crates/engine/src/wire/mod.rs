//! The NATS client protocol as bytes: what a client may say, how it is read, how answers are written.
//!
//! - `parser` finds one `operation` in what was read; `encoder` writes deliveries, `information` the `INFO` line; `reply` is the client's side.
//! - `leaf_parser` is the protocol between servers, `leaf_information` how they introduce themselves; `s2_frames` its compression, and that of archives.
//! - `header_lines` reads header blocks, `trusted_headers` lists those that are believed, and `stored_headers` is a block as it is stored;
//!   `upload_header` names staged messages.
//! - `ack_subject` is the reply subject of a delivery, in each `dialect`.
//!
//! Nothing in here knows of sockets, connections or accounts, so every rule of the protocol is tested on plain byte slices.

pub mod ack_subject;
pub mod dialect;
pub mod encoder;
pub mod header_lines;
pub mod information;
pub mod leaf_information;
pub mod leaf_parser;
pub mod operation;
pub mod parser;
pub mod reply;
pub mod s2_frames;
pub mod stored_headers;
pub mod trusted_headers;
pub mod upload_header;

pub use crate::wire::operation::{Operation, Publish};
pub use crate::wire::parser::{
    announced_subject, parse, ParserLimits, ParserStep, ProtocolViolation,
};
