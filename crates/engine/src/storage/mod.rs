//! Messages on disk, so that an acknowledgement means durable.
//!
//! - `file_system` is every call to a disk; `simulated` a disk in memory that forgets, tears and fails, for tests.
//! - `record` is one message as bytes, bound to its place.

pub mod bytes;
pub mod file_system;
pub mod record;
pub mod scan;
pub mod segment_header;
pub mod simulated;
