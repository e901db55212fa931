//! Deadlines of one worker's connections, nearest first.
//!
//! A deadline is never taken back: when it comes, the session checks whether it still matters.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Timer {
    /// A client that could have begun with TLS is sent INFO.
    Greet,
    /// The handshake of TLS must be over.
    Secure,
    /// The upgrade to WebSocket must be over.
    Upgrade,
    /// The client must have said CONNECT (and, where nothing is required, at least something).
    Handshake,
    /// Time for a PING, or to find that the last ones were not answered.
    Ping,
    /// What the client was let in with is valid no longer.
    Expire,
    /// The connection is closing and must be gone by now.
    Close,
}

#[derive(Debug, Default)]
pub struct ConnectionTimers {
    heap: BinaryHeap<Reverse<(u64, usize, u64, Timer)>>,
}

impl ConnectionTimers {
    pub fn add(&mut self, due_ms: u64, slot: usize, connection_id: u64, timer: Timer) {
        self.heap
            .push(Reverse((due_ms, slot, connection_id, timer)));
    }

    /// How many deadlines there are, those of connections that are gone included.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Forgets the deadlines of connections that are gone.
    pub fn retain(&mut self, is_alive: impl Fn(usize, u64) -> bool) {
        self.heap
            .retain(|Reverse((_, slot, connection_id, _))| is_alive(*slot, *connection_id));
        self.heap.shrink_to(2 * self.heap.len());
    }

    /// Milliseconds until the next deadline.
    pub fn wait_ms(&self, now_ms: u64) -> Option<u64> {
        self.heap
            .peek()
            .map(|Reverse((due_ms, ..))| due_ms.saturating_sub(now_ms))
    }

    /// The next deadline that has come: slot, connection id and kind.
    pub fn pop_due(&mut self, now_ms: u64) -> Option<(usize, u64, Timer)> {
        let Reverse((due_ms, ..)) = self.heap.peek()?;
        if *due_ms > now_ms {
            return None;
        }
        let Reverse((_, slot, connection_id, timer)) = self.heap.pop()?;
        Some((slot, connection_id, timer))
    }
}
