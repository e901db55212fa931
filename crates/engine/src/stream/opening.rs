//! How the store of a stream is opened: in its folder or in memory, and with which options.

use std::path::Path;
use std::sync::Arc;

use super::folders::Folders;
use super::refusals::store_error;
use super::registry::Streams;
use super::settings::{Storage, StreamSettings};
use super::stream::Stream;
use crate::common::error::EngineError;
use crate::storage::disk::file_system::FileSystem;
use crate::storage::disk::memory::{MemoryFileSystem, MEMORY_SEGMENT_BYTES};
use crate::storage::format::encryption::MasterKey;
use crate::storage::store::{Store, StoreOptions, SEGMENT_BYTES_DEFAULT};

impl Streams {
    /// Opens, or begins, the store of a stream in its folder. A new one is durable only later if it is said so.
    pub(super) fn open_in_folder(
        &self,
        account: &str,
        settings: StreamSettings,
        folder: &Path,
        settles_later: bool,
        seed: u64,
    ) -> Result<Arc<Stream>, EngineError> {
        let sync_commits = self.syncs_commits(&settings);
        let options = StoreOptions {
            settles_later,
            ..self.store_options(&settings, sync_commits)
        };
        let file_system = Arc::clone(&self.folders.file_system);
        self.open_store(
            account,
            settings,
            file_system,
            &Folders::messages(folder),
            options,
            seed,
        )
    }

    pub(super) fn open_in_memory(
        &self,
        account: &str,
        settings: StreamSettings,
        seed: u64,
    ) -> Result<Arc<Stream>, EngineError> {
        let file_system = Arc::new(MemoryFileSystem::default());
        let options = self.store_options(&settings, true);
        self.open_store(
            account,
            settings,
            file_system,
            Path::new("/messages"),
            options,
            seed,
        )
    }

    fn open_store(
        &self,
        account: &str,
        settings: StreamSettings,
        file_system: Arc<dyn FileSystem>,
        folder: &Path,
        options: StoreOptions,
        seed: u64,
    ) -> Result<Arc<Stream>, EngineError> {
        let sync_commits = options.sync_commits;
        let store =
            Store::open(file_system, folder, options).map_err(|error| store_error(&error))?;
        Ok(self.serve(account, settings, Arc::new(store), sync_commits, seed))
    }

    /// How the messages of a stream are kept.
    pub(super) fn store_options(
        &self,
        settings: &StreamSettings,
        sync_commits: bool,
    ) -> StoreOptions {
        let on_disk = settings.storage == Storage::File;
        let segment_bytes = match settings.storage {
            Storage::File => SEGMENT_BYTES_DEFAULT,
            Storage::Memory => MEMORY_SEGMENT_BYTES,
        };
        StoreOptions {
            segment_bytes,
            limits: settings.removing_limits(),
            first_sequence: settings.first_sequence,
            follows: settings.is_mirror,
            settles_later: false,
            sync_commits,
            chained: settings.chained,
            compressed: settings.compressed,
            counting: settings.counting,
            fill_ahead: on_disk,
            key: MasterKey::of_secret(&self.options.key).filter(|_| on_disk),
            previous_key: MasterKey::of_secret(&self.options.previous_key).filter(|_| on_disk),
        }
    }

    /// Whether commits to such a stream wait for the disk.
    pub(super) fn syncs_commits(&self, settings: &StreamSettings) -> bool {
        match settings.storage {
            Storage::File => self.options.sync_always && !settings.asynchronous,
            Storage::Memory => true,
        }
    }
}
