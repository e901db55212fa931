//! All streams of a server: made, opened, changed and removed here, and found by account and name.
//!
//! Decisions come from Python; what they mean for the disk and for messages happens here. Invariant: a stream is in the registry from the moment it
//! would survive a power cut until it would not come back after one.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use ahash::AHashMap;
use parking_lot::{Mutex, RwLock};
use serde::Deserialize;

use super::archive::archives::Archives;
use super::batch::atomic_batches::AtomicBatches;
use super::batch::fast_batches::FastBatches;
use super::definition;
use super::definition::ServerFacts;
use super::folders::Folders;
use super::publish::ingest::Incomplete;
use super::publish::untaken::Untaken;
use super::read::scans::Scans;
use super::refusals::{disk_error, store_error};
use super::remembered::FileLocation;
use super::replication::followers::FollowersByName;
use super::replication::imported_origins;
use super::replication::linked_origins;
use super::replication::origins::OriginLookup;
use super::replication::remote::channel::ReaderEnd;
use super::replication::remote::remotes::Remotes;
use super::settings::{Storage, StreamSettings};
use super::staged_commit::uploads::{FindUser, Uploads};
use super::stream::{Stream, StreamContext};
use super::stream_options::StreamOptions;
use super::ticker::Ticker;
use super::turns::Turns;
use super::unserved::Unserved;
use super::usage::account_usage::{AccountUsage, ServerUsage};
use super::usage::state_report;
use crate::common::error::EngineError;
use crate::common::random::Random;
use crate::common::threads;
use crate::consumer::consumers::JournalPlace;
use crate::consumer::timers::ConsumerTimers;
use crate::routing::sender::Senders;
use crate::routing::shared::Shared;
use crate::storage::commit::scheduler::StorageThreads;
use crate::storage::disk::file_system::FileSystem;
use crate::storage::format::encryption::MasterKey;
use crate::storage::message::Purge;
use crate::storage::store::Store;

/// How often the clock looks at the streams: messages expire within so long of their time.
const TICK: Duration = Duration::from_millis(100);

/// A stream that was found on disk.
pub struct RecoveredStream {
    pub account: String,
    pub name: String,
    pub definition: Vec<u8>,
}

type ByName = AHashMap<String, Arc<Stream>>;

pub struct Streams {
    pub(super) shared: Arc<Shared>,
    pub(super) senders: Arc<Senders>,
    pub(super) options: StreamOptions,
    pub(super) folders: Folders,
    threads: Arc<StorageThreads>,
    timers: Arc<ConsumerTimers>,
    streams: Arc<RwLock<AHashMap<String, ByName>>>,
    followers: Arc<Mutex<AHashMap<String, Arc<FollowersByName>>>>,
    remotes: Arc<Remotes>,
    unserved: Unserved,
    pub(super) turns: Turns,
    random: Mutex<Random>,
    pub(super) archives: Archives,
    pub(super) scans: Scans,
    stopped: AtomicBool,
    server_usage: Arc<ServerUsage>,
    usages: Mutex<AHashMap<String, Arc<AccountUsage>>>,
    /// Batches that are open, of all streams.
    open_batches: Arc<AtomicUsize>,
    open_fast_batches: Arc<AtomicUsize>,
    /// Those who hold messages for streams to come, by account.
    pub(super) untaken: Mutex<AHashMap<String, Vec<Weak<Untaken>>>>,
}

impl Streams {
    pub fn new(
        file_system: Arc<dyn FileSystem>,
        shared: Arc<Shared>,
        folder: &Path,
        options: &[u8],
    ) -> Result<Arc<Self>, EngineError> {
        let options: StreamOptions = serde_json::from_slice(options)
            .map_err(|error| EngineError::Options(error.to_string()))?;
        let mut seed = [0; 8];
        getrandom::fill(&mut seed).map_err(|error| EngineError::System {
            what: "random bytes",
            cause: error.into(),
        })?;
        let server_usage = Arc::new(ServerUsage::limited(
            options.memory_bytes_max,
            options.storage_bytes_max,
        ));
        let remotes = Arc::new(Remotes::new(&options.remotes)?);
        let events = Arc::clone(&shared.events);
        let streams = Arc::new(Self {
            senders: Arc::new(Senders::new(Arc::clone(&shared))),
            timers: ConsumerTimers::start(Arc::clone(&shared))?,
            shared,
            options,
            folders: Folders::new(file_system, folder),
            threads: Arc::new(StorageThreads::new(&events)),
            streams: Arc::default(),
            followers: Arc::default(),
            remotes,
            unserved: Unserved::default(),
            turns: Turns::default(),
            random: Mutex::new(Random::seeded(u64::from_le_bytes(seed))),
            archives: Archives::new(&events),
            scans: Scans::new(&events),
            stopped: AtomicBool::new(false),
            server_usage,
            usages: Mutex::default(),
            open_batches: Arc::default(),
            open_fast_batches: Arc::default(),
            untaken: Mutex::default(),
        });
        let clock = Arc::downgrade(&streams);
        let mut ticker = Ticker::new(Arc::clone(&streams.shared));
        let spawned = threads::spawn(&events, "jetlake-clock", move || loop {
            std::thread::sleep(TICK);
            match clock.upgrade() {
                Some(streams) if !streams.stopped.load(Ordering::Acquire) => {
                    streams.shared.events.fail_point("clock");
                    ticker.begin_round(streams.all(), &streams.threads);
                    streams.archives.tick();
                }
                _ => return Ok(()),
            }
        });
        spawned.map_err(|cause| EngineError::System {
            what: "clock thread",
            cause,
        })?;
        Ok(streams)
    }

    /// What is on disk, and what was wrong with it, one line each. What these streams would take of others stays until they are opened.
    pub fn stored(&self) -> Result<(Vec<RecoveredStream>, Vec<String>), EngineError> {
        let inventory = self.folders.inventory().map_err(disk_error)?;
        let mut findings = inventory.findings;
        let mut stored = Vec::new();
        for found in inventory.streams {
            let kept = serde_json::from_slice(&found.definition);
            match kept {
                Ok(StoredDefinition {
                    account,
                    config: NamedStream { name },
                }) => stored.push(RecoveredStream {
                    account,
                    name,
                    definition: found.definition,
                }),
                Err(error) => findings.push(format!(
                    "{}: the stream cannot be served, its definition makes no sense ({error})",
                    found.folder.display()
                )),
            }
        }
        for found in &stored {
            if self.find(&found.account, &found.name).is_none() {
                let lookup = self.origin_lookup(&found.account, None);
                self.unserved.keep_for(found, &lookup);
            }
        }
        Ok((stored, findings))
    }

    pub(super) fn draw(&self) -> u64 {
        self.random.lock().draw()
    }

    /// Makes a stream; it takes messages when this returns.
    pub fn create(&self, account: &str, definition: &[u8]) -> Result<(), EngineError> {
        let _turn = self.turns.of(account);
        let settings = self.settings(definition)?;
        if self.find(account, &settings.name).is_some() {
            return Err(EngineError::Options(format!(
                "there is a stream {:?} already",
                settings.name
            )));
        }
        self.archives.check_free(account, &settings.name)?;
        let name = settings.name.clone();
        let stream = match settings.storage {
            Storage::Memory => self.open_in_memory(account, settings, self.draw())?,
            Storage::File => {
                let folder = self.folders.of_stream(account, &name);
                let nothing = |_: &Path| Ok(());
                self.make(account, settings, definition, &folder, self.draw(), nothing)?
            }
        };
        self.enter(account, name, stream);
        Ok(())
    }

    /// Makes a stream in a folder; `first` may put something where its messages will be.
    fn make(
        &self,
        account: &str,
        settings: StreamSettings,
        definition: &[u8],
        folder: &Path,
        seed: u64,
        first: impl FnOnce(&Path) -> Result<(), EngineError>,
    ) -> Result<Arc<Stream>, EngineError> {
        if !self.folders.is_free(folder).map_err(disk_error)? {
            return Err(EngineError::Store(format!(
                "{} holds a stream that could not be served: see what the log said at the start, and move it away",
                folder.display()
            )));
        }
        // What an interrupted attempt may have left.
        self.folders.remove_all(folder, 0).map_err(disk_error)?;
        self.folders.prepare(folder).map_err(disk_error)?;
        let stream = first(&Folders::messages(folder))
            .and_then(|()| self.open_in_folder(account, settings, folder, true, seed))
            .and_then(|stream| {
                let kept = self.with_account(account, definition)?;
                if stream.store().is_unsettled() {
                    let finish = self.folders.finish_beginning(folder, &kept);
                    stream.store().when_settled(finish);
                    self.folders.begin(folder, &kept).map_err(disk_error)?;
                    // The caller does not wait for this commit.
                    stream.commit_soon();
                } else {
                    self.folders.define(folder, &kept).map_err(disk_error)?;
                }
                Ok(stream)
            });
        if stream.is_err() {
            // What is left is removed at the next start at the latest.
            let _ = self.folders.remove_all(folder, 0);
        }
        stream
    }

    /// Makes a stream that begins as a copy of another, up to a sequence; all of it if that is 0.
    pub fn fork(
        &self,
        account: &str,
        origin: &str,
        last_sequence: u64,
        definition: &[u8],
    ) -> Result<(), EngineError> {
        let _turn = self.turns.of(account);
        let settings = self.settings(definition)?;
        let name = settings.name.clone();
        let origin = self.stream(account, origin)?;
        let on_disk = [settings.storage, origin.settings().storage] == [Storage::File; 2];
        if !on_disk || self.find(account, &name).is_some() {
            return Err(EngineError::Options(format!(
                "a fork is of a stream on disk, and there must be no stream {name:?}"
            )));
        }
        self.archives.check_free(account, &name)?;
        let usage = self.usage(account);
        if !usage.has_room(Storage::File, origin.fork_bytes(last_sequence))
            || usage.is_full(Storage::File)
        {
            return Err(EngineError::Store(
                "resource limits exceeded for account: remove messages or streams, or raise the limit of its storage".to_owned(),
            ));
        }
        let folder = self.folders.of_stream(account, &name);
        let first = |messages: &Path| {
            origin
                .fork(messages, last_sequence)
                .map_err(|error| store_error(&error))
        };
        let stream = self.make(account, settings, definition, &folder, self.draw(), first)?;
        self.enter(account, name, stream);
        Ok(())
    }

    /// Opens a stream that is on disk; returns what its recovery found. It keeps everything until `consumers_opened`.
    pub fn open(
        &self,
        account: &str,
        name: &str,
        definition: &[u8],
    ) -> Result<Vec<String>, EngineError> {
        let _turn = self.turns.of(account);
        let settings = self.settings(definition)?;
        let folder = self.folders.of_stream(account, name);
        let stream = self.open_in_folder(account, settings, &folder, false, self.draw())?;
        self.folders.finish_found(&folder).map_err(disk_error)?;
        let findings = stream.store().take_findings();
        stream.consumers().begin_opening();
        self.enter(account, name.to_owned(), stream);
        self.unserved.forget(account, name);
        Ok(findings.iter().map(ToString::to_string).collect())
    }

    pub(super) fn enter(&self, account: &str, name: String, stream: Arc<Stream>) {
        self.hand_over_untaken(account, &stream);
        stream.listen();
        let mut streams = self.streams.write();
        streams
            .entry(account.to_owned())
            .or_default()
            .insert(name, Arc::clone(&stream));
        drop(streams);
        stream.begin();
    }

    /// Replaces the definition of a stream, durably, and puts it in force.
    pub fn update(&self, account: &str, definition: &[u8]) -> Result<(), EngineError> {
        let _turn = self.turns.of(account);
        let settings = self.settings(definition)?;
        let stream = self.stream(account, &settings.name)?;
        if settings.storage == Storage::File {
            let folder = self.folders.of_stream(account, &settings.name);
            let settled = stream.store().make_durable();
            settled.map_err(|error| store_error(&error))?;
            self.folders
                .define(&folder, &self.with_account(account, definition)?)
                .map_err(disk_error)?;
        }
        stream.update(settings);
        Ok(())
    }

    pub fn delete(&self, account: &str, name: &str) -> Result<(), EngineError> {
        let _turn = self.turns.of(account);
        let stream = self.stream(account, name)?;
        stream.stop(ReaderEnd::Farewell);
        if stream.settings().storage == Storage::File {
            let folder = self.folders.of_stream(account, name);
            let deleted = stream.store().abandon(|| self.folders.delete(&folder));
            if let Err(error) = deleted {
                stream.listen_again();
                return Err(disk_error(error));
            }
            // Nothing may be written into a folder that is being removed.
            stream.consumers().retire();
            stream.store().retire();
            // What is left is removed at the next start at the latest.
            let _ = self.folders.remove(&folder);
        }
        if let Some(by_name) = self.streams.write().get_mut(account) {
            by_name.remove(name);
        }
        stream.consumers().retire();
        stream.end();
        Ok(())
    }

    /// Says which user a connection was let in as; the server itself is none.
    fn find_user(&self) -> FindUser {
        let shared = Arc::clone(&self.shared);
        Arc::new(move |connection_id| {
            if connection_id == 0 {
                return Some(String::new());
            }
            let connection = shared.connection(connection_id)?;
            let user = connection.identity.lock().user.clone();
            Some(user)
        })
    }

    /// What the streams of an account take up.
    pub fn usage(&self, account: &str) -> Arc<AccountUsage> {
        let mut usages = self.usages.lock();
        let usage = usages
            .entry(account.to_owned())
            .or_insert_with(|| Arc::new(AccountUsage::new(Arc::clone(&self.server_usage))));
        Arc::clone(usage)
    }

    pub fn find(&self, account: &str, name: &str) -> Option<Arc<Stream>> {
        self.streams.read().get(account)?.get(name).map(Arc::clone)
    }

    pub(super) fn stream(&self, account: &str, name: &str) -> Result<Arc<Stream>, EngineError> {
        self.find(account, name)
            .ok_or_else(|| EngineError::UnknownStream {
                account: account.to_owned(),
                name: name.to_owned(),
            })
    }

    /// What is stored, in numbers, as JSON; the query is JSON, too.
    pub fn state(&self, account: &str, name: &str, query: &[u8]) -> Result<Vec<u8>, EngineError> {
        let stream = self.stream(account, name)?;
        stream.finish_removals();
        state_report::write(&stream, query).map_err(|error| EngineError::Options(error.to_string()))
    }

    pub fn purge(&self, account: &str, name: &str, purge: &Purge) -> Result<u64, EngineError> {
        let stream = self.stream(account, name)?;
        stream.purge(purge).map_err(|error| store_error(&error))
    }

    pub fn delete_message(
        &self,
        account: &str,
        name: &str,
        sequence: u64,
        erase: bool,
    ) -> Result<bool, EngineError> {
        let stream = self.stream(account, name)?;
        stream
            .delete(sequence, erase)
            .map_err(|error| store_error(&error))
    }

    pub(super) fn all(&self) -> Vec<Arc<Stream>> {
        let streams = self.streams.read();
        streams
            .values()
            .flat_map(|by_name| by_name.values())
            .cloned()
            .collect()
    }

    /// Imports have changed, which may lead to other origins.
    pub fn look_for_origins(&self) {
        for stream in self.all() {
            stream.look_for_origins();
        }
    }

    /// The clock was set forward.
    pub fn look_at_clock(&self) {
        let now_ns = self.shared.clock.wall_ns();
        for stream in self.all() {
            stream.tick(now_ns);
        }
        self.archives.tick();
        self.timers.look();
    }

    /// The server stops: consumers say so while there are connections.
    pub fn say_goodbye(&self) {
        for stream in self.all() {
            stream.consumers().shut_down();
        }
    }

    /// Closes all streams in good order; returns what went wrong, one line each.
    pub fn close(&self) -> Vec<String> {
        let _turns = self.turns.of_all();
        self.stopped.store(true, Ordering::Release);
        self.archives.stop();
        self.scans.stop();
        let streams = std::mem::take(&mut *self.streams.write());
        let mut failures = Vec::new();
        for (account, by_name) in streams {
            for (name, stream) in by_name {
                if let Err(error) = stream.close() {
                    failures.push(format!("stream {name:?} of account {account:?}: {error}"));
                }
            }
        }
        failures
    }

    pub(super) fn settings(&self, definition: &[u8]) -> Result<StreamSettings, EngineError> {
        let server = ServerFacts {
            domain: self.options.domain.clone(),
            payload_bytes_max: self.shared.options().max_payload_bytes,
        };
        definition::read(definition, &server)
            .map_err(|error| EngineError::Options(format!("the definition of a stream: {error}")))
    }

    /// The definition as it is kept: the account belongs to it.
    pub(super) fn with_account(
        &self,
        account: &str,
        definition: &[u8],
    ) -> Result<Vec<u8>, EngineError> {
        let nonsense = |error: serde_json::Error| EngineError::Options(error.to_string());
        let mut object: serde_json::Map<String, serde_json::Value> =
            serde_json::from_slice(definition).map_err(nonsense)?;
        object.insert("account".to_owned(), account.into());
        serde_json::to_vec(&object).map_err(nonsense)
    }

    /// The other streams, as one of an account needs them, and where it writes down how far it is with them.
    fn origin_lookup(&self, account: &str, place: Option<FileLocation>) -> OriginLookup {
        let streams = Arc::downgrade(&self.streams);
        let followers = Arc::clone(&self.followers);
        let shared = Arc::downgrade(&self.shared);
        let linked = Arc::downgrade(&self.shared);
        OriginLookup {
            account: account.to_owned(),
            find_stream: Arc::new(move |account, name| {
                let streams = streams.upgrade()?;
                let streams = streams.read();
                streams.get(account)?.get(name).map(Arc::clone)
            }),
            find_followers: Arc::new(move |account| {
                let mut followers = followers.lock();
                Arc::clone(followers.entry(account.to_owned()).or_default())
            }),
            find_imported: Arc::new(move |account, origin| {
                imported_origins::account_of(&*shared.upgrade()?, account, origin)
            }),
            find_linked: Arc::new(move |account| linked_origins::connector(&linked, account)),
            remotes: Arc::clone(&self.remotes),
            place,
        }
    }

    /// Makes a stream of a store that was opened for it.
    pub(super) fn serve(
        &self,
        account: &str,
        settings: StreamSettings,
        store: Arc<Store>,
        sync_commits: bool,
        seed: u64,
    ) -> Arc<Stream> {
        let place = (settings.storage == Storage::File).then(|| FileLocation {
            file_system: Arc::clone(&self.folders.file_system),
            folder: self.folders.of_stream(account, &settings.name),
        });
        let origin_lookup = self.origin_lookup(account, place);
        let journal = (settings.storage == Storage::File).then(|| JournalPlace {
            file_system: Arc::clone(&self.folders.file_system),
            folder: Folders::consumers(&self.folders.of_stream(account, &settings.name)),
            key: MasterKey::of_secret(&self.options.key),
            previous_key: MasterKey::of_secret(&self.options.previous_key),
        });
        let open = Arc::clone(&self.open_batches);
        let open_fast = Arc::clone(&self.open_fast_batches);
        let context = StreamContext {
            shared: Arc::clone(&self.shared),
            timers: Arc::clone(&self.timers),
            long_ack_subjects: self.options.long_ack_subjects,
            journal,
            origin_lookup,
            account: self.shared.account(account),
            senders: Arc::clone(&self.senders),
            threads: &self.threads,
            buffer: self.options.buffer_limits(),
            usage: self.usage(account),
            incomplete: Incomplete {
                batches: AtomicBatches::new(self.options.batch_limits(), open, self.usage(account)),
                fast_batches: FastBatches::new(self.options.fast_limits(), open_fast),
                uploads: Uploads::new(self.usage(account), self.find_user()),
            },
            sync_interval: (!sync_commits)
                .then_some(Duration::from_millis(self.options.sync_interval_ms)),
            seed,
        };
        Stream::new(store, settings, context)
    }
}

/// What a definition on disk must have to be found again.
#[derive(Deserialize)]
struct StoredDefinition {
    account: String,
    config: NamedStream,
}

#[derive(Deserialize)]
struct NamedStream {
    name: String,
}
