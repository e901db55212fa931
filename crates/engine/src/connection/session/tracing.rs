//! Messages that ask to be traced: whether they are, and what is said about it.

use std::sync::Arc;

use super::{reserved_violation, Context, Session};
use crate::common::events::Level;
use crate::common::subject;
use crate::routing::clients::connection::Connection;
use crate::routing::message_trace::request;
use crate::routing::message_trace::request::{ORIGIN_ACCOUNT, TRACE_HOP};
use crate::routing::message_trace::{MessageTrace, TraceBegin};
use crate::routing::sender::Sender;
use crate::routing::targets::{self, Target};
use crate::wire::trusted_headers::TRACE_DESTINATION_NAME;
use crate::wire::Publish;

/// What to do with a message that has a tracing header.
pub(super) enum Tracing {
    /// It goes its way like any other.
    Unasked,
    /// It asked for a trace that cannot be, and must go nowhere.
    Dropped,
    Traced(Box<MessageTrace>),
}

impl Session {
    /// Begins the trace of a message with these headers, if they ask for one and it may be.
    #[cold]
    pub(super) fn begin_trace(
        &mut self,
        headers: &[u8],
        message_subject: &[u8],
        message_bytes: usize,
        context: &mut Context<'_>,
    ) -> Tracing {
        let Some(request) = request::read(headers) else {
            return Tracing::Unasked;
        };
        let only = request.is_only();
        // A dry run that fails must not become the real thing.
        let untraced = if only {
            Tracing::Dropped
        } else {
            Tracing::Unasked
        };
        let origin = request.value(ORIGIN_ACCOUNT);
        if !origin.is_empty() {
            let text = format!(
                "Message tracing disabled because of header {ORIGIN_ACCOUNT:?} with value={origin:?}"
            );
            log(&self.connection, &text, context);
            return untraced;
        }
        let destination = if request.external {
            match self.sampled_destination(context) {
                Some(destination) => destination,
                None => return Tracing::Unasked,
            }
        } else {
            request.value(TRACE_DESTINATION_NAME).as_bytes().to_vec()
        };
        let has_blanks = destination
            .iter()
            .any(|byte| byte.is_ascii_whitespace() || *byte == 0);
        if has_blanks || !subject::is_literal(&destination) {
            let text = format!(
                "Destination {} is not valid, won't be able to trace events",
                subject::quoted(&destination)
            );
            log(&self.connection, &text, context);
            return untraced;
        }
        if !self.may_trace_to(&destination, context.now_ms) {
            if self.is_leaf() {
                // An error would end the link.
                self.log_violation("Publish", &destination, context);
            } else {
                self.refuse_publish(&destination, context);
            }
            return Tracing::Dropped;
        }
        let hop = match self.is_leaf() {
            true => request.value(TRACE_HOP).to_owned(),
            false => String::new(),
        };
        Tracing::Traced(Box::new(MessageTrace::begin(TraceBegin {
            only,
            account: &self.account,
            destination,
            headers: request.headers,
            message_bytes,
            hop,
            publisher: &self.connection,
            subject: message_subject,
        })))
    }

    /// Whether the sender of the message may have an event sent to this subject.
    fn may_trace_to(&mut self, destination: &[u8], now_ms: u64) -> bool {
        if reserved_violation(destination, None).is_some() {
            return false;
        }
        if self.is_leaf() {
            return self.may_come_in(destination, now_ms);
        }
        let permissions = self.access.permissions().map(|permissions| &**permissions);
        targets::allows(permissions, Target::Trace, destination)
    }

    /// Where the account wants traces that a trace context asks for, if this message is one of the sample.
    fn sampled_destination(&self, context: &mut Context<'_>) -> Option<Vec<u8>> {
        let options = context.shared.options();
        let configured = options.message_traces.get(&self.account.name)?;
        if self.is_leaf() {
            // The server that the message was published at has drawn it.
            return Some(configured.destination.as_bytes().to_vec());
        }
        let drawn = context.router.random().below(100);
        (drawn < usize::from(configured.sampling_percent))
            .then(|| configured.destination.as_bytes().to_vec())
    }

    /// Publishes a message and the event that reports where it went.
    #[cold]
    pub(super) fn publish_traced(
        &mut self,
        publish: &Publish<'_>,
        trace: MessageTrace,
        buffer: &[u8],
        context: &mut Context<'_>,
    ) {
        if let Some(text) = self.publish_checked(publish, Some(&trace), buffer, context) {
            trace.refuse(&text);
        }
        send(trace, context);
    }

    /// A publish is too large, and its connection ends: the event says so, if what has come asks for one.
    #[cold]
    pub(super) fn trace_oversized(&mut self, rest: &[u8], context: &mut Context<'_>) {
        let Some(end) = memchr::memchr(b'\n', rest) else {
            return;
        };
        let words: Vec<&[u8]> = rest[..end]
            .split(u8::is_ascii_whitespace)
            .filter(|word| !word.is_empty())
            .collect();
        let (subject, header, total) = match words[..] {
            [name, subject, header, total] | [name, subject, _, header, total]
                if name.eq_ignore_ascii_case(b"HPUB") =>
            {
                (subject, header, total)
            }
            _ => return,
        };
        let number = |digits: &[u8]| std::str::from_utf8(digits).ok()?.parse::<usize>().ok();
        let (Some(header_bytes), Some(message_bytes)) = (number(header), number(total)) else {
            return;
        };
        let arrived = &rest[end + 1..];
        let headers = &arrived[..header_bytes.min(arrived.len())];
        if let Tracing::Traced(trace) = self.begin_trace(headers, subject, message_bytes, context) {
            trace.refuse("maximum payload exceeded");
            send(*trace, context);
        }
    }
}

pub(super) fn send(trace: MessageTrace, context: &mut Context<'_>) {
    let shared = context.shared;
    let sender = context
        .trace_sender
        .get_or_insert_with(|| Sender::new(Arc::clone(shared)));
    trace.send(shared, sender);
}

fn log(connection: &Connection, text: &str, context: &Context<'_>) {
    let line = format!("{} - {text}", connection.label());
    context.shared.events.log(Level::Error, line);
}
