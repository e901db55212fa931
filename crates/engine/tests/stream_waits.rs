//! Waiting for a disk: how often the creator of a stream does, and that a disk that hangs under one stream stops the
//! clock of no other.

#[path = "support/watched_disk.rs"]
mod watched_disk;

use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use jetlake_engine::common::events::Event;
use jetlake_engine::config::options::Options;
use jetlake_engine::engine::Engine;
use jetlake_engine::routing::clients::mailbox::Verdict;
use jetlake_engine::storage::disk::simulated::{SimulatedDisk, Survival};
use watched_disk::WatchedDisk;

const ACCOUNT: &str = "$G";

/// What is to happen has this long; ample, on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(20);

#[derive(Default)]
struct Hang {
    hangs: Mutex<bool>,
    changed: Condvar,
}

impl Hang {
    fn set(&self, hangs: bool) {
        *self.hangs.lock().unwrap() = hangs;
        self.changed.notify_all();
    }

    fn wait(&self) {
        let mut hangs = self.hangs.lock().unwrap();
        while *hangs {
            hangs = self.changed.wait(hangs).unwrap();
        }
    }
}

/// A disk on which syncs for the stream HUNG do not come back as long as it hangs.
fn hanging_disk(hang: &Arc<Hang>) -> WatchedDisk {
    let hang = Arc::clone(hang);
    WatchedDisk::new(move |path| {
        if path.iter().any(|part| part == "HUNG") {
            hang.wait();
        }
    })
}

fn start(disk: &WatchedDisk) -> Arc<Engine> {
    let options = serde_json::json!({
        "host": "127.0.0.1", "port": 0, "server_name": "hung", "version": "2.15.1", "git_commit": "",
        "client_advertise": null, "max_connections": 1_000, "max_subscriptions": 0,
        "max_subscription_tokens": 0, "max_control_line_bytes": 4_096,
        "max_payload_bytes": 1_048_576, "max_pending_bytes": 67_108_864, "write_deadline_ms": 10_000,
        "ping_interval_ms": 100_000, "ping_max": 2, "auth_required": false, "auth_timeout_ms": 10_000,
        "handshake_timeout_ms": 10_000, "headers": true, "fast_producer_stall": true, "worker_threads": 2,
        "jetstream": true, "domain": null, "debug": false, "trace": false,
    });
    let options = Options::from_json(options.to_string().as_bytes()).expect("they are right");
    let engine = Arc::new(Engine::new(options).expect("a port is free"));
    engine
        .serve_streams_on(Arc::new(disk.clone()), Path::new("/jetstream"), b"{}")
        .expect("the disk can be read");
    engine.start().expect("threads can be started");
    engine
}

fn create(engine: &Engine, name: &str, max_age_ns: u64) {
    let config = serde_json::json!({"name": name, "subjects": [name], "max_age": max_age_ns});
    let definition = serde_json::json!({ "config": config });
    let streams = engine.streams().expect("they are served");
    streams
        .create(ACCOUNT, definition.to_string().as_bytes())
        .expect("the disk takes it");
}

fn messages(engine: &Engine, name: &str) -> u64 {
    let streams = engine.streams().expect("they are served");
    let stream = streams.find(ACCOUNT, name).expect("it is there");
    stream.store().messages().counts().messages
}

/// Waits for something, and admits clients meanwhile.
fn wait_for(engine: &Engine, what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        for event in engine.shared().events.next(100, Duration::from_millis(5)) {
            if let Event::Authenticate(request) = event {
                let verdict = Verdict::from_json(br#"{"account":"$G"}"#).expect("it is right");
                engine.decide(request.connection_id, verdict);
            }
        }
    }
}

#[test]
fn messages_of_other_streams_expire_while_the_disk_of_one_hangs() {
    let hang = Arc::<Hang>::default();
    let engine = start(&hanging_disk(&hang));
    create(&engine, "HUNG", 300_000_000);
    let others: Vec<String> = (0..20).map(|number| format!("GOOD{number}")).collect();
    for name in &others {
        create(&engine, name, 1_000_000_000);
    }
    let mut socket = TcpStream::connect(engine.address()).expect("it listens");
    socket
        .write_all(b"CONNECT {}\r\nPUB HUNG 2\r\nhi\r\n")
        .expect("it reads");
    wait_for(&engine, "nothing is stored", || {
        messages(&engine, "HUNG") == 1
    });

    // The next commit of the stream hangs, and the clock would wait for it to let the first message expire.
    hang.set(true);
    let mut text = String::from("PUB HUNG 2\r\nhi\r\n");
    for name in &others {
        text += &format!("PUB {name} 2\r\nhi\r\n");
    }
    socket.write_all(text.as_bytes()).expect("it reads");
    let stored = || others.iter().all(|name| messages(&engine, name) == 1);
    let mut was_stored = false;
    wait_for(&engine, "what others store does not expire", || {
        was_stored |= stored();
        was_stored && others.iter().all(|name| messages(&engine, name) == 0)
    });
    let still_there = messages(&engine, "HUNG");

    hang.set(false);
    assert_eq!(still_there, 1, "the disk did not hang");
    wait_for(&engine, "it does not go on", || {
        messages(&engine, "HUNG") == 0
    });
    thread::scope(|scope| {
        scope.spawn(|| engine.shutdown());
    });
}

#[test]
fn a_change_of_one_account_does_not_wait_for_the_disk_of_another() {
    let hang = Arc::<Hang>::default();
    let engine = start(&hanging_disk(&hang));
    let streams = engine.streams().expect("they are served");
    let create = |account: &str, name: &str| {
        let config = serde_json::json!({"name": name, "subjects": [name]});
        let definition = serde_json::json!({ "config": config }).to_string();
        streams
            .create(account, definition.as_bytes())
            .expect("the disk takes it");
    };

    hang.set(true);
    thread::scope(|scope| {
        let hung = scope.spawn(|| create("ONE", "HUNG"));
        create("TWO", "GOOD");
        streams.delete("TWO", "GOOD").expect("it is there");
        create("TWO", "GOOD");
        let is_hung = !hung.is_finished();
        hang.set(false);
        hung.join().unwrap();
        assert!(is_hung, "the disk did not hang");
    });
    assert!(streams.find("ONE", "HUNG").is_some());
}

#[test]
fn whoever_creates_a_stream_waits_for_three_syncs_and_what_it_stores_is_durable() {
    let by_thread = Arc::new(Mutex::new(Vec::new()));
    let disk = {
        let by_thread = Arc::clone(&by_thread);
        WatchedDisk::new(move |path| {
            let thread = thread::current().id();
            by_thread.lock().unwrap().push((thread, path.to_owned()));
        })
    };
    let engine = start(&disk);
    // The first stream of an account has the folders above it to itself.
    create(&engine, "FIRST", 0);
    by_thread.lock().unwrap().clear();

    create(&engine, "SECOND", 0);

    let own = thread::current().id();
    let syncs = by_thread.lock().unwrap().clone();
    let waited_for: Vec<_> = syncs.iter().filter(|(thread, _)| *thread == own).collect();
    assert!(waited_for.len() <= 3, "{waited_for:?}");
    let found = restarted(&disk.disk.after_power_cut(Survival::Nothing));
    assert_eq!(messages(&found, "SECOND"), 0);

    let mut socket = TcpStream::connect(engine.address()).expect("it listens");
    socket
        .write_all(b"CONNECT {}\r\nPUB SECOND 2\r\nhi\r\n")
        .expect("it reads");
    wait_for(&engine, "nothing is stored", || {
        messages(&engine, "SECOND") == 1
    });
    let found = restarted(&disk.disk.after_power_cut(Survival::Nothing));
    assert_eq!(messages(&found, "SECOND"), 1);
}

/// Another engine on what is left of a disk.
fn restarted(disk: &SimulatedDisk) -> Arc<Engine> {
    let watched = WatchedDisk {
        disk: disk.clone(),
        ..WatchedDisk::new(|_| {})
    };
    let engine = start(&watched);
    let streams = engine.streams().expect("they are served");
    let (stored, findings) = streams.stored().expect("the disk can be read");
    assert_eq!(findings, Vec::<String>::new());
    for stream in stored {
        let findings = streams
            .open(&stream.account, &stream.name, &stream.definition)
            .expect("the stream can be opened");
        assert_eq!(findings, Vec::<String>::new());
    }
    engine
}
