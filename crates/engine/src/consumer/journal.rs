//! The consumers of one stream on disk: their definitions, and how far each has come.
//!
//! It is a store of its own beside the messages. A definition is kept twice; a state is a whole record and the changes since. What changes
//! is written by one job: everything that changed while it wrote shares the next sync, also where messages do not wait for one. Invariants: an acknowledgement that is confirmed is on disk; a
//! definition that was acknowledged is, too.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use ahash::AHashMap;
use parking_lot::Mutex;

use super::consumer::Consumer;
use super::consumers::JournalPlace;
use super::state_record::{self, Replayed};
use crate::engine::Shared;
use crate::storage::keeper::StorageThreads;
use crate::storage::message::{NewMessage, StoreResult};
use crate::storage::store::{Store, StoreOptions};
use crate::storage::work_pool::Job;

/// States are small: a segment of this size holds many, and rewriting one is quick.
const SEGMENT_BYTES: u64 = 4 * 1024 * 1024;

/// Changes that are written at least before the whole state is written anew.
const CHANGES_BYTES_MIN: usize = 16 * 1024;

/// Changes may take so many times what the whole state takes.
const CHANGES_FACTOR: usize = 4;

/// Writes between two looks at whether something is to be sealed, joined or freed.
const UPKEEP_WRITES: u32 = 64;

const DEFINITION: &str = "d.";
const DEFINITION_COPY: &str = "e.";
const STATE: &str = "s.";

/// What the journal has of one consumer.
#[derive(Default)]
struct Kept {
    /// Who writes here: another consumer may have had the name before.
    owner: Weak<Consumer>,
    definitions: Vec<u64>,
    states: Vec<u64>,
    changes_bytes: usize,
    whole_bytes: usize,
    number: u64,
    needs_whole: bool,
}

/// A consumer that was found on disk.
#[derive(Default)]
pub struct Found {
    pub definition: Vec<u8>,
    pub replayed: Replayed,
}

#[derive(Default)]
struct Work {
    kept: AHashMap<String, Kept>,
    writes: u32,
    record: Vec<u8>,
}

pub struct Journal {
    store: Arc<Store>,
    shared: Arc<Shared>,
    noted: Mutex<Vec<Arc<Consumer>>>,
    /// Taken by whoever writes.
    work: Mutex<Work>,
    job: Arc<Job>,
}

impl Journal {
    /// Opens what is in its folder, or begins anew in it.
    pub fn open(
        place: &JournalPlace,
        threads: &StorageThreads,
        shared: Arc<Shared>,
    ) -> StoreResult<(Arc<Self>, BTreeMap<String, Found>)> {
        let options = StoreOptions {
            segment_bytes: SEGMENT_BYTES,
            key: place.key.clone(),
            previous_key: place.previous_key.clone(),
            ..StoreOptions::default()
        };
        let file_system = Arc::clone(&place.file_system);
        let store = Arc::new(Store::open(file_system, &place.folder, options)?);
        let (found, kept) = load(&store)?;
        let journal = Arc::new_cyclic(|own: &Weak<Self>| {
            let own = own.clone();
            Self {
                store,
                shared,
                noted: Mutex::default(),
                work: Mutex::new(Work {
                    kept,
                    ..Work::default()
                }),
                job: threads.committing(move || {
                    if let Some(journal) = own.upgrade() {
                        journal.write();
                    }
                }),
            }
        });
        Ok((journal, found))
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Keeps a new consumer: its definition and where it begins; it would survive a power cut when `commit` has returned.
    pub fn begin(&self, consumer: &Arc<Consumer>, definition: &[u8]) -> StoreResult<()> {
        let mut work = self.work.lock();
        let mut record = Vec::new();
        consumer.with_core(|core, _, _| {
            let aside = core.aside();
            state_record::encode(&mut core.acks, aside, 1, true, &mut record);
        });
        let parts = [
            (DEFINITION, definition),
            (DEFINITION_COPY, definition),
            (STATE, record.as_slice()),
        ];
        let sequences = self.append_all(&consumer.name, &parts)?;
        let kept = Kept {
            owner: Arc::downgrade(consumer),
            definitions: sequences[..2].to_vec(),
            states: sequences[2..].to_vec(),
            whole_bytes: record.len(),
            number: 1,
            ..Kept::default()
        };
        work.kept.insert(consumer.name.clone(), kept);
        Ok(())
    }

    /// Makes durable what was begun: several consumers share one sync.
    pub fn commit(&self) -> StoreResult<()> {
        self.store.commit().map(|_| ())
    }

    /// A consumer could not be made durable: nothing of it was written.
    pub fn give_up(&self, name: &str) {
        self.work.lock().kept.remove(name);
    }

    /// A consumer that was found here is served again.
    pub fn adopt(&self, consumer: &Arc<Consumer>) {
        if let Some(kept) = self.work.lock().kept.get_mut(&consumer.name) {
            kept.owner = Arc::downgrade(consumer);
        }
    }

    /// Replaces a definition; it would survive a power cut when this returns.
    pub fn define(&self, name: &str, definition: &[u8]) -> StoreResult<()> {
        let mut work = self.work.lock();
        let parts = [(DEFINITION, definition), (DEFINITION_COPY, definition)];
        let sequences = self.append_all(name, &parts)?;
        let kept = work.kept.entry(name.to_owned()).or_default();
        self.remove(&kept.definitions)?;
        self.store.commit()?;
        kept.definitions = sequences;
        Ok(())
    }

    /// Forgets a consumer, durably.
    pub fn forget(&self, name: &str) -> StoreResult<()> {
        let mut work = self.work.lock();
        let Some(kept) = work.kept.get(name) else {
            return Ok(());
        };
        self.remove(&kept.definitions)?;
        self.remove(&kept.states)?;
        self.store.commit()?;
        work.kept.remove(name);
        Ok(())
    }

    /// The state of a consumer has changed.
    pub fn note(&self, consumer: &Arc<Consumer>) {
        if !consumer.is_noted.swap(true, Ordering::AcqRel) {
            self.noted.lock().push(Arc::clone(consumer));
        }
    }

    /// What is noted is to be written now.
    pub fn ask(&self) {
        self.job.ask();
    }

    /// What the clock asks for: what is noted is written.
    pub fn tick(&self) {
        if !self.noted.lock().is_empty() {
            self.job.ask();
        }
    }

    /// Writes what is noted, and confirms what waited for that.
    fn write(&self) {
        let mut work = self.work.lock();
        let noted = std::mem::take(&mut *self.noted.lock());
        if noted.is_empty() {
            return;
        }
        let mut confirmations = Vec::new();
        let mut failure = None;
        for consumer in &noted {
            consumer.is_noted.store(false, Ordering::Release);
            // Before the state says that it is settled.
            consumer.bury();
            let (written, replies) = self.write_state(&mut work, consumer);
            confirmations.push(replies);
            failure = failure.or(written.err());
        }
        let committed = match failure {
            None => self.store.commit().map(drop),
            Some(error) => Err(error),
        };
        work.writes += 1;
        let is_time = work.writes % UPKEEP_WRITES == 0;
        for (consumer, replies) in noted.iter().zip(confirmations) {
            match committed {
                Ok(()) => consumer.confirm(&replies),
                Err(_) => {
                    // Nobody is told that something is on disk that is not. It is tried again as a whole.
                    if let Some(kept) = work.kept.get_mut(&consumer.name) {
                        kept.needs_whole = true;
                    }
                    consumer.with_core(|core, _, _| core.confirmations.extend(replies));
                    self.note(consumer);
                }
            }
        }
        drop(work);
        if is_time {
            // Whatever fails here is in the store's own status.
            while self.store.upkeep().is_ok_and(|more| more) {}
        }
    }

    fn write_state(
        &self,
        work: &mut Work,
        consumer: &Consumer,
    ) -> (StoreResult<()>, Vec<Box<[u8]>>) {
        let Work { kept, record, .. } = work;
        let owned = kept
            .get_mut(&consumer.name)
            .filter(|kept| std::ptr::eq(kept.owner.as_ptr(), consumer));
        let Some(kept) = owned else {
            // It was deleted meanwhile, and another may have its name.
            return (
                Ok(()),
                consumer.with_core(|core, _, _| std::mem::take(&mut core.confirmations)),
            );
        };
        let most = CHANGES_BYTES_MIN.max(kept.whole_bytes * CHANGES_FACTOR);
        let wholly = kept.needs_whole || kept.states.is_empty() || kept.changes_bytes > most;
        record.clear();
        let (is_whole, replies) = consumer.with_core(|core, _, _| {
            let aside = core.aside();
            let is_whole =
                state_record::encode(&mut core.acks, aside, kept.number + 1, wholly, record);
            (is_whole, std::mem::take(&mut core.confirmations))
        });
        let sequence = match self.append(STATE, &consumer.name, record) {
            Ok(sequence) => sequence,
            Err(error) => return (Err(error), replies),
        };
        kept.number += 1;
        let mut removed = Ok(());
        if is_whole {
            removed = self.remove(&kept.states);
            kept.states.clear();
            kept.whole_bytes = record.len();
            kept.changes_bytes = 0;
            kept.needs_whole = false;
        } else {
            kept.changes_bytes += record.len();
        }
        kept.states.push(sequence);
        (removed, replies)
    }

    fn append(&self, prefix: &str, name: &str, payload: &[u8]) -> StoreResult<u64> {
        let sequences = self.append_all(name, &[(prefix, payload)])?;
        Ok(sequences[0])
    }

    /// Stages parts of what is known of a consumer, which are there together or not at all.
    fn append_all(&self, name: &str, parts: &[(&str, &[u8])]) -> StoreResult<Vec<u64>> {
        let subjects: Vec<String> = parts
            .iter()
            .map(|(prefix, _)| [prefix, name].concat())
            .collect();
        let time_ns = self.shared.clock.wall_ns();
        let messages: Vec<NewMessage<'_>> = parts
            .iter()
            .zip(&subjects)
            .map(|((_, payload), subject)| NewMessage {
                subject: subject.as_bytes(),
                payload,
                time_ns,
                ..NewMessage::default()
            })
            .collect();
        let appended = match messages.as_slice() {
            [one] => vec![self.store.append(one)?],
            many => self.store.append_all(many)?,
        };
        Ok(appended.iter().map(|appended| appended.sequence).collect())
    }

    fn remove(&self, sequences: &[u64]) -> StoreResult<()> {
        for sequence in sequences {
            self.store.remove(*sequence, false)?;
        }
        Ok(())
    }

    /// Writes everything, and says where the journal ends.
    pub fn close(&self) -> StoreResult<()> {
        self.write();
        self.store.close()
    }
}

/// Reads the whole journal.
fn load(store: &Store) -> StoreResult<(BTreeMap<String, Found>, AHashMap<String, Kept>)> {
    let mut found: BTreeMap<String, Found> = BTreeMap::new();
    let mut kept: AHashMap<String, Kept> = AHashMap::new();
    store.scan(0, |record| {
        let Some((prefix, name)) = record.subject.split_at_checked(DEFINITION.len()) else {
            return true;
        };
        let Ok(name) = std::str::from_utf8(name) else {
            return true;
        };
        let kept = kept.entry(name.to_owned()).or_default();
        let found = found.entry(name.to_owned()).or_default();
        if prefix == STATE.as_bytes() {
            kept.states.push(record.sequence);
            found.replayed.apply(record.payload);
        } else {
            kept.definitions.push(record.sequence);
            found.definition = record.payload.to_vec();
        }
        true
    })?;
    for (name, found) in &found {
        if let Some(kept) = kept.get_mut(name) {
            kept.number = found.replayed.number();
            // What follows a state that may be incomplete begins anew.
            kept.needs_whole = true;
        }
    }
    found.retain(|_, found| !found.definition.is_empty());
    Ok((found, kept))
}
