//! A panic on any kind of thread stops the engine with the reason.

use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::common::events::Event;
use crate::config::options::Options;
use crate::engine::Engine;
use crate::routing::clients::mailbox::Verdict;
use crate::storage::disk::simulated::{SimulatedDisk, Survival};
use crate::storage::store::{Store, StoreOptions};

/// What is to happen has this long; ample, on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(20);

const ACCOUNT: &str = "$G";

/// An engine with one stream, which stores what is published on `s`.
fn start(disk: &SimulatedDisk) -> Engine {
    let options = serde_json::json!({
        "host": "127.0.0.1", "port": 0, "server_name": "threads", "version": "2.15.1", "git_commit": "",
        "client_advertise": null, "max_connections": 1_000, "max_subscriptions": 0,
        "max_subscription_tokens": 0, "max_control_line_bytes": 4_096,
        "max_payload_bytes": 1_048_576, "max_pending_bytes": 67_108_864, "write_deadline_ms": 10_000,
        "ping_interval_ms": 100_000, "ping_max": 2, "auth_required": false, "auth_timeout_ms": 10_000,
        "handshake_timeout_ms": 10_000, "headers": true, "fast_producer_stall": true, "worker_threads": 2,
        "jetstream": true, "domain": null, "debug": false, "trace": false,
    });
    let options = Options::from_json(options.to_string().as_bytes()).expect("they are right");
    let engine = Engine::new(options).expect("a port is free");
    let streams = engine
        .serve_streams_on(
            Arc::new(disk.clone()),
            Path::new("/jetstream"),
            br#"{"remotes":[{"name":"far","addresses":["127.0.0.1:1"]}]}"#,
        )
        .expect("the disk can be read");
    streams
        .create(ACCOUNT, br#"{"config":{"name":"S","subjects":["s"]}}"#)
        .expect("the disk takes it");
    engine.start().expect("threads can be started");
    engine
}

/// Why the engine has stopped.
fn failure_of(engine: &Engine) -> String {
    let deadline = Instant::now() + TIMEOUT;
    while Instant::now() < deadline {
        for event in engine.shared().events.next(100, Duration::from_millis(50)) {
            match event {
                Event::Stopped { failure } => return failure,
                Event::Authenticate(request) => {
                    let verdict = Verdict::from_json(br#"{"account":"$G"}"#).expect("it is right");
                    engine.decide(request.connection_id, verdict);
                }
                _ => {}
            }
        }
    }
    panic!("the engine goes on as if nothing had happened");
}

fn publish(engine: &Engine) {
    let mut socket = TcpStream::connect(engine.address()).expect("it listens");
    let request = b"CONNECT {}\r\nPUB s 5\r\nhello\r\nPING\r\n";
    socket.write_all(request).expect("it reads");
    // It must be there while the engine looks at what it said.
    std::mem::forget(socket);
}

#[test]
fn a_panic_on_a_worker_stops_the_engine() {
    let engine = start(&SimulatedDisk::default());

    engine.shared().events.fail_at("worker");
    publish(&engine);

    let failure = failure_of(&engine);
    assert!(
        failure.starts_with("the thread jetlake-worker-"),
        "{failure}"
    );
    assert!(failure.ends_with("the fail point worker"), "{failure}");
}

#[test]
fn a_panic_on_a_storage_thread_stops_the_engine_and_nothing_is_written_after_it() {
    let disk = SimulatedDisk::default();
    let engine = start(&disk);

    let stream = engine.streams().unwrap().find(ACCOUNT, "S").unwrap();
    stream.store().make_durable().unwrap();
    engine.shared().events.fail_at("storage");
    publish(&engine);

    let failure = failure_of(&engine);
    assert!(
        failure.starts_with("the thread jetlake-storage"),
        "{failure}"
    );
    let calls = disk.calls();
    engine.shutdown();
    assert_eq!(disk.calls(), calls, "what is broken must not write");
    let found = disk.after_power_cut(Survival::Nothing);
    let folder = found.files().into_iter().find_map(|(path, _)| {
        let is_messages = path.parent()?.ends_with("messages");
        is_messages.then(|| path.parent().map(Path::to_owned))?
    });
    let folder = folder.expect("the stream is there");
    let store = Store::open(Arc::new(found), &folder, StoreOptions::default()).unwrap();
    assert_eq!(store.take_findings(), vec![]);
}

#[test]
fn a_panic_on_the_clock_stops_the_engine() {
    let engine = start(&SimulatedDisk::default());

    engine.shared().events.fail_at("clock");

    let failure = failure_of(&engine);
    assert!(failure.starts_with("the thread jetlake-clock"), "{failure}");
}

#[test]
fn a_panic_on_the_timers_stops_the_engine() {
    let engine = start(&SimulatedDisk::default());

    engine.shared().events.fail_at("timers");

    let failure = failure_of(&engine);
    assert!(
        failure.starts_with("the thread jetlake-timers"),
        "{failure}"
    );
}

#[test]
fn a_panic_on_a_reader_of_another_server_stops_the_engine() {
    let engine = start(&SimulatedDisk::default());

    engine.shared().events.fail_at("remote");
    let definition =
        br#"{"config":{"name":"M","mirror":{"name":"O","external":{"api":"$JS.far.API"}}}}"#;
    let streams = engine.streams().expect("they are served");
    streams
        .create(ACCOUNT, definition)
        .expect("the disk takes it");

    let failure = failure_of(&engine);
    assert!(
        failure.starts_with("the thread jetlake-remote"),
        "{failure}"
    );
}

#[test]
fn the_reason_why_a_thread_cannot_go_on_stops_the_engine() {
    let engine = start(&SimulatedDisk::default());
    let events = &engine.shared().events;

    let thread = super::spawn(events, "jetlake-test", || Err("no more".to_owned())).unwrap();
    thread.join().unwrap();

    assert_eq!(
        failure_of(&engine),
        "the thread jetlake-test broke off: no more"
    );
}

#[test]
fn an_engine_that_fails_twice_tells_the_first_reason() {
    let engine = start(&SimulatedDisk::default());
    let events = &engine.shared().events;

    events.fail("first".to_owned());
    events.fail("second".to_owned());

    assert_eq!(failure_of(&engine), "first");
    let more = events.next(100, Duration::ZERO);
    assert!(!more
        .iter()
        .any(|event| matches!(event, Event::Stopped { .. })));
}
