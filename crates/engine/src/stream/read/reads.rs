//! Requests for messages, and the job that reads what is not in memory: a disk may be slow, and the threads that serve connections must not wait.
//!
//! A direct get of one message is answered by the thread that took it if the message can be read without a disk, which spares two changes of threads.
//! Everything else waits for the job. Invariant: at most `WAITING_MAX` requests and `WAITING_BYTES_MAX` wait; what comes beyond is dropped, as its sender will find by its time-out.

use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;

use super::direct_get::{Answers, DirectGetRequest};
use super::message_get;
use crate::routing::account::Account;
use crate::routing::router::Publisher;
use crate::routing::sender::Senders;
use crate::routing::sink::Sink;
use crate::routing::staging::Staging;
use crate::storage::commit::scheduler::StorageThreads;
use crate::storage::commit::work_pool::Job;
use crate::storage::store::Store;
use crate::stream::usage::account_usage::{AccountUsage, StreamUsage};
use crate::wire::Publish;

/// Requests that wait for one stream at most.
const WAITING_MAX: usize = 10_000;

/// The same in bytes: a request may be as long as any message.
const WAITING_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Direct gets that are taken at most before they are looked at: as many as make good use of one write to a socket.
const ARRIVED_MAX: usize = 1_024;

/// The same in bytes.
const ARRIVED_BYTES_MAX: usize = 1024 * 1024;

/// A stream as its readers see it.
pub struct ReadableStream<'a> {
    pub name: &'a str,
    pub store: &'a Store,
    pub account: &'a Arc<Account>,
    pub usage: &'a AccountUsage,
}

/// Direct gets with their texts one after the other, so that taking one allocates nothing.
#[derive(Default)]
struct QueuedDirectGets {
    texts: Vec<u8>,
    lengths: Vec<Lengths>,
}

struct Lengths {
    subject: usize,
    reply: usize,
    header: usize,
    body: usize,
}

impl QueuedDirectGets {
    fn push(&mut self, request: &DirectGetRequest<'_>) {
        let DirectGetRequest {
            subject,
            reply,
            header,
            body,
        } = request;
        for text in [subject, reply, header, body] {
            self.texts.extend_from_slice(text);
        }
        self.lengths.push(Lengths {
            subject: subject.len(),
            reply: reply.len(),
            header: header.len(),
            body: body.len(),
        });
    }

    fn iter(&self) -> impl Iterator<Item = DirectGetRequest<'_>> {
        let mut rest = self.texts.as_slice();
        self.lengths.iter().map(move |lengths| {
            let mut take = |length| {
                let (text, behind) = rest.split_at(length);
                rest = behind;
                text
            };
            DirectGetRequest {
                subject: take(lengths.subject),
                reply: take(lengths.reply),
                header: take(lengths.header),
                body: take(lengths.body),
            }
        })
    }

    fn len(&self) -> usize {
        self.lengths.len()
    }

    fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }
}

/// What waits for the job.
#[derive(Default)]
struct WaitingReads {
    direct: QueuedDirectGets,
    messages: Vec<(Vec<u8>, message_get::Query)>,
    messages_bytes: usize,
}

impl WaitingReads {
    fn has_room(&self, bytes: usize) -> bool {
        self.direct.len() + self.messages.len() < WAITING_MAX
            && self.direct.texts.len() + self.messages_bytes + bytes <= WAITING_BYTES_MAX
    }

    fn is_empty(&self) -> bool {
        self.direct.is_empty() && self.messages.is_empty()
    }
}

pub struct Reads {
    name: String,
    store: Arc<Store>,
    account: Arc<Account>,
    usage: Arc<StreamUsage>,
    senders: Arc<Senders>,
    /// Direct gets that nobody has looked at yet.
    arrived: Mutex<QueuedDirectGets>,
    waiting: Mutex<WaitingReads>,
    job: OnceLock<Arc<Job>>,
}

impl Reads {
    pub fn new(
        store: Arc<Store>,
        account: Arc<Account>,
        usage: Arc<StreamUsage>,
        senders: Arc<Senders>,
        name: String,
        threads: &StorageThreads,
    ) -> Arc<Self> {
        let reads = Arc::new(Self {
            name,
            store,
            account,
            usage,
            senders,
            arrived: Mutex::default(),
            waiting: Mutex::default(),
            job: OnceLock::new(),
        });
        let weak: Weak<Self> = Arc::downgrade(&reads);
        let job = threads.reading(move || {
            if let Some(reads) = weak.upgrade() {
                reads.run();
            }
        });
        // Nobody else has it yet.
        let _ = reads.job.set(job);
        reads
    }

    /// Answers a request for one message.
    pub fn message(&self, reply: &[u8], query: message_get::Query) {
        let bytes = reply.len() + query.bytes();
        let mut waiting = self.waiting.lock();
        if waiting.has_room(bytes) {
            waiting.messages_bytes += bytes;
            waiting.messages.push((reply.to_vec(), query));
        }
    }

    fn source(&self) -> ReadableStream<'_> {
        ReadableStream {
            name: &self.name,
            store: &self.store,
            account: &self.account,
            usage: self.usage.account(),
        }
    }

    /// Answers, on the thread that took them, those direct gets that need no disk; the others wait for the job.
    fn answer_arrived(&self) {
        let arrived = std::mem::take(&mut *self.arrived.lock());
        if arrived.is_empty() {
            return;
        }
        let source = self.source();
        self.senders.with(|sender| {
            let mut answers = Answers::new(&source, sender);
            for request in arrived.iter() {
                if answers.answer_cached(&request) {
                    continue;
                }
                let mut waiting = self.waiting.lock();
                if waiting.has_room(request.bytes()) {
                    waiting.direct.push(&request);
                }
            }
        });
    }

    fn run(&self) {
        let waiting = std::mem::take(&mut *self.waiting.lock());
        if waiting.is_empty() {
            return;
        }
        let source = self.source();
        self.senders.with(|sender| {
            for (reply, query) in &waiting.messages {
                message_get::answer(&source, query, reply, sender);
            }
            let mut answers = Answers::new(&source, sender);
            for request in waiting.direct.iter() {
                answers.answer(&request);
            }
        });
    }
}

impl Sink for Reads {
    fn accept(
        &self,
        _publisher: &Publisher<'_>,
        publish: &Publish<'_>,
        _staging: &mut Staging,
    ) -> bool {
        if let Some(reply) = publish.reply {
            let mut arrived = self.arrived.lock();
            arrived.push(&DirectGetRequest {
                subject: publish.subject,
                reply,
                header: publish.header(),
                body: publish.payload(),
            });
            let full = arrived.len() >= ARRIVED_MAX || arrived.texts.len() >= ARRIVED_BYTES_MAX;
            drop(arrived);
            if full {
                self.answer_arrived();
            }
        }
        true
    }

    fn finish_read(&self) {
        self.answer_arrived();
        if let Some(job) = self.job.get() {
            if !self.waiting.lock().is_empty() {
                job.schedule();
            }
        }
    }
}
