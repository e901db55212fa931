//! Streams that follow others on a disk that loses its power: nothing is missing between them afterwards, and nothing is there twice.
//!
//! Publishers fill two streams that are mirrored and sourced while the disk is cut off repeatedly. Every cut gives a
//! disk of its own, with any part of what was not synced; a second server opens it, catches up, and everything is
//! compared. `JETLAKE_POWER_CUTS` is the number of cuts, 16 by default.

#[path = "support/gated_disk.rs"]
#[allow(dead_code, reason = "each test uses its part of it")]
mod gated_disk;
#[path = "support/stream_server.rs"]
#[allow(dead_code, reason = "each test uses its part of it")]
mod stream_server;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use gated_disk::{Call, GatedDisk};
use jetlake_engine::storage::disk::simulated::{SimulatedDisk, Survival};
use serde_json::json;
use stream_server::{StreamServer, Wire};

const CATCH_UP: Duration = Duration::from_secs(30);

/// What a stream with a limit keeps.
const FEW: u64 = 50;

#[test]
fn followers_are_complete_after_every_power_cut() {
    let disk = SimulatedDisk::default();
    let server = StreamServer::start(&disk);
    server.create("A", "a.>");
    server.create("B", "b.>");
    create_followers(&server);
    let mut counts = BTreeMap::new();

    cut_while_publishing(&server, &disk, &["a.1", "b.1"], |disk, number| {
        counts = check(disk, number, number % 3 == 1);
    });

    assert!(counts.values().all(|count| *count > 100), "{counts:?}");
}

#[test]
fn what_an_origin_lets_go_of_is_where_it_was_taken_after_every_power_cut() {
    let disk = SimulatedDisk::default();
    let server = StreamServer::start(&disk);
    for (name, retention) in [("Q", "workqueue"), ("I", "interest")] {
        let subject = format!("{}.*", name.to_lowercase());
        server.create_as(&json!({"name": name, "subjects": [subject], "retention": retention}));
    }
    let filters = ["q.1", "q.2", "i.1", "i.2"];
    let sources =
        filters.map(|filter| json!({"name": filter[..1].to_uppercase(), "filter_subject": filter}));
    server.create_as(&json!({"name": "T", "sources": sources}));
    // Nobody takes it, and so it stays in the queue.
    server.connect().publish_one("q.0", "waits");
    let mut counts = BTreeMap::new();

    cut_while_publishing(&server, &disk, &filters, |disk, number| {
        counts = check_taken(disk, number);
    });

    assert!(counts.values().all(|count| *count > 100), "{counts:?}");
}

/// Opens the disk with another server, and waits until the origins have let go of everything: all of it is there once, in its order. Returns how much of each subject.
fn check_taken(disk: &SimulatedDisk, number: u64) -> BTreeMap<String, u64> {
    let server = StreamServer::start(disk);
    let begun = Instant::now();
    let left = |name: &str| messages(&server, name).len();
    while (left("Q"), left("I")) != (1, 0) {
        let is_early = begun.elapsed() < CATCH_UP;
        let states = server.find("T").origin_states();
        assert!(
            is_early,
            "cut {number}: {} and {} are left, {states:?}",
            left("Q"),
            left("I")
        );
        thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(messages(&server, "Q")[0].2, b"waits", "cut {number}");
    let mut counts = BTreeMap::new();
    for (_, _, payload) in messages(&server, "T") {
        let text = String::from_utf8(payload).expect("it is text");
        let (subject, told) = text.split_once(' ').expect("it says");
        let count: &mut u64 = counts.entry(subject.to_owned()).or_default();
        assert_eq!(told.parse(), Ok(*count), "cut {number}: {subject}");
        *count += 1;
    }
    counts
}

#[test]
fn an_origin_keeps_what_its_follower_had_already_until_that_is_committed() {
    let disk = GatedDisk::default();
    let server = StreamServer::start_on(Arc::new(disk.clone()));
    let window_ns = 120_000_000_000_i64;
    server.create_as(&json!({"name": "Q", "subjects": ["q"], "retention": "workqueue"}));
    server.create_as(&json!({"name": "TARGET", "subjects": ["t"], "duplicate_window": window_ns, "sources": [{"name": "Q"}]}));
    let count = |name: &str| server.find(name).store().messages().counts().messages;
    let id = "NATS/1.0\r\nNats-Msg-Id: x\r\n\r\n";

    disk.close(Call::Sync, "TARGET/messages");
    let mut publisher = server.connect();
    publisher.send_only("t", id, "1");
    disk.wait_for_arrival();
    assert_eq!(server.connect().ask("q", id, "1")["seq"], 1);
    // Long enough for the source to find that it has the message; what it lets go of is gone with the next commit.
    thread::sleep(Duration::from_millis(500));
    assert_eq!(server.connect().publish_one("q", "2"), 2);
    let (in_queue, in_target) = (count("Q"), count("TARGET"));
    disk.open_gate();

    assert_eq!((in_queue, in_target), (2, 0));
    let begun = Instant::now();
    while (count("Q"), count("TARGET")) != (0, 2) {
        assert!(begun.elapsed() < CATCH_UP, "{} in the queue", count("Q"));
        thread::sleep(Duration::from_millis(2));
    }
}

/// Publishes to these subjects, and looks at the disk after each of many power cuts.
fn cut_while_publishing(
    server: &StreamServer,
    disk: &SimulatedDisk,
    subjects: &[&'static str],
    mut look: impl FnMut(&SimulatedDisk, u64),
) {
    let cuts = std::env::var("JETLAKE_POWER_CUTS").map_or(16, |text| text.parse().unwrap());
    let stop = Arc::new(AtomicBool::new(false));
    let publishers: Vec<_> = subjects
        .iter()
        .map(|subject| {
            let (wire, stop, subject) = (server.connect(), Arc::clone(&stop), *subject);
            thread::spawn(move || publish(wire, subject, &stop))
        })
        .collect();
    for number in 0..cuts {
        thread::sleep(Duration::from_millis(5 + number % 7 * 10));
        let survival = match number % 3 {
            0 => Survival::Nothing,
            1 => Survival::Random { seed: number },
            _ => Survival::Everything,
        };
        look(&disk.after_power_cut(survival), number);
    }
    stop.store(true, Ordering::Release);
    for publisher in publishers {
        publisher.join().unwrap();
    }
}

fn create_followers(server: &StreamServer) {
    let both = json!([{"name": "A"}, {"name": "B", "filter_subject": "b.*"}]);
    server.create_as(&json!({"name": "M", "mirror": {"name": "A"}}));
    server.create_as(&json!({"name": "MM", "mirror": {"name": "M"}}));
    server.create_as(&json!({"name": "T", "sources": both}));
    server.create_as(&json!({"name": "L", "sources": both, "max_msgs": FEW}));
}

/// Opens the disk with another server, waits until all has come over, and compares.
fn check(disk: &SimulatedDisk, number: u64, may_tear: bool) -> BTreeMap<&'static str, u64> {
    let server = StreamServer::start(disk);
    // Of the last message: behind it there may be sequences that are never given again.
    let last = |name: &str| {
        server
            .find(name)
            .store()
            .messages()
            .last_match(b">")
            .unwrap_or(0)
    };
    let lasts = BTreeMap::from([("A", last("A")), ("B", last("B"))]);
    let begun = Instant::now();
    loop {
        let taken = |name: &str| {
            let states = server.find(name).origin_states();
            let sequences: Vec<u64> = states.iter().map(|state| state.sequence).collect();
            sequences == [lasts["A"], lasts["B"]]
        };
        let is_mirrored = ["M", "MM"].iter().all(|name| last(name) == lasts["A"]);
        let is_committed = ["T", "L"].iter().all(|name| {
            let stream = server.find(name);
            stream.store().last_given_sequence() == stream.store().messages().counts().last_sequence
        });
        if taken("T") && taken("L") && is_mirrored && is_committed {
            break;
        }
        let states = || ["M", "MM", "T", "L"].map(|name| server.find(name).origin_states());
        let is_early = begun.elapsed() < CATCH_UP;
        assert!(is_early, "cut {number}: {lasts:?}, {:?}", states());
        thread::sleep(Duration::from_millis(2));
    }
    let of_origin = messages(&server, "A");
    for mirror in ["M", "MM"] {
        let mirrored = messages(&server, mirror);
        let differ = mirrored
            .iter()
            .zip(&of_origin)
            .find(|(one, other)| one != other);
        assert_eq!(differ, None, "cut {number}: {mirror}");
        assert_eq!(mirrored.len(), of_origin.len(), "cut {number}: {mirror}");
    }
    let all = origin_sequences(&server, "T");
    let few = origin_sequences(&server, "L");
    for name in ["A", "B"] {
        let sequences: Vec<u64> = messages(&server, name)
            .iter()
            .map(|message| message.0)
            .collect();
        assert_eq!(
            all.get(name).cloned().unwrap_or_default(),
            sequences,
            "cut {number}"
        );
        let left = few.get(name).cloned().unwrap_or_default();
        assert!(sequences.ends_with(&left), "cut {number}");
    }
    // As many were stored as came, though few of them are left. Where a write was torn, some sequences may not have been given again.
    let stored: u64 = all.values().map(|sequences| sequences.len() as u64).sum();
    assert!(last("L") >= stored, "cut {number}");
    assert!(last("L") == stored || may_tear, "cut {number}");
    assert!(server.find("L").store().messages().counts().messages <= FEW);
    lasts
}

fn messages(server: &StreamServer, name: &str) -> Vec<(u64, i64, Vec<u8>)> {
    let mut all = Vec::new();
    let stream = server.find(name);
    stream
        .store()
        .messages()
        .scan(0, |record| {
            all.push((record.sequence, record.time_ns, record.payload.to_vec()));
            true
        })
        .expect("it can be read");
    all
}

/// The sequences that messages had at each of their origins.
fn origin_sequences(server: &StreamServer, name: &str) -> BTreeMap<String, Vec<u64>> {
    let mut all: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    let stream = server.find(name);
    stream
        .store()
        .messages()
        .scan(0, |record| {
            let headers = String::from_utf8_lossy(record.headers);
            let (_, source) = headers.split_once("Nats-Stream-Source: ").expect("it says");
            let mut words = source.split(' ');
            let origin = words.next().expect("it says").to_owned();
            let sequence = words.next().and_then(|word| word.parse().ok());
            all.entry(origin)
                .or_default()
                .push(sequence.expect("it says"));
            true
        })
        .expect("it can be read");
    all
}

/// Publishes without end.
fn publish(mut wire: Wire, subject: &str, stop: &AtomicBool) {
    let mut sent = 0u64;
    let mut answered = 0u64;
    while !stop.load(Ordering::Acquire) || answered < sent {
        while sent - answered < 20 && !stop.load(Ordering::Acquire) {
            wire.publish(subject, &format!("{subject} {sent}"), sent);
            sent += 1;
        }
        wire.flush();
        answered += wire.answers().len() as u64;
        thread::sleep(Duration::from_millis(2));
    }
}
