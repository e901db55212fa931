//! How long the disk takes to make a commit durable, as a histogram.
//!
//! Invariant: the counts of all buckets are the number of syncs; nothing is ever taken away.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of the buckets; the last one has none.
pub const BOUNDS_MICROS: [u64; 12] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000,
];

#[derive(Debug, Default)]
pub struct SyncTimes {
    counts: [AtomicU64; BOUNDS_MICROS.len() + 1],
    total_ns: AtomicU64,
}

impl SyncTimes {
    pub fn add(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let bucket = BOUNDS_MICROS.partition_point(|bound| *bound < micros);
        self.counts[bucket].fetch_add(1, Ordering::Relaxed);
        let took_ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.total_ns.fetch_add(took_ns, Ordering::Relaxed);
    }

    /// The counts of each bucket.
    pub fn counts(&self) -> impl Iterator<Item = u64> + '_ {
        self.counts
            .iter()
            .map(|count| count.load(Ordering::Relaxed))
    }

    pub fn total_ns(&self) -> u64 {
        self.total_ns.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sync_is_counted_in_the_first_bucket_that_holds_it() {
        let times = SyncTimes::default();
        for micros in [0, 100, 101, 1_000_000, 1_000_001] {
            times.add(Duration::from_micros(micros));
        }

        let counts: Vec<u64> = times.counts().collect();

        assert_eq!(counts, [2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
        assert_eq!(times.total_ns(), 2_000_202_000);
    }
}
