//! The disk: every call to it goes through `file_system`.
//!
//! - `failure` says what a failed call means; `open_files` closes files that nobody uses; `sync_times` measures.
//! - `twin_file` is a small file kept twice.
//! - `memory` is a disk in memory, for streams that need no other; `simulated` one that forgets, tears and fails, for tests.

pub mod failure;
pub mod file_system;
pub mod memory;
pub mod open_files;
pub mod simulated;
pub mod sync_times;
pub mod twin_file;
