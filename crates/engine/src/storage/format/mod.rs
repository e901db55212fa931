//! What is written.
//!
//! - `record` is one message as bytes, bound to its position and to the `round` it was written in; `removal` says which messages are gone, `group`
//!   which belong together.
//! - `segment_header` comes before the records of a segment and `footer` after them, written with `bytes`; `anchor` is
//!   the small file that every store has.
//! - `encryption`, `compression` and `chain` are what a stream can have besides: a key, fewer bytes, and links from each message to the one before it.

pub mod anchor;
pub mod bytes;
pub mod chain;
pub mod compression;
pub mod encryption;
pub mod footer;
pub mod group;
pub mod record;
pub mod removal;
pub mod round;
pub mod segment_header;
