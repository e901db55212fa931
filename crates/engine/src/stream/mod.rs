//! Streams: what happens to a message between the router and the store.
//!
//! - `publish_headers` are the headers of a publish that mean something to a stream.
//! - `duplicates` remembers message ids for a while.
//! - `acknowledgement` is the answer to a publish, as bytes.

pub mod acknowledgement;
pub mod duplicates;
pub mod publish_headers;
