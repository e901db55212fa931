//! When a consumer was last used, and when to check whether it still is.
//!
//! Invariant: while there is a threshold, a check is due at `check_ns` or under way.

/// Times are unix nanoseconds; 0 is never.
pub struct Activity {
    pub delivered_ns: i64,
    pub acknowledged_ns: i64,
    /// Since when nobody uses it, as of the last check.
    inactive_since_ns: i64,
    /// When the next check is due.
    check_ns: i64,
}

impl Activity {
    pub fn new(now_ns: i64) -> Self {
        Self {
            delivered_ns: 0,
            acknowledged_ns: 0,
            inactive_since_ns: now_ns,
            check_ns: now_ns,
        }
    }

    /// When the next check is due; `i64::MAX` is never.
    pub fn check_ns(&self) -> i64 {
        self.check_ns
    }

    /// Begins a check, if one is due.
    pub fn begin_check(&mut self, now_ns: i64) -> bool {
        let is_due = now_ns >= self.check_ns;
        if is_due {
            self.check_ns = i64::MAX;
        }
        is_due
    }

    /// Ends a check: true if the consumer was unused for `threshold_ns`. Until `acknowledged_by_ns` a message may still be acknowledged, which counts as use.
    pub fn end_check(
        &mut self,
        is_there: bool,
        threshold_ns: i64,
        acknowledged_by_ns: Option<i64>,
        now_ns: i64,
    ) -> bool {
        if is_there {
            self.inactive_since_ns = now_ns;
        }
        let last_ns = acknowledged_by_ns.unwrap_or(0).max(self.inactive_since_ns);
        let due_ns = last_ns.saturating_add(threshold_ns);
        if due_ns <= now_ns {
            return true;
        }
        self.check_ns = due_ns;
        false
    }

    /// The consumer was used just now.
    pub fn note(&mut self, threshold_ns: i64, now_ns: i64) {
        self.inactive_since_ns = now_ns;
        if threshold_ns > 0 {
            self.check_ns = now_ns.saturating_add(threshold_ns);
        }
    }

    /// The last receiver has gone.
    pub fn note_departure(&mut self, now_ns: i64) {
        self.inactive_since_ns = now_ns;
        self.check_ns = now_ns;
    }

    /// What was delivered and acknowledged does not count any more.
    pub fn reset_deliveries(&mut self) {
        self.delivered_ns = 0;
        self.acknowledged_ns = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_consumer_is_abandoned_when_nobody_was_there_for_the_threshold() {
        let mut activity = Activity::new(100);

        assert!(activity.begin_check(100));
        assert!(!activity.end_check(false, 50, None, 100));
        assert_eq!(activity.check_ns(), 150);
        assert!(!activity.begin_check(149));
        assert!(activity.begin_check(150));
        assert!(activity.end_check(false, 50, None, 150));
    }

    #[test]
    fn whoever_may_still_acknowledge_something_counts_as_there() {
        let mut activity = Activity::new(100);

        assert!(activity.begin_check(200));
        assert!(!activity.end_check(false, 50, Some(190), 200));

        assert_eq!(activity.check_ns(), 240);
    }
}
