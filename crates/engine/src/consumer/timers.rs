//! Reminds consumers at a moment they named. One thread sleeps for all of them.
//!
//! Each consumer has an `Alarm` of its own, which is in the list at most once: arming it for an earlier moment removes
//! the later entry, and a deleted consumer leaves no entry. Invariants: a consumer is reminded at the moment its alarm
//! was armed for or earlier, unless it is disarmed or gone; an alarm's moment is the one of its entry.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::common::error::EngineError;
use crate::common::threads;
use crate::routing::shared::Shared;

/// The thread checks at least this often whether it should end.
const SLEEP_MAX: Duration = Duration::from_millis(500);

/// The moment of an alarm that is not armed.
const NEVER_NS: i64 = i64::MAX;

/// The moment of one that is not armed any more, ever: nothing comes earlier.
const DISARMED_NS: i64 = i64::MIN;

/// One who wants to be reminded.
pub trait Reminded: Send + Sync {
    fn alarm(&self) -> &Alarm;

    /// The moment has come that its alarm was armed for.
    fn remind(&self);
}

/// The moment of a reminder. It is changed only while the list is locked.
pub struct Alarm {
    number: u64,
    due_ns: AtomicI64,
}

impl Default for Alarm {
    fn default() -> Self {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        Self {
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            due_ns: AtomicI64::new(NEVER_NS),
        }
    }
}

/// Who is reminded when, by the moment and the number of the alarm.
type Reminders = BTreeMap<(i64, u64), Weak<dyn Reminded>>;

pub struct ConsumerTimers {
    shared: Arc<Shared>,
    reminders: Mutex<Reminders>,
    changed: Condvar,
}

impl ConsumerTimers {
    /// Starts the thread; it ends when nobody has the timers any more.
    pub fn start(shared: Arc<Shared>) -> Result<Arc<Self>, EngineError> {
        let timers = Arc::new(Self {
            shared,
            reminders: Mutex::default(),
            changed: Condvar::new(),
        });
        let weak = Arc::downgrade(&timers);
        let spawned = threads::spawn(&timers.shared.events, "jetlake-timers", move || {
            while let Some(timers) = weak.upgrade() {
                timers.shared.events.fail_point("timers");
                timers.remind();
            }
            Ok(())
        });
        spawned.map_err(|cause| EngineError::System {
            what: "timers thread",
            cause,
        })?;
        Ok(timers)
    }

    /// Arms an alarm for a moment, unless it is already armed for an earlier one.
    pub fn arm(&self, due_ns: i64, alarm: &Alarm, reminded: &Weak<dyn Reminded>) {
        if due_ns >= alarm.due_ns.load(Ordering::Acquire) {
            return;
        }
        let mut reminders = self.reminders.lock();
        if arm(&mut reminders, due_ns, alarm, reminded) {
            drop(reminders);
            self.changed.notify_one();
        }
    }

    /// Disarms an alarm for good and removes its entry.
    pub fn disarm(&self, alarm: &Alarm) {
        disarm(&mut self.reminders.lock(), alarm);
    }

    /// The clock was set forward.
    pub fn look(&self) {
        self.changed.notify_one();
    }

    /// Reminds those whose moment has come, and sleeps until the next one's.
    fn remind(&self) {
        let now_ns = self.shared.clock.wall_ns();
        let mut reminders = self.reminders.lock();
        let due = take_due(&mut reminders, now_ns);
        if due.is_empty() {
            let first = reminders.first_key_value();
            let next = first.map(|((due_ns, _), _)| due_ns.saturating_sub(now_ns));
            let sleep = match next {
                Some(wait_ns) if !self.shared.clock.is_manual() => {
                    Duration::from_nanos(wait_ns.max(0) as u64).min(SLEEP_MAX)
                }
                _ => SLEEP_MAX,
            };
            self.changed.wait_for(&mut reminders, sleep);
            return;
        }
        drop(reminders);
        for reminded in due {
            reminded.remind();
        }
    }
}

/// True if it comes first now.
fn arm(
    reminders: &mut Reminders,
    due_ns: i64,
    alarm: &Alarm,
    reminded: &Weak<dyn Reminded>,
) -> bool {
    let before_ns = alarm.due_ns.load(Ordering::Acquire);
    if due_ns >= before_ns {
        return false;
    }
    reminders.remove(&(before_ns, alarm.number));
    reminders.insert((due_ns, alarm.number), Weak::clone(reminded));
    alarm.due_ns.store(due_ns, Ordering::Release);
    let first = reminders.first_key_value();
    first.is_some_and(|((_, number), _)| *number == alarm.number)
}

fn disarm(reminders: &mut Reminders, alarm: &Alarm) {
    let before_ns = alarm.due_ns.swap(DISARMED_NS, Ordering::AcqRel);
    reminders.remove(&(before_ns, alarm.number));
}

/// Removes and returns those whose moment has come; they can be armed again.
fn take_due(reminders: &mut Reminders, now_ns: i64) -> Vec<Arc<dyn Reminded>> {
    let mut due = Vec::new();
    while let Some(first) = reminders.first_entry() {
        if first.key().0 > now_ns {
            break;
        }
        if let Some(reminded) = first.remove().upgrade() {
            reminded.alarm().due_ns.store(NEVER_NS, Ordering::Release);
            due.push(reminded);
        }
    }
    due
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Default)]
    struct Sleeper {
        alarm: Alarm,
    }

    impl Reminded for Sleeper {
        fn alarm(&self) -> &Alarm {
            &self.alarm
        }

        fn remind(&self) {}
    }

    fn weak(sleeper: &Arc<Sleeper>) -> Weak<dyn Reminded> {
        let sleeper: Arc<dyn Reminded> = Arc::clone(sleeper) as Arc<dyn Reminded>;
        Arc::downgrade(&sleeper)
    }

    #[test]
    fn one_who_is_armed_often_stands_in_the_list_once() {
        let mut reminders = Reminders::new();
        let sleeper = Arc::new(Sleeper::default());
        arm(&mut reminders, 9_000, &sleeper.alarm, &weak(&sleeper));

        // Pull requests come and expire; the longest deadline stays what it is.
        for now_ns in 1..1_000 {
            arm(&mut reminders, now_ns, &sleeper.alarm, &weak(&sleeper));
            assert_eq!(take_due(&mut reminders, now_ns).len(), 1);
            arm(&mut reminders, 9_000, &sleeper.alarm, &weak(&sleeper));
        }

        assert_eq!(reminders.len(), 1);
    }

    #[test]
    fn one_who_is_disarmed_leaves_nothing_behind_and_is_never_armed_again() {
        let mut reminders = Reminders::new();
        let sleeper = Arc::new(Sleeper::default());
        arm(&mut reminders, 5, &sleeper.alarm, &weak(&sleeper));

        disarm(&mut reminders, &sleeper.alarm);
        arm(&mut reminders, 3, &sleeper.alarm, &weak(&sleeper));

        assert!(reminders.is_empty());
        assert_eq!(Arc::weak_count(&sleeper), 0);
    }

    proptest! {
        #[test]
        fn everybody_is_reminded_at_the_earliest_moment_it_named(
            steps in proptest::collection::vec((0usize..4, 0i64..50, 0u8..8), 1..200),
        ) {
            let mut reminders = Reminders::new();
            let sleepers: Vec<Arc<Sleeper>> = (0..4).map(|_| Arc::default()).collect();
            let mut twin = [Some(NEVER_NS); 4];
            for (who, moment_ns, what) in steps {
                let sleeper = &sleepers[who];
                match what {
                    0 => {
                        disarm(&mut reminders, &sleeper.alarm);
                        twin[who] = None;
                    }
                    1 | 2 => {
                        let due = take_due(&mut reminders, moment_ns).len();
                        let wanted = twin.iter_mut().flatten().filter(|due_ns| **due_ns <= moment_ns);
                        let wanted = wanted.map(|due_ns| *due_ns = NEVER_NS).count();
                        prop_assert_eq!(due, wanted);
                    }
                    _ => {
                        arm(&mut reminders, moment_ns, &sleeper.alarm, &weak(sleeper));
                        twin[who] = twin[who].map(|due_ns| due_ns.min(moment_ns));
                    }
                }
                let armed = twin.iter().flatten().filter(|due_ns| **due_ns < NEVER_NS);
                prop_assert_eq!(reminders.len(), armed.count());
            }
        }
    }
}
