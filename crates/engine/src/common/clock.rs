//! The one place the engine takes time from.
//!
//! A clock that is set by hand stands still until it is advanced, so that a test need not wait for what happens later.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Time since the engine started, which never goes back, and the time of day.
pub struct Clock {
    start: Instant,
    /// The time of day in nanoseconds since 1970, if it is set by hand.
    by_hand_ns: Option<AtomicI64>,
}

impl Clock {
    pub fn start() -> Self {
        Self {
            start: Instant::now(),
            by_hand_ns: None,
        }
    }

    /// One that stands at this moment until `advance` is called.
    pub fn by_hand() -> Self {
        Self {
            start: Instant::now(),
            by_hand_ns: Some(AtomicI64::new(system_ns())),
        }
    }

    pub fn now_ms(&self) -> u64 {
        self.start.elapsed().as_millis() as u64
    }

    pub fn now_micros(&self) -> u64 {
        self.start.elapsed().as_micros() as u64
    }

    /// Nanoseconds since 1970.
    pub fn wall_ns(&self) -> i64 {
        match &self.by_hand_ns {
            Some(by_hand_ns) => by_hand_ns.load(Ordering::Acquire),
            None => system_ns(),
        }
    }

    pub fn is_manual(&self) -> bool {
        self.by_hand_ns.is_some()
    }

    /// Sets the time of day forward; false if it is not set by hand.
    pub fn advance(&self, duration_ns: i64) -> bool {
        let Some(by_hand_ns) = &self.by_hand_ns else {
            return false;
        };
        by_hand_ns.fetch_add(duration_ns.max(0), Ordering::AcqRel);
        true
    }
}

/// The system's time of day, for what no clock that is set by hand changes: nanoseconds since 1970.
pub fn system_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
    })
}
