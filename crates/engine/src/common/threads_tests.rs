//! A panic on any kind of thread stops the engine with the reason.

use std::io::{Read, Write};
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

/// An engine with every stream and every consumer that is on the disk; it is not started.
fn open(disk: &SimulatedDisk) -> Engine {
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
    let (stored, _) = streams.stored().expect("the disk can be read");
    for stream in stored {
        streams
            .open(&stream.account, &stream.name, &stream.definition)
            .expect("the stream can be opened");
        let consumers = streams.stored_consumers(ACCOUNT, &stream.name);
        for definition in consumers.expect("the journal can be read") {
            streams
                .open_consumer(ACCOUNT, &stream.name, &definition)
                .expect("the consumer can be opened");
        }
    }
    engine
}

/// An engine with one stream, which stores what is published on `s`.
fn start(disk: &SimulatedDisk) -> Engine {
    let engine = open(disk);
    let streams = engine.streams().expect("they are served");
    streams
        .create(ACCOUNT, br#"{"config":{"name":"S","subjects":["s"]}}"#)
        .expect("the disk takes it");
    engine.start().expect("threads can be started");
    engine
}

/// Lets a client in.
fn admit(engine: &Engine, connection_id: u64) {
    let verdict = Verdict::from_json(br#"{"account":"$G"}"#).expect("it is right");
    engine.decide(connection_id, verdict);
}

/// Why the engine has stopped.
fn failure_of(engine: &Engine) -> String {
    let deadline = Instant::now() + TIMEOUT;
    while Instant::now() < deadline {
        for event in engine.shared().events.next(100, Duration::from_millis(50)) {
            match event {
                Event::Stopped { failure } => return failure,
                Event::Authenticate(request) => admit(engine, request.connection_id),
                _ => {}
            }
        }
    }
    panic!("the engine goes on as if nothing had happened");
}

fn publish(engine: &Engine) {
    let mut socket = TcpStream::connect(engine.address()).expect("it listens");
    let request = b"CONNECT {}\r\nPUB s 5\r\nhello\r\nPING\r\n";
    // A worker that is to panic may do so as soon as it is woken up for the connection, which resets it.
    let _ = socket.write_all(request);
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

/// A client that publishes to the stream and pulls from its consumer `C`.
struct Client<'a> {
    engine: &'a Engine,
    socket: TcpStream,
    read: String,
}

impl<'a> Client<'a> {
    fn connect(engine: &'a Engine) -> Self {
        engine
            .subscribe_api(ACCOUNT, b"$JS.API.>")
            .expect("it can be asked");
        let socket = TcpStream::connect(engine.address()).expect("it listens");
        let timeout = Some(Duration::from_millis(20));
        socket.set_read_timeout(timeout).expect("a socket can");
        let mut client = Self {
            engine,
            socket,
            read: String::new(),
        };
        client.send("CONNECT {\"verbose\":false}\r\nSUB stored 1\r\nSUB got 2\r\nSUB done 3\r\n");
        client
    }

    fn send(&mut self, text: &str) {
        self.socket.write_all(text.as_bytes()).expect("it reads");
    }

    /// Waits until the server has said something, and forgets everything up to its end. Returns that.
    fn wait_for(&mut self, said: &str) -> String {
        let deadline = Instant::now() + TIMEOUT;
        while Instant::now() < deadline {
            if let Some(at) = self.read.find(said) {
                let rest = self.read.split_off(at + said.len());
                return std::mem::replace(&mut self.read, rest);
            }
            for event in self.engine.shared().events.next(100, Duration::ZERO) {
                if let Event::Authenticate(request) = event {
                    admit(self.engine, request.connection_id);
                }
            }
            let mut bytes = [0; 4096];
            if let Ok(count) = self.socket.read(&mut bytes) {
                self.read
                    .push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
        }
        panic!("the server did not say {said:?}, but {:?}", self.read);
    }

    fn ask_for_one(&mut self) {
        self.send("PUB $JS.API.CONSUMER.MSG.NEXT.S.C got 1\r\n1\r\n");
    }

    /// The subject on which the next message is acknowledged.
    fn next_message(&mut self) -> String {
        self.wait_for("MSG s 2 ");
        let line = self.wait_for(" 5\r\nhello\r\n");
        line.split(' ').next().expect("a subject").to_owned()
    }
}

/// How the consumer stands: what it has delivered, its floor, what is pending and what is to come.
fn standing(engine: &Engine) -> serde_json::Value {
    let streams = engine.streams().expect("they are served");
    let state = streams
        .consumer_state(ACCOUNT, "S", "C")
        .expect("it is there");
    let mut state: serde_json::Value = serde_json::from_slice(&state).expect("it is JSON");
    for reached in ["delivered", "floor"] {
        state[reached]["active_ns"] = 0.into();
    }
    for now in ["waiting", "push_bound", "pinned"] {
        state[now] = serde_json::Value::Null;
    }
    state
}

#[test]
fn a_panic_in_a_delivery_stops_the_engine_and_what_was_acknowledged_stays_so() {
    let disk = SimulatedDisk::default();
    let engine = start(&disk);
    let streams = engine.streams().unwrap();
    let config = r#"{"name":"C","durable_name":"C","ack_policy":"explicit"}"#;
    let definition =
        format!(r#"{{"name":"C","config":{config},"created":"2026-01-02T03:04:05Z"}}"#);
    streams
        .create_consumer(ACCOUNT, "S", definition.as_bytes())
        .unwrap();
    assert_eq!(streams.commit_consumers(ACCOUNT, "S").unwrap(), []);
    let mut client = Client::connect(&engine);
    client.send(&"PUB s stored 5\r\nhello\r\n".repeat(3));
    client.wait_for("\"seq\":3");
    client.ask_for_one();
    let acknowledgement = client.next_message();
    client.send(&format!("PUB {acknowledgement} done 4\r\n+ACK\r\n"));
    client.wait_for("MSG done 3 0\r\n");
    let before = standing(&engine);

    engine.shared().events.fail_at("delivery");
    client.ask_for_one();

    let failure = failure_of(&engine);
    assert!(failure.ends_with("the fail point delivery"), "{failure}");
    assert_ne!(standing(&engine), before, "the message was under way");
    let calls = disk.calls();
    engine.shutdown();
    assert_eq!(disk.calls(), calls, "what is broken must not write");
    let reopened = open(&disk.after_power_cut(Survival::Nothing));
    reopened.start().unwrap();
    assert_eq!(standing(&reopened), before);
    let mut client = Client::connect(&reopened);
    client.ask_for_one();
    let again = client.next_message();
    // Delivered once, the second message of the stream, the second delivery: as if the failed one had never begun.
    assert!(again.starts_with("$JS.ACK.S.C.1.2.2."), "{again}");
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
