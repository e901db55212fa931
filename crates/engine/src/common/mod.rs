//! What every part of the engine uses, and that uses no other part.
//!
//! - `subject` is the grammar of subjects and what matches what; `permissions` are lists of them; `timestamp` is RFC 3339.
//! - `events` is what Python receives: log lines, requests, logins; `threads` starts every thread there is, and reports
//!   one that panics; `error` is everything the engine can refuse.
//! - `clock`, `random`, `identity`, `user_key`, `secret`, `short_hash`; `descriptors` divides the file descriptors of the process.
//! - `json_text`, `go_duration` and `white_space` read what clients write as nats-server's libraries do, and `go_json` writes as they do.

pub mod clock;
pub mod descriptors;
pub mod error;
pub mod events;
pub mod go_duration;
pub mod go_json;
pub mod identity;
pub mod json_text;
pub mod permissions;
pub mod random;
pub mod secret;
pub mod short_hash;
pub mod subject;
pub mod threads;
pub mod timestamp;
pub mod user_key;
pub mod white_space;
