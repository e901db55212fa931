//! Republishing: a message that was stored goes out once more, under another subject, and says where it is stored.
//!
//! The publisher is answered when the copies can be read in the streams of this server that store them (`HeldAnswer`). Invariants: nobody waits on a
//! thread for that, so that streams may republish into each other; a copy that is refused does not keep the answer back.

use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use super::pending::{About, PendingItem};
use crate::common::clock::system_ns;
use crate::common::random::Random;
use crate::common::subject;
use crate::common::timestamp;
use crate::routing::account::Account;
use crate::routing::sender::{Outgoing, Sender, Senders};
use crate::storage::receipts::{IssueReceipt, Receipt};
use crate::stream::settings::{Republish, StreamSettings};
use crate::wire::stored_headers;

pub struct Republisher<'a> {
    settings: &'a StreamSettings,
    republish: &'a Republish,
    random: Random,
    subject: Vec<u8>,
    headers: Vec<u8>,
    text: Vec<u8>,
}

impl<'a> Republisher<'a> {
    /// None where nothing is republished.
    pub fn new(settings: &'a StreamSettings) -> Option<Self> {
        let republish = settings.republish.as_ref()?;
        Some(Self {
            settings,
            republish,
            random: Random::seeded(system_ns() as u64),
            subject: Vec::new(),
            headers: Vec::new(),
            text: Vec::new(),
        })
    }

    /// Publishes a message that was stored, if it is among those that are.
    pub fn publish(
        &mut self,
        account: &Arc<Account>,
        due: &PendingItem<'_>,
        sender: &mut Sender,
        copies: &Copies<'_>,
    ) {
        let About::Stored { sequence } = due.about else {
            return;
        };
        self.subject.clear();
        let transform = &self.republish.transform;
        if !transform.apply(due.subject, &mut self.random, &mut self.subject)
            || !subject::is_literal(&self.subject)
        {
            return;
        }
        self.headers.clear();
        self.headers.extend_from_slice(due.kept_headers);
        self.add(b"Nats-Stream", |text, settings| {
            text.extend_from_slice(settings.name.as_bytes());
        });
        self.add(b"Nats-Subject", |text, _| {
            text.extend_from_slice(due.subject)
        });
        self.add(b"Nats-Sequence", |text, _| put_number(text, sequence));
        self.add(b"Nats-Time-Stamp", |text, _| {
            timestamp::write(text, due.time_ns)
        });
        self.add(b"Nats-Last-Sequence", |text, _| {
            put_number(text, due.previous_sequence);
        });
        let mut payload = due.kept_payload;
        if self.republish.headers_only {
            self.add(b"Nats-Msg-Size", |text, _| {
                put_number(text, due.kept_payload.len() as u64);
            });
            payload = b"";
        }
        let outgoing = Outgoing {
            subject: &self.subject,
            reply: None,
            header: &self.headers,
            payload,
        };
        sender.send_with_receipts(account, &outgoing, copies);
    }

    fn add(&mut self, name: &[u8], write: impl FnOnce(&mut Vec<u8>, &StreamSettings)) {
        self.text.clear();
        write(&mut self.text, self.settings);
        stored_headers::add(&mut self.headers, 0, name, &self.text);
    }
}

fn put_number(text: &mut Vec<u8>, number: u64) {
    text.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// An answer to a publisher that waits for copies of what was published.
pub struct HeldAnswer {
    account: Arc<Account>,
    senders: Arc<Senders>,
    /// Copies that are not stored yet, and one until the answer is there.
    waiting: AtomicUsize,
    answer: OnceLock<RepublishAnswer>,
}

struct RepublishAnswer {
    reply: Box<[u8]>,
    header: Box<[u8]>,
    payload: Box<[u8]>,
}

impl HeldAnswer {
    /// Sends an answer as soon as all copies are stored.
    pub fn send(&self, outgoing: &Outgoing<'_>) {
        let answer = RepublishAnswer {
            reply: outgoing.subject.into(),
            header: outgoing.header.into(),
            payload: outgoing.payload.into(),
        };
        // There is one answer, given once.
        let _ = self.answer.set(answer);
        self.count_down();
    }

    fn count_down(&self) {
        if self.waiting.fetch_sub(1, Ordering::AcqRel) > 1 {
            return;
        }
        let Some(answer) = self.answer.get() else {
            return;
        };
        let outgoing = Outgoing {
            subject: &answer.reply,
            reply: None,
            header: &answer.header,
            payload: &answer.payload,
        };
        self.senders.with(|sender| {
            sender.send(&self.account, &outgoing);
        });
    }
}

impl Receipt for HeldAnswer {
    fn complete(&self, _outcome: Result<(), &str>) {
        self.count_down();
    }
}

/// The copies that the next answer of a stream has to wait for; none where nobody stores what is republished.
pub struct Copies<'a> {
    account: &'a Arc<Account>,
    senders: &'a Arc<Senders>,
    held: RefCell<Option<Arc<HeldAnswer>>>,
}

impl<'a> Copies<'a> {
    pub fn new(account: &'a Arc<Account>, senders: &'a Arc<Senders>) -> Self {
        Self {
            account,
            senders,
            held: RefCell::default(),
        }
    }

    /// What the next answer has to wait for.
    pub fn take_held(&self) -> Option<Arc<HeldAnswer>> {
        self.held.borrow_mut().take()
    }
}

impl IssueReceipt for Copies<'_> {
    fn issue(&self) -> Arc<dyn Receipt> {
        let mut held = self.held.borrow_mut();
        let held = held.get_or_insert_with(|| {
            Arc::new(HeldAnswer {
                account: Arc::clone(self.account),
                senders: Arc::clone(self.senders),
                waiting: AtomicUsize::new(1),
                answer: OnceLock::new(),
            })
        });
        held.waiting.fetch_add(1, Ordering::AcqRel);
        Arc::clone(held) as Arc<dyn Receipt>
    }
}
