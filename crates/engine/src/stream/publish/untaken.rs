//! Messages on the subjects of a template that no stream takes yet: held until Python has decided, so that the first one is not lost.
//!
//! The router brings messages here only where nobody stores them. The first of a subject is told to Python, which makes a stream or refuses; what comes
//! meanwhile waits behind it. A new stream is handed what waits before it listens, and what arrives by routes that were found earlier is passed on to it.
//! Invariants: messages of one publisher are stored in their order; what waits is bounded; nothing is sent while a lock is held.

use std::sync::{Arc, Weak};

use ahash::AHashMap;
use parking_lot::Mutex;

use super::checks::Publication;
use crate::common::error::EngineError;
use crate::common::subject;
use crate::routing::account::Account;
use crate::routing::router::Publisher;
use crate::routing::sender::{Outgoing, Senders};
use crate::routing::services::Services;
use crate::routing::sink::Sink;
use crate::routing::staging::Staging;
use crate::routing::subscription::Receiver;
use crate::stream::registry::Streams;
use crate::stream::stream::Stream;
use crate::wire::dialect::Dialect;
use crate::wire::Publish;

/// Messages of one template that wait for a decision, at most; a decision takes milliseconds.
const WAITING_MESSAGES_MAX: usize = 10_000;

/// The same in bytes.
const WAITING_BYTES_MAX: usize = 16 * 1024 * 1024;

/// After so long the decision is asked for once more: a queue in between may have overflowed.
const ASK_AGAIN_MS: u64 = 2_000;

const TOO_MANY: &str = "too many messages wait for their stream to be made";

struct UntakenMessage {
    reply: Box<[u8]>,
    header: Box<[u8]>,
    payload: Box<[u8]>,
}

enum Subject {
    Waiting {
        messages: Vec<UntakenMessage>,
        asked_ms: u64,
    },
    /// Made meanwhile; those who found their routes before do not know yet.
    Taken(Weak<Stream>),
}

#[derive(Default)]
struct HeldSubject {
    by_subject: AHashMap<Box<[u8]>, Subject>,
    messages: usize,
    bytes: usize,
    /// Replies that are refused for want of room, when it is time to send.
    refused: Vec<Box<[u8]>>,
    /// Streams that were passed something.
    passed_on: Vec<Arc<Stream>>,
}

pub struct Untaken {
    account: Arc<Account>,
    senders: Arc<Senders>,
    service: u64,
    held: Mutex<HeldSubject>,
}

impl Untaken {
    pub fn new(streams: &Streams, account: Arc<Account>, service: u64) -> Arc<Self> {
        Arc::new(Self {
            account,
            senders: Arc::clone(&streams.senders),
            service,
            held: Mutex::default(),
        })
    }

    /// A stream is about to listen: it gets what waits for it.
    pub fn hand_over(&self, stream: &Arc<Stream>) {
        let subjects = &stream.settings().subjects;
        let mut held = self.held.lock();
        let mut count = 0;
        let HeldSubject {
            by_subject,
            messages,
            bytes,
            ..
        } = &mut *held;
        for (of, entry) in by_subject.iter_mut() {
            if !subjects
                .iter()
                .any(|wanted| subject::matches(wanted.as_bytes(), of))
            {
                continue;
            }
            let taken = Subject::Taken(Arc::downgrade(stream));
            if let Subject::Waiting {
                messages: waiting, ..
            } = std::mem::replace(entry, taken)
            {
                for message in waiting {
                    *messages -= 1;
                    *bytes -= message.payload.len() + message.header.len();
                    stream.take_held(
                        &Publication {
                            subject: of,
                            headers: &message.header,
                            payload: &message.payload,
                            now_ns: stream.now_ns(),
                        },
                        &message.reply,
                    );
                    count += 1;
                }
            }
        }
        drop(held);
        if count > 0 {
            stream.commit_soon();
        }
    }

    /// Nobody will take messages of this subject: those who wait are answered why.
    pub fn refuse(&self, of: &[u8], text: &str) {
        let mut held = self.held.lock();
        let mut replies = Vec::new();
        if let Some(Subject::Waiting { messages, .. }) = held.by_subject.remove(of) {
            for message in messages {
                held.messages -= 1;
                held.bytes -= message.payload.len() + message.header.len();
                replies.push(message.reply);
            }
        }
        drop(held);
        self.answer(&replies, text);
    }

    fn answer(&self, replies: &[Box<[u8]>], text: &str) {
        let mut payload = Vec::new();
        Dialect::Of2020.put_refusal(text, &mut payload);
        self.senders.with(|sender| {
            for reply in replies.iter().filter(|reply| !reply.is_empty()) {
                let outgoing = Outgoing {
                    subject: reply,
                    reply: None,
                    header: b"",
                    payload: &payload,
                };
                sender.send(&self.account, &outgoing);
            }
        });
    }

    /// Whether to ask Python.
    fn hold(held: &mut HeldSubject, publisher: &Publisher<'_>, publish: &Publish<'_>) -> bool {
        let size = publish.body.len();
        if held.messages >= WAITING_MESSAGES_MAX || held.bytes + size > WAITING_BYTES_MAX {
            if held.refused.len() < WAITING_MESSAGES_MAX {
                held.refused.push(publish.reply.unwrap_or_default().into());
            }
            return false;
        }
        held.messages += 1;
        held.bytes += size;
        let message = UntakenMessage {
            reply: publish.reply.unwrap_or_default().into(),
            header: publish.header().into(),
            payload: publish.payload().into(),
        };
        let now_ms = publisher.now_ms;
        match held.by_subject.get_mut(publish.subject) {
            Some(Subject::Waiting { messages, asked_ms }) => {
                messages.push(message);
                let is_due = now_ms.saturating_sub(*asked_ms) >= ASK_AGAIN_MS;
                if is_due {
                    *asked_ms = now_ms;
                }
                is_due
            }
            _ => {
                let entry = Subject::Waiting {
                    messages: vec![message],
                    asked_ms: now_ms,
                };
                held.by_subject.insert(publish.subject.into(), entry);
                true
            }
        }
    }
}

impl Sink for Untaken {
    fn accept(
        &self,
        publisher: &Publisher<'_>,
        publish: &Publish<'_>,
        staging: &mut Staging,
    ) -> bool {
        let mut held = self.held.lock();
        if let Some(Subject::Taken(stream)) = held.by_subject.get(publish.subject) {
            if let Some(stream) = stream.upgrade() {
                if stream.accept(publisher, publish, staging) {
                    held.passed_on.push(stream);
                    return true;
                }
            }
        }
        if Self::hold(&mut held, publisher, publish) {
            let question = Publish {
                reply: None,
                header_size_text: b"0",
                total_size_text: b"0",
                header_len: 0,
                body: b"",
                ..*publish
            };
            staging.request(self.service, publisher, &question);
        }
        true
    }

    fn finish_read(&self) {
        let (refused, passed_on) = {
            let mut held = self.held.lock();
            (
                std::mem::take(&mut held.refused),
                std::mem::take(&mut held.passed_on),
            )
        };
        for stream in passed_on {
            stream.finish_read();
        }
        if !refused.is_empty() {
            self.answer(&refused, TOO_MANY);
        }
    }

    fn wants_unstored(&self) -> bool {
        true
    }
}

impl Streams {
    /// Hands messages on these subjects to Python that no stream takes, and holds them until it has decided. Returns the number of the handler.
    pub fn subscribe_untaken(
        &self,
        services: &Services,
        account: &str,
        of: &[u8],
    ) -> Result<u64, EngineError> {
        services.subscribe_with(account, of, None, |service| {
            let untaken = Untaken::new(self, self.shared.account(account), service);
            self.add_untaken(account, &untaken);
            Receiver::Sink(untaken)
        })
    }

    fn add_untaken(&self, account: &str, untaken: &Arc<Untaken>) {
        let mut all = self.untaken.lock();
        let of_account = all.entry(account.to_owned()).or_default();
        of_account.retain(|other| other.strong_count() > 0);
        of_account.push(Arc::downgrade(untaken));
    }

    pub(in crate::stream) fn hand_over_untaken(&self, account: &str, stream: &Arc<Stream>) {
        for untaken in self.untaken_of(account) {
            untaken.hand_over(stream);
        }
    }

    /// Python has decided that no stream is made for a subject; one that is there all the same gets what waits.
    pub fn refuse_untaken(&self, account: &str, of: &[u8], text: &str) {
        let takes = |stream: &&Arc<Stream>| {
            let settings = stream.settings();
            let mut subjects = settings.subjects.iter();
            subjects.any(|wanted| subject::matches(wanted.as_bytes(), of))
        };
        let all = self.all();
        let of_account = all.iter().filter(|stream| stream.account.name == account);
        let there = of_account.into_iter().find(takes);
        for untaken in self.untaken_of(account) {
            match there {
                Some(stream) => untaken.hand_over(stream),
                None => untaken.refuse(of, text),
            }
        }
    }

    fn untaken_of(&self, account: &str) -> Vec<Arc<Untaken>> {
        let all = self.untaken.lock();
        let of_account = all.get(account).into_iter().flatten();
        of_account.filter_map(Weak::upgrade).collect()
    }
}
