//! Streams: what happens to a message between the router and the store.
//!
//! - `publish_headers` are the headers of a publish that mean something to a stream; `time_to_live` is one of them.
//! - `publish_checks` decides whether a message may be stored, by the stream's `settings`; `duplicates` remembers message ids for a while.
//! - `acknowledgement` is the answer to a publish, as bytes.

pub mod acknowledgement;
pub mod api;
pub mod counter;
pub mod definition;
pub mod delete_marker;
pub mod direct_get;
pub mod duplicates;
pub mod folders;
pub mod get_request;
pub mod ingest;
pub mod message_get;
pub mod moment;
pub mod pending;
pub mod publish_checks;
pub mod publish_headers;
pub mod reads;
pub mod registry;
pub mod settings;
pub mod stored_headers;
#[allow(clippy::module_inception, reason = "one noun, one module")]
pub mod stream;
pub mod subject_transform;
pub mod time_to_live;
pub mod wall_clock;
