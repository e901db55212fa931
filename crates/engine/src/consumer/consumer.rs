//! One consumer: where acknowledgements and pull requests come in, and the work that answers them.
//!
//! One lock guards its state (`Core`), another what it sends (`ConsumerDelivery`), so that messages leave in the order
//! in which they were chosen. A thread that finds another at work leaves a note and goes on. In which order locks are taken
//! says `host_stream`. Invariants: nothing is sent, and nothing is asked of the stream, while the core is locked; work noted
//! during a pass is done after it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::{Mutex, MutexGuard};

use super::acknowledgement::acking::IncomingAck;
use super::acknowledgement::body;
use super::acknowledgement::delivered::SideEffects;
use super::acknowledgement::state::AckState;
use super::core::{Core, PassContext};
use super::delivery::delivering::PassEnd;
use super::delivery::outbound::{Outbound, Undelivered};
use super::delivery::read_ahead::ReadAhead;
use super::host_stream::HostStream;
use super::journal::journal::Journal;
use super::journal::state_record::Aside;
use super::pull::pulling::Asked;
use super::settings::ConsumerSettings;
use super::timers::{Alarm, ConsumerTimers, Reminded};
use crate::common::events::Event;
use crate::common::short_hash::hash8;
use crate::common::subject;
use crate::routing::account::Account;
use crate::routing::router::Publisher;
use crate::routing::sender::Senders;
use crate::routing::shared::Shared;
use crate::routing::sink::{Sink, Watcher};
use crate::routing::staging::Staging;
use crate::routing::subscription::Subscription;
use crate::storage::commit::scheduler::StorageThreads;
use crate::storage::commit::work_pool::Job;
use crate::storage::message::StoreResult;
use crate::storage::store::Store;
use crate::wire::ack_subject;
use crate::wire::ack_subject::AckPrefix;
use crate::wire::Publish;

/// Messages that one pass delivers at most before others get their turn.
const PASS_MESSAGES_MAX: usize = 2048;

/// Passes before the thread serves another consumer, if one waits for it: many may catch up at the same time.
const PASSES_MAX: usize = 8;

/// The same as `PASS_MESSAGES_MAX` for a pass on a thread that serves connections.
const PASS_INLINE_MAX: usize = 256;

/// What reached nobody is offered again this much later: a receiver that may not get the subject would be offered it forever.
const UNDELIVERED_WAIT_NS: i64 = 10_000_000;

const FLOW_CONTROL: &[u8] = b"$JS.FC.";

/// What a consumer needs of its stream.
#[derive(Clone)]
pub struct ConsumerContext {
    pub shared: Arc<Shared>,
    pub account: Arc<Account>,
    pub stream: String,
    pub domain: Option<String>,
    pub store: Arc<Store>,
    pub senders: Arc<Senders>,
    pub timers: Arc<ConsumerTimers>,
    pub long_ack_subjects: bool,
    pub journal: Option<Arc<Journal>>,
    pub message_bytes_max: u64,
    pub threads: Arc<StorageThreads>,
    /// Receives the messages that the consumer has settled or given up.
    pub host: Arc<dyn HostStream>,
}

#[derive(Default)]
struct ConsumerDelivery {
    reads: ReadAhead,
    out: Outbound,
    undelivered: Undelivered,
}

pub struct Consumer {
    pub name: String,
    pub(super) own: Weak<Self>,
    pub(super) context: ConsumerContext,
    prefix: AckPrefix,
    pub(super) core: Mutex<Core>,
    delivery: Mutex<ConsumerDelivery>,
    /// A thread has found something to do.
    is_asked: AtomicBool,
    /// A new message is of interest.
    has_demand: AtomicBool,
    /// It is durable and takes acknowledgements. Before, nothing is delivered.
    pub(super) has_begun: AtomicBool,
    /// Stands in the journal's list of those that changed.
    pub(super) is_noted: AtomicBool,
    job: OnceLock<Arc<Job>>,
    /// Hands over dead letters; created with the first one.
    pub(super) letters_job: OnceLock<Arc<Job>>,
    /// Confirms acknowledgements where there is no journal; created with the first one that has to wait.
    pub(super) confirming_job: OnceLock<Arc<Job>>,
    pub(super) alarm: Alarm,
    pub(super) subscriptions: Mutex<Vec<Arc<Subscription>>>,
}

impl Consumer {
    pub fn new(
        context: ConsumerContext,
        name: String,
        settings: Arc<ConsumerSettings>,
        restored: Option<(AckState, Aside, u64)>,
        threads: &StorageThreads,
        seed: u64,
    ) -> StoreResult<Arc<Self>> {
        let account_hash = hash8(&context.account.name);
        let domain = context.domain.as_deref().unwrap_or_default();
        let origin = context
            .long_ack_subjects
            .then_some((domain, account_hash.as_str()));
        let prefix = AckPrefix::new(&context.stream, &name, origin, settings.dialect);
        let now_ns = context.shared.clock.wall_ns();
        let core = {
            let context = pass_context(&context, &name, &prefix);
            Core::new(settings, restored, &context, seed, now_ns)?
        };
        let consumer = Arc::new_cyclic(|own| Self {
            name,
            own: own.clone(),
            context,
            prefix,
            core: Mutex::new(core),
            delivery: Mutex::default(),
            is_asked: AtomicBool::new(false),
            has_demand: AtomicBool::new(true),
            has_begun: AtomicBool::new(false),
            is_noted: AtomicBool::new(false),
            job: OnceLock::new(),
            letters_job: OnceLock::new(),
            confirming_job: OnceLock::new(),
            alarm: Alarm::default(),
            subscriptions: Mutex::default(),
        });
        let weak = Arc::downgrade(&consumer);
        let job = threads.reading(move || {
            if let Some(consumer) = weak.upgrade() {
                consumer.run_passes(PASS_MESSAGES_MAX, PASSES_MAX);
            }
        });
        // Nobody else has it yet.
        let _ = consumer.job.set(job);
        Ok(consumer)
    }

    pub fn settings(&self) -> Arc<ConsumerSettings> {
        Arc::clone(self.core.lock().settings())
    }

    pub fn journal(&self) -> Option<&Arc<Journal>> {
        self.context.journal.as_ref()
    }

    /// Reads or changes its state; `touch` or the next pass applies the effects.
    pub fn with_core<T>(&self, look: impl FnOnce(&mut Core, &PassContext<'_>, i64) -> T) -> T {
        let now_ns = self.now_ns();
        look(&mut self.core.lock(), &self.pass_context(), now_ns)
    }

    pub fn update(&self, settings: ConsumerSettings) {
        let settings = Arc::new(settings);
        let before = self.settings();
        self.with_core(|core, context, now_ns| core.update(settings, context, now_ns));
        self.unwatch(before.deliver_subject.as_deref());
        self.watch();
        self.schedule();
    }

    /// Whether a message of this subject is kept for it.
    pub fn wants(&self, subject: &[u8]) -> bool {
        let settings = self.settings();
        takes(&settings, subject)
    }

    /// Whether a message is not settled for it.
    pub fn needs(&self, subject: &[u8], sequence: u64) -> bool {
        let core = self.core.lock();
        takes(core.settings(), subject) && core.acks().needs(sequence)
    }

    /// Whether a message that it takes was acknowledged, and not merely passed over.
    pub fn has_settled(&self, sequence: u64) -> bool {
        self.core.lock().acks().has_settled(sequence)
    }

    /// Up to here everything in the stream is settled.
    pub fn floor(&self) -> u64 {
        self.core.lock().acks().floor.stream
    }

    /// Of what it has passed, nobody knows any more which messages were acknowledged. On disk when this returns: other filters would be taken for those
    /// that its state was made with.
    pub fn forget_settled(&self) -> StoreResult<()> {
        self.with_core(|core, _, _| core.deliveries().forget_settled());
        self.write_down()
    }

    /// Restarts at a sequence, after the floor if that is 0; returns the sequence. On disk when this returns.
    pub fn reset(&self, sequence: u64) -> StoreResult<u64> {
        let sequence = self.with_core(|core, _, now_ns| core.reset(sequence, now_ns));
        self.write_down()?;
        Ok(sequence)
    }

    fn write_down(&self) -> StoreResult<()> {
        self.touch();
        self.journal().map_or(Ok(()), |journal| journal.flush())
    }

    /// Whether streams keep messages for it.
    pub fn keeps(&self) -> bool {
        !self.core.lock().settings().direct
    }

    /// A message was deleted.
    pub fn forget_message(&self, sequence: u64) {
        let mut out = Outbound::default();
        self.with_core(|core, context, _| core.message_deleted(context, sequence, &mut out));
        self.send_out(&mut out);
        self.schedule();
    }

    /// Looks for pending messages that are gone; there may be room for others then.
    pub fn sweep(&self) {
        let pending_before = self.with_core(|core, _, _| core.acks().pending_count());
        self.drop_missing(true);
        let mut out = Outbound::default();
        let has_settled = self.with_core(|core, context, _| {
            core.sweep(context, &mut out) || core.acks().pending_count() < pending_before
        });
        self.send_out(&mut out);
        if has_settled {
            self.touch();
        }
    }

    /// Hands on the messages of clients that have left, if others wait for them. A client whose connection ends because the server stops has not left.
    pub fn hand_over(&self) {
        let shared = &self.context.shared;
        let has_left = self.with_core(|core, _, _| {
            let is_there = |id| shared.connection(id).is_some();
            !core.is_closed() && core.deliveries().hand_over(is_there)
        });
        if has_left {
            self.schedule();
        }
    }

    /// What it knows was changed from outside.
    pub fn touch(&self) {
        let effects = self.core.lock().take_effects();
        self.apply_effects(effects);
        self.schedule();
    }

    /// Sends something that was decided outside.
    pub fn send_out(&self, out: &mut Outbound) {
        if !out.is_empty() {
            self.send(out, &mut Undelivered::default());
        }
    }

    /// Schedules a pass on another thread.
    pub fn schedule(&self) {
        if let Some(job) = self.job.get() {
            job.schedule();
        }
    }

    /// The stream has new messages.
    pub fn tell_new(&self, is_little: bool) {
        if !self.has_demand.load(Ordering::Acquire) {
            return;
        }
        if is_little {
            self.run_passes(PASS_INLINE_MAX, 1);
        } else {
            self.schedule();
        }
    }

    /// Takes a pull request in.
    pub fn pull(&self, publisher_id: u64, publish: &Publish<'_>) {
        let Some(reply) = publish.reply else {
            return;
        };
        let mut out = Outbound::default();
        self.with_core(|core, context, now_ns| {
            let asked = Asked {
                reply,
                header: publish.header(),
                body: publish.payload(),
                connection_id: publisher_id,
            };
            core.pull(context, &asked, now_ns, &mut out);
        });
        self.has_demand.store(true, Ordering::Release);
        self.send_out(&mut out);
    }

    /// Works on what was found to do, on a thread that serves connections: only if that needs no disk.
    pub fn work_inline(&self) {
        let next = self.core.lock().acks().next_stream;
        if self.context.store.messages().is_recent(next) {
            self.run_passes(PASS_INLINE_MAX, 1);
        } else {
            self.schedule();
        }
    }

    fn run_passes(&self, most: usize, rounds: usize) {
        let mut rounds = rounds;
        loop {
            self.is_asked.store(true, Ordering::SeqCst);
            let Some(mut delivery) = self.delivery.try_lock() else {
                return;
            };
            self.is_asked.store(false, Ordering::SeqCst);
            // A thread that comes by for one round has others to serve.
            let passed = self.run_pass(&mut delivery, most, rounds > 1);
            drop(delivery);
            let is_done = passed == PassEnd::Done && !self.is_asked.load(Ordering::SeqCst);
            if is_done {
                return;
            }
            rounds -= 1;
            if rounds == 0 {
                return self.schedule();
            }
        }
    }

    fn run_pass(&self, delivery: &mut ConsumerDelivery, most: usize, may_wait: bool) -> PassEnd {
        let now_ns = self.now_ns();
        let context = self.pass_context();
        let mut core = self.core.lock();
        if core.is_closed() || !self.has_begun.load(Ordering::Acquire) {
            return PassEnd::Done;
        }
        core.look_at_clock(&context, now_ns, &mut delivery.out);
        let ConsumerDelivery { reads, out, .. } = delivery;
        let messages = self.context.store.messages();
        let passed = loop {
            // A message that cannot be read now may be readable in a later pass.
            let delivered = core.deliver(&context, reads, now_ns, most, out);
            match delivered.unwrap_or(PassEnd::Done) {
                PassEnd::Unread if !may_wait && reads.waits_for_disk(messages) => {
                    break PassEnd::More
                }
                PassEnd::Unread => {
                    let read = MutexGuard::unlocked(&mut core, || reads.read(messages));
                    if read.is_err() || core.is_closed() {
                        break PassEnd::Done;
                    }
                }
                passed => break passed,
            }
        };
        let is_abandoned = core.is_abandoned(&context, now_ns);
        if is_abandoned {
            core.close();
        }
        let letters_are_due = core.deliveries().letters().take_due(now_ns);
        let due_ns = core.next_due_ns(now_ns);
        self.has_demand.store(core.has_demand(), Ordering::Release);
        let mut effects = core.take_effects();
        drop(core);
        if let Some(due_ns) = due_ns {
            self.arm(due_ns);
        }
        if !delivery.out.is_empty() {
            // Counted as delivered, and with nobody yet.
            self.context.shared.events.fail_point("delivery");
            let mut undelivered = std::mem::take(&mut delivery.undelivered);
            self.send(&mut delivery.out, &mut undelivered);
            if !undelivered.is_empty() {
                if let Some(next) = self.core.lock().take_back(&undelivered) {
                    effects.released.retain(|(first, _)| *first < next);
                }
                undelivered.clear();
                delivery.reads.walk.forget();
                self.arm(
                    now_ns
                        .saturating_add(UNDELIVERED_WAIT_NS)
                        .min(due_ns.unwrap_or(i64::MAX)),
                );
            }
            delivery.undelivered = undelivered;
        }
        self.apply_effects(effects);
        if letters_are_due {
            self.ask_for_dead_letters();
        }
        if is_abandoned {
            self.report_abandoned();
        }
        passed
    }

    pub(super) fn send(&self, out: &mut Outbound, undelivered: &mut Undelivered) {
        let account = &self.context.account;
        self.context.senders.with(|sender| {
            out.send(account, sender, undelivered);
        });
    }

    fn arm(&self, due_ns: i64) {
        let own: Weak<dyn Reminded> = self.own.clone();
        self.context.timers.arm(due_ns, &self.alarm, &own);
    }

    /// Sees to what a change of the state means for others.
    fn apply_effects(&self, effects: SideEffects) {
        let Some(own) = self.own.upgrade() else {
            return;
        };
        if !effects.released.is_empty() {
            self.context.host.released(self, &effects.released);
        }
        if effects.has_dead_letters && self.context.host.wants_dead_letters() {
            self.ask_for_dead_letters();
        }
        self.expect_confirmations(effects.replies);
        match &self.context.journal {
            Some(journal) => {
                if effects.is_changed || effects.is_awaited {
                    journal.note(&own);
                }
                if effects.is_awaited {
                    journal.schedule();
                }
            }
            None if effects.is_awaited => self.confirm_without_journal(),
            None => {}
        }
    }

    /// Unused for too long: the consumer delivers nothing any more, and the receiver of this event deletes it.
    fn report_abandoned(&self) {
        self.context.shared.events.push(Event::Consumer {
            account: self.context.account.name.clone(),
            stream: self.context.stream.clone(),
            name: self.name.clone(),
        });
    }

    fn now_ns(&self) -> i64 {
        self.context.shared.clock.wall_ns()
    }

    fn pass_context(&self) -> PassContext<'_> {
        pass_context(&self.context, &self.name, &self.prefix)
    }

    fn take_acknowledgement(&self, publisher: &Publisher<'_>, publish: &Publish<'_>) {
        let Some(numbers) = ack_subject::read(publish.subject) else {
            return;
        };
        if !ack_subject::is_allowed(publish.subject, publisher.permissions) {
            return;
        }
        let reply = publish.reply.unwrap_or_default();
        let ack = IncomingAck {
            numbers,
            body: body::read(publish.payload()),
            reply,
        };
        let mut out = Outbound::default();
        self.with_core(|core, context, now_ns| {
            let request = core.acknowledge(context, &ack, now_ns, &mut out);
            if let Some(request) = request.filter(|_| !reply.is_empty()) {
                let asked = Asked {
                    reply,
                    header: b"",
                    body: request,
                    connection_id: publisher.connection_id,
                };
                core.pull(context, &asked, now_ns, &mut out);
            }
        });
        self.send_out(&mut out);
    }
}

fn pass_context<'a>(
    context: &'a ConsumerContext,
    name: &'a str,
    prefix: &'a AckPrefix,
) -> PassContext<'a> {
    PassContext {
        messages: context.store.messages(),
        account: &context.account,
        stream: &context.stream,
        consumer: name,
        domain: context.domain.as_deref(),
        prefix,
        message_bytes_max: context.message_bytes_max,
        wants_dead_letters: context.host.wants_dead_letters(),
    }
}

fn takes(settings: &ConsumerSettings, of_message: &[u8]) -> bool {
    let filters = &settings.filters;
    filters.is_empty()
        || filters
            .iter()
            .any(|filter| subject::matches(filter, of_message))
}

impl Reminded for Consumer {
    fn alarm(&self) -> &Alarm {
        &self.alarm
    }

    fn remind(&self) {
        self.schedule();
    }
}

impl Watcher for Consumer {
    fn notice(&self) {
        self.schedule();
    }
}

impl Sink for Consumer {
    fn accept(
        &self,
        publisher: &Publisher<'_>,
        publish: &Publish<'_>,
        _staging: &mut Staging,
    ) -> bool {
        if publish.subject.starts_with(FLOW_CONTROL) {
            self.core
                .lock()
                .hear_receiver(publish.subject, publish.header());
        } else {
            self.take_acknowledgement(publisher, publish);
        }
        true
    }

    /// Acknowledgements that came together are answered together, and may make room for more.
    fn finish_read(&self) {
        let effects = {
            let mut core = self.core.lock();
            self.has_demand.store(core.has_demand(), Ordering::Release);
            if let Some(due_ns) = core.next_due_ns(self.now_ns()) {
                self.arm(due_ns);
            }
            core.take_effects()
        };
        self.apply_effects(effects);
        if self.has_demand.load(Ordering::Acquire) {
            self.work_inline();
        }
    }
}
