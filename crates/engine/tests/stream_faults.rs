//! A whole server whose disk is full, or fails: publishers get the error at once, with the reason; everything else goes on.

#[path = "support/stream_server.rs"]
#[allow(dead_code, reason = "each test uses its part of it")]
mod stream_server;

use std::thread;
use std::time::{Duration, Instant};

use jetlake_engine::storage::disk::simulated::{Fault, FaultPlan, SimulatedDisk};
use stream_server::{StreamServer, Wire};

/// How long a publisher may have to wait for the error; ample, on a busy machine.
const TOLD_MAX: Duration = Duration::from_secs(5);

/// Publishes until something is refused, and returns what was stored and why the next was not.
fn fill(wire: &mut Wire, payload: &str) -> (u64, String) {
    let mut last = 0;
    loop {
        let begun = Instant::now();
        match wire.try_publish("s.a", payload) {
            Ok(sequence) => {
                assert_eq!(sequence, last + 1, "no sequence is left out");
                last = sequence;
            }
            Err(text) => {
                assert!(begun.elapsed() < TOLD_MAX);
                return (last, text);
            }
        }
    }
}

#[test]
fn a_full_disk_refuses_publishes_and_takes_them_again_when_there_is_room() {
    let disk = SimulatedDisk::default();
    let server = StreamServer::start(&disk);
    server.create("S", "s.>");
    let mut wire = server.connect();
    let used: usize = disk.files().iter().map(|(_, bytes)| bytes.len()).sum();
    disk.set_capacity(Some(used as u64 + 600_000));
    let payload = "x".repeat(2_000);

    let (last, text) = fill(&mut wire, &payload);

    assert!(last > 10, "{last}");
    assert!(
        text.contains("10077") && text.contains("the disk is full"),
        "{text}"
    );
    assert_eq!(
        server.payload("S", last),
        Some(payload.clone().into_bytes())
    );
    assert_eq!(server.purge("S"), last);
    disk.set_capacity(None);
    assert!(
        resume(&mut wire, &payload) > last,
        "a sequence was used twice"
    );
}

#[test]
fn a_stream_with_sources_is_purged_on_a_full_disk() {
    let disk = SimulatedDisk::default();
    let server = StreamServer::start(&disk);
    server.create("O", "s.>");
    server.create_as(&serde_json::json!({"name": "T", "sources": [{"name": "O"}]}));
    let mut wire = server.connect();
    let last = wire.publish_one("s.a", "first");
    let deadline = Instant::now() + TOLD_MAX;
    while server.payload("T", last).is_none() {
        assert!(Instant::now() < deadline, "it does not come");
        thread::sleep(Duration::from_millis(5));
    }

    let used: usize = disk.files().iter().map(|(_, bytes)| bytes.len()).sum();
    disk.set_capacity(Some(used as u64));

    // How far the source is must be written down first.
    assert_eq!(server.purge("T"), 1);
    disk.set_capacity(None);
    wire.publish_one("s.a", "second");
    while server.payload("T", last + 1).is_none() {
        assert!(Instant::now() < deadline, "it does not go on");
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(server.payload("T", last), None, "nothing comes twice");
}

/// Publishes until it is taken again.
fn resume(wire: &mut Wire, payload: &str) -> u64 {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        match wire.try_publish("s.a", payload) {
            Ok(sequence) => return sequence,
            Err(text) => assert!(Instant::now() < deadline, "it does not resume: {text}"),
        }
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_failed_write_is_told_and_only_that_stream_stops_taking_messages() {
    let disk = SimulatedDisk::default();
    let server = StreamServer::start(&disk);
    server.create("S", "s.>");
    server.create("T1", "t.>");
    let mut wire = server.connect();
    for number in 1..=5 {
        assert_eq!(wire.publish_one("s.a", "kept"), number);
        assert_eq!(wire.publish_one("t.a", "kept"), number);
    }

    disk.plan(Some(FaultPlan {
        at_call: disk.calls() + 1,
        fault: Fault::Broken,
        lasting: false,
    }));
    let first = (0..10).find_map(|_| wire.try_publish("s.a", "lost").err());

    let text = first.expect("a write has failed");
    assert!(
        text.contains("10077") && text.contains("writing failed"),
        "{text}"
    );
    assert!(wire.try_publish("s.a", "again").is_err());
    assert_eq!(server.payload("S", 5), Some(b"kept".to_vec()));
    assert_eq!(wire.publish_one("t.a", "kept"), 6);
}

#[test]
fn a_total_that_cannot_be_read_for_the_moment_is_not_taken_for_zero() {
    let disk = SimulatedDisk::default();
    let server = StreamServer::start(&disk);
    server.create_as(
        &serde_json::json!({"name": "C", "subjects": ["c.>"], "allow_msg_counter": true}),
    );
    let mut wire = server.connect();
    let count = |wire: &mut Wire| wire.ask("c.a", "NATS/1.0\r\nNats-Incr: 5\r\n\r\n", "");
    assert_eq!(count(&mut wire)["val"], "5");
    disk.plan_reads(Some(FaultPlan {
        at_call: 0,
        fault: Fault::NoDescriptors,
        lasting: true,
    }));

    let counted = count(&mut wire);

    assert_eq!(counted["error"]["err_code"], 10172, "{counted}");
    disk.plan_reads(None);
    assert_eq!(count(&mut wire)["val"], "10");
}

#[test]
fn a_schedule_whose_message_cannot_be_read_for_the_moment_stays_due() {
    let disk = SimulatedDisk::default();
    let server = StreamServer::start(&disk);
    let config =
        serde_json::json!({"name": "S", "subjects": ["s.>", "t.>"], "allow_msg_schedules": true});
    server.create_as(&config);
    let mut wire = server.connect();
    let header = "NATS/1.0\r\nNats-Schedule: @every 1s\r\nNats-Schedule-Target: t.a\r\n\r\n";
    let planned = wire.ask("s.a", header, "tick");
    assert_eq!(planned["seq"], 1, "{planned}");
    disk.plan_reads(Some(FaultPlan {
        at_call: 0,
        fault: Fault::NoDescriptors,
        lasting: true,
    }));
    // It becomes due meanwhile.
    let reads = disk.reads();
    let deadline = Instant::now() + Duration::from_secs(20);
    while disk.reads() == reads {
        assert!(Instant::now() < deadline, "nobody has tried to read it");
        thread::sleep(Duration::from_millis(50));
    }

    disk.plan_reads(None);

    while server.payload("S", 2).is_none() {
        assert!(Instant::now() < deadline, "the schedule is gone");
        thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(server.payload("S", 2), Some(b"tick".to_vec()));
}
