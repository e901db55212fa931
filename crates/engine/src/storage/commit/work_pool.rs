//! Threads that commit, seal and compact for many streams.
//!
//! Each stream has a job; a job runs on one thread at a time, and once more if it was asked for while it ran, so everything that arrived during a
//! sync shares the next one. Threads come as they are needed: a stream whose disk hangs keeps its own thread and nobody else's.
//! Invariant: a job that was asked for runs after that, at least once.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::common::events::Events;
use crate::common::threads;

/// Most threads of one pool: this many disks can hang before others wait for them.
pub const THREADS_MAX: usize = 64;

/// A thread that is idle for this long ends.
const IDLE_MAX: Duration = Duration::from_secs(10);

const IDLE: u8 = 0;
const QUEUED: u8 = 1;
const RUNNING: u8 = 2;
const RUNNING_AND_ASKED: u8 = 3;

type JobWork = dyn Fn() + Send + Sync;

/// The work of one stream, run whenever it is scheduled.
pub struct Job {
    state: AtomicU8,
    work: Box<JobWork>,
    pool: Arc<PoolShared>,
}

struct PoolShared {
    queue: Mutex<JobQueue>,
    asked: Condvar,
    events: Arc<Events>,
}

#[derive(Default)]
struct JobQueue {
    jobs: VecDeque<Arc<Job>>,
    threads: usize,
    idle: usize,
    closed: bool,
}

pub struct WorkPool {
    shared: Arc<PoolShared>,
}

impl WorkPool {
    /// `events` receives a report when one of the threads panics.
    pub fn new(events: &Arc<Events>) -> Self {
        Self {
            shared: Arc::new(PoolShared {
                queue: Mutex::default(),
                asked: Condvar::new(),
                events: Arc::clone(events),
            }),
        }
    }

    pub fn job(&self, work: impl Fn() + Send + Sync + 'static) -> Arc<Job> {
        Arc::new(Job {
            state: AtomicU8::new(IDLE),
            work: Box::new(work),
            pool: Arc::clone(&self.shared),
        })
    }
}

impl Drop for WorkPool {
    /// Threads end after what they are doing; what is queued is not begun any more.
    fn drop(&mut self) {
        let mut queue = self.shared.queue.lock();
        queue.closed = true;
        queue.jobs.clear();
        self.shared.asked.notify_all();
    }
}

impl Job {
    /// Asks for the job to run; returns at once.
    pub fn schedule(self: &Arc<Self>) {
        let mut state = self.state.load(Ordering::Acquire);
        loop {
            let next = match state {
                IDLE => QUEUED,
                RUNNING => RUNNING_AND_ASKED,
                _ => return,
            };
            match self
                .state
                .compare_exchange_weak(state, next, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) if next == QUEUED => return self.pool.push(Arc::clone(self)),
                Ok(_) => return,
                Err(now) => state = now,
            }
        }
    }

    /// Runs, and again as long as it is asked for and nobody else waits.
    fn run(self: &Arc<Self>) {
        loop {
            self.state.store(RUNNING, Ordering::Release);
            self.pool.events.fail_point("storage");
            (self.work)();
            let ended =
                self.state
                    .compare_exchange(RUNNING, IDLE, Ordering::AcqRel, Ordering::Acquire);
            if ended.is_ok() {
                return;
            }
            if !self.pool.queue.lock().jobs.is_empty() {
                self.state.store(QUEUED, Ordering::Release);
                return self.pool.push(Arc::clone(self));
            }
        }
    }
}

impl PoolShared {
    fn push(self: &Arc<Self>, job: Arc<Job>) {
        let mut queue = self.queue.lock();
        if queue.closed {
            return;
        }
        queue.jobs.push_back(job);
        // A thread that was woken up takes one of them, and may not come back for the next.
        if queue.jobs.len() <= queue.idle {
            self.asked.notify_one();
        } else if queue.threads < THREADS_MAX {
            queue.threads += 1;
            let shared = Arc::clone(self);
            let spawned = threads::spawn(&self.events, "jetlake-storage", move || {
                shared.serve();
                Ok(())
            });
            if let Err(error) = spawned {
                queue.threads -= 1;
                if queue.threads == 0 {
                    let failure = format!("no thread can be started for the storage: {error}");
                    self.events.fail(failure);
                }
                // Otherwise those there are come to it.
                self.asked.notify_one();
            }
        }
    }

    fn serve(self: &Arc<Self>) {
        let mut queue = self.queue.lock();
        loop {
            if let Some(job) = queue.jobs.pop_front() {
                drop(queue);
                job.run();
                queue = self.queue.lock();
                continue;
            }
            if queue.closed {
                break;
            }
            queue.idle += 1;
            let waited = self.asked.wait_for(&mut queue, IDLE_MAX);
            queue.idle -= 1;
            if waited.timed_out() && queue.jobs.is_empty() {
                break;
            }
        }
        queue.threads -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;
    use std::sync::mpsc;

    #[test]
    fn what_is_asked_for_while_it_runs_runs_once_more() {
        let pool = WorkPool::new(&Arc::default());
        let runs = Arc::new(AtomicUsize::new(0));
        let (begun, has_begun) = mpsc::channel();
        let (go, may_go) = mpsc::channel::<()>();
        let may_go = Mutex::new(may_go);
        let job = {
            let runs = Arc::clone(&runs);
            pool.job(move || {
                runs.fetch_add(1, Ordering::SeqCst);
                begun.send(()).unwrap();
                may_go.lock().recv().unwrap();
            })
        };

        job.schedule();
        has_begun.recv().unwrap();
        for _ in 0..10 {
            job.schedule();
        }
        go.send(()).unwrap();
        has_begun.recv().unwrap();
        go.send(()).unwrap();

        assert_eq!(runs.load(Ordering::SeqCst), 2);
        assert!(has_begun.recv_timeout(Duration::from_millis(20)).is_err());
    }

    #[test]
    fn a_job_that_hangs_keeps_nobody_else_waiting() {
        let pool = WorkPool::new(&Arc::default());
        let (release, hang) = mpsc::channel::<()>();
        let hang = Mutex::new(hang);
        let stuck = pool.job(move || {
            let _ = hang.lock().recv();
        });
        let (done, is_done) = mpsc::channel();
        let quick = pool.job(move || done.send(()).unwrap());

        stuck.schedule();
        quick.schedule();

        is_done.recv_timeout(Duration::from_secs(5)).unwrap();
        drop(release);
    }

    #[test]
    fn a_job_that_hangs_keeps_nobody_waiting_who_was_asked_for_together_with_it() {
        let pool = WorkPool::new(&Arc::default());
        let (done, is_done) = mpsc::channel();
        let quick = pool.job(move || done.send(()).unwrap());
        quick.schedule();
        is_done.recv_timeout(Duration::from_secs(5)).unwrap();
        // The thread that did so has nothing to do now, and is the only one.
        while pool.shared.queue.lock().idle == 0 {
            std::thread::yield_now();
        }
        let (release, hang) = mpsc::channel::<()>();
        let hang = Mutex::new(hang);
        let stuck = pool.job(move || {
            let _ = hang.lock().recv();
        });
        // Both before it has woken up.
        let queue = pool.shared.queue.lock();
        let asking = [stuck, quick].map(|job| std::thread::spawn(move || job.schedule()));
        drop(queue);
        for one in asking {
            one.join().unwrap();
        }

        is_done.recv_timeout(Duration::from_secs(5)).unwrap();
        drop(release);
    }
}
