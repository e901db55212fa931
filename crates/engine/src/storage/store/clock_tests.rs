//! What a clock that jumps does to a store: nothing that anybody would notice.

use std::path::Path;
use std::sync::Arc;

use super::{Store, StoreOptions};
use crate::storage::disk::simulated::SimulatedDisk;
use crate::storage::message::{Limits, NewMessage};

const HOUR_NS: i64 = 3_600_000_000_000;

fn open(disk: &SimulatedDisk) -> Store {
    let options = StoreOptions {
        segment_bytes: 4096 + 400,
        limits: Limits {
            age_ns_max: Some(HOUR_NS / 2),
            ..Limits::default()
        },
        ..StoreOptions::default()
    };
    Store::open(Arc::new(disk.clone()), Path::new("/s"), options).unwrap()
}

fn publish(store: &Store, time_ns: i64) -> u64 {
    let message = NewMessage {
        subject: b"a",
        payload: b"payload",
        time_ns,
        ..NewMessage::default()
    };
    let sequence = store.append(&message).unwrap().sequence;
    store.commit().unwrap();
    sequence
}

#[test]
fn a_clock_set_back_neither_reorders_nor_expires_nor_hides_messages() {
    let disk = SimulatedDisk::default();
    let mut store = open(&disk);
    let now = 10 * HOUR_NS;
    for step in 0..10 {
        publish(&store, now + step);
    }

    // An hour back, to 1970, and before it.
    for (step, time_ns) in [now - HOUR_NS, 0, -5, i64::MIN].into_iter().enumerate() {
        assert_eq!(publish(&store, time_ns), 11 + step as u64);
        assert_eq!(store.expire(time_ns, false).unwrap().removed, 0);
        store.close().unwrap();
        store = open(&disk);
    }

    assert_eq!(store.messages().state().messages, 14);
    assert_eq!(store.messages().sequence_at(now + 5).unwrap(), 6);
    assert_eq!(store.messages().sequence_at(i64::MIN).unwrap(), 1);
    let mut last = i64::MIN;
    store
        .messages()
        .scan(0, |record| {
            assert!(record.time_ns >= last);
            last = record.time_ns;
            true
        })
        .unwrap();
    assert_eq!(
        store.messages().next_expiry_ns().unwrap(),
        Some(now + HOUR_NS / 2)
    );
}
