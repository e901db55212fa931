//! What the engine reports to Python: log lines, clients that wait for a verdict, and that it stopped.
//!
//! The queue is bounded. Log lines beyond the bound are counted and reported as one line; requests for a verdict are never dropped,
//! because there is at most one per connection.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::permissions::Permissions;

/// Log lines that wait for Python at most.
const LOG_LINES_MAX: usize = 16 * 1024;

/// Arrivals and departures that wait for Python at most.
const CONNECTION_EVENTS_MAX: usize = 64 * 1024;

/// Requests that wait for a handler in Python at most; what comes beyond is dropped, as its sender will find by its time-out.
const REQUESTS_MAX: usize = 64 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    Info,
    Warning,
    Error,
    Debug,
    Trace,
}

impl Level {
    pub fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}

#[derive(Debug)]
pub enum Event {
    Log {
        level: Level,
        text: String,
    },
    Authenticate(AuthenticationRequest),
    Request(ServiceRequest),
    Connection(ConnectionEvent),
    /// Never dropped: there are at most two for each snapshot and each restore.
    Archive(ArchiveEvent),
    /// Nobody has used a consumer for too long. Never dropped: there is at most one for each consumer.
    Consumer {
        account: String,
        stream: String,
        name: String,
    },
    /// Empty after a wanted stop; else what broke.
    Stopped {
        failure: String,
    },
}

#[derive(Debug)]
pub struct AuthenticationRequest {
    pub connection_id: u64,
    /// The credentials that the client sent with CONNECT, as a JSON object with the protocol's keys.
    pub connect: Vec<u8>,
    pub nonce: String,
    pub remote_address: String,
    /// What the handshake of TLS showed, as JSON; empty without TLS.
    pub tls: Vec<u8>,
    /// How the client connects: `STANDARD` or `WEBSOCKET`.
    pub connection_type: &'static str,
    /// The client is in already and is asked about again, because users or permissions have changed.
    pub again: bool,
}

/// A client came, left or was refused, and the system account has a subscriber for that.
#[derive(Debug)]
pub struct ConnectionEvent {
    pub kind: ConnectionEventKind,
    /// The report of the connection, as JSON.
    pub connection: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionEventKind {
    Connect,
    Disconnect,
    Refused,
    /// A server behind a link.
    Link,
}

impl ConnectionEventKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Disconnect => "disconnect",
            Self::Refused => "refused",
            Self::Link => "link",
        }
    }
}

/// A snapshot has ended, or a restore needs a decision.
#[derive(Debug)]
pub struct ArchiveEvent {
    pub kind: ArchiveEventKind,
    /// What it was started as.
    pub id: String,
    /// What else there is to say, as JSON.
    pub details: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArchiveEventKind {
    SnapshotEnded,
    /// Everything is stored, and becomes a stream when Python says so.
    RestoreReady,
    RestoreFailed,
}

impl ArchiveEventKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::SnapshotEnded => "snapshot_ended",
            Self::RestoreReady => "restore_ready",
            Self::RestoreFailed => "restore_failed",
        }
    }
}

/// A message for a handler in Python.
#[derive(Debug)]
pub struct ServiceRequest {
    pub service: u64,
    /// Who sent it: the identity of a requester is taken from here, never from a header.
    pub connection_id: u64,
    pub account: String,
    /// What the sender might publish and subscribe when the request arrived; `None` is everything.
    pub permissions: Option<Arc<Permissions>>,
    pub subject: Vec<u8>,
    pub reply: Vec<u8>,
    pub header: Vec<u8>,
    pub payload: Vec<u8>,
}

#[derive(Default)]
pub struct Events {
    queue: Mutex<EventQueue>,
    arrived: Condvar,
    debug: AtomicBool,
    trace: AtomicBool,
    failed: AtomicBool,
    #[cfg(test)]
    fail_point: Mutex<Option<&'static str>>,
}

#[derive(Default)]
struct EventQueue {
    events: VecDeque<Event>,
    requests: usize,
    requests_dropped: u64,
    connection_events: usize,
    connection_events_dropped: u64,
    log_lines: usize,
    log_lines_dropped: u64,
}

impl Events {
    pub fn set_levels(&self, debug: bool, trace: bool) {
        self.debug.store(debug, Ordering::Relaxed);
        self.trace.store(trace, Ordering::Relaxed);
    }

    #[inline]
    pub fn is_tracing(&self) -> bool {
        self.trace.load(Ordering::Relaxed)
    }

    /// Debug lines are built only if they are enabled.
    pub fn debug(&self, text: impl FnOnce() -> String) {
        if self.debug.load(Ordering::Relaxed) {
            self.log(Level::Debug, text());
        }
    }

    pub fn log(&self, level: Level, text: String) {
        let mut queue = self.queue.lock();
        if queue.log_lines >= LOG_LINES_MAX {
            queue.log_lines_dropped += 1;
            return;
        }
        queue.log_lines += 1;
        queue.events.push_back(Event::Log { level, text });
        drop(queue);
        self.arrived.notify_one();
    }

    pub fn push_connection(&self, event: ConnectionEvent) {
        let mut queue = self.queue.lock();
        if queue.connection_events >= CONNECTION_EVENTS_MAX {
            queue.connection_events_dropped += 1;
            return;
        }
        queue.connection_events += 1;
        queue.events.push_back(Event::Connection(event));
        drop(queue);
        self.arrived.notify_one();
    }

    pub fn push_requests(&self, requests: Vec<ServiceRequest>) {
        if requests.is_empty() {
            return;
        }
        let mut queue = self.queue.lock();
        for request in requests {
            if queue.requests >= REQUESTS_MAX {
                queue.requests_dropped += 1;
            } else {
                queue.requests += 1;
                queue.events.push_back(Event::Request(request));
            }
        }
        drop(queue);
        self.arrived.notify_one();
    }

    /// The engine has a bug, or has lost what it cannot do without: it stops, with this reason. Only the first one is
    /// reported.
    pub fn fail(&self, failure: String) {
        if !self.failed.swap(true, Ordering::AcqRel) {
            self.push(Event::Stopped { failure });
        }
    }

    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// Where a test can let a thread panic.
    #[inline]
    pub fn fail_point(&self, _name: &'static str) {
        #[cfg(test)]
        if *self.fail_point.lock() == Some(_name) {
            panic!("the fail point {_name}");
        }
    }

    /// Lets threads panic that come to this point from now on.
    #[cfg(test)]
    pub fn fail_at(&self, name: &'static str) {
        *self.fail_point.lock() = Some(name);
    }

    pub fn push(&self, event: Event) {
        self.queue.lock().events.push_back(event);
        self.arrived.notify_one();
    }

    /// Waits until there is something, then takes up to `count_max`.
    pub fn next(&self, count_max: usize, timeout: Duration) -> Vec<Event> {
        let mut queue = self.queue.lock();
        if queue.events.is_empty() {
            self.arrived.wait_for(&mut queue, timeout);
        }
        let count = count_max.min(queue.events.len());
        let mut taken: Vec<Event> = queue.events.drain(..count).collect();
        for event in &taken {
            match event {
                Event::Log { .. } => queue.log_lines -= 1,
                Event::Request(_) => queue.requests -= 1,
                Event::Connection(_) => queue.connection_events -= 1,
                Event::Authenticate(_)
                | Event::Archive(_)
                | Event::Consumer { .. }
                | Event::Stopped { .. } => {}
            }
        }
        if queue.events.is_empty() {
            let mut report = |dropped: &mut u64, what: &str| {
                let dropped = std::mem::take(dropped);
                if dropped > 0 {
                    taken.push(Event::Log {
                        level: Level::Warning,
                        text: format!("{dropped} {what} were dropped: they came faster than they could be handled"),
                    });
                }
            };
            report(&mut queue.log_lines_dropped, "log lines");
            report(&mut queue.requests_dropped, "requests");
            report(
                &mut queue.connection_events_dropped,
                "events of connections",
            );
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_lines_beyond_the_bound_are_counted_and_reported_once() {
        let events = Events::default();
        for number in 0..LOG_LINES_MAX + 7 {
            events.log(Level::Info, number.to_string());
        }

        let first = events.next(LOG_LINES_MAX, Duration::ZERO);
        let second = events.next(10, Duration::ZERO);

        assert_eq!(first.len(), LOG_LINES_MAX + 1);
        let Some(Event::Log { text, .. }) = first.last() else {
            panic!("{first:?}")
        };
        assert!(text.starts_with("7 log lines were dropped"), "{text}");
        assert!(second.is_empty());
    }
}
