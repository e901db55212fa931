//! Brings the messages of other streams into one that mirrors them, or has them as sources.
//!
//! A job reads what an origin has committed and stages it here (`inflow_work`); it runs when an origin has something new, when streams come, go or change,
//! and when there is room again. Invariant: a run is on one thread at a time, and none begins after `stop`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::{Mutex, MutexGuard};
use serde::Serialize;

use super::followers::Followers;
use super::from_remote::elsewhere_refusal;
use super::origin::Origin;
use super::origins::{OriginLocation, OriginLookup};
use super::remote::channel::ReaderEnd;
use super::work::{ReplicationTurn, ReplicationWork, Shown};
use crate::storage::commit::scheduler::StorageThreads;
use crate::storage::commit::work_pool::Job;
use crate::storage::message::StoreResult;
use crate::stream::settings::StreamSettings;
use crate::stream::stream::Stream;

/// An origin that is there reports at least this often.
const HEARTBEAT_NS: i64 = 1_000_000_000;

/// The state of an origin.
#[derive(Debug, Clone, Serialize)]
pub struct OriginState {
    pub lag: u64,
    /// How long ago it last sent something; -1 is never.
    pub active_ns: i64,
    /// The last sequence that was taken of it, where the stream does not have the same ones.
    pub sequence: u64,
    /// Code, error code and description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<(u16, u16, String)>,
}

/// An origin on this server, whether it is there or not, and those who follow the same stream.
#[derive(Clone)]
struct Followed {
    account: String,
    origin: Arc<Origin>,
    followers: Arc<Followers>,
}

impl Followed {
    fn is(&self, other: &Self) -> bool {
        self.account == other.account && self.origin == other.origin
    }

    fn is_of_same_stream(&self, other: &Self) -> bool {
        self.account == other.account && self.origin.name == other.origin.name
    }
}

pub struct Replicator {
    stream: Weak<Stream>,
    origin_lookup: OriginLookup,
    job: OnceLock<Arc<Job>>,
    work: Mutex<ReplicationWork>,
    /// The origins, with what may be seen of them.
    shown: Mutex<Vec<(Arc<Origin>, Shown)>>,
    /// The origins on this server.
    followed: Mutex<Vec<Followed>>,
    /// A commit here may be what it waits for.
    waits: AtomicBool,
    /// There is something to do when its time comes.
    is_timed: AtomicBool,
    /// Changes under the lock of `followed`: what has stopped follows nobody.
    is_stopped: AtomicBool,
}

impl Replicator {
    /// Another stream of the account.
    pub fn neighbour(&self, name: &str) -> Option<Arc<Stream>> {
        self.origin_lookup.find(name)
    }

    pub fn new(
        stream: Weak<Stream>,
        origin_lookup: OriginLookup,
        threads: &StorageThreads,
    ) -> Arc<Self> {
        let replicator = Arc::new(Self {
            stream,
            work: Mutex::new(ReplicationWork::new(origin_lookup.place.clone())),
            origin_lookup,
            job: OnceLock::new(),
            shown: Mutex::default(),
            followed: Mutex::default(),
            waits: AtomicBool::new(false),
            is_timed: AtomicBool::new(false),
            is_stopped: AtomicBool::new(false),
        });
        let weak = Arc::downgrade(&replicator);
        let job = threads.reading(move || {
            if let Some(replicator) = weak.upgrade() {
                replicator.run();
            }
        });
        // Nobody else has it yet.
        let _ = replicator.job.set(job);
        replicator
    }

    fn job(&self) -> &Arc<Job> {
        self.job.get().expect("it was set when this was made")
    }

    /// Follows the origins of the stream, and no others.
    pub fn follow(&self) {
        let followed = self.followed.lock();
        self.is_stopped.store(false, Ordering::Release);
        if let Some(stream) = self.stream.upgrade() {
            self.follow_origins(followed, &stream.settings());
        }
    }

    /// The same where origins outside of the account may be somewhere else now. The stream may be about to stop, or to get other settings.
    pub fn look_again(&self) {
        let followed = self.followed.lock();
        let Some(stream) = self.stream.upgrade() else {
            return;
        };
        let settings = stream.settings();
        let mut origins = settings.origins.iter();
        let is_outside = origins.any(|origin| origin.external.is_some());
        if is_outside && !self.is_stopped.load(Ordering::Acquire) {
            self.follow_origins(followed, &settings);
        }
    }

    fn follow_origins(
        &self,
        mut followed: MutexGuard<'_, Vec<Followed>>,
        settings: &StreamSettings,
    ) {
        let had_none = followed.is_empty() && self.shown.lock().is_empty();
        if had_none && settings.origins.is_empty() {
            return;
        }
        let mut wanted = Vec::new();
        for origin in &settings.origins {
            if let OriginLocation::Account(account) = self.origin_lookup.location_of(origin) {
                wanted.push(Followed {
                    followers: self.origin_lookup.followers(&account).of(&origin.name),
                    account,
                    origin: Arc::clone(origin),
                });
            }
        }
        for each in &wanted {
            each.followers.add(self.job(), &each.origin);
        }
        let mut left = std::mem::replace(&mut *followed, wanted.clone());
        drop(followed);
        left.retain(|each| !wanted.iter().any(|other| other.is(each)));
        self.leave(left);
        self.job().schedule();
    }

    /// Follows these no more.
    fn leave(&self, mut left: Vec<Followed>) {
        for each in &left {
            each.followers.remove(self.job(), &each.origin);
        }
        left.dedup_by(|one, other| one.is_of_same_stream(other));
        for each in left {
            if let Some(stream) = self.origin_lookup.find_in(&each.account, &each.origin.name) {
                stream.lost_follower();
            }
        }
    }

    /// Brings nothing more; returns when that is so.
    pub fn stop(&self, end: ReaderEnd) {
        let mut followed = self.followed.lock();
        if self.is_stopped.swap(true, Ordering::AcqRel) {
            return;
        }
        let left = std::mem::take(&mut *followed);
        drop(followed);
        self.leave(left);
        // Waits for a run that has begun. What is not written down is found again in the messages.
        let _ = self.save();
        self.work.lock().end_readers(end);
    }

    /// Something here was committed or removed: there may be room again.
    pub fn ask_if_waiting(&self) {
        if self.waits.load(Ordering::Acquire) {
            self.job().schedule();
        }
    }

    /// The clock comes by.
    pub fn tick(&self) {
        if self.is_timed.load(Ordering::Acquire) || self.waits.load(Ordering::Acquire) {
            self.job().schedule();
        }
    }

    /// Writes down how far the sources are, before messages that say it are removed.
    pub fn save(&self) -> StoreResult<()> {
        match self.stream.upgrade() {
            Some(stream) => self.work.lock().save(stream.store()),
            None => Ok(()),
        }
    }

    /// The state of each origin, in the order of the settings.
    pub fn states(&self, settings: &StreamSettings, now_ns: i64) -> Vec<OriginState> {
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
        let refusal = shown.refusal.as_ref();
        let refusal = refusal.map(|refusal| {
            let description = refusal.description.clone();
            (refusal.code, refusal.error_code, description)
        });
        let sequence = if origin.is_mirror { 0 } else { shown.sequence };
        let account = match self.origin_lookup.location_of(origin) {
            OriginLocation::Account(account) => account,
            OriginLocation::Server(remote) => {
                let name = &remote.options.name;
                return state_elsewhere(origin, name, &shown, sequence, refusal);
            }
            OriginLocation::Nowhere => {
                return state_elsewhere(origin, "", &shown, sequence, refusal)
            }
        };
        let stream = self.origin_lookup.find_in(&account, &origin.name);
        let is_there = stream.is_some();
        let lag = stream.map_or(0, |stream| {
            let filters = origin.filters.iter();
            let store = stream.store();
            filters
                .map(|filter| {
                    store
                        .messages()
                        .count_matches(filter.subject.as_bytes(), shown.looked_at + 1)
                })
                .sum()
        });
        let ago_ns = now_ns.saturating_sub(shown.heard_ns).max(0);
        OriginState {
            lag,
            active_ns: match shown.heard_ns {
                0 => -1,
                _ if is_there => ago_ns % HEARTBEAT_NS,
                _ => ago_ns,
            },
            sequence,
            error: match refusal {
                None if !is_there => Some((404, 10059, "stream not found".to_owned())),
                refusal => refusal,
            },
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
        let turn = work.run(&stream, &settings, &self.origin_lookup, self.job());
        let waits = turn == ReplicationTurn::Waits || work.awaits_commit();
        self.waits.store(waits, Ordering::Release);
        self.is_timed.store(work.is_timed(), Ordering::Release);
        *self.shown.lock() = work.shown();
        drop(work);
        if turn == ReplicationTurn::More {
            self.job().schedule();
        }
    }
}

/// Of an origin on another server, or nowhere.
fn state_elsewhere(
    origin: &Origin,
    remote: &str,
    shown: &Shown,
    sequence: u64,
    refusal: Option<(u16, u16, String)>,
) -> OriginState {
    let status = shown.channel.as_ref().map(|channel| channel.status());
    let status = status.unwrap_or_default();
    let trouble = status.trouble.map(|trouble| {
        let refusal = elsewhere_refusal(origin, remote, &trouble);
        (refusal.code, refusal.error_code, refusal.description)
    });
    OriginState {
        lag: status.lag,
        active_ns: status
            .heard
            .map_or(-1, |ago| i64::try_from(ago.as_nanos()).unwrap_or(i64::MAX)),
        sequence,
        error: refusal.or(trouble),
    }
}
