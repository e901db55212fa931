//! The consumers of one stream on disk: their definitions, and how far each has come.
//!
//! It is a store of its own beside the messages. A definition is kept twice; a state is a whole record and the changes since. What changes
//! is written by one job: everything that changed while it wrote shares the next sync, also where messages do not wait for one. Invariants: an acknowledgement that is confirmed is on disk, and what it released is out of the stream; a
//! definition that was acknowledged is, too; and what is noted here of where something lies is durable, because the place of what was refused is given to others.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use ahash::AHashMap;
use parking_lot::{Mutex, MutexGuard};

use super::state_record::Replayed;
use crate::consumer::confirming::confirm_released;
use crate::consumer::consumer::Consumer;
use crate::consumer::consumers::JournalPlace;
use crate::consumer::core::Core;
use crate::routing::shared::Shared;
use crate::storage::commit::scheduler::StorageThreads;
use crate::storage::commit::work_pool::Job;
use crate::storage::message::{NewMessage, StoreResult};
use crate::storage::store::staged_work::{Change, StagedWork};
use crate::storage::store::{Store, StoreOptions};

/// States are small: a segment of this size holds many, and rewriting one is quick.
const SEGMENT_BYTES: u64 = 4 * 1024 * 1024;

/// The whole state is not rewritten before this many bytes of changes.
const CHANGES_BYTES_MIN: usize = 16 * 1024;

/// Changes may take up to this many times the size of the whole state.
const CHANGES_FACTOR: usize = 4;

/// Messages of a state that are written while the consumer is locked: about half a millisecond.
const SLICE_MESSAGES: usize = 16 * 1024;

/// Writes between two checks whether something can be sealed, joined or freed.
const MAINTENANCE_WRITES: u32 = 64;

const DEFINITION: &str = "d.";
const DEFINITION_COPY: &str = "e.";
const STATE: &str = "s.";

/// What the journal has of one consumer.
#[derive(Default)]
struct JournaledConsumer {
    /// Who writes here: another consumer may have had the name before.
    owner: Weak<Consumer>,
    /// Nothing of it is durable before this is.
    beginning: Option<StagedWork>,
    definitions: Vec<u64>,
    states: Vec<u64>,
    changes_bytes: usize,
    whole_bytes: usize,
    number: u64,
    needs_whole: bool,
}

impl JournaledConsumer {
    fn is_owned_by(&self, consumer: &Consumer) -> bool {
        std::ptr::eq(self.owner.as_ptr(), consumer)
    }
}

/// The state of a consumer, or what has changed in it, as it was staged.
struct StagedState {
    staged: StagedWork,
    written: WrittenState,
}

/// What is in the records of one state.
#[derive(Clone, Copy)]
struct WrittenState {
    /// Of the whole record, if there is one.
    whole_bytes: Option<usize>,
    changes_bytes: usize,
    /// Of the last record.
    number: u64,
}

/// A consumer that was found on disk.
#[derive(Default)]
pub struct RecoveredConsumer {
    pub definition: Vec<u8>,
    pub replayed: Replayed,
}

#[derive(Default)]
struct JournalWork {
    kept: AHashMap<String, JournaledConsumer>,
    writes: u32,
    record: Vec<u8>,
    /// What changed while that was written, if it was written in slices.
    record_behind: Vec<u8>,
}

impl JournalWork {
    fn is_beginning(&self, consumer: &Consumer) -> bool {
        let kept = self.kept.get(&consumer.name);
        kept.is_some_and(|kept| kept.is_owned_by(consumer) && kept.beginning.is_some())
    }
}

pub struct Journal {
    store: Arc<Store>,
    shared: Arc<Shared>,
    noted: Mutex<Vec<Arc<Consumer>>>,
    /// Held by the thread that writes.
    work: Mutex<JournalWork>,
    job: Arc<Job>,
}

impl Journal {
    /// Opens what is in its folder, or starts an empty journal there.
    pub fn open(
        place: &JournalPlace,
        threads: &StorageThreads,
        shared: Arc<Shared>,
    ) -> StoreResult<(Arc<Self>, BTreeMap<String, RecoveredConsumer>)> {
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
                work: Mutex::new(JournalWork {
                    kept,
                    ..JournalWork::default()
                }),
                job: threads.committing(move || {
                    if let Some(journal) = own.upgrade() {
                        // What could not be written is noted again.
                        let _ = journal.write();
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
            core.write_state(1, true, &mut record);
        });
        let parts = [
            (DEFINITION, definition),
            (DEFINITION_COPY, definition),
            (STATE, record.as_slice()),
        ];
        // A state may be left of one that had the name, and whose definition is lost.
        let left = work.kept.get(&consumer.name);
        let left: Vec<u64> = left.map_or(Vec::new(), |kept| kept.states.clone());
        let staged = self.stage(&consumer.name, &parts, &left)?;
        let kept = JournaledConsumer {
            owner: Arc::downgrade(consumer),
            beginning: Some(staged),
            whole_bytes: record.len(),
            number: 1,
            ..JournaledConsumer::default()
        };
        work.kept.insert(consumer.name.clone(), kept);
        Ok(())
    }

    /// Makes durable a consumer that was begun; several of them share one sync. If that fails, nothing of it is kept.
    pub fn commit(&self, consumer: &Consumer) -> StoreResult<()> {
        let mut work = self.work.lock();
        let Some(kept) = work.kept.get_mut(&consumer.name) else {
            return Ok(());
        };
        let begun = self.finish_beginning(kept);
        if begun.is_err() {
            work.kept.remove(&consumer.name);
        }
        begun
    }

    /// Makes durable what was begun, if that is still to be done.
    fn finish_beginning(&self, kept: &mut JournaledConsumer) -> StoreResult<()> {
        let Some(staged) = &kept.beginning else {
            return Ok(());
        };
        self.store.commit_through(staged)?;
        let (definitions, states) = staged.sequences.split_at(2);
        kept.definitions = definitions.to_vec();
        kept.states = states.to_vec();
        kept.beginning = None;
        Ok(())
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
        let kept = work.kept.entry(name.to_owned()).or_default();
        self.finish_beginning(kept)?;
        let staged = self.stage(name, &parts, &kept.definitions)?;
        self.store.commit_through(&staged)?;
        kept.definitions = staged.sequences;
        Ok(())
    }

    /// Forgets a consumer, durably.
    pub fn forget(&self, name: &str) -> StoreResult<()> {
        let mut work = self.work.lock();
        let Some(kept) = work.kept.get_mut(name) else {
            return Ok(());
        };
        // Where it does not become durable, nothing is to be removed.
        let _ = self.finish_beginning(kept);
        let removed = [kept.definitions.as_slice(), &kept.states].concat();
        let staged = self.stage(name, &[], &removed)?;
        self.store.commit_through(&staged)?;
        work.kept.remove(name);
        Ok(())
    }

    /// The state of a consumer has changed.
    pub fn note(&self, consumer: &Arc<Consumer>) {
        if !consumer.is_noted.swap(true, Ordering::AcqRel) {
            self.noted.lock().push(Arc::clone(consumer));
        }
    }

    /// Schedules a write of what is noted now.
    pub fn schedule(&self) {
        self.job.schedule();
    }

    /// What the clock asks for: what is noted is written.
    pub fn tick(&self) {
        if !self.noted.lock().is_empty() {
            self.job.schedule();
        }
    }

    /// What is noted now is on disk when this returns.
    pub fn flush(&self) -> StoreResult<()> {
        self.write()
    }

    /// Writes what is noted, and confirms what waited for that.
    fn write(&self) -> StoreResult<()> {
        let mut work = self.work.lock();
        let noted = std::mem::take(&mut *self.noted.lock());
        if noted.is_empty() {
            return Ok(());
        }
        let mut written = Vec::new();
        for consumer in &noted {
            consumer.is_noted.store(false, Ordering::Release);
            if work.is_beginning(consumer) {
                // Nothing of it is durable that a change could follow.
                self.note(consumer);
                continue;
            }
            let (staged, replies) = self.stage_state(&mut work, consumer);
            written.push((consumer, staged, replies));
        }
        work.writes += 1;
        let is_time = work.writes % MAINTENANCE_WRITES == 0;
        let mut committed = Ok(());
        let mut confirmed = Vec::new();
        for (consumer, staged, replies) in written {
            // The first one commits for all; each gets its own outcome.
            match staged.and_then(|staged| self.commit_state(&mut work, consumer, staged)) {
                Ok(()) if replies.is_empty() => {}
                Ok(()) => confirmed.push((consumer, replies)),
                Err(error) => {
                    committed = Err(error);
                    // Nothing is confirmed that is not on disk. It is tried again as a whole.
                    if let Some(kept) = work.kept.get_mut(&consumer.name) {
                        kept.needs_whole = true;
                    }
                    consumer.expect_confirmations(replies);
                    self.note(consumer);
                }
            }
        }
        drop(work);
        confirm_released(&confirmed);
        if is_time {
            // Whatever fails here is in the store's own status.
            while self.store.maintain().is_ok_and(|more| more) {}
        }
        committed
    }

    /// Stages what has changed in a consumer's state; with who waits for that to be on disk. Nothing is staged for one that is gone.
    fn stage_state(
        &self,
        work: &mut JournalWork,
        consumer: &Consumer,
    ) -> (StoreResult<Option<StagedState>>, Vec<Box<[u8]>>) {
        let JournalWork {
            kept,
            record,
            record_behind,
            ..
        } = work;
        let kept = kept.get_mut(&consumer.name);
        let Some(kept) = kept.filter(|kept| kept.is_owned_by(consumer)) else {
            // It was deleted meanwhile, and another may have its name.
            return (
                Ok(None),
                consumer.with_core(|core, _, _| core.deliveries().take_confirmations()),
            );
        };
        let most = CHANGES_BYTES_MIN.max(kept.whole_bytes * CHANGES_FACTOR);
        let wholly = kept.needs_whole || kept.states.is_empty() || kept.changes_bytes > most;
        record.clear();
        record_behind.clear();
        let (written, replies) =
            encode_state(consumer, kept.number + 1, wholly, record, record_behind);
        let replaced: &[u64] = match written.whole_bytes {
            Some(_) => &kept.states,
            None => &[],
        };
        let parts = [(STATE, record.as_slice()), (STATE, record_behind)];
        let count = if record_behind.is_empty() { 1 } else { 2 };
        let staged = self.stage(&consumer.name, &parts[..count], replaced);
        let staged = staged.map(|staged| Some(StagedState { staged, written }));
        (staged, replies)
    }

    fn commit_state(
        &self,
        work: &mut JournalWork,
        consumer: &Consumer,
        state: Option<StagedState>,
    ) -> StoreResult<()> {
        let Some(state) = state else {
            return Ok(());
        };
        self.store.commit_through(&state.staged)?;
        let Some(kept) = work.kept.get_mut(&consumer.name) else {
            return Ok(());
        };
        kept.number = state.written.number;
        if let Some(whole_bytes) = state.written.whole_bytes {
            kept.states.clear();
            kept.whole_bytes = whole_bytes;
            kept.changes_bytes = 0;
            kept.needs_whole = false;
        }
        kept.changes_bytes += state.written.changes_bytes;
        kept.states.extend(state.staged.sequences);
        Ok(())
    }

    /// Stages parts of what is known of a consumer, in the place of others: all of that is done together or not at all.
    fn stage(
        &self,
        name: &str,
        parts: &[(&str, &[u8])],
        replaced: &[u64],
    ) -> StoreResult<StagedWork> {
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
        self.store.stage(&Change {
            append: &messages,
            remove: replaced,
            erase: false,
        })
    }

    /// Writes everything, and says where the journal ends.
    pub fn close(&self) -> StoreResult<()> {
        // What could not be written is in the store's status, and closing says so.
        let _ = self.write();
        self.store.close()
    }
}

/// Writes what has changed in a consumer's state, or all of it; with who waits for that to be on disk. A large state is written in slices, and `behind` says what
/// changed meanwhile: an acknowledgement waits for one slice at most.
fn encode_state(
    consumer: &Consumer,
    number: u64,
    wholly: bool,
    record: &mut Vec<u8>,
    behind: &mut Vec<u8>,
) -> (WrittenState, Vec<Box<[u8]>>) {
    let sliced = in_turn(consumer, |core| {
        let is_whole = wholly || core.acks().is_changed_wholly();
        let is_large = is_whole && core.acks().known_count() > SLICE_MESSAGES;
        is_large.then(|| core.begin_record(number))
    });
    let is_sliced = sliced.is_some();
    if let Some(mut sliced) = sliced {
        while in_turn(consumer, |core| sliced.add(core.acks(), SLICE_MESSAGES)) {}
        *record = sliced.record;
    }
    let number = number + u64::from(is_sliced);
    let (is_whole, replies) = consumer.with_core(|core, _, _| {
        let last = if is_sliced {
            &mut *behind
        } else {
            &mut *record
        };
        let wholly = wholly && !is_sliced;
        let is_whole = core.write_state(number, wholly, last);
        (is_whole, core.deliveries().take_confirmations())
    });
    if is_sliced && is_whole {
        // So much has changed meanwhile that the slices are of no use.
        std::mem::swap(record, behind);
        behind.clear();
    }
    let written = WrittenState {
        whole_bytes: (is_whole || is_sliced).then_some(record.len()),
        changes_bytes: match is_whole || is_sliced {
            true => behind.len(),
            false => record.len(),
        },
        number,
    };
    (written, replies)
}

/// Looks at what a consumer knows, as one of many looks in a row: those who wait come in between.
fn in_turn<T>(consumer: &Consumer, look: impl FnOnce(&mut Core) -> T) -> T {
    let mut core = consumer.core.lock();
    let seen = look(&mut core);
    MutexGuard::unlock_fair(core);
    seen
}

/// Reads the whole journal.
fn load(
    store: &Store,
) -> StoreResult<(
    BTreeMap<String, RecoveredConsumer>,
    AHashMap<String, JournaledConsumer>,
)> {
    let mut found: BTreeMap<String, RecoveredConsumer> = BTreeMap::new();
    let mut kept: AHashMap<String, JournaledConsumer> = AHashMap::new();
    store.messages().scan(0, |record| {
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
            // The state may be incomplete, so the next write is a whole state.
            kept.needs_whole = true;
        }
    }
    found.retain(|_, found| !found.definition.is_empty());
    Ok((found, kept))
}
