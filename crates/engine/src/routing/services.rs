//! The server's own part in the conversation: handlers in Python that subscribe, and messages that Python publishes.
//!
//! A handler is a subscription whose messages leave the data plane as `ServiceRequest` events. A message from Python goes through a `Sender`, on
//! the calling thread.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use ahash::AHashMap;
use parking_lot::Mutex;

use super::account::Account;
use super::sender::{Outgoing, Senders};
use super::shared::Shared;
use super::subscription::{Receiver, Restrictions, Subscription};
use crate::common::error::EngineError;
use crate::common::permissions::Permissions;
use crate::common::subject;

pub struct Services {
    shared: Arc<Shared>,
    next_id: AtomicU64,
    handlers: Mutex<AHashMap<u64, Handler>>,
    senders: Senders,
}

struct Handler {
    account: Arc<Account>,
    subscription: Arc<Subscription>,
}

/// A message from Python.
pub struct ServiceMessage<'a> {
    pub account: &'a str,
    pub subject: &'a [u8],
    pub reply: Option<&'a [u8]>,
    pub header: &'a [u8],
    pub payload: &'a [u8],
    /// On whose behalf it is sent; `None` is the server's own.
    pub permissions: Option<&'a Arc<Permissions>>,
}

impl Services {
    pub fn new(shared: Arc<Shared>) -> Self {
        Self {
            senders: Senders::new(Arc::clone(&shared)),
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
        self.subscribe_with(account, subject, queue, Receiver::Service)
    }

    /// The same for a handler behind another receiver, which `receiver` makes from its number.
    pub fn subscribe_with(
        &self,
        account: &str,
        subject: &[u8],
        queue: Option<&[u8]>,
        receiver: impl FnOnce(u64) -> Receiver,
    ) -> Result<u64, EngineError> {
        if !subject::is_valid_subscription(subject) {
            return Err(EngineError::Options(format!(
                "{} is not a valid subject to subscribe to: use tokens that are not empty, and '>' only as the last one",
                subject::quoted(subject)
            )));
        }
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let account = self.shared.account(account);
        let subscription = Arc::new(Subscription::new(
            receiver(id),
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
    pub fn publish(&self, message: &ServiceMessage<'_>) -> Result<u32, EngineError> {
        if !subject::is_literal(message.subject) || has_blank(message.subject) {
            return Err(EngineError::Options(format!(
                "{} is not a valid subject to publish to: use tokens that are not empty, without wildcards and blanks",
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
        let outgoing = Outgoing {
            subject: message.subject,
            reply: message.reply,
            header: message.header,
            payload: message.payload,
        };
        Ok(self
            .senders
            .with(|sender| sender.send_for(&account, message.permissions, &outgoing)))
    }
}

/// Blanks and line ends would turn one protocol line into two.
fn has_blank(text: &[u8]) -> bool {
    text.iter()
        .any(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'))
}
