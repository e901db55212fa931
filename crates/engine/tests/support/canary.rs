//! Clients that behave, next to all those that do not: they publish and receive throughout and must never miss a message.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The input that is invented cannot hit this subject.
const SUBJECT: &str = "canary.7f3a9c51e08b.sings";

/// A delivery later than this counts as missed.
const DELIVERY_MAX: Duration = Duration::from_secs(20);

const PAUSE: Duration = Duration::from_micros(500);

/// Connections that a canary holds open.
pub const CONNECTIONS: usize = 2;

/// Subscriptions that a canary holds.
pub const SUBSCRIPTIONS: usize = 2;

pub struct Canary {
    stop: Arc<AtomicBool>,
    sung: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Canary {
    /// Connects and starts to sing.
    pub fn start(address: SocketAddr) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let sung = Arc::new(AtomicU64::new(0));
        let mut publisher = connect(address);
        let mut subscriber = connect(address);
        write!(
            subscriber.get_mut(),
            "SUB {SUBJECT} plain\r\nSUB canary.7f3a9c51e08b.* group queued\r\nPING\r\n"
        )
        .expect("the canary subscribes");
        assert_eq!(next_line(&mut subscriber), "PONG");
        let thread = {
            let (stop, sung) = (Arc::clone(&stop), Arc::clone(&sung));
            thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let number = sung.load(Ordering::Relaxed);
                    sing(&mut publisher, &mut subscriber, number);
                    sung.store(number + 1, Ordering::Relaxed);
                    thread::sleep(PAUSE);
                }
            })
        };
        Self {
            stop,
            sung,
            thread: Some(thread),
        }
    }

    /// Whether it still sings: false after a message was missed.
    pub fn lives(&self) -> bool {
        self.thread
            .as_ref()
            .is_some_and(|thread| !thread.is_finished())
    }

    /// Ends it and says how many messages went through. Panics when one did not.
    pub fn stop(mut self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().expect("it is stopped once");
        thread.join().expect("the canary missed a message");
        self.sung.load(Ordering::Relaxed)
    }
}

/// A test that fails must not leave a canary that keeps the next one busy.
impl Drop for Canary {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// One message must come back through both subscriptions, and nothing else.
fn sing(publisher: &mut BufReader<TcpStream>, subscriber: &mut BufReader<TcpStream>, number: u64) {
    let body = number.to_string();
    write!(
        publisher.get_mut(),
        "PUB {SUBJECT} {}\r\n{body}\r\n",
        body.len()
    )
    .expect("the canary publishes");
    let mut heard = [
        read_message(subscriber, &body),
        read_message(subscriber, &body),
    ];
    heard.sort_unstable();
    assert_eq!(
        heard,
        ["plain", "queued"],
        "message {number} reached the wrong subscriptions"
    );
    publisher
        .get_mut()
        .set_nonblocking(true)
        .expect("a socket can stop waiting");
    answer_pings(publisher);
    publisher
        .get_mut()
        .set_nonblocking(false)
        .expect("a socket can wait");
}

/// Reads one message with this body and says which subscription it was for.
fn read_message(subscriber: &mut BufReader<TcpStream>, body: &str) -> String {
    let line = next_line(subscriber);
    let begin = format!("MSG {SUBJECT} ");
    let rest = line
        .strip_prefix(&begin)
        .unwrap_or_else(|| panic!("the canary heard {line:?}"));
    let sid = rest
        .strip_suffix(&format!(" {}", body.len()))
        .unwrap_or_else(|| panic!("the canary heard {line:?}"));
    let mut received = vec![0; body.len() + 2];
    subscriber
        .read_exact(&mut received)
        .expect("the canary reads a body");
    assert_eq!(
        received,
        format!("{body}\r\n").as_bytes(),
        "messages must come in order"
    );
    sid.to_owned()
}

/// The publisher receives nothing but PING.
fn answer_pings(publisher: &mut BufReader<TcpStream>) {
    let mut line = String::new();
    if publisher.read_line(&mut line).is_ok() {
        assert_eq!(
            line, "PING\r\n",
            "the canary's publisher hears nothing else"
        );
        publisher
            .get_mut()
            .write_all(b"PONG\r\n")
            .expect("the canary answers");
    }
}

fn next_line(reader: &mut BufReader<TcpStream>) -> String {
    loop {
        let mut line = String::new();
        reader
            .read_line(&mut line)
            .expect("the canary hears in time");
        assert!(line.ends_with("\r\n"), "the canary was cut off: {line:?}");
        line.truncate(line.len() - 2);
        if line == "PING" {
            reader
                .get_mut()
                .write_all(b"PONG\r\n")
                .expect("the canary answers");
        } else if !line.starts_with("INFO ") {
            return line;
        }
    }
}

fn connect(address: SocketAddr) -> BufReader<TcpStream> {
    let socket = TcpStream::connect(address).expect("the canary connects");
    socket.set_nodelay(true).expect("a socket can be hurried");
    socket
        .set_read_timeout(Some(DELIVERY_MAX))
        .expect("a socket can have a deadline");
    let mut reader = BufReader::new(socket);
    let options = r#"{"verbose":false,"pedantic":false,"user":"friend","name":"canary"}"#;
    write!(reader.get_mut(), "CONNECT {options}\r\nPING\r\n").expect("the canary greets");
    assert_eq!(next_line(&mut reader), "PONG");
    reader
}
