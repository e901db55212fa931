//! A server with streams on any disk, in this process, and a client that publishes to it over a socket.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use jetlake_engine::common::events::Event;
use jetlake_engine::config::options::Options;
use jetlake_engine::engine::Engine;
use jetlake_engine::routing::clients::mailbox::Verdict;
use jetlake_engine::storage::disk::file_system::FileSystem;
use jetlake_engine::storage::disk::simulated::SimulatedDisk;
use jetlake_engine::storage::message::Purge;
use jetlake_engine::stream::stream::Stream;

const ACCOUNT: &str = "$G";

pub struct StreamServer {
    engine: Arc<Engine>,
    stop: Arc<AtomicBool>,
    listener: Option<thread::JoinHandle<()>>,
    /// Each client has an inbox of its own.
    clients: AtomicU64,
}

impl StreamServer {
    /// Starts a server, and opens every stream that is on the disk.
    pub fn start(disk: &SimulatedDisk) -> Self {
        Self::start_on(Arc::new(disk.clone()))
    }

    /// The same on any other disk.
    pub fn start_on(disk: Arc<dyn FileSystem>) -> Self {
        let options = serde_json::json!({
            "host": "127.0.0.1", "port": 0, "server_name": "streams", "version": "2.15.1", "git_commit": "",
            "client_advertise": null, "max_connections": 1_000, "max_subscriptions": 0,
            "max_subscription_tokens": 0, "max_control_line_bytes": 4_096,
            "max_payload_bytes": 1_048_576, "max_pending_bytes": 67_108_864, "write_deadline_ms": 10_000,
            "ping_interval_ms": 100_000, "ping_max": 2, "auth_required": false, "auth_timeout_ms": 10_000,
            "handshake_timeout_ms": 10_000, "headers": true, "fast_producer_stall": true, "worker_threads": 2,
            "jetstream": true, "domain": null, "debug": false, "trace": false,
        });
        let options = Options::from_json(options.to_string().as_bytes()).expect("they are right");
        let engine = Arc::new(Engine::new(options).expect("a port is free"));
        let streams = engine
            .serve_streams_on(disk, Path::new("/jetstream"), b"{}")
            .expect("the disk can be read");
        let (stored, findings) = streams.stored().expect("the disk can be read");
        let unfinished = |line: &String| line.contains("its creation had not finished");
        assert!(findings.iter().all(unfinished), "{findings:?}");
        for stream in stored {
            streams
                .open(&stream.account, &stream.name, &stream.definition)
                .expect("the stream can be opened");
        }
        for stream in streams.stored().expect("the disk can be read").0 {
            let (account, name) = (&stream.account, &stream.name);
            let consumers = streams.stored_consumers(account, name);
            if consumers.expect("the journal can be read").is_empty() {
                let opened = streams.consumers_opened(account, name);
                opened.expect("the stream is there");
            }
        }
        engine.start().expect("threads can be started");
        let stop = Arc::new(AtomicBool::new(false));
        let listener = {
            let (engine, stop) = (Arc::clone(&engine), Arc::clone(&stop));
            thread::spawn(move || admit_all(&engine, &stop))
        };
        Self {
            engine,
            stop,
            listener: Some(listener),
            clients: AtomicU64::new(0),
        }
    }

    pub fn create(&self, name: &str, subject: &str) {
        self.create_as(&serde_json::json!(
            {"name": name, "subjects": [subject], "duplicate_window": 120_000_000_000_i64}
        ));
    }

    pub fn create_as(&self, config: &serde_json::Value) {
        let definition = serde_json::json!({"config": config});
        let streams = self.engine.streams().expect("they are served");
        streams
            .create(ACCOUNT, definition.to_string().as_bytes())
            .expect("the disk takes it");
    }

    pub fn purge(&self, stream: &str) -> u64 {
        let streams = self.engine.streams().expect("they are served");
        let purge = Purge::default();
        streams
            .purge(ACCOUNT, stream, &purge)
            .expect("room is made")
    }

    pub fn names(&self) -> Vec<String> {
        let streams = self.engine.streams().expect("they are served");
        let (stored, _) = streams.stored().expect("the disk can be read");
        let mut names: Vec<String> = stored.into_iter().map(|stream| stream.name).collect();
        // In the order of their creation.
        names.sort_by_key(|name| name[1..].parse::<u64>().map_or(0, |number| number + 1));
        names
    }

    pub fn find(&self, stream: &str) -> Arc<Stream> {
        let streams = self.engine.streams().expect("they are served");
        streams.find(ACCOUNT, stream).expect("the stream is there")
    }

    pub fn payload(&self, stream: &str, sequence: u64) -> Option<Vec<u8>> {
        let streams = self.engine.streams().expect("they are served");
        let stream = streams.find(ACCOUNT, stream)?;
        let message = stream
            .store()
            .messages()
            .read(sequence)
            .expect("it can be read")?;
        Some(message.payload().to_vec())
    }

    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    pub fn connect(&self) -> Wire {
        let number = self.clients.fetch_add(1, Ordering::Relaxed);
        Wire::connect(self.engine.address(), number)
    }
}

impl Drop for StreamServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.engine.shutdown();
        if let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
    }
}

fn admit_all(engine: &Engine, stop: &AtomicBool) {
    while !stop.load(Ordering::Acquire) {
        for event in engine.shared().events.next(100, Duration::from_millis(20)) {
            if let Event::Authenticate(request) = event {
                let verdict = Verdict::from_json(br#"{"account":"$G"}"#).expect("it is right");
                engine.decide(request.connection_id, verdict);
            }
        }
    }
}

/// A client.
pub struct Wire {
    socket: TcpStream,
    out: Vec<u8>,
    read: Vec<u8>,
    number: u64,
}

impl Wire {
    fn connect(address: SocketAddr, number: u64) -> Self {
        let socket = TcpStream::connect(address).expect("it listens");
        socket
            .set_read_timeout(Some(Duration::from_secs(20)))
            .expect("a socket has a time-out");
        let mut wire = Self {
            socket,
            out: format!(
                "CONNECT {{\"verbose\":false,\"headers\":true}}\r\nSUB inbox.{number}.* 1\r\n"
            )
            .into_bytes(),
            read: Vec::new(),
            number,
        };
        wire.flush();
        wire
    }

    pub fn publish(&mut self, subject: &str, payload: &str, token: u64) {
        let reply = format!("inbox.{}.{token}", self.number);
        let line = format!("PUB {subject} {reply} {}\r\n{payload}\r\n", payload.len());
        self.out.extend_from_slice(line.as_bytes());
    }

    /// Sends any bytes as a message; answers are not received.
    pub fn publish_bytes(&mut self, subject: &str, payload: &[u8]) {
        let line = format!("PUB {subject} nobody {}\r\n", payload.len());
        self.out.extend_from_slice(line.as_bytes());
        self.out.extend_from_slice(payload);
        self.out.extend_from_slice(b"\r\n");
        self.flush();
    }

    pub fn flush(&mut self) {
        self.socket.write_all(&self.out).expect("it listens");
        self.out.clear();
    }

    /// Waits for answers, and returns the token and the sequence of each; a refusal is a failure.
    pub fn answers(&mut self) -> Vec<(u64, u64)> {
        let accept = |(token, answer): (u64, Result<u64, String>)| {
            (
                token,
                answer.unwrap_or_else(|text| panic!("refused: {text}")),
            )
        };
        self.outcomes().into_iter().map(accept).collect()
    }

    /// Waits for answers, and returns the token and the sequence, or the refusal, of each.
    pub fn outcomes(&mut self) -> Vec<(u64, Result<u64, String>)> {
        self.receive();
        let mut answers = Vec::new();
        while let Some((answer, length)) = first_frame(&self.read) {
            answers.extend(answer.map(|(token, value)| (token, outcome(&value))));
            self.read.drain(..length);
        }
        answers
    }

    /// Sends a message with a header block, which may be empty.
    pub fn send_only(&mut self, subject: &str, header: &str, body: &str) {
        let (reply, total) = (
            format!("inbox.{}.0", self.number),
            header.len() + body.len(),
        );
        let line = match header {
            "" => format!("PUB {subject} {reply} {total}\r\n{body}\r\n"),
            _ => format!(
                "HPUB {subject} {reply} {} {total}\r\n{header}{body}\r\n",
                header.len()
            ),
        };
        self.out.extend_from_slice(line.as_bytes());
        self.flush();
    }

    /// The same, and returns the answer to it.
    pub fn ask(&mut self, subject: &str, header: &str, body: &str) -> serde_json::Value {
        self.send_only(subject, header, body);
        loop {
            if let Some((answer, length)) = first_frame(&self.read) {
                self.read.drain(..length);
                match answer {
                    Some((_, value)) => return value,
                    None => continue,
                }
            }
            self.receive();
        }
    }

    fn receive(&mut self) {
        let mut chunk = [0; 64 * 1024];
        let count = self.socket.read(&mut chunk).expect("it answers");
        assert!(count > 0, "the server closed the connection");
        self.read.extend_from_slice(&chunk[..count]);
    }

    /// Publishes one message and returns its sequence; a refusal is a failure.
    pub fn publish_one(&mut self, subject: &str, payload: &str) -> u64 {
        let outcome = self.try_publish(subject, payload);
        outcome.unwrap_or_else(|text| panic!("refused: {text}"))
    }

    /// Publishes one message and returns its sequence, or why it was refused.
    pub fn try_publish(&mut self, subject: &str, payload: &str) -> Result<u64, String> {
        self.publish(subject, payload, 0);
        self.flush();
        loop {
            if let Some((_, outcome)) = self.outcomes().pop() {
                return outcome;
            }
        }
    }
}

/// The sequence, or the refusal.
fn outcome(value: &serde_json::Value) -> Result<u64, String> {
    match value["error"].as_object() {
        Some(_) => Err(value["error"].to_string()),
        None => Ok(value["seq"].as_u64().expect("it has a sequence")),
    }
}

/// The first whole frame: its token and answer, if it is one, and how long it is.
fn first_frame(bytes: &[u8]) -> Option<(Option<(u64, serde_json::Value)>, usize)> {
    let line_end = bytes.windows(2).position(|two| two == b"\r\n")?;
    let line = std::str::from_utf8(&bytes[..line_end]).expect("lines are text");
    let Some(rest) = line.strip_prefix("MSG inbox.") else {
        assert!(!line.starts_with("-ERR"), "{line}");
        return Some((None, line_end + 2));
    };
    let mut words = rest.split(' ');
    let reply = words.next().unwrap_or_default();
    let token = reply
        .split('.')
        .next_back()
        .and_then(|word| word.parse().ok());
    let size: usize = words.next_back().and_then(|word| word.parse().ok())?;
    let body = bytes.get(line_end + 2..line_end + 2 + size)?;
    bytes.get(line_end + 2 + size + 1)?;
    let value = serde_json::from_slice(body).expect("answers are JSON");
    Some((
        Some((token.expect("it is a number"), value)),
        line_end + 2 + size + 2,
    ))
}
