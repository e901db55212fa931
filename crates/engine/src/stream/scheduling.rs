//! Schedules of a stream as messages come in, and the messages that they publish when they are due.

use super::admitted::Admitted;
use super::ingest::Ingest;
use super::publish_checks::Rollup;
use super::schedules::{Fired, Planned, FIRED_AT_ONCE_MAX};
use crate::storage::message::{Message, StoreError};
use crate::storage::store::Store;

impl Ingest {
    /// A subject has the schedule of its last message, or none.
    pub(super) fn schedule(&mut self, subject: &[u8], sequence: u64, due_ns: Option<i64>) {
        match due_ns {
            Some(due_ns) => self.schedules.set(subject, Planned { sequence, due_ns }),
            None if !self.schedules.is_empty() => {
                self.schedules.remove(subject);
            }
            None => {}
        }
    }

    /// Removes the message of a schedule, with the one that has this sequence.
    pub(super) fn end_schedule(
        &mut self,
        store: &Store,
        subject: &[u8],
        sequence: u64,
    ) -> Result<(), StoreError> {
        self.schedules.remove(subject);
        self.pending.sort();
        let staged: Vec<u64> = self.pending.sequences_of(subject, 0).collect();
        store.roll_up(subject, &staged, sequence)
    }

    /// Publishes what is due; returns whether anything was.
    pub fn publish_due(&mut self, store: &Store, now_ns: i64) -> bool {
        if self.schedules.outdated {
            return false;
        }
        self.pending.sort();
        let last_sequence = store.counts().last_sequence;
        let mut waiting = Vec::new();
        let mut fired = 0;
        while let Some((subject, planned)) = self.schedules.take_due(now_ns) {
            if planned.sequence > last_sequence {
                // Not durable yet.
                waiting.push((subject, planned));
                continue;
            }
            // What cannot be read, or was removed, is no schedule any more.
            if let Ok(Some(message)) = store.read(planned.sequence) {
                self.fire(store, &subject, planned, &message, now_ns);
            }
            fired += 1;
            if fired == FIRED_AT_ONCE_MAX {
                break;
            }
        }
        for (subject, planned) in waiting {
            self.schedules.set(&subject, planned);
        }
        fired > 0
    }

    /// Publishes the message of a schedule, and plans when it is due again; one that is not ends with it.
    fn fire(
        &mut self,
        store: &Store,
        scheduler: &[u8],
        planned: Planned,
        message: &Message,
        now_ns: i64,
    ) {
        let Some(fired) = Fired::new(store, scheduler, planned, message, now_ns) else {
            return;
        };
        let admitted = Admitted {
            headers: fired.headers.as_slice().into(),
            payload: fired.payload.as_slice().into(),
            expires_ns: fired.expires_ns,
            rollup: fired.replaces.then_some(Rollup::Subject),
            ended_schedule: fired.next_ns.is_none().then(|| scheduler.into()),
            ..Admitted::of(&fired.target, now_ns)
        };
        self.store(store, admitted, b"");
        if let Some(due_ns) = fired.next_ns {
            self.schedules.set(scheduler, Planned { due_ns, ..planned });
        }
    }
}
