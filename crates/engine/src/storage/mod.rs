//! Messages on disk, so that an acknowledgement means durable.
//!
//! - `store` is the messages of one stream: append, commit, read, remove, and opening after a crash; `message` is what goes in and comes out.
//! - `commit` is the threads that commit and maintain stores; `receipts` notify parts of the server that a message is
//!   durable.
//! - `segment` is a file of records, `format` what is written, `index` what is known of it in memory.
//! - `disk` is every call to a file system.
//! - `check` examines the folder of a store and changes nothing; `finding` says what was wrong.

pub mod check;
pub mod commit;
pub mod disk;
pub mod finding;
pub mod format;
pub mod index;
pub mod message;
pub mod receipts;
pub mod segment;
pub mod store;
