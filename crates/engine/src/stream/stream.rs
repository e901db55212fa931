//! One stream: where publishes come in, where they are kept, and who is told when that is durable.
//!
//! A publish is staged by the thread that read it (`ingest`), committed by a thread of the storage (`Keeper`), and answered by that thread
//! (`told`). Invariant: no lock of a stream is held while something is sent, because what is sent may end in a stream again.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;

use super::acknowledgement::Stored;
use super::delete_marker;
use super::ingest::{store_refusal, BufferLimits, Ingest};
use super::pending::{About, Drained, Due};
use super::publish_checks::Publication;
use super::reads::Reads;
use super::settings::Settings;
use super::wall_clock::now_ns;
use crate::connection::staging::Staging;
use crate::routing::account::Account;
use crate::routing::router::Publisher;
use crate::routing::sink::Sink;
use crate::routing::subscription::{Receiver, Restrictions, Subscription};
use crate::sender::{Outgoing, Sender, Senders};
use crate::storage::keeper::{Keeper, StorageThreads};
use crate::storage::message::{Expired, Progress, Purge, StoreResult};
use crate::storage::store::Store;
use crate::wire::Publish;

/// The queue group in which streams answer direct gets: one of those that could does.
const DIRECT_GET_GROUP: &[u8] = b"_sys_";

/// What a stream needs of its surroundings.
pub struct Surroundings<'a> {
    pub account: Arc<Account>,
    pub senders: Arc<Senders>,
    pub threads: &'a StorageThreads,
    pub buffer: BufferLimits,
    /// For a store whose commits do not wait for the disk.
    pub sync_interval: Option<Duration>,
    pub seed: u64,
}

pub struct Stream {
    pub account: Arc<Account>,
    store: Arc<Store>,
    keeper: Arc<Keeper>,
    ingest: Mutex<Ingest>,
    senders: Arc<Senders>,
    reads: Arc<Reads>,
    subscriptions: Mutex<Vec<Arc<Subscription>>>,
    /// Used by one commit after the other.
    drained: Mutex<Drained>,
    closed: AtomicBool,
    /// When something may expire next; `i64::MAX` is never.
    expiry_due_ns: AtomicI64,
}

impl Stream {
    pub fn new(store: Arc<Store>, settings: Settings, surroundings: Surroundings<'_>) -> Arc<Self> {
        let Surroundings {
            account,
            senders,
            threads,
            buffer,
            sync_interval,
            seed,
        } = surroundings;
        let settings = Arc::new(settings);
        Arc::new_cyclic(|stream: &Weak<Self>| {
            let told = stream.clone();
            let keeper = Keeper::new(
                Arc::clone(&store),
                threads,
                sync_interval,
                move |progress| {
                    if let Some(stream) = told.upgrade() {
                        stream.told(&progress);
                    }
                },
            );
            let reads = Reads::new(
                Arc::clone(&store),
                Arc::clone(&account),
                Arc::clone(&senders),
                settings.name.clone(),
                threads,
            );
            Self {
                account,
                keeper,
                ingest: Mutex::new(Ingest::new(settings, buffer, seed)),
                senders,
                reads,
                subscriptions: Mutex::default(),
                drained: Mutex::default(),
                closed: AtomicBool::new(false),
                expiry_due_ns: AtomicI64::new(0),
                store,
            }
        })
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    pub fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.ingest.lock().settings)
    }

    pub fn reads(&self) -> &Arc<Reads> {
        &self.reads
    }

    /// Takes messages on its subjects from now on, and none on those it had before and has no more.
    pub fn listen(self: &Arc<Self>) {
        let settings = self.settings();
        let mut wanted: Vec<Wanted> = Vec::new();
        for subject in &settings.subjects {
            let sink: Arc<dyn Sink> = Arc::clone(self) as Arc<dyn Sink>;
            wanted.push(Wanted {
                subject: subject.clone().into_bytes(),
                queue: None,
                sink,
            });
        }
        let own = settings.allow_direct.then_some(&settings.name);
        for name in own.into_iter().chain(&settings.mirror_direct) {
            for tail in ["", ".>"] {
                let subject = format!("$JS.API.DIRECT.GET.{name}{tail}").into_bytes();
                let sink: Arc<dyn Sink> = Arc::clone(&self.reads) as Arc<dyn Sink>;
                wanted.push(Wanted {
                    subject,
                    queue: Some(DIRECT_GET_GROUP),
                    sink,
                });
            }
        }
        let mut subscriptions = self.subscriptions.lock();
        subscriptions.retain(|subscription| {
            let stays = wanted.iter().any(|wanted| wanted.is(subscription));
            if !stays {
                self.account.unsubscribe(subscription);
            }
            stays
        });
        for wanted in wanted {
            if subscriptions
                .iter()
                .any(|subscription| wanted.is(subscription))
            {
                continue;
            }
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

    /// Puts other settings in force. Limits that are lower than before take effect at once.
    pub fn update(self: &Arc<Self>, settings: Settings) -> StoreResult<()> {
        let limits = settings.limits;
        self.ingest.lock().set(Arc::new(settings), now_ns());
        self.store.set_limits(limits)?;
        self.expiry_due_ns.store(0, Ordering::Relaxed);
        self.listen();
        self.keeper.ask();
        Ok(())
    }

    /// Takes no messages any more.
    pub fn stop(&self) {
        self.closed.store(true, Ordering::Release);
        for subscription in self.subscriptions.lock().drain(..) {
            self.account.unsubscribe(&subscription);
        }
    }

    /// Takes messages again, after a removal that failed.
    pub fn listen_again(self: &Arc<Self>) {
        self.closed.store(false, Ordering::Release);
        self.listen();
    }

    /// Removes messages, durably; returns how many.
    pub fn purge(&self, purge: &Purge) -> StoreResult<u64> {
        let count = self.store.purge(purge)?;
        let committed = self.store.commit();
        self.keeper.ask();
        committed?;
        Ok(count)
    }

    /// Removes one message, durably; false if there is none.
    pub fn delete(&self, sequence: u64, erase: bool) -> StoreResult<bool> {
        let found = self.store.remove(sequence, erase)?;
        let committed = self.store.commit();
        self.keeper.ask();
        committed?;
        Ok(found)
    }

    /// What the clock asks for: messages expire, and commits that did not wait for the disk are synced.
    pub fn tick(&self, now_ns: i64) {
        // A failure is in the store's status, and the next publisher hears of it.
        let _ = self.keeper.tick();
        if now_ns < self.expiry_due_ns.load(Ordering::Relaxed) {
            return;
        }
        // Whatever is stored from now on sets it anew.
        self.expiry_due_ns.store(i64::MAX, Ordering::Relaxed);
        let markers = self.settings().delete_marker_ttl_ns > 0;
        let expired = self.store.expire(now_ns, markers).unwrap_or_default();
        for sequence in &expired.spared {
            self.mark_expired(*sequence, now_ns);
        }
        let next = self.store.next_expiry_ns().ok().flatten();
        self.expire_by(next.unwrap_or(i64::MAX));
        if expired != Expired::default() {
            self.keeper.ask();
        }
    }

    /// The last message of a subject has expired: a marker takes its place, unless it was one itself.
    fn mark_expired(&self, sequence: u64, now_ns: i64) {
        // What cannot be read is looked at again when the clock comes next.
        let Ok(Some(message)) = self.store.read(sequence) else {
            return;
        };
        if delete_marker::is_one(message.headers()) {
            // A failure is in the store's status.
            let _ = self.store.remove(sequence, false);
        } else {
            let mut ingest = self.ingest.lock();
            ingest.mark_expired(&self.store, message.subject(), sequence, now_ns);
        }
    }

    fn expire_by(&self, due_ns: i64) {
        self.expiry_due_ns.fetch_min(due_ns, Ordering::Relaxed);
    }

    /// Everything staged is committed, and the store says where it ends.
    pub fn close(&self) -> StoreResult<()> {
        self.stop();
        self.store.close()
    }

    /// Answers everything whose fate is known now.
    fn told(&self, progress: &Progress) {
        let mut drained = self.drained.lock();
        let settings = {
            let mut ingest = self.ingest.lock();
            ingest.settle(&self.store, progress, &mut drained);
            Arc::clone(&ingest.settings)
        };
        if drained.is_empty() {
            return;
        }
        if settings.limits.age_ns_max.is_some() || settings.allow_time_to_live {
            let next = self.store.next_expiry_ns().ok().flatten();
            self.expire_by(next.unwrap_or(i64::MAX));
        }
        // Taken out, so that no lock is held while something is sent.
        let mut due = std::mem::take(&mut *drained);
        drop(drained);
        self.senders.with(|sender| {
            let mut answer = Vec::new();
            due.for_each(|due| {
                answer.clear();
                self.answer(&settings, progress, &due, &mut answer, sender);
            });
        });
        due.clear();
        *self.drained.lock() = due;
    }

    fn answer(
        &self,
        settings: &Settings,
        progress: &Progress,
        due: &Due<'_>,
        answer: &mut Vec<u8>,
        sender: &mut Sender,
    ) {
        if due.reply.is_empty() {
            return;
        }
        let payload = match (due.about, due.refusal) {
            (About::Stored { .. }, Some(number)) => {
                store_refusal(&progress.refused[number].error).encode(&settings.name, answer);
                answer.as_slice()
            }
            (About::Stored { sequence }, None) if due.answer.is_empty() => {
                let stored = Stored {
                    stream: &settings.name,
                    domain: settings.domain.as_deref(),
                    sequence,
                    ..Stored::default()
                };
                stored.encode(answer);
                answer.as_slice()
            }
            _ => due.answer,
        };
        sender.send(
            &self.account,
            &Outgoing {
                subject: due.reply,
                reply: None,
                header: due.answer_header,
                payload,
            },
        );
    }
}

impl Sink for Stream {
    fn take(
        &self,
        _publisher: &Publisher<'_>,
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
        };
        let reply = publish.reply.unwrap_or_default();
        self.ingest
            .lock()
            .take(&self.store, &publication, reply, now_ns());
        true
    }

    fn settle(&self) {
        self.keeper.ask();
    }
}

/// A subscription that a stream wants to have.
struct Wanted {
    subject: Vec<u8>,
    queue: Option<&'static [u8]>,
    sink: Arc<dyn Sink>,
}

impl Wanted {
    fn is(&self, subscription: &Subscription) -> bool {
        *subscription.subject == *self.subject && subscription.queue.as_deref() == self.queue
    }
}
