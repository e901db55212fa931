//! A publish into a stream.
//!
//! - `ingest` takes it in: its `headers` are read, the `checks` decide against a `staged_view`, what they `admitted` is staged and noted in the `answer_queue`, as `pending`
//!   until it is committed; then `answers` sends the `acknowledgement`s. `loading` reads what some publishes have to wait for.
//! - `message_ids` remembers ids within a window (`duplicates`); `staged_effects` is what waiting messages will change; `counter` adds up; `time_to_live` is when a message expires, `expiring` removes it, and a `delete_marker`
//!   stands for it.
//! - `republish` sends on what was stored; `sender_rights` is what a message may have the stream do elsewhere; `tracing`
//!   reports where it goes; `untaken` holds messages that no stream takes yet.

pub mod acknowledgement;
pub mod admitted;
pub mod answer_queue;
pub mod answers;
pub mod checks;
pub mod counter;
pub mod delete_marker;
pub mod duplicates;
pub mod expiring;
pub mod headers;
pub mod ingest;
pub mod loading;
pub mod message_ids;
pub mod pending;
pub mod republish;
pub mod sender_rights;
pub mod staged_effects;
pub mod staged_view;
pub mod time_to_live;
pub mod tracing;
pub mod untaken;
