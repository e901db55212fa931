//! The history of a store on a simulated disk, and what it has promised at each moment of it.
//!
//! A `History` carries out steps until one of them fails. Its `Promise` then says what must be found, whatever part of the disk survived: every
//! acknowledged message with its exact contents, no message whose removal was acknowledged, and after that at most a
//! beginning of what was under way.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use jetlake_engine::common::subject;
use jetlake_engine::storage::disk::file_system::FileSystem;
use jetlake_engine::storage::disk::simulated::SimulatedDisk;
use jetlake_engine::storage::disk::twin_file;
use jetlake_engine::storage::disk::twin_file::{TwinFile, Twins};
use jetlake_engine::storage::finding::Finding;
use jetlake_engine::storage::message::{Limits, NewMessage, Purge, StoreError, StoreResult};
use jetlake_engine::storage::store::{Store, StoreOptions};

pub const FOLDER: &str = "/stream";
pub const SUBJECTS: [&str; 5] = ["a.one", "a.two", "b.one", "b.two.x", "c"];
const DEFINITION: &str = "definition";

#[derive(Debug, Clone)]
pub enum Step {
    /// This many messages with payloads of this size; the subjects take turns.
    Append {
        count: usize,
        payload_bytes: usize,
    },
    /// As `Append`, but all of them or none.
    Group {
        count: usize,
        payload_bytes: usize,
    },
    Commit,
    /// Skips `by` sequences and removes everything before.
    Advance {
        by: u64,
    },
    /// A message that takes the place of all others of its subject.
    RollUp {
        payload_bytes: usize,
    },
    /// A message that takes the place of all others.
    RollUpAll {
        payload_bytes: usize,
    },
    /// The message with `nth` others before it.
    Remove {
        nth: usize,
        erase: bool,
    },
    Purge(Purge),
    Limit(Limits),
    /// Removes what had expired `age` messages ago, but perhaps not the last of a subject.
    Expire {
        age: i64,
        spare_last: bool,
    },
    Maintenance,
    /// What was prepared for messages to come is freed.
    GiveBackSpace,
    /// A new definition of the stream, as a twin file.
    Define,
    Close,
    /// The process ends without a word and another one opens the store.
    Kill,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    pub subject: String,
    pub headers: Vec<u8>,
    pub payload: Vec<u8>,
    pub time_ns: i64,
    pub expires_ns: Option<i64>,
}

/// What a store has promised so far.
#[derive(Default, Clone)]
pub struct Promise {
    /// Acknowledged, and not removed.
    pub kept: BTreeMap<u64, Kept>,
    /// Taken out by limits or by age, which may be applied once more after a crash.
    pub trimmed: BTreeMap<u64, Kept>,
    pub last_acknowledged: u64,
    /// Under way: messages, and removals of acknowledged ones.
    pub staged: Vec<(u64, Kept)>,
    pub leaving: BTreeSet<u64>,
    /// Which of those under way are there together or not at all.
    groups: Vec<Range<usize>>,
    /// Everything below this is on its way out, and may be gone before anything under way is there.
    advancing: Option<u64>,
    /// Payloads that were overwritten.
    pub erased: Vec<Vec<u8>>,
    erasing: Vec<Vec<u8>>,
    pub defined: u64,
    defining: bool,
    pub limits: Limits,
    /// Where the store is, if not where most are.
    folder: Option<&'static str>,
}

pub struct History {
    pub disk: SimulatedDisk,
    pub store: Option<Store>,
    pub promise: Promise,
    pub options: StoreOptions,
    /// Messages so far, refused ones included: no two have the same contents.
    made: u64,
}

pub fn options(segment_bytes: u64) -> StoreOptions {
    StoreOptions {
        segment_bytes,
        fill_ahead: false,
        ..StoreOptions::default()
    }
}

pub fn open(disk: &SimulatedDisk, options: &StoreOptions) -> StoreResult<Store> {
    open_in(disk, FOLDER, options)
}

pub fn open_in(disk: &SimulatedDisk, folder: &str, options: &StoreOptions) -> StoreResult<Store> {
    let file_system: Arc<dyn FileSystem> = Arc::new(disk.clone());
    Store::open(file_system, Path::new(folder), options.clone())
}

/// Everything a store serves, read in order.
pub fn contents(store: &Store) -> BTreeMap<u64, Kept> {
    let mut found = BTreeMap::new();
    store
        .messages()
        .scan(0, |record| {
            let kept = Kept {
                subject: String::from_utf8(record.subject.to_vec()).unwrap(),
                headers: record.headers.to_vec(),
                payload: record.payload.to_vec(),
                time_ns: record.time_ns,
                expires_ns: record.expires_ns,
            };
            found.insert(record.sequence, kept);
            true
        })
        .unwrap();
    found
}

impl History {
    pub fn new(disk: SimulatedDisk, options: StoreOptions) -> Self {
        let promise = Promise {
            limits: options.limits,
            ..Promise::default()
        };
        Self {
            disk,
            store: None,
            promise,
            options,
            made: 0,
        }
    }

    /// Carries out a script up to the first step that fails.
    pub fn run(&mut self, script: &[Step]) -> StoreResult<()> {
        if self.store.is_none() {
            self.reopen()?;
        }
        script.iter().try_for_each(|step| self.step(step))
    }

    pub fn reopen(&mut self) -> StoreResult<()> {
        self.store = None;
        self.options.limits = self.promise.limits;
        self.store = Some(open_in(&self.disk, self.promise.folder(), &self.options)?);
        Ok(())
    }

    /// The history of a fork of this store, which is not opened yet; what is under way here is not there.
    pub fn forked(&self, folder: &'static str, last_sequence: u64) -> Self {
        assert!(self.promise.staged.is_empty() && self.promise.leaving.is_empty());
        let mut kept = self.promise.kept.clone();
        kept.retain(|sequence, _| *sequence <= last_sequence);
        let promise = Promise {
            kept,
            last_acknowledged: last_sequence,
            limits: self.promise.limits,
            folder: Some(folder),
            ..Promise::default()
        };
        Self {
            disk: self.disk.clone(),
            store: None,
            promise,
            options: self.options.clone(),
            // No two messages of the two are alike.
            made: self.made + (1 << 40),
        }
    }

    pub fn store(&self) -> &Store {
        self.store.as_ref().expect("the store is open")
    }

    pub fn step(&mut self, step: &Step) -> StoreResult<()> {
        match step {
            Step::Append {
                count,
                payload_bytes,
            } => {
                for _ in 0..*count {
                    self.append(*payload_bytes)?;
                }
                Ok(())
            }
            Step::Group {
                count,
                payload_bytes,
            } => self.append_group(*count, *payload_bytes),
            Step::Commit => self.commit(),
            Step::Advance { by } => {
                self.commit()?;
                let next_sequence = self.store().last_given_sequence() + 1 + by;
                self.store().advance(next_sequence).map(drop)?;
                if *by > 0 {
                    self.promise.advancing = Some(next_sequence);
                    self.promise.leaving = self.promise.kept.keys().copied().collect();
                }
                Ok(())
            }
            Step::RollUp { payload_bytes } => {
                self.append(*payload_bytes)?;
                let (below, last) = self.promise.staged.last().expect("it is staged").clone();
                let same = |(sequence, kept): (&u64, &Kept)| {
                    (*sequence < below && kept.subject == last.subject).then_some(*sequence)
                };
                let staged = self.promise.staged.iter().map(|(one, kept)| (one, kept));
                let staged: Vec<u64> = staged.filter_map(same).collect();
                self.promise.leaving.extend(&staged);
                let kept = self.promise.kept.iter().filter_map(same);
                self.promise.leaving.extend(kept);
                self.store()
                    .roll_up(last.subject.as_bytes(), &staged, below)
            }
            Step::RollUpAll { payload_bytes } => {
                self.append(*payload_bytes)?;
                let staged = self.promise.staged.iter().map(|(sequence, _)| *sequence);
                let staged: Vec<u64> = staged.collect();
                let (below, before) = staged.split_last().expect("it is staged");
                self.promise.leaving.extend(before);
                self.promise.leaving.extend(self.promise.kept.keys());
                self.store().roll_up_all(*below)
            }
            Step::Remove { nth, erase } => {
                self.commit()?;
                let places = self.promise.kept.len().max(1);
                let Some((&sequence, kept)) = self.promise.kept.iter().nth(nth % places) else {
                    return Ok(());
                };
                if *erase {
                    self.promise.erasing.push(kept.payload.clone());
                }
                self.promise.leaving.insert(sequence);
                assert!(self.store().remove(sequence, *erase)?);
                Ok(())
            }
            Step::Purge(purge) => {
                self.commit()?;
                let gone = self.promise.purged(purge);
                self.promise.leaving.extend(&gone);
                assert_eq!(self.store().purge(purge)?, gone.len() as u64);
                Ok(())
            }
            Step::Limit(limits) => {
                self.commit()?;
                self.promise.limits = *limits;
                self.promise.trim();
                self.store().set_limits(*limits)
            }
            Step::Expire { age, spare_last } => {
                self.commit()?;
                let now_ns = self.made as i64 - age;
                let (gone, spared) = self.promise.expire(now_ns, *spare_last);
                let expired = self.store().expire(now_ns, *spare_last)?;
                assert_eq!((expired.removed, expired.spared), (gone, spared));
                Ok(())
            }
            Step::Maintenance => {
                self.commit()?;
                while self.store().maintain()? {}
                Ok(())
            }
            Step::GiveBackSpace => self.store().give_back_space(),
            Step::Define => {
                self.promise.defining = true;
                let twin = definition(self.promise.defined + 1);
                let folder = Path::new(self.promise.folder());
                twin_file::write(&self.disk, folder, DEFINITION, &twin)
                    .map_err(|error| StoreError::ReadOnly(Arc::new(error)))?;
                self.promise.defining = false;
                self.promise.defined += 1;
                Ok(())
            }
            Step::Close => {
                self.commit()?;
                self.store().close()?;
                self.reopen()
            }
            Step::Kill => {
                self.commit()?;
                self.reopen()
            }
        }
    }

    fn append(&mut self, payload_bytes: usize) -> StoreResult<()> {
        self.made += 1;
        let kept = message(self.made, payload_bytes);
        let appended = self.store().append(&kept.as_new())?;
        let behind = self.promise.staged.last().map(|(sequence, _)| *sequence);
        assert!(appended.sequence > behind.unwrap_or(self.promise.last_acknowledged));
        self.promise.staged.push((appended.sequence, kept));
        Ok(())
    }

    fn append_group(&mut self, count: usize, payload_bytes: usize) -> StoreResult<()> {
        let all: Vec<Kept> = (0..count)
            .map(|_| {
                self.made += 1;
                message(self.made, payload_bytes)
            })
            .collect();
        let new: Vec<NewMessage<'_>> = all.iter().map(Kept::as_new).collect();
        let first = self.store().last_given_sequence() + 1;
        let appended = self.store().append_all(&new)?;
        let given = appended.iter().map(|one| one.sequence);
        assert!(given.eq(first..first + count as u64), "{appended:?}");
        let begin = self.promise.staged.len();
        let sequences = appended.iter().map(|one| one.sequence);
        self.promise.staged.extend(sequences.zip(all));
        self.promise.groups.push(begin..self.promise.staged.len());
        Ok(())
    }

    fn commit(&mut self) -> StoreResult<()> {
        self.store().commit()?;
        self.promise.acknowledge();
        Ok(())
    }
}

/// No two messages are alike, and some have sectors of zeros in them.
fn message(number: u64, payload_bytes: usize) -> Kept {
    let mut payload = format!("<{number:016x}>").into_bytes();
    payload.resize(payload_bytes.max(payload.len()), number as u8 % 3);
    Kept {
        subject: SUBJECTS[number as usize % SUBJECTS.len()].to_owned(),
        headers: match number % 4 {
            0 => b"NATS/1.0\r\nA: b\r\n\r\n".to_vec(),
            _ => Vec::new(),
        },
        payload,
        time_ns: number as i64,
        expires_ns: (number % 7 == 0).then_some(number as i64 + 20),
    }
}

fn definition(generation: u64) -> TwinFile {
    TwinFile {
        generation,
        body: vec![generation as u8; 700 + generation as usize],
    }
}

impl Kept {
    pub fn as_new(&self) -> NewMessage<'_> {
        NewMessage {
            subject: self.subject.as_bytes(),
            headers: &self.headers,
            payload: &self.payload,
            time_ns: self.time_ns,
            expires_ns: self.expires_ns,
        }
    }
}

#[path = "store_promise.rs"]
mod store_promise;
