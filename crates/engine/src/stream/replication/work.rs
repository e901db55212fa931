//! What a replicator does in one run: gives each origin a turn, and keeps track of how far it is.
//!
//! A mirror continues after its own last sequence, a stream with sources after what `origin_positions` says. Both
//! include what is staged, and both are looked up again when something staged was refused, so that nothing is stored
//! after a missing message. Invariant: `looked_at` of a link is never ahead of what is stored or staged of its origin,
//! except for messages that are not wanted.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::arrivals::Hindrance;
use super::batch::{OriginBatch, WantedMessages};
use super::from_remote;
use super::origin::Origin;
use super::origin_link::OriginLink;
use super::origins::{OriginLocation, OriginLookup};
use super::positions::{OriginPositions, SourcePosition};
use super::remote::channel::{ReaderEnd, RemoteChannel};
use super::remote::origin_api::ReadStart;
use crate::common::clock::system_ns;
use crate::common::random::Random;
use crate::storage::commit::work_pool::Job;
use crate::storage::message::{Limits, StoreError, StoreResult};
use crate::storage::store::Store;
use crate::stream::publish::acknowledgement::Refusal;
use crate::stream::publish::ingest::store_refusal;
use crate::stream::remembered::FileLocation;
use crate::stream::settings::{Retention, StreamSettings};
use crate::stream::stream::Stream;

/// Batches of one origin in one turn; then others have theirs.
pub(in crate::stream) const TURN_BATCHES_MAX: usize = 8;

/// Batches of all origins in one run; then other streams have theirs.
const RUN_BATCHES_MAX: usize = 32;

/// More messages than a turn ever brings: what is nearer than this to a limit may be removed during one.
const TURN_MESSAGES: u64 = 8192;

/// How long after a failure it is tried again.
pub(in crate::stream) const RETRY: Duration = Duration::from_secs(2);

/// How often it is written down how far the sources are, where messages that say it may be removed by a limit, and where they may not.
const SAVE_INTERVAL_LIMITED: Duration = Duration::from_secs(1);
const SAVE_INTERVAL: Duration = Duration::from_secs(5);

/// What others may see of an origin.
#[derive(Clone, Default)]
pub struct Shown {
    /// The last one that was taken.
    pub sequence: u64,
    /// The last one that was looked at or taken.
    pub looked_at: u64,
    /// When it last sent something; 0 is never.
    pub heard_ns: i64,
    pub is_there: bool,
    /// Why it does not go on.
    pub refusal: Option<Refusal>,
    /// The state of the connection to another server.
    pub channel: Option<Arc<RemoteChannel>>,
}

/// What became of a run, or of the turn of one origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReplicationTurn {
    /// There is nothing more.
    Done,
    /// It goes on when something has changed here.
    Waits,
    /// It is tried again after a while.
    Failed,
    More,
}

pub struct ReplicationWork {
    settings: Option<Arc<StreamSettings>>,
    pub(in crate::stream) links: Vec<OriginLink>,
    /// Whose turn it is first.
    first_link: usize,
    positions: OriginPositions,
    /// Those of the store when it was found out how far the stream is.
    resets: Option<u64>,
    pub(in crate::stream) batch: OriginBatch,
    pub(in crate::stream) random: Random,
    saved_at: Instant,
}

/// The stream that gets the messages.
pub(in crate::stream) struct ReplicationTarget<'a> {
    pub(in crate::stream) stream: &'a Arc<Stream>,
    pub(in crate::stream) settings: &'a Arc<StreamSettings>,
    pub(in crate::stream) resets: u64,
}

impl ReplicationWork {
    pub fn new(place: Option<FileLocation>) -> Self {
        Self {
            settings: None,
            links: Vec::new(),
            first_link: 0,
            positions: OriginPositions::new(place),
            resets: None,
            batch: OriginBatch::default(),
            random: Random::seeded(system_ns() as u64),
            saved_at: Instant::now(),
        }
    }

    /// What may be seen of the origins.
    pub fn shown(&self) -> Vec<(Arc<Origin>, Shown)> {
        let links = self.links.iter();
        links
            .map(|link| (Arc::clone(&link.origin), link.shown.clone()))
            .collect()
    }

    /// Whether there is something to do after a while.
    pub fn is_timed(&self) -> bool {
        let mut links = self.links.iter();
        links.any(|link| link.retry_at.is_some()) || !self.positions.is_saved()
    }

    /// Whether a commit here must be reported to an origin.
    pub fn awaits_commit(&self) -> bool {
        self.links.iter().any(|link| !link.unconfirmed.is_empty())
    }

    /// Writes down how far the sources are; everything staged is committed for that.
    pub fn save(&mut self, store: &Store) -> StoreResult<()> {
        let Some(mut resets) = self.resets else {
            return Ok(());
        };
        if self.positions.is_saved() {
            return Ok(());
        }
        store.commit()?;
        if let (true, Some(settings)) = (store.resets() != resets, self.settings.clone()) {
            // What was staged went with a commit that failed: how far the sources are is what is stored.
            self.resets = None;
            resets = self.load(store, &settings)?;
        }
        self.saved_at = Instant::now();
        match self.positions.save(store, resets) {
            Err(StoreError::Full) => {
                store.give_back_space()?;
                self.positions.save(store, resets).map(drop)
            }
            saved => saved.map(drop),
        }
    }

    /// Gives each origin a turn, and returns what to do next.
    pub fn run(
        &mut self,
        stream: &Arc<Stream>,
        settings: &Arc<StreamSettings>,
        origin_lookup: &OriginLookup,
        job: &Arc<Job>,
    ) -> ReplicationTurn {
        self.link(settings);
        if self.links.is_empty() {
            return ReplicationTurn::Done;
        }
        let Ok(resets) = self.load(stream.store(), settings) else {
            // What cannot be read now may be readable later.
            self.links[0].retry_at = Some(Instant::now() + RETRY);
            return ReplicationTurn::Failed;
        };
        let target = ReplicationTarget {
            stream,
            settings,
            resets,
        };
        let mut budget = RUN_BATCHES_MAX;
        let mut outcome = ReplicationTurn::Done;
        let count = self.links.len();
        for number in 0..count {
            let at = (self.first_link + number) % count;
            if budget == 0 {
                self.first_link = at;
                outcome = ReplicationTurn::More;
                break;
            }
            let turn = self.turn_of(at, &target, origin_lookup, job, &mut budget);
            outcome = outcome.max(turn);
            if self.resets.is_none() {
                // Nobody goes on before it is known again where.
                outcome = ReplicationTurn::More;
                break;
            }
        }
        stream.commit_soon();
        self.save_if_due(stream, settings);
        outcome
    }

    /// Has a link for each origin of the settings.
    fn link(&mut self, settings: &Arc<StreamSettings>) {
        let before = self.settings.replace(Arc::clone(settings));
        if let Some(before) = before {
            if Arc::ptr_eq(&before, settings) {
                return;
            }
            if before.is_mirror != settings.is_mirror {
                // What it had as a mirror may say how far its sources are.
                self.resets = None;
            }
        }
        let mut old = std::mem::take(&mut self.links);
        for origin in &settings.origins {
            let same = old.iter().position(|link| link.origin == *origin);
            self.links.push(match same {
                Some(at) => old.swap_remove(at),
                None => OriginLink::new(origin),
            });
        }
        for link in &mut old {
            link.end_reader(ReaderEnd::Farewell);
        }
    }

    /// Finds out how far the stream is, if that is not known.
    fn load(&mut self, store: &Store, settings: &StreamSettings) -> StoreResult<u64> {
        if let Some(resets) = self.resets {
            return Ok(resets);
        }
        // What is staged counts, and is read as what is committed is. Whether that fails shows in the number of resets.
        let _ = store.commit();
        let resets = store.resets();
        if !settings.is_mirror {
            self.positions.load(store)?;
        }
        for link in &mut self.links {
            link.looked_at = 0;
            link.unconfirmed.clear();
            link.begin_anew();
        }
        self.resets = Some(resets);
        Ok(resets)
    }

    fn turn_of(
        &mut self,
        at: usize,
        target: &ReplicationTarget<'_>,
        origin_lookup: &OriginLookup,
        job: &Arc<Job>,
        budget: &mut usize,
    ) -> ReplicationTurn {
        let account = match origin_lookup.location_of(&self.links[at].origin) {
            OriginLocation::Account(account) => account,
            OriginLocation::Server(remote) => {
                return self.turn_of_remote(at, target, &remote, job, budget);
            }
            OriginLocation::Nowhere => {
                let link = &mut self.links[at];
                link.shown.refusal = Some(from_remote::nowhere(&link.origin));
                return ReplicationTurn::Done;
            }
        };
        let link = &mut self.links[at];
        let now_ns = target.stream.now_ns();
        if link.shown.is_there {
            link.shown.heard_ns = now_ns;
        }
        let from = origin_lookup.find_in(&account, &link.origin.name);
        link.shown.is_there = from.is_some();
        let Some(from) = from else {
            link.shown.refusal = None;
            return ReplicationTurn::Done;
        };
        link.shown.heard_ns = now_ns;
        if link.retry_at.is_some_and(|at| Instant::now() < at) {
            return ReplicationTurn::Failed;
        }
        link.retry_at = None;
        link.shown.refusal = None;
        let from_settings = from.settings();
        if link.identity != from_settings.identity {
            link.begin_with(&from_settings.identity);
        }
        let brought = self.bring(at, target, &from, budget);
        let turn = self.outcome(at, brought);
        let Some(committed) = self.committed(target) else {
            return ReplicationTurn::More;
        };
        let link = &mut self.links[at];
        if turn == ReplicationTurn::Done && link.origin.is_mirror {
            target.stream.answer_for_origin();
        }
        if from_settings.retention == Retention::Limits {
            link.unconfirmed.clear();
        } else {
            link.release_through(committed, &from, job);
        }
        turn
    }

    /// What comes of it when something stands in the way.
    pub(in crate::stream) fn outcome(
        &mut self,
        at: usize,
        brought: Result<ReplicationTurn, Hindrance>,
    ) -> ReplicationTurn {
        match brought {
            Ok(turn) => turn,
            Err(Hindrance::Room) => ReplicationTurn::Waits,
            Err(Hindrance::Changed) => ReplicationTurn::More,
            Err(Hindrance::Behind) => {
                self.resets = None;
                ReplicationTurn::More
            }
            Err(Hindrance::Refused(refusal)) => {
                let link = &mut self.links[at];
                link.shown.refusal = Some(refusal);
                link.retry_at = Some(Instant::now() + RETRY);
                ReplicationTurn::Failed
            }
        }
    }

    /// The last sequence that is committed; none if something staged was refused, whose sequence may be another message's now.
    pub(in crate::stream) fn committed(&mut self, target: &ReplicationTarget<'_>) -> Option<u64> {
        let store = target.stream.store();
        let committed = store.messages().counts().last_sequence;
        if store.resets() != target.resets {
            self.resets = None;
        }
        self.resets.map(|_| committed)
    }

    /// Brings some messages over.
    fn bring(
        &mut self,
        at: usize,
        target: &ReplicationTarget<'_>,
        from: &Stream,
        budget: &mut usize,
    ) -> Result<ReplicationTurn, Hindrance> {
        let unread = |error| Hindrance::Refused(store_refusal(&error));
        let start = self
            .first_wanted(
                at,
                target.stream.store(),
                from.store().messages().counts().first_sequence,
            )
            .map_err(unread)?;
        let mut first = match start {
            ReadStart::Sequence(sequence) => sequence,
            ReadStart::Time(time_ns) => from
                .store()
                .messages()
                .sequence_at(time_ns)
                .map_err(unread)?,
        };
        let known = self.positions.get(&self.links[at].index_name);
        self.links[at]
            .note_begun(known, target.stream.store(), from.store(), first)
            .map_err(unread)?;
        self.make_safe(at, target)?;
        for _ in 0..TURN_BATCHES_MAX {
            let link = &mut self.links[at];
            let wanted = WantedMessages {
                origin: &link.origin,
                identity: &link.identity,
                settings: target.settings,
                first_sequence: first,
                now_ns: target.stream.now_ns(),
            };
            let (looked_at, is_all) = self
                .batch
                .fill(from.store(), &wanted, &mut self.random)
                .map_err(unread)?;
            self.stage(at, target)?;
            self.links[at].look_at(looked_at);
            first = looked_at + 1;
            if is_all {
                return Ok(ReplicationTurn::Done);
            }
            *budget = budget.saturating_sub(1);
        }
        Ok(ReplicationTurn::More)
    }

    /// Stages the batch; what was staged is noted even if something then stands in the way.
    pub(in crate::stream) fn stage(
        &mut self,
        at: usize,
        target: &ReplicationTarget<'_>,
    ) -> Result<(), Hindrance> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let link = &mut self.links[at];
        let arrivals = self.batch.arrivals(link.origin.is_mirror);
        let mut sequences = self.batch.sequences();
        let mut last = None;
        let mut stored_as = None;
        let staged = target.stream.take_arrivals(
            target.settings,
            arrivals,
            target.resets,
            |taken_as: Option<u64>| {
                last = sequences.next();
                stored_as = taken_as.or(stored_as);
            },
        );
        if let Some(sequence) = last {
            // What the stream had already may be staged itself, and not committed.
            let stored_as =
                stored_as.unwrap_or_else(|| target.stream.store().last_given_sequence());
            link.look_at(sequence);
            link.shown.sequence = sequence;
            link.unconfirmed.push_back((stored_as, sequence));
            if !link.origin.is_mirror {
                let position = SourcePosition {
                    sequence,
                    identity: link.identity.clone(),
                    stored_as,
                    first: link.begun.unwrap_or(0),
                };
                self.positions.set(&link.index_name, position);
            }
        }
        staged
    }

    /// The first message that is still to be taken, of a stream whose first one is `first_sequence`. A time it is only as long as nothing was taken.
    pub(in crate::stream) fn first_wanted(
        &mut self,
        at: usize,
        store: &Store,
        first_sequence: u64,
    ) -> StoreResult<ReadStart> {
        let link = &mut self.links[at];
        let origin = &link.origin;
        let time_ns = origin.start_time_ns.filter(|_| origin.start_sequence == 0);
        let taken = if origin.is_mirror {
            match (store.last_given_sequence(), time_ns) {
                (0, Some(_)) => None,
                (0, None) => {
                    let first = origin.start_sequence.max(first_sequence).max(1);
                    if first > 1 && origin.start_time_ns.is_none() {
                        store.advance(first).map(drop)?;
                    }
                    Some(first - 1)
                }
                (last, _) => Some(last),
            }
        } else {
            let position = self.positions.get(&link.index_name);
            let taken = match position {
                Some(position) if position.identity == link.identity => Some(position.sequence),
                Some(position) if position.identity.is_empty() => Some(position.sequence),
                // Another stream of that name.
                Some(_) => Some(0),
                None if time_ns.is_some() => None,
                None => Some(origin.start_sequence.max(1) - 1),
            };
            link.shown.sequence = position.and(taken).unwrap_or(0);
            taken
        };
        if let (None, 0, Some(time_ns)) = (taken, link.looked_at, time_ns) {
            return Ok(ReadStart::Time(time_ns));
        }
        let looked_at = taken.unwrap_or(0).max(link.looked_at);
        link.look_at(looked_at);
        Ok(ReadStart::Sequence(looked_at + 1))
    }

    /// What is staged now may remove messages that say how far other sources are: that is written down first.
    pub(in crate::stream) fn make_safe(
        &mut self,
        at: usize,
        target: &ReplicationTarget<'_>,
    ) -> Result<(), Hindrance> {
        let limits = target.settings.removing_limits();
        let index_name = &self.links[at].index_name;
        let store = target.stream.store();
        let last = store.last_given_sequence();
        let reached = if limits.per_subject_max.is_some()
            || limits.bytes_max.is_some()
            || target.settings.allow_rollup
        {
            last
        } else if let Some(most) = limits.messages_max {
            last.saturating_add(TURN_MESSAGES).saturating_sub(most)
        } else {
            0
        };
        if !self.positions.needs_saving_before(index_name, reached) {
            return Ok(());
        }
        match self.positions.save(store, target.resets) {
            Ok(true) => Ok(()),
            Ok(false) if store.resets() != target.resets => Err(Hindrance::Behind),
            Ok(false) => Err(Hindrance::Room),
            Err(error) => Err(Hindrance::Refused(store_refusal(&error))),
        }
    }

    fn save_if_due(&mut self, stream: &Stream, settings: &StreamSettings) {
        let Some(resets) = self.resets.filter(|_| !self.positions.is_saved()) else {
            return;
        };
        let is_limited = settings.removing_limits() != Limits::default() || settings.allow_rollup;
        let interval = match is_limited {
            true => SAVE_INTERVAL_LIMITED,
            false => SAVE_INTERVAL,
        };
        if self.saved_at.elapsed() >= interval {
            self.saved_at = Instant::now();
            // What is not written down is found again in the messages.
            let _ = self.positions.save(stream.store(), resets);
        }
    }
}
