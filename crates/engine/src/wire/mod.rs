//! The NATS client protocol as bytes: what a client may say, how it is read, how answers are written.
//!
//! Nothing in here knows of sockets, connections or accounts, so every rule of the protocol is tested on plain byte slices.

pub mod encoder;
pub mod header_lines;
pub mod operation;
pub mod parser;
pub mod reply;

pub use operation::{Operation, Publish};
pub use parser::{announced_subject, parse, ParserLimits, Refusal, Step};
