//! The turn of an origin on another server: what its reader brings is staged as what a local origin has.
//!
//! A session of the reader begins after what is stored or staged here, so after any end of it, or of this server, nothing
//! is missing and nothing comes twice. Messages that cannot be stored yet are held, and hold up those after them.
//! Invariant: what is held is of the link's session, and after `looked_at`.

use std::sync::Arc;
use std::time::Instant;

use super::arrivals::Hindrance;
use super::batch::WantedMessages;
use super::origin::Origin;
use super::origin_link::OriginLink;
use super::remote::channel::{ReaderEnd, RemoteChannel};
use super::remote::origin_api::OriginStream;
use super::remote::reader::{Assignment, OriginReader};
use super::remote::remotes::Remote;
use super::remote::trouble::Trouble;
use super::work::{ReplicationTarget, ReplicationTurn, ReplicationWork, RETRY, TURN_BATCHES_MAX};
use crate::common::short_hash::hash8;
use crate::storage::commit::work_pool::Job;
use crate::storage::message::StoreResult;
use crate::storage::store::Store;
use crate::stream::publish::acknowledgement::Refusal;
use crate::stream::publish::ingest::store_refusal;

/// nats-server's codes for an origin that cannot be read.
const MIRROR_FAILED: u16 = 10029;
const SOURCE_FAILED: u16 = 10045;

impl ReplicationWork {
    /// Ends what reads other servers.
    pub fn end_readers(&mut self, end: ReaderEnd) {
        for link in &mut self.links {
            link.end_reader(end);
        }
    }

    pub(in crate::stream) fn turn_of_remote(
        &mut self,
        at: usize,
        target: &ReplicationTarget<'_>,
        remote: &Arc<Remote>,
        job: &Arc<Job>,
        budget: &mut usize,
    ) -> ReplicationTurn {
        let link = &mut self.links[at];
        if link.retry_at.is_some_and(|at| Instant::now() < at) {
            return ReplicationTurn::Failed;
        }
        link.retry_at = None;
        link.shown.refusal = None;
        if let Err(reason) = link.start_reader(target, remote, job) {
            link.shown.refusal = Some(failure(&link.origin, reason));
            link.retry_at = Some(Instant::now() + RETRY);
            return ReplicationTurn::Failed;
        }
        let brought = self.bring_from_remote(at, target, budget);
        let turn = self.outcome(at, brought);
        let Some(committed) = self.committed(target) else {
            return ReplicationTurn::More;
        };
        let link = &mut self.links[at];
        if turn == ReplicationTurn::Done && link.origin.is_mirror && link.is_caught_up() {
            target.stream.answer_for_origin();
        }
        link.confirm(committed);
        turn
    }

    fn bring_from_remote(
        &mut self,
        at: usize,
        target: &ReplicationTarget<'_>,
        budget: &mut usize,
    ) -> Result<ReplicationTurn, Hindrance> {
        let unread = |error| Hindrance::Refused(store_refusal(&error));
        self.begin_if_offered(at, target.stream.store())
            .map_err(unread)?;
        self.make_safe(at, target)?;
        for _ in 0..TURN_BATCHES_MAX {
            let link = &mut self.links[at];
            link.receive();
            if link.held.is_empty() {
                return Ok(ReplicationTurn::Done);
            }
            let wanted = WantedMessages {
                origin: &link.origin,
                identity: &link.identity,
                settings: target.settings,
                first_sequence: link.looked_at + 1,
                now_ns: target.stream.now_ns(),
            };
            let looked_at = self.batch.fill_from(&link.held, &wanted, &mut self.random);
            let staged = self.stage(at, target);
            let link = &mut self.links[at];
            if staged.is_ok() {
                link.look_at(looked_at);
            }
            link.drop_held();
            staged?;
            *budget = budget.saturating_sub(1);
        }
        Ok(ReplicationTurn::More)
    }

    /// A stream was found: it is read from after what is here.
    fn begin_if_offered(&mut self, at: usize, store: &Store) -> StoreResult<()> {
        let link = &mut self.links[at];
        let Some(channel) = link.channel() else {
            return Ok(());
        };
        let Some((session, found)) = channel.offered() else {
            return Ok(());
        };
        link.begin(session, &found);
        let start = self.first_wanted(at, store, found.first_sequence)?;
        channel.begin(session, start);
        Ok(())
    }
}

impl OriginLink {
    fn channel(&self) -> Option<Arc<RemoteChannel>> {
        self.reader
            .as_ref()
            .map(|reader| Arc::clone(reader.channel()))
    }

    fn start_reader(
        &mut self,
        target: &ReplicationTarget<'_>,
        remote: &Arc<Remote>,
        job: &Arc<Job>,
    ) -> Result<(), String> {
        if self.reader.is_some() {
            return Ok(());
        }
        let account = &target.stream.account.name;
        let stream = &target.settings.name;
        // Two servers may have streams of the same name, and one may have had another of that name before.
        let unique = format!(
            "{account} {stream} {} {}",
            target.settings.identity, self.index_name
        );
        let assignment = Assignment {
            remote: Arc::clone(remote),
            origin: Arc::clone(&self.origin),
            consumer: format!("JETLAKE_{}", hash8(&unique)),
            client: format!("jetlake stream {stream}"),
        };
        let channel = RemoteChannel::new(job);
        self.reader = Some(OriginReader::start(
            assignment,
            Arc::clone(&channel),
            target.stream.events(),
        )?);
        self.shown.channel = Some(channel);
        self.session = 0;
        self.held.clear();
        Ok(())
    }

    pub(in crate::stream) fn end_reader(&mut self, end: ReaderEnd) {
        if let Some(reader) = self.reader.take() {
            if end == ReaderEnd::Farewell {
                reader.say_farewell();
            }
        }
        self.session = 0;
        self.held.clear();
    }

    fn begin(&mut self, session: u64, found: &OriginStream) {
        self.session = session;
        self.is_consumed = found.is_consumed;
        self.held.clear();
        if self.identity != found.identity {
            self.begin_with(&found.identity);
        }
    }

    /// What came no longer follows what is here.
    pub(in crate::stream) fn begin_anew(&mut self) {
        self.held.clear();
        if let Some(channel) = self.channel() {
            channel.restart();
        }
    }

    /// Takes what has come, once what came before is stored.
    fn receive(&mut self) {
        if !self.held.is_empty() {
            return;
        }
        if let Some(channel) = self.channel() {
            channel.drain_into(self.session, &mut self.held);
        }
        // What was stored, and not acknowledged before a connection broke, comes again.
        self.drop_held();
    }

    /// Holds nothing that was looked at.
    fn drop_held(&mut self) {
        let looked_at = self.looked_at;
        let held = self.held.iter();
        let done = held.take_while(|delivery| delivery.sequence <= looked_at);
        let (count, bytes) = done.fold((0, 0), |(count, bytes), delivery| {
            (count + 1, bytes + delivery.size_bytes())
        });
        if count > 0 {
            self.held.drain(..count);
            if let Some(channel) = self.channel() {
                channel.finish(self.session, count as u64, bytes);
            }
        }
    }

    fn is_caught_up(&self) -> bool {
        let channel = self.reader.as_ref().map(OriginReader::channel);
        channel.is_some_and(|channel| channel.status().is_caught_up)
    }

    /// Reports to an origin that keeps messages only until they are taken how far they are on disk.
    fn confirm(&mut self, committed: u64) {
        if !self.is_consumed {
            self.unconfirmed.clear();
            return;
        }
        let confirmed = self.confirmed(committed);
        if let (true, Some(channel)) = (confirmed > 0, self.channel()) {
            channel.confirm(self.session, confirmed);
        }
    }
}

/// An origin that nobody has.
pub fn nowhere(origin: &Origin) -> Refusal {
    let api = origin
        .external
        .as_ref()
        .map_or("", |external| &external.api);
    failure(
        origin,
        format!(
            "no remote answers to {api}: add it to jetstream {{ remotes }} in the configuration, import it and the deliver subjects from another account, or connect to its server with leafnodes"
        ),
    )
}

/// What the state of a stream says about trouble with another server.
pub fn elsewhere_refusal(origin: &Origin, remote: &str, trouble: &Trouble) -> Refusal {
    match trouble {
        Trouble::Api {
            code,
            error_code,
            description,
        } => Refusal {
            code: *code,
            error_code: *error_code,
            description: description.clone(),
        },
        trouble => failure(origin, format!("remote {remote}: {trouble}")),
    }
}

fn failure(origin: &Origin, description: String) -> Refusal {
    Refusal {
        code: 500,
        error_code: match origin.is_mirror {
            true => MIRROR_FAILED,
            false => SOURCE_FAILED,
        },
        description,
    }
}
