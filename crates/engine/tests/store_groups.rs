//! Messages that are stored together or not at all: their sequences, their place, and when they are seen.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use jetlake_engine::storage::check::{check, Report, Severity};
use jetlake_engine::storage::disk::simulated::{SimulatedDisk, Survival};
use jetlake_engine::storage::finding::Finding;
use jetlake_engine::storage::format::encryption::MasterKey;
use jetlake_engine::storage::message::{Limits, NewMessage, StoreError, Ticket};
use jetlake_engine::storage::store::{Store, StoreOptions};

const FOLDER: &str = "/stream";

fn options() -> StoreOptions {
    StoreOptions {
        segment_bytes: 4096 + 1000,
        fill_ahead: false,
        ..StoreOptions::default()
    }
}

fn open_with(disk: &SimulatedDisk, options: &StoreOptions) -> Store {
    Store::open(Arc::new(disk.clone()), Path::new(FOLDER), options.clone()).unwrap()
}

fn open(disk: &SimulatedDisk) -> Store {
    open_with(disk, &options())
}

fn checked(disk: &SimulatedDisk) -> Report {
    check(disk, Path::new(FOLDER), &mut |_, _| Ok(())).unwrap()
}

fn message(payload: &[u8]) -> NewMessage<'_> {
    NewMessage {
        subject: b"a.b",
        payload,
        time_ns: 5,
        ..NewMessage::default()
    }
}

fn sequences(store: &Store) -> Vec<u64> {
    let mut found = Vec::new();
    let read = store.messages().scan(0, |record| {
        found.push(record.sequence);
        true
    });
    read.unwrap();
    found
}

fn segments(disk: &SimulatedDisk) -> Vec<(PathBuf, Vec<u8>)> {
    let is_segment = |path: &Path| path.to_string_lossy().ends_with(".segment");
    let files = disk.files().into_iter();
    files.filter(|(path, _)| is_segment(path)).collect()
}

#[test]
fn a_group_has_consecutive_sequences_and_tickets() {
    let store = open(&SimulatedDisk::default());
    store.append(&message(b"alone")).unwrap();

    let group = store.append_all(&[message(b"x"); 3]).unwrap();

    let given: Vec<(u64, Ticket)> = group.iter().map(|one| (one.sequence, one.ticket)).collect();
    assert_eq!(given, [(2, Ticket(2)), (3, Ticket(3)), (4, Ticket(4))]);
    assert_eq!(store.staged_messages(), 4);
    assert_eq!(store.commit().unwrap().ticket, Ticket(4));
    assert_eq!(sequences(&store), [1, 2, 3, 4]);
    assert_eq!(store.append_all(&[]).unwrap(), []);
    assert_eq!(
        store.append_all(&[message(b"x")]).unwrap()[0].ticket,
        Ticket(5)
    );
}

#[test]
fn a_group_lies_in_one_segment_even_if_it_is_larger_than_one() {
    let disk = SimulatedDisk::default();
    let store = open(&disk);
    store.append(&message(&[1; 600])).unwrap();
    store.append_all(&[message(&[2; 300]); 3]).unwrap();
    store.append_all(&[message(&[3; 3000]); 3]).unwrap();
    store.append(&message(&[4; 10])).unwrap();
    store.commit().unwrap();

    let holding = |byte: u8| {
        let run = vec![byte; 10];
        let files = segments(&disk).into_iter();
        let count = |bytes: &[u8]| bytes.chunks(10).filter(|some| *some == run).count();
        files
            .map(|(_, bytes)| usize::from(count(&bytes) > 0))
            .sum::<usize>()
    };
    assert_eq!((1..=3).map(holding).collect::<Vec<_>>(), [1, 1, 1]);
    assert_eq!(segments(&disk).len(), 4);
    assert_eq!(sequences(&open(&disk)), (1..=8).collect::<Vec<u64>>());
    assert_eq!(checked(&disk).findings, []);
}

#[test]
fn a_group_that_is_too_large_is_refused_before_anything_of_it_is_staged() {
    let store = open(&SimulatedDisk::default());
    let half = vec![0; 150 << 20];

    let refused = store.append_all(&[message(b"small"), message(&half), message(&half)]);

    assert!(matches!(refused, Err(StoreError::TooLarge)), "{refused:?}");
    assert_eq!(store.staged_messages(), 0);
    let long = vec![b'a'; 70_000];
    let subject = NewMessage {
        subject: &long,
        ..message(b"x")
    };
    let refused = store.append_all(&[message(b"small"), subject]);
    assert!(matches!(refused, Err(StoreError::TooLarge)), "{refused:?}");
    store.append(&message(&half)).unwrap();
    let refused = store.append_all(&[message(b"small"), message(&half)]);
    assert!(matches!(refused, Err(StoreError::Behind)), "{refused:?}");
    assert_eq!(store.staged_messages(), 1);
    assert_eq!(store.append(&message(b"next")).unwrap().sequence, 2);
}

#[test]
fn readers_see_all_of_a_group_or_none() {
    const GROUP: u64 = 7;
    let store = open_with(
        &SimulatedDisk::default(),
        &StoreOptions {
            segment_bytes: 256 * 1024,
            ..options()
        },
    );
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for reader in 0..2 {
            let (store, done) = (&store, &done);
            scope.spawn(move || {
                while !done.load(Ordering::Acquire) {
                    let counts = store.messages().counts();
                    assert_eq!(counts.messages % GROUP, 0);
                    assert_eq!(counts.last_sequence % GROUP, 0);
                    assert_eq!(store.messages().count_matches(b"a.*", 0) % GROUP, 0);
                    assert_eq!(store.messages().last_match(b"a.b").unwrap_or(0) % GROUP, 0);
                    assert_eq!(store.messages().subject_count(b"a.b").0 % GROUP, 0);
                    if reader == 0 {
                        let from = counts.last_sequence.saturating_sub(20);
                        let mut last = from;
                        let read = store.messages().scan(from, |record| {
                            last = record.sequence;
                            true
                        });
                        read.unwrap();
                        assert_eq!(last % GROUP, 0);
                    }
                }
            });
        }
        for _ in 0..3000 {
            store.append_all(&[message(b"x"); GROUP as usize]).unwrap();
            store.commit().unwrap();
        }
        done.store(true, Ordering::Release);
    });
    assert_eq!(store.messages().counts().messages, 3000 * GROUP);
}

#[test]
fn half_a_group_is_cut_and_that_is_no_loss() {
    let disk = SimulatedDisk::default();
    let store = open(&disk);
    store.append(&message(b"alone")).unwrap();
    store.commit().unwrap();
    store.append_all(&[message(&[7; 200]); 4]).unwrap();
    store.commit().unwrap();
    // Its first messages only.
    let (path, bytes) = segments(&disk).pop().unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    let torn = end - end % 512;
    disk.tamper(&path, |all| all[torn..].fill(0));

    let report = checked(&disk);
    let opened = open(&disk);

    let kinds: Vec<&str> = report.findings.iter().map(|found| found.kind).collect();
    assert_eq!(kinds, ["tail_cut", "group_cut"]);
    assert_eq!(report.severities.loss, 0);
    assert_eq!(report.findings[1].severity, Severity::Healed);
    assert_eq!(report.findings[1].first_sequence, Some(2));
    assert_eq!(report.findings[1].last_sequence, Some(5));
    let findings = opened.take_findings();
    assert!(
        matches!(
            findings[..],
            [
                Finding::TailCut { .. },
                Finding::GroupCut {
                    first: 2,
                    last: 5,
                    ..
                }
            ]
        ),
        "{findings:?}"
    );
    assert_eq!(sequences(&opened), [1]);
    assert!(opened.messages().state().lost.is_empty());
    assert!(opened.append(&message(b"next")).unwrap().sequence > 5);
    drop(opened);
    assert_eq!(checked(&disk).findings, []);
}

#[test]
fn groups_pass_through_everything_a_store_does_to_messages() {
    for kind in 0..8 {
        let options = StoreOptions {
            chained: kind & 1 != 0,
            compressed: kind & 2 != 0,
            key: (kind & 4 != 0).then(|| MasterKey::new(b"key")),
            limits: Limits {
                per_subject_max: Some(30),
                ..Limits::default()
            },
            ..options()
        };
        let disk = SimulatedDisk::default();
        let mut store = open_with(&disk, &options);
        for round in 0..20 {
            let payload = vec![b'x'; 40 + round * 20];
            store.append_all(&[message(&payload); 3]).unwrap();
            store.append(&message(&payload)).unwrap();
            store.append_all(&[message(&payload); 2]).unwrap();
            store.commit().unwrap();
            let newest = store.messages().counts().last_sequence;
            store.remove(newest - 4, round % 2 == 0).unwrap();
            store.commit().unwrap();
            if round % 4 == 3 {
                while store.maintain().unwrap() {}
                assert_eq!(checked(&disk).findings, [], "kind {kind} round {round}");
            }
            if round % 7 == 6 {
                let (counts, all) = (store.messages().counts(), sequences(&store));
                store = open_with(&disk, &options);
                assert_eq!(
                    store.messages().counts(),
                    counts,
                    "kind {kind} round {round}"
                );
                assert_eq!(sequences(&store), all);
                assert_eq!(store.take_findings(), []);
            }
            if options.chained {
                assert_eq!(store.verify().unwrap().broken, None);
            }
        }
        assert_eq!(
            store.messages().counts().messages,
            29,
            "one was removed at last"
        );
    }
}

#[test]
fn a_group_that_was_committed_without_waiting_is_whole_or_absent_too() {
    let options = StoreOptions {
        sync_commits: false,
        segment_bytes: 1 << 20,
        ..options()
    };
    let mut seen = [0; 2];
    for seed in 0..200 {
        let disk = SimulatedDisk::default();
        let store = open_with(&disk, &options);
        store.append(&message(b"alone")).unwrap();
        store.sync().unwrap();
        for size in [2, 5, 3] {
            store.append_all(&vec![message(&[9; 300]); size]).unwrap();
            store.commit().unwrap();
        }
        let after = disk.after_power_cut(Survival::Random { seed });

        let store = open_with(&after, &options);

        let count = store.messages().counts().messages;
        assert!([0, 1, 3, 8, 11].contains(&count), "seed {seed}: {count}");
        assert!(store.messages().state().lost.is_empty(), "seed {seed}");
        seen[usize::from(count > 1)] += 1;
    }
    assert!(seen.iter().all(|count| *count > 0), "{seen:?}");
}
