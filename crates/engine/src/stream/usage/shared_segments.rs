//! Segments whose file several streams of an account share, because one is a fork of the other: on the disk they take
//! up their room once.
//!
//! The stream with most of a segment's messages counts for it; what the others have of it is counted twice, and this
//! module says how much that is. So no stream is stored for free: when the origin of a fork is deleted, the fork counts
//! for all it has. Invariant: `surplus` is the sum over all segments of what their holders have, less the largest part.

use std::sync::atomic::{AtomicI64, Ordering};

use ahash::AHashMap;
use parking_lot::Mutex;

#[derive(Default)]
pub struct SharedSegments {
    held: Mutex<HeldSegment>,
    surplus: AtomicI64,
}

#[derive(Default)]
struct HeldSegment {
    /// Who has how many bytes of a segment.
    by_segment: AHashMap<u64, Vec<(u64, u64)>>,
    by_holder: AHashMap<u64, Vec<u64>>,
}

impl SharedSegments {
    /// A holder has these segments now, each with this many bytes, and no others; returns how much more is counted twice.
    pub fn set(&self, holder: u64, segments: &[(u64, u64)]) -> i64 {
        let mut held = self.held.lock();
        let HeldSegment {
            by_segment,
            by_holder,
        } = &mut *held;
        let before = by_holder.remove(&holder).unwrap_or_default();
        if before.is_empty() && segments.is_empty() {
            return 0;
        }
        let mut difference = 0;
        for segment in before {
            if let Some(holders) = by_segment.get_mut(&segment) {
                difference -= surplus(holders);
                holders.retain(|(other, _)| *other != holder);
                difference += surplus(holders);
                if holders.is_empty() {
                    by_segment.remove(&segment);
                }
            }
        }
        for (segment, bytes) in segments {
            let holders = by_segment.entry(*segment).or_default();
            difference -= surplus(holders);
            holders.push((holder, *bytes));
            difference += surplus(holders);
        }
        if !segments.is_empty() {
            let segments = segments.iter().map(|(segment, _)| *segment);
            by_holder.insert(holder, segments.collect());
        }
        self.surplus.fetch_add(difference, Ordering::Relaxed);
        difference
    }

    /// What is counted more than once.
    pub fn surplus(&self) -> i64 {
        self.surplus.load(Ordering::Relaxed)
    }
}

fn surplus(holders: &[(u64, u64)]) -> i64 {
    let sum: u64 = holders.iter().map(|(_, bytes)| bytes).sum();
    let most = holders.iter().map(|(_, bytes)| *bytes).max();
    i64::try_from(sum - most.unwrap_or(0)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_surplus_is_what_all_but_the_largest_holder_have() {
        let shared = SharedSegments::default();

        assert_eq!(shared.set(1, &[(10, 100), (11, 50)]), 0);
        assert_eq!(shared.set(2, &[(10, 80)]), 80);
        assert_eq!(shared.set(3, &[(10, 90), (12, 5)]), 90);
        assert_eq!(shared.surplus(), 170);
        // The largest goes: the next one counts for it.
        assert_eq!(shared.set(1, &[]), -90);
        assert_eq!(shared.set(2, &[(10, 95)]), 10);
        assert_eq!(shared.set(3, &[]), -90);
        assert_eq!(shared.set(2, &[]), 0);
        assert_eq!(shared.surplus(), 0);
        assert!(shared.held.lock().by_segment.is_empty());
    }
}
