//! A store together with the threads that serve it: whoever stages something asks for a commit, and hears when it is done.
//!
//! Commits and upkeep run on pools of their own, so that rewriting a segment never holds a commit up. Where commits do not wait for the disk, the
//! keeper syncs when its interval is over. Where there is no disk, whoever staged something may commit it himself (`settle`), which spares two changes
//! of threads. Invariant: what was staged before `ask` or `settle` is in a commit whose outcome is told.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::message::{Progress, StoreResult};
use super::store::Store;
use super::work_pool::{Job, WorkPool};
use crate::events::Events;

/// Commits between two looks at whether something is to be sealed, joined or freed.
const UPKEEP_COMMITS: u32 = 64;

/// The same in time, for streams that commit rarely.
const UPKEEP_INTERVAL: Duration = Duration::from_millis(250);

/// The longest a commit waits for more.
const PATIENCE_MAX: Duration = Duration::from_micros(300);

/// The threads of all streams of a server.
pub struct StorageThreads {
    commits: WorkPool,
    upkeep: WorkPool,
    reads: WorkPool,
    ticks: WorkPool,
}

impl StorageThreads {
    /// `events` hears when one of them breaks off.
    pub fn new(events: &Arc<Events>) -> Self {
        Self {
            commits: WorkPool::new(events),
            upkeep: WorkPool::new(events),
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

pub struct Keeper {
    committer: Arc<Committer>,
    commit: Arc<Job>,
    upkeep: Arc<Job>,
    rhythm: Mutex<Rhythm>,
    sync_interval: Option<Duration>,
}

/// What commits and tells of it; a job that was asked for does so even when its keeper is gone.
struct Committer {
    store: Arc<Store>,
    told: Box<dyn Fn(Progress) + Send + Sync>,
    /// Held while something is committed and told.
    turn: Mutex<()>,
}

impl Committer {
    /// Commits, in the caller's turn. `keeper` learns how it went before anybody else does.
    fn commit(&self, keeper: Option<&Keeper>) {
        let begun = Instant::now();
        let staged = self.store.staged_messages();
        // Failures are part of the progress.
        let _ = self.store.commit();
        // Those who are answered now, and those who came meanwhile.
        let in_flight = staged + self.store.staged_messages();
        if let Some(keeper) = keeper {
            keeper.committed(in_flight, begun.elapsed());
        }
        (self.told)(self.store.take_progress());
    }
}

struct Rhythm {
    /// Messages that publishers have under way, about.
    in_flight: usize,
    /// How long the last commit took.
    took: Duration,
    commits: u32,
    kept_up: Instant,
    synced: Instant,
}

impl Keeper {
    /// Serves a store. `told` hears what became of everything staged, on one thread at a time, whoever committed it.
    /// With a `sync_interval`, for a store whose commits do not wait for the disk, `tick` must be called now and then.
    pub fn new(
        store: Arc<Store>,
        threads: &StorageThreads,
        sync_interval: Option<Duration>,
        told: impl Fn(Progress) + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new_cyclic(|keeper: &Weak<Self>| {
            let committer = Arc::new(Committer {
                store: Arc::clone(&store),
                told: Box::new(told),
                turn: Mutex::default(),
            });
            let commit = {
                let (keeper, committer) = (keeper.clone(), Arc::clone(&committer));
                threads.commits.job(move || {
                    let keeper = keeper.upgrade();
                    if let Some(keeper) = &keeper {
                        keeper.gather();
                    }
                    let _turn = committer.turn.lock();
                    committer.commit(keeper.as_deref());
                })
            };
            let upkeep = {
                let (store, commit) = (Arc::clone(&store), Arc::clone(&commit));
                threads.upkeep.job(move || {
                    // Whatever fails here is in the store's own status, and commits tell it.
                    while store.upkeep().is_ok_and(|more| more) {}
                    // It may have committed what others staged.
                    commit.ask();
                })
            };
            let now = Instant::now();
            Self {
                committer,
                commit,
                upkeep,
                rhythm: Mutex::new(Rhythm {
                    in_flight: 0,
                    took: Duration::ZERO,
                    commits: 0,
                    kept_up: now,
                    synced: now,
                }),
                sync_interval,
            }
        })
    }

    pub fn store(&self) -> &Store {
        &self.committer.store
    }

    /// Asks for what is staged to be committed.
    pub fn ask(&self) {
        self.commit.ask();
    }

    /// The same from a thread that must not wait, which commits by itself if there is no disk and nobody else is at it.
    pub fn settle(&self) {
        let turn = match self.store().has_disk() {
            true => None,
            false => self.committer.turn.try_lock(),
        };
        match turn {
            Some(_turn) => self.committer.commit(Some(self)),
            None => self.ask(),
        }
    }

    /// Waits for those who were just answered and will publish again at once: a commit with half of them takes as long as one with all.
    fn gather(&self) {
        if !self.store().has_disk() {
            return;
        }
        let (wanted, patience) = {
            let rhythm = self.rhythm.lock();
            (rhythm.in_flight, (rhythm.took / 2).min(PATIENCE_MAX))
        };
        let begun = Instant::now();
        let mut staged = self.store().staged_messages();
        while staged < wanted && begun.elapsed() < patience {
            std::thread::yield_now();
            staged = self.store().staged_messages();
        }
    }

    fn committed(&self, in_flight: usize, took: Duration) {
        let mut rhythm = self.rhythm.lock();
        rhythm.in_flight = in_flight - in_flight / 16;
        rhythm.took = took;
        rhythm.commits += 1;
        if rhythm.commits >= UPKEEP_COMMITS || rhythm.kept_up.elapsed() >= UPKEEP_INTERVAL {
            rhythm.commits = 0;
            rhythm.kept_up = Instant::now();
            drop(rhythm);
            self.upkeep.ask();
        }
    }

    /// Syncs if the interval for that is over.
    pub fn tick(&self) -> StoreResult<()> {
        let Some(interval) = self.sync_interval else {
            return Ok(());
        };
        {
            let mut rhythm = self.rhythm.lock();
            if rhythm.synced.elapsed() < interval {
                return Ok(());
            }
            rhythm.synced = Instant::now();
        }
        self.store().sync()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::sync::mpsc;

    use crate::storage::memory::MemoryFileSystem;
    use crate::storage::message::NewMessage;
    use crate::storage::simulated::{SimulatedDisk, Survival};
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
        let keeper = Keeper::new(Arc::clone(&store), &threads, interval, |_| {});
        let message = NewMessage {
            subject: b"a",
            ..NewMessage::default()
        };
        store.append(&message).unwrap();
        store.commit().unwrap();
        let before = open(&disk.after_power_cut(Survival::Nothing));

        keeper.tick().unwrap();

        let after = open(&disk.after_power_cut(Survival::Nothing));
        assert_eq!((before.state().messages, after.state().messages), (0, 1));
    }

    #[test]
    fn everything_staged_before_asking_is_told_to_be_committed() {
        tells_of_everything_staged_before(Keeper::ask);
    }

    #[test]
    fn everything_staged_before_settling_is_told_to_be_committed() {
        tells_of_everything_staged_before(Keeper::settle);
    }

    #[test]
    fn without_a_disk_what_is_staged_is_told_when_it_is_settled() {
        let threads = StorageThreads::new(&Arc::default());
        let disk = Arc::new(MemoryFileSystem::default());
        let options = StoreOptions::default();
        let store = Arc::new(Store::open(disk, Path::new("/s"), options).unwrap());
        let (tell, told) = mpsc::channel();
        let keeper = Keeper::new(store, &threads, None, move |progress| {
            tell.send(progress.committed.last_sequence).unwrap();
        });
        let message = NewMessage {
            subject: b"a",
            ..NewMessage::default()
        };
        keeper.store().append(&message).unwrap();

        keeper.settle();

        assert_eq!(told.try_recv(), Ok(1));
    }

    fn tells_of_everything_staged_before(asking: impl Fn(&Keeper)) {
        let threads = StorageThreads::new(&Arc::default());
        let options = StoreOptions {
            segment_bytes: 64 * 1024,
            ..StoreOptions::default()
        };
        let disk = Arc::new(MemoryFileSystem::default());
        let store = Arc::new(Store::open(disk, Path::new("/s"), options).unwrap());
        let (tell, told) = mpsc::channel();
        let keeper = Keeper::new(store, &threads, None, move |progress| {
            tell.send(progress.committed.last_sequence).unwrap();
        });

        for number in 0..20_000 {
            let message = NewMessage {
                subject: b"a",
                payload: b"payload",
                time_ns: number,
                ..NewMessage::default()
            };
            keeper.store().append(&message).unwrap();
            asking(&keeper);
        }

        let mut last = 0;
        while last < 20_000 {
            let next = told.recv_timeout(Duration::from_secs(10)).unwrap();
            assert!(next >= last);
            last = next;
        }
        assert_eq!(keeper.store().state().messages, 20_000);
    }
}
