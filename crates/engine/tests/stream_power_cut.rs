//! A whole server on a disk that loses its power: what was acknowledged is there afterwards, streams and messages alike.
//!
//! Publishers keep many messages under way while the disk is cut off repeatedly, at any moment and just after a stream
//! was created. Every cut gives a disk of its own, with any part of what was not synced; a second server opens it, and
//! everything that had been acknowledged before the cut must be there, in its place. `JETLAKE_POWER_CUTS` is the number
//! of cuts, 16 by default.

#[path = "support/stream_server.rs"]
#[allow(dead_code, reason = "each test uses its part of it")]
mod stream_server;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use jetlake_engine::storage::disk::simulated::{SimulatedDisk, Survival};
use stream_server::{StreamServer, Wire};

const PUBLISHERS: usize = 2;
const IN_FLIGHT_MAX: u64 = 200;

/// Acknowledged messages: stream, sequence, payload.
type Acknowledged = Arc<Mutex<BTreeMap<(String, u64), String>>>;

#[test]
fn what_was_acknowledged_survives_every_power_cut() {
    let cuts = std::env::var("JETLAKE_POWER_CUTS").map_or(16, |text| text.parse().unwrap());
    let disk = SimulatedDisk::default();
    let server = StreamServer::start(&disk);
    let acknowledged = Acknowledged::default();
    let stop = Arc::new(AtomicBool::new(false));
    server.create("S", "s.>");
    let publishers: Vec<_> = (0..PUBLISHERS)
        .map(|number| {
            let wire = server.connect();
            let (acknowledged, stop) = (Arc::clone(&acknowledged), Arc::clone(&stop));
            thread::spawn(move || publish(wire, number, &acknowledged, &stop))
        })
        .collect();

    let mut created = vec!["S".to_owned()];
    for number in 0..cuts {
        thread::sleep(Duration::from_millis(5 + number % 7 * 10));
        if number % 4 == 0 {
            let name = format!("T{number}");
            server.create(&name, &format!("t{number}.>"));
            created.push(name);
        }
        // First what was promised, then the cut: what is promised in between may be there or not.
        let promised = acknowledged.lock().unwrap().clone();
        let survival = match number % 3 {
            0 => Survival::Nothing,
            1 => Survival::Random { seed: number },
            _ => Survival::Everything,
        };
        let after = disk.after_power_cut(survival);
        check(&after, &created, &promised, number);
    }
    stop.store(true, Ordering::Release);
    for publisher in publishers {
        publisher.join().unwrap();
    }
    let count = acknowledged.lock().unwrap().len();
    println!("{cuts} cuts, {count} acknowledged, none lost");
    assert!(count > 1_000, "{count}");
}

/// Opens the disk with another server, and looks for everything that was promised.
fn check(
    disk: &SimulatedDisk,
    created: &[String],
    promised: &BTreeMap<(String, u64), String>,
    number: u64,
) {
    let server = StreamServer::start(disk);
    assert_eq!(server.names(), created, "cut {number}");
    for ((stream, sequence), payload) in promised {
        let found = server.payload(stream, *sequence);
        assert_eq!(
            found.as_deref(),
            Some(payload.as_bytes()),
            "cut {number}: {sequence}"
        );
    }
    let last = promised.keys().map(|(_, sequence)| *sequence).max();
    let next = server.connect().publish_one("s.after", "after");
    assert!(next > last.unwrap_or(0), "a sequence was used twice");
}

/// Publishes without end, and notes what was acknowledged.
fn publish(mut wire: Wire, publisher: usize, acknowledged: &Acknowledged, stop: &AtomicBool) {
    let mut sent = 0u64;
    let mut answered = 0u64;
    while !stop.load(Ordering::Acquire) || answered < sent {
        while sent - answered < IN_FLIGHT_MAX && !stop.load(Ordering::Acquire) {
            wire.publish(
                &format!("s.{publisher}"),
                &format!("{publisher}-{sent}"),
                sent,
            );
            sent += 1;
        }
        wire.flush();
        for (token, sequence) in wire.answers() {
            assert_eq!(token, answered, "answers come in the order of messages");
            let payload = format!("{publisher}-{token}");
            let before = acknowledged
                .lock()
                .unwrap()
                .insert(("S".to_owned(), sequence), payload);
            assert_eq!(before, None, "a sequence was given twice");
            answered += 1;
        }
    }
}
