//! How many handshakes may begin within a second: each costs a signature, and a crowd that comes back at once must not stop the rest.
//!
//! Counted in whole seconds, as the reference server does. Invariant: within one of them, at most `per_second_max` are admitted.

use parking_lot::Mutex;

const SECOND_MS: u64 = 1_000;

pub struct Throttle {
    /// 0 is unlimited.
    per_second_max: u64,
    second: Mutex<Second>,
}

#[derive(Default)]
struct Second {
    ends_ms: u64,
    admitted: u64,
    rejected: u64,
}

impl Throttle {
    pub fn new(per_second_max: u64) -> Self {
        Self {
            per_second_max,
            second: Mutex::default(),
        }
    }

    /// Whether one more handshake may begin now.
    pub fn admits(&self, now_ms: u64) -> bool {
        if self.per_second_max == 0 {
            return true;
        }
        let mut second = self.second.lock();
        if now_ms >= second.ends_ms {
            second.ends_ms = now_ms + SECOND_MS;
            second.admitted = 0;
        }
        let admits = second.admitted < self.per_second_max;
        if admits {
            second.admitted += 1;
        } else {
            second.rejected += 1;
        }
        admits
    }

    /// How many were sent away, once their second is over; nothing when there were none.
    pub fn take_rejected(&self, now_ms: u64) -> Option<u64> {
        if self.per_second_max == 0 {
            return None;
        }
        let mut second = self.second.lock();
        let over = second.rejected > 0 && now_ms >= second.ends_ms;
        over.then(|| std::mem::take(&mut second.rejected))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_are_admitted_in_each_second_and_the_others_are_counted() {
        let throttle = Throttle::new(2);

        let admitted: Vec<bool> = [10, 20, 30, 1_009, 1_010, 1_500, 2_009]
            .into_iter()
            .map(|now_ms| throttle.admits(now_ms))
            .collect();

        assert_eq!(admitted, [true, true, false, false, true, true, false]);
        assert_eq!(throttle.take_rejected(2_009), None);
        assert_eq!(throttle.take_rejected(2_010), Some(3));
        assert_eq!(throttle.take_rejected(2_011), None);
    }

    #[test]
    fn without_a_limit_all_are_admitted() {
        let throttle = Throttle::new(0);

        assert!((0..10_000).all(|_| throttle.admits(1)));
    }
}
