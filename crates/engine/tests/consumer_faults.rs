//! A whole server whose disk is full, fails, or has lost a bit where consumers are kept: deliveries go on, and nothing
//! untrue is reported.
//!
//! Faults strike at each call in turn that the journal of the consumers makes. Bits are flipped in every file of it, one at a time: in each byte that is not
//! zero whose number can be divided by `JETLAKE_FLIP_STEP`, 5 by default, and in a few of the zeros. Invariant of the
//! tests: no thread panics.

#[path = "support/consumer_server.rs"]
#[allow(dead_code, reason = "each test uses its part of it")]
mod consumer_server;
#[path = "support/stream_server.rs"]
#[allow(dead_code, reason = "each test uses its part of it")]
mod stream_server;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Once};
use std::thread;
use std::time::Duration;

use consumer_server::{Client, ConsumerServer, Delivery};
use jetlake_engine::storage::disk::simulated::{Fault, FaultPlan, SimulatedDisk, Survival};
use jetlake_engine::storage::store::{Store, StoreOptions};
use serde_json::{json, Value};

const ACK: &str = "+ACK";
const NAK: &str = "-NAK";
const PROGRESS: &str = "+WPI";

const SUBJECT: &str = "s.a";
const MESSAGES: u64 = 40;

/// A pull that is not filled ends so soon.
const TIMEOUT: Duration = Duration::from_millis(300);

/// A confirmation that has not come in this time does not come.
const SILENCE: Duration = Duration::from_millis(400);

/// A confirmation that is to come has this long; ample, on a busy machine.
const CONFIRMED_MAX: Duration = Duration::from_secs(10);

/// In this time everything that waits for the clock is on disk, on a busy machine as well.
const WRITTEN: Duration = Duration::from_secs(1);

/// Confirmed changes that fit into the room a journal has taken ahead, at most.
const CHANGES_MAX: u64 = 20_000;

/// Zeros lie before and after everything that is written; every this many bytes, a bit is flipped.
const ZERO_STEP: usize = 2_003;

/// Messages that wait at a time in the test of the journal's size.
const PENDING: usize = 1_000;

/// Consumers that come, and some of them go, while the disk fills up now and then.
const CONSUMERS: usize = 300;

const JOURNAL_SEGMENT_BYTES: usize = 4 * 1024 * 1024;

/// Panics of any thread since the first test began; those of tests themselves end them anyway.
static PANICS: AtomicUsize = AtomicUsize::new(0);

fn watch_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let tell = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |information| {
            PANICS.fetch_add(1, Ordering::SeqCst);
            tell(information);
        }));
    });
}

fn assert_no_panics() {
    assert_eq!(PANICS.load(Ordering::SeqCst), 0, "a thread has panicked");
}

fn explicit() -> Value {
    // Nothing is to come again by itself.
    json!({"ack_policy": "explicit", "ack_wait": 60_000_000_000_i64, "max_deliver": 7})
}

/// A server with one stream, its messages, and a consumer whose first state is on disk.
fn start(disk: &SimulatedDisk) -> (ConsumerServer, Client) {
    watch_panics();
    let server = ConsumerServer::start(disk);
    server.streams.create("S", "s.>");
    let mut client = server.connect();
    for _ in 0..MESSAGES {
        client.publish(SUBJECT, "message");
    }
    server.create("S", "C", &explicit());
    (server, client)
}

#[test]
fn while_the_disk_is_full_messages_are_delivered_and_confirmations_wait() {
    let disk = SimulatedDisk::default();
    let (server, mut client) = start(&disk);
    let first = client.pull("S", "C", 10, TIMEOUT);
    thread::sleep(WRITTEN);

    let used: usize = disk.files().iter().map(|(_, bytes)| bytes.len()).sum();
    disk.set_capacity(Some(used as u64));
    fill(&mut client, &first[9]);
    let token = client.ask_confirmation(&first[0], ACK);
    let is_early = client.is_confirmed(token, SILENCE);
    let second = client.pull("S", "C", 10, TIMEOUT);
    let other = client.ask_confirmation(&second[0], ACK);
    let is_other_early = client.is_confirmed(other, SILENCE);

    assert!(!is_early && !is_other_early, "confirmed, and not on disk");
    assert_eq!((first.len(), second.len()), (10, 10));
    disk.set_capacity(None);
    assert!(client.is_confirmed(token, CONFIRMED_MAX));
    assert!(client.is_confirmed(other, CONFIRMED_MAX));
    drop(server);
    let after = ConsumerServer::start(&disk.after_power_cut(Survival::Nothing));
    let needed: Vec<u64> = (1..=MESSAGES)
        .filter(|sequence| after.needs("S", "C", SUBJECT, *sequence))
        .collect();
    let wanted: Vec<u64> = (2..=MESSAGES).filter(|sequence| *sequence != 11).collect();
    assert_eq!(needed, wanted);
    assert_no_panics();
}

/// Changes the state of a consumer until no change is confirmed any more.
fn fill(client: &mut Client, delivery: &Delivery) {
    let mut changes = 0;
    while client.try_acknowledge(delivery, PROGRESS, SILENCE) {
        changes += 1;
        assert!(changes < CHANGES_MAX, "the disk is never full");
    }
    println!("{changes} changes until the disk was full");
}

#[test]
fn the_journal_takes_no_more_room_the_longer_it_is_written() {
    let disk = SimulatedDisk::default();
    let server = ConsumerServer::start(&disk);
    server.streams.create("S", "s.>");
    server.create("S", "C", &explicit());
    let mut client = server.connect();
    for _ in 0..PENDING {
        client.publish(SUBJECT, "message");
    }
    let pulled = client.pull("S", "C", PENDING, CONFIRMED_MAX);
    assert_eq!(pulled.len(), PENDING);

    let mut journal_bytes_max = 0;
    let mut written_bytes_min = 0;
    while written_bytes_min < 3 * JOURNAL_SEGMENT_BYTES {
        for _ in 0..20 {
            client.tell_all(&pulled[1..], PROGRESS);
            client.acknowledge(&pulled[0], PROGRESS);
            // Each says at least which message, since when it waits, and how often it came.
            written_bytes_min += PENDING * 8;
        }
        let files = disk.files().into_iter();
        let of_journal = files.filter(|(path, _)| is_of_journal(path));
        let journal_bytes: usize = of_journal.map(|(_, bytes)| bytes.len()).sum();
        journal_bytes_max = journal_bytes_max.max(journal_bytes);
    }

    println!("{written_bytes_min} bytes or more written, {journal_bytes_max} bytes kept at most");
    assert!(journal_bytes_max <= 4 * JOURNAL_SEGMENT_BYTES);
    let after = ConsumerServer::start(&disk.after_power_cut(Survival::Nothing));
    assert_eq!(after.state("S", "C")["ack_pending"], PENDING);
    assert_no_panics();
}

#[test]
fn a_state_that_was_refused_takes_nothing_of_others_away() {
    let disk = SimulatedDisk::default();
    let (server, mut client) = start(&disk);
    let pulled = client.pull("S", "C", 10, TIMEOUT);
    for number in 0..5 {
        server.create("S", &format!("X{number}"), &explicit());
    }
    thread::sleep(WRITTEN);
    let mut names = vec!["C".to_owned()];
    for (number, delivery) in pulled[..5].iter().enumerate() {
        // A state of C is refused …
        let at_call = disk.calls();
        disk.plan(Some(FaultPlan {
            at_call,
            fault: Fault::NoSpace,
            lasting: false,
        }));
        let token = client.ask_confirmation(delivery, ACK);
        while disk.calls() == at_call {
            thread::yield_now();
        }
        // … a removal shows that there is room, and a new consumer gets the sequence. It may also be C again, which was quick.
        let deleted = server.try_delete("S", &format!("X{number}"));
        let name = format!("D{number}");
        if deleted.is_ok() && server.try_create("S", &name, &explicit()).is_ok() {
            names.push(name);
        }
        // The state of C is written as a whole, and replaces those before.
        assert!(client.is_confirmed(token, CONFIRMED_MAX));
    }

    assert!(names.len() > 1, "nothing could be created");
    let cut = disk.after_power_cut(Survival::Nothing);
    let (path, _) = cut
        .files()
        .into_iter()
        .find(|(path, _)| is_of_journal(path))
        .expect("there is a journal");
    let folder = path.parent().expect("it is in a folder");
    let journal = Store::open(Arc::new(cut.copy()), folder, StoreOptions::default()).unwrap();
    for name in &names {
        for part in ["d.", "e.", "s."] {
            let kept = [part, name].concat();
            let (count, _) = journal.messages().subject_count(kept.as_bytes());
            assert!(count > 0, "{kept} is gone");
        }
    }
    assert_no_panics();
}

#[test]
fn consumers_that_come_and_go_on_a_disk_that_fills_up_are_as_was_said() {
    let disk = SimulatedDisk::default();
    let (server, mut client) = start(&disk);
    let pulled = client.pull("S", "C", 10, TIMEOUT);
    let done = AtomicBool::new(false);
    let mut created = BTreeSet::new();
    let mut deleted = BTreeSet::new();
    let mut refusals = 0;

    thread::scope(|scope| {
        // Room for single calls comes and goes.
        scope.spawn(|| {
            let mut round = 0_u64;
            while !done.load(Ordering::Acquire) {
                round += 1;
                disk.plan(Some(FaultPlan {
                    at_call: disk.calls() + round % 11,
                    fault: Fault::NoSpace,
                    lasting: false,
                }));
                thread::sleep(Duration::from_millis(3));
            }
        });
        // The state of another consumer is written all the time.
        let busy = scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                client.tell_all(&pulled, PROGRESS);
                thread::sleep(Duration::from_millis(1));
            }
        });
        for number in 0..CONSUMERS {
            let name = format!("N{number}");
            match server.try_create("S", &name, &explicit()) {
                Ok(()) => drop(created.insert(name.clone())),
                Err(_) => {
                    refusals += 1;
                    thread::sleep(Duration::from_millis(20));
                }
            }
            if number % 3 == 2 && created.remove(&name) {
                match server.try_delete("S", &name) {
                    Ok(()) => drop(deleted.insert(name)),
                    Err(_) => refusals += 1,
                }
            }
        }
        done.store(true, Ordering::Release);
        busy.join().expect("it does not fail");
    });

    println!(
        "{} created, {} deleted, {refusals} refusals",
        created.len(),
        deleted.len()
    );
    assert!(refusals > 0, "the disk was never full");
    let after = ConsumerServer::start(&disk.after_power_cut(Survival::Nothing));
    let names: BTreeSet<String> = after.names("S").into_iter().collect();
    let lost: Vec<&String> = created.difference(&names).collect();
    let back: Vec<&String> = deleted.intersection(&names).collect();
    assert!(lost.is_empty() && back.is_empty(), "{lost:?} {back:?}");
    assert_no_panics();
}

/// What was reported to a client while a call of the journal failed.
#[derive(Debug, Default)]
struct Told {
    confirmed: Vec<u64>,
    created: Option<Result<(), String>>,
    deleted: Option<Result<(), String>>,
    calls: u64,
}

/// Lets the call `offset` calls from now fail, while acknowledgements come and consumers come and go; then cuts the
/// power and compares.
fn meet(fault: Fault, offset: u64) -> Told {
    let disk = SimulatedDisk::default();
    let (server, mut client) = start(&disk);
    server.create("S", "D", &explicit());
    let first = client.pull("S", "C", 10, TIMEOUT);
    thread::sleep(WRITTEN);
    let timeout = match fault {
        Fault::NoSpace => CONFIRMED_MAX,
        _ => SILENCE,
    };

    let before = disk.calls();
    disk.plan(Some(FaultPlan {
        at_call: before + offset,
        fault,
        lasting: false,
    }));
    let mut told = Told::default();
    for delivery in &first[..2] {
        if client.try_acknowledge(delivery, ACK, timeout) {
            told.confirmed.push(delivery.sequence);
        }
    }
    told.created = Some(server.try_create("S", "E", &explicit()));
    told.deleted = Some(server.try_delete("S", "D"));
    if client.try_acknowledge(&first[2], ACK, timeout) {
        told.confirmed.push(first[2].sequence);
    }
    let second = client.pull("S", "C", 10, TIMEOUT);
    told.calls = disk.calls() - before;

    let label = format!("{fault:?} at call {offset}: {told:?}");
    assert_eq!(second.len(), 10, "{label}: nothing is delivered");
    let cut = disk.after_power_cut(Survival::Nothing);
    let after = ConsumerServer::start(&cut);
    let names = after.names("S");
    let has = |name: &str| names.iter().any(|other| other == name);
    assert!(has("C"), "{label}");
    assert!(has("E") || !matches!(told.created, Some(Ok(()))), "{label}");
    assert!(
        !has("D") || !matches!(told.deleted, Some(Ok(()))),
        "{label}"
    );
    for sequence in 1..=MESSAGES {
        let is_needed = after.needs("S", "C", SUBJECT, sequence);
        assert!(sequence <= 3 || is_needed, "{label}: {sequence} is lost");
        let is_confirmed = told.confirmed.contains(&sequence);
        assert!(!is_needed || !is_confirmed, "{label}: {sequence} again");
    }
    told
}

#[test]
fn a_call_that_meets_a_full_disk_is_made_again() {
    let calls = meet(Fault::NoSpace, u64::MAX / 2).calls;

    for offset in 0..calls {
        let told = meet(Fault::NoSpace, offset);
        assert_eq!(told.confirmed, [1, 2, 3], "call {offset}: {told:?}");
    }
    assert_no_panics();
    println!("{calls} calls, each met a full disk once");
}

#[test]
fn a_call_that_fails_confirms_nothing_that_is_not_on_disk() {
    let calls = meet(Fault::Broken, u64::MAX / 2).calls;

    let mut confirmed = 0;
    for offset in 0..calls {
        confirmed += meet(Fault::Broken, offset).confirmed.len();
    }
    assert_no_panics();
    println!("{calls} calls, each failed once; {confirmed} confirmations, all on disk");
}

/// A disk with consumers that have come a way: what C has acknowledged without a gap is 1 to 10, and 12 and 14; A has acknowledged up to 12.
fn travelled() -> (SimulatedDisk, SimulatedDisk) {
    let disk = SimulatedDisk::default();
    let (server, mut client) = start(&disk);
    let mut config = explicit();
    config["ack_policy"] = json!("all");
    server.create("S", "A", &config);
    let of_c = client.pull("S", "C", 30, TIMEOUT);
    thread::sleep(WRITTEN);
    for delivery in &of_c[..10] {
        client.acknowledge(delivery, ACK);
    }
    client.acknowledge(&of_c[11], ACK);
    let of_a = client.pull("S", "A", 20, TIMEOUT);
    client.acknowledge(&of_a[4], ACK);
    client.acknowledge(&of_a[8], ACK);
    client.acknowledge(&of_c[13], ACK);
    client.acknowledge(&of_c[15], NAK);
    client.acknowledge(&of_a[11], ACK);
    thread::sleep(WRITTEN);
    let cut = disk.after_power_cut(Survival::Nothing);
    drop((client, server));
    (cut, disk.copy())
}

fn is_of_journal(path: &Path) -> bool {
    path.components()
        .any(|part| part.as_os_str() == "consumers")
}

/// The bytes to damage: file, place.
fn places(disk: &SimulatedDisk, step: usize) -> Vec<(PathBuf, usize)> {
    let mut places = Vec::new();
    for (path, bytes) in disk.files() {
        if !is_of_journal(&path) {
            continue;
        }
        let is_written = |offset: &usize| bytes[*offset] != 0;
        let of_written = (0..bytes.len()).filter(is_written).step_by(step);
        let of_zeros = (0..bytes.len()).step_by(ZERO_STEP);
        places.extend(
            of_written
                .chain(of_zeros)
                .map(|offset| (path.clone(), offset)),
        );
    }
    places
}

/// One bit is wrong: at most one record is lost, so every floor is known from another one, and both definitions are.
fn check_flipped(disk: &SimulatedDisk, label: &str) {
    let server = ConsumerServer::start(disk);
    assert_eq!(server.names("S"), ["A", "C"], "{label}");
    for name in ["A", "C"] {
        let stream = server.streams.find("S");
        let consumer = stream.consumers().find(name).expect("it is there");
        assert_eq!(consumer.settings().max_deliver, Some(7), "{label}");
    }
    for sequence in 1..=MESSAGES {
        let of_c = server.needs("S", "C", SUBJECT, sequence);
        let of_a = server.needs("S", "A", SUBJECT, sequence);
        let is_open_for_c = sequence > 10 && sequence != 12 && sequence != 14;
        assert!(of_c || !is_open_for_c, "{label}: C has lost {sequence}");
        assert!(of_a || sequence <= 12, "{label}: A has lost {sequence}");
        assert!(!of_c || sequence > 10, "{label}: C goes back to {sequence}");
        assert!(!of_a || sequence > 9, "{label}: A goes back to {sequence}");
    }
    // It goes on from there, and writes.
    let mut client = server.connect();
    let pulled = client.pull("S", "C", 1, CONFIRMED_MAX);
    client.acknowledge(&pulled[0], ACK);
}

#[test]
fn a_flipped_bit_costs_no_more_than_redelivery_above_the_floor() {
    let step: usize = std::env::var("JETLAKE_FLIP_STEP").map_or(5, |text| text.parse().unwrap());
    let (cut, closed) = travelled();
    check_flipped(&cut.copy(), "cut, nothing flipped");
    check_flipped(&closed.copy(), "closed, nothing flipped");

    let mut flips = 0;
    for (kind, disk) in [("cut", &cut), ("closed", &closed)] {
        for (path, offset) in places(disk, step) {
            let damaged = disk.copy();
            damaged.tamper(&path, |bytes| bytes[offset] ^= 1 << (offset % 8));
            check_flipped(
                &damaged,
                &format!("{kind}, {}, byte {offset}", path.display()),
            );
            flips += 1;
        }
    }
    assert_no_panics();
    println!("{flips} flips, everything found");
}
