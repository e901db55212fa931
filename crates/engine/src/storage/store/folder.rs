//! Where a store lies, and what about it never changes while it is open: every part of the store works on this.

use std::path::PathBuf;
use std::sync::Arc;

use super::options::StoreOptions;
use crate::storage::disk::file_system::FileSystem;
use crate::storage::format::encryption::StreamKey;

pub struct StoreFolder {
    pub file_system: Arc<dyn FileSystem>,
    pub path: PathBuf,
    pub options: StoreOptions,
    /// The identity of the stream.
    pub stream: u64,
    pub origin_sequence: u64,
    pub stream_key: Option<StreamKey>,
}
