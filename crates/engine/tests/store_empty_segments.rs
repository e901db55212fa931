//! Segments that no sequence ever came into: they are dropped or joined without a word, wherever they lie.
//!
//! A store begins a new segment when it is opened with another key or chain, or after a refused batch, whether or not the last one has a message.

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use jetlake_engine::storage::disk::file_system::FileSystem;
use jetlake_engine::storage::disk::simulated::{Fault, FaultPlan, SimulatedDisk};
use jetlake_engine::storage::format::encryption::MasterKey;
use jetlake_engine::storage::message::NewMessage;
use jetlake_engine::storage::store::{Store, StoreOptions};

/// Small enough that a few messages fill it.
const SEGMENT_BYTES: u64 = 4096 + 1200;

fn plain() -> StoreOptions {
    StoreOptions {
        segment_bytes: SEGMENT_BYTES,
        ..StoreOptions::default()
    }
}

fn chained() -> StoreOptions {
    StoreOptions {
        chained: true,
        ..plain()
    }
}

fn encrypted() -> StoreOptions {
    StoreOptions {
        key: Some(MasterKey::new(b"a key of these tests")),
        ..plain()
    }
}

fn open(disk: &SimulatedDisk, options: StoreOptions) -> Store {
    let disk: Arc<dyn FileSystem> = Arc::new(disk.clone());
    Store::open(disk, Path::new("/s"), options).expect("it opens")
}

fn append(store: &Store, count: usize) {
    for _ in 0..count {
        let message = NewMessage {
            subject: b"a.b",
            payload: &[7; 300],
            ..NewMessage::default()
        };
        store.append(&message).unwrap();
    }
    store.commit().unwrap();
}

fn maintain(store: &Store) {
    while store.maintain().expect("nothing fails here") {}
}

fn sequences(store: &Store) -> Vec<u64> {
    let mut found = Vec::new();
    let scanned = store.messages().scan(0, |record| {
        found.push(record.sequence);
        true
    });
    scanned.unwrap();
    found
}

/// Whether the store, and another one opened after it, has these messages, and nothing was noticed.
fn check(disk: &SimulatedDisk, store: Store, options: StoreOptions, expected: &[u64]) {
    maintain(&store);
    assert_eq!(sequences(&store), expected);
    assert_eq!(store.take_findings(), vec![]);
    store.close().unwrap();
    drop(store);
    let again = open(disk, options);
    assert_eq!(sequences(&again), expected);
    assert_eq!(again.take_findings(), vec![]);
    assert!(again.messages().state().lost.is_empty());
}

#[test]
fn a_store_that_had_no_message_goes_on_encrypted_or_chained() {
    for options in [encrypted(), chained()] {
        let disk = SimulatedDisk::default();
        open(&disk, plain()).close().unwrap();
        let store = open(&disk, options.clone());

        append(&store, 1);

        check(&disk, store, options, &[1]);
    }
}

#[test]
fn an_empty_segment_between_others_is_joined() {
    let disk = SimulatedDisk::default();
    let store = open(&disk, plain());
    append(&store, 10);
    maintain(&store);
    store.close().unwrap();
    drop(store);
    open(&disk, chained()).close().unwrap();
    let store = open(&disk, plain());

    append(&store, 10);

    let expected: Vec<u64> = (1..=20).collect();
    check(&disk, store, plain(), &expected);
}

#[test]
fn an_encrypted_store_goes_on_after_its_first_batch_was_refused() {
    let disk = SimulatedDisk::default();
    let store = open(&disk, encrypted());
    let message = NewMessage {
        subject: b"a.b",
        payload: b"refused",
        ..NewMessage::default()
    };
    store.append(&message).unwrap();
    disk.plan(Some(FaultPlan {
        at_call: disk.calls(),
        fault: Fault::NoSpace,
        lasting: true,
    }));
    assert!(store.commit().is_err());
    disk.plan(None);
    while store.append(&message).is_err() {
        // It is tried again now and then.
        thread::sleep(Duration::from_millis(10));
    }

    store.commit().unwrap();

    check(&disk, store, encrypted(), &[1]);
}

#[test]
fn removals_alone_begin_new_segments() {
    const MESSAGES: u64 = 2_000;
    let disk = SimulatedDisk::default();
    let growing = StoreOptions {
        fill_ahead: false,
        ..plain()
    };
    let store = open(&disk, growing);
    append(&store, MESSAGES as usize);

    for sequence in 1..=MESSAGES - 10 {
        store.remove(sequence, false).unwrap();
        store.commit().unwrap();
    }

    let largest = disk.files().iter().map(|(_, bytes)| bytes.len()).max();
    assert!(
        largest.unwrap() < 10 * SEGMENT_BYTES as usize,
        "{largest:?}"
    );
    let expected: Vec<u64> = (MESSAGES - 9..=MESSAGES).collect();
    check(&disk, store, plain(), &expected);
}
