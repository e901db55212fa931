//! A small store with something of everything in it, for the tests of the check.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use jetlake_engine::storage::check::{check, Report};
use jetlake_engine::storage::disk::simulated::SimulatedDisk;
use jetlake_engine::storage::disk::twin_file;
use jetlake_engine::storage::disk::twin_file::TwinFile;
use jetlake_engine::storage::message::NewMessage;
use jetlake_engine::storage::store::{Store, StoreOptions};

pub const FOLDER: &str = "/stream";
pub const SUBJECTS: [&str; 3] = ["orders.new", "orders.paid", "returns"];

pub fn options() -> StoreOptions {
    StoreOptions {
        segment_bytes: 4096 + 600,
        fill_ahead: false,
        ..StoreOptions::default()
    }
}

pub fn open_with(disk: &SimulatedDisk, options: StoreOptions) -> Store {
    Store::open(Arc::new(disk.clone()), Path::new(FOLDER), options).unwrap()
}

pub fn open(disk: &SimulatedDisk) -> Store {
    open_with(disk, options())
}

pub fn checked(disk: &SimulatedDisk) -> Report {
    check(disk, Path::new(FOLDER), &mut |_, _| Ok(())).unwrap()
}

pub fn append(store: &Store, number: u64) {
    store.append(&message(number)).unwrap();
}

/// Stores `count` messages together.
pub fn append_group(store: &Store, number: u64, count: u64) {
    let messages: Vec<NewMessage<'_>> = (number..number + count).map(message).collect();
    store.append_all(&messages).unwrap();
}

fn message(number: u64) -> NewMessage<'static> {
    NewMessage {
        subject: SUBJECTS[number as usize % 3].as_bytes(),
        headers: if number % 4 == 0 {
            b"NATS/1.0\r\n\r\n"
        } else {
            b""
        },
        payload: &b"0123456789"[..number as usize % 11],
        time_ns: 1_000 + number as i64,
        expires_ns: (number % 5 == 0).then_some(i64::MAX),
    }
}

/// One sealed segment, one that is only closed, one open; removed and erased messages; a small file besides.
pub fn small_store(close: bool) -> SimulatedDisk {
    small_store_with(close, options())
}

pub fn small_store_with(close: bool, options: StoreOptions) -> SimulatedDisk {
    let disk = SimulatedDisk::default();
    let store = open_with(&disk, options);
    for number in 1..=16 {
        append(&store, number);
    }
    store.commit().unwrap();
    store.remove(2, false).unwrap();
    store.remove(3, true).unwrap();
    store.commit().unwrap();
    store.maintain().unwrap();
    for number in 17..=34 {
        append(&store, number);
        store.commit().unwrap();
    }
    store.remove(1, false).unwrap();
    store.remove(33, true).unwrap();
    store.commit().unwrap();
    let body = TwinFile {
        generation: 7,
        body: b"{\"name\":\"ORDERS\"}".to_vec(),
    };
    twin_file::write(&disk, Path::new(FOLDER), "definition", &body).unwrap();
    if close {
        store.close().unwrap();
    }
    disk
}

pub type Content = (Vec<u8>, Vec<u8>, Vec<u8>);

pub fn messages(store: &Store) -> BTreeMap<u64, Content> {
    let mut found = BTreeMap::new();
    let read = store.messages().scan(0, |record| {
        let content = (
            record.subject.to_vec(),
            record.headers.to_vec(),
            record.payload.to_vec(),
        );
        found.insert(record.sequence, content);
        true
    });
    read.unwrap();
    found
}
