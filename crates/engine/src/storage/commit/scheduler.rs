//! A store together with the threads that serve it: a caller that stages something schedules a commit, and is called
//! back when it is done.
//!
//! Commits and background maintenance run on pools of their own, so that rewriting a segment never holds up a commit.
//! If commits do not wait for the disk, the scheduler syncs when its interval is over. If there is no disk, the thread
//! that staged something may commit it at once (`commit_or_schedule`), which saves two thread switches. Invariant: what
//! was staged before `schedule` or `commit_or_schedule` is in a commit whose outcome is reported.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::work_pool::{Job, WorkPool};
use crate::common::events::Events;
use crate::storage::message::{CommitProgress, StoreResult};
use crate::storage::store::Store;

/// Commits between two checks whether something can be sealed, joined or freed.
const MAINTENANCE_COMMITS: u32 = 64;

/// The same in time, for streams that commit rarely.
const MAINTENANCE_INTERVAL: Duration = Duration::from_millis(250);

/// The longest a commit waits for more.
const GATHER_WAIT_MAX: Duration = Duration::from_micros(300);

/// The threads of all streams of a server.
pub struct StorageThreads {
    commits: WorkPool,
    maintenance: WorkPool,
    reads: WorkPool,
    ticks: WorkPool,
}

impl StorageThreads {
    /// `events` receives a report when one of them panics.
    pub fn new(events: &Arc<Events>) -> Self {
        Self {
            commits: WorkPool::new(events),
            maintenance: WorkPool::new(events),
            reads: WorkPool::new(events),
            ticks: WorkPool::new(events),
        }
    }

    /// A job of the clock, which may have to wait for a disk.
    pub fn ticking(&self, work: impl Fn() + Send + Sync + 'static) -> Arc<Job> {
        self.ticks.job(work)
    }

    /// A job that writes and syncs, whenever it is asked for.
    pub fn committing(&self, work: impl Fn() + Send + Sync + 'static) -> Arc<Job> {
        self.commits.job(work)
    }

    /// A job that reads, whenever it is asked for.
    pub fn reading(&self, work: impl Fn() + Send + Sync + 'static) -> Arc<Job> {
        self.reads.job(work)
    }
}

pub struct CommitScheduler {
    committer: Arc<Committer>,
    commit: Arc<Job>,
    maintenance: Arc<Job>,
    pace: Mutex<CommitPace>,
    sync_interval: Option<Duration>,
}

/// Commits and reports it; a scheduled job does so even when its scheduler is gone.
struct Committer {
    store: Arc<Store>,
    on_committed: Box<dyn Fn(CommitProgress) + Send + Sync>,
    /// Held during a commit and its report.
    turn: Mutex<()>,
}

impl Committer {
    /// Commits, in the caller's turn. `scheduler` learns how it went before anybody else does.
    fn commit(&self, scheduler: Option<&CommitScheduler>) {
        let begun = Instant::now();
        let staged = self.store.staged_messages();
        // Failures are part of the progress.
        let _ = self.store.commit();
        // Those who are answered now, and those who came meanwhile.
        let in_flight = staged + self.store.staged_messages();
        if let Some(scheduler) = scheduler {
            scheduler.committed(in_flight, begun.elapsed());
        }
        (self.on_committed)(self.store.take_progress());
    }
}

struct CommitPace {
    /// Messages that publishers have under way, about.
    in_flight: usize,
    /// How long the last commit took.
    took: Duration,
    commits: u32,
    maintained: Instant,
    synced: Instant,
}

impl CommitScheduler {
    /// Serves a store. `on_committed` receives the outcome of everything staged, on one thread at a time, whichever
    /// thread committed it. With a `sync_interval`, for a store whose commits do not wait for the disk, `tick` must be
    /// called now and then.
    pub fn new(
        store: Arc<Store>,
        threads: &StorageThreads,
        sync_interval: Option<Duration>,
        on_committed: impl Fn(CommitProgress) + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new_cyclic(|scheduler: &Weak<Self>| {
            let committer = Arc::new(Committer {
                store: Arc::clone(&store),
                on_committed: Box::new(on_committed),
                turn: Mutex::default(),
            });
            let commit = {
                let (scheduler, committer) = (scheduler.clone(), Arc::clone(&committer));
                threads.commits.job(move || {
                    let scheduler = scheduler.upgrade();
                    if let Some(scheduler) = &scheduler {
                        scheduler.gather();
                    }
                    let _turn = committer.turn.lock();
                    committer.commit(scheduler.as_deref());
                })
            };
            let maintenance = {
                let (store, commit) = (Arc::clone(&store), Arc::clone(&commit));
                threads.maintenance.job(move || {
                    // Whatever fails here is in the store's own status, and commits report it.
                    while store.maintain().is_ok_and(|more| more) {}
                    // It may have committed what others staged.
                    commit.schedule();
                })
            };
            let now = Instant::now();
            Self {
                committer,
                commit,
                maintenance,
                pace: Mutex::new(CommitPace {
                    in_flight: 0,
                    took: Duration::ZERO,
                    commits: 0,
                    maintained: now,
                    synced: now,
                }),
                sync_interval,
            }
        })
    }

    pub fn store(&self) -> &Store {
        &self.committer.store
    }

    /// Schedules a commit of what is staged.
    pub fn schedule(&self) {
        self.commit.schedule();
    }

    /// The same from a thread that must not wait, which commits itself if there is no disk and no other thread is
    /// committing.
    pub fn commit_or_schedule(&self) {
        if !self.try_commit() {
            self.schedule();
        }
    }

    /// Commits what is staged, if there is no disk and no other thread is committing; false if it did not.
    pub fn try_commit(&self) -> bool {
        let turn = match self.store().has_disk() {
            true => None,
            false => self.committer.turn.try_lock(),
        };
        let is_free = turn.is_some();
        if is_free {
            self.committer.commit(Some(self));
        }
        is_free
    }

    /// Waits for those who were just answered and will publish again at once: a commit with half of them takes as long as one with all.
    fn gather(&self) {
        if !self.store().has_disk() {
            return;
        }
        let (wanted, timeout) = {
            let pace = self.pace.lock();
            (pace.in_flight, (pace.took / 2).min(GATHER_WAIT_MAX))
        };
        let begun = Instant::now();
        let mut staged = self.store().staged_messages();
        while staged < wanted && begun.elapsed() < timeout {
            std::thread::yield_now();
            staged = self.store().staged_messages();
        }
    }

    fn committed(&self, in_flight: usize, took: Duration) {
        let mut pace = self.pace.lock();
        pace.in_flight = in_flight - in_flight / 16;
        pace.took = took;
        pace.commits += 1;
        if pace.commits >= MAINTENANCE_COMMITS || pace.maintained.elapsed() >= MAINTENANCE_INTERVAL
        {
            pace.commits = 0;
            pace.maintained = Instant::now();
            drop(pace);
            self.maintenance.schedule();
        }
    }

    /// Syncs if the interval for that is over.
    pub fn tick(&self) -> StoreResult<()> {
        let Some(interval) = self.sync_interval else {
            return Ok(());
        };
        {
            let mut pace = self.pace.lock();
            if pace.synced.elapsed() < interval {
                return Ok(());
            }
            pace.synced = Instant::now();
        }
        self.store().sync()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::sync::mpsc;

    use crate::storage::disk::memory::MemoryFileSystem;
    use crate::storage::disk::simulated::{SimulatedDisk, Survival};
    use crate::storage::message::NewMessage;
    use crate::storage::store::StoreOptions;

    #[test]
    fn a_commit_that_did_not_wait_is_durable_after_the_interval() {
        let threads = StorageThreads::new(&Arc::default());
        let disk = SimulatedDisk::default();
        let open = |disk: &SimulatedDisk| {
            let options = StoreOptions {
                sync_commits: false,
                ..StoreOptions::default()
            };
            Store::open(Arc::new(disk.clone()), Path::new("/s"), options).unwrap()
        };
        let store = Arc::new(open(&disk));
        let interval = Some(Duration::ZERO);
        let scheduler = CommitScheduler::new(Arc::clone(&store), &threads, interval, |_| {});
        let message = NewMessage {
            subject: b"a",
            ..NewMessage::default()
        };
        store.append(&message).unwrap();
        store.commit().unwrap();
        let before = open(&disk.after_power_cut(Survival::Nothing));

        scheduler.tick().unwrap();

        let after = open(&disk.after_power_cut(Survival::Nothing));
        assert_eq!(
            (
                before.messages().state().messages,
                after.messages().state().messages
            ),
            (0, 1)
        );
    }

    #[test]
    fn everything_staged_before_asking_is_told_to_be_committed() {
        tells_of_everything_staged_before(CommitScheduler::schedule);
    }

    #[test]
    fn everything_staged_before_settling_is_told_to_be_committed() {
        tells_of_everything_staged_before(CommitScheduler::commit_or_schedule);
    }

    #[test]
    fn without_a_disk_what_is_staged_is_told_when_it_is_settled() {
        let threads = StorageThreads::new(&Arc::default());
        let disk = Arc::new(MemoryFileSystem::default());
        let options = StoreOptions::default();
        let store = Arc::new(Store::open(disk, Path::new("/s"), options).unwrap());
        let (tell, told) = mpsc::channel();
        let scheduler = CommitScheduler::new(store, &threads, None, move |progress| {
            tell.send(progress.committed.last_sequence).unwrap();
        });
        let message = NewMessage {
            subject: b"a",
            ..NewMessage::default()
        };
        scheduler.store().append(&message).unwrap();

        scheduler.commit_or_schedule();

        assert_eq!(told.try_recv(), Ok(1));
    }

    fn tells_of_everything_staged_before(asking: impl Fn(&CommitScheduler)) {
        let threads = StorageThreads::new(&Arc::default());
        let options = StoreOptions {
            segment_bytes: 64 * 1024,
            ..StoreOptions::default()
        };
        let disk = Arc::new(MemoryFileSystem::default());
        let store = Arc::new(Store::open(disk, Path::new("/s"), options).unwrap());
        let (tell, told) = mpsc::channel();
        let scheduler = CommitScheduler::new(store, &threads, None, move |progress| {
            tell.send(progress.committed.last_sequence).unwrap();
        });

        for number in 0..20_000 {
            let message = NewMessage {
                subject: b"a",
                payload: b"payload",
                time_ns: number,
                ..NewMessage::default()
            };
            scheduler.store().append(&message).unwrap();
            asking(&scheduler);
        }

        let mut last = 0;
        while last < 20_000 {
            let next = told.recv_timeout(Duration::from_secs(10)).unwrap();
            assert!(next >= last);
            last = next;
        }
        assert_eq!(scheduler.store().messages().state().messages, 20_000);
    }
}
