//! The history of a store on a simulated disk, and what it has promised at each moment of it.
//!
//! A `History` carries out steps until one of them fails. Its `Promise` then says what must be found, whatever part of the disk survived: every
//! acknowledged message with its exact contents, no message whose removal was acknowledged, and behind that at most a beginning of
//! what was under way.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use jetlake_engine::routing::subject;
use jetlake_engine::storage::file_system::FileSystem;
use jetlake_engine::storage::finding::Finding;
use jetlake_engine::storage::message::{Limits, NewMessage, Purge, StoreError, StoreResult};
use jetlake_engine::storage::simulated::SimulatedDisk;
use jetlake_engine::storage::store::{Store, StoreOptions};
use jetlake_engine::storage::twin_file::{self, TwinFile, Twins};

pub const FOLDER: &str = "/stream";
pub const SUBJECTS: [&str; 5] = ["a.one", "a.two", "b.one", "b.two.x", "c"];
const DEFINITION: &str = "definition";

#[derive(Debug, Clone)]
pub enum Step {
    /// So many messages with so many bytes of payload; the subjects go round.
    Append {
        count: usize,
        payload_bytes: usize,
    },
    Commit,
    /// The message with so many others before it.
    Remove {
        nth: usize,
        erase: bool,
    },
    Purge(Purge),
    Limit(Limits),
    /// Removes what is older than the last so many messages.
    Expire {
        age: i64,
    },
    Upkeep,
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
    /// Payloads that were overwritten.
    pub erased: Vec<Vec<u8>>,
    erasing: Vec<Vec<u8>>,
    pub defined: u64,
    defining: bool,
    pub limits: Limits,
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
    let file_system: Arc<dyn FileSystem> = Arc::new(disk.clone());
    Store::open(file_system, Path::new(FOLDER), options.clone())
}

/// Everything a store serves, read in order.
pub fn contents(store: &Store) -> BTreeMap<u64, Kept> {
    let mut found = BTreeMap::new();
    store
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
        self.store = Some(open(&self.disk, &self.options)?);
        Ok(())
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
            Step::Commit => self.commit(),
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
            Step::Expire { age } => {
                self.commit()?;
                let now_ns = self.made as i64 - age;
                let expired = |kept: &Kept| kept.expires_ns.is_some_and(|at| at <= now_ns);
                let (gone, kept): (BTreeMap<_, _>, BTreeMap<_, _>) =
                    std::mem::take(&mut self.promise.kept)
                        .into_iter()
                        .partition(|(_, kept)| expired(kept));
                self.promise.kept = kept;
                let count = gone.len() as u64;
                self.promise.trimmed.extend(gone);
                assert_eq!(self.store().expire(now_ns, false)?.removed, count);
                Ok(())
            }
            Step::Upkeep => {
                self.commit()?;
                while self.store().upkeep()? {}
                Ok(())
            }
            Step::Define => {
                self.promise.defining = true;
                let twin = definition(self.promise.defined + 1);
                twin_file::write(&self.disk, Path::new(FOLDER), DEFINITION, &twin)
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

impl Promise {
    /// Everything under way has been acknowledged.
    pub fn acknowledge(&mut self) {
        for (sequence, kept) in std::mem::take(&mut self.staged) {
            self.last_acknowledged = sequence;
            self.kept.insert(sequence, kept);
            self.trim_subjects();
        }
        for sequence in std::mem::take(&mut self.leaving) {
            self.kept.remove(&sequence);
        }
        self.erased.append(&mut self.erasing);
        self.trim();
    }

    /// Everything under way was refused.
    pub fn forget(&mut self) {
        self.staged.clear();
        self.leaving.clear();
        self.erasing.clear();
    }

    /// Whether a message under way out is to be overwritten.
    pub fn is_erasing(&self) -> bool {
        !self.erasing.is_empty()
    }

    fn trim_subjects(&mut self) {
        let Some(most) = self.limits.per_subject_max else {
            return;
        };
        for name in SUBJECTS {
            let of = self.kept.iter().filter(|(_, kept)| kept.subject == name);
            let of: Vec<u64> = of.map(|(sequence, _)| *sequence).collect();
            for sequence in &of[..of.len().saturating_sub(most as usize)] {
                let kept = self.kept.remove(sequence).expect("it was just seen");
                self.trimmed.insert(*sequence, kept);
            }
        }
    }

    fn trim(&mut self) {
        self.trim_subjects();
        while let Some(most) = self.limits.messages_max {
            if self.kept.len() as u64 <= most {
                break;
            }
            self.trimmed.extend(self.kept.pop_first());
        }
    }

    fn purged(&self, purge: &Purge) -> Vec<u64> {
        let filter = purge.filter.as_deref().unwrap_or(b">");
        let matching = self
            .kept
            .iter()
            .filter(|(_, kept)| subject::matches(filter, kept.subject.as_bytes()))
            .map(|(sequence, _)| *sequence);
        let mut gone: Vec<u64> = matching
            .filter(|sequence| purge.below_sequence.is_none_or(|below| *sequence < below))
            .collect();
        gone.truncate(gone.len().saturating_sub(purge.keep as usize));
        gone
    }

    /// Whether what is found is what was promised; what is wrong with it otherwise.
    pub fn holds(&self, found: &BTreeMap<u64, Kept>) -> Result<(), String> {
        let is_found = |(sequence, _): &&(u64, Kept)| found.contains_key(sequence);
        let begun = self.staged.iter().rposition(|one| is_found(&one));
        let begun = begun.map_or(0, |last| last + 1);
        let refused = self.with_begun(begun, false).differs(found);
        match refused {
            Err(_) if begun == self.staged.len() => self.with_begun(begun, true).differs(found),
            other => other,
        }
    }

    /// The promise as if the first so many messages under way had been acknowledged, and the removals or not.
    fn with_begun(&self, begun: usize, removals: bool) -> Self {
        let mut promise = self.clone();
        promise.staged.truncate(begun);
        if !removals {
            promise.leaving.clear();
        }
        promise.acknowledge();
        promise
    }

    fn differs(&self, found: &BTreeMap<u64, Kept>) -> Result<(), String> {
        for (sequence, kept) in &self.kept {
            match found.get(sequence) {
                None => return Err(format!("{sequence} was promised and is gone")),
                Some(other) if other != kept => {
                    return Err(format!("{sequence} has other contents than promised"))
                }
                Some(_) => {}
            }
        }
        for (sequence, kept) in found {
            if !self.kept.contains_key(sequence) && self.trimmed.get(sequence) != Some(kept) {
                return Err(format!("{sequence} should not be there"));
            }
        }
        Ok(())
    }

    /// Opens a disk twice and compares it with what was promised. Returns what the first opening reported.
    pub fn check(
        &self,
        disk: &SimulatedDisk,
        options: &StoreOptions,
    ) -> Result<Vec<Finding>, String> {
        let options = StoreOptions {
            limits: self.limits,
            ..options.clone()
        };
        let store = open(disk, &options).map_err(|error| format!("does not open: {error}"))?;
        let findings = store.take_findings();
        let found = contents(&store);
        self.holds(&found)
            .map_err(|what| format!("{what}; {findings:?}"))?;
        let state = store.state();
        if !state.lost.is_empty() {
            return Err(format!("{:?} are reported lost; {findings:?}", state.lost));
        }
        let counted: u64 = store.subject_counts(b">").iter().map(|one| one.1).sum();
        if state.messages != found.len() as u64 || counted != state.messages {
            return Err(format!("{state:?} counts {} messages wrongly", found.len()));
        }
        drop(store);

        let store = open(disk, &options).map_err(|error| format!("opens only once: {error}"))?;
        let again = store.take_findings();
        if !again.is_empty() {
            return Err(format!("is reported twice: {again:?}, first {findings:?}"));
        }
        if contents(&store) != found {
            return Err("the second opening finds something else".to_owned());
        }
        self.check_goes_on(&store)?;
        self.check_definition(disk)?;
        Ok(findings)
    }

    /// The next message gets a sequence that no acknowledged one ever had.
    fn check_goes_on(&self, store: &Store) -> Result<(), String> {
        let next = message(u64::MAX / 3, 40);
        let appended = store.append(&next.as_new());
        let sequence = appended.map_err(|error| error.to_string())?.sequence;
        store.commit().map_err(|error| error.to_string())?;
        if sequence <= self.last_acknowledged {
            return Err(format!("{sequence} is given a second time"));
        }
        let read = store.read(sequence).map_err(|error| error.to_string())?;
        match read {
            Some(message) if message.payload() == next.payload => Ok(()),
            _ => Err(format!("{sequence} was stored and cannot be read")),
        }
    }

    fn check_definition(&self, disk: &SimulatedDisk) -> Result<(), String> {
        let read = twin_file::read(disk, Path::new(FOLDER), DEFINITION, true);
        match read.map_err(|error| error.to_string())? {
            Twins::Missing if self.defined == 0 => Ok(()),
            Twins::Good(twin) | Twins::Behind(twin) | Twins::Healed(twin)
                if twin == definition(self.defined)
                    || (self.defining && twin == definition(self.defined + 1)) =>
            {
                Ok(())
            }
            other => Err(format!("definition {} is now {other:?}", self.defined)),
        }
    }

    /// Whether bytes that were overwritten are still somewhere.
    pub fn check_erased(&self, disk: &SimulatedDisk) -> Result<(), String> {
        for (path, bytes) in disk.files() {
            for payload in &self.erased {
                let mark = &payload[..18.min(payload.len())];
                if bytes.windows(mark.len()).any(|some| some == mark) {
                    return Err(format!("{} still has an erased message", path.display()));
                }
            }
        }
        Ok(())
    }
}
