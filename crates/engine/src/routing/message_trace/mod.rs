//! Message tracing: a publisher asks by a header where its message goes, and receives one event on a subject of its choice.
//!
//! `request` reads what a header block asks for; `steps` are the things that happened to the message; `sending` makes the event. The
//! session begins a trace, the router and the streams add to it, and the session sends it when the publish is done.
//!
//! Invariant: a message that is only traced (`only`) reaches no subscriber, no stream and no handler; and a message without
//! such a header costs nothing more than a look at the first bytes of its header lines.

pub mod request;
mod sending;
mod steps;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::routing::account::Account;
use crate::routing::clients::connection::Connection;
use crate::routing::leaf::LeafLink;
use crate::routing::subscription::Subscription;
use steps::TraceStep;

pub use sending::Encoding;

pub const NO_ECHO: &str = "Not delivered because of no echo";
pub const SUBSCRIPTION_DENIES: &str = "Not delivered because subscription denies this subject";
pub const SUBSCRIPTION_CLOSED: &str = "Not delivered because subscription is closed";
pub const RECEIVER_SLOW: &str =
    "Not delivered because fast producer not stalled and consumer is slow";

pub const PUBLISH_DENIED: &str = "Not delivered because publish denied for this subject";
/// A dry run must not go to a server that would deliver it.
pub const DRY_RUN_UNSUPPORTED: &str =
    "Not delivered because remote does not support message tracing";
pub const UNSUPPORTED: &str = "Message delivered but remote does not support message tracing so no trace event generated from there";

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
    /// Which of the servers on the way this one is; empty for the first.
    hop: String,
    /// How many servers the message was sent on to.
    hops: Cell<u32>,
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
    pub hop: String,
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
            hop,
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
            hop,
            hops: Cell::new(0),
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
        let account = self.named_account(receiver);
        self.add(TraceStep::egress(receiver, account, subscription, error));
    }

    /// The number of the next server that the message is sent on to: `1`, and from there `1.1`.
    pub fn next_hop(&self) -> String {
        let number = self.hops.get() + 1;
        self.hops.set(number);
        match self.hop.as_str() {
            "" => number.to_string(),
            hop => format!("{hop}.{number}"),
        }
    }

    /// The message was sent on to another server, or not.
    pub fn forward(&self, link: &LeafLink, hop: String, error: &'static str) {
        let account = self.named_account(&link.connection);
        let step = TraceStep::forwarded(&link.connection, account, hop, error);
        self.add(step);
    }

    /// The account of a receiver, if it is another one than the publisher's; else empty.
    fn named_account(&self, receiver: &Connection) -> String {
        let account = receiver.identity.lock().account.clone();
        match account == self.account.name {
            true => String::new(),
            false => account,
        }
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
