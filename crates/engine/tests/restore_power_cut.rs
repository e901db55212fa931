//! A restore on a disk that loses its power: afterwards the stream is there with all its messages and consumers, or not at all.
//!
//! The archive is restored and its consumers are created a few at a time, and the disk is cut off after each step and
//! repeatedly in between. Every cut gives a disk of its own, with any part of what was not synced; a second server
//! opens it.

#[path = "support/stream_server.rs"]
#[allow(dead_code, reason = "each test uses its part of it")]
mod stream_server;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use jetlake_engine::storage::disk::simulated::{SimulatedDisk, Survival};
use jetlake_engine::stream::archive::format::{ArchiveWriter, NewEntry, STATE_NAME};
use stream_server::StreamServer;

const ACCOUNT: &str = "$G";
const ID: &str = "restore";
const CONSUMERS: usize = 60;
const CONSUMERS_PER_COMMIT: usize = 20;
const MESSAGES: u64 = 5;
const TIMEOUT: Duration = Duration::from_secs(20);

const STATE: &str = r#"{"delivered":{"consumer_seq":0,"stream_seq":0},"ack_floor":{"consumer_seq":0,"stream_seq":0}}"#;

/// A stream with messages; its consumers are added by the caller.
fn archive() -> Vec<u8> {
    let encoder = snap::write::FrameEncoder::new(Vec::new());
    let mut archive = ArchiveWriter::new(encoder).unwrap();
    let state = format!(r#"{{"first_seq":1,"last_seq":{MESSAGES},"messages":{MESSAGES}}}"#);
    archive
        .write(&NewEntry {
            name: STATE_NAME,
            payload: state.as_bytes(),
            ..NewEntry::default()
        })
        .unwrap();
    for sequence in 1..=MESSAGES {
        archive
            .write(&NewEntry {
                name: b"r.x",
                sequence,
                time_ns: sequence as i64,
                payload: b"x",
                ..NewEntry::default()
            })
            .unwrap();
    }
    archive.finish().unwrap().into_inner().unwrap()
}

/// Sends the archive, and waits until it has become a stream that nobody finds.
fn take_in(server: &StreamServer, definition: &[u8]) {
    let streams = server.engine().streams().expect("they are served");
    let request = serde_json::json!({
        "id": ID, "subject": "chunks", "spool_bytes_max": 1 << 30, "stored_bytes_max": 1 << 30, "first_sequence": 0, "last_sequence": 0,
    });
    streams
        .start_restore(ACCOUNT, definition, request.to_string().as_bytes())
        .expect("there is a place");
    let mut wire = server.connect();
    wire.publish_bytes("chunks", &archive());
    wire.publish_bytes("chunks", b"");
    let deadline = Instant::now() + TIMEOUT;
    while streams.finish_restore(ID, definition).is_err() {
        assert!(Instant::now() < deadline, "the archive is not taken in");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Opens what is left of a disk with another server; says whether the stream is there, with everything.
fn is_there(disk: &SimulatedDisk) -> bool {
    let server = StreamServer::start(disk);
    let names = server.names();
    if names.is_empty() {
        return false;
    }
    assert_eq!(names, ["R"]);
    let streams = server.engine().streams().expect("they are served");
    let consumers = streams.stored_consumers(ACCOUNT, "R").unwrap();
    assert_eq!(consumers.len(), CONSUMERS);
    let payloads = (1..=MESSAGES).map(|sequence| server.payload("R", sequence));
    assert!(payloads
        .into_iter()
        .all(|payload| payload.as_deref() == Some(b"x".as_slice())));
    true
}

#[test]
fn a_restore_is_whole_or_absent_after_every_power_cut() {
    let disk = SimulatedDisk::default();
    let server = StreamServer::start(&disk);
    let definition = serde_json::json!({"config": {"name": "R", "subjects": ["r.>"]}, "created": "2026-01-01T00:00:00Z"});
    let definition = definition.to_string();
    take_in(&server, definition.as_bytes());
    let streams = server.engine().streams().expect("they are served");
    assert!(streams.find(ACCOUNT, "R").is_none());
    let (is_served, is_over) = (AtomicBool::new(false), AtomicBool::new(false));

    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..CONSUMERS {
                let definition = serde_json::json!({"name": format!("C{number}"), "config": {"durable_name": format!("C{number}"), "ack_policy": "explicit",
                    "deliver_policy": "all", "replay_policy": "instant"}, "created": "2026-01-01T00:00:00Z"});
                streams
                    .restore_consumer(ID, definition.to_string().as_bytes(), STATE.as_bytes())
                    .unwrap();
                if (number + 1) % CONSUMERS_PER_COMMIT == 0 {
                    let refused = streams.commit_restored_consumers(ID).unwrap();
                    assert_eq!(refused, []);
                    assert!(!is_there(&disk.after_power_cut(Survival::Everything)));
                }
            }
            streams.serve_restored(ID).unwrap();
            is_served.store(true, Ordering::Release);
            while streams.begin_consumers(ACCOUNT, "R").unwrap() {}
            thread::sleep(Duration::from_millis(20));
            is_over.store(true, Ordering::Release);
        });
        let mut seed = 0;
        while !is_over.load(Ordering::Acquire) {
            seed += 1;
            let survival = match seed % 3 {
                0 => Survival::Nothing,
                1 => Survival::Random { seed },
                _ => Survival::Everything,
            };
            let was_served = is_served.load(Ordering::Acquire);
            let is_there = is_there(&disk.after_power_cut(survival));
            assert!(is_there || !was_served, "cut {seed}");
        }
    });
    assert!(is_there(&disk.after_power_cut(Survival::Nothing)));
    assert_eq!(server.connect().publish_one("r.y", "y"), MESSAGES + 1);
}

#[test]
fn nothing_is_left_of_a_restore_that_is_cancelled_while_its_consumers_are_made() {
    let disk = SimulatedDisk::default();
    let server = StreamServer::start(&disk);
    let definition = br#"{"config":{"name":"R","subjects":["r.>"]}}"#;
    take_in(&server, definition);
    let streams = server.engine().streams().expect("they are served");
    let consumer = br#"{"name":"C","config":{"durable_name":"C","ack_policy":"explicit"}}"#;
    streams
        .restore_consumer(ID, consumer, STATE.as_bytes())
        .unwrap();
    assert_eq!(streams.commit_restored_consumers(ID).unwrap(), []);

    assert!(
        streams.create(ACCOUNT, definition).is_err(),
        "its name is taken"
    );
    assert!(streams.cancel_restore(ID));
    assert!(!streams.cancel_restore(ID));
    assert!(streams.serve_restored(ID).is_err());
    assert!(!is_there(&disk.after_power_cut(Survival::Everything)));
    streams.create(ACCOUNT, definition).unwrap();
    assert_eq!(streams.stored_consumers(ACCOUNT, "R").unwrap().len(), 0);
}
