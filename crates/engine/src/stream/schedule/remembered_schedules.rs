//! When the repeating schedules of a stream are due next, in a small file kept twice.
//!
//! The last message on the target of a schedule says it too, but that message may be gone, as in a work queue, or come
//! from another schedule or a publisher. Without the file such a schedule would publish once more at each start.
//! Invariant: the file is written when the messages are committed that the schedules have published, so after a crash it
//! may be behind: then a schedule publishes once more. It is never ahead: then a message would be missing.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::schedules::Schedules;
use crate::storage::message::StoreResult;
use crate::storage::store::Store;
use crate::stream::publish::ingest::Ingest;
use crate::stream::remembered::{FileLocation, Remembered};

const NAME: &str = "schedules";

/// How often the file is written at most: a crash repeats what was published since.
const SAVE_INTERVAL_NS: i64 = 1_000_000_000;

/// Schedules that are remembered: the file stays below a megabyte.
const REMEMBERED_MAX: usize = 10_000;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DueTimes(BTreeMap<String, (u64, i64)>);

impl DueTimes {
    /// Of the schedules that have published something, as far as their subjects are text.
    fn of(schedules: &Schedules) -> Self {
        let repeated = schedules.repeated().filter_map(|(subject, planned)| {
            let subject = std::str::from_utf8(subject).ok()?;
            Some((subject.to_owned(), (planned.sequence, planned.due_ns)))
        });
        Self(repeated.take(REMEMBERED_MAX).collect())
    }

    /// When the schedule with this message is due next.
    pub fn of_schedule(&self, subject: &[u8], sequence: u64) -> Option<i64> {
        let (of, due_ns) = self.0.get(std::str::from_utf8(subject).ok()?)?;
        (*of == sequence).then_some(*due_ns)
    }
}

struct ScheduleFile {
    file: Remembered<DueTimes>,
    saved_ns: i64,
}

pub struct RememberedSchedules(Mutex<ScheduleFile>);

impl RememberedSchedules {
    pub fn new(place: Option<FileLocation>) -> Self {
        Self(Mutex::new(ScheduleFile {
            file: Remembered::new(place, NAME),
            saved_ns: 0,
        }))
    }

    /// What the file says. If it cannot be read, the messages have to do.
    pub fn read(&self) -> DueTimes {
        let mut remembered = self.0.lock();
        match remembered.file.load() {
            Ok(()) => remembered.file.saved().clone(),
            Err(_) => DueTimes::default(),
        }
    }

    /// Writes the file if something else is due by now, and the last time is long enough ago. `commit` commits what is
    /// staged. Waits for the disk.
    pub fn save(
        &self,
        store: &Store,
        ingest: &Mutex<Ingest>,
        now_ns: i64,
        commit: impl FnOnce() -> StoreResult<()>,
    ) -> StoreResult<()> {
        let mut remembered = self.0.lock();
        if now_ns.saturating_sub(remembered.saved_ns) < SAVE_INTERVAL_NS {
            return Ok(());
        }
        let resets = store.resets();
        let due_times = {
            let ingest = ingest.lock();
            if ingest.schedules().is_outdated() {
                return Ok(());
            }
            DueTimes::of(ingest.schedules())
        };
        remembered.file.load()?;
        if due_times == *remembered.file.saved() {
            return Ok(());
        }
        commit()?;
        if store.resets() != resets {
            // What was published may have been discarded meanwhile.
            return Ok(());
        }
        remembered.saved_ns = now_ns;
        remembered.file.save(store, due_times)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use crate::routing::subject_transform::SubjectTransform;
    use crate::storage::disk::file_system::FileSystem;
    use crate::storage::disk::simulated::{SimulatedDisk, Survival};
    use crate::storage::message::NewMessage;
    use crate::storage::store::StoreOptions;

    const SECOND_NS: i64 = 1_000_000_000;

    fn place(disk: &SimulatedDisk) -> FileLocation {
        FileLocation {
            file_system: Arc::new(disk.clone()),
            folder: Path::new("/s").to_owned(),
        }
    }

    /// A stream with one schedule, stored as message 1, that has published nothing yet.
    fn scheduled(disk: &SimulatedDisk) -> Store {
        let file_system: Arc<dyn FileSystem> = Arc::new(disk.clone());
        file_system.create_folder(Path::new("/s")).unwrap();
        let folder = Path::new("/s/messages");
        let store = Store::open(file_system, folder, StoreOptions::default()).unwrap();
        let message = NewMessage {
            subject: b"a",
            headers: b"NATS/1.0\r\nNats-Schedule: @every 10s\r\nNats-Schedule-Target: t\r\n\r\n",
            ..NewMessage::default()
        };
        store.append(&message).unwrap();
        store.commit().unwrap();
        store
    }

    fn due_times(sequence: u64, due_ns: i64) -> DueTimes {
        DueTimes(BTreeMap::from([("a".to_owned(), (sequence, due_ns))]))
    }

    #[test]
    fn what_is_remembered_survives_a_power_cut_and_holds_for_one_schedule() {
        let disk = SimulatedDisk::default();
        let store = scheduled(&disk);
        let mut file = Remembered::new(Some(place(&disk)), NAME);
        file.load().unwrap();
        file.save(&store, due_times(1, 55 * SECOND_NS)).unwrap();

        let found = disk.after_power_cut(Survival::Nothing);
        let remembered = RememberedSchedules::new(Some(place(&found))).read();

        assert_eq!(remembered.of_schedule(b"a", 1), Some(55 * SECOND_NS));
        assert_eq!(remembered.of_schedule(b"a", 2), None, "another schedule");
        assert_eq!(remembered.of_schedule(b"b", 1), None);
        assert_eq!(remembered.of_schedule(b"\xff", 1), None);
    }

    #[test]
    fn a_schedule_goes_on_where_it_was_though_its_target_says_nothing() {
        let store = scheduled(&SimulatedDisk::default());
        let due_of = |remembered: &DueTimes| {
            let schedules = Schedules::load(&store, None, remembered);
            schedules.get(b"a").unwrap()
        };

        let unknown = due_of(&DueTimes::default());
        let known = due_of(&due_times(1, 55 * SECOND_NS));

        assert_eq!(
            (unknown.due_ns, unknown.is_repeated),
            (10 * SECOND_NS, false)
        );
        assert_eq!((known.due_ns, known.is_repeated), (55 * SECOND_NS, true));
    }

    #[test]
    fn the_last_message_of_a_schedule_has_the_subject_that_the_stream_gives_it() {
        let store = scheduled(&SimulatedDisk::default());
        let next = "1970-01-01T00:00:55Z";
        let headers =
            format!("NATS/1.0\r\nNats-Scheduler: a\r\nNats-Schedule-Next: {next}\r\n\r\n");
        let message = NewMessage {
            subject: b"x.t",
            headers: headers.as_bytes(),
            ..NewMessage::default()
        };
        store.append(&message).unwrap();
        store.commit().unwrap();
        let transform = SubjectTransform::new("*", "x.{{wildcard(1)}}").unwrap();
        let due_of = |transform| {
            let schedules = Schedules::load(&store, transform, &DueTimes::default());
            schedules.get(b"a").unwrap().due_ns
        };

        assert_eq!(due_of(Some(&transform)), 55 * SECOND_NS);
        assert_eq!(due_of(None), 10 * SECOND_NS);
    }
}
