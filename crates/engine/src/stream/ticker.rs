//! The clock of all streams: it gives each its turn, and a stream whose disk hangs keeps nobody else waiting.
//!
//! One thread goes through all of them as long as none takes long. Where the thread has not come back when the next round begins, another one takes what
//! is left, and leaves out the stream that is still at its turn. Invariant: of each stream at most one turn is under way.

use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use parking_lot::Mutex;

use super::stream::Stream;
use crate::common::events::Level;
use crate::routing::shared::Shared;
use crate::storage::commit::scheduler::StorageThreads;
use crate::storage::commit::work_pool::{Job, THREADS_MAX};

/// Most threads that go through streams: this many disks can hang before the others are late.
const RUNNERS_MAX: usize = THREADS_MAX;

pub struct Ticker {
    round: Arc<TickerRound>,
    runners: Vec<Runner>,
}

/// What the threads share.
struct TickerRound {
    shared: Arc<Shared>,
    waiting: Mutex<VecDeque<Arc<Stream>>>,
    /// Those whose turn is under way, by their address.
    under_way: Mutex<HashSet<usize>>,
}

struct Runner {
    job: Arc<Job>,
    is_busy: Arc<AtomicBool>,
}

impl Ticker {
    pub fn new(shared: Arc<Shared>) -> Self {
        Self {
            round: Arc::new(TickerRound {
                shared,
                waiting: Mutex::default(),
                under_way: Mutex::default(),
            }),
            runners: Vec::new(),
        }
    }

    /// Gives each of the streams a turn; returns at once.
    pub fn begin_round(&mut self, streams: Vec<Arc<Stream>>, threads: &StorageThreads) {
        if streams.is_empty() {
            return;
        }
        *self.round.waiting.lock() = streams.into();
        let idle = self
            .runners
            .iter()
            .find(|runner| !runner.is_busy.load(Ordering::Acquire));
        match idle {
            Some(runner) => runner.start(),
            None if self.runners.len() < RUNNERS_MAX => {
                let runner = Runner::new(&self.round, threads);
                runner.start();
                self.runners.push(runner);
            }
            // All of them wait for a disk; the first that has done so goes on.
            None => {}
        }
    }
}

impl Runner {
    fn new(round: &Arc<TickerRound>, threads: &StorageThreads) -> Self {
        let is_busy = Arc::new(AtomicBool::new(false));
        let (round, busy) = (Arc::clone(round), Arc::clone(&is_busy));
        let job = threads.ticking(move || {
            round.run();
            busy.store(false, Ordering::Release);
        });
        Self { job, is_busy }
    }

    fn start(&self) {
        self.is_busy.store(true, Ordering::Release);
        self.job.schedule();
    }
}

impl TickerRound {
    fn run(&self) {
        loop {
            let next = self.waiting.lock().pop_front();
            let Some(stream) = next else {
                return;
            };
            let address = Arc::as_ptr(&stream) as usize;
            if self.under_way.lock().insert(address) {
                stream.tick(self.shared.clock.wall_ns());
                self.under_way.lock().remove(&address);
            }
        }
    }
}

impl Stream {
    /// What was found to be damaged since the stream was opened, or since the clock came last.
    pub(super) fn report_findings(&self) {
        for finding in self.store.take_findings() {
            let name = &self.settings().name;
            let text = format!("Stream '{} > {name}': {finding}", self.account.name);
            self.events().log(Level::Warning, text);
        }
    }
}
