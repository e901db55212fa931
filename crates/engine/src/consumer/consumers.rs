//! The consumers of one stream: created, opened, changed and deleted here, and notified of what happens to the stream's
//! messages.
//!
//! Invariant: a consumer that keeps its state on disk is in here from the moment its definition would survive a power cut until it would not come
//! back after one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc;

use ahash::AHashMap;
use parking_lot::{Mutex, RwLock};

use super::acknowledgement::state::AckState;
use super::consumer::{Consumer, ConsumerContext};
use super::definition;
use super::host_stream::HostStream;
use super::journal::archived_state;
use super::journal::journal::{Journal, RecoveredConsumer};
use super::journal::state_record::Aside;
use super::settings::ConsumerSettings;
use super::timers::ConsumerTimers;
use crate::common::error::EngineError;
use crate::common::random::Random;
use crate::routing::account::Account;
use crate::routing::sender::Senders;
use crate::routing::shared::Shared;
use crate::storage::commit::scheduler::StorageThreads;
use crate::storage::disk::file_system::FileSystem;
use crate::storage::format::encryption::MasterKey;
use crate::storage::message::{Purge, StoreError};
use crate::storage::store::Store;

/// New messages up to which consumers are served by the thread that stored them.
const LITTLE: usize = 64;

/// Where the journal of the consumers is.
pub struct JournalPlace {
    pub file_system: Arc<dyn FileSystem>,
    pub folder: PathBuf,
    /// The server's key, and the one before.
    pub key: Option<MasterKey>,
    pub previous_key: Option<MasterKey>,
}

/// What the consumers of a stream need of it.
pub struct StreamFacts {
    pub shared: Arc<Shared>,
    pub account: Arc<Account>,
    pub name: String,
    pub domain: Option<String>,
    pub store: Arc<Store>,
    pub senders: Arc<Senders>,
    pub timers: Arc<ConsumerTimers>,
    pub long_ack_subjects: bool,
    pub threads: Arc<StorageThreads>,
    /// `None` for a stream in memory.
    pub place: Option<JournalPlace>,
    pub message_bytes_max: u64,
    pub host: Arc<dyn HostStream>,
    pub seed: u64,
}

type All = Arc<Vec<Arc<Consumer>>>;

pub struct Consumers {
    facts: StreamFacts,
    by_name: RwLock<AHashMap<String, Arc<Consumer>>>,
    /// The same as a list, so that a commit holds no lock for long. Built on demand: building it for each new consumer
    /// would cost the square of their number.
    all: RwLock<Option<All>>,
    count: AtomicUsize,
    /// One of them holds messages back by their keys.
    has_keys: AtomicBool,
    /// What the store had removed when they were last looked through for what is gone.
    swept: AtomicU64,
    journal: Mutex<Option<Arc<Journal>>>,
    /// Those that are made and not durable yet: they deliver nothing.
    fresh: Mutex<Vec<Arc<Consumer>>>,
    /// Those that are durable and have not begun: they deliver nothing either.
    ready: Mutex<VecDeque<Arc<Consumer>>>,
    /// What the journal held when it was opened, minus the consumers opened since.
    found: Mutex<BTreeMap<String, RecoveredConsumer>>,
    /// Those of them that are not served: what they need must stay.
    unserved: Mutex<BTreeSet<String>>,
    has_unserved: AtomicBool,
    /// Those on disk are still to be opened, and it may not be known yet which there are.
    is_opening: AtomicBool,
    random: Mutex<Random>,
}

impl Consumers {
    pub fn new(facts: StreamFacts) -> Self {
        Self {
            random: Mutex::new(Random::seeded(facts.seed)),
            facts,
            by_name: RwLock::default(),
            all: RwLock::default(),
            count: AtomicUsize::new(0),
            has_keys: AtomicBool::new(false),
            swept: AtomicU64::new(0),
            journal: Mutex::default(),
            fresh: Mutex::default(),
            ready: Mutex::default(),
            found: Mutex::default(),
            unserved: Mutex::default(),
            has_unserved: AtomicBool::new(false),
            is_opening: AtomicBool::new(false),
        }
    }

    /// Reads the journal, if there is one; returns the definitions in it.
    pub fn load(&self) -> Result<Vec<Vec<u8>>, EngineError> {
        let Some(place) = &self.facts.place else {
            return Ok(Vec::new());
        };
        let files = place.file_system.list(&place.folder).unwrap_or_default();
        if files.is_empty() {
            return Ok(Vec::new());
        }
        self.journal()?;
        let found = self.found.lock();
        Ok(found
            .values()
            .map(|found| found.definition.clone())
            .collect())
    }

    fn journal(&self) -> Result<Option<Arc<Journal>>, EngineError> {
        let Some(place) = &self.facts.place else {
            return Ok(None);
        };
        let mut journal = self.journal.lock();
        if journal.is_none() {
            let shared = Arc::clone(&self.facts.shared);
            let (opened, found) = Journal::open(place, &self.facts.threads, shared)
                .map_err(|error| store_error(&error))?;
            let defined = found
                .iter()
                .filter(|(_, found)| !found.definition.is_empty());
            let unserved: BTreeSet<String> = defined.map(|(name, _)| name.clone()).collect();
            self.has_unserved
                .store(!unserved.is_empty(), Ordering::Release);
            *self.unserved.lock() = unserved;
            *self.found.lock() = found;
            *journal = Some(opened);
        }
        Ok(journal.clone())
    }

    /// Makes a consumer; it delivers nothing, and is not durable, before `commit`.
    pub fn create(&self, definition: &[u8]) -> Result<Arc<Consumer>, EngineError> {
        self.create_with(definition, None)
    }

    /// The same for one that comes from a backup and goes on where it was.
    pub fn restore(&self, definition: &[u8], state: &[u8]) -> Result<(), EngineError> {
        self.create_with(definition, Some(state)).map(|_| ())
    }

    fn create_with(
        &self,
        definition: &[u8],
        state: Option<&[u8]>,
    ) -> Result<Arc<Consumer>, EngineError> {
        let settings = read(definition)?;
        let name = settings.name.clone();
        if self.find(&name).is_some() {
            return Err(EngineError::Options(format!(
                "there is a consumer {name:?} already"
            )));
        }
        let journal = match settings.memory_storage {
            true => None,
            false => self.journal()?,
        };
        let last_sequence = self.facts.store.messages().marks().last_sequence;
        let policy = settings.ack_policy;
        let restored = state
            .map(|state| archived_state::read(state, policy, last_sequence))
            .transpose()
            .map_err(|error| EngineError::Options(format!("its state: {error}")))?
            .map(|state| (state, Aside::default(), 0));
        let consumer = self.make(settings, journal.clone(), restored)?;
        if let Some(journal) = &journal {
            journal
                .begin(&consumer, definition)
                .map_err(|error| store_error(&error))?;
        }
        self.enter(&consumer);
        self.fresh.lock().push(Arc::clone(&consumer));
        Ok(consumer)
    }

    /// Makes durable what was created, and lets it deliver. What cannot be made durable is there no more; returns those, each with the reason.
    pub fn commit(&self) -> Vec<(String, StoreError)> {
        let refused = self.make_durable();
        self.begin_ready(usize::MAX);
        refused
    }

    /// The same for those that deliver only after `begin_ready`.
    pub fn make_durable(&self) -> Vec<(String, StoreError)> {
        let fresh = std::mem::take(&mut *self.fresh.lock());
        let mut refused = Vec::new();
        for consumer in fresh {
            let journal = consumer.journal();
            // The first one commits for all; each gets its own outcome.
            match journal.map_or(Ok(()), |journal| journal.commit(&consumer)) {
                Ok(()) => self.ready.lock().push_back(consumer),
                Err(error) => {
                    self.leave(&consumer);
                    refused.push((consumer.name.clone(), error));
                }
            }
        }
        refused
    }

    /// Starts the next of the durable consumers, at most this many; false when all have been started.
    pub fn begin_ready(&self, most: usize) -> bool {
        for _ in 0..most {
            let Some(consumer) = self.ready.lock().pop_front() else {
                return false;
            };
            consumer.begin();
        }
        !self.ready.lock().is_empty()
    }

    fn leave(&self, consumer: &Consumer) {
        let mut by_name = self.by_name.write();
        by_name.remove(&consumer.name);
        self.forget_list(&by_name);
        drop(by_name);
        consumer.delete();
    }

    /// Opens a consumer that was found on disk.
    pub fn open(&self, definition: &[u8]) -> Result<(), EngineError> {
        let settings = read(definition)?;
        let found = self.found.lock().remove(&settings.name);
        let journal = self.journal()?;
        let policy = settings.ack_policy;
        let restored = found.and_then(|found| found.replayed.finish(policy));
        let consumer = self.make(settings, journal.clone(), restored)?;
        if let Some(journal) = &journal {
            journal.adopt(&consumer);
        }
        self.enter(&consumer);
        consumer.begin();
        // Only now: until it was entered nothing it needs could go.
        let mut unserved = self.unserved.lock();
        unserved.remove(&consumer.name);
        self.has_unserved
            .store(!unserved.is_empty(), Ordering::Release);
        Ok(())
    }

    fn make(
        &self,
        settings: ConsumerSettings,
        journal: Option<Arc<Journal>>,
        restored: Option<(AckState, Aside, u64)>,
    ) -> Result<Arc<Consumer>, EngineError> {
        let facts = &self.facts;
        let name = settings.name.clone();
        let context = ConsumerContext {
            shared: Arc::clone(&facts.shared),
            account: Arc::clone(&facts.account),
            stream: facts.name.clone(),
            domain: facts.domain.clone(),
            store: Arc::clone(&facts.store),
            senders: Arc::clone(&facts.senders),
            timers: Arc::clone(&facts.timers),
            long_ack_subjects: facts.long_ack_subjects,
            journal,
            message_bytes_max: facts.message_bytes_max,
            threads: Arc::clone(&facts.threads),
            host: Arc::clone(&facts.host),
        };
        let seed = self.random.lock().draw();
        let settings = Arc::new(settings);
        Consumer::new(context, name, settings, restored, &facts.threads, seed)
            .map_err(|error| store_error(&error))
    }

    fn enter(&self, consumer: &Arc<Consumer>) {
        if consumer.settings().key.is_some() {
            self.has_keys.store(true, Ordering::Release);
        }
        let mut by_name = self.by_name.write();
        by_name.insert(consumer.name.clone(), Arc::clone(consumer));
        self.forget_list(&by_name);
    }

    /// The set of consumers has changed; the caller still holds its lock.
    fn forget_list(&self, by_name: &AHashMap<String, Arc<Consumer>>) {
        *self.all.write() = None;
        self.count.store(by_name.len(), Ordering::Release);
    }

    /// Replaces the definition of a consumer, durably, and puts it in force; returns it, and whether it asks for other messages than before.
    pub fn update(&self, definition: &[u8]) -> Result<(Arc<Consumer>, bool), EngineError> {
        let settings = read(definition)?;
        let consumer = self.consumer(&settings.name)?;
        let has_other_filters = consumer.settings().filters != settings.filters;
        if has_other_filters {
            consumer
                .forget_settled()
                .map_err(|error| store_error(&error))?;
        }
        if let Some(journal) = consumer.journal() {
            journal
                .define(&settings.name, definition)
                .map_err(|error| store_error(&error))?;
        }
        consumer.update(settings);
        Ok((consumer, has_other_filters))
    }

    /// Deletes a consumer, durably; returns it.
    pub fn delete(&self, name: &str) -> Result<Arc<Consumer>, EngineError> {
        let consumer = self.consumer(name)?;
        if let Some(journal) = consumer.journal() {
            journal.forget(name).map_err(|error| store_error(&error))?;
        }
        self.leave(&consumer);
        Ok(consumer)
    }

    pub fn find(&self, name: &str) -> Option<Arc<Consumer>> {
        self.by_name.read().get(name).map(Arc::clone)
    }

    pub fn consumer(&self, name: &str) -> Result<Arc<Consumer>, EngineError> {
        self.find(name).ok_or_else(|| EngineError::UnknownConsumer {
            stream: self.facts.name.clone(),
            name: name.to_owned(),
        })
    }

    /// Whether a consumer on disk is not served, because this version does not understand its definition or has not opened it yet.
    pub fn has_unserved(&self) -> bool {
        self.has_unserved.load(Ordering::Acquire) || self.is_opening.load(Ordering::Acquire)
    }

    /// Those on disk are about to be opened.
    pub fn begin_opening(&self) {
        self.is_opening.store(true, Ordering::Release);
    }

    /// All of them are opened.
    pub fn end_opening(&self) {
        self.is_opening.store(false, Ordering::Release);
    }

    pub fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    pub fn all(&self) -> All {
        if let Some(all) = &*self.all.read() {
            return Arc::clone(all);
        }
        // The lock keeps consumers from coming or going until the list is stored.
        let by_name = self.by_name.read();
        let all: All = Arc::new(by_name.values().cloned().collect());
        *self.all.write() = Some(Arc::clone(&all));
        all
    }

    /// Whether one of them takes messages of this subject.
    pub fn want(&self, subject: &[u8]) -> bool {
        !self.is_empty()
            && self
                .all()
                .iter()
                .any(|consumer| consumer.keeps() && consumer.wants(subject))
    }

    /// Whether one of them has not settled a message yet.
    pub fn need(&self, subject: &[u8], sequence: u64) -> bool {
        self.all()
            .iter()
            .any(|consumer| consumer.keeps() && consumer.needs(subject, sequence))
    }

    /// About `count` messages are new.
    pub fn notice(&self, count: usize) {
        if self.is_empty() {
            return;
        }
        let all = self.all();
        for consumer in all.iter() {
            consumer.tell_new(count <= LITTLE && all.len() == 1);
        }
    }

    /// Messages were purged.
    pub fn purged(&self, purge: &Purge) {
        for consumer in self.all().iter() {
            consumer.drop_missing(false);
            consumer.with_core(|core, context, _| core.purged(context, purge));
            consumer.schedule();
        }
    }

    /// Messages were rolled up. For a rollup of one subject, advisories report those that were not acknowledged.
    pub fn rolled_up(&self, purge: &Purge) {
        for consumer in self.all().iter() {
            if purge.filter.is_some() {
                consumer.sweep();
            }
            consumer.with_core(|core, context, _| core.purged(context, purge));
            consumer.schedule();
        }
    }

    /// One message was deleted.
    pub fn deleted(&self, sequence: u64) {
        for consumer in self.all().iter() {
            consumer.forget_message(sequence);
        }
    }

    /// What the clock asks for.
    pub fn tick(&self) {
        if self.is_empty() {
            return;
        }
        let removed = self.facts.store.messages().marks().removed;
        if self.swept.swap(removed, Ordering::AcqRel) != removed {
            for consumer in self.all().iter() {
                consumer.sweep();
            }
        }
        if self.has_keys.load(Ordering::Acquire) {
            for consumer in self.all().iter() {
                consumer.hand_over();
            }
        }
        if let Some(journal) = &*self.journal.lock() {
            journal.tick();
        }
    }

    /// The server stops: nothing is delivered any more.
    pub fn shut_down(&self) {
        for consumer in self.all().iter() {
            consumer.shut_down();
        }
    }

    /// Everything is written, and the journal says where it ends.
    pub fn close(&self) -> Result<(), StoreError> {
        self.shut_down();
        let journal = self.journal.lock().take();
        journal.map_or(Ok(()), |journal| journal.close())
    }

    /// The stream is deleted: nothing is delivered, and nothing is written any more.
    pub fn retire(&self) {
        let mut by_name = self.by_name.write();
        let all = std::mem::take(&mut *by_name);
        self.forget_list(&by_name);
        drop(by_name);
        for consumer in all.values() {
            consumer.delete();
        }
        if let Some(journal) = self.journal.lock().take() {
            journal.store().retire();
        }
    }
}

fn read(definition: &[u8]) -> Result<ConsumerSettings, EngineError> {
    definition::read(definition)
        .map_err(|error| EngineError::Options(format!("the definition of a consumer: {error}")))
}

fn store_error(error: &StoreError) -> EngineError {
    EngineError::Store(error.to_string())
}
