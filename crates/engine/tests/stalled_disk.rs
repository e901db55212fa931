//! A disk that answers late holds up only what waits for it: neither acknowledgements of the same consumer nor other
//! connections.
//!
//! Reads or syncs stop at a gate, and while it is closed others must get their answers. Before each test ends the gate opens, and what was held up is
//! finished.

#[path = "support/consumer_server.rs"]
#[allow(dead_code, reason = "each test uses its part of it")]
mod consumer_server;
#[path = "support/gated_disk.rs"]
mod gated_disk;
#[path = "support/stream_server.rs"]
#[allow(dead_code, reason = "each test uses its part of it")]
mod stream_server;

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use consumer_server::{Client, ConsumerServer};
use gated_disk::{Call, GatedDisk};
use jetlake_engine::storage::message::{NewMessage, Purge};
use jetlake_engine::storage::store::{Store, StoreOptions};
use serde_json::json;

const TIMEOUT: Duration = Duration::from_secs(20);

/// More than one segment of them, so that what was stored first is not where new messages are written.
const FILLERS: usize = 66;

/// Messages of a stream, where the journal of its consumers is not.
const MESSAGES_OF_JOBS: &str = "JOBS/messages";
const MESSAGES_OF_DEAD: &str = "DEAD/messages";

/// Reads on until a line is what it should be, and returns it.
fn line_where(lines: &mut impl BufRead, is_wanted: impl Fn(&str) -> bool) -> String {
    let mut text = String::new();
    loop {
        text.clear();
        lines.read_line(&mut text).expect("it answers");
        if is_wanted(text.trim()) {
            return text;
        }
    }
}

/// Opens the gate when a test ends, however it ends.
struct OpensAtLast<'a>(&'a GatedDisk);

impl Drop for OpensAtLast<'_> {
    fn drop(&mut self) {
        self.0.open_gate();
    }
}

fn work_queue() -> serde_json::Value {
    json!({"name": "JOBS", "subjects": ["jobs.>"], "retention": "workqueue", "duplicate_window": 120_000_000_000_i64,
           "metadata": {"jetlake.dead_letters": "DEAD"}})
}

fn dead() -> serde_json::Value {
    json!({"name": "DEAD", "subjects": ["dead.>"], "duplicate_window": 120_000_000_000_i64})
}

fn explicit() -> serde_json::Value {
    json!({"ack_policy": "explicit", "ack_wait": 3_600_000_000_000_i64, "max_ack_pending": 1000, "deliver_policy": "all",
           "replay_policy": "instant", "max_deliver": -1, "max_waiting": 512})
}

/// Every thread that serves connections answers.
fn expect_pongs(server: &ConsumerServer) {
    for _ in 0..8 {
        let mut socket = TcpStream::connect(server.streams.engine().address()).unwrap();
        socket.set_read_timeout(Some(TIMEOUT)).unwrap();
        socket
            .write_all(b"CONNECT {\"verbose\":false}\r\nPING\r\n")
            .unwrap();
        let mut lines = BufReader::new(socket).lines();
        assert!(lines.any(|line| line.expect("it answers") == "PONG"));
    }
}

/// Stores `count` small messages, and enough large ones after them that the small ones lie in a segment of their own.
fn fill(client: &mut Client, count: usize) {
    for number in 0..count {
        client.publish("jobs.a", &number.to_string());
    }
    let filler = "x".repeat(1_048_576);
    for _ in 0..FILLERS {
        client.publish("jobs.filler", &filler);
    }
}

#[test]
fn an_acknowledgement_does_not_wait_for_a_message_that_is_read_for_its_consumer() {
    let disk = GatedDisk::default();
    let server = ConsumerServer::start_on(Arc::new(disk.clone()));
    let _opens = OpensAtLast(&disk);
    server.streams.create_as(&work_queue());
    server.create("JOBS", "worker", &explicit());
    let mut client = server.connect();
    fill(&mut client, 3);
    let first = client.pull("JOBS", "worker", 1, TIMEOUT).remove(0);

    disk.close(Call::Read, MESSAGES_OF_JOBS);
    let mut other = server.connect();
    other.ask_for("JOBS", "worker", 1, TIMEOUT);
    disk.wait_for_arrival();

    client.acknowledge(&first, "+ACK");
    expect_pongs(&server);
    disk.open_gate();
    assert_eq!(other.receive_deliveries(1)[0].payload, "1");
}

#[test]
fn nobody_waits_while_the_ids_of_stored_messages_are_read() {
    let disk = GatedDisk::default();
    let publish = b"HPUB jobs.a inbox 35 35\r\nNATS/1.0\r\nNats-Msg-Id: number-1\r\n\r\n\r\n";
    let connect = |server: &ConsumerServer| {
        let mut socket = TcpStream::connect(server.streams.engine().address()).unwrap();
        socket.set_read_timeout(Some(TIMEOUT)).unwrap();
        socket
            .write_all(b"CONNECT {\"verbose\":false,\"headers\":true}\r\nSUB inbox 1\r\n")
            .unwrap();
        socket.write_all(publish).unwrap();
        BufReader::new(socket)
    };
    {
        let server = ConsumerServer::start_on(Arc::new(disk.clone()));
        server.streams.create_as(&work_queue());
        let text = line_where(&mut connect(&server), |line| line.starts_with('{'));
        assert!(text.contains("\"seq\":1"), "{text}");
    }
    let server = ConsumerServer::start_on(Arc::new(disk.clone()));
    let _opens = OpensAtLast(&disk);
    disk.close(Call::Read, MESSAGES_OF_JOBS);
    let mut lines = connect(&server);
    disk.wait_for_arrival();
    // A message that comes after it is stored after it.
    let behind = b"PUB jobs.b 1\r\nx\r\nPING\r\n";
    lines.get_mut().write_all(behind).unwrap();

    line_where(&mut lines, |line| {
        assert!(!line.starts_with("MSG"), "answered before ids are known");
        line == "PONG"
    });
    expect_pongs(&server);
    disk.open_gate();
    let text = line_where(&mut lines, |line| line.starts_with('{'));
    assert!(text.contains("\"duplicate\""), "{text}");
    let stream = server.streams.find("JOBS");
    let deadline = Instant::now() + TIMEOUT;
    while stream.store().messages().counts().last_sequence < 2 {
        assert!(Instant::now() < deadline, "what was held back is lost");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn nobody_waits_for_the_totals_that_a_batch_counts_on_from() {
    let disk = GatedDisk::default();
    let counters = json!({"name": "JOBS", "subjects": ["jobs.>"], "allow_msg_counter": true, "allow_atomic": true});
    let count = |batch: &str| {
        let block = format!("NATS/1.0\r\nNats-Incr: 5\r\n{batch}\r\n");
        format!("HPUB jobs.a inbox {0} {0}\r\n{block}\r\n", block.len())
    };
    let connect = |server: &ConsumerServer| {
        let mut socket = TcpStream::connect(server.streams.engine().address()).unwrap();
        socket.set_read_timeout(Some(TIMEOUT)).unwrap();
        socket
            .write_all(b"CONNECT {\"verbose\":false,\"headers\":true}\r\nSUB inbox 1\r\n")
            .unwrap();
        BufReader::new(socket)
    };
    {
        let server = ConsumerServer::start_on(Arc::new(disk.clone()));
        server.streams.create_as(&counters);
        let mut lines = connect(&server);
        lines.get_mut().write_all(count("").as_bytes()).unwrap();
        let text = line_where(&mut lines, |line| line.starts_with('{'));
        assert!(text.contains("\"val\":\"5\""), "{text}");
    }
    let server = ConsumerServer::start_on(Arc::new(disk.clone()));
    let _opens = OpensAtLast(&disk);
    let mut lines = connect(&server);
    let first = count("Nats-Batch-Id: b\r\nNats-Batch-Sequence: 1\r\n");
    lines.get_mut().write_all(first.as_bytes()).unwrap();
    line_where(&mut lines, |line| line.starts_with("MSG inbox"));

    disk.close(Call::Read, MESSAGES_OF_JOBS);
    let block =
        "NATS/1.0\r\nNats-Batch-Id: b\r\nNats-Batch-Sequence: 2\r\nNats-Batch-Commit: eob\r\n\r\n";
    let end = format!("HPUB jobs.a inbox {0} {0}\r\n{block}\r\n", block.len());
    lines.get_mut().write_all(end.as_bytes()).unwrap();
    disk.wait_for_arrival();
    lines.get_mut().write_all(b"PUB jobs.b 0\r\n\r\n").unwrap();
    expect_pongs(&server);

    disk.open_gate();
    let text = line_where(&mut lines, |line| line.starts_with('{'));
    assert!(text.contains("\"seq\":2"), "{text}");
    let stored = server.streams.payload("JOBS", 2).expect("it is stored");
    assert_eq!(stored, b"{\"val\":\"10\"}");
}

#[test]
fn nobody_waits_for_the_sync_of_a_dead_letter() {
    let disk = GatedDisk::default();
    let server = ConsumerServer::start_on(Arc::new(disk.clone()));
    let _opens = OpensAtLast(&disk);
    server.streams.create_as(&dead());
    server.streams.create_as(&work_queue());
    server.create("JOBS", "worker", &explicit());
    let mut client = server.connect();
    for number in 0..3 {
        client.publish("jobs.a", &number.to_string());
    }
    let pulled = client.pull("JOBS", "worker", 3, TIMEOUT);

    disk.close(Call::Sync, MESSAGES_OF_DEAD);
    let terminated = client.ask_confirmation(&pulled[0], "+TERM");
    disk.wait_for_arrival();
    let other = client.ask_confirmation(&pulled[1], "+TERM");
    client.acknowledge(&pulled[2], "+ACK");
    expect_pongs(&server);
    assert!(!client.is_confirmed(terminated, Duration::from_millis(50)));
    assert!(server.needs("JOBS", "worker", "jobs.a", 1));

    disk.open_gate();
    assert!(client.is_confirmed(terminated, TIMEOUT));
    assert!(client.is_confirmed(other, TIMEOUT));
}

/// Messages of a work queue are acknowledged while their removal cannot be written.
fn only_who_acknowledges_waits_for_the_removal(consumer: &serde_json::Value) {
    let disk = GatedDisk::default();
    let server = ConsumerServer::start_on(Arc::new(disk.clone()));
    let _opens = OpensAtLast(&disk);
    server.streams.create_as(&work_queue());
    server.create("JOBS", "worker", consumer);
    let mut client = server.connect();
    for number in 0..3 {
        client.publish("jobs.a", &number.to_string());
    }
    let pulled = client.pull("JOBS", "worker", 2, TIMEOUT);

    disk.close(Call::Sync, MESSAGES_OF_JOBS);
    let first = client.ask_confirmation(&pulled[0], "+ACK");
    disk.wait_for_arrival();
    let second = client.ask_confirmation(&pulled[1], "+ACK");
    client.ask_for("JOBS", "worker", 1, TIMEOUT);
    assert_eq!(client.receive_deliveries(1)[0].payload, "2");
    expect_pongs(&server);
    assert!(!client.is_confirmed(first, Duration::from_millis(50)));

    disk.open_gate();
    for (token, left) in [(first, 2), (second, 1)] {
        assert!(client.is_confirmed(token, TIMEOUT));
        let stream = server.streams.find("JOBS");
        assert!(stream.store().messages().counts().messages <= left);
    }
}

#[test]
fn only_who_acknowledges_waits_until_the_message_is_removed() {
    only_who_acknowledges_waits_for_the_removal(&explicit());
}

#[test]
fn only_who_acknowledges_waits_until_the_message_of_a_consumer_in_memory_is_removed() {
    let mut consumer = explicit();
    consumer["mem_storage"] = json!(true);
    only_who_acknowledges_waits_for_the_removal(&consumer);
}

#[test]
fn others_look_into_a_store_while_many_messages_are_removed() {
    const MESSAGES: u64 = 100_000;
    let disk = GatedDisk::default();
    let folder = std::path::Path::new("/s");
    let store = Store::open(Arc::new(disk), folder, StoreOptions::default()).unwrap();
    let store = Arc::new(store);
    for number in 0..MESSAGES {
        let message = NewMessage {
            subject: b"a",
            time_ns: number as i64,
            ..NewMessage::default()
        };
        store.append(&message).unwrap();
    }
    store.commit().unwrap();
    let watcher = {
        let store = Arc::clone(&store);
        std::thread::spawn(move || {
            let mut seen = Vec::new();
            while seen.last() != Some(&0) {
                let counts = store.messages().counts();
                // What is seen in between is whole.
                let next = counts.last_sequence + 1;
                assert_eq!(counts.messages, next - counts.first_sequence);
                seen.push(counts.messages);
            }
            seen
        })
    };
    store.purge(&Purge::default()).unwrap();
    store.commit().unwrap();

    let seen = watcher.join().unwrap();
    let between = |count: &&u64| **count > 0 && **count < MESSAGES;
    assert!(
        seen.iter().any(|count| between(&count)),
        "the index was locked until the end"
    );
}
