//! Rewritten segments: what was damaged before, during and after, and how large they become.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jetlake_engine::storage::disk::file_system::FileSystem;
use jetlake_engine::storage::disk::simulated::SimulatedDisk;
use jetlake_engine::storage::finding::Finding;
use jetlake_engine::storage::format::removal::Removal;
use jetlake_engine::storage::message::{Limits, NewMessage};
use jetlake_engine::storage::store::{Store, StoreOptions};

/// Small enough that some messages fill it.
const SEGMENT_BYTES: u64 = 8 * 4096;

fn options(chained: bool) -> StoreOptions {
    StoreOptions {
        segment_bytes: SEGMENT_BYTES,
        chained,
        fill_ahead: false,
        ..StoreOptions::default()
    }
}

fn open(disk: &SimulatedDisk, options: &StoreOptions) -> Store {
    let disk: Arc<dyn FileSystem> = Arc::new(disk.clone());
    Store::open(disk, Path::new("/s"), options.clone()).expect("it opens")
}

fn payload(number: u64) -> Vec<u8> {
    format!("payload {number:06} ").repeat(10).into_bytes()
}

fn append(store: &Store, subject: &str, number: u64) {
    let payload = payload(number);
    let message = NewMessage {
        subject: subject.as_bytes(),
        payload: &payload,
        ..NewMessage::default()
    };
    store.append(&message).unwrap();
}

fn maintain(store: &Store) {
    while store.maintain().expect("nothing fails here") {}
}

fn sequences(store: &Store) -> Vec<u64> {
    let mut found = Vec::new();
    let scanned = store.messages().scan(0, |record| {
        assert_eq!(record.payload, payload(record.sequence));
        found.push(record.sequence);
        true
    });
    scanned.unwrap();
    found
}

fn segments(disk: &SimulatedDisk) -> Vec<(PathBuf, Vec<u8>)> {
    let is_segment = |path: &PathBuf| path.extension().is_some_and(|end| end == "segment");
    let mut files = disk.files();
    files.retain(|(path, _)| is_segment(path));
    files
}

fn place(disk: &SimulatedDisk, number: u64) -> (PathBuf, usize) {
    let text = payload(number);
    for (path, bytes) in segments(disk) {
        let mut windows = bytes.windows(text.len());
        if let Some(at) = windows.position(|some| some == text) {
            return (path, at);
        }
    }
    panic!("it is nowhere");
}

#[test]
fn a_message_that_is_damaged_before_its_segment_is_rewritten_is_lost_and_reported() {
    const DAMAGED: u64 = 3;
    for chained in [false, true] {
        let disk = SimulatedDisk::default();
        let store = open(&disk, &options(chained));
        for number in 1..=600 {
            append(&store, "a", number);
        }
        store.commit().unwrap();
        let (path, at) = place(&disk, DAMAGED);
        disk.tamper(&path, |bytes| bytes[at] ^= 1);
        for sequence in 5..=500 {
            store.remove(sequence, false).unwrap();
        }
        store.commit().unwrap();

        maintain(&store);

        let lost = Finding::Lost {
            range: Removal::of(DAMAGED),
        };
        assert_eq!(store.take_findings(), vec![lost], "chained: {chained}");
        assert_eq!(store.messages().state().lost, vec![Removal::of(DAMAGED)]);
        let left: Vec<u64> = [1, 2, 4].into_iter().chain(501..=600).collect();
        assert_eq!(sequences(&store), left);
        assert_eq!(store.messages().counts().messages, left.len() as u64);
        for sequence in left {
            store.remove(sequence, false).unwrap();
        }
        store.commit().unwrap();
        assert_eq!(store.messages().subject_count(b"a").0, 0);
    }
}

/// Most of what it had was replaced; the rest was joined into one segment.
fn joined() -> (SimulatedDisk, Vec<u64>) {
    let keyed = StoreOptions {
        limits: Limits {
            per_subject_max: Some(1),
            ..Limits::default()
        },
        ..options(false)
    };
    let disk = SimulatedDisk::default();
    let store = open(&disk, &keyed);
    for number in 1..=600 {
        let subject = match number % 199 {
            1 => format!("stays.{number}"),
            _ => "goes".to_owned(),
        };
        append(&store, &subject, number);
    }
    store.commit().unwrap();
    maintain(&store);
    let found = sequences(&store);
    store.close().unwrap();
    (disk, found)
}

#[test]
fn a_damaged_footer_of_a_rewritten_segment_costs_nothing_and_calls_nothing_lost() {
    let (disk, expected) = joined();
    let (path, bytes) = segments(&disk).swap_remove(0);
    let mark = b"JETLAKEF";
    let footer = bytes.windows(mark.len()).position(|some| some == mark);
    let footer = footer.expect("it is sealed");
    for position in footer..bytes.len() {
        let disk = disk.copy();
        disk.tamper(&path, |bytes| bytes[position] ^= 1 << (position % 8));

        let store = open(&disk, &options(false));

        assert_eq!(sequences(&store), expected, "byte {position}");
        let lost = store.messages().state().lost;
        assert!(lost.is_empty(), "byte {position}: {lost:?}");
        assert!(!store.take_findings().is_empty(), "byte {position}");
    }
}

#[test]
fn messages_of_a_rewritten_segment_that_are_damaged_with_its_footer_are_called_lost() {
    let (disk, expected) = joined();
    let (path, bytes) = segments(&disk).swap_remove(0);
    for number in expected.iter().filter(|one| place(&disk, **one).0 == path) {
        let at = place(&disk, *number).1;
        let disk = disk.copy();
        disk.tamper(&path, |bytes| {
            bytes[at] ^= 1;
            let end = bytes.len();
            bytes[at.max(end - 600)..].fill(0xaa);
        });

        let store = open(&disk, &options(false));

        let lost = store.messages().state().lost;
        let is_lost = lost.iter().any(|range| range.contains(*number));
        assert!(is_lost, "message {number}, {} bytes: {lost:?}", bytes.len());
    }
}

#[test]
fn a_chained_store_never_joins_more_than_a_segment_holds() {
    let disk = SimulatedDisk::default();
    let store = open(&disk, &options(true));
    append(&store, "stays", 1);
    for round in 0..60 {
        let numbers = 2 + round * 50..52 + round * 50;
        for number in numbers.clone() {
            append(&store, "goes", number);
        }
        store.commit().unwrap();
        for number in numbers {
            store.remove(number, false).unwrap();
        }
        store.commit().unwrap();
        maintain(&store);
    }
    append(&store, "stays", 3_002);
    store.commit().unwrap();
    maintain(&store);

    let largest = segments(&disk).iter().map(|(_, bytes)| bytes.len()).max();
    assert!(largest.unwrap() < 3 * SEGMENT_BYTES as usize, "{largest:?}");
    assert_eq!(sequences(&store), [1, 3_002]);
}
