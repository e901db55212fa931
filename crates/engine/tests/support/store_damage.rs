//! A small store with every kind of file, ways to damage it, and a look at what is left of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jetlake_engine::storage::check::check;
use jetlake_engine::storage::disk::simulated::SimulatedDisk;
use jetlake_engine::storage::disk::twin_file;
use jetlake_engine::storage::disk::twin_file::Twins;
use jetlake_engine::storage::finding::Finding;
use jetlake_engine::storage::message::NewMessage;
use jetlake_engine::storage::store::{Store, StoreOptions};

use crate::store_history::{contents, open, options, History, Kept, Step, FOLDER};

pub const BLOCK_BYTES: usize = 4096;

/// Where the records of a segment begin.
pub const RECORDS_START: usize = 4096;

/// Room for the header and some twenty small messages.
const SEGMENT_BYTES: u64 = 4096 + 3000;

/// A store as it should be, with older states of its files.
pub struct Fixture {
    pub disk: SimulatedDisk,
    pub expected: BTreeMap<u64, Kept>,
    pub last_acknowledged: u64,
    pub options: StoreOptions,
    pub closed: bool,
    /// The files at several moments before.
    pub before: Vec<BTreeMap<PathBuf, Vec<u8>>>,
}

/// What was found on a damaged disk.
pub struct Seen {
    /// What the checker says of the disk as it was before, if nothing else was noticed.
    pub checked: Vec<&'static str>,
    pub findings: Vec<Finding>,
    pub definition_healed: bool,
    /// Messages that should be served and are not.
    pub missing: Vec<u64>,
    pub next_sequence: u64,
}

impl Seen {
    /// By opening and reading.
    pub fn noticed_in_use(&self) -> bool {
        self.definition_healed || !self.findings.is_empty()
    }

    pub fn noticed(&self) -> bool {
        self.noticed_in_use() || !self.checked.is_empty()
    }
}

impl Fixture {
    /// Sealed segments and one in use, messages small and large, alone and in groups, some removed, some erased; closed in good order or killed.
    pub fn new(closed: bool) -> Self {
        Self::after(closed, &[])
    }

    /// The same, with more after it.
    pub fn after(closed: bool, more: &[Step]) -> Self {
        let group = |count, payload_bytes| Step::Group {
            count,
            payload_bytes,
        };
        let append = |count, payload_bytes| Step::Append {
            count,
            payload_bytes,
        };
        let remove = |nth, erase| Step::Remove { nth, erase };
        let steps = [
            Step::Define,
            append(7, 120),
            Step::Commit,
            append(9, 200),
            remove(3, false),
            Step::Define,
            append(6, 150),
            remove(5, true),
            Step::Maintenance,
            append(4, 100),
            Step::Kill,
            append(2, 300),
            group(3, 300),
            remove(9, true),
            group(2, 40),
            append(1, 40),
            Step::Maintenance,
            append(3, 90),
            Step::Maintenance,
            Step::Commit,
            append(1, 1800),
            Step::Commit,
            remove(20, true),
            group(2, 60),
            Step::Maintenance,
            append(1, 30),
            Step::Commit,
        ];
        let mut history = History::new(SimulatedDisk::default(), options(SEGMENT_BYTES));
        let mut before = Vec::new();
        history.run(&[]).expect("nothing fails here");
        for step in steps.iter().chain(more) {
            history.step(step).expect("nothing fails here");
            before.push(history.disk.files().into_iter().collect());
        }
        if closed {
            history.store().close().expect("nothing fails here");
        }
        let disk = history.disk.copy();
        let promise = &history.promise;
        assert!(promise.staged.is_empty() && promise.leaving.is_empty());
        Self {
            disk,
            expected: promise.kept.clone(),
            last_acknowledged: promise.last_acknowledged,
            options: history.options.clone(),
            closed,
            before,
        }
    }

    pub fn name(&self) -> &'static str {
        match self.closed {
            true => "closed",
            false => "killed",
        }
    }

    pub fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        self.disk.files()
    }

    pub fn segments(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let files = self.files().into_iter();
        files.filter(|(path, _)| is_segment(path)).collect()
    }

    /// Opens a damaged copy and reads everything. It must open, and serve nothing that is not as it was written.
    pub fn look(&self, disk: &SimulatedDisk) -> Result<Seen, String> {
        let untouched = disk.copy();
        let store = open(disk, &self.options).map_err(|error| format!("does not open: {error}"))?;
        let mut findings = store.take_findings();
        let served = contents(&store);
        for (sequence, kept) in &served {
            match self.expected.get(sequence) {
                None => return Err(format!("{sequence} should not be served")),
                Some(expected) if expected != kept => {
                    return Err(format!("{sequence} is served with other contents"))
                }
                Some(_) => {}
            }
        }
        let missing = self.expected.keys();
        let missing = missing.filter(|sequence| !served.contains_key(sequence));
        let missing: Vec<u64> = missing.copied().collect();
        findings.extend(store.take_findings());
        let definition = twin_file::read(disk, Path::new(FOLDER), "definition", true);
        let definition = definition.map_err(|error| error.to_string())?;
        let mut seen = Seen {
            checked: Vec::new(),
            findings,
            definition_healed: match definition {
                Twins::Good(_) => false,
                Twins::Healed(_) => true,
                other => return Err(format!("the definition is {other:?}")),
            },
            missing,
            next_sequence: next_sequence(&store)?,
        };
        if !seen.noticed_in_use() {
            let report = check(&untouched, Path::new(FOLDER), &mut |_, _| Ok(()));
            let report = report.map_err(|error| format!("cannot be checked: {error}"))?;
            seen.checked = report.findings.iter().map(|found| found.kind).collect();
        }
        Ok(seen)
    }

    /// Whether another opening has nothing to report, and has the message stored by the first.
    pub fn look_again(&self, disk: &SimulatedDisk, seen: &Seen) -> Result<(), String> {
        let again = self.opens_again(disk, seen)?;
        match again.is_empty() {
            true => Ok(()),
            false => Err(format!("is reported twice: {again:?}")),
        }
    }

    /// What another opening reports, when it has the message stored by the first.
    pub fn opens_again(&self, disk: &SimulatedDisk, seen: &Seen) -> Result<Vec<Finding>, String> {
        let store = open(disk, &self.options).map_err(|error| format!("only once: {error}"))?;
        let findings = store.take_findings();
        match store.messages().read(seen.next_sequence) {
            Ok(Some(_)) => Ok(findings),
            other => Err(format!("what was stored is now {other:?}")),
        }
    }
}

/// Stores one more message and returns its sequence.
fn next_sequence(store: &Store) -> Result<u64, String> {
    let next = NewMessage {
        subject: b"next",
        payload: b"one more",
        ..NewMessage::default()
    };
    let appended = store.append(&next).map_err(|error| error.to_string())?;
    store.commit().map_err(|error| error.to_string())?;
    Ok(appended.sequence)
}

/// What is missing when a file is.
pub fn gone(fixture: &Fixture, path: &Path) -> Vec<u64> {
    let disk = fixture.disk.copy();
    disk.lose(path);
    let seen = fixture.look(&disk);
    seen.map_or_else(
        |what| panic!("{}: {what}", path.display()),
        |seen| seen.missing,
    )
}

pub fn is_segment(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "segment")
}
