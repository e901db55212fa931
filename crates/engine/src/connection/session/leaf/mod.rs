//! The conversation with another server: `handshake`, over the `layers` that are asked for; `opening` when there is a link, `traffic` from then on.
//!
//! Invariant: nothing is routed, and this side's interest is not announced, before the link is open.

mod handshake;
mod layers;
mod opening;
mod traffic;

use std::sync::Arc;
use std::time::Duration;

use super::{Context, Next, Session, SessionProgress};
use crate::common::permissions::RuleLists;
use crate::common::subject;
use crate::config::leaf::{LeafCompression, LeafUrl};
use crate::config::options::{Options, READ_BUFFER_BYTES};
use crate::routing::clients::closed_reason::ClosedReason;
use crate::routing::leaf::{LeafLink, LeafRemote};
use crate::wire::leaf_information::{LeafConnect, LeafInformation};
use crate::wire::leaf_parser::{parse_leaf, LeafOperation, LeafStep, CONTROL_LINE_FACTOR};

/// The pause before the next attempt after a loop, a violated permission or a name clash: these last until a configuration is changed.
const LONG_PAUSE: Duration = Duration::from_secs(30);

/// The same after a server was found too old.
const VERSION_PAUSE: Duration = Duration::from_secs(5);

/// What a line of another server may hold. Half of what is read at once: a longer one would be looked through from its beginning with every few bytes that come.
pub(super) fn leaf_line_bytes_max(options: &Options) -> usize {
    (options.max_control_line_bytes * CONTROL_LINE_FACTOR).min(READ_BUFFER_BYTES / 2)
}

/// What a session with another server knows besides.
pub struct LeafState {
    /// The remote that this side has connected to; none when the other side has connected. Taken when the session ends.
    remote: Option<Arc<LeafRemote>>,
    is_solicited: bool,
    /// Where this side has connected to.
    url: String,
    host: String,
    credentials: UrlCredentials,
    wants_tls: bool,
    /// The address, if it is one of WebSocket.
    websocket: Option<LeafUrl>,
    phase: LeafPhase,
    /// Bytes are encrypted, or need not be.
    is_secured: bool,
    is_compression_settled: bool,
    compression: LeafCompression,
    /// What the other side has said of itself: the one that was connected to, and the one that connects.
    information: LeafInformation,
    connect: LeafConnect,
    /// What the user that the other side logged in as may publish and subscribe.
    granted: Option<(RuleLists, RuleLists)>,
    pub link: Option<Arc<LeafLink>>,
    /// Why the session ended, and the pause before the next attempt.
    failure: String,
    pause: Option<Duration>,
}

/// What the address of a remote says about who connects.
#[derive(Default)]
pub struct UrlCredentials {
    pub user: String,
    pub password: String,
    pub token: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LeafPhase {
    /// The first INFO is awaited.
    AwaitingInformation,
    /// CONNECT is out, and what the hub makes of it is awaited.
    AwaitingAdmission,
    /// CONNECT is awaited.
    AwaitingConnect,
    Open,
}

impl Session {
    /// Runs every complete operation of another server in the buffer.
    pub(super) fn process_leaf(
        &mut self,
        buffer: &[u8],
        context: &mut Context<'_>,
    ) -> SessionProgress {
        let mut consumed = 0;
        let mut messages = 0;
        let mut message_bytes = 0;
        let next = loop {
            if self.is_waiting() {
                break Next::Wait;
            }
            match parse_leaf(&buffer[consumed..], &self.limits) {
                LeafStep::Operation {
                    operation: LeafOperation::Message(message),
                    consumed: length,
                } => {
                    consumed += length;
                    messages += 1;
                    message_bytes += message.publish.body.len() as u64;
                    if let Err(next) = self.route_linked(&message, buffer, context) {
                        break next;
                    }
                    if context.staging.is_full() {
                        break Next::HandOver;
                    }
                }
                LeafStep::Operation {
                    operation,
                    consumed: length,
                } => {
                    consumed += length;
                    if let Err(next) = self.perform_leaf(operation, context) {
                        break next;
                    }
                }
                LeafStep::Incomplete { bytes_needed } => break Next::Read { bytes_needed },
                LeafStep::Refused(refusal) => break self.refuse(refusal, context),
            }
        };
        if messages > 0 {
            self.connection.traffic.add_in(messages, message_bytes);
        }
        if consumed > 0 {
            self.spoke = true;
            self.connection
                .last_activity_ms
                .store(context.now_ms, std::sync::atomic::Ordering::Relaxed);
        }
        SessionProgress { consumed, next }
    }

    fn perform_leaf(
        &mut self,
        operation: LeafOperation<'_>,
        context: &mut Context<'_>,
    ) -> Result<(), Next> {
        match operation {
            LeafOperation::Connect(json) => self.connect_leaf(json, context),
            LeafOperation::Information(json) => self.hear_information(json, context),
            LeafOperation::Interest(wanted) => self.add_interest(&wanted, context),
            LeafOperation::InterestEnded(wanted) => self.end_interest(&wanted, context),
            LeafOperation::Ping => {
                self.answer_ping(context);
                Ok(())
            }
            LeafOperation::Pong => {
                self.take_pong(context);
                Ok(())
            }
            LeafOperation::Failed(text) => Err(self.hear_failure(text, context)),
            LeafOperation::Acknowledged | LeafOperation::Message(_) => Ok(()),
        }
    }

    /// The other side says why it closes the link.
    fn hear_failure(&mut self, text: &[u8], context: &Context<'_>) -> Next {
        let text = String::from_utf8_lossy(text);
        let text = text.trim_matches(['\'', ' ']);
        let pause = if text.contains("minimum version") {
            Some(VERSION_PAUSE)
        } else if [
            "Loop detected",
            "same cluster name",
            "Permissions Violation",
        ]
        .iter()
        .any(|reason| text.contains(reason))
        {
            Some(LONG_PAUSE)
        } else {
            None
        };
        self.log_link(context, &format!("Leafnode Error '{text}'"));
        self.fail_link(text, pause);
        Next::Close(ClosedReason::ProtocolViolation)
    }

    /// Notes why there is no link.
    pub fn note_failure(&mut self, reason: &str) {
        self.fail_link(reason, None);
    }

    /// Notes why the link ends and when it may be tried again. The first reason counts.
    fn fail_link(&mut self, reason: &str, pause: Option<Duration>) {
        if let Some(leaf) = &mut self.leaf {
            if leaf.failure.is_empty() {
                reason.clone_into(&mut leaf.failure);
            }
            leaf.pause = leaf.pause.max(pause);
        }
    }

    /// Ends a link with a word to the other side.
    fn refuse_link(
        &mut self,
        text: &str,
        reason: ClosedReason,
        pause: Option<Duration>,
        context: &mut Context<'_>,
    ) -> Next {
        self.log_link(context, text);
        self.fail_link(text, pause);
        self.close_with_error(context, text, reason)
    }

    fn log_link(&self, context: &Context<'_>, text: &str) {
        let label = self.connection.label();
        context.shared.events.log(
            crate::common::events::Level::Error,
            format!("{label} - {text}"),
        );
    }

    /// A loop of servers was found: each would pass the other's messages back to it for ever.
    fn refuse_loop(&mut self, context: &mut Context<'_>) -> Next {
        let account = subject::quoted(self.account.name.as_bytes());
        let text = format!(
            "Loop detected for leafnode account={account}. Delaying attempt to reconnect for {}s",
            LONG_PAUSE.as_secs()
        );
        let reason = ClosedReason::ProtocolViolation;
        self.refuse_link(&text, reason, Some(LONG_PAUSE), context)
    }

    /// Another connection of the same server takes the place of this one.
    pub fn say_duplicate(&self, context: &mut Context<'_>) {
        self.say_error(context, ClosedReason::DuplicateLeaf.text());
    }

    pub fn is_leaf(&self) -> bool {
        self.leaf.is_some()
    }

    /// Whether this is a server that this one has connected to.
    pub(super) fn is_solicited(&self) -> bool {
        self.leaf.as_ref().is_some_and(|leaf| leaf.is_solicited)
    }

    /// Whether the handshake with another server is over.
    pub(super) fn is_link_open(&self) -> bool {
        self.leaf.as_ref().is_some_and(|leaf| leaf.link.is_some())
    }
}
