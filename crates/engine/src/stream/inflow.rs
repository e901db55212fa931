//! Brings the messages of other streams into one that mirrors them, or has them as sources.
//!
//! A job reads what an origin has committed and stages it here (`inflow_work`); it runs when an origin has something new, when streams come, go or change,
//! and when there is room again. Invariant: a run is on one thread at a time, and none begins after `stop`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;
use serde::Serialize;

use super::followers::{Followers, FollowersByName};
use super::inflow_work::{Shown, Turn, Work};
use super::origin::Origin;
use super::origin_positions::Place;
use super::settings::Settings;
use super::stream::Stream;
use crate::storage::keeper::StorageThreads;
use crate::storage::message::StoreResult;
use crate::storage::work_pool::Job;

/// An origin that is there is heard of so often at least.
const HEARTBEAT_NS: i64 = 1_000_000_000;

/// Finds another stream of the account by its name.
pub type FindStream = dyn Fn(&str) -> Option<Arc<Stream>> + Send + Sync;

/// What an inflow needs of its surroundings.
#[derive(Clone)]
pub struct Neighbours {
    pub find: Arc<FindStream>,
    pub followers: Arc<FollowersByName>,
    /// Where to write down how far the sources are; nowhere for a stream in memory.
    pub place: Option<Place>,
}

/// How it stands with an origin.
#[derive(Debug, Clone, Serialize)]
pub struct OriginState {
    pub lag: u64,
    /// How long ago it was heard of; -1 is never.
    pub active_ns: i64,
    /// The last sequence that was taken of it, where the stream does not have the same ones.
    pub sequence: u64,
    /// Code, error code and description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<(u16, u16, String)>,
}

pub struct Inflow {
    stream: Weak<Stream>,
    neighbours: Neighbours,
    job: OnceLock<Arc<Job>>,
    work: Mutex<Work>,
    /// The origins, with what may be seen of them.
    shown: Mutex<Vec<(Arc<Origin>, Shown)>>,
    /// The origins of the account, each by its name.
    followed: Mutex<Vec<(String, Arc<Followers>)>>,
    /// A commit here may be what it waits for.
    waits: AtomicBool,
    /// Something is to be done when its time comes.
    is_timed: AtomicBool,
    is_stopped: AtomicBool,
}

impl Inflow {
    /// Another stream of the account.
    pub fn neighbour(&self, name: &str) -> Option<Arc<Stream>> {
        (self.neighbours.find)(name)
    }

    pub fn new(
        stream: Weak<Stream>,
        neighbours: Neighbours,
        threads: &StorageThreads,
    ) -> Arc<Self> {
        let inflow = Arc::new(Self {
            stream,
            work: Mutex::new(Work::new(neighbours.place.clone())),
            neighbours,
            job: OnceLock::new(),
            shown: Mutex::default(),
            followed: Mutex::default(),
            waits: AtomicBool::new(false),
            is_timed: AtomicBool::new(false),
            is_stopped: AtomicBool::new(false),
        });
        let weak = Arc::downgrade(&inflow);
        let job = threads.reading(move || {
            if let Some(inflow) = weak.upgrade() {
                inflow.run();
            }
        });
        // Nobody else has it yet.
        let _ = inflow.job.set(job);
        inflow
    }

    fn job(&self) -> &Arc<Job> {
        self.job.get().expect("it was set when this was made")
    }

    /// Follows the origins of these settings, and no others.
    pub fn follow(&self, settings: &Settings) {
        self.is_stopped.store(false, Ordering::Release);
        let mut followed = self.followed.lock();
        if followed.is_empty() && settings.origins.is_empty() {
            return;
        }
        let local = settings.origins.iter();
        let local = local.filter(|origin| origin.external.is_none());
        let wanted: Vec<(String, Arc<Followers>)> = local
            .map(|origin| {
                let followers = self.neighbours.followers.of(&origin.name);
                (origin.name.clone(), followers)
            })
            .collect();
        for (_, followers) in &wanted {
            followers.add(self.job());
        }
        let mut left = std::mem::replace(&mut *followed, wanted.clone());
        drop(followed);
        left.retain(|(name, _)| wanted.iter().all(|(other, _)| other != name));
        self.leave(left);
        self.job().ask();
    }

    /// Follows these no more.
    fn leave(&self, left: Vec<(String, Arc<Followers>)>) {
        for (name, followers) in left {
            followers.remove(self.job());
            if let Some(stream) = (self.neighbours.find)(&name) {
                stream.lost_follower();
            }
        }
    }

    /// Brings nothing more; returns when that is so.
    pub fn stop(&self) {
        if self.is_stopped.swap(true, Ordering::AcqRel) {
            return;
        }
        let left = std::mem::take(&mut *self.followed.lock());
        self.leave(left);
        // Waits for a run that has begun. What is not written down is found again in the messages.
        let _ = self.save();
    }

    /// Something here was committed or removed: there may be room again.
    pub fn ask_if_waiting(&self) {
        if self.waits.load(Ordering::Acquire) {
            self.job().ask();
        }
    }

    /// The clock comes by.
    pub fn tick(&self) {
        if self.is_timed.load(Ordering::Acquire) || self.waits.load(Ordering::Acquire) {
            self.job().ask();
        }
    }

    /// Writes down how far the sources are, before messages that say it are removed.
    pub fn save(&self) -> StoreResult<()> {
        match self.stream.upgrade() {
            Some(stream) => self.work.lock().save(stream.store()),
            None => Ok(()),
        }
    }

    /// How it stands with each origin, in the order of the settings.
    pub fn states(&self, settings: &Settings, now_ns: i64) -> Vec<OriginState> {
        if settings.origins.is_empty() {
            return Vec::new();
        }
        let all = self.shown.lock().clone();
        let shown_of = |origin: &Arc<Origin>| {
            let known = all.iter().find(|(other, _)| other == origin);
            known.map(|(_, shown)| shown.clone()).unwrap_or_default()
        };
        settings
            .origins
            .iter()
            .map(|origin| self.state(origin, shown_of(origin), now_ns))
            .collect()
    }

    fn state(&self, origin: &Origin, shown: Shown, now_ns: i64) -> OriginState {
        let stream = match origin.external {
            None => (self.neighbours.find)(&origin.name),
            Some(_) => None,
        };
        let is_there = stream.is_some();
        let lag = stream.map_or(0, |stream| {
            let filters = origin.filters.iter();
            let store = stream.store();
            filters
                .map(|filter| store.count_matches(filter.subject.as_bytes(), shown.looked_at + 1))
                .sum()
        });
        let ago_ns = now_ns.saturating_sub(shown.heard_ns).max(0);
        let error = match shown.refusal {
            Some(refusal) => Some((refusal.code, refusal.error_code, refusal.description)),
            // Of a stream elsewhere nothing is known, not even that it is missing.
            None if !is_there && origin.external.is_none() => {
                Some((404, 10059, "stream not found".to_owned()))
            }
            None => None,
        };
        OriginState {
            lag,
            active_ns: match shown.heard_ns {
                0 => -1,
                _ if is_there => ago_ns % HEARTBEAT_NS,
                _ => ago_ns,
            },
            sequence: if origin.is_mirror { 0 } else { shown.sequence },
            error,
        }
    }

    fn run(&self) {
        let Some(stream) = self.stream.upgrade() else {
            return;
        };
        let mut work = self.work.lock();
        if self.is_stopped.load(Ordering::Acquire) {
            return;
        }
        // Whatever is committed from here on asks for another run, until it is clear that nobody waits for it.
        self.waits.store(true, Ordering::Release);
        let settings = stream.settings();
        let turn = work.run(&stream, &settings, &*self.neighbours.find, self.job());
        let waits = turn == Turn::Waits || work.awaits_commit();
        self.waits.store(waits, Ordering::Release);
        self.is_timed.store(work.is_timed(), Ordering::Release);
        *self.shown.lock() = work.shown();
        drop(work);
        if turn == Turn::More {
            self.job().ask();
        }
    }
}
