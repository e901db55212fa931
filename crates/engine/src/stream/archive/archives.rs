//! Snapshots and restores under way, and what they need of the streams.
//!
//! Each runs as a job on a pool of their own, so that a slow receiver holds nobody up. Invariant: a claimed name is not
//! a stream, and no other stream is made under it until the restore that claimed it has ended.

use std::path::Path;
use std::sync::Arc;

use ahash::{AHashMap, AHashSet};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde::Serialize;

use super::import::ImportError;
use super::restore::{Restore, RestoreRequest, RestoredStream, Spool, SPOOL_NAME};
use super::snapshot::{Snapshot, SnapshotRequest, WantedConsumer};
use crate::common::error::EngineError;
use crate::common::events::{ArchiveEvent, ArchiveEventKind, Event, Events};
use crate::storage::commit::work_pool::{WorkPool, THREADS_MAX};
use crate::storage::disk::file_system::OpenMode;
use crate::storage::disk::memory::MemoryFileSystem;
use crate::storage::store::{Store, StoreOptions};
use crate::stream::folders::Folders;
use crate::stream::refusals::{disk_error, store_error};
use crate::stream::registry::Streams;
use crate::stream::replication::remote::channel::ReaderEnd;
use crate::stream::settings::{Storage, StreamSettings};
use crate::stream::usage::shares::{HeldShare, RESTORES, SNAPSHOTS};

// Whatever is begun finds a thread.
const _: () = assert!(SNAPSHOTS.server_max + RESTORES.server_max <= THREADS_MAX);

pub struct Archives {
    pool: WorkPool,
    snapshots: Mutex<AHashMap<String, Arc<Snapshot>>>,
    restores: Mutex<AHashMap<String, Arc<Restore>>>,
    /// Accounts and names of streams that are being made.
    claimed: Mutex<AHashSet<(String, String)>>,
}

impl Archives {
    pub fn new(events: &Arc<Events>) -> Self {
        Self {
            pool: WorkPool::new(events),
            snapshots: Mutex::default(),
            restores: Mutex::default(),
            claimed: Mutex::default(),
        }
    }

    /// Whether another request may create a stream of this name.
    pub fn check_free(&self, account: &str, name: &str) -> Result<(), EngineError> {
        let key = (account.to_owned(), name.to_owned());
        match self.claimed.lock().contains(&key) {
            true => Err(EngineError::Options(format!(
                "the stream {name:?} is being restored"
            ))),
            false => Ok(()),
        }
    }

    /// What the clock asks for.
    pub fn tick(&self) {
        let restores: Vec<_> = self.restores.lock().values().cloned().collect();
        for restore in restores {
            restore.tick();
        }
    }

    /// Ends what is under way. What a restore leaves on disk is removed at the next start.
    pub fn stop(&self) {
        for (_, snapshot) in self.snapshots.lock().drain() {
            snapshot.stop();
        }
        for (_, restore) in self.restores.lock().drain() {
            restore.stop();
        }
    }
}

impl Streams {
    /// Begins a snapshot of a stream; it is sent after `send_snapshot`.
    pub fn begin_snapshot(
        &self,
        account: &str,
        name: &str,
        request: &[u8],
    ) -> Result<(), EngineError> {
        let request: SnapshotRequest = read(request)?;
        let id = request.id.clone();
        let stream = self.stream(account, name)?;
        let place = HeldShare::reserve(&self.usage(account).snapshots, "snapshots")
            .map_err(EngineError::Store)?;
        let snapshot = Snapshot::new(request, stream, Arc::clone(&self.senders), place);
        self.archives.snapshots.lock().insert(id, snapshot);
        Ok(())
    }

    /// Notes how some consumers stand, for a snapshot that was begun; nothing is left of it after an error.
    pub fn add_to_snapshot(&self, id: &str, consumers: &[u8]) -> Result<(), EngineError> {
        let snapshot = self.snapshot(id)?;
        let added =
            read(consumers).and_then(|wanted: Vec<WantedConsumer>| snapshot.add_consumers(&wanted));
        if added.is_err() {
            self.archives.snapshots.lock().remove(id);
        }
        added
    }

    /// Sends a snapshot that was begun; an event reports its end.
    pub fn send_snapshot(self: &Arc<Self>, id: &str) -> Result<(), EngineError> {
        let snapshot = self.snapshot(id)?;
        let id = id.to_owned();
        let streams = Arc::downgrade(self);
        let job = self.archives.pool.job(move || {
            let failure = snapshot.run();
            snapshot.leave_place();
            if let Some(streams) = streams.upgrade() {
                streams.archives.snapshots.lock().remove(&id);
                let details = serde_json::json!({ "failure": failure });
                streams.tell_archive(ArchiveEventKind::SnapshotEnded, &id, &details);
            }
        });
        job.schedule();
        Ok(())
    }

    fn snapshot(&self, id: &str) -> Result<Arc<Snapshot>, EngineError> {
        let found = self.archives.snapshots.lock().get(id).cloned();
        found.ok_or_else(|| EngineError::Options(format!("snapshot {id:?} has not begun")))
    }

    /// Accepts chunks of an archive from now on; an event reports the outcome.
    pub fn start_restore(
        self: &Arc<Self>,
        account: &str,
        definition: &[u8],
        request: &[u8],
    ) -> Result<(), EngineError> {
        let request: RestoreRequest = read(request)?;
        let settings = self.settings(definition)?;
        let place = HeldShare::reserve(&self.usage(account).restores, "restores")
            .map_err(EngineError::Store)?;
        let folder = self.folders.of_restore(account, &request.id);
        let file_system = &self.folders.file_system;
        file_system.create_folder(&folder).map_err(disk_error)?;
        let file = file_system
            .open(&folder.join(SPOOL_NAME), OpenMode::Create)
            .map_err(disk_error)?;
        let restore = Restore::new(
            request,
            self.shared.account(account),
            settings,
            Spool::new(file),
            place,
            self,
            &self.archives.pool,
        );
        let restores = &self.archives.restores;
        let id = restore.id().to_owned();
        restores.lock().insert(id, Arc::clone(&restore));
        restore.listen();
        Ok(())
    }

    /// Makes a stream of what was restored, for its consumers to be made in: nobody finds it before `serve_restored`. Nothing is left of it after an error.
    pub fn finish_restore(&self, id: &str, definition: &[u8]) -> Result<(), EngineError> {
        let restore = self.restore(id)?;
        let store = restore.take_store().ok_or_else(|| unknown(id))?;
        match self.adopt(&restore, definition, store) {
            Ok(filling) => {
                restore.fill(filling);
                self.remove_spool(&restore);
                Ok(())
            }
            Err(error) => {
                self.give_up(&restore.account.name, &restore.settings);
                self.forget_restore(&restore);
                Err(error)
            }
        }
    }

    fn adopt(
        &self,
        restore: &Restore,
        definition: &[u8],
        store: Arc<Store>,
    ) -> Result<RestoredStream, EngineError> {
        let account = &restore.account.name;
        let settings = self.settings(definition)?;
        let (name, storage) = (&restore.settings.name, restore.settings.storage);
        if (&settings.name, settings.storage) != (name, storage) {
            return Err(EngineError::Options(
                "the definition is another than the one the messages were stored for".to_owned(),
            ));
        }
        let definition = self.with_account(account, definition)?;
        let sync_commits = self.syncs_commits(&settings);
        let seed = self.draw();
        Ok(RestoredStream {
            stream: self.serve(account, settings, store, sync_commits, seed),
            definition,
        })
    }

    /// Makes a consumer of a stream that is restored, which goes on where it was when it was archived; durable after `commit_restored_consumers`.
    pub fn restore_consumer(
        &self,
        id: &str,
        definition: &[u8],
        state: &[u8],
    ) -> Result<(), EngineError> {
        let filling = self.restore(id)?.filling().ok_or_else(|| unknown(id))?;
        filling.stream.consumers().restore(definition, state)
    }

    /// Makes durable the consumers that were made. Returns those for which that failed, and why.
    pub fn commit_restored_consumers(
        &self,
        id: &str,
    ) -> Result<Vec<(String, String)>, EngineError> {
        let filling = self.restore(id)?.filling().ok_or_else(|| unknown(id))?;
        let refused = filling.stream.consumers().make_durable().into_iter();
        Ok(refused
            .map(|(name, error)| (name, store_error(&error).to_string()))
            .collect())
    }

    /// All consumers are made: the stream would survive a power cut with them, and takes messages, when this returns. They deliver after `begin_consumers`.
    /// Nothing is left of it after an error.
    pub fn serve_restored(&self, id: &str) -> Result<(), EngineError> {
        let restore = self.restore(id)?;
        let filling = restore.take_filling().ok_or_else(|| unknown(id))?;
        let served = self.put_in_place(&restore, &filling);
        if served.is_err() {
            self.give_up_filling(&restore, &filling);
        }
        self.forget_restore(&restore);
        served
    }

    fn put_in_place(&self, restore: &Restore, filling: &RestoredStream) -> Result<(), EngineError> {
        let (account, name) = (&restore.account.name, &restore.settings.name);
        let _turn = self.turns.of(account);
        if restore.settings.storage == Storage::File {
            let folder = self.folders.of_stream(account, name);
            let defined = self.folders.define(&folder, &filling.definition);
            defined.map_err(disk_error)?;
        }
        self.enter(account, name.clone(), Arc::clone(&filling.stream));
        self.unclaim(account, name);
        Ok(())
    }

    /// Forgets what was restored, if it is not served yet; false if there is nothing to forget.
    pub fn cancel_restore(&self, id: &str) -> bool {
        let Ok(restore) = self.restore(id) else {
            return false;
        };
        if restore.take_store().is_some() {
            self.give_up(&restore.account.name, &restore.settings);
        } else if let Some(filling) = restore.take_filling() {
            self.give_up_filling(&restore, &filling);
        } else {
            return false;
        }
        self.forget_restore(&restore);
        true
    }

    fn give_up_filling(&self, restore: &Restore, filling: &RestoredStream) {
        // Nothing may be written into a folder that is being removed.
        filling.stream.stop(ReaderEnd::Farewell);
        filling.stream.consumers().retire();
        filling.stream.store().retire();
        self.give_up(&restore.account.name, &restore.settings);
    }

    fn restore(&self, id: &str) -> Result<Arc<Restore>, EngineError> {
        let found = self.archives.restores.lock().get(id).cloned();
        found.ok_or_else(|| unknown(id))
    }

    /// The name is kept for a restore that has all it needs.
    pub(in crate::stream) fn claim(
        &self,
        account: &str,
        settings: &StreamSettings,
    ) -> Result<(), ImportError> {
        let _turn = self.turns.of(account);
        let name = &settings.name;
        if self.find(account, name).is_some() {
            return Err(ImportError::Taken);
        }
        let folder = self.folders.of_stream(account, name);
        let is_free = self.folders.is_free(&folder).map_err(disk_error)?;
        let key = (account.to_owned(), name.clone());
        if !is_free || !self.archives.claimed.lock().insert(key) {
            return Err(ImportError::Taken);
        }
        Ok(())
    }

    fn unclaim(&self, account: &str, name: &str) {
        let key = (account.to_owned(), name.to_owned());
        self.archives.claimed.lock().remove(&key);
    }

    /// An empty store for messages from this sequence on, under a name that is claimed.
    pub(in crate::stream) fn open_restored(
        &self,
        account: &str,
        settings: &StreamSettings,
        first_sequence: u64,
    ) -> Result<Arc<Store>, EngineError> {
        let options = StoreOptions {
            first_sequence,
            ..self.store_options(settings, self.syncs_commits(settings))
        };
        let opened = match settings.storage {
            Storage::Memory => {
                let file_system = Arc::new(MemoryFileSystem::default());
                Store::open(file_system, Path::new("/messages"), options)
            }
            Storage::File => {
                let folder = self.folders.of_stream(account, &settings.name);
                // What an interrupted attempt may have left.
                self.folders.remove_all(&folder, 0).map_err(disk_error)?;
                self.folders.prepare(&folder).map_err(disk_error)?;
                let file_system = Arc::clone(&self.folders.file_system);
                Store::open(file_system, &Folders::messages(&folder), options)
            }
        };
        opened.map(Arc::new).map_err(|error| store_error(&error))
    }

    /// Removes what was stored under a name that is claimed, and gives the name back.
    pub(in crate::stream) fn give_up(&self, account: &str, settings: &StreamSettings) {
        if settings.storage == Storage::File {
            let folder = self.folders.of_stream(account, &settings.name);
            // What is left is removed at the next start at the latest.
            let _ = self.folders.remove_all(&folder, 0);
        }
        self.unclaim(account, &settings.name);
    }

    /// A restore has ended.
    pub(in crate::stream) fn forget_restore(&self, restore: &Restore) {
        self.archives.restores.lock().remove(restore.id());
        self.remove_spool(restore);
    }

    /// Removes the file in which an archive waited.
    fn remove_spool(&self, restore: &Restore) {
        let folder = self.folders.of_restore(&restore.account.name, restore.id());
        // The same.
        let _ = self.folders.remove_all(&folder, 0);
    }

    pub(in crate::stream) fn tell_archive(
        &self,
        kind: ArchiveEventKind,
        id: &str,
        details: &impl Serialize,
    ) {
        let event = ArchiveEvent {
            kind,
            id: id.to_owned(),
            details: serde_json::to_vec(details).expect("numbers and texts can be written"),
        };
        self.shared.events.push(Event::Archive(event));
    }
}

fn read<T: DeserializeOwned>(request: &[u8]) -> Result<T, EngineError> {
    serde_json::from_slice(request).map_err(|error| EngineError::Options(error.to_string()))
}

fn unknown(id: &str) -> EngineError {
    EngineError::Options(format!("no restore {id:?} waits for its end"))
}
