//! Long random histories of a store against a simple twin in memory, with reopenings and power cuts in between.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use jetlake_engine::routing::subject;
use jetlake_engine::storage::encryption::MasterKey;
use jetlake_engine::storage::message::{Limits, NewMessage, Purge};
use jetlake_engine::storage::simulated::{SimulatedDisk, Survival};
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
    },
    Commit,
    Upkeep,
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
    fn trim(&mut self, limits: &Limits) {
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
        if let Some(most) = limits.messages_max {
            while self.messages.len() as u64 > most {
                self.messages.pop_first();
            }
        }
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
}

fn open(disk: &SimulatedDisk, kind: Kind) -> Store {
    let options = StoreOptions {
        segment_bytes: 4096 + 900,
        limits: kind.limits,
        chained: kind.chained,
        compressed: kind.compressed,
        key: kind.encrypted.then(|| MasterKey::new(b"key")),
        ..StoreOptions::default()
    };
    Store::open(Arc::new(disk.clone()), Path::new(FOLDER), options).unwrap()
}

fn compare(store: &Store, disk: &SimulatedDisk, twin: &Twin, kind: Kind) {
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
            assert!(found.insert(record.sequence, kept).is_none());
            true
        })
        .unwrap();
    assert_eq!(found, twin.messages);
    let state = store.state();
    assert_eq!(state.messages, twin.messages.len() as u64);
    assert_eq!(state.last_sequence, twin.last);
    let first = twin.messages.keys().next().copied();
    assert_eq!(state.first_sequence, first.unwrap_or(twin.last + 1));
    assert!(state.lost.is_empty(), "{:?}", state.lost);
    let bytes: usize = twin
        .messages
        .values()
        .map(|kept| {
            let headers = if kept.headers.is_empty() {
                0
            } else {
                kept.headers.len() + 4
            };
            30 + kept.subject.len() + headers + kept.payload.len()
        })
        .sum();
    assert_eq!(state.bytes, bytes as u64);
    for filter in FILTERS {
        let all = twin.matching(filter);
        let name = filter.as_bytes();
        for from in [0, 1, twin.last / 2, twin.last, twin.last + 1] {
            let wanted: Vec<u64> = all.iter().copied().filter(|one| *one >= from).collect();
            assert_eq!(
                store.next_match(name, from),
                wanted.first().copied(),
                "{filter} {from}"
            );
            assert_eq!(
                store.count_matches(name, from),
                wanted.len() as u64,
                "{filter} {from}"
            );
        }
        assert_eq!(store.last_match(name), all.last().copied());
        let mut last: BTreeMap<&str, u64> = BTreeMap::new();
        for sequence in &all {
            last.insert(&twin.messages[sequence].subject, *sequence);
        }
        let mut wanted: Vec<u64> = last.values().copied().collect();
        wanted.sort_unstable();
        assert_eq!(store.last_of_each(name), wanted);
    }
    for time in [0, 1, 50, 500, 5000] {
        let wanted = twin.messages.iter().find(|(_, kept)| kept.time_ns >= time);
        assert_eq!(
            store.sequence_at(time).unwrap(),
            wanted.map_or(twin.last + 1, |(sequence, _)| *sequence)
        );
    }
    if let Some((sequence, kept)) = twin.messages.iter().next_back() {
        let message = store.read(*sequence).unwrap().unwrap();
        assert_eq!(message.subject(), kept.subject.as_bytes());
        assert_eq!(message.payload(), kept.payload);
        assert_eq!(message.headers(), kept.headers);
    }
    assert_eq!(store.read(twin.last + 1).unwrap(), None);
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

fn run(steps: &[Step], kind: Kind) {
    let limits = kind.limits;
    let mut disk = SimulatedDisk::default();
    let mut store = open(&disk, kind);
    let mut committed = Twin::default();
    // Everything staged behind it, applied when it is committed.
    let mut staged = committed.clone();
    let mut now_ns = 0;
    let mut expired_ns = i64::MIN / 2;
    for step in steps {
        match step {
            Step::Append {
                subject,
                headers,
                payload,
            } => {
                now_ns += 10;
                let kept = Kept {
                    subject: SUBJECTS[*subject].to_owned(),
                    headers: if *headers {
                        b"NATS/1.0\r\nA: b\r\n\r\n".to_vec()
                    } else {
                        Vec::new()
                    },
                    payload: vec![b'x'; *payload],
                    time_ns: now_ns,
                    expires_ns: (*payload % 5 == 0).then_some(now_ns + 400),
                };
                let appended = store
                    .append(&NewMessage {
                        subject: kept.subject.as_bytes(),
                        headers: &kept.headers,
                        payload: &kept.payload,
                        time_ns: kept.time_ns,
                        expires_ns: kept.expires_ns,
                    })
                    .unwrap();
                staged.last += 1;
                assert_eq!(appended.sequence, staged.last);
                staged.messages.insert(staged.last, kept);
                staged.trim(&limits);
            }
            Step::Remove { pick, erase } => {
                store.commit().unwrap();
                committed = staged.clone();
                let sequences: Vec<u64> = committed.messages.keys().copied().collect();
                if let Some(sequence) = sequences.get(pick % sequences.len().max(1)) {
                    assert!(store.remove(*sequence, *erase).unwrap());
                    assert!(!store.remove(*sequence, *erase).unwrap());
                    staged.messages.remove(sequence);
                } else {
                    assert!(!store.remove(*pick as u64, *erase).unwrap());
                }
            }
            Step::Purge {
                filter,
                below,
                keep,
            } => {
                store.commit().unwrap();
                committed = staged.clone();
                let filter = FILTERS.get(*filter);
                let below = below.map(|below| below as u64);
                let matching = committed.matching(filter.copied().unwrap_or(">"));
                let mut gone: Vec<u64> = matching
                    .iter()
                    .copied()
                    .filter(|sequence| below.is_none_or(|below| *sequence < below))
                    .collect();
                let kept = match filter {
                    Some(_) => gone.len().saturating_sub(*keep as usize),
                    None => {
                        let most = matching.len().saturating_sub(*keep as usize);
                        gone.len().min(most)
                    }
                };
                gone.truncate(kept);
                let purge = Purge {
                    filter: filter.map(|filter| filter.as_bytes().to_vec()),
                    below_sequence: below,
                    keep: *keep,
                };
                assert_eq!(store.purge(&purge).unwrap(), gone.len() as u64, "{purge:?}");
                for sequence in gone {
                    staged.messages.remove(&sequence);
                }
            }
            Step::Expire { after_ns } => {
                store.commit().unwrap();
                committed = staged.clone();
                let at = now_ns + after_ns;
                let before = committed.messages.len();
                committed.messages.retain(|_, kept| {
                    kept.expires_ns.is_none_or(|expires| expires > at)
                        && limits.age_ns_max.is_none_or(|age| kept.time_ns > at - age)
                });
                let gone = before - committed.messages.len();
                assert_eq!(store.expire(at, false).unwrap().removed, gone as u64);
                now_ns = at;
                expired_ns = at;
                staged = committed.clone();
            }
            Step::Commit => {
                let done = store.commit().unwrap();
                committed = staged.clone();
                assert_eq!(done.last_sequence, committed.last);
            }
            Step::Upkeep => {
                store.upkeep().unwrap();
                store.commit().unwrap();
                committed = staged.clone();
            }
            Step::Close => {
                store.close().unwrap();
                committed = staged.clone();
                store = open(&disk, kind);
                assert_eq!(store.take_findings(), vec![]);
            }
            Step::Kill => {
                // What the process wrote is there; what was only staged is not.
                disk = disk.copy();
                store = open(&disk, kind);
                assert_eq!(store.take_findings(), vec![]);
                staged = committed.clone();
            }
            Step::PowerCut { seed } => {
                disk = disk.after_power_cut(Survival::Random { seed: *seed });
                store = open(&disk, kind);
                staged = committed.clone();
            }
        }
        // What has expired is remembered by its own time, so it may be back after a crash until the next look at the clock.
        if matches!(step, Step::Kill | Step::PowerCut { .. }) {
            store.expire(expired_ns, false).unwrap();
        }
        compare(&store, &disk, &committed, kind);
    }
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (0..SUBJECTS.len(), any::<bool>(), 0..200usize)
            .prop_map(|(subject, headers, payload)| Step::Append { subject, headers, payload }),
        3 => (0..50usize, any::<bool>()).prop_map(|(pick, erase)| Step::Remove { pick, erase }),
        1 => (0..FILTERS.len() + 2, proptest::option::of(0..60usize), 0..4u64)
            .prop_map(|(filter, below, keep)| Step::Purge { filter, below, keep }),
        1 => (0..300i64).prop_map(|after_ns| Step::Expire { after_ns }),
        4 => Just(Step::Commit),
        2 => Just(Step::Upkeep),
        1 => Just(Step::Close),
        1 => Just(Step::Kill),
        1 => any::<u64>().prop_map(|seed| Step::PowerCut { seed }),
    ]
}

fn limits() -> impl Strategy<Value = Limits> {
    (
        proptest::option::of(5..40u64),
        proptest::option::of(1..4u64),
        proptest::option::of(200..900i64),
    )
        .prop_map(|(messages_max, per_subject_max, age_ns_max)| Limits {
            messages_max,
            bytes_max: None,
            age_ns_max,
            per_subject_max,
        })
}

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
    ) {
        run(&steps, Kind { limits, chained, encrypted, compressed });
    }
}
