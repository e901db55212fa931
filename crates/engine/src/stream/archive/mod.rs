//! Backups of a stream.
//!
//! - `snapshot` sends a stream as an archive: its `format`, in S2 frames (`wire/s2_frames.rs`). `restore` takes one back through `import`; `archives` has all that are
//!   under way.
//! - `legacy_format` reads archives that nats-server made before 2.15.

pub mod archives;
pub mod format;
pub mod import;
pub mod legacy_format;
pub mod restore;
pub mod snapshot;
