//! One consumer: where acknowledgements and pull requests come in, and the work that answers them.
//!
//! Its knowledge is behind one lock (`Core`), what it sends behind another (`Delivery`), so that messages leave in the order in which they were chosen.
//! Whoever finds somebody at work leaves a note and goes. Invariants: nothing is sent while the core is locked; what was noted while
//! somebody worked is worked on afterwards.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::{Mutex, MutexGuard};

use super::ack_body;
use super::ack_state::AckState;
use super::ack_subject::{self, AckPrefix};
use super::core::{Core, Surroundings};
use super::dead_letters::{DeadLetter, HandedOver};
use super::delivering::Passed;
use super::journal::Journal;
use super::outbound::Outbound;
use super::pulling::Asked;
use super::read_ahead::ReadAhead;
use super::settings::ConsumerSettings;
use super::state_record::Aside;
use super::timers::{Alarm, Reminded, Timers};
use crate::connection::staging::Staging;
use crate::engine::Shared;
use crate::events::Event;
use crate::routing::account::Account;
use crate::routing::router::Publisher;
use crate::routing::sink::{Sink, Watcher};
use crate::routing::subject;
use crate::routing::subscription::Subscription;
use crate::sender::{Outgoing, Senders};
use crate::storage::keeper::StorageThreads;
use crate::storage::message::StoreResult;
use crate::storage::store::Store;
use crate::storage::work_pool::Job;
use crate::stream::origin::hash8;
use crate::stream::receipts::Receipt;
use crate::wire::Publish;

/// Messages that one pass delivers at most before others get their turn.
const PASS_MESSAGES_MAX: usize = 2048;

/// The same for a pass on a thread that serves connections.
const PASS_INLINE_MAX: usize = 256;

const FLOW_CONTROL: &[u8] = b"$JS.FC.";

/// What a consumer needs of its stream.
#[derive(Clone)]
pub struct Belongings {
    pub shared: Arc<Shared>,
    pub account: Arc<Account>,
    pub stream: String,
    pub domain: Option<String>,
    pub store: Arc<Store>,
    pub senders: Arc<Senders>,
    pub timers: Arc<Timers>,
    pub long_ack_subjects: bool,
    pub journal: Option<Arc<Journal>>,
    pub message_bytes_max: u64,
    pub threads: Arc<StorageThreads>,
    /// Hears of messages that the consumer has settled or given up.
    pub keeper: Arc<dyn Keeper>,
}

/// The stream, as its consumers see it.
pub trait Keeper: Send + Sync {
    /// Messages are settled, from the first to the last of each pair.
    fn released(&self, consumer: &Consumer, released: &[(u64, u64)]);

    /// Whether what is given up is stored elsewhere.
    fn wants_dead_letters(&self) -> bool;

    /// Writes the dead letter of a message; `receipt` hears when it is stored, if it is under way. Reads from the disk, and waits for no sync.
    fn hand_over_dead_letter(
        &self,
        consumer: &Consumer,
        letter: &DeadLetter,
        receipt: Arc<dyn Receipt>,
    ) -> HandedOver;
}

#[derive(Default)]
struct Delivery {
    reads: ReadAhead,
    out: Outbound,
    unheard: Vec<u64>,
}

pub struct Consumer {
    pub name: String,
    pub(super) own: Weak<Self>,
    pub(super) belongings: Belongings,
    prefix: AckPrefix,
    pub(super) core: Mutex<Core>,
    delivery: Mutex<Delivery>,
    /// Somebody has found something to do.
    is_asked: AtomicBool,
    /// A new message is of interest.
    is_hungry: AtomicBool,
    /// Stands in the journal's list of those that changed.
    pub(super) is_noted: AtomicBool,
    job: OnceLock<Arc<Job>>,
    /// Looks after dead letters; made when there is one.
    pub(super) letters_job: OnceLock<Arc<Job>>,
    pub(super) alarm: Alarm,
    pub(super) subscriptions: Mutex<Vec<Arc<Subscription>>>,
}

impl Consumer {
    pub fn new(
        belongings: Belongings,
        name: String,
        settings: Arc<ConsumerSettings>,
        restored: Option<(AckState, Aside, u64)>,
        threads: &StorageThreads,
        seed: u64,
    ) -> StoreResult<Arc<Self>> {
        let account_hash = hash8(&belongings.account.name);
        let domain = belongings.domain.as_deref().unwrap_or_default();
        let origin = belongings
            .long_ack_subjects
            .then_some((domain, account_hash.as_str()));
        let prefix = AckPrefix::new(&belongings.stream, &name, origin, settings.dialect);
        let now_ns = belongings.shared.clock.wall_ns();
        let mut core = {
            let around = around(&belongings, &name, &prefix);
            Core::new(settings, restored, &around, seed, now_ns)?
        };
        core.acks.out_of_order = core.keys.is_some();
        let consumer = Arc::new_cyclic(|own| Self {
            name,
            own: own.clone(),
            belongings,
            prefix,
            core: Mutex::new(core),
            delivery: Mutex::default(),
            is_asked: AtomicBool::new(false),
            is_hungry: AtomicBool::new(true),
            is_noted: AtomicBool::new(false),
            job: OnceLock::new(),
            letters_job: OnceLock::new(),
            alarm: Alarm::default(),
            subscriptions: Mutex::default(),
        });
        let weak = Arc::downgrade(&consumer);
        let job = threads.reading(move || {
            if let Some(consumer) = weak.upgrade() {
                consumer.work(PASS_MESSAGES_MAX, usize::MAX);
            }
        });
        // Nobody else has it yet.
        let _ = consumer.job.set(job);
        Ok(consumer)
    }

    pub fn settings(&self) -> Arc<ConsumerSettings> {
        Arc::clone(&self.core.lock().settings)
    }

    pub fn journal(&self) -> Option<&Arc<Journal>> {
        self.belongings.journal.as_ref()
    }

    /// Looks at what it knows, or changes it; it is looked after afterwards.
    pub fn with_core<T>(&self, look: impl FnOnce(&mut Core, &Surroundings<'_>, i64) -> T) -> T {
        let now_ns = self.now_ns();
        look(&mut self.core.lock(), &self.around(), now_ns)
    }

    pub fn update(&self, settings: ConsumerSettings) {
        let settings = Arc::new(settings);
        let before = self.settings();
        self.with_core(|core, around, now_ns| core.update(settings, around, now_ns));
        self.unwatch(before.deliver_subject.as_deref());
        self.watch();
        self.ask();
    }

    /// Whether a message of this subject is kept for it.
    pub fn wants(&self, subject: &[u8]) -> bool {
        let settings = self.settings();
        takes(&settings, subject)
    }

    /// Whether a message is not settled for it.
    pub fn needs(&self, subject: &[u8], sequence: u64) -> bool {
        let core = self.core.lock();
        takes(&core.settings, subject) && core.acks.needs(sequence)
    }

    /// Whether a message that it takes was acknowledged, and not merely passed over.
    pub fn has_settled(&self, sequence: u64) -> bool {
        self.core.lock().acks.has_settled(sequence)
    }

    /// Up to here everything in the stream is settled.
    pub fn floor(&self) -> u64 {
        self.core.lock().acks.floor.stream
    }

    /// Of what it has passed, nobody knows any more which messages were acknowledged. On disk when this returns: other filters would be taken for those
    /// that its state was made with.
    pub fn forget_settled(&self) -> StoreResult<()> {
        self.with_core(|core, _, _| core.acks.forget_settled());
        self.write_down()
    }

    /// Begins anew at a sequence, behind the floor if that is 0; returns the sequence. On disk when this returns.
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
        !self.core.lock().settings.direct
    }

    /// A message was deleted.
    pub fn forget_message(&self, sequence: u64) {
        let mut out = Outbound::default();
        self.with_core(|core, around, _| core.message_deleted(around, sequence, &mut out));
        self.send_out(&mut out);
        self.ask();
    }

    /// Looks for pending messages that are gone; there may be room for others then.
    pub fn sweep(&self) {
        let pending_before = self.with_core(|core, _, _| core.acks.pending_count());
        self.drop_missing(true);
        let mut out = Outbound::default();
        let has_settled = self.with_core(|core, around, _| {
            core.count.invalidate();
            core.sweep(around, &mut out) || core.acks.pending_count() < pending_before
        });
        self.send_out(&mut out);
        if has_settled {
            self.touch();
        }
    }

    /// Hands on what clients have that have left, where others wait for them to be done.
    pub fn hand_over(&self) {
        let shared = &self.belongings.shared;
        let has_left = self.with_core(|core, _, _| {
            core.keys.is_some() && core.hand_over(|id| shared.connection(id).is_some())
        });
        if has_left {
            self.ask();
        }
    }

    /// What it knows was changed from outside.
    pub fn touch(&self) {
        let loose = self.take_loose_ends(&mut self.core.lock());
        self.tie_up(loose);
        self.ask();
    }

    /// Sends something that was decided outside.
    pub fn send_out(&self, out: &mut Outbound) {
        if !out.is_empty() {
            self.send(out, &mut Vec::new());
        }
    }

    /// Something is to be done, soon and elsewhere.
    pub fn ask(&self) {
        if let Some(job) = self.job.get() {
            job.ask();
        }
    }

    /// The stream has new messages.
    pub fn tell_new(&self, is_little: bool) {
        if !self.is_hungry.load(Ordering::Acquire) {
            return;
        }
        if is_little {
            self.work(PASS_INLINE_MAX, 1);
        } else {
            self.ask();
        }
    }

    /// Takes a pull request in.
    pub fn pull(&self, publisher_id: u64, publish: &Publish<'_>) {
        let Some(reply) = publish.reply else {
            return;
        };
        let mut out = Outbound::default();
        self.with_core(|core, around, now_ns| {
            let asked = Asked {
                reply,
                header: publish.header(),
                body: publish.payload(),
                connection_id: publisher_id,
            };
            core.pull(around, &asked, now_ns, &mut out);
        });
        self.is_hungry.store(true, Ordering::Release);
        self.send_out(&mut out);
    }

    /// Works on what was found to do, on a thread that serves connections: only if that needs no disk.
    pub fn work_inline(&self) {
        let next = self.core.lock().acks.next_stream;
        if self.belongings.store.is_recent(next) {
            self.work(PASS_INLINE_MAX, 1);
        } else {
            self.ask();
        }
    }

    fn work(&self, most: usize, rounds: usize) {
        let mut rounds = rounds;
        loop {
            self.is_asked.store(true, Ordering::SeqCst);
            let Some(mut delivery) = self.delivery.try_lock() else {
                return;
            };
            self.is_asked.store(false, Ordering::SeqCst);
            // A thread that comes by for one round has others to serve.
            let passed = self.pass(&mut delivery, most, rounds > 1);
            drop(delivery);
            let is_done = passed == Passed::Done && !self.is_asked.load(Ordering::SeqCst);
            if is_done {
                return;
            }
            rounds -= 1;
            if rounds == 0 {
                return self.ask();
            }
        }
    }

    fn pass(&self, delivery: &mut Delivery, most: usize, may_wait: bool) -> Passed {
        let now_ns = self.now_ns();
        let around = self.around();
        let mut core = self.core.lock();
        if core.is_closed {
            return Passed::Done;
        }
        core.look_at_clock(&around, now_ns, &mut delivery.out);
        let Delivery { reads, out, .. } = delivery;
        let store = &self.belongings.store;
        let passed = loop {
            // A message that cannot be read now may be when somebody asks again.
            let delivered = core.deliver(&around, reads, now_ns, most, out);
            match delivered.unwrap_or(Passed::Done) {
                Passed::Unread if !may_wait && reads.waits_for_disk(store) => break Passed::More,
                Passed::Unread => {
                    let read = MutexGuard::unlocked(&mut core, || reads.read(store));
                    if read.is_err() || core.is_closed {
                        break Passed::Done;
                    }
                }
                passed => break passed,
            }
        };
        let is_abandoned = core.is_abandoned(&around, now_ns);
        core.is_closed |= is_abandoned;
        let letters_are_due = core.letters.due_ns <= now_ns;
        if letters_are_due {
            core.letters.due_ns = i64::MAX;
        }
        let due_ns = core.next_due_ns(now_ns);
        let is_hungry = core.push.is_some() || !core.waiting.is_empty();
        self.is_hungry.store(is_hungry, Ordering::Release);
        let mut loose = self.take_loose_ends(&mut core);
        drop(core);
        if let Some(due_ns) = due_ns {
            self.arm(due_ns);
        }
        if !delivery.out.is_empty() {
            let mut unheard = std::mem::take(&mut delivery.unheard);
            self.send(&mut delivery.out, &mut unheard);
            if !unheard.is_empty() {
                if self.core.lock().take_back(&unheard) {
                    let released = &mut loose.released;
                    released.retain(|(first, _)| unheard.binary_search(first).is_err());
                }
                unheard.clear();
                delivery.reads.walk.forget();
            }
            delivery.unheard = unheard;
        }
        self.tie_up(loose);
        if letters_are_due {
            self.ask_for_dead_letters();
        }
        if is_abandoned {
            self.report_abandoned();
        }
        passed
    }

    pub(super) fn send(&self, out: &mut Outbound, unheard: &mut Vec<u64>) {
        let account = &self.belongings.account;
        self.belongings.senders.with(|sender| {
            out.send(account, sender, |sequence| unheard.push(sequence));
        });
    }

    fn arm(&self, due_ns: i64) {
        let own: Weak<dyn Reminded> = self.own.clone();
        self.belongings.timers.arm(due_ns, &self.alarm, &own);
    }

    fn take_loose_ends(&self, core: &mut Core) -> LooseEnds {
        LooseEnds {
            released: std::mem::take(&mut core.released),
            has_dead_letters: std::mem::take(&mut core.has_dead_letters),
            is_changed: core.acks.is_changed(),
            is_awaited: !core.confirmations.is_empty(),
        }
    }

    /// Sees to what a change of the state means for others.
    fn tie_up(&self, loose: LooseEnds) {
        let Some(own) = self.own.upgrade() else {
            return;
        };
        if !loose.released.is_empty() {
            self.belongings.keeper.released(self, &loose.released);
        }
        if loose.has_dead_letters && self.belongings.keeper.wants_dead_letters() {
            self.ask_for_dead_letters();
        }
        match &self.belongings.journal {
            Some(journal) => {
                if loose.is_changed || loose.is_awaited {
                    journal.note(&own);
                }
                if loose.is_awaited {
                    journal.ask();
                }
            }
            None => {
                let confirmations = std::mem::take(&mut self.core.lock().confirmations);
                self.confirm(&confirmations);
            }
        }
    }

    /// Answers acknowledgements.
    pub fn confirm(&self, replies: &[Box<[u8]>]) {
        self.belongings.senders.with(|sender| {
            for reply in replies {
                let outgoing = Outgoing {
                    subject: reply,
                    reply: None,
                    header: b"",
                    payload: b"",
                };
                sender.send(&self.belongings.account, &outgoing);
            }
        });
    }

    /// Nobody has been there for too long: it delivers nothing any more, and is deleted by whoever decides such.
    fn report_abandoned(&self) {
        self.belongings.shared.events.push(Event::Consumer {
            account: self.belongings.account.name.clone(),
            stream: self.belongings.stream.clone(),
            name: self.name.clone(),
        });
    }

    fn now_ns(&self) -> i64 {
        self.belongings.shared.clock.wall_ns()
    }

    fn around(&self) -> Surroundings<'_> {
        around(&self.belongings, &self.name, &self.prefix)
    }

    fn take_acknowledgement(&self, publisher: &Publisher<'_>, publish: &Publish<'_>) {
        let Some(numbers) = ack_subject::read(publish.subject) else {
            return;
        };
        if !ack_subject::is_allowed(publish.subject, publisher.permissions) {
            return;
        }
        let body = ack_body::read(publish.payload());
        let reply = publish.reply.unwrap_or_default();
        let mut out = Outbound::default();
        self.with_core(|core, around, now_ns| {
            let request = core.acknowledge(around, &numbers, body, reply, now_ns, &mut out);
            if let Some(request) = request.filter(|_| !reply.is_empty()) {
                let asked = Asked {
                    reply,
                    header: b"",
                    body: request,
                    connection_id: publisher.connection_id,
                };
                core.pull(around, &asked, now_ns, &mut out);
            }
        });
        self.send_out(&mut out);
    }
}

struct LooseEnds {
    released: Vec<(u64, u64)>,
    has_dead_letters: bool,
    is_changed: bool,
    is_awaited: bool,
}

fn around<'a>(
    belongings: &'a Belongings,
    name: &'a str,
    prefix: &'a AckPrefix,
) -> Surroundings<'a> {
    Surroundings {
        store: &belongings.store,
        account: &belongings.account,
        stream: &belongings.stream,
        consumer: name,
        domain: belongings.domain.as_deref(),
        prefix,
        message_bytes_max: belongings.message_bytes_max,
        keeper: &*belongings.keeper,
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
        self.ask();
    }
}

impl Watcher for Consumer {
    fn notice(&self) {
        self.ask();
    }
}

impl Sink for Consumer {
    fn take(
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
    fn settle(&self) {
        let loose = {
            let mut core = self.core.lock();
            let is_hungry = core.push.is_some() || !core.waiting.is_empty();
            self.is_hungry.store(is_hungry, Ordering::Release);
            if let Some(due_ns) = core.next_due_ns(self.now_ns()) {
                self.arm(due_ns);
            }
            self.take_loose_ends(&mut core)
        };
        self.tie_up(loose);
        if self.is_hungry.load(Ordering::Acquire) {
            self.work_inline();
        }
    }
}
