//! One stream: where publishes come in, where they are stored, and who is notified when that is durable.
//!
//! A publish is staged by the thread that read it (`ingest`), committed by a thread of the storage (`CommitScheduler`), and answered by that thread
//! (`on_committed`). Invariant: no lock of a stream is held while something is sent, because what is sent may end in a stream again.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use ahash::AHashMap;
use parking_lot::Mutex;

use super::batch::commit;
use super::consumers::consuming::ConsumersHost;
use super::consumers::removing::Releases;
use super::publish::answer_queue::BufferLimits;
use super::publish::checks::Publication;
use super::publish::ingest::{Incomplete, Ingest, Readers};
use super::publish::pending::Drained;
use super::publish::sender_rights;
use super::read::reads::Reads;
use super::replication::arrivals;
use super::replication::arrivals::{Arrival, Hindrance};
use super::replication::followers::Followers;
use super::replication::origins::OriginLookup;
use super::replication::remote::channel::ReaderEnd;
use super::replication::replicator::{OriginState, Replicator};
use super::schedule::remembered_schedules::RememberedSchedules;
use super::settings::{Retention, StreamSettings};
use super::staged_commit::requests::UploadRequests;
use super::usage::account_usage::{AccountUsage, StreamUsage};
use crate::common::events::Events;
use crate::consumer::consumers::{Consumers, JournalPlace, StreamFacts};
use crate::consumer::timers::ConsumerTimers;
use crate::routing::account::Account;
use crate::routing::router::Publisher;
use crate::routing::sender::Senders;
use crate::routing::shared::Shared;
use crate::routing::sink::Sink;
use crate::routing::staging::Staging;
use crate::routing::subscription::{Receiver, Restrictions, Subscription};
use crate::storage::commit::scheduler::{CommitScheduler, StorageThreads};
use crate::storage::commit::work_pool::Job;
use crate::storage::message::{Purge, StoreResult};
use crate::storage::store::staged_work::{Change, StagedWork};
use crate::storage::store::Store;
use crate::wire::Publish;

/// The queue group in which streams answer direct gets: one of those that could does.
const DIRECT_GET_GROUP: &[u8] = b"_sys_";

/// No connection has this number.
const UNKNOWN_PUBLISHER: u64 = u64::MAX;

/// What a stream needs from outside.
pub struct StreamContext<'a> {
    pub account: Arc<Account>,
    pub senders: Arc<Senders>,
    pub shared: Arc<Shared>,
    pub threads: &'a Arc<StorageThreads>,
    pub timers: Arc<ConsumerTimers>,
    pub long_ack_subjects: bool,
    /// Where its consumers are on disk.
    pub journal: Option<JournalPlace>,
    pub buffer: BufferLimits,
    pub usage: Arc<AccountUsage>,
    pub incomplete: Incomplete,
    pub origin_lookup: OriginLookup,
    /// For a store whose commits do not wait for the disk.
    pub sync_interval: Option<Duration>,
    pub seed: u64,
}

pub struct Stream {
    pub account: Arc<Account>,
    shared: Arc<Shared>,
    pub(super) store: Arc<Store>,
    pub(super) scheduler: Arc<CommitScheduler>,
    pub(super) ingest: Mutex<Ingest>,
    pub(super) senders: Arc<Senders>,
    reads: Arc<Reads>,
    upload_requests: Arc<UploadRequests>,
    pub(super) usage: Arc<StreamUsage>,
    subscriptions: Mutex<Vec<Arc<Subscription>>>,
    /// Used by one commit after the other.
    pub(super) drained: Mutex<Drained>,
    pub(super) closed: AtomicBool,
    /// When something may expire next; `i64::MAX` is never.
    pub(super) expiry_due_ns: AtomicI64,
    has_schedules: AtomicBool,
    dead_letters_wanted: Arc<AtomicBool>,
    pub(super) remembered_schedules: RememberedSchedules,
    /// Brings the messages of its origins, if it has any.
    pub(super) replicator: Arc<Replicator>,
    /// Those whose origin it is.
    pub(super) followers: Arc<Followers>,
    pub(super) consumers: Arc<Consumers>,
    pub(super) releases: Releases,
    /// Reads what messages that are held back wait for.
    loading: Arc<Job>,
    /// A mirror that has caught up with its origin answers direct gets for it.
    answers_for_origin: AtomicBool,
}

impl Stream {
    pub fn new(
        store: Arc<Store>,
        settings: StreamSettings,
        context: StreamContext<'_>,
    ) -> Arc<Self> {
        let StreamContext {
            account,
            senders,
            shared,
            threads,
            timers,
            long_ack_subjects,
            journal,
            buffer,
            usage,
            incomplete,
            origin_lookup,
            sync_interval,
            seed,
        } = context;
        let has_schedules = settings.allow_schedules;
        let dead_letters_wanted = Arc::new(AtomicBool::new(settings.dead_letters.is_some()));
        let usage = Arc::new(StreamUsage::new(usage, settings.storage));
        usage.set_used(store.messages().counts().bytes, 0);
        if store.messages().shares_segments() {
            usage.say_shared(&store.messages().shared_segments());
        }
        let settings = Arc::new(settings);
        let followers = origin_lookup.followers(&account.name).of(&settings.name);
        Arc::new_cyclic(|stream: &Weak<Self>| {
            let consumers = Arc::new(Consumers::new(StreamFacts {
                shared: Arc::clone(&shared),
                account: Arc::clone(&account),
                name: settings.name.clone(),
                domain: settings.domain.clone(),
                store: Arc::clone(&store),
                senders: Arc::clone(&senders),
                timers,
                long_ack_subjects,
                threads: Arc::clone(threads),
                place: journal,
                message_bytes_max: settings
                    .message_bytes_max
                    .unwrap_or(settings.payload_bytes_max as u64),
                host: Arc::new(ConsumersHost::new(stream.clone(), &dead_letters_wanted)),
                seed,
            }));
            let told = stream.clone();
            let scheduler = CommitScheduler::new(
                Arc::clone(&store),
                threads,
                sync_interval,
                move |progress| {
                    if let Some(stream) = told.upgrade() {
                        stream.on_committed(&progress);
                    }
                },
            );
            let reads = Reads::new(
                Arc::clone(&store),
                Arc::clone(&account),
                Arc::clone(&usage),
                Arc::clone(&senders),
                settings.name.clone(),
                threads,
            );
            let name = &settings.name;
            let place = origin_lookup.place.clone();
            let upload_requests = UploadRequests::new(stream.clone(), name, place.clone(), threads);
            Self {
                account,
                shared,
                scheduler,
                ingest: Mutex::new(Ingest::new(
                    settings,
                    buffer,
                    Arc::clone(&usage),
                    incomplete,
                    Readers {
                        followers: Arc::clone(&followers),
                        consumers: Arc::clone(&consumers),
                    },
                    seed,
                )),
                senders,
                reads,
                upload_requests,
                usage,
                subscriptions: Mutex::default(),
                drained: Mutex::default(),
                closed: AtomicBool::new(false),
                expiry_due_ns: AtomicI64::new(0),
                has_schedules: AtomicBool::new(has_schedules),
                dead_letters_wanted,
                remembered_schedules: RememberedSchedules::new(place),
                replicator: Replicator::new(stream.clone(), origin_lookup, threads),
                followers,
                consumers,
                releases: Releases::new(stream.clone(), threads),
                loading: {
                    let stream = stream.clone();
                    threads.reading(move || {
                        if let Some(stream) = stream.upgrade() {
                            stream.load_stored();
                        }
                    })
                },
                answers_for_origin: AtomicBool::new(false),
                store,
            }
        })
    }

    pub(super) fn events(&self) -> &Arc<Events> {
        &self.shared.events
    }

    pub(super) fn now_ns(&self) -> i64 {
        self.shared.clock.wall_ns()
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    pub fn settings(&self) -> Arc<StreamSettings> {
        Arc::clone(self.ingest.lock().settings())
    }

    pub fn consumers(&self) -> &Arc<Consumers> {
        &self.consumers
    }

    pub fn reads(&self) -> &Arc<Reads> {
        &self.reads
    }

    /// Takes messages on its subjects from now on, and none on those it had before and has no more.
    pub fn listen(self: &Arc<Self>) {
        let settings = self.settings();
        let mut wanted: Vec<WantedSubscription> = Vec::new();
        for subject in &settings.subjects {
            let sink: Arc<dyn Sink> = Arc::clone(self) as Arc<dyn Sink>;
            wanted.push(WantedSubscription {
                subject: subject.clone().into_bytes(),
                queue: None,
                sink,
            });
        }
        wanted.push(WantedSubscription {
            subject: UploadRequests::subject(&settings.name).into_bytes(),
            queue: None,
            sink: Arc::clone(&self.upload_requests) as Arc<dyn Sink>,
        });
        let own = settings.allow_direct.then_some(&settings.name);
        let answers_for_origin = self.answers_for_origin.load(Ordering::Acquire);
        let mirrored = settings.mirror_direct.as_ref();
        let mirrored = mirrored.filter(|_| answers_for_origin);
        for name in own.into_iter().chain(mirrored) {
            for tail in ["", ".>"] {
                let subject = format!("$JS.API.DIRECT.GET.{name}{tail}").into_bytes();
                let sink: Arc<dyn Sink> = Arc::clone(&self.reads) as Arc<dyn Sink>;
                wanted.push(WantedSubscription {
                    subject,
                    queue: Some(DIRECT_GET_GROUP),
                    sink,
                });
            }
        }
        // By subject, as a stream may have tens of thousands of them.
        let mut missing: AHashMap<Vec<u8>, WantedSubscription> = wanted
            .into_iter()
            .map(|wanted| (wanted.subject.clone(), wanted))
            .collect();
        let mut subscriptions = self.subscriptions.lock();
        subscriptions.retain(|subscription| {
            let found = missing.get(&subscription.subject[..]);
            let stays = found.is_some_and(|wanted| wanted.is(subscription));
            if stays {
                missing.remove(&subscription.subject[..]);
            } else {
                self.account.unsubscribe(subscription);
            }
            stays
        });
        for wanted in missing.into_values() {
            let subscription = Arc::new(Subscription::new(
                Receiver::Sink(wanted.sink),
                &wanted.subject,
                wanted.queue,
                b"",
                Restrictions::default(),
            ));
            self.account.subscribe(Arc::clone(&subscription));
            subscriptions.push(subscription);
        }
    }

    /// Is in the registry from now on: follows its origins, and wakes those who follow it.
    pub fn begin(&self) {
        self.replicator.follow();
        self.followers.schedule();
    }

    /// Imports have changed, which may lead to other origins.
    pub fn look_for_origins(&self) {
        self.replicator.look_again();
    }

    /// Is not in the registry any more.
    pub fn end(&self) {
        self.followers.begin_anew();
        self.followers.schedule();
    }

    /// The state of each of its origins, in the order of the settings.
    pub fn origin_states(&self) -> Vec<OriginState> {
        self.replicator.states(&self.settings(), self.now_ns())
    }

    /// The mirror has caught up with its origin.
    pub fn answer_for_origin(self: &Arc<Self>) {
        if !self.answers_for_origin.swap(true, Ordering::AcqRel) {
            self.listen();
        }
    }

    /// Stages messages of another stream, until one cannot be; `taken` hears of each that was, and its sequence if it was not there already. Nothing
    /// is taken when the settings have changed meanwhile.
    pub fn take_arrivals<'a>(
        &self,
        settings: &Arc<StreamSettings>,
        arrivals: impl Iterator<Item = Arrival<'a>>,
        resets: u64,
        mut taken: impl FnMut(Option<u64>),
    ) -> Result<(), Hindrance> {
        if !settings.is_mirror {
            self.load_stored_once();
        }
        let mut ingest = self.ingest.lock();
        if self.closed.load(Ordering::Acquire) || !Arc::ptr_eq(ingest.settings(), settings) {
            return Err(Hindrance::Changed);
        }
        for arrival in arrivals {
            taken(arrivals::stage(&mut ingest, &self.store, &arrival, resets)?);
        }
        Ok(())
    }

    /// Schedules a commit of what is staged.
    pub fn commit_soon(&self) {
        self.scheduler.schedule();
    }

    /// Puts other settings in force. Limits that are lower than before take effect at once. Their definition is on disk already, so whatever the
    /// store cannot do now is in its status, and is done when it is opened again.
    pub fn update(self: &Arc<Self>, settings: StreamSettings) {
        let limits = settings.removing_limits();
        self.has_schedules
            .store(settings.allow_schedules, Ordering::Relaxed);
        self.dead_letters_wanted
            .store(settings.dead_letters.is_some(), Ordering::Release);
        let becomes_interest = settings.retention == Retention::Interest
            && self.settings().retention != Retention::Interest;
        self.ingest.lock().set(Arc::new(settings), self.now_ns());
        let _ = self.store.set_limits(limits);
        if becomes_interest {
            self.remove_all_unneeded();
        }
        self.expiry_due_ns.store(0, Ordering::Relaxed);
        self.listen();
        self.scheduler.schedule();
        self.begin();
    }

    /// Takes no messages any more; with a farewell if it is about to be removed.
    pub fn stop(&self, end: ReaderEnd) {
        self.closed.store(true, Ordering::Release);
        for subscription in self.subscriptions.lock().drain(..) {
            self.account.unsubscribe(&subscription);
        }
        self.replicator.stop(end);
    }

    /// Takes messages again, after a removal that failed.
    pub fn listen_again(self: &Arc<Self>) {
        self.closed.store(false, Ordering::Release);
        self.listen();
        self.begin();
    }

    /// Removes messages, durably; returns how many.
    pub fn purge(&self, purge: &Purge) -> StoreResult<u64> {
        self.replicator.save()?;
        self.upload_requests.save();
        let (mut staged, count) = match &purge.filter {
            None => {
                let work = self.store.stage_purge(purge)?;
                let count = work.removed;
                (vec![work], count)
            }
            Some(filter) => self.purge_matching(filter, purge)?,
        };
        if let (None, Some(next_sequence)) = (&purge.filter, purge.below_sequence) {
            staged.push(self.store.advance(next_sequence)?);
        }
        self.commit_removals(&staged)?;
        self.consumers.purged(purge);
        Ok(count)
    }

    fn commit_removals(&self, staged: &[StagedWork]) -> StoreResult<()> {
        let committed = staged
            .iter()
            .try_for_each(|work| self.store.commit_through(work).map(drop));
        let mut ingest = self.ingest.lock();
        self.say_usage(&ingest);
        // What is counted from now on begins with what is there.
        ingest.forget_counters();
        drop(ingest);
        self.scheduler.schedule();
        committed
    }

    /// Makes a copy of what is stored up to a sequence in another folder; up to the last if that is 0.
    pub fn fork(&self, folder: &Path, last_sequence: u64) -> StoreResult<()> {
        let forked = self.make_fork(folder, last_sequence);
        // Its segments have become those of the fork as well; they count once.
        self.say_shared();
        forked
    }

    fn make_fork(&self, folder: &Path, last_sequence: u64) -> StoreResult<()> {
        let last_sequence = match last_sequence {
            0 => self.store.messages().counts().last_sequence,
            last => last,
        };
        let forked = self.store.fork(folder, last_sequence);
        // It has committed what others staged.
        self.scheduler.schedule();
        forked
    }

    /// Removes one message, durably; false if there is none.
    pub fn delete(&self, sequence: u64, erase: bool) -> StoreResult<bool> {
        self.replicator.save()?;
        self.upload_requests.save();
        let staged = self.store.stage(&Change {
            remove: &[sequence],
            erase,
            ..Change::default()
        })?;
        let found = staged.removed > 0;
        self.commit_removals(&[staged])?;
        if found {
            self.consumers.deleted(sequence);
        }
        Ok(found)
    }

    /// Says what the stream takes up, and what waits to.
    pub(super) fn say_usage(&self, ingest: &Ingest) {
        let counts = self.store.messages().counts();
        let (_, waiting_bytes) = ingest.pending().counts_behind(counts.last_sequence);
        self.usage.set_used(counts.bytes, waiting_bytes);
    }

    /// Says which of its segments other streams may have as well.
    fn say_shared(&self) {
        if self.store.messages().shares_segments() {
            self.usage
                .say_shared(&self.store.messages().shared_segments());
        }
    }

    /// What a fork up to a sequence takes up beyond what it shares.
    pub fn fork_bytes(&self, last_sequence: u64) -> u64 {
        let last_sequence = match last_sequence {
            0 => self.store.messages().counts().last_sequence,
            last => last,
        };
        self.store.messages().copied_by_fork(last_sequence)
    }

    /// What the clock asks for: messages expire, and commits that did not wait for the disk are synced.
    pub fn tick(&self, now_ns: i64) {
        self.report_findings();
        self.say_shared();
        // A failure is in the store's status, and the next publisher gets the error.
        let _ = self.scheduler.tick();
        self.replicator.tick();
        self.upload_requests.tick();
        self.consumers.tick();
        let given_up = commit::expire_batches(&mut self.ingest.lock(), now_ns);
        if given_up {
            self.scheduler.schedule();
        }
        if self.has_schedules.load(Ordering::Relaxed) {
            self.load_stored_once();
            if self.publish_due(now_ns) {
                self.scheduler.schedule();
            }
            self.remember_schedules(now_ns);
        }
        self.expire_due(now_ns);
    }

    /// Everything staged is committed, and the store says where it ends.
    pub fn close(&self) -> StoreResult<()> {
        let consumers = self.consumers.close();
        self.stop(ReaderEnd::Pause);
        self.upload_requests.close(&self.store);
        self.remember_schedules(i64::MAX);
        self.store.close()?;
        consumers
    }
}

impl Stream {
    /// Stages a message that was held for it; `commit_soon` must follow.
    pub(super) fn take_held(&self, publication: &Publication<'_>, reply: &[u8]) {
        let mut ingest = self.ingest.lock();
        // The sender may be gone by now.
        ingest.set_publisher(UNKNOWN_PUBLISHER);
        ingest.stage(&self.store, publication, reply);
        if !ingest.held_back().is_empty() {
            self.loading.schedule();
        }
    }
}

impl Sink for Stream {
    fn accept(
        &self,
        publisher: &Publisher<'_>,
        publish: &Publish<'_>,
        _staging: &mut Staging,
    ) -> bool {
        if self.closed.load(Ordering::Acquire) {
            return false;
        }
        let publication = Publication {
            subject: publish.subject,
            headers: publish.header(),
            payload: publish.payload(),
            now_ns: self.now_ns(),
        };
        let permissions = publisher.permissions.map(|permissions| &**permissions);
        let reply = sender_rights::reply_of(permissions, publish);
        let mut ingest = self.ingest.lock();
        ingest.set_publisher(publisher.connection_id);
        let checked = permissions.map_or(Ok(()), |permissions| {
            sender_rights::check(permissions, ingest.settings(), publication.headers)
        });
        match checked {
            Ok(()) => ingest.take_noting(&self.store, &publication, reply, publisher.trace),
            Err(refusal) => ingest.refuse_unauthorized(&refusal, reply, publisher.trace),
        }
        if let Some(receipts) = publisher
            .receipts
            .filter(|_| ingest.answers().has_receipt_room())
        {
            ingest.add_receipt(receipts.issue());
        }
        if !ingest.held_back().is_empty() {
            self.loading.schedule();
        }
        true
    }

    fn finish_read(&self) {
        self.scheduler.commit_or_schedule();
    }

    fn stores(&self) -> bool {
        true
    }
}

/// A subscription that a stream wants to have.
struct WantedSubscription {
    subject: Vec<u8>,
    queue: Option<&'static [u8]>,
    sink: Arc<dyn Sink>,
}

impl WantedSubscription {
    fn is(&self, subscription: &Subscription) -> bool {
        *subscription.subject == *self.subject && subscription.queue.as_deref() == self.queue
    }
}
