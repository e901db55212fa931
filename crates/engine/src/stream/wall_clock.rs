//! The time of day, as messages carry it.

use std::time::{SystemTime, UNIX_EPOCH};

/// Nanoseconds since 1970.
#[inline]
pub fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as i64)
}
