//! How fast a push consumer may deliver: a bucket that fills with the rate and holds one burst.
//!
//! In whole numbers: what is in the bucket is counted in bytes times nanoseconds per second, so nothing is lost to rounding. The bucket may be overdrawn by a
//! message, which then waits until it is even again; so a message larger than the burst is late and not stuck, as it would be on nats-server.
//!
//! Invariant: there is never more in the bucket than one burst.

const SECOND_NS: i128 = 1_000_000_000;

#[derive(Debug, Clone)]
pub struct RateLimit {
    bytes_per_second: i128,
    burst: i128,
    level: i128,
    /// Up to when the bucket has been filled; it is full before it is used.
    filled_ns: Option<i64>,
}

impl RateLimit {
    /// The burst is what one message of the stream may have at most.
    pub fn new(bits_per_second: u64, burst_bytes: u64) -> Self {
        let burst = i128::from(burst_bytes) * SECOND_NS;
        Self {
            bytes_per_second: i128::from(bits_per_second / 8),
            burst,
            level: burst,
            filled_ns: None,
        }
    }

    /// Takes a message of this size out of the bucket; it may be delivered so much later. For ever is the longest time there is.
    #[inline]
    pub fn charge(&mut self, now_ns: i64, bytes: u64) -> i64 {
        self.fill(now_ns);
        let cost = i128::from(bytes) * SECOND_NS;
        let level = self.level - cost;
        if level >= 0 {
            self.level = level;
            return 0;
        }
        if self.bytes_per_second == 0 {
            // It will never be even again, so nothing is taken.
            return i64::MAX;
        }
        self.level = level;
        let wait_ns = (-level + self.bytes_per_second - 1) / self.bytes_per_second;
        i64::try_from(wait_ns).unwrap_or(i64::MAX)
    }

    fn fill(&mut self, now_ns: i64) {
        let filled_ns = self.filled_ns.unwrap_or(now_ns);
        // A clock that goes back fills nothing.
        let elapsed_ns = (i128::from(now_ns) - i128::from(filled_ns)).max(0);
        let gained = elapsed_ns * self.bytes_per_second;
        // A clock that was set may be far ahead of the last use; even then the sum stays far below what fits.
        self.level = self.level.saturating_add(gained).min(self.burst);
        self.filled_ns = Some(filled_ns.max(now_ns));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: i64 = 1_000_000_000;

    #[test]
    fn one_burst_passes_and_then_the_rate_counts() {
        let mut limit = RateLimit::new(8_000, 500);

        assert_eq!(limit.charge(0, 500), 0);
        assert_eq!(limit.charge(0, 100), SECOND / 10);
        assert_eq!(limit.charge(SECOND / 10, 100), SECOND / 10);
        assert_eq!(limit.charge(10 * SECOND, 500), 0);
        assert_eq!(limit.charge(10 * SECOND, 1), SECOND / 1000);
    }

    #[test]
    fn a_message_larger_than_the_burst_is_late() {
        let mut limit = RateLimit::new(8_000, 50);

        assert_eq!(limit.charge(7, 1_050), SECOND);
        assert_eq!(limit.charge(7 + SECOND, 10), SECOND / 100);
    }

    #[test]
    fn less_than_a_byte_in_a_second_is_nothing() {
        let mut limit = RateLimit::new(7, 50);

        assert_eq!(limit.charge(0, 50), 0);
        assert_eq!(limit.charge(SECOND, 1), i64::MAX);
        assert_eq!(limit.charge(i64::MAX, 1), i64::MAX);
    }

    #[test]
    fn a_clock_that_goes_back_fills_nothing() {
        let mut limit = RateLimit::new(8_000, 100);
        limit.charge(SECOND, 100);

        assert_eq!(limit.charge(0, 1), SECOND / 1000);
        assert_eq!(limit.charge(SECOND, 1), SECOND / 500);
    }

    proptest! {
        #[test]
        fn nothing_overflows(bits: u64, burst: u64, uses in proptest::collection::vec((any::<i64>(), any::<u64>()), 0..8)) {
            let mut limit = RateLimit::new(bits, burst);
            for (now_ns, bytes) in uses {
                prop_assert!(limit.charge(now_ns, bytes) >= 0);
                prop_assert!(limit.level <= limit.burst);
            }
        }

        #[test]
        fn whoever_waits_as_told_keeps_to_the_rate(bytes in proptest::collection::vec(1..5_000u64, 1..50)) {
            let mut limit = RateLimit::new(80_000, 1_000);
            let mut now_ns = 0;
            for size in &bytes {
                now_ns += limit.charge(now_ns, *size);
            }
            let sent: u64 = bytes.iter().sum();
            let allowed = 1_000 + (now_ns as u64).div_ceil(100_000);
            prop_assert!(sent <= allowed, "{} {}", sent, allowed);
        }
    }
}
