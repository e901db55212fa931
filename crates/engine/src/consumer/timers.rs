//! Reminds consumers at a moment they named. One thread sleeps for all of them.
//!
//! Invariant: a consumer that was armed for a moment is reminded then or earlier, unless it is gone.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::consumer::Consumer;
use crate::engine::Shared;
use crate::error::EngineError;

/// The thread looks at least so often whether it should end.
const SLEEP_MAX: Duration = Duration::from_millis(500);

struct Reminder {
    due_ns: i64,
    consumer: Weak<Consumer>,
}

impl PartialEq for Reminder {
    fn eq(&self, other: &Self) -> bool {
        self.due_ns == other.due_ns
    }
}

impl Eq for Reminder {}

impl PartialOrd for Reminder {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Reminder {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.due_ns.cmp(&other.due_ns)
    }
}

pub struct Timers {
    shared: Arc<Shared>,
    reminders: Mutex<BinaryHeap<Reverse<Reminder>>>,
    changed: Condvar,
}

impl Timers {
    /// Starts the thread; it ends when nobody has the timers any more.
    pub fn start(shared: Arc<Shared>) -> Result<Arc<Self>, EngineError> {
        let timers = Arc::new(Self {
            shared,
            reminders: Mutex::default(),
            changed: Condvar::new(),
        });
        let weak = Arc::downgrade(&timers);
        let spawned = std::thread::Builder::new()
            .name("jetlake-timers".to_owned())
            .spawn(move || {
                while let Some(timers) = weak.upgrade() {
                    timers.remind();
                }
            });
        spawned.map_err(|cause| EngineError::System {
            what: "timers thread",
            cause,
        })?;
        Ok(timers)
    }

    pub fn arm(&self, due_ns: i64, consumer: &Weak<Consumer>) {
        let mut reminders = self.reminders.lock();
        let is_first = reminders
            .peek()
            .is_none_or(|Reverse(first)| due_ns < first.due_ns);
        reminders.push(Reverse(Reminder {
            due_ns,
            consumer: Weak::clone(consumer),
        }));
        drop(reminders);
        if is_first {
            self.changed.notify_one();
        }
    }

    /// The clock was set forward.
    pub fn look(&self) {
        self.changed.notify_one();
    }

    /// Reminds those whose moment has come, and sleeps until the next one's.
    fn remind(&self) {
        let now_ns = self.shared.clock.wall_ns();
        let mut due = Vec::new();
        let mut reminders = self.reminders.lock();
        while reminders
            .peek()
            .is_some_and(|Reverse(first)| first.due_ns <= now_ns)
        {
            if let Some(Reverse(reminder)) = reminders.pop() {
                due.push(reminder.consumer);
            }
        }
        if due.is_empty() {
            let next = reminders.peek().map(|Reverse(first)| first.due_ns - now_ns);
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
        for consumer in due {
            if let Some(consumer) = consumer.upgrade() {
                consumer.remind();
            }
        }
    }
}
