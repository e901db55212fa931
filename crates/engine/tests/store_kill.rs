//! A real process that writes to a real disk and is killed repeatedly: what it reported as committed is there.
//!
//! The test starts itself as the writer. `JETLAKE_KILLS` is the number of kills, 12 by default.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use jetlake_engine::common::random::Random;
use jetlake_engine::storage::commit::scheduler::{CommitScheduler, StorageThreads};
use jetlake_engine::storage::disk::file_system::RealFileSystem;
use jetlake_engine::storage::message::{NewMessage, StoreError};
use jetlake_engine::storage::store::{Store, StoreOptions};

const FOLDER: &str = "JETLAKE_KILLED_FOLDER";

fn open(folder: &Path) -> Store {
    let options = StoreOptions {
        segment_bytes: 1024 * 1024,
        ..StoreOptions::default()
    };
    Store::open(Arc::new(RealFileSystem), folder, options).expect("it opens")
}

fn payload(sequence: u64) -> Vec<u8> {
    format!("message {sequence} ")
        .repeat(1 + (sequence % 7) as usize)
        .into_bytes()
}

/// Appends without end, and says after every commit how far it is.
fn write_until_killed(folder: &Path) {
    let threads = StorageThreads::new(&Arc::default());
    let said = Mutex::new(0);
    let keeper = CommitScheduler::new(Arc::new(open(folder)), &threads, None, move |progress| {
        assert!(progress.refused.is_empty(), "it commits");
        let last = progress.committed.last_sequence;
        let mut said = said.lock().expect("nobody panicked");
        if last != *said {
            *said = last;
            let mut out = std::io::stdout().lock();
            writeln!(out, "committed {last}")
                .and_then(|()| out.flush())
                .expect("somebody listens");
        }
    });
    let mut next = keeper.store().messages().state().last_sequence + 1;
    println!("begins with {next}");
    loop {
        let message = NewMessage {
            subject: b"kill.me",
            payload: &payload(next),
            time_ns: next as i64,
            ..NewMessage::default()
        };
        match keeper.store().append(&message) {
            Ok(appended) => {
                assert_eq!(appended.sequence, next);
                next += 1;
            }
            Err(StoreError::Behind) => std::thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
        keeper.schedule();
        if next % 512 == 0 {
            // So that batches are of many sizes.
            std::thread::sleep(Duration::from_micros(next % 700));
        }
    }
}

/// What one writer said: the first sequence it gave, and the last it called committed.
#[derive(Debug, Clone, Copy, Default)]
struct Promise {
    first: u64,
    committed: u64,
}

/// Everything that was promised is there, in order and as it was written.
fn verify(folder: &Path, promises: &[Promise]) {
    let store = open(folder);
    let mut last = 0;
    let mut kept = 0;
    store
        .messages()
        .scan(0, |record| {
            assert!(record.sequence > last, "out of order behind {last}");
            assert_eq!(record.payload, payload(record.sequence));
            last = record.sequence;
            let promised = |one: &&Promise| one.first <= last && last <= one.committed;
            kept += u64::from(promises.iter().rev().find(promised).is_some());
            true
        })
        .expect("it reads");
    let lost = store.messages().state().lost;
    assert!(lost.is_empty(), "{lost:?}");
    let promised: u64 = promises
        .iter()
        .map(|one| (one.committed + 1) - one.first)
        .sum();
    assert_eq!(kept, promised, "messages are missing");
}

#[test]
fn a_killed_writer_has_kept_its_word() {
    if let Ok(folder) = std::env::var(FOLDER) {
        write_until_killed(Path::new(&folder));
        return;
    }
    let kills = std::env::var("JETLAKE_KILLS")
        .ok()
        .and_then(|text| text.parse().ok());
    let kills = kills.unwrap_or(12);
    let folder =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("killed-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    let mut random = Random::seeded(11);
    let mut promises: Vec<Promise> = Vec::new();
    for _ in 0..kills {
        let mut writer = Command::new(std::env::current_exe().expect("this test has a path"))
            .args([
                "--exact",
                "a_killed_writer_has_kept_its_word",
                "--nocapture",
            ])
            .env(FOLDER, &folder)
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let ends = Instant::now() + Duration::from_millis(40 + random.below(160) as u64);
        let mut promise = Promise::default();
        let lines = BufReader::new(writer.stdout.take().expect("it is piped"));
        for line in lines.lines() {
            let line = line.expect("it is text");
            if let Some((_, first)) = line.rsplit_once("begins with ") {
                promise.first = first.parse().expect("it is a number");
                promise.committed = promise.first - 1;
            }
            if let Some((_, last)) = line.rsplit_once("committed ") {
                promise.committed = last.parse().expect("it is a number");
            }
            if Instant::now() >= ends && promise.first > 0 {
                break;
            }
        }
        writer.kill().expect("it can be killed");
        writer.wait().expect("it ends");
        promises.push(promise);
        verify(&folder, &promises);
    }
    let promised: u64 = promises
        .iter()
        .map(|one| (one.committed + 1) - one.first)
        .sum();
    assert!(promised > 0);
    println!("{kills} kills, {promised} committed, none lost");
    std::fs::remove_dir_all(&folder).expect("it is ours");
}
