//! Streams: what happens to a message between the router and the store.
//!
//! - `registry` has all streams of a server, on disk in `folders` by their `definition`, opened as `opening` says; `stream` is one of them, with its
//!   `settings`. `api` answers what the engine answers itself; `refusals` say what failed on a disk; `turns` has changes of one account wait for each
//!   other; `ticker` is the clock of all; `remembered` is what a stream keeps besides its messages; `unserved` is those that are on disk and not opened.
//! - `publish` accepts a message; `batch` accepts many together, `schedule` publishes later.
//! - `replication` copies from other streams, of this server or of another.
//! - `read` answers without a consumer; `consumers` is what a stream does for its consumers.
//! - `archive` makes and restores backups; `staged_commit` is Spark's two-phase write.
//! - `usage` is how much of everything there is, and how much there may be.

pub mod api;
pub mod archive;
pub mod batch;
pub mod consumers;
pub mod definition;
pub mod folders;
pub mod opening;
pub mod publish;
pub mod read;
mod refusals;
pub mod registry;
pub mod remembered;
pub mod replication;
pub mod schedule;
pub mod settings;
pub mod staged_commit;
#[allow(clippy::module_inception, reason = "one noun, one module")]
pub mod stream;
pub mod stream_options;
pub mod ticker;
mod turns;
mod unserved;
pub mod usage;
