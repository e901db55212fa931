//! Consumers that come and go: what is left of one that is gone.

#[path = "support/consumer_server.rs"]
#[allow(dead_code, reason = "each test uses its part of it")]
mod consumer_server;
#[path = "support/stream_server.rs"]
#[allow(dead_code, reason = "each test uses its part of it")]
mod stream_server;

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use consumer_server::ConsumerServer;
use jetlake_engine::storage::disk::simulated::SimulatedDisk;
use serde_json::json;

/// Threads that still have a consumer give it back within this time, on a busy machine.
const GONE_MAX: Duration = Duration::from_secs(20);

#[test]
fn a_consumer_that_is_deleted_before_it_begins_leaves_nothing_behind() {
    let server = ConsumerServer::start(&SimulatedDisk::default());
    server.streams.create("S", "s.>");
    let stream = server.streams.find("S");
    let config = json!({"ack_policy": "explicit", "deliver_subject": "to", "flow_control": true,
                        "idle_heartbeat": 1_000_000_000_i64});
    let definition =
        json!({"name": "C", "config": config, "created": "2026-01-02T03:04:05Z"}).to_string();
    // As in a stream that is restored: consumers are there before they begin.
    let consumer = stream.consumers().create(definition.as_bytes()).unwrap();
    assert!(stream.consumers().make_durable().is_empty());

    server.delete("S", "C");
    assert!(!stream.consumers().begin_ready(usize::MAX));

    let left = Arc::downgrade(&consumer);
    drop(consumer);
    let deadline = Instant::now() + GONE_MAX;
    while left.upgrade().is_some() {
        assert!(Instant::now() < deadline, "somebody still has it");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_consumer_that_begins_is_gone_when_it_is_deleted() {
    let server = ConsumerServer::start(&SimulatedDisk::default());
    server.streams.create("S", "s.>");
    let config = json!({"ack_policy": "explicit", "deliver_subject": "to"});
    server.create("S", "C", &config);
    let stream = server.streams.find("S");
    let left = Arc::downgrade(&stream.consumers().find("C").expect("it is there"));

    server.delete("S", "C");

    let deadline = Instant::now() + GONE_MAX;
    while left.upgrade().is_some() {
        assert!(Instant::now() < deadline, "somebody still has it");
        thread::sleep(Duration::from_millis(1));
    }
}
