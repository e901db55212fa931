//! Batches of a query on a disk that loses its power, or is full: each is there as a whole or not at all, and is never stored twice.
//!
//! A query commits one batch after the other while the disk is cut off repeatedly. Every cut gives a disk of its own,
//! with any part of what was not synced; a second server opens it, and the query continues there as after a crash: with
//! the batch after the last one that was confirmed to it.

#[path = "support/stream_server.rs"]
#[allow(dead_code, reason = "each test uses its part of it")]
mod stream_server;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use jetlake_engine::storage::disk::simulated::{SimulatedDisk, Survival};
use serde_json::{json, Value};
use stream_server::{StreamServer, Wire};

const CUTS: u64 = 24;

/// Messages of a batch: some are larger than a sector, some batches have only one.
fn rows(batch: u64) -> Vec<String> {
    let filler = "x".repeat((batch % 5 * 300) as usize);
    (0..=batch * 7 % 30)
        .map(|row| format!("{batch} {row} {filler}"))
        .collect()
}

/// Uploads a batch in two parts, and commits it.
fn store(wire: &mut Wire, batch: u64, attempt: u64) -> Value {
    let all = rows(batch);
    let mut uploads = Vec::new();
    for (part, rows) in all.chunks(all.len().div_ceil(2)).enumerate() {
        let id = format!("u{batch}-{attempt}-{part}");
        for (place, row) in rows.iter().enumerate() {
            let who = if place == 0 {
                format!("/q/r{attempt}")
            } else {
                String::new()
            };
            let header = format!(
                "NATS/1.0\r\nJetlake-Upload: {id}/{}{who}\r\n\r\n",
                place + 1
            );
            let answer = wire.ask("s.a", &header, row);
            assert_eq!(answer["uploaded"], json!(place + 1), "{answer}");
        }
        let end = format!(
            "NATS/1.0\r\nJetlake-Upload: {id}/{}/end\r\n\r\n",
            rows.len()
        );
        wire.ask("s.a", &end, "");
        uploads.push(json!({"id": id, "messages": rows.len()}));
    }
    let body = json!({"query": "q", "batch": batch, "uploads": uploads});
    wire.ask("$JS.API.STREAM.UPLOAD.COMMIT.S", "", &body.to_string())
}

/// What is stored, as payloads.
fn stored(server: &StreamServer) -> Vec<String> {
    let last = server.find("S").store().messages().counts().last_sequence;
    let payloads = (1..=last).filter_map(|sequence| server.payload("S", sequence));
    payloads
        .map(|payload| String::from_utf8(payload).unwrap())
        .collect()
}

/// The rows of the first batches.
fn rows_of(batches: u64) -> Vec<String> {
    (0..batches).flat_map(rows).collect()
}

#[test]
fn every_batch_is_whole_and_stored_once_after_every_power_cut() {
    let disk = SimulatedDisk::default();
    let server = StreamServer::start(&disk);
    server.create("S", "s.>");
    let stop = Arc::new(AtomicBool::new(false));
    let committed = Arc::new(AtomicU64::new(0));
    let query = {
        let mut wire = server.connect();
        let (stop, committed) = (Arc::clone(&stop), Arc::clone(&committed));
        thread::spawn(move || {
            while !stop.load(Ordering::Acquire) {
                let batch = committed.load(Ordering::Acquire);
                let answer = store(&mut wire, batch, 0);
                assert_eq!(answer["repeated"], json!(false), "{answer}");
                committed.store(batch + 1, Ordering::Release);
            }
        })
    };
    for number in 0..CUTS {
        thread::sleep(Duration::from_millis(3 + number % 7 * 5));
        let promised = committed.load(Ordering::Acquire);
        let survival = match number % 3 {
            0 => Survival::Nothing,
            1 => Survival::Random { seed: number },
            _ => Survival::Everything,
        };
        let after = disk.after_power_cut(survival);
        // One more may be stored than was confirmed to its query.
        let begun = committed.load(Ordering::Acquire) + 1;

        let server = StreamServer::start(&after);
        let there = stored(&server);
        let known = (promised..=begun).find(|batches| there == rows_of(*batches));
        let known = known.unwrap_or_else(|| panic!("cut {number}: {} rows", there.len()));
        let mut wire = server.connect();
        for batch in promised..=known {
            let answer = store(&mut wire, batch, 1);
            assert_eq!(answer["repeated"], json!(batch < known), "cut {number}");
        }
        assert_eq!(stored(&server), rows_of(known + 1), "cut {number}");
    }
    stop.store(true, Ordering::Release);
    query.join().unwrap();
    assert!(committed.load(Ordering::Acquire) > CUTS);
}

#[test]
fn a_batch_that_a_full_disk_refuses_can_be_committed_when_there_is_room() {
    let disk = SimulatedDisk::default();
    let server = StreamServer::start(&disk);
    server.create("S", "s.>");
    let mut wire = server.connect();
    store(&mut wire, 0, 0);
    let used: usize = disk.files().iter().map(|(_, bytes)| bytes.len()).sum();
    disk.set_capacity(Some(used as u64));

    let mut attempt = 0;
    let answer = loop {
        attempt += 1;
        let answer = store(&mut wire, attempt, attempt);
        if !answer["error"].is_null() {
            break answer;
        }
        assert!(attempt < 10_000, "the disk is never full");
    };

    let text = answer["error"]["description"].as_str().unwrap();
    assert!(text.contains("full"), "{text}");
    assert_eq!(stored(&server), rows_of(attempt), "nothing of it is there");
    disk.set_capacity(None);
    thread::sleep(Duration::from_millis(1_500));
    let answer = store(&mut wire, attempt, attempt + 1);
    assert!(answer["error"].is_null(), "{answer}");
    assert_eq!(stored(&server), rows_of(attempt + 1));
}
