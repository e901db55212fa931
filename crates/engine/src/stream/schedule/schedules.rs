//! The schedules of a stream: messages that are published again, under another subject, when their time comes.
//!
//! A schedule is the last message of its subject; this index can be rebuilt from the store. The message that a repeated
//! schedule published last says when it is next due. Invariant: a subject has one schedule at most.

use std::borrow::Cow;
use std::collections::BTreeSet;

use ahash::AHashMap;

use super::checks::DueHeaders;
use super::remembered_schedules::DueTimes;
use super::schedule::Schedule;
use crate::common::random::Random;
use crate::common::timestamp;
use crate::routing::subject_transform::SubjectTransform;
use crate::storage::message::{Message, StoreResult};
use crate::storage::store::Store;
use crate::stream::publish::headers::PublishHeaders;
use crate::stream::publish::time_to_live::TimeToLive;

/// Schedules that are carried out within one tick of the clock; the others come with the next.
pub const FIRED_AT_ONCE_MAX: usize = 1_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedSchedule {
    pub sequence: u64,
    pub due_ns: i64,
    /// It has published something, and is due again.
    pub is_repeated: bool,
}

#[derive(Default)]
pub struct Schedules {
    by_subject: AHashMap<Box<[u8]>, PlannedSchedule>,
    by_time: BTreeSet<(i64, Box<[u8]>)>,
    /// The index is no longer right, and must be rebuilt.
    outdated: bool,
}

impl Schedules {
    /// Schedules that are built from the store when they are first needed.
    pub fn unknown() -> Self {
        Self {
            outdated: true,
            ..Self::default()
        }
    }

    /// Finds all schedules in a store, which gives messages other subjects if there is a transform; when they are due next is remembered besides.
    pub fn load(
        store: &Store,
        transform: Option<&SubjectTransform>,
        remembered: &DueTimes,
    ) -> Self {
        let mut schedules = Self::default();
        for sequence in store.messages().last_of_each(b">") {
            let Ok(Some(message)) = store.messages().read(sequence) else {
                continue;
            };
            let headers = PublishHeaders::read(message.headers());
            let read = Schedule::read(headers.schedule, headers.schedule_time_zone);
            let Ok(Some(schedule)) = read else {
                continue;
            };
            let target = headers.schedule_target.unwrap_or_default();
            let target = stored_subject(transform, target);
            let told = next_told(store, message.subject(), &target, sequence);
            // The later one: a crash may have left the file behind, and the target may have had other messages since.
            let repeated = told.max(remembered.of_schedule(message.subject(), sequence));
            if let Some(due_ns) = repeated.or_else(|| schedule.next_after(message.time_ns)) {
                let planned = PlannedSchedule {
                    sequence,
                    due_ns,
                    is_repeated: repeated.is_some(),
                };
                schedules.set(message.subject(), planned);
            }
        }
        schedules
    }

    pub fn is_outdated(&self) -> bool {
        self.outdated
    }

    /// What is in here does not hold any more.
    pub fn invalidate(&mut self) {
        self.outdated = true;
    }

    /// A message was staged: its subject has the schedule of that one, or none.
    pub fn note(&mut self, subject: &[u8], sequence: u64, due_ns: Option<i64>) {
        match due_ns {
            Some(due_ns) => {
                let planned = PlannedSchedule {
                    sequence,
                    due_ns,
                    is_repeated: false,
                };
                self.set(subject, planned);
            }
            None if !self.is_empty() => {
                self.remove(subject);
            }
            None => {}
        }
    }

    pub fn has(&self, subject: &[u8]) -> bool {
        self.by_subject.contains_key(subject)
    }

    pub fn is_empty(&self) -> bool {
        self.by_subject.is_empty()
    }

    pub fn set(&mut self, subject: &[u8], planned: PlannedSchedule) {
        self.remove(subject);
        self.by_subject.insert(subject.into(), planned);
        self.by_time.insert((planned.due_ns, subject.into()));
    }

    pub fn remove(&mut self, subject: &[u8]) -> Option<PlannedSchedule> {
        let planned = self.by_subject.remove(subject)?;
        self.by_time.remove(&(planned.due_ns, subject.into()));
        Some(planned)
    }

    /// When the next one is due.
    pub fn next_ns(&self) -> Option<i64> {
        self.by_time.first().map(|(due_ns, _)| *due_ns)
    }

    pub fn get(&self, subject: &[u8]) -> Option<PlannedSchedule> {
        self.by_subject.get(subject).copied()
    }

    /// Those that have published something and are due again.
    pub fn repeated(&self) -> impl Iterator<Item = (&[u8], PlannedSchedule)> {
        let all = self.by_subject.iter();
        all.filter(|(_, planned)| planned.is_repeated)
            .map(|(subject, planned)| (&**subject, *planned))
    }

    /// Those that are due, the earliest first.
    pub fn due(&self, now_ns: i64) -> impl Iterator<Item = (&[u8], PlannedSchedule)> {
        let due = self
            .by_time
            .iter()
            .take_while(move |(due_ns, _)| *due_ns <= now_ns);
        due.filter_map(|(_, subject)| Some((&**subject, self.get(subject)?)))
    }
}

/// The message that a schedule publishes now.
pub struct Fired {
    pub target: Vec<u8>,
    pub headers: Vec<u8>,
    pub payload: Vec<u8>,
    pub expires_ns: Option<i64>,
    /// It takes the place of the message before it.
    pub replaces: bool,
    /// When the schedule is due again; it ends if it is not.
    pub next_ns: Option<i64>,
}

impl Fired {
    /// Made from the message of the schedule, or from the one it names as its source; none if it does not hold a schedule. Reads the disk.
    pub fn new(
        store: &Store,
        scheduler: &[u8],
        planned: PlannedSchedule,
        message: &Message,
        now_ns: i64,
    ) -> StoreResult<Option<Self>> {
        let headers = PublishHeaders::read(message.headers());
        let read = Schedule::read(headers.schedule, headers.schedule_time_zone);
        let Some(schedule) = read.ok().flatten() else {
            return Ok(None);
        };
        let next_ns = schedule
            .is_repeating()
            .then(|| schedule.next_after_missed(planned.due_ns, now_ns))
            .flatten();
        let mut next_text = Vec::new();
        if let Some(next_ns) = next_ns {
            schedule.put_time(next_ns, &mut next_text);
        }
        let due = DueHeaders {
            scheduler,
            next: next_ns.map(|_| next_text.as_slice()),
            time_to_live: headers.schedule_time_to_live.unwrap_or_default(),
            rollup: headers.schedule_rollup.unwrap_or_default(),
        };
        let source = headers.schedule_source.filter(|source| !source.is_empty());
        let other = match source.and_then(|source| store.messages().last_match(source)) {
            Some(last) => store.messages().read_undamaged(last)?,
            None => None,
        };
        let contents = other.as_ref().unwrap_or(message);
        let mut block = Vec::new();
        due.put_headers(contents.headers(), &mut block);
        Ok(Some(Self {
            target: headers.schedule_target.unwrap_or_default().to_vec(),
            headers: block,
            payload: contents.payload().to_vec(),
            expires_ns: TimeToLive::read(due.time_to_live)
                .ok()
                .flatten()
                .and_then(|time_to_live| time_to_live.expiry_ns(now_ns)),
            replaces: !due.rollup.is_empty(),
            next_ns,
        }))
    }
}

/// The subject under which the message of a schedule is stored. Where part of it is random, nothing is found there.
fn stored_subject<'a>(transform: Option<&SubjectTransform>, target: &'a [u8]) -> Cow<'a, [u8]> {
    let mut changed = Vec::new();
    let mut random = Random::seeded(0);
    match transform {
        Some(transform) if transform.apply(target, &mut random, &mut changed) => changed.into(),
        _ => target.into(),
    }
}

/// When a schedule is due next, as the message it published last says.
fn next_told(store: &Store, scheduler: &[u8], target: &[u8], sequence: u64) -> Option<i64> {
    let last = store
        .messages()
        .last_match(target)
        .filter(|last| *last > sequence)?;
    let message = store.messages().read(last).ok().flatten()?;
    let headers = PublishHeaders::read(message.headers());
    if headers.scheduler != Some(scheduler) {
        return None;
    }
    timestamp::read(std::str::from_utf8(headers.schedule_next?).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_come_in_the_order_of_their_times_and_a_subject_has_one() {
        let mut schedules = Schedules::default();
        let planned = |sequence, due_ns| PlannedSchedule {
            sequence,
            due_ns,
            is_repeated: false,
        };
        schedules.set(b"a", planned(1, 30));
        schedules.set(b"b", planned(2, 20));
        schedules.set(b"a", planned(3, 10));

        assert_eq!(schedules.next_ns(), Some(10));
        assert_eq!(schedules.due(9).count(), 0);
        let due: Vec<_> = schedules.due(20).collect();
        assert_eq!(
            due,
            [
                (b"a".as_slice(), planned(3, 10)),
                (b"b".as_slice(), planned(2, 20))
            ]
        );
        assert_eq!(schedules.remove(b"a"), Some(planned(3, 10)));
        assert!(!schedules.has(b"a") && schedules.has(b"b"));
        assert_eq!(schedules.remove(b"b"), Some(planned(2, 20)));
        assert!(schedules.is_empty() && schedules.next_ns().is_none());
    }
}
