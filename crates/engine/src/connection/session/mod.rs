//! One client's conversation: what each operation does, what is answered, and when it ends.
//!
//! A session belongs to one worker thread. It reads operations from a buffer and writes answers into the worker's staging; it never
//! touches a socket. Invariant: nothing is routed before `phase` is `Open`.

mod access;
mod connect;
mod keepalive;
mod leaf;
mod refusals;
mod subscriptions;
mod tracing;

pub use connect::Decision;
pub use keepalive::Tick;
pub use leaf::LeafState;

use leaf::leaf_line_bytes_max;

use std::sync::atomic::Ordering;
use std::sync::Arc;

use ahash::AHashMap;

use access::ClientAccess;
use tracing::Tracing;

use crate::common::subject;
use crate::config::connection_type::ConnectionType;
use crate::config::leaf::LeafCompression;
use crate::config::options::{
    UNCONNECTED_PAYLOAD_BYTES_MAX, WEBSOCKET_MESSAGE_BYTES_MAX, WEBSOCKET_MESSAGE_PAYLOADS,
};
use crate::connection::connect_options::{ConnectOptions, Credentials};
use crate::connection::input::Input;
use crate::connection::trace;
use crate::routing::account::Account;
use crate::routing::clients::closed_reason::ClosedReason;
use crate::routing::clients::connection::Connection;
use crate::routing::mappings::Mapped;
use crate::routing::message_trace::{request, MessageTrace};
use crate::routing::own_requests;
use crate::routing::router::{Publisher, Router};
use crate::routing::sender::Sender;
use crate::routing::shared::Shared;
use crate::routing::staging::Staging;
use crate::routing::subscription::Subscription;
use crate::transport::websocket::upgrade::Cookies;
use crate::wire::{
    announced_subject, encoder, parse, Operation, ParserLimits, ParserStep, ProtocolViolation,
    Publish,
};

pub struct Session {
    pub connection: Arc<Connection>,
    pub input: Input,
    phase: SessionPhase,
    account: Arc<Account>,
    access: ClientAccess,
    options: ConnectOptions,
    /// Let in after CONNECT.
    connected: bool,
    said_connect: bool,
    /// Messages for a receiver that is about to be cut off are dropped; otherwise their publisher is stalled.
    drops_for_slow: bool,
    /// Whether anything but noise was said: such a client is not cut off for never saying CONNECT.
    spoke: bool,
    /// The first PING after CONNECT was answered: only that answer carries a second INFO.
    answered_ping: bool,
    /// The subject of the publish that is arriving was refused already.
    subject_refused: bool,
    limits: ParserLimits,
    subscriptions: AHashMap<Box<[u8]>, Arc<Subscription>>,
    pings_outstanding: u32,
    ping_due_ms: u64,
    ping_sent_micros: u64,
    round_trip_measured_ms: Option<u64>,
    nonce: String,
    /// What CONNECT carried, kept to ask again after a reload.
    credentials: Option<Box<Credentials>>,
    /// What the handshake of TLS showed, as JSON; empty without TLS.
    pub tls: Vec<u8>,
    /// Credentials that came with the upgrade to WebSocket.
    pub cookies: Option<Box<Cookies>>,
    /// When what it was let in with ends.
    expires_unix_ms: Option<u64>,
    review_pending: bool,
    /// Counted among the clients of `account`.
    in_account: bool,
    /// Of a conversation with another server.
    leaf: Option<Box<LeafState>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SessionPhase {
    /// CONNECT is awaited before anything else.
    Closed,
    /// Python decides; nothing is read meanwhile.
    AwaitingVerdict,
    Open,
}

/// Where `process` stopped, and why.
pub struct SessionProgress {
    pub consumed: usize,
    pub next: Next,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Read on; this many bytes from `consumed` on are needed for the next operation.
    Read {
        bytes_needed: usize,
    },
    /// Much is staged for one receiver: hand it over, then go on from `consumed`.
    HandOver,
    /// Wait for the verdict; the rest of the buffer is kept.
    Wait,
    /// Begin TLS, as a client.
    Secure,
    /// Everything that follows is compressed, in both directions.
    Compress(LeafCompression),
    Close(ClosedReason),
}

/// What a session works with; all of it belongs to the worker.
pub struct Context<'a> {
    pub shared: &'a Arc<Shared>,
    pub router: &'a mut Router,
    pub staging: &'a mut Staging,
    /// Sends the events of messages that are traced; made with the first.
    pub trace_sender: &'a mut Option<Sender>,
    pub now_ms: u64,
}

impl Session {
    pub fn new(connection: Arc<Connection>, shared: &Shared, nonce: String) -> Self {
        let options = shared.options();
        let requires_login = shared.requires_login(&connection);
        let is_leaf = connection.connection_type().is_leaf();
        let is_internal = connection.connection_type() == ConnectionType::Internal;
        let account = match is_internal {
            true => shared.account(&connection.identity.lock().account.clone()),
            false => Arc::clone(shared.global_account()),
        };
        connection.identity.lock().account.clone_from(&account.name);
        let is_counted = !is_leaf && !is_internal && !requires_login;
        let mut session = Self {
            connection,
            input: Input::default(),
            phase: if requires_login {
                SessionPhase::Closed
            } else {
                SessionPhase::Open
            },
            in_account: is_counted && account.enter(None),
            account,
            access: ClientAccess::default(),
            options: ConnectOptions::default(),
            connected: false,
            said_connect: false,
            drops_for_slow: !options.fast_producer_stall,
            spoke: false,
            answered_ping: false,
            subject_refused: false,
            limits: ParserLimits {
                control_line_bytes_max: options.max_control_line_bytes,
                payload_bytes_max: options.max_payload_bytes.min(UNCONNECTED_PAYLOAD_BYTES_MAX),
                headers: false,
            },
            subscriptions: AHashMap::new(),
            pings_outstanding: 0,
            ping_due_ms: 0,
            ping_sent_micros: 0,
            round_trip_measured_ms: None,
            nonce,
            credentials: None,
            tls: Vec::new(),
            cookies: None,
            expires_unix_ms: None,
            review_pending: false,
            leaf: None,
        };
        if is_leaf {
            session.prepare_leaf(shared);
        }
        session
    }

    /// Whether the client has been let in or, where nobody asks who it is, has said something that makes sense. A server that this one has connected to is known.
    pub fn is_known(&self) -> bool {
        let is_in = self.phase == SessionPhase::Open && (self.connected || self.spoke);
        is_in || self.is_solicited()
    }

    /// Other options are in force.
    pub fn apply_options(&mut self, shared: &Shared) {
        let options = shared.options();
        self.drops_for_slow = !options.fast_producer_stall;
        self.limits.control_line_bytes_max = match self.is_leaf() {
            true => leaf_line_bytes_max(&options),
            false => options.max_control_line_bytes,
        };
        self.limits.payload_bytes_max = match self.connected {
            true => self.access.payload_bytes_max(options.max_payload_bytes),
            false => options.max_payload_bytes.min(UNCONNECTED_PAYLOAD_BYTES_MAX),
        };
    }

    /// What a compressed message of WebSocket may hold.
    pub fn message_bytes_max(&self) -> usize {
        (self.limits.payload_bytes_max * WEBSOCKET_MESSAGE_PAYLOADS)
            .min(WEBSOCKET_MESSAGE_BYTES_MAX)
    }

    pub fn is_in_account(&self, index: usize) -> bool {
        self.account.index == index
    }

    pub fn is_waiting(&self) -> bool {
        self.phase == SessionPhase::AwaitingVerdict
    }

    /// The first thing that is sent to a client.
    pub fn greet(&self, context: &mut Context<'_>) {
        if self.leaf.is_some() {
            return self.greet_leaf(context);
        }
        let mut information = context.shared.information(&self.connection);
        information.nonce.clone_from(&self.nonce);
        information.write(context.staging.entry(&self.connection).line());
    }

    /// Runs every complete operation in the buffer.
    pub fn process(&mut self, buffer: &[u8], context: &mut Context<'_>) -> SessionProgress {
        if self.leaf.is_some() {
            return self.process_leaf(buffer, context);
        }
        let mut consumed = 0;
        let mut messages = 0;
        let mut message_bytes = 0;
        let next = loop {
            let rest = &buffer[consumed..];
            if self.phase != SessionPhase::Open {
                if let Some(next) = self.gate(rest, context) {
                    break next;
                }
            }
            match parse(rest, &self.limits) {
                ParserStep::Operation {
                    operation: Operation::Publish(publish),
                    consumed: length,
                } => {
                    consumed += length;
                    messages += 1;
                    message_bytes += publish.body.len() as u64;
                    self.publish(&publish, buffer, context);
                    if context.staging.is_full() {
                        break Next::HandOver;
                    }
                }
                ParserStep::Operation {
                    operation,
                    consumed: length,
                } => {
                    consumed += length;
                    if let Err(next) = self.perform(operation, context) {
                        break next;
                    }
                }
                ParserStep::Incomplete { bytes_needed } => {
                    self.check_announced(rest, context);
                    break Next::Read { bytes_needed };
                }
                ParserStep::Refused(refusal) => {
                    self.check_announced(rest, context);
                    if refusal == ProtocolViolation::PayloadTooLarge {
                        self.trace_oversized(rest, context);
                    }
                    break self.refuse(refusal, context);
                }
            }
        };
        if messages > 0 {
            self.connection.traffic.add_in(messages, message_bytes);
        }
        if consumed > 0 {
            self.spoke = true;
            self.connection
                .last_activity_ms
                .store(context.now_ms, Ordering::Relaxed);
        }
        SessionProgress { consumed, next }
    }

    /// The one gate before any operation: until a client is let in, only CONNECT passes.
    fn gate(&mut self, rest: &[u8], context: &mut Context<'_>) -> Option<Next> {
        match (self.phase, rest.first()) {
            (SessionPhase::AwaitingVerdict, _) => Some(Next::Wait),
            (_, None | Some(b'C' | b'c')) => None,
            (_, Some(_)) if context.shared.options().admits_without_connect => {
                self.request_verdict(Credentials::default(), false, context);
                self.phase = SessionPhase::AwaitingVerdict;
                Some(Next::Wait)
            }
            (_, Some(_)) => Some(self.violate_authorization(context)),
        }
    }

    fn perform(&mut self, operation: Operation<'_>, context: &mut Context<'_>) -> Result<(), Next> {
        if context.shared.events.is_tracing() {
            trace::operation(context.shared, &self.connection, &operation);
        }
        match operation {
            Operation::Connect(json) => return self.connect(json, context),
            Operation::Subscribe {
                subject,
                queue,
                sid,
            } => self.subscribe(subject, queue, sid, context),
            Operation::Unsubscribe { sid, delivered_max } => {
                self.unsubscribe(sid, delivered_max);
                self.acknowledge(context);
            }
            Operation::Ping => self.answer_ping(context),
            Operation::Pong => self.take_pong(context),
            Operation::Acknowledged | Operation::Publish(_) => {}
            Operation::Information(json) => {
                let text = String::from_utf8_lossy(json);
                let object: Result<Option<serde_json::Map<_, _>>, _> = serde_json::from_str(&text);
                if object.is_err() {
                    return Err(Next::Close(ClosedReason::ParseError));
                }
            }
            Operation::Failed => return Err(Next::Close(ClosedReason::ParseError)),
        }
        Ok(())
    }

    /// A pedantic client gets the error for a wrong subject as soon as the line is there, not only with the body.
    fn check_announced(&mut self, rest: &[u8], context: &mut Context<'_>) {
        if self.options.pedantic {
            if let Some(subject) = announced_subject(rest, &self.limits) {
                self.check_literal(subject, context);
            }
        }
    }

    /// The message is routed all the same; the client is only warned, once.
    fn check_literal(&mut self, subject: &[u8], context: &mut Context<'_>) {
        if !self.subject_refused && !subject::is_literal(subject) {
            self.subject_refused = true;
            self.say_error(context, "Invalid Publish Subject");
        }
    }

    #[inline]
    fn publish(&mut self, publish: &Publish<'_>, buffer: &[u8], context: &mut Context<'_>) {
        if context.shared.events.is_tracing() {
            trace::operation(
                context.shared,
                &self.connection,
                &Operation::Publish(*publish),
            );
        }
        if self.options.pedantic {
            self.check_literal(publish.subject, context);
            self.subject_refused = false;
        }
        if publish.header_len > 0 && request::is_mentioned(publish.header()) {
            let bytes = publish.body.len();
            match self.begin_trace(publish.header(), publish.subject, bytes, context) {
                Tracing::Unasked => {}
                Tracing::Dropped => return,
                Tracing::Traced(trace) => {
                    return self.publish_traced(publish, *trace, buffer, context);
                }
            }
        }
        self.publish_checked(publish, None, buffer, context);
    }

    /// Routes a message that its client may publish; else says why not.
    #[inline]
    fn publish_checked(
        &mut self,
        publish: &Publish<'_>,
        trace: Option<&MessageTrace>,
        buffer: &[u8],
        context: &mut Context<'_>,
    ) -> Option<String> {
        if !self.account.has_mappings() {
            return self.publish_mapped(publish, Mapped::Unchanged, trace, buffer, context);
        }
        self.map_and_publish(publish, trace, buffer, context)
    }

    /// The same for a client of an account with mappings.
    #[cold]
    fn map_and_publish(
        &mut self,
        publish: &Publish<'_>,
        trace: Option<&MessageTrace>,
        buffer: &[u8],
        context: &mut Context<'_>,
    ) -> Option<String> {
        let mut subject = Vec::new();
        let random = context.router.random();
        let mapped = self.account.map(publish.subject, random, &mut subject);
        let publish = match mapped {
            Mapped::Unchanged | Mapped::Lost => *publish,
            Mapped::Changed => Publish {
                subject: &subject,
                ..*publish
            },
        };
        if let (Some(trace), Mapped::Changed) = (trace, mapped) {
            trace.map(publish.subject);
        }
        self.publish_mapped(&publish, mapped, trace, buffer, context)
    }

    /// The same under the subject that the account makes of it, which is what permissions are about.
    #[inline]
    fn publish_mapped(
        &mut self,
        publish: &Publish<'_>,
        mapped: Mapped,
        trace: Option<&MessageTrace>,
        buffer: &[u8],
        context: &mut Context<'_>,
    ) -> Option<String> {
        if let Some(text) = reserved_violation(publish.subject, publish.reply) {
            self.say_error(context, &text);
            return Some(text);
        }
        if !self.access.allows_publish(publish.subject, context.now_ms) {
            return Some(self.refuse_publish(publish.subject, context));
        }
        if let Some(text) = self.reply_violation(publish.subject, publish.reply) {
            self.say_error(context, &text);
            return Some(text);
        }
        if self.options.verbose {
            self.acknowledge(context);
        }
        let publisher = Publisher {
            connection_id: self.connection.id,
            slot: Some(self.connection.slot),
            account: &self.account,
            permissions: self.access.permissions(),
            echo: self.options.echo,
            no_responders: self.options.no_responders,
            drops_for_slow: self.drops_for_slow,
            trace,
            now_ms: context.now_ms,
            is_imported: false,
            receipts: None,
            linked: None,
            deliver_subject: None,
        };
        if mapped == Mapped::Lost {
            Router::answer_nobody(&publisher, publish, context.staging);
            return None;
        }
        context
            .router
            .publish(&publisher, publish, buffer, context.staging);
        None
    }

    /// Where the server answers, a client may name only what it could publish or listen to, as the text of the refusal.
    #[inline]
    fn reply_violation(&self, published: &[u8], reply: Option<&[u8]>) -> Option<String> {
        let (permissions, reply) = (self.access.permissions()?, reply?);
        let is_violation = own_requests::is_answered_by_server(published)
            && !own_requests::allows_reply(Some(permissions), reply);
        is_violation.then(|| reply_refusal(reply))
    }

    fn say_error(&self, context: &mut Context<'_>, text: &str) {
        encoder::error(context.staging.entry(&self.connection).line(), text);
    }

    fn acknowledge(&self, context: &mut Context<'_>) {
        if self.options.verbose {
            context
                .staging
                .entry(&self.connection)
                .line()
                .extend_from_slice(encoder::OK);
        }
    }
}

/// Subjects that only servers may use, as the text of the refusal.
#[inline]
fn reserved_violation(published: &[u8], reply: Option<&[u8]>) -> Option<String> {
    if matches!(published.first(), Some(b'_' | b'$'))
        && (published.starts_with(b"_GR_.") || published.starts_with(b"$NRG."))
    {
        return Some(format!(
            "Permissions Violation for Publish to {}",
            subject::quoted(published)
        ));
    }
    let reply = reply?;
    if [&b"_R_."[..], b"$JS.ACK.", b"$JS.A.", b"_GR_."]
        .iter()
        .any(|prefix| reply.starts_with(prefix))
    {
        return Some(reply_refusal(reply));
    }
    None
}

fn reply_refusal(reply: &[u8]) -> String {
    format!(
        "Permissions Violation for Publish with Reply of {}",
        subject::quoted(reply)
    )
}
