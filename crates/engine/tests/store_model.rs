//! Long random histories of a store against a simple twin in memory, with reopenings and power cuts in between.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use jetlake_engine::common::subject;
use jetlake_engine::storage::disk::simulated::{SimulatedDisk, Survival};
use jetlake_engine::storage::format::encryption::MasterKey;
use jetlake_engine::storage::message::{
    Counting, Counts, Expired, Limits, NewMessage, Purge, EXPIRES_NEVER_NS,
};
use jetlake_engine::storage::store::{Store, StoreOptions};
use proptest::prelude::*;

const FOLDER: &str = "/stream";

#[derive(Debug, Clone)]
enum Step {
    Append {
        subject: usize,
        headers: bool,
        payload: usize,
    },
    /// Messages that are there together or not at all.
    Group {
        subject: usize,
        payloads: Vec<usize>,
    },
    /// A message that takes the place of all others of its subject.
    RollUp {
        subject: usize,
    },
    /// A message that takes the place of all others.
    RollUpAll {
        subject: usize,
    },
    Advance {
        by: u64,
    },
    Remove {
        pick: usize,
        erase: bool,
    },
    Purge {
        filter: usize,
        below: Option<usize>,
        keep: u64,
    },
    Expire {
        after_ns: i64,
        spare_last: bool,
    },
    Commit,
    Maintenance,
    Close,
    Kill,
    PowerCut {
        seed: u64,
    },
}

const SUBJECTS: [&str; 6] = ["a", "a.b", "a.c", "b.b", "b.c.d", "c"];
const FILTERS: [&str; 7] = ["a", "a.*", "*.b", "b.>", ">", "nothing", "*.c.d"];

#[derive(Debug, Clone, PartialEq, Eq)]
struct Kept {
    subject: String,
    headers: Vec<u8>,
    payload: Vec<u8>,
    time_ns: i64,
    expires_ns: Option<i64>,
}

/// What a store should be, as simply as it can be said.
#[derive(Default, Clone)]
struct Twin {
    messages: BTreeMap<u64, Kept>,
    last: u64,
}

impl Twin {
    /// What a commit does at last.
    fn trim(&mut self, limits: &Limits) {
        self.trim_subjects(limits);
        if let Some(most) = limits.messages_max {
            while self.messages.len() as u64 > most {
                self.messages.pop_first();
            }
        }
    }

    /// What every message does when it is added.
    fn trim_subjects(&mut self, limits: &Limits) {
        if let Some(most) = limits.per_subject_max {
            for name in SUBJECTS {
                let of: Vec<u64> = self
                    .messages
                    .iter()
                    .filter(|(_, kept)| kept.subject == name)
                    .map(|(sequence, _)| *sequence)
                    .collect();
                let over = of.len().saturating_sub(most as usize);
                for sequence in &of[..over] {
                    self.messages.remove(sequence);
                }
            }
        }
    }

    fn add(&mut self, kept: Kept, limits: &Limits) -> u64 {
        self.last += 1;
        self.messages.insert(self.last, kept);
        self.trim_subjects(limits);
        self.last
    }

    fn expire(&mut self, now_ns: i64, spare_last: bool, limits: &Limits) -> Expired {
        let due = |kept: &Kept| {
            let for_ever = kept.expires_ns == Some(EXPIRES_NEVER_NS);
            kept.expires_ns.is_some_and(|expires| expires <= now_ns)
                || (!for_ever
                    && limits
                        .age_ns_max
                        .is_some_and(|age| kept.time_ns <= now_ns - age))
        };
        let lasts: BTreeSet<u64> = self.last_of_each(">", u64::MAX).into_iter().collect();
        let mut expired = Expired::default();
        self.messages.retain(|sequence, kept| {
            if due(kept) && spare_last && lasts.contains(sequence) {
                expired.spared.push(*sequence);
            } else if due(kept) {
                expired.removed += 1;
                return false;
            }
            true
        });
        expired
    }

    /// When something will have expired next.
    fn next_expiry_ns(&self, limits: &Limits) -> Option<i64> {
        let mortal = |kept: &&Kept| kept.expires_ns != Some(EXPIRES_NEVER_NS);
        let own = self.messages.values().filter(mortal);
        let own = own.filter_map(|kept| kept.expires_ns).min();
        let first = self.messages.values().find(mortal);
        let aged = first.and_then(|kept| Some(kept.time_ns + limits.age_ns_max?));
        own.into_iter().chain(aged).min()
    }

    /// The last message of every subject, of those up to a sequence.
    fn last_of_each(&self, filter: &str, up_to: u64) -> Vec<u64> {
        let mut last: BTreeMap<&str, u64> = BTreeMap::new();
        for sequence in self.matching(filter) {
            if sequence <= up_to {
                last.insert(&self.messages[&sequence].subject, sequence);
            }
        }
        let mut last: Vec<u64> = last.into_values().collect();
        last.sort_unstable();
        last
    }

    fn gaps(&self) -> Vec<u64> {
        let first = self.messages.keys().next().copied();
        let all = first.unwrap_or(self.last + 1)..=self.last;
        all.filter(|sequence| !self.messages.contains_key(sequence))
            .collect()
    }

    fn bytes(&self, counting: Counting) -> u64 {
        let one = |kept: &Kept| {
            let own = kept.subject.len() + kept.headers.len() + kept.payload.len();
            let beyond = match (counting, kept.headers.is_empty()) {
                (Counting::Memory, _) => 16,
                (Counting::File, true) => 30,
                (Counting::File, false) => 34,
            };
            (own + beyond) as u64
        };
        self.messages.values().map(one).sum()
    }

    fn matching(&self, filter: &str) -> Vec<u64> {
        self.messages
            .iter()
            .filter(|(_, kept)| subject::matches(filter.as_bytes(), kept.subject.as_bytes()))
            .map(|(sequence, _)| *sequence)
            .collect()
    }
}

/// What else a stream can be.
#[derive(Debug, Clone, Copy)]
struct Kind {
    limits: Limits,
    chained: bool,
    encrypted: bool,
    compressed: bool,
    counting: Counting,
}

fn open(disk: &SimulatedDisk, kind: Kind) -> Store {
    let options = StoreOptions {
        segment_bytes: 4096 + 900,
        limits: kind.limits,
        chained: kind.chained,
        compressed: kind.compressed,
        key: kind.encrypted.then(|| MasterKey::new(b"key")),
        counting: kind.counting,
        ..StoreOptions::default()
    };
    Store::open(Arc::new(disk.clone()), Path::new(FOLDER), options).unwrap()
}

fn compare(store: &Store, disk: &SimulatedDisk, twin: &Twin, kind: Kind) {
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
            assert!(found.insert(record.sequence, kept).is_none());
            true
        })
        .unwrap();
    assert_eq!(found, twin.messages);
    let state = store.messages().state();
    assert_eq!(state.messages, twin.messages.len() as u64);
    assert_eq!(state.last_sequence, twin.last);
    let first = twin.messages.keys().next().copied();
    assert_eq!(state.first_sequence, first.unwrap_or(twin.last + 1));
    assert!(state.lost.is_empty(), "{:?}", state.lost);
    let counts = Counts {
        messages: state.messages,
        bytes: twin.bytes(kind.counting),
        first_sequence: state.first_sequence,
        last_sequence: twin.last,
    };
    assert_eq!(state.bytes, counts.bytes);
    assert_eq!(store.messages().counts(), counts);
    assert_eq!(
        store.messages().next_expiry_ns().unwrap(),
        twin.next_expiry_ns(&kind.limits)
    );
    let gaps = twin.gaps();
    for most in [0, 1, 5, usize::MAX] {
        assert_eq!(
            store.messages().gaps(most),
            gaps[..most.min(gaps.len())],
            "{most}"
        );
    }
    for name in SUBJECTS {
        let count = twin.matching(name).len() as u64;
        assert_eq!(
            store.messages().subject_count(name.as_bytes()),
            (count, twin.last)
        );
    }
    for filter in FILTERS {
        let all = twin.matching(filter);
        let name = filter.as_bytes();
        for from in [0, 1, twin.last / 2, twin.last, twin.last + 1] {
            let wanted: Vec<u64> = all.iter().copied().filter(|one| *one >= from).collect();
            assert_eq!(
                store.messages().next_match(name, from),
                wanted.first().copied(),
                "{filter} {from}"
            );
            assert_eq!(
                store.messages().count_matches(name, from),
                wanted.len() as u64,
                "{filter} {from}"
            );
        }
        assert_eq!(store.messages().last_match(name), all.last().copied());
        assert_eq!(
            store.messages().last_of_each(name),
            twin.last_of_each(filter, u64::MAX)
        );
        for up_to in [0, 1, twin.last / 2, twin.last, u64::MAX] {
            let wanted = twin.last_of_each(filter, up_to);
            let mut found = store.messages().last_of_each_up_to(name, up_to, usize::MAX);
            found.sort_unstable();
            assert_eq!(found, wanted, "{filter} {up_to}");
            let some = store.messages().last_of_each_up_to(name, up_to, 2);
            assert_eq!(some.len(), wanted.len().min(2), "{filter} {up_to}");
            assert!(some.iter().all(|one| wanted.contains(one)));
        }
    }
    for time in [0, 1, 50, 500, 5000] {
        let wanted = twin.messages.iter().find(|(_, kept)| kept.time_ns >= time);
        assert_eq!(
            store.messages().sequence_at(time).unwrap(),
            wanted.map_or(twin.last + 1, |(sequence, _)| *sequence)
        );
    }
    if let Some((sequence, kept)) = twin.messages.iter().next_back() {
        let message = store.messages().read(*sequence).unwrap().unwrap();
        assert_eq!(message.subject(), kept.subject.as_bytes());
        assert_eq!(message.payload(), kept.payload);
        assert_eq!(message.headers(), kept.headers);
    }
    assert_eq!(store.messages().read(twin.last + 1).unwrap(), None);
    if kind.chained {
        let verification = store.verify().unwrap();
        assert_eq!(verification.broken, None, "{verification:?}");
    }
    if kind.encrypted {
        for (path, bytes) in disk.files() {
            let open = bytes.windows(12).any(|window| window == b"xxxxxxxxxxxx");
            assert!(!open, "{}", path.display());
        }
    }
}

/// A store with its twin, and with what both will be when everything staged is committed.
struct Run {
    kind: Kind,
    disk: SimulatedDisk,
    store: Store,
    committed: Twin,
    staged: Twin,
    /// Everything staged since the last commit, whatever the limits will do to it.
    waiting: Vec<(u64, String)>,
    now_ns: i64,
    expired_ns: i64,
}

impl Run {
    fn new(kind: Kind) -> Self {
        let disk = SimulatedDisk::default();
        Self {
            kind,
            store: open(&disk, kind),
            disk,
            committed: Twin::default(),
            staged: Twin::default(),
            waiting: Vec::new(),
            now_ns: 0,
            expired_ns: i64::MIN / 2,
        }
    }

    fn message(&mut self, subject: usize, headers: bool, payload: usize) -> Kept {
        self.now_ns += 10;
        Kept {
            subject: SUBJECTS[subject].to_owned(),
            headers: if headers {
                b"NATS/1.0\r\nA: b\r\n\r\n".to_vec()
            } else {
                Vec::new()
            },
            payload: vec![b'x'; payload],
            time_ns: self.now_ns,
            expires_ns: match payload % 10 {
                0 => Some(self.now_ns + 400),
                5 => Some(EXPIRES_NEVER_NS),
                _ => None,
            },
        }
    }

    fn append(&mut self, messages: Vec<Kept>) -> u64 {
        let new: Vec<NewMessage<'_>> = messages.iter().map(Kept::as_new).collect();
        let appended = match new[..] {
            [message] => vec![self.store.append(&message).unwrap()],
            _ => self.store.append_all(&new).unwrap(),
        };
        let given: Vec<u64> = appended.iter().map(|one| one.sequence).collect();
        let limits = &self.kind.limits;
        let subjects = messages.iter().map(|kept| kept.subject.clone());
        self.waiting.extend(given.iter().copied().zip(subjects));
        let wanted = messages
            .into_iter()
            .map(|kept| self.staged.add(kept, limits));
        assert_eq!(given, wanted.collect::<Vec<u64>>());
        self.staged.last
    }

    /// Everything staged has been committed.
    fn settle(&mut self) {
        self.waiting.clear();
        self.staged.trim(&self.kind.limits);
        self.committed = self.staged.clone();
    }

    fn commit(&mut self) {
        let done = self.store.commit().unwrap();
        self.settle();
        assert_eq!(done.last_sequence, self.committed.last);
    }

    fn remove(&mut self, pick: usize, erase: bool) {
        self.commit();
        let sequences: Vec<u64> = self.committed.messages.keys().copied().collect();
        if let Some(sequence) = sequences.get(pick % sequences.len().max(1)) {
            assert!(self.store.remove(*sequence, erase).unwrap());
            assert!(!self.store.remove(*sequence, erase).unwrap());
            self.staged.messages.remove(sequence);
        } else {
            assert!(!self.store.remove(pick as u64, erase).unwrap());
        }
    }

    fn purge(&mut self, filter: Option<&str>, below: Option<u64>, keep: u64) {
        self.commit();
        let matching = self.committed.matching(filter.unwrap_or(">"));
        let mut gone: Vec<u64> = matching
            .iter()
            .copied()
            .filter(|sequence| below.is_none_or(|below| *sequence < below))
            .collect();
        let kept = match filter {
            Some(_) => gone.len().saturating_sub(keep as usize),
            None => {
                let most = matching.len().saturating_sub(keep as usize);
                gone.len().min(most)
            }
        };
        gone.truncate(kept);
        let purge = Purge {
            filter: filter.map(|filter| filter.as_bytes().to_vec()),
            below_sequence: below,
            keep,
        };
        let count = self.store.purge(&purge).unwrap();
        assert_eq!(count, gone.len() as u64, "{purge:?}");
        for sequence in gone {
            self.staged.messages.remove(&sequence);
        }
    }

    fn roll_up(&mut self, subject: usize) {
        let name = SUBJECTS[subject];
        let message = self.message(subject, false, 3);
        // Those of the subject that only its publishers know of.
        let waiting = self.waiting.iter().filter(|(_, subject)| subject == name);
        let staged: Vec<u64> = waiting.map(|(sequence, _)| *sequence).collect();
        let below = self.append(vec![message]);
        self.store.roll_up(name.as_bytes(), &staged, below).unwrap();
        self.staged
            .messages
            .retain(|sequence, kept| *sequence >= below || kept.subject != name);
    }

    /// What the process wrote is there; what was only staged is not.
    fn reopen(&mut self, disk: SimulatedDisk) {
        self.disk = disk;
        self.store = open(&self.disk, self.kind);
        self.waiting.clear();
        // What has expired is remembered by its own time, so it may be back after a crash until the next look at the clock.
        let limits = &self.kind.limits;
        self.store.expire(self.expired_ns, false).unwrap();
        self.committed.expire(self.expired_ns, false, limits);
        self.staged = self.committed.clone();
    }

    fn step(&mut self, step: &Step) {
        // What is in memory is never opened a second time.
        let in_memory = self.kind.counting == Counting::Memory;
        match step {
            Step::Append {
                subject,
                headers,
                payload,
            } => {
                let message = self.message(*subject, *headers, *payload);
                self.append(vec![message]);
            }
            Step::Group { subject, payloads } => {
                let one = |(nth, payload): (usize, &usize)| {
                    self.message((subject + nth) % SUBJECTS.len(), nth == 1, *payload)
                };
                let messages = payloads.iter().enumerate().map(one).collect();
                self.append(messages);
            }
            Step::RollUp { subject } => self.roll_up(*subject),
            Step::RollUpAll { subject } => {
                let message = self.message(*subject, false, 3);
                let below = self.append(vec![message]);
                self.store.roll_up_all(below).unwrap();
                self.staged
                    .messages
                    .retain(|sequence, _| *sequence >= below);
            }
            Step::Advance { by } => {
                let next_sequence = self.staged.last + 1 + by;
                self.store.advance(next_sequence).map(drop).unwrap();
                let behind = self.store.advance(self.staged.last.min(3));
                behind.map(drop).unwrap();
                if *by > 0 {
                    self.staged.messages.clear();
                    self.staged.last = next_sequence - 1;
                }
            }
            Step::Remove { pick, erase } => self.remove(*pick, *erase),
            Step::Purge {
                filter,
                below,
                keep,
            } => {
                let below = below.map(|below| below as u64);
                self.purge(FILTERS.get(*filter).copied(), below, *keep);
            }
            Step::Expire {
                after_ns,
                spare_last,
            } => {
                self.commit();
                self.now_ns += after_ns;
                self.expired_ns = self.now_ns;
                let limits = self.kind.limits;
                let wanted = self.committed.expire(self.now_ns, *spare_last, &limits);
                let expired = self.store.expire(self.now_ns, *spare_last).unwrap();
                assert_eq!(expired, wanted);
                self.staged = self.committed.clone();
            }
            Step::Commit => self.commit(),
            Step::Maintenance => {
                self.store.maintain().unwrap();
                self.commit();
            }
            Step::Close | Step::Kill | Step::PowerCut { .. } if in_memory => self.commit(),
            Step::Close => {
                self.store.close().unwrap();
                self.settle();
                self.store = open(&self.disk, self.kind);
                assert_eq!(self.store.take_findings(), vec![]);
            }
            Step::Kill => {
                let disk = self.disk.copy();
                self.reopen(disk);
                assert_eq!(self.store.take_findings(), vec![]);
            }
            Step::PowerCut { seed } => {
                let disk = self.disk.after_power_cut(Survival::Random { seed: *seed });
                self.reopen(disk);
            }
        }
        compare(&self.store, &self.disk, &self.committed, self.kind);
    }
}

impl Kept {
    fn as_new(&self) -> NewMessage<'_> {
        NewMessage {
            subject: self.subject.as_bytes(),
            headers: &self.headers,
            payload: &self.payload,
            time_ns: self.time_ns,
            expires_ns: self.expires_ns,
        }
    }
}

#[path = "support/model_steps.rs"]
mod model_steps;

use model_steps::{limits, step};

fn cases() -> u32 {
    let text = std::env::var("JETLAKE_MODEL_CASES").ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(150)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), max_shrink_iters: 20_000, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn a_store_is_always_what_its_history_says(
        steps in proptest::collection::vec(step(), 1..200),
        limits in limits(),
        chained in any::<bool>(),
        encrypted in any::<bool>(),
        compressed in any::<bool>(),
        in_memory in any::<bool>(),
    ) {
        let counting = if in_memory { Counting::Memory } else { Counting::File };
        let mut run = Run::new(Kind { limits, chained, encrypted, compressed, counting });
        for step in &steps {
            run.step(step);
        }
    }
}
