//! Messages on disk, so that an acknowledgement means durable.
//!
//! - `store` is the messages of one stream: append, commit, read, remove, and opening after a crash.
//! - `record` is one message as bytes, bound to its place and to the `round` it was written in; `removal` says which messages are gone, `group` which belong together. A segment is a file of records:
//!   `segment_header` in front, `footer` behind when it is sealed, `segment_index` what is known of it in memory.
//! - `index` is everything committed, `subject_index` its subjects, `lookup` the questions it answers.
//! - `scan` reads records over damage, `loading` finds out what a file holds, `finding` says what was wrong.
//! - `encryption`, `compression` and `chain` are what a stream can have besides: a key, fewer bytes, and links from each message to the one
//!   before it.
//! - `check` examines the folder of a store and changes nothing.
//! - `twin_file` is a small file kept twice; `anchor` is the one every store has.
//! - `keeper` commits and cleans up behind a store, on the threads of `work_pool`.
//! - `failure` says what a failed call means; `open_files` closes files that nobody uses. `file_system` is every call to a disk; `memory` a disk in memory, for streams that need no other; `simulated` a disk in memory that forgets, tears and fails, for tests.

pub mod anchor;
pub mod bits;
pub mod bytes;
pub mod chain;
pub mod check;
pub mod compression;
pub mod encryption;
pub mod failure;
pub mod file_system;
pub mod finding;
pub mod footer;
pub mod group;
pub mod index;
pub mod keeper;
pub mod loading;
pub mod lookup;
pub mod memory;
pub mod message;
pub mod open_files;
pub mod postings;
pub mod record;
pub mod removal;
pub mod round;
pub mod scan;
pub mod sealing;
pub mod segment_file;
pub mod segment_header;
pub mod segment_index;
pub mod simulated;
pub mod store;
pub mod subject_index;
pub mod subject_names;
pub mod sync_times;
pub mod twin_file;
pub mod work_pool;
