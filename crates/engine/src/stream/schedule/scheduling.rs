//! Schedules of a stream as messages come in, and the messages that they publish when they are due.

use std::sync::Arc;

use super::schedules::{Fired, PlannedSchedule, FIRED_AT_ONCE_MAX};
use crate::storage::message::{StoreError, StoreResult};
use crate::storage::store::Store;
use crate::stream::publish::admitted::Admitted;
use crate::stream::publish::checks::Rollup;
use crate::stream::publish::ingest::Ingest;
use crate::stream::stream::Stream;

/// Removes the message of a schedule, with the one that has this sequence.
pub(in crate::stream) fn end(
    ingest: &mut Ingest,
    store: &Store,
    subject: &[u8],
    sequence: u64,
) -> Result<(), StoreError> {
    ingest.schedules_mut().remove(subject);
    ingest.sort_pending();
    let staged: Vec<u64> = ingest.pending().sequences_of(subject, 0).collect();
    store.roll_up(subject, &staged, sequence)
}

/// The schedules that are due, not more than are carried out at once, and only what is durable.
fn due_schedules(ingest: &Ingest, store: &Store, now_ns: i64) -> Vec<(Box<[u8]>, PlannedSchedule)> {
    if ingest.schedules().is_outdated() {
        return Vec::new();
    }
    let last_sequence = store.messages().counts().last_sequence;
    let due = ingest.schedules().due(now_ns);
    let durable = due.filter(|(_, planned)| planned.sequence <= last_sequence);
    let some = durable.take(FIRED_AT_ONCE_MAX);
    some.map(|(subject, planned)| (subject.into(), planned))
        .collect()
}

/// Publishes the message of a schedule, and plans when it is due again; one that is not due again ends with it. False if
/// the schedule is another one by now.
fn fire(
    ingest: &mut Ingest,
    store: &Store,
    scheduler: &[u8],
    planned: PlannedSchedule,
    fired: Option<&Fired>,
    now_ns: i64,
) -> bool {
    if ingest.schedules().is_outdated() || ingest.schedules().get(scheduler) != Some(planned) {
        return false;
    }
    ingest.schedules_mut().remove(scheduler);
    let Some(fired) = fired else {
        return true;
    };
    ingest.sort_pending();
    let settings = Arc::clone(ingest.settings());
    let mut changed = Vec::new();
    let subject = ingest.subject_as_stored(&settings, &fired.target, &mut changed);
    let admitted = Admitted {
        headers: fired.headers.as_slice().into(),
        payload: fired.payload.as_slice().into(),
        expires_ns: fired.expires_ns,
        rollup: fired.replaces.then_some(Rollup::Subject),
        ended_schedule: fired.next_ns.is_none().then(|| scheduler.into()),
        ..Admitted::of(subject, now_ns)
    };
    ingest.store(store, admitted, b"");
    if let Some(due_ns) = fired.next_ns {
        ingest.schedules_mut().set(
            scheduler,
            PlannedSchedule {
                due_ns,
                is_repeated: true,
                ..planned
            },
        );
    }
    true
}

impl Stream {
    /// Publishes what is due; returns whether anything was. The disk is read while no lock is held.
    pub(in crate::stream) fn publish_due(&self, now_ns: i64) -> bool {
        let due = due_schedules(&self.ingest.lock(), &self.store, now_ns);
        let mut any = false;
        for (subject, planned) in due {
            let Ok(fired) = self.fired(&subject, planned, now_ns) else {
                // The disk could not be read: it stays due.
                continue;
            };
            let mut ingest = self.ingest.lock();
            any |= fire(
                &mut ingest,
                &self.store,
                &subject,
                planned,
                fired.as_ref(),
                now_ns,
            );
        }
        any
    }

    /// Writes down when schedules are due next.
    pub(in crate::stream) fn remember_schedules(&self, now_ns: i64) {
        // If that fails, some publish once more after the next start. The failure itself is in the store's status.
        let _ = self
            .remembered_schedules
            .save(&self.store, &self.ingest, now_ns, || self.commit_own());
    }

    /// What a schedule publishes; none if its message was removed.
    fn fired(
        &self,
        subject: &[u8],
        planned: PlannedSchedule,
        now_ns: i64,
    ) -> StoreResult<Option<Fired>> {
        match self.store.messages().read_undamaged(planned.sequence)? {
            Some(message) => Fired::new(&self.store, subject, planned, &message, now_ns),
            None => Ok(None),
        }
    }
}
