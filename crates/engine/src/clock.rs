//! The one place the engine takes time from.

use std::time::Instant;

/// Time since the engine started. Never goes back.
pub struct Clock {
    start: Instant,
}

impl Clock {
    pub fn start() -> Self {
        Self {
            start: Instant::now(),
        }
    }

    pub fn now_ms(&self) -> u64 {
        self.start.elapsed().as_millis() as u64
    }

    pub fn now_micros(&self) -> u64 {
        self.start.elapsed().as_micros() as u64
    }
}
