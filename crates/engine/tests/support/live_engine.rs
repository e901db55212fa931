//! An engine in this process, with limits small enough to be hit, and the thread that receives its events.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use jetlake_engine::common::events::Event;
use jetlake_engine::config::options::{Options, UNCONNECTED_PAYLOAD_BYTES_MAX};
use jetlake_engine::engine::Engine;
use jetlake_engine::routing::clients::mailbox::{RefusalCause, Verdict};
use jetlake_engine::routing::monitoring::statistics;

use super::canary;
use super::oracle::{Rules, ADMITTED_USER};

/// How long after the last client left something of it may still be there.
const CALM_MAX: Duration = Duration::from_secs(10);

const MAX_SUBSCRIPTIONS: usize = 6;
const MAX_SUBSCRIPTION_TOKENS: usize = 10;
const MAX_CONTROL_LINE_BYTES: usize = 4_096;
const MAX_PAYLOAD_BYTES: usize = 1_048_576;

/// The limits as the oracle takes them. Those for clients that have not said CONNECT are the engine's own.
pub fn rules(auth_required: bool, is_engine: bool) -> Rules {
    Rules {
        auth_required,
        control_line_bytes_max: MAX_CONTROL_LINE_BYTES,
        payload_bytes_max: MAX_PAYLOAD_BYTES,
        unconnected_payload_bytes_max: if is_engine {
            UNCONNECTED_PAYLOAD_BYTES_MAX
        } else {
            MAX_PAYLOAD_BYTES
        },
        subscriptions_max: MAX_SUBSCRIPTIONS,
        subscription_tokens_max: MAX_SUBSCRIPTION_TOKENS,
    }
}

/// An engine of this process, and the thread that receives its events.
pub struct LiveEngine {
    engine: Arc<Engine>,
    /// What a worker said when it broke off.
    broken: Arc<Mutex<Vec<String>>>,
    stop: Arc<AtomicBool>,
    listener: Option<thread::JoinHandle<()>>,
}

impl LiveEngine {
    pub fn start(auth_required: bool) -> Self {
        let options = serde_json::json!({
            "host": "127.0.0.1", "port": 0, "server_name": "malformed", "version": "2.15.1", "git_commit": "",
            "client_advertise": null, "max_connections": 65_536, "max_subscriptions": MAX_SUBSCRIPTIONS,
            "max_subscription_tokens": MAX_SUBSCRIPTION_TOKENS, "max_control_line_bytes": MAX_CONTROL_LINE_BYTES,
            "max_payload_bytes": MAX_PAYLOAD_BYTES, "max_pending_bytes": 67_108_864, "write_deadline_ms": 10_000,
            "ping_interval_ms": 10_000, "ping_max": 2, "auth_required": auth_required, "auth_timeout_ms": 10_000,
            "handshake_timeout_ms": 10_000, "headers": true, "fast_producer_stall": true, "worker_threads": 2,
            "jetstream": false, "domain": null, "debug": false, "trace": false,
        });
        let options =
            Options::from_json(options.to_string().as_bytes()).expect("the options are right");
        let engine = Arc::new(Engine::new(options).expect("a port is free"));
        engine.start().expect("threads can be started");
        let broken = Arc::new(Mutex::new(Vec::new()));
        let stop = Arc::new(AtomicBool::new(false));
        let listener = {
            let (engine, broken, stop) =
                (Arc::clone(&engine), Arc::clone(&broken), Arc::clone(&stop));
            thread::spawn(move || hear(&engine, &broken, &stop))
        };
        Self {
            engine,
            broken,
            stop,
            listener: Some(listener),
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.engine.address()
    }

    /// Nothing but the canary may be left, soon after the last client is gone.
    pub fn expect_calm(&self, seed: u64) {
        let deadline = Instant::now() + CALM_MAX;
        loop {
            let figures: serde_json::Value =
                serde_json::from_slice(&statistics::statistics(self.engine.shared()))
                    .expect("statistics are JSON");
            if figures["connections"] == canary::CONNECTIONS
                && figures["subscriptions"] == canary::SUBSCRIPTIONS
            {
                break;
            }
            assert!(
                Instant::now() < deadline,
                "left behind: {figures}; seed {seed:#x}"
            );
            thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(
            *self.broken.lock().unwrap(),
            Vec::<String>::new(),
            "a worker broke off; seed {seed:#x}"
        );
    }

    pub fn stop(mut self, seed: u64) {
        self.stop.store(true, Ordering::Relaxed);
        let listener = self.listener.take().expect("it is stopped once");
        listener.join().expect("the listener ends");
        self.engine.shutdown();
        assert_eq!(
            *self.broken.lock().unwrap(),
            Vec::<String>::new(),
            "a worker broke off; seed {seed:#x}"
        );
    }
}

/// A test that fails must not leave an engine that keeps the next one busy.
impl Drop for LiveEngine {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.engine.shutdown();
    }
}

/// Takes the engine's events: decides who is let in, and notes a worker that broke off.
fn hear(engine: &Engine, broken: &Mutex<Vec<String>>, stop: &AtomicBool) {
    let admission = br#"{"account":"$G","user":"friend"}"#;
    while !stop.load(Ordering::Relaxed) {
        for event in engine
            .shared()
            .events
            .next(1_024, Duration::from_millis(50))
        {
            match event {
                Event::Authenticate(request) => {
                    let text = String::from_utf8_lossy(&request.connect);
                    let connect: serde_json::Value =
                        serde_json::from_str(&text).expect("the engine decoded it");
                    let members = connect.as_object().expect("CONNECT is an object");
                    let user = members
                        .iter()
                        .find(|(key, _)| key.eq_ignore_ascii_case("user"));
                    let verdict = if user.is_some_and(|(_, user)| user == ADMITTED_USER) {
                        Verdict::from_json(admission).expect("the verdict is right")
                    } else {
                        Verdict::Refuse(RefusalCause::Unauthorized)
                    };
                    // False when the client is gone already.
                    engine.decide(request.connection_id, verdict);
                }
                Event::Stopped { failure } => broken.lock().unwrap().push(failure),
                _ => {}
            }
        }
    }
}
