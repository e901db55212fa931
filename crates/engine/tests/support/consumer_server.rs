//! A server with consumers on any disk, in this process, and a client that pulls and acknowledges over a socket.
//!
//! Invariant: what `acknowledge` has returned true for was confirmed by the server.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jetlake_engine::storage::disk::file_system::FileSystem;
use jetlake_engine::storage::disk::simulated::SimulatedDisk;
use serde_json::{json, Value};

use crate::stream_server::StreamServer;

const ACCOUNT: &str = "$G";

/// How long a client waits for a confirmation; ample, on a busy machine.
const CONFIRMED_MAX: Duration = Duration::from_secs(20);

/// How long a client waits for the end of a pull that the server ends by itself.
const ENDED_MAX: Duration = Duration::from_secs(20);

/// Subscriptions of a client: deliveries, confirmations, answers to publishes.
const DELIVERIES: &str = "1";
const CONFIRMATIONS: &str = "2";
const ANSWERS: &str = "3";

pub struct ConsumerServer {
    pub streams: StreamServer,
}

impl ConsumerServer {
    /// Starts a server, and opens every stream and every consumer that is on the disk.
    pub fn start(disk: &SimulatedDisk) -> Self {
        Self::start_on(Arc::new(disk.clone()))
    }

    /// The same on any other disk.
    pub fn start_on(disk: Arc<dyn FileSystem>) -> Self {
        let streams = StreamServer::start_on(disk);
        let engine = streams.engine();
        let registry = engine.streams().expect("they are served");
        let (stored, _) = registry.stored().expect("the disk can be read");
        for stream in stored {
            let definitions = registry
                .stored_consumers(ACCOUNT, &stream.name)
                .expect("the journal can be read");
            for definition in definitions {
                registry
                    .open_consumer(ACCOUNT, &stream.name, &definition)
                    .expect("the consumer can be opened");
            }
            registry
                .consumers_opened(ACCOUNT, &stream.name)
                .expect("the stream is there");
        }
        engine
            .subscribe_api(ACCOUNT, b"$JS.API.>")
            .expect("it can be asked");
        Self { streams }
    }

    pub fn create(&self, stream: &str, name: &str, config: &Value) {
        let outcome = self.try_create(stream, name, config);
        outcome.unwrap_or_else(|text| panic!("{name}: {text}"));
    }

    pub fn try_create(&self, stream: &str, name: &str, config: &Value) -> Result<(), String> {
        let registry = self.streams.engine().streams().expect("they are served");
        let refused = registry
            .create_consumer(ACCOUNT, stream, &definition(name, config))
            .and_then(|_| registry.commit_consumers(ACCOUNT, stream))
            .map_err(|error| error.to_string())?;
        refused.into_iter().try_for_each(|(_, reason)| Err(reason))
    }

    pub fn update(&self, stream: &str, name: &str, config: &Value) {
        let registry = self.streams.engine().streams().expect("they are served");
        registry
            .update_consumer(ACCOUNT, stream, &definition(name, config))
            .expect("it can be changed");
    }

    pub fn delete(&self, stream: &str, name: &str) {
        let outcome = self.try_delete(stream, name);
        outcome.unwrap_or_else(|text| panic!("{name}: {text}"));
    }

    pub fn try_delete(&self, stream: &str, name: &str) -> Result<(), String> {
        let registry = self.streams.engine().streams().expect("they are served");
        registry
            .delete_consumer(ACCOUNT, stream, name)
            .map_err(|error| error.to_string())
    }

    /// The names of a stream's consumers, in order.
    pub fn names(&self, stream: &str) -> Vec<String> {
        let stream = self.streams.find(stream);
        let all = stream.consumers().all();
        let mut names: Vec<String> = all.iter().map(|consumer| consumer.name.clone()).collect();
        names.sort();
        names
    }

    /// The state of a consumer, as the API reports it.
    pub fn state(&self, stream: &str, name: &str) -> Value {
        let registry = self.streams.engine().streams().expect("they are served");
        let state = registry
            .consumer_state(ACCOUNT, stream, name)
            .expect("it is there");
        serde_json::from_slice(&state).expect("it is JSON")
    }

    /// Whether a consumer has not settled a message.
    pub fn needs(&self, stream: &str, name: &str, subject: &str, sequence: u64) -> bool {
        let stream = self.streams.find(stream);
        let consumer = stream.consumers().find(name).expect("it is there");
        consumer.needs(subject.as_bytes(), sequence)
    }

    pub fn connect(&self) -> Client {
        Client::connect(self.streams.engine().address())
    }
}

fn definition(name: &str, config: &Value) -> Vec<u8> {
    let mut config = config.clone();
    config["durable_name"] = json!(name);
    config["name"] = json!(name);
    let definition = json!({"name": name, "config": config, "created": "2026-01-02T03:04:05Z"});
    definition.to_string().into_bytes()
}

/// A message as a consumer gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    pub ack_subject: String,
    pub payload: String,
    /// How often it was delivered, with this time.
    pub count: u64,
    pub sequence: u64,
}

impl Delivery {
    fn read(ack_subject: &str, payload: &[u8]) -> Self {
        let tokens: Vec<&str> = ack_subject.split('.').collect();
        let number = |back: usize| tokens[tokens.len() - back].parse().expect("a number");
        Self {
            ack_subject: ack_subject.to_owned(),
            payload: String::from_utf8_lossy(payload).into_owned(),
            count: number(5),
            sequence: number(4),
        }
    }
}

#[derive(Default)]
struct Received {
    deliveries: VecDeque<Delivery>,
    /// Tokens of acknowledgements.
    confirmed: VecDeque<u64>,
    answers: VecDeque<Value>,
    /// A pull has ended with a status.
    ended: bool,
}

pub struct Client {
    socket: TcpStream,
    inbox: String,
    read: Vec<u8>,
    received: Received,
    next_token: u64,
}

impl Client {
    fn connect(address: std::net::SocketAddr) -> Self {
        let socket = TcpStream::connect(address).expect("it listens");
        socket.set_nodelay(true).expect("a socket can do that");
        let inbox = format!("inbox.{}", socket.local_addr().expect("it has one").port());
        let mut client = Self {
            socket,
            inbox,
            read: Vec::new(),
            received: Received::default(),
            next_token: 1,
        };
        let inbox = &client.inbox;
        let lines = format!(
            "CONNECT {{\"verbose\":false,\"headers\":true}}\r\nSUB {inbox}.d {DELIVERIES}\r\n\
             SUB {inbox}.c.* {CONFIRMATIONS}\r\nSUB {inbox}.p.* {ANSWERS}\r\n"
        );
        client.send(lines.as_bytes());
        client
    }

    fn send(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).expect("it listens");
    }

    /// Stores a message and returns its sequence.
    pub fn publish(&mut self, subject: &str, payload: &str) -> u64 {
        let outcome = self.try_publish(subject, payload);
        outcome.unwrap_or_else(|text| panic!("refused: {text}"))
    }

    pub fn try_publish(&mut self, subject: &str, payload: &str) -> Result<u64, String> {
        let (inbox, size) = (&self.inbox, payload.len());
        let frame = format!("PUB {subject} {inbox}.p.0 {size}\r\n{payload}\r\n");
        self.send(frame.as_bytes());
        let deadline = Instant::now() + CONFIRMED_MAX;
        while self.received.answers.is_empty() {
            assert!(Instant::now() < deadline, "a publish is not answered");
            self.receive(deadline);
        }
        let answer = self.received.answers.pop_front().expect("it is there");
        match answer["error"].as_object() {
            Some(_) => Err(answer["error"].to_string()),
            None => Ok(answer["seq"].as_u64().expect("it has a sequence")),
        }
    }

    /// Asks for `batch` messages, and returns those that come until the server ends the request.
    pub fn pull(
        &mut self,
        stream: &str,
        name: &str,
        batch: usize,
        timeout: Duration,
    ) -> Vec<Delivery> {
        self.ask_for(stream, name, batch, timeout);
        self.receive_deliveries(batch)
    }

    /// Asks for `batch` messages.
    pub fn ask_for(&mut self, stream: &str, name: &str, batch: usize, timeout: Duration) {
        let body = json!({"batch": batch, "expires": timeout.as_nanos() as u64}).to_string();
        let (inbox, size) = (&self.inbox, body.len());
        let subject = format!("$JS.API.CONSUMER.MSG.NEXT.{stream}.{name}");
        let frame = format!("PUB {subject} {inbox}.d {size}\r\n{body}\r\n");
        self.received.ended = false;
        self.send(frame.as_bytes());
    }

    /// Returns the messages that come until there are `batch`, or the server ends the request.
    pub fn receive_deliveries(&mut self, batch: usize) -> Vec<Delivery> {
        let deadline = Instant::now() + ENDED_MAX;
        while self.received.deliveries.len() < batch && !self.received.ended {
            assert!(Instant::now() < deadline, "a pull does not end");
            self.receive(deadline);
        }
        self.received.deliveries.drain(..).collect()
    }

    /// Sends an acknowledgement that nobody answers.
    pub fn tell(&mut self, delivery: &Delivery, body: &str) {
        let (subject, size) = (&delivery.ack_subject, body.len());
        let frame = format!("PUB {subject} {size}\r\n{body}\r\n");
        self.send(frame.as_bytes());
    }

    /// The same for many, at once.
    pub fn tell_all(&mut self, deliveries: &[Delivery], body: &str) {
        let frame = |delivery: &Delivery| {
            format!("PUB {} {}\r\n{body}\r\n", delivery.ack_subject, body.len())
        };
        let frames: String = deliveries.iter().map(frame).collect();
        self.send(frames.as_bytes());
    }

    /// Sends an acknowledgement and waits until it is confirmed.
    pub fn acknowledge(&mut self, delivery: &Delivery, body: &str) {
        let is_confirmed = self.try_acknowledge(delivery, body, CONFIRMED_MAX);
        assert!(is_confirmed, "an acknowledgement is not confirmed");
    }

    /// Sends an acknowledgement and waits so long until it is confirmed; false if it is not.
    pub fn try_acknowledge(&mut self, delivery: &Delivery, body: &str, timeout: Duration) -> bool {
        let token = self.ask_confirmation(delivery, body);
        self.is_confirmed(token, timeout)
    }

    /// Sends an acknowledgement and returns the token of its confirmation.
    pub fn ask_confirmation(&mut self, delivery: &Delivery, body: &str) -> u64 {
        let token = self.next_token;
        self.next_token += 1;
        let (subject, inbox, size) = (&delivery.ack_subject, &self.inbox, body.len());
        let frame = format!("PUB {subject} {inbox}.c.{token} {size}\r\n{body}\r\n");
        self.send(frame.as_bytes());
        token
    }

    /// Waits so long for a confirmation.
    pub fn is_confirmed(&mut self, token: u64, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        loop {
            let confirmed = &mut self.received.confirmed;
            if let Some(at) = confirmed.iter().position(|other| *other == token) {
                confirmed.remove(at);
                return true;
            }
            if Instant::now() >= deadline {
                return false;
            }
            self.receive(deadline);
        }
    }

    /// Reads what comes until then, at least once.
    fn receive(&mut self, deadline: Instant) {
        let left = deadline.saturating_duration_since(Instant::now());
        self.socket
            .set_read_timeout(Some(left.max(Duration::from_millis(1))))
            .expect("a socket has a time-out");
        let mut chunk = [0; 64 * 1024];
        match self.socket.read(&mut chunk) {
            Ok(0) => panic!("the server closed the connection"),
            Ok(count) => self.read.extend_from_slice(&chunk[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return
            }
            Err(error) => panic!("{error}"),
        }
        let mut taken = 0;
        while let Some(length) = self.received.take(&self.read[taken..]) {
            taken += length;
        }
        self.read.drain(..taken);
    }
}

impl Received {
    /// Takes the first whole frame, and returns how long it is.
    fn take(&mut self, bytes: &[u8]) -> Option<usize> {
        let line_end = bytes.windows(2).position(|two| two == b"\r\n")?;
        let line = std::str::from_utf8(&bytes[..line_end]).expect("lines are text");
        let words: Vec<&str> = line.split(' ').collect();
        let has_header = words[0] == "HMSG";
        if !has_header && words[0] != "MSG" {
            assert!(!line.starts_with("-ERR"), "{line}");
            return Some(line_end + 2);
        }
        let number = |word: &str| word.parse::<usize>().expect("a size");
        let sizes = if has_header { 2 } else { 1 };
        let total = number(words[words.len() - 1]);
        let header = if has_header {
            number(words[words.len() - 2])
        } else {
            0
        };
        let body = bytes.get(line_end + 2..line_end + 2 + total)?;
        bytes.get(line_end + 2 + total + 1)?;
        let reply = (words.len() - sizes > 3).then(|| words[3]);
        match (words[2], reply) {
            (DELIVERIES, Some(reply)) => {
                let delivery = Delivery::read(reply, &body[header..]);
                self.deliveries.push_back(delivery);
            }
            (DELIVERIES, None) => self.ended = true,
            (CONFIRMATIONS, _) => {
                let token = words[1]
                    .rsplit('.')
                    .next()
                    .and_then(|word| word.parse().ok());
                self.confirmed.push_back(token.expect("a number"));
            }
            _ => {
                let answer = serde_json::from_slice(&body[header..]).expect("answers are JSON");
                self.answers.push_back(answer);
            }
        }
        Some(line_end + 2 + total + 2)
    }
}
