//! Streams: what happens to a message between the router and the store.
//!
//! - `publish_headers` are the headers of a publish that mean something to a stream; `time_to_live` is one of them.
//! - `publish_checks` decides whether a message may be stored, by the stream's `settings`; `duplicates` remembers message ids for a while.
//! - `acknowledgement` is the answer to a publish, as bytes.

pub mod acknowledgement;
pub mod duplicates;
pub mod publish_checks;
pub mod publish_headers;
pub mod settings;
pub mod time_to_live;
