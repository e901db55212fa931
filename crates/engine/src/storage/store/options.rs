//! What a store is opened with.

use crate::storage::format::encryption::MasterKey;
use crate::storage::message::{Counting, Limits};

/// What a segment may hold before the next one begins.
pub const SEGMENT_BYTES_DEFAULT: u64 = 64 * 1024 * 1024;

#[derive(Clone)]
pub struct StoreOptions {
    pub segment_bytes: u64,
    pub limits: Limits,
    /// The sequence of the first message; counts when the store is new.
    pub first_sequence: u64,
    /// Whether sequences come from elsewhere, each always for the same message: then one that a crash took may be given again.
    pub follows: bool,
    /// Whether a new store is made durable only when something is committed, or `make_durable` is called. Its owner must know by then, and not before
    /// (`when_settled`), that what is in the folder counts.
    pub settles_later: bool,
    /// Whether a commit waits until the disk has everything. Without it, `sync` does, when it is called.
    pub sync_commits: bool,
    /// Whether each message is linked to the one before it.
    pub chained: bool,
    /// Whether sealed segments are compressed.
    pub compressed: bool,
    /// The server's key, if messages are encrypted.
    pub key: Option<MasterKey>,
    /// The server's key before that one: what it opens is put under the new one.
    pub previous_key: Option<MasterKey>,
    /// Whether the space of coming messages is filled with zeros ahead: overwriting is faster than growing on a disk, and useless in memory.
    pub fill_ahead: bool,
    pub counting: Counting,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            segment_bytes: SEGMENT_BYTES_DEFAULT,
            limits: Limits::default(),
            first_sequence: 1,
            follows: false,
            settles_later: false,
            sync_commits: true,
            chained: false,
            compressed: false,
            key: None,
            previous_key: None,
            fill_ahead: true,
            counting: Counting::default(),
        }
    }
}
