//! How fast the store alone is, on the disk of this machine: `cargo bench -p jetlake-engine --bench store`.
//!
//! Prints one line of JSON per figure. `JETLAKE_STORE_FOLDER` says where, `JETLAKE_STORE_MESSAGES` how many messages (10
//! million by default).

use std::fs;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Instant;

use jetlake_engine::storage::commit::scheduler::{CommitScheduler, StorageThreads};
use jetlake_engine::storage::disk::file_system::RealFileSystem;
use jetlake_engine::storage::index::subjects::SubjectIndex;
use jetlake_engine::storage::message::{NewMessage, StoreError};
use jetlake_engine::storage::store::{Store, StoreOptions};

const SUBJECT: &[u8] = b"orders.new";

fn main() {
    let folder =
        std::env::var("JETLAKE_STORE_FOLDER").unwrap_or_else(|_| "target/store-bench".to_owned());
    let folder = PathBuf::from(folder);
    let messages: u64 = std::env::var("JETLAKE_STORE_MESSAGES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(10_000_000);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the folder can be made");

    let small = folder.join("small");
    let load = Load {
        name: "append_128",
        messages,
        payload_bytes: 128,
        in_flight_max: 1000,
    };
    append(&small, &load);
    opening(&small, "open_after_kill_ms");
    let store = open(&small);
    sequential_read(&store);
    point_reads(&store, messages);
    store.close().expect("it closes");
    drop(store);
    disk_use(&small, messages);
    opening(&small, "open_after_close_ms");
    fs::remove_dir_all(&small).expect("it is ours");

    let plain = synced_writes(&folder);
    let more = Load {
        name: "append_128_with_4000_in_flight",
        messages: messages / 2,
        in_flight_max: 4000,
        ..load
    };
    append(&folder.join("more"), &more);
    fs::remove_dir_all(folder.join("more")).expect("it is ours");
    let large = Load {
        name: "append_65536",
        messages: 30_000,
        payload_bytes: 64 * 1024,
        ..load
    };
    let large = append(&folder.join("large"), &large);
    figure("append_65536_of_disk", large * 65_536.0 / plain);
    subject_memory();
    fs::remove_dir_all(&folder).expect("it is ours");
}

fn figure(name: &str, value: f64) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{{\"name\": \"{name}\", \"value\": {value:.3}}}")
        .expect("standard output is there");
}

fn open(folder: &Path) -> Store {
    Store::open(Arc::new(RealFileSystem), folder, StoreOptions::default()).expect("it opens")
}

/// What is published.
struct Load {
    name: &'static str,
    messages: u64,
    payload_bytes: usize,
    in_flight_max: u64,
}

/// Publishes with at most `in_flight_max` messages waiting for their commit; returns messages per second.
fn append(folder: &Path, load: &Load) -> f64 {
    let Load {
        name,
        messages,
        payload_bytes,
        in_flight_max,
    } = *load;
    let threads = StorageThreads::new(&Arc::default());
    let committed = Arc::new(AtomicU64::new(0));
    let syncs = Arc::new(AtomicU64::new(0));
    let scheduler = {
        let (committed, syncs) = (committed.clone(), syncs.clone());
        let publisher = std::thread::current();
        CommitScheduler::new(Arc::new(open(folder)), &threads, None, move |progress| {
            assert!(progress.refused.is_empty(), "it commits");
            let last = progress.committed.last_sequence;
            if committed.swap(last, Ordering::AcqRel) != last {
                syncs.fetch_add(1, Ordering::Relaxed);
            }
            publisher.unpark();
        })
    };
    let payload = vec![b'x'; payload_bytes];
    let start = Instant::now();
    let mut appended = 0;
    while appended < messages || committed.load(Ordering::Acquire) < messages {
        if appended == messages || appended - committed.load(Ordering::Acquire) >= in_flight_max {
            std::thread::park();
            continue;
        }
        let message = NewMessage {
            subject: SUBJECT,
            payload: &payload,
            time_ns: appended as i64 * 1000,
            ..NewMessage::default()
        };
        match scheduler.store().append(&message) {
            Ok(_) => appended += 1,
            Err(StoreError::Behind) => std::thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
        scheduler.schedule();
    }
    let seconds = start.elapsed().as_secs_f64();
    while scheduler.store().maintain().expect("maintenance works") {}
    let rate = messages as f64 / seconds;
    figure(&format!("{name}_per_second"), rate);
    figure(
        &format!("{name}_per_sync"),
        messages as f64 / syncs.load(Ordering::Relaxed) as f64,
    );
    rate
}

fn disk_use(folder: &Path, messages: u64) {
    let sizes = fs::read_dir(folder).expect("it is there");
    let stored: u64 = sizes
        .map(|entry| {
            entry
                .and_then(|entry| entry.metadata())
                .map_or(0, |data| data.len())
        })
        .sum();
    // Length, subject and payload.
    let content = messages * (4 + SUBJECT.len() as u64 + 128);
    figure("disk_bytes_per_byte", stored as f64 / content as f64);
}

fn opening(folder: &Path, name: &str) {
    let start = Instant::now();
    let store = open(folder);
    let elapsed = start.elapsed();
    assert!(store.take_findings().is_empty());
    figure(name, elapsed.as_secs_f64() * 1e3);
}

fn sequential_read(store: &Store) {
    let start = Instant::now();
    let mut count = 0u64;
    let mut bytes = 0usize;
    store
        .messages()
        .scan(0, |record| {
            count += 1;
            bytes += record.payload.len();
            true
        })
        .expect("it reads");
    figure(
        "sequential_read_per_second",
        count as f64 / start.elapsed().as_secs_f64(),
    );
    assert_eq!(bytes as u64, count * 128);
}

fn point_reads(store: &Store, messages: u64) {
    let mut times: Vec<u64> = Vec::new();
    let mut sequence = 1;
    for _ in 0..200_000 {
        sequence = (sequence * 2_862_933_555_777_941_757 + 3) % messages;
        let start = Instant::now();
        let message = store.messages().read(sequence + 1).expect("it reads");
        times.push(start.elapsed().as_nanos() as u64);
        assert!(message.is_some());
    }
    times.sort_unstable();
    figure("point_read_p50_us", times[times.len() / 2] as f64 / 1e3);
    figure(
        "point_read_p99_us",
        times[times.len() * 99 / 100] as f64 / 1e3,
    );
}

/// What the disk does with synced writes of 1 MiB to a growing file, in bytes per second.
fn synced_writes(folder: &Path) -> f64 {
    let path = folder.join("plain");
    let file = fs::File::create(&path).expect("it can be made");
    let block = vec![7; 1 << 20];
    let count = 1500;
    let start = Instant::now();
    for number in 0..count {
        file.write_all_at(&block, number << 20).expect("it writes");
        file.sync_data().expect("it syncs");
    }
    let rate = (count << 20) as f64 / start.elapsed().as_secs_f64();
    figure("disk_bytes_per_second", rate);
    fs::remove_file(&path).expect("it is ours");
    rate
}

fn resident_bytes() -> usize {
    let text = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: usize = text
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse().ok())
        .unwrap_or(0);
    pages * 4096
}

fn subject_memory() {
    let before = resident_bytes();
    let mut index = SubjectIndex::default();
    let count = 1_000_000u64;
    for number in 0..count {
        let id = index.intern(format!("devices.{number:08}.new").as_bytes());
        index.add(id, 1, number, number);
    }
    figure(
        "memory_bytes_per_subject",
        (resident_bytes() - before) as f64 / count as f64,
    );
    let start = Instant::now();
    let mut found = 0;
    index.for_each_match(b"*.00500000.*", |_| found += 1);
    assert_eq!(found, 1);
    figure("wildcard_walk_us", start.elapsed().as_secs_f64() * 1e6);
}
