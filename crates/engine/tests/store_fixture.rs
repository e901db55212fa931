//! A store written once and kept in the repository: every later version must open it and find every message.
//!
//! `JETLAKE_WRITE_FIXTURE=1 cargo test --test store_fixture` writes it anew. That is right as long as its version has not been released; from then on
//! a new version gets a folder of its own beside it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jetlake_engine::storage::check::check;
use jetlake_engine::storage::file_system::RealFileSystem;
use jetlake_engine::storage::message::NewMessage;
use jetlake_engine::storage::store::{Store, StoreOptions};

const MESSAGES: u64 = 20;

/// Removed and erased; 3 and 7 lie in the sealed segment, 18 in the open one.
const GONE: [u64; 3] = [3, 7, 18];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/stores/version_1")
}

fn open(folder: &Path) -> Store {
    let options = StoreOptions {
        segment_bytes: 4096 + 800,
        fill_ahead: false,
        ..StoreOptions::default()
    };
    Store::open(Arc::new(RealFileSystem), folder, options).unwrap()
}

fn subject(sequence: u64) -> String {
    ["orders.new", "orders.paid", "sensors.1.temperature"][sequence as usize % 3].to_owned()
}

fn headers(sequence: u64) -> &'static [u8] {
    match sequence % 5 {
        0 => b"NATS/1.0\r\nOrigin: fixture\r\n\r\n",
        _ => b"",
    }
}

fn payload(sequence: u64) -> Vec<u8> {
    format!("message {sequence}").into_bytes()
}

fn time_ns(sequence: u64) -> i64 {
    1_700_000_000_000_000_000 + sequence as i64
}

fn expires_ns(sequence: u64) -> Option<i64> {
    (sequence % 7 == 0).then_some(i64::MAX - sequence as i64)
}

fn write(folder: &Path) {
    let _ = fs::remove_dir_all(folder);
    let store = open(folder);
    for sequence in 1..=MESSAGES {
        if sequence == 15 {
            for gone in [3, 7] {
                store.remove(gone, gone == 7).unwrap();
            }
            store.commit().unwrap();
            store.upkeep().unwrap();
        }
        let name = subject(sequence);
        let message = NewMessage {
            subject: name.as_bytes(),
            headers: headers(sequence),
            payload: &payload(sequence),
            time_ns: time_ns(sequence),
            expires_ns: expires_ns(sequence),
        };
        store.append(&message).unwrap();
        store.commit().unwrap();
    }
    store.remove(18, true).unwrap();
    store.commit().unwrap();
    store.close().unwrap();
}

fn copy(folder: &Path) -> PathBuf {
    let name = format!("jetlake-fixture-{}", std::process::id());
    let target = std::env::temp_dir().join(name);
    let _ = fs::remove_dir_all(&target);
    fs::create_dir_all(&target).unwrap();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, target.join(path.file_name().unwrap())).unwrap();
    }
    target
}

#[test]
fn a_store_of_version_1_opens_for_ever() {
    if std::env::var_os("JETLAKE_WRITE_FIXTURE").is_some() {
        write(&folder());
    }
    let copied = copy(&folder());

    let report = check(&RealFileSystem, &copied, &mut |_, _| Ok(())).unwrap();
    let store = open(&copied);

    assert_eq!(report.findings, []);
    assert_eq!(report.counts.segments, 2);
    assert!(store.take_findings().is_empty());
    assert_eq!(store.state().last_sequence, MESSAGES);
    assert_eq!(store.state().messages, MESSAGES - GONE.len() as u64);
    for sequence in 1..=MESSAGES {
        let found = store.read(sequence).unwrap();
        assert_eq!(found.is_none(), GONE.contains(&sequence), "{sequence}");
        if let Some(message) = found {
            assert_eq!(message.subject(), subject(sequence).as_bytes());
            assert_eq!(message.headers(), headers(sequence));
            assert_eq!(message.payload(), payload(sequence));
            assert_eq!(message.time_ns, time_ns(sequence));
            assert_eq!(message.expires_ns, expires_ns(sequence));
        }
    }
    drop(store);
    fs::remove_dir_all(copied).unwrap();
}
