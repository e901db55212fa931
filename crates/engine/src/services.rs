//! The server's own part in the conversation: handlers in Python that subscribe, and messages that Python publishes.
//!
//! A handler is a subscription whose messages leave the data plane as `Request` events. A message from Python is routed like any other,
//! on the calling thread, with a router of its own. Invariant: one message at a time goes through `Injector`, under its lock; no lock is
//! held while a socket is written but this one, which no worker ever takes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use ahash::AHashMap;
use parking_lot::Mutex;

use crate::connection::staging::{Followup, Staging};
use crate::engine::Shared;
use crate::error::EngineError;
use crate::random::Random;
use crate::routing::account::Account;
use crate::routing::router::{Publisher, Router};
use crate::routing::subject;
use crate::routing::subscription::{Receiver, Restrictions, Subscription};
use crate::wire::Publish;

pub struct Services {
    shared: Arc<Shared>,
    next_id: AtomicU64,
    handlers: Mutex<AHashMap<u64, Handler>>,
    injector: Mutex<Injector>,
}

struct Handler {
    account: Arc<Account>,
    subscription: Arc<Subscription>,
}

/// What a message from Python is routed with.
struct Injector {
    router: Router,
    staging: Staging,
    followups: Vec<Followup>,
    /// The message as if it had been read from a socket: body, CR LF.
    buffer: Vec<u8>,
}

/// A message from Python.
pub struct Message<'a> {
    pub account: &'a str,
    pub subject: &'a [u8],
    pub reply: Option<&'a [u8]>,
    pub header: &'a [u8],
    pub payload: &'a [u8],
}

impl Services {
    pub fn new(shared: Arc<Shared>) -> Self {
        let random = Random::seeded(shared.clock.now_micros() ^ 0x5851_f42d_4c95_7f2d);
        Self {
            injector: Mutex::new(Injector {
                router: Router::new(Arc::clone(&shared), random),
                staging: Staging::new(usize::MAX),
                followups: Vec::new(),
                buffer: Vec::new(),
            }),
            shared,
            next_id: AtomicU64::new(1),
            handlers: Mutex::default(),
        }
    }

    /// Registers a handler and returns its number, which its requests will carry.
    pub fn subscribe(
        &self,
        account: &str,
        subject: &[u8],
        queue: Option<&[u8]>,
    ) -> Result<u64, EngineError> {
        if !subject::is_valid_subscription(subject) {
            return Err(EngineError::Options(format!(
                "{} is no subject to subscribe to: tokens must not be empty and '>' stands last",
                subject::quoted(subject)
            )));
        }
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let account = self.shared.account(account);
        let subscription = Arc::new(Subscription::new(
            Receiver::Service(id),
            subject,
            queue,
            b"",
            Restrictions::default(),
        ));
        account.subscribe(Arc::clone(&subscription));
        let handler = Handler {
            account,
            subscription,
        };
        self.handlers.lock().insert(id, handler);
        Ok(id)
    }

    /// Ends a handler; false when it is not there.
    pub fn unsubscribe(&self, id: u64) -> bool {
        let Some(handler) = self.handlers.lock().remove(&id) else {
            return false;
        };
        handler.account.unsubscribe(&handler.subscription);
        true
    }

    /// Whether anybody would get a message on this subject.
    pub fn has_interest(&self, account: &str, subject: &[u8]) -> bool {
        let (routes, _) = self.shared.account(account).find(subject);
        !routes.plain.is_empty() || !routes.groups.is_empty()
    }

    /// Publishes a message and returns how many got it.
    pub fn publish(&self, message: &Message<'_>) -> Result<u32, EngineError> {
        if !subject::is_literal(message.subject) || has_blank(message.subject) {
            return Err(EngineError::Options(format!(
                "{} is no subject to publish to: no wildcards, no blanks, no empty tokens",
                subject::quoted(message.subject)
            )));
        }
        if message
            .reply
            .is_some_and(|reply| reply.is_empty() || has_blank(reply))
        {
            return Err(EngineError::Options(
                "a reply subject must not be empty or hold blanks".to_owned(),
            ));
        }
        let account = self.shared.account(message.account);
        Ok(self
            .injector
            .lock()
            .publish(&self.shared, &account, message))
    }
}

impl Injector {
    fn publish(&mut self, shared: &Shared, account: &Arc<Account>, message: &Message<'_>) -> u32 {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        buffer.extend_from_slice(message.header);
        buffer.extend_from_slice(message.payload);
        let total_len = buffer.len();
        buffer.extend_from_slice(b"\r\n");
        let header_size_text = message.header.len().to_string();
        let total_size_text = total_len.to_string();
        let publish = Publish {
            subject: message.subject,
            reply: message.reply,
            header_size_text: header_size_text.as_bytes(),
            total_size_text: total_size_text.as_bytes(),
            header_len: message.header.len(),
            body: &buffer[..total_len],
        };
        let now_ms = shared.clock.now_ms();
        let publisher = Publisher {
            connection_id: 0,
            slot: None,
            account,
            echo: true,
            no_responders: false,
            now_ms,
        };
        let deliveries = self
            .router
            .publish(&publisher, &publish, &buffer, &mut self.staging);
        shared.events.push_requests(self.staging.take_requests());
        self.staging.flush(&buffer, now_ms, &mut self.followups);
        for followup in self.followups.drain(..) {
            shared.settle(&followup.connection, followup.flushed);
        }
        self.buffer = buffer;
        deliveries
    }
}

/// Blanks and line ends would turn one protocol line into two.
fn has_blank(text: &[u8]) -> bool {
    text.iter()
        .any(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'))
}
