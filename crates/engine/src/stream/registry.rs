//! All streams of a server: made, opened, changed and removed here, and found by account and name.
//!
//! Decisions come from Python; what they mean for the disk and for messages happens here. Invariant: a stream is in the registry from the moment it
//! would survive a power cut until it would not come back after one.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

use ahash::AHashMap;
use parking_lot::{Mutex, RwLock};
use serde::{Deserialize, Serialize};

use super::definition;
use super::folders::Folders;
use super::ingest::BufferLimits;
use super::settings::{Settings, Storage};
use super::stream::{Stream, Surroundings};
use super::wall_clock::now_ns;
use crate::engine::Shared;
use crate::error::EngineError;
use crate::random::Random;
use crate::sender::Senders;
use crate::storage::file_system::{FileSystem, RealFileSystem};
use crate::storage::keeper::StorageThreads;
use crate::storage::memory::MemoryFileSystem;
use crate::storage::message::{Purge, StoreError};
use crate::storage::store::{Store, StoreOptions};

/// How often the clock looks at the streams: messages expire within so long of their time.
const TICK: Duration = Duration::from_millis(100);

/// Gaps that are listed at most when somebody asks for them.
const GAPS_MAX: usize = 1_000_000;

/// How streams are served.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StreamOptions {
    /// Commits wait for the disk; else it is synced in intervals.
    pub sync_always: bool,
    pub sync_interval_ms: u64,
    pub domain: String,
    /// 0 is the default.
    pub buffered_messages_max: usize,
    pub buffered_bytes_max: u64,
}

impl Default for StreamOptions {
    fn default() -> Self {
        Self {
            sync_always: true,
            sync_interval_ms: 120_000,
            domain: String::new(),
            buffered_messages_max: 0,
            buffered_bytes_max: 0,
        }
    }
}

/// A stream that was found on disk.
pub struct Stored {
    pub account: String,
    pub name: String,
    pub definition: Vec<u8>,
}

/// What somebody wants to know of a stream.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct StateQuery {
    deleted: bool,
    subjects: Option<String>,
    subjects_max: usize,
}

#[derive(Serialize)]
struct State {
    messages: u64,
    bytes: u64,
    first_sequence: u64,
    first_time_ns: i64,
    last_sequence: u64,
    last_time_ns: i64,
    subjects: u64,
    deleted_count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    deleted: Option<Vec<u64>>,
    lost: Vec<(u64, u64)>,
    lost_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject_counts: Option<Vec<(String, u64)>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject_counts_total: Option<usize>,
}

type ByName = AHashMap<String, Arc<Stream>>;

pub struct Streams {
    shared: Arc<Shared>,
    senders: Arc<Senders>,
    options: StreamOptions,
    folders: Folders,
    threads: StorageThreads,
    streams: RwLock<AHashMap<String, ByName>>,
    /// One change at a time.
    changing: Mutex<Random>,
    stopped: AtomicBool,
}

impl Streams {
    pub fn new(
        shared: Arc<Shared>,
        folder: &Path,
        options: &[u8],
    ) -> Result<Arc<Self>, EngineError> {
        let options: StreamOptions = serde_json::from_slice(options)
            .map_err(|error| EngineError::Options(error.to_string()))?;
        Self::on(Arc::new(RealFileSystem), shared, folder, options)
    }

    /// The same on any disk.
    pub fn on(
        file_system: Arc<dyn FileSystem>,
        shared: Arc<Shared>,
        folder: &Path,
        options: StreamOptions,
    ) -> Result<Arc<Self>, EngineError> {
        let mut seed = [0; 8];
        getrandom::fill(&mut seed).map_err(|error| EngineError::System {
            what: "random bytes",
            cause: error.into(),
        })?;
        let streams = Arc::new(Self {
            senders: Arc::new(Senders::new(Arc::clone(&shared))),
            shared,
            options,
            folders: Folders::new(file_system, folder),
            threads: StorageThreads::default(),
            streams: RwLock::default(),
            changing: Mutex::new(Random::seeded(u64::from_le_bytes(seed))),
            stopped: AtomicBool::new(false),
        });
        let clock = Arc::downgrade(&streams);
        let spawned = std::thread::Builder::new()
            .name("jetlake-clock".to_owned())
            .spawn(move || loop {
                std::thread::sleep(TICK);
                match clock.upgrade() {
                    Some(streams) if !streams.stopped.load(Ordering::Acquire) => streams.tick(),
                    _ => return,
                }
            });
        spawned.map_err(|cause| EngineError::System {
            what: "clock thread",
            cause,
        })?;
        Ok(streams)
    }

    /// What is on disk, and what was wrong with it, one line each.
    pub fn stored(&self) -> Result<(Vec<Stored>, Vec<String>), EngineError> {
        let inventory = self.folders.inventory().map_err(disk_error)?;
        let mut findings = inventory.findings;
        let mut stored = Vec::new();
        for found in inventory.streams {
            let kept = serde_json::from_slice(&found.definition);
            match kept {
                Ok(Kept {
                    account,
                    config: Named { name },
                }) => stored.push(Stored {
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
        Ok((stored, findings))
    }

    /// Makes a stream; it takes messages when this returns.
    pub fn create(&self, account: &str, definition: &[u8]) -> Result<(), EngineError> {
        let mut random = self.changing.lock();
        let settings = self.settings(definition)?;
        if self.find(account, &settings.name).is_some() {
            return Err(EngineError::Options(format!(
                "there is a stream {:?} already",
                settings.name
            )));
        }
        let name = settings.name.clone();
        let stream = match settings.storage {
            Storage::Memory => self.open_in_memory(account, settings, random.draw())?,
            Storage::File => {
                let folder = self.folders.of_stream(account, &name);
                self.make(account, settings, definition, &folder, random.draw())
                    .inspect_err(|_| {
                        // What is left would be removed at the next start at the latest.
                        let _ = self.folders.remove_all(&folder, 0);
                    })?
            }
        };
        self.enter(account, name, stream);
        Ok(())
    }

    fn make(
        &self,
        account: &str,
        settings: Settings,
        definition: &[u8],
        folder: &Path,
        seed: u64,
    ) -> Result<Arc<Stream>, EngineError> {
        // A folder without a definition may be left from an attempt that was interrupted.
        self.folders.remove_all(folder, 0).map_err(disk_error)?;
        self.folders.prepare(folder).map_err(disk_error)?;
        let stream = self.open_in_folder(account, settings, folder, seed)?;
        self.folders
            .define(folder, &self.with_account(account, definition)?)
            .map_err(disk_error)?;
        Ok(stream)
    }

    /// Opens a stream that is on disk; returns what its recovery found.
    pub fn open(
        &self,
        account: &str,
        name: &str,
        definition: &[u8],
    ) -> Result<Vec<String>, EngineError> {
        let mut random = self.changing.lock();
        let settings = self.settings(definition)?;
        let folder = self.folders.of_stream(account, name);
        let stream = self.open_in_folder(account, settings, &folder, random.draw())?;
        let findings = stream.store().take_findings();
        self.enter(account, name.to_owned(), stream);
        Ok(findings.iter().map(ToString::to_string).collect())
    }

    fn enter(&self, account: &str, name: String, stream: Arc<Stream>) {
        stream.listen();
        let mut streams = self.streams.write();
        streams
            .entry(account.to_owned())
            .or_default()
            .insert(name, stream);
    }

    /// Replaces the definition of a stream, durably, and puts it in force.
    pub fn update(&self, account: &str, definition: &[u8]) -> Result<(), EngineError> {
        let _one = self.changing.lock();
        let settings = self.settings(definition)?;
        let stream = self.stream(account, &settings.name)?;
        if settings.storage == Storage::File {
            let folder = self.folders.of_stream(account, &settings.name);
            self.folders
                .define(&folder, &self.with_account(account, definition)?)
                .map_err(disk_error)?;
        }
        stream.update(settings).map_err(|error| store_error(&error))
    }

    pub fn delete(&self, account: &str, name: &str) -> Result<(), EngineError> {
        let _one = self.changing.lock();
        let stream = self.stream(account, name)?;
        if stream.settings().storage == Storage::File {
            let folder = self.folders.of_stream(account, name);
            stream.stop();
            if let Err(error) = self.folders.delete(&folder) {
                stream.listen_again();
                return Err(disk_error(error));
            }
        }
        stream.stop();
        if let Some(by_name) = self.streams.write().get_mut(account) {
            by_name.remove(name);
        }
        Ok(())
    }

    pub fn find(&self, account: &str, name: &str) -> Option<Arc<Stream>> {
        self.streams.read().get(account)?.get(name).map(Arc::clone)
    }

    fn stream(&self, account: &str, name: &str) -> Result<Arc<Stream>, EngineError> {
        self.find(account, name)
            .ok_or_else(|| EngineError::UnknownStream {
                account: account.to_owned(),
                name: name.to_owned(),
            })
    }

    pub fn state(&self, account: &str, name: &str, query: &[u8]) -> Result<Vec<u8>, EngineError> {
        let query: StateQuery = serde_json::from_slice(query)
            .map_err(|error| EngineError::Options(error.to_string()))?;
        let stream = self.stream(account, name)?;
        let store = stream.store();
        let state = store.state();
        let span = match state.messages {
            0 => 0,
            _ => state.last_sequence - state.first_sequence + 1,
        };
        let mut subject_counts = None;
        let mut subject_counts_total = None;
        if let Some(filter) = &query.subjects {
            let mut counts = store.subject_counts(filter.as_bytes());
            subject_counts_total = Some(counts.len());
            counts.sort_unstable();
            counts.truncate(query.subjects_max);
            let texts = counts
                .into_iter()
                .map(|(subject, count)| (String::from_utf8_lossy(&subject).into_owned(), count));
            subject_counts = Some(texts.collect());
        }
        let state = State {
            messages: state.messages,
            bytes: state.bytes,
            first_sequence: state.first_sequence,
            first_time_ns: state.first_time_ns,
            last_sequence: state.last_sequence,
            last_time_ns: state.last_time_ns,
            subjects: state.subjects,
            deleted_count: span - state.messages,
            deleted: query.deleted.then(|| store.gaps(GAPS_MAX)),
            lost: state
                .lost
                .iter()
                .map(|lost| (lost.first, lost.last))
                .collect(),
            lost_bytes: 0,
            subject_counts,
            subject_counts_total,
        };
        serde_json::to_vec(&state).map_err(|error| EngineError::Options(error.to_string()))
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

    fn all(&self) -> Vec<Arc<Stream>> {
        let streams = self.streams.read();
        streams
            .values()
            .flat_map(|by_name| by_name.values())
            .cloned()
            .collect()
    }

    fn tick(&self) {
        let now_ns = now_ns();
        for stream in self.all() {
            stream.tick(now_ns);
        }
    }

    /// Closes all streams in good order; returns what went wrong, one line each.
    pub fn close(&self) -> Vec<String> {
        let _one = self.changing.lock();
        self.stopped.store(true, Ordering::Release);
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

    fn settings(&self, definition: &[u8]) -> Result<Settings, EngineError> {
        definition::read(definition, &self.options.domain)
            .map_err(|error| EngineError::Options(format!("the definition of a stream: {error}")))
    }

    /// The definition as it is kept: the account belongs to it.
    fn with_account(&self, account: &str, definition: &[u8]) -> Result<Vec<u8>, EngineError> {
        let nonsense = |error: serde_json::Error| EngineError::Options(error.to_string());
        let mut object: serde_json::Map<String, serde_json::Value> =
            serde_json::from_slice(definition).map_err(nonsense)?;
        object.insert("account".to_owned(), account.into());
        serde_json::to_vec(&object).map_err(nonsense)
    }

    fn open_in_folder(
        &self,
        account: &str,
        settings: Settings,
        folder: &Path,
        seed: u64,
    ) -> Result<Arc<Stream>, EngineError> {
        let file_system = Arc::clone(&self.folders.file_system);
        let sync_commits = self.options.sync_always && !settings.asynchronous;
        self.open_store(
            account,
            settings,
            file_system,
            &Folders::messages(folder),
            sync_commits,
            seed,
        )
    }

    fn open_in_memory(
        &self,
        account: &str,
        settings: Settings,
        seed: u64,
    ) -> Result<Arc<Stream>, EngineError> {
        let file_system = Arc::new(MemoryFileSystem::default());
        self.open_store(
            account,
            settings,
            file_system,
            Path::new("/messages"),
            true,
            seed,
        )
    }

    fn open_store(
        &self,
        account: &str,
        settings: Settings,
        file_system: Arc<dyn FileSystem>,
        folder: &Path,
        sync_commits: bool,
        seed: u64,
    ) -> Result<Arc<Stream>, EngineError> {
        let options = StoreOptions {
            limits: settings.limits,
            first_sequence: settings.first_sequence,
            sync_commits,
            chained: settings.chained,
            compressed: settings.compressed,
            counting: settings.counting,
            fill_ahead: settings.storage == Storage::File,
            ..StoreOptions::default()
        };
        let store =
            Store::open(file_system, folder, options).map_err(|error| store_error(&error))?;
        let defaults = BufferLimits::default();
        let surroundings = Surroundings {
            account: self.shared.account(account),
            senders: Arc::clone(&self.senders),
            threads: &self.threads,
            buffer: BufferLimits {
                messages_max: match self.options.buffered_messages_max {
                    0 => defaults.messages_max,
                    most => most,
                },
                bytes_max: match self.options.buffered_bytes_max {
                    0 => defaults.bytes_max,
                    most => most,
                },
            },
            sync_interval: (!sync_commits)
                .then_some(Duration::from_millis(self.options.sync_interval_ms)),
            seed,
        };
        Ok(Stream::new(Arc::new(store), settings, surroundings))
    }
}

/// What a definition on disk must have to be found again.
#[derive(Deserialize)]
struct Kept {
    account: String,
    config: Named,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

fn store_error(error: &StoreError) -> EngineError {
    EngineError::Store(error.to_string())
}

fn disk_error(error: io::Error) -> EngineError {
    let text = match error.raw_os_error() {
        Some(libc::ENOSPC | libc::EDQUOT) => {
            "the disk is full: free some space and try again".to_owned()
        }
        _ => error.to_string(),
    };
    EngineError::Store(text)
}
