//! Commits that do not wait for the disk: a power cut takes what was not synced yet, and nothing else.
//!
//! What was durable must not be destroyed in favour of what is not: neither removed to make room for it, nor overwritten before its removal is
//! durable.

use std::path::Path;
use std::sync::Arc;

use jetlake_engine::storage::disk::file_system::FileSystem;
use jetlake_engine::storage::disk::simulated::{SimulatedDisk, Survival};
use jetlake_engine::storage::message::{Limits, NewMessage};
use jetlake_engine::storage::store::{Store, StoreOptions};

/// Small enough that a few messages fill it.
const SEGMENT_BYTES: u64 = 4096 + 1200;

const KEPT: u64 = 5;

fn options() -> StoreOptions {
    StoreOptions {
        segment_bytes: SEGMENT_BYTES,
        sync_commits: false,
        fill_ahead: false,
        ..StoreOptions::default()
    }
}

fn open(disk: &SimulatedDisk, options: &StoreOptions) -> Store {
    let disk: Arc<dyn FileSystem> = Arc::new(disk.clone());
    Store::open(disk, Path::new("/s"), options.clone()).expect("it opens")
}

fn append(store: &Store, subject: &str, count: usize) {
    for _ in 0..count {
        let message = NewMessage {
            subject: subject.as_bytes(),
            payload: &[7; 300],
            ..NewMessage::default()
        };
        store.append(&message).unwrap();
    }
    store.commit().unwrap();
}

fn sequences(store: &Store) -> Vec<u64> {
    let mut found = Vec::new();
    let scanned = store.messages().scan(0, |record| {
        found.push(record.sequence);
        true
    });
    scanned.unwrap();
    assert_eq!(store.messages().counts().messages, found.len() as u64);
    found
}

fn survivals() -> impl Iterator<Item = Survival> {
    let by_chance = (0..20).map(|seed| Survival::Random { seed });
    by_chance.chain([Survival::Nothing, Survival::Everything])
}

#[test]
fn limits_remove_no_durable_message_in_favour_of_one_that_is_not() {
    let of_stream = Limits {
        messages_max: Some(KEPT),
        ..Limits::default()
    };
    let of_subject = Limits {
        per_subject_max: Some(KEPT),
        ..Limits::default()
    };
    for limits in [of_stream, of_subject] {
        for unsynced in 1..30 {
            let limited = StoreOptions {
                limits,
                ..options()
            };
            let disk = SimulatedDisk::default();
            let store = open(&disk, &limited);
            append(&store, "a", 20);
            store.sync().unwrap();
            append(&store, "a", unsynced);
            while store.maintain().unwrap() {}

            for survival in survivals() {
                let found = open(&disk.after_power_cut(survival), &limited);

                let left = sequences(&found);
                let name = format!("{limits:?} {unsynced} {survival:?}: {left:?}");
                assert_eq!(left.len() as u64, KEPT, "{name}");
                assert!(left[left.len() - 1] >= 20, "{name}");
                assert!(found.messages().state().lost.is_empty(), "{name}");
            }
        }
    }
}

#[test]
fn nothing_is_overwritten_before_its_removal_is_durable() {
    for removed in [1, 8, 20] {
        let disk = SimulatedDisk::default();
        let store = open(&disk, &options());
        append(&store, "a", 20);
        store.sync().unwrap();
        while store.maintain().unwrap() {}
        store.remove(removed, true).unwrap();
        store.commit().unwrap();

        for survival in survivals() {
            let found = open(&disk.after_power_cut(survival), &options());

            let expected: Vec<u64> = (1..=20).filter(|one| *one != removed).collect();
            assert_eq!(sequences(&found), expected, "{survival:?}");
            assert!(found.messages().state().lost.is_empty());
        }
    }
}
