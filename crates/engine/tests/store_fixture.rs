//! A store written once and kept in the repository: every later version must open it and find every message.
//!
//! `JETLAKE_WRITE_FIXTURE=1 cargo test --test store_fixture` rewrites that of the newest version. That is right as long
//! as its version has not been released; from then on a new version gets a folder of its own next to it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jetlake_engine::storage::check::check;
use jetlake_engine::storage::disk::file_system::RealFileSystem;
use jetlake_engine::storage::message::NewMessage;
use jetlake_engine::storage::store::{Store, StoreOptions};

const MESSAGES: u64 = 20;

/// Removed and erased; 3 and 7 lie in the sealed segment, 18 in the open one.
const GONE: [u64; 3] = [3, 7, 18];

/// Stored together, since version 2; the second group lies in the open segment.
const GROUPS: [(u64, u64); 2] = [(9, 11), (19, 20)];

fn folder(version: u32) -> PathBuf {
    let stores = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/stores");
    stores.join(format!("version_{version}"))
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

fn message<'a>(sequence: u64, subject: &'a str, payload: &'a [u8]) -> NewMessage<'a> {
    NewMessage {
        subject: subject.as_bytes(),
        headers: headers(sequence),
        payload,
        time_ns: time_ns(sequence),
        expires_ns: expires_ns(sequence),
    }
}

fn append(store: &Store, first: u64, last: u64) {
    let contents: Vec<(u64, String, Vec<u8>)> = (first..=last)
        .map(|sequence| (sequence, subject(sequence), payload(sequence)))
        .collect();
    let messages: Vec<NewMessage<'_>> = contents
        .iter()
        .map(|(sequence, subject, payload)| message(*sequence, subject, payload))
        .collect();
    store.append_all(&messages).unwrap();
    store.commit().unwrap();
}

fn write(folder: &Path) {
    let _ = fs::remove_dir_all(folder);
    let store = open(folder);
    let mut next = 1;
    while next <= MESSAGES {
        let sequence = next;
        if sequence == 15 {
            for gone in [3, 7] {
                store.remove(gone, gone == 7).unwrap();
            }
            store.commit().unwrap();
            store.maintain().unwrap();
        }
        let group = GROUPS.iter().find(|(first, _)| *first == sequence);
        let last = group.map_or(sequence, |(_, last)| *last);
        append(&store, sequence, last);
        next = last + 1;
    }
    store.remove(18, true).unwrap();
    store.commit().unwrap();
    store.close().unwrap();
}

fn copy(folder: &Path, name: &str) -> PathBuf {
    let name = format!("jetlake-fixture-{name}-{}", std::process::id());
    let target = std::env::temp_dir().join(name);
    let _ = fs::remove_dir_all(&target);
    fs::create_dir_all(&target).unwrap();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, target.join(path.file_name().unwrap())).unwrap();
    }
    target
}

/// The version each segment says it has.
fn versions(folder: &Path) -> Vec<u32> {
    let entries = fs::read_dir(folder).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let version = |path: &PathBuf| {
        let bytes = fs::read(path).unwrap();
        u32::from_le_bytes(bytes[8..12].try_into().unwrap())
    };
    let is_segment = |path: &&PathBuf| path.extension().is_some_and(|end| end == "segment");
    paths.iter().filter(is_segment).map(version).collect()
}

#[test]
fn a_store_of_version_1_opens_for_ever() {
    let copied = copy(&folder(1), "one");
    check_opens(&copied);
    assert_eq!(versions(&copied), [1, 1]);
    fs::remove_dir_all(copied).unwrap();
}

#[test]
fn a_store_of_version_2_opens_for_ever() {
    if std::env::var_os("JETLAKE_WRITE_FIXTURE").is_some() {
        write(&folder(2));
    }
    let copied = copy(&folder(2), "two");
    check_opens(&copied);
    assert_eq!(versions(&copied), [2, 2]);
    fs::remove_dir_all(copied).unwrap();
}

#[test]
fn a_store_of_version_1_takes_groups_in_a_new_segment_and_its_own_stay_as_they_are() {
    let copied = copy(&folder(1), "grown");
    let store = open(&copied);

    append(&store, MESSAGES + 1, MESSAGES + 1);
    assert_eq!(
        versions(&copied),
        [1, 1],
        "a single message needs nothing new"
    );
    append(&store, MESSAGES + 2, MESSAGES + 4);
    store.remove(MESSAGES + 3, true).unwrap();
    store.commit().unwrap();
    drop(store);

    assert_eq!(versions(&copied), [1, 1, 2]);
    let store = open(&copied);
    assert!(store.take_findings().is_empty());
    assert_eq!(store.messages().state().last_sequence, MESSAGES + 4);
    let damage = |position: usize| {
        let path = copied.join("0000000002.segment");
        let mut bytes = fs::read(&path).unwrap();
        bytes[position] ^= 1;
        fs::write(&path, bytes).unwrap();
    };
    drop(store);
    damage(8);
    let store = open(&copied);
    assert_eq!(store.take_findings().len(), 1, "a copy of the header");
    assert_eq!(versions(&copied), [1, 1, 2], "it is healed as it was");
    store.close().unwrap();
    drop(store);
    let report = check(&RealFileSystem, &copied, &mut |_, _| Ok(())).unwrap();
    assert_eq!(report.findings, []);
    fs::remove_dir_all(copied).unwrap();
}

fn check_opens(copied: &Path) {
    let report = check(&RealFileSystem, copied, &mut |_, _| Ok(())).unwrap();
    let store = open(copied);

    assert_eq!(report.findings, []);
    assert_eq!(report.counts.segments, 2);
    assert!(store.take_findings().is_empty());
    assert_eq!(store.messages().state().last_sequence, MESSAGES);
    assert_eq!(
        store.messages().state().messages,
        MESSAGES - GONE.len() as u64
    );
    for sequence in 1..=MESSAGES {
        let found = store.messages().read(sequence).unwrap();
        assert_eq!(found.is_none(), GONE.contains(&sequence), "{sequence}");
        if let Some(message) = found {
            assert_eq!(message.subject(), subject(sequence).as_bytes());
            assert_eq!(message.headers(), headers(sequence));
            assert_eq!(message.payload(), payload(sequence));
            assert_eq!(message.time_ns, time_ns(sequence));
            assert_eq!(message.expires_ns, expires_ns(sequence));
        }
    }
}
