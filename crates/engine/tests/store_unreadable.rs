//! A disk with a bad sector: what lies there is lost and reported, as damage is, and everything else is read.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jetlake_engine::storage::disk::simulated::{Fault, FaultPlan, SimulatedDisk};
use jetlake_engine::storage::finding::Finding;
use jetlake_engine::storage::message::{Limits, NewMessage, Purge, StoreError};
use jetlake_engine::storage::store::walking::{Walk, WalkStep};
use jetlake_engine::storage::store::{Store, StoreOptions};

const MESSAGES: u64 = 50;

/// The message whose bytes cannot be read.
const BAD: u64 = 20;

fn payload(sequence: u64) -> String {
    format!("payload {sequence:05} {}", "x".repeat(100))
}

fn open(disk: &SimulatedDisk) -> Store {
    let options = StoreOptions::default();
    Store::open(Arc::new(disk.clone()), Path::new("/s"), options).unwrap()
}

/// A store with messages, one of which lies on a bad sector.
fn spoilt() -> (SimulatedDisk, Store) {
    let disk = SimulatedDisk::default();
    let store = open(&disk);
    for sequence in 1..=MESSAGES {
        let text = payload(sequence);
        let message = NewMessage {
            subject: b"a",
            payload: text.as_bytes(),
            ..NewMessage::default()
        };
        store.append(&message).unwrap();
    }
    store.commit().unwrap();
    let (path, at) = place(&disk, &payload(BAD));
    disk.spoil(&path, at..at + 8);
    (disk, store)
}

fn place(disk: &SimulatedDisk, text: &str) -> (PathBuf, usize) {
    for (path, bytes) in disk.files() {
        let mut windows = bytes.windows(text.len());
        if let Some(at) = windows.position(|some| some == text.as_bytes()) {
            return (path, at);
        }
    }
    panic!("it is nowhere");
}

fn assert_reported(store: &Store) {
    let findings = store.take_findings();
    assert!(
        matches!(
            findings.as_slice(),
            [Finding::Damaged { .. }, Finding::Lost { range }] if (range.first, range.last) == (BAD, BAD)
        ),
        "{findings:?}"
    );
    let lost = store.messages().state().lost;
    assert_eq!((lost.len(), lost[0].first), (1, BAD));
}

#[test]
fn a_message_on_a_bad_sector_is_damaged_and_then_not_there() {
    let (_disk, store) = spoilt();

    let read = store.messages().read(BAD);

    assert!(
        matches!(read, Err(StoreError::Damaged { sequence: BAD })),
        "{read:?}"
    );
    assert!(store.messages().read(BAD).unwrap().is_none());
    assert!(store.messages().read(BAD - 1).unwrap().is_some());
    assert_reported(&store);
}

#[test]
fn a_scan_passes_over_a_message_on_a_bad_sector_and_over_no_other() {
    let (_disk, store) = spoilt();
    let mut seen = Vec::new();

    let scanned = store.messages().scan(1, |record| {
        seen.push(record.sequence);
        true
    });

    scanned.unwrap();
    let others: Vec<u64> = (1..=MESSAGES).filter(|one| *one != BAD).collect();
    assert_eq!(seen, others);
    assert_reported(&store);
}

#[test]
fn a_walk_passes_over_a_message_on_a_bad_sector_and_over_no_other() {
    let (_disk, store) = spoilt();
    let mut walk = Walk::default();
    let mut seen = Vec::new();
    let mut from = 1;

    loop {
        let step = walk.step(store.messages(), &[], from, 100, |record| record.sequence);
        match step.unwrap() {
            WalkStep::Message(sequence) => {
                seen.push(sequence);
                from = sequence + 1;
            }
            WalkStep::Unread => walk.load().unwrap(),
            WalkStep::End(_) => break,
        }
    }

    let others: Vec<u64> = (1..=MESSAGES).filter(|one| *one != BAD).collect();
    assert_eq!(seen, others);
    assert_reported(&store);
}

#[test]
fn a_read_that_fails_once_costs_nothing() {
    let (disk, store) = spoilt();
    for sequence in (1..=MESSAGES).filter(|one| *one != BAD) {
        disk.plan_reads(Some(FaultPlan {
            at_call: disk.reads(),
            fault: Fault::Broken,
            lasting: false,
        }));

        assert!(store.messages().read(sequence).unwrap().is_some());
    }
    assert_eq!(store.take_findings(), vec![]);
}

#[test]
fn messages_expire_though_the_oldest_lies_on_a_bad_sector() {
    const AGE_NS_MAX: i64 = 1_000;
    let (_disk, store) = spoilt();
    let below = Purge {
        below_sequence: Some(BAD),
        ..Purge::default()
    };
    store.purge(&below).unwrap();
    store
        .set_limits(Limits {
            age_ns_max: Some(AGE_NS_MAX),
            ..Limits::default()
        })
        .unwrap();

    let next = store.messages().next_expiry_ns().unwrap();

    assert_eq!(next, Some(AGE_NS_MAX), "all were stored at time 0");
    assert_eq!(store.messages().state().first_sequence, BAD + 1);
}

#[test]
fn a_message_that_is_erased_and_whose_removal_is_lost_is_not_there() {
    const REMOVED: u64 = 3;
    let disk = SimulatedDisk::default();
    let options = StoreOptions {
        segment_bytes: 4096 + 1200,
        fill_ahead: false,
        ..StoreOptions::default()
    };
    let open = || Store::open(Arc::new(disk.clone()), Path::new("/s"), options.clone()).unwrap();
    let store = open();
    for sequence in 1..=MESSAGES {
        let text = payload(sequence);
        let message = NewMessage {
            subject: b"a",
            payload: text.as_bytes(),
            time_ns: sequence as i64,
            ..NewMessage::default()
        };
        store.append(&message).unwrap();
    }
    store.commit().unwrap();
    while store.maintain().unwrap() {}
    let (erased_in, _) = place(&disk, &payload(REMOVED));
    let before = disk.files();
    store.remove(REMOVED, true).unwrap();
    store.commit().unwrap();
    drop(store);
    for (path, old) in before.into_iter().filter(|(path, _)| *path != erased_in) {
        disk.tamper(&path, |bytes| *bytes = old);
    }
    let store = open();

    let first_later = store.messages().sequence_at(REMOVED as i64).unwrap();
    let mut seen = Vec::new();
    let scanned = store.messages().scan(1, |record| {
        seen.push(record.sequence);
        true
    });

    scanned.unwrap();
    assert_eq!(first_later, REMOVED + 1);
    let others: Vec<u64> = (1..=MESSAGES).filter(|one| *one != REMOVED).collect();
    assert_eq!(seen, others);
    assert_eq!(store.messages().counts().messages, MESSAGES - 1);
}
