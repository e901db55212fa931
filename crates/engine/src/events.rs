//! What the engine tells Python: log lines, clients that wait for a verdict, and that it stopped.
//!
//! The queue is bounded. Log lines beyond the bound are counted and reported as one line; requests for a verdict are never dropped,
//! because there is at most one per connection.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// Log lines that wait for Python at most.
const LOG_LINES_MAX: usize = 16 * 1024;

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
    /// Empty after a wanted stop; else what broke.
    Stopped {
        failure: String,
    },
}

#[derive(Debug)]
pub struct AuthenticationRequest {
    pub connection_id: u64,
    /// The JSON object the client sent with CONNECT.
    pub connect: Vec<u8>,
    pub nonce: String,
    pub remote_address: String,
}

#[derive(Default)]
pub struct Events {
    queue: Mutex<Queue>,
    arrived: Condvar,
    debug: AtomicBool,
    trace: AtomicBool,
}

#[derive(Default)]
struct Queue {
    events: VecDeque<Event>,
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

    /// Debug lines are made only if somebody wants them.
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
        queue.log_lines -= taken
            .iter()
            .filter(|event| matches!(event, Event::Log { .. }))
            .count();
        if queue.log_lines_dropped > 0 && queue.events.is_empty() {
            let dropped = std::mem::take(&mut queue.log_lines_dropped);
            taken.push(Event::Log {
                level: Level::Warning,
                text: format!(
                    "{dropped} log lines were dropped: they came faster than they could be written"
                ),
            });
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
