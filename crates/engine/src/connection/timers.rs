//! Deadlines of one worker's connections, nearest first.
//!
//! A deadline is never taken back: when it comes, the session checks whether it still matters. What is planned repeatedly is put off by a `PlannedTimer`.

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

/// The deadline of one kind that a connection has among its worker's: put off as often as the client likes, it is there once.
///
/// Invariant: while `due_ms` is set, a deadline for that time is in the heap; others of its kind there come later, and are passed over.
#[derive(Debug, Default)]
pub struct PlannedTimer {
    due_ms: Option<u64>,
}

impl PlannedTimer {
    /// Whether a deadline must be added for this time. If one comes before that already, it plans the rest.
    pub fn plan(&mut self, due_ms: u64) -> bool {
        let is_needed = self.due_ms.is_none_or(|planned_ms| due_ms < planned_ms);
        if is_needed {
            self.due_ms = Some(due_ms);
        }
        is_needed
    }

    /// A deadline of this kind has come; false if it is not the planned one.
    pub fn has_come(&mut self, now_ms: u64) -> bool {
        self.due_ms.take_if(|due_ms| *due_ms <= now_ms).is_some()
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Plans a deadline, and adds it if it must be added.
    fn plan(timers: &mut ConnectionTimers, planned: &mut PlannedTimer, due_ms: u64) {
        if planned.plan(due_ms) {
            timers.add(due_ms, 1, 1, Timer::Expire);
        }
    }

    #[test]
    fn a_deadline_that_is_put_off_a_thousand_times_is_there_once() {
        let (mut timers, mut planned) = (ConnectionTimers::default(), PlannedTimer::default());

        for number in 0..1_000 {
            plan(&mut timers, &mut planned, 5_000 + number);
        }

        assert_eq!(timers.len(), 1);
        assert_eq!(timers.pop_due(5_000), Some((1, 1, Timer::Expire)));
        assert!(planned.has_come(5_000));
        plan(&mut timers, &mut planned, 5_999);
        assert_eq!(timers.wait_ms(5_000), Some(999));
    }

    #[test]
    fn a_deadline_that_is_planned_earlier_comes_then_and_the_other_one_is_passed_over() {
        let (mut timers, mut planned) = (ConnectionTimers::default(), PlannedTimer::default());
        plan(&mut timers, &mut planned, 9_000);
        plan(&mut timers, &mut planned, 2_000);

        assert!(timers.pop_due(2_000).is_some() && planned.has_come(2_000));

        assert!(timers.pop_due(9_000).is_some() && !planned.has_come(9_000));
    }
}
