//! Message tracing: a publisher asks by a header where its message goes, and hears it as one event on a subject of its choice.
//!
//! `request` reads what a header block asks for; `steps` are the things that happened to the message; `sending` makes the event. The
//! session begins a trace, the router and the streams add to it, and the session sends it when the publish is done.
//!
//! Invariant: a message that is only traced (`only`) reaches no subscriber, no stream and no handler; and a message without
//! such a header costs nothing more than a look at the first bytes of its header lines.

pub mod request;
mod sending;
mod steps;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::routing::account::Account;
use crate::routing::clients::connection::Connection;
use crate::routing::subscription::Subscription;
use steps::TraceStep;

pub use sending::Encoding;

pub const NO_ECHO: &str = "Not delivered because of no echo";
pub const SUBSCRIPTION_DENIES: &str = "Not delivered because subscription denies this subject";
pub const SUBSCRIPTION_CLOSED: &str = "Not delivered because subscription is closed";
pub const RECEIVER_SLOW: &str =
    "Not delivered because fast producer not stalled and consumer is slow";

/// What requests of streams begin with.
const STREAM_API: &[u8] = b"$JS.API.";

/// Requests that the account itself answers and not the system account.
const OWN_REQUESTS: [&[u8]; 2] = [b"$JS.API.CONSUMER.MSG.NEXT.", b"$JS.API.DIRECT.GET."];

/// One message that is traced. Belongs to the thread that reads its publisher.
pub struct MessageTrace {
    /// Nothing is delivered and nothing is stored.
    pub only: bool,
    account: Arc<Account>,
    /// The subject of the event; a literal that the publisher may publish to.
    destination: Vec<u8>,
    encoding: Encoding,
    headers: BTreeMap<String, Vec<String>>,
    message_bytes: usize,
    /// The first is the arrival.
    steps: RefCell<Vec<TraceStep>>,
}

/// What a trace begins with.
pub struct TraceBegin<'a> {
    pub only: bool,
    pub account: &'a Arc<Account>,
    pub destination: Vec<u8>,
    pub headers: BTreeMap<String, Vec<String>>,
    pub message_bytes: usize,
    pub publisher: &'a Connection,
    pub subject: &'a [u8],
}

impl MessageTrace {
    pub fn begin(begin: TraceBegin<'_>) -> Self {
        let TraceBegin {
            only,
            account,
            destination,
            headers,
            message_bytes,
            publisher,
            subject,
        } = begin;
        let encoding = headers
            .get(request::ACCEPT_ENCODING)
            .and_then(|values| values.first())
            .map_or(Encoding::Unasked, |value| Encoding::chosen(value));
        Self {
            only,
            account: Arc::clone(account),
            destination,
            encoding,
            headers,
            message_bytes,
            steps: RefCell::new(vec![TraceStep::ingress(publisher, account, subject)]),
        }
    }

    /// The message was refused when it arrived.
    pub fn refuse(&self, text: &str) {
        if let Some(TraceStep::Ingress { error, .. }) = self.steps.borrow_mut().first_mut() {
            text.clone_into(error);
        }
    }

    /// The message went to a subscriber, or not.
    pub fn deliver(&self, receiver: &Connection, subscription: &Subscription, error: &'static str) {
        let account = receiver.identity.lock().account.clone();
        // Named only if it is another one.
        let account = if account == self.account.name {
            String::new()
        } else {
            account
        };
        self.add(TraceStep::egress(receiver, account, subscription, error));
    }

    /// The message goes to a service of another account.
    pub fn import_service(&self, account: &str, from: &[u8], to: &[u8]) {
        self.add(TraceStep::service_import(account, from, to));
    }

    /// The message goes to a subscriber in another account, under this subject.
    pub fn export_stream(&self, account: &str, subject: &[u8]) {
        self.add(TraceStep::stream_export(account, subject));
    }

    /// The account maps the message to another subject.
    pub fn map(&self, subject: &[u8]) {
        self.add(TraceStep::mapping(subject));
    }

    /// The message came to a stream, which stores it under `subject` if there is no error.
    pub fn store(&self, stream: &str, subject: &[u8], is_wanted: bool, error: &str) {
        self.add(TraceStep::jetstream(stream, subject, is_wanted, error));
    }

    /// The message is a request to the server itself. It leaves the account if the system account answers it.
    pub fn request(&self, system_account: &str, subject: &[u8]) {
        let leaves = subject.starts_with(STREAM_API)
            && !OWN_REQUESTS.iter().any(|own| subject.starts_with(own))
            && system_account != self.account.name
            && !system_account.is_empty();
        if leaves {
            self.add(TraceStep::service_import(system_account, subject, subject));
        }
    }

    fn add(&self, step: TraceStep) {
        self.steps.borrow_mut().push(step);
    }
}
