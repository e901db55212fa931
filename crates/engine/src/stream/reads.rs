//! Requests for messages that wait to be read, and the job that reads them: a disk may be slow, and the threads that serve connections must not wait.
//!
//! Invariant: at most `WAITING_MAX` requests and `WAITING_BYTES_MAX` wait; what comes beyond is dropped, as its sender will find by its time-out.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;

use super::account_usage::{AccountUsage, StreamUsage};
use super::{direct_get, message_get};
use crate::connection::staging::Staging;
use crate::routing::account::Account;
use crate::routing::router::Publisher;
use crate::routing::sink::Sink;
use crate::sender::Senders;
use crate::storage::keeper::StorageThreads;
use crate::storage::store::Store;
use crate::storage::work_pool::Job;
use crate::wire::Publish;

/// Requests that wait for one stream at most.
const WAITING_MAX: usize = 10_000;

/// The same in bytes: a request may be as long as any message.
const WAITING_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A stream as its readers see it.
pub struct Source<'a> {
    pub name: &'a str,
    pub store: &'a Store,
    pub account: &'a Arc<Account>,
    pub usage: &'a AccountUsage,
}

enum Read {
    Direct {
        subject: Vec<u8>,
        reply: Vec<u8>,
        header: Vec<u8>,
        body: Vec<u8>,
    },
    Message {
        reply: Vec<u8>,
        query: message_get::Query,
    },
}

impl Read {
    fn bytes(&self) -> usize {
        match self {
            Self::Direct {
                subject,
                reply,
                header,
                body,
            } => subject.len() + reply.len() + header.len() + body.len(),
            Self::Message { reply, query } => reply.len() + query.bytes(),
        }
    }
}

#[derive(Default)]
struct Waiting {
    reads: VecDeque<Read>,
    bytes: usize,
}

pub struct Reads {
    name: String,
    store: Arc<Store>,
    account: Arc<Account>,
    usage: Arc<StreamUsage>,
    senders: Arc<Senders>,
    waiting: Mutex<Waiting>,
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
        self.push(Read::Message {
            reply: reply.to_vec(),
            query,
        });
    }

    fn push(&self, read: Read) {
        let bytes = read.bytes();
        let mut waiting = self.waiting.lock();
        if waiting.reads.len() < WAITING_MAX && waiting.bytes + bytes <= WAITING_BYTES_MAX {
            waiting.bytes += bytes;
            waiting.reads.push_back(read);
        }
    }

    fn run(&self) {
        let waiting = std::mem::take(&mut *self.waiting.lock()).reads;
        if waiting.is_empty() {
            return;
        }
        let source = Source {
            name: &self.name,
            store: &self.store,
            account: &self.account,
            usage: self.usage.account(),
        };
        self.senders.with(|sender| {
            for read in &waiting {
                match read {
                    Read::Direct {
                        subject,
                        reply,
                        header,
                        body,
                    } => direct_get::answer(&source, subject, header, body, reply, sender),
                    Read::Message { reply, query } => {
                        message_get::answer(&source, query, reply, sender);
                    }
                }
            }
        });
    }
}

impl Sink for Reads {
    fn take(
        &self,
        _publisher: &Publisher<'_>,
        publish: &Publish<'_>,
        _staging: &mut Staging,
    ) -> bool {
        if let Some(reply) = publish.reply {
            self.push(Read::Direct {
                subject: publish.subject.to_vec(),
                reply: reply.to_vec(),
                header: publish.header().to_vec(),
                body: publish.payload().to_vec(),
            });
        }
        true
    }

    fn settle(&self) {
        if let Some(job) = self.job.get() {
            job.ask();
        }
    }
}
