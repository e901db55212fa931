//! From an HTTP request to a session that speaks WebSocket, and its frames from then on.
//!
//! A connection becomes a client with its upgrade. Until then it is not listed, and may hold no more than its request. Its time limit includes the TLS handshake.

use std::sync::Arc;

use super::reading::{ReadTurn, Received};
use super::{Worker, WorkerConnection};
use crate::common::events::Level;
use crate::config::options::{READ_BUFFER_BYTES, UPGRADE_TIMEOUT_MS};
use crate::connection::timers::Timer;
use crate::routing::clients::closed_reason::ClosedReason;
use crate::transport::outbox::OutboxFraming;
use crate::transport::websocket::frame_reader::{CloseCause, DecodedFrames, WebSocketEnd};
use crate::transport::websocket::request::{UpgradeAnswer, UpgradeRequest};
use crate::transport::websocket::upgrade;
use crate::transport::websocket::upgrade::{Accepted, Upgrade, UpgradeRefusal};
use crate::transport::websocket::{frames, Framing, WebSocketFrameReader, WebSocketSettings};

/// WebSocket on one connection.
#[allow(clippy::large_enum_variant, reason = "a connection has it in a box")]
pub(super) enum WebSocket {
    /// The request has not arrived as a whole.
    Awaiting {
        settings: Arc<WebSocketSettings>,
        received: Vec<u8>,
    },
    /// This side has asked for the upgrade, and the answer has not arrived as a whole.
    Asked {
        request: Box<UpgradeRequest>,
        received: Vec<u8>,
    },
    Open(Open),
}

pub(super) struct Open {
    frame_reader: WebSocketFrameReader,
    /// Frames to answer with.
    answers: Vec<u8>,
    /// What to end with once everything that came before is read.
    end: Option<WebSocketEnd>,
    /// The close frame is out.
    has_ended: bool,
    /// What this side sends is masked.
    masks: bool,
}

impl Open {
    fn new(frame_reader: WebSocketFrameReader) -> Self {
        Self {
            frame_reader,
            answers: Vec::new(),
            end: None,
            has_ended: false,
            masks: false,
        }
    }

    /// Notes what frames have brought besides bytes for the session.
    fn note(&mut self, decoded: DecodedFrames, drained: bool) -> Received {
        self.answers.extend_from_slice(&decoded.answers);
        if decoded.end.is_some() {
            self.end = decoded.end;
        }
        let drained = drained && !self.frame_reader.has_unread() && self.end.is_none();
        match decoded.count {
            0 => Received::Nothing { drained },
            count => Received::Bytes { count, drained },
        }
    }
}

impl WebSocket {
    pub(super) fn awaiting(settings: Arc<WebSocketSettings>) -> Box<Self> {
        Box::new(Self::Awaiting {
            settings,
            received: Vec::new(),
        })
    }

    pub(super) fn is_open(&self) -> bool {
        matches!(self, Self::Open(_))
    }

    /// Bytes of memory it holds.
    pub(super) fn held_bytes(&self) -> usize {
        match self {
            Self::Awaiting { received, .. } | Self::Asked { received, .. } => received.capacity(),
            Self::Open(open) => open.frame_reader.held_bytes(),
        }
    }
}

impl WorkerConnection {
    /// Whether it is a client, and not a connection that may still become one.
    pub(super) fn is_client(&self) -> bool {
        !self.is_upgrading()
    }

    /// Whether it has to be upgraded before it is a client.
    pub(super) fn is_upgrading(&self) -> bool {
        self.websocket.as_ref().is_some_and(|one| !one.is_open())
    }

    /// The close frame to end with; none without WebSocket, and none twice.
    pub(super) fn farewell(&mut self, reason: ClosedReason) -> Option<Vec<u8>> {
        let Some(WebSocket::Open(open)) = self.websocket.as_deref_mut() else {
            return None;
        };
        if std::mem::replace(&mut open.has_ended, true) {
            return None;
        }
        let mut frame = match open.end.take() {
            Some(end) => end.frame,
            None => {
                let mut frame = Vec::new();
                frames::put_close(&mut frame, reason.websocket_status(), reason.text());
                frame
            }
        };
        if open.masks {
            frames::mask_control(&mut frame);
        }
        Some(frame)
    }

    /// Reads once, and takes the bytes of the session out of their frames.
    pub(super) fn receive_frames(
        &mut self,
        buffer: &mut Vec<u8>,
        kept: usize,
        mut apart: Option<&mut [u8]>,
    ) -> Received {
        let message_bytes_max = self.session.message_bytes_max();
        if let Some(WebSocket::Open(open)) = self.websocket.as_deref_mut() {
            if open.frame_reader.has_unread() {
                let target = match apart {
                    Some(apart) => apart,
                    None => &mut buffer[kept..READ_BUFFER_BYTES],
                };
                let decoded = open.frame_reader.read_on(target, message_bytes_max);
                return open.note(decoded, false);
            }
            if open.end.is_some() {
                return Received::Nothing { drained: true };
            }
        }
        let (count, drained) = match self.receive_bytes(buffer, kept, apart.as_deref_mut()) {
            Received::Bytes { count, drained } => (count, drained),
            other => return other,
        };
        let Some(WebSocket::Open(open)) = self.websocket.as_deref_mut() else {
            return Received::Nothing { drained };
        };
        let bytes = match apart {
            Some(apart) => &mut apart[..count],
            None => &mut buffer[kept..kept + count],
        };
        let decoded = open.frame_reader.decode(bytes, message_bytes_max);
        open.note(decoded, drained)
    }

    /// Whether the session has had everything that came before the end: nothing is left to be read, and nothing waits for a verdict or for a receiver.
    fn has_read_all(&self) -> bool {
        let Some(WebSocket::Open(open)) = self.websocket.as_deref() else {
            return false;
        };
        let waits = self.session.is_waiting() || self.interrupted;
        !open.frame_reader.has_unread() && !waits
    }
}

impl Worker {
    /// A new connection may not speak yet: sets its deadline.
    pub(super) fn await_upgrade(&mut self, slot: usize) {
        let Some(member) = self.members.get(&slot) else {
            return;
        };
        let Some(WebSocket::Awaiting { settings, .. }) = member.websocket.as_deref() else {
            return self.end(slot, ClosedReason::ServerShutdown);
        };
        let timeout_ms = match settings.options.handshake_timeout_ms {
            0 => UPGRADE_TIMEOUT_MS,
            timeout_ms => timeout_ms,
        };
        let id = member.session.connection.id;
        let due_ms = self.core.now_ms.saturating_add(timeout_ms);
        self.timers.add(due_ms, slot, id, Timer::Upgrade);
    }

    /// Asks the server that was connected to for the upgrade.
    pub(super) fn ask_for_upgrade(&mut self, slot: usize) {
        let Some(member) = self.members.get_mut(&slot) else {
            return;
        };
        let Some(request) = member.session.upgrade_request() else {
            return;
        };
        let text = request.text.clone();
        member.websocket = Some(Box::new(WebSocket::Asked {
            request: Box::new(request),
            received: Vec::new(),
        }));
        self.flush(slot, |outbox, now_ms| outbox.queue_framed(text, now_ms));
    }

    /// Reads what the server that was connected to answers.
    fn read_upgrade_answer(&mut self, slot: usize, bytes: &[u8]) -> ReadTurn {
        let member = self.members.get_mut(&slot).expect("the caller found it");
        let Some(WebSocket::Asked { request, received }) = member.websocket.as_deref_mut() else {
            return ReadTurn::More;
        };
        received.extend_from_slice(bytes);
        let (length, compresses, unmasked) = match request.read_answer(received) {
            UpgradeAnswer::Incomplete => return ReadTurn::More,
            UpgradeAnswer::Accepted {
                length,
                compresses,
                unmasked,
            } => (length, compresses, unmasked),
            UpgradeAnswer::Refused(reason) => {
                member.session.note_failure(&reason);
                let label = member.session.connection.label();
                let text = format!("{label} - Error soliciting websocket connection: {reason}");
                self.core.shared.events.log(Level::Error, text);
                self.begin_close(slot, ClosedReason::ReadError);
                return ReadTurn::More;
            }
        };
        let mut frames = received.split_off(length);
        // A server never masks.
        let mut open = Open::new(WebSocketFrameReader::of_client(compresses));
        open.masks = !unmasked;
        let message_bytes_max = member.session.message_bytes_max();
        let decoded = open.frame_reader.decode(&mut frames, message_bytes_max);
        let received = open.note(decoded, false);
        member.websocket = Some(Box::new(WebSocket::Open(open)));
        member.session.upgraded();
        let framing = OutboxFraming::WebSocket(Framing {
            compresses,
            masks: !unmasked,
        });
        member.session.connection.outbox.frame(framing);
        match received {
            Received::Bytes { count, .. } => self.process(slot, &frames[..count]),
            _ => ReadTurn::More,
        }
    }

    /// The time for the upgrade is over.
    pub(super) fn upgrade_overdue(&mut self, slot: usize) {
        if self
            .members
            .get(&slot)
            .is_some_and(WorkerConnection::is_upgrading)
        {
            self.end(slot, ClosedReason::AuthenticationTimeout);
        }
    }

    /// Reads once for a connection that is still to be upgraded.
    pub(super) fn upgrade(&mut self, slot: usize, buffer: &mut Vec<u8>) -> ReadTurn {
        let member = self.members.get_mut(&slot).expect("the caller found it");
        let (count, drained) = match member.receive_bytes(buffer, 0, None) {
            Received::Bytes { count, drained } => (count, drained),
            Received::Nothing { drained: true } => return ReadTurn::Drained,
            Received::Nothing { drained: false } => return ReadTurn::More,
            Received::Ended(reason) => return ReadTurn::Ended(reason),
        };
        if let Some(WebSocket::Asked { .. }) = member.websocket.as_deref() {
            return self.read_upgrade_answer(slot, &buffer[..count]);
        }
        let Some(WebSocket::Awaiting { settings, received }) = member.websocket.as_deref_mut()
        else {
            return ReadTurn::More;
        };
        // Beyond what a request may have it is only looked that it is too long.
        let room = (upgrade::REQUEST_BYTES_MAX + 1).saturating_sub(received.len());
        received.extend_from_slice(&buffer[..count.min(room)]);
        match upgrade::read(received, settings) {
            Upgrade::Incomplete => {
                self.weigh_unauthenticated(slot);
                if drained {
                    ReadTurn::Drained
                } else {
                    ReadTurn::More
                }
            }
            Upgrade::Refused(refusal) => {
                self.refuse_upgrade(slot, refusal);
                ReadTurn::More
            }
            Upgrade::Accepted(accepted)
                if accepted.is_leaf && self.core.shared.options().leaf.is_none() =>
            {
                self.refuse_upgrade(slot, upgrade::refuse_leaf());
                ReadTurn::More
            }
            Upgrade::Accepted(accepted) => {
                self.finish_upgrade(slot, *accepted);
                ReadTurn::More
            }
        }
    }

    fn refuse_upgrade(&mut self, slot: usize, refusal: UpgradeRefusal) {
        let connection = &self.members[&slot].session.connection;
        self.core.shared.events.log(
            Level::Error,
            format!(
                "{} - websocket handshake error: {}",
                connection.remote_address, refusal.reason
            ),
        );
        self.flush(slot, |outbox, now_ms| {
            outbox.queue_framed(refusal.answer, now_ms)
        });
        self.begin_close(slot, ClosedReason::ProtocolViolation);
    }

    /// The connection is a client: its session may begin.
    fn finish_upgrade(&mut self, slot: usize, accepted: Accepted) {
        let member = self.members.get_mut(&slot).expect("the caller found it");
        let frame_reader = WebSocketFrameReader::new(accepted.unmasked, accepted.compresses);
        member.websocket = Some(Box::new(WebSocket::Open(Open::new(frame_reader))));
        member.session.cookies = Some(Box::new(accepted.cookies));
        let connection = Arc::clone(&member.session.connection);
        if let Some(ip) = accepted.forwarded_for {
            // It is upgraded once.
            let _ = connection.forwarded_for.set(ip);
        }
        let shared = Arc::clone(&self.core.shared);
        if accepted.is_leaf {
            member.session.become_leaf(&shared);
        } else {
            shared.list_connection(&connection);
            shared
                .events
                .debug(|| format!("{} - Client connection created", connection.label()));
        }
        self.flush(slot, |outbox, now_ms| {
            outbox.queue_framed(accepted.answer, now_ms)
        });
        connection.outbox.frame(OutboxFraming::WebSocket(Framing {
            compresses: accepted.compresses,
            masks: false,
        }));
        let Some(member) = self.members.get_mut(&slot) else {
            return;
        };
        member.session.greet(&mut self.core.context());
        if !accepted.is_leaf && shared.listed_count() > shared.options().max_connections {
            member.session.refuse_connection(&mut self.core.context());
            self.hand_over(&[]);
            return self.begin_close(slot, ClosedReason::MaximumConnectionsExceeded);
        }
        self.hand_over(&[]);
        self.start_clocks(slot);
        self.weigh_unauthenticated(slot);
    }

    /// Sends what WebSocket has to say by itself, and ends the connection if nothing more will be read. Where something still waits, the read that follows comes back here.
    pub(super) fn answer_frames(&mut self, slot: usize) {
        let Some(member) = self.members.get_mut(&slot) else {
            return;
        };
        let is_over = member.has_read_all() && member.closing.is_none();
        let Some(WebSocket::Open(open)) = member.websocket.as_deref_mut() else {
            return;
        };
        let answers = std::mem::take(&mut open.answers);
        let cause = match &open.end {
            Some(end) if is_over => Some(end.cause.clone()),
            _ => None,
        };
        if !answers.is_empty() {
            self.flush(slot, |outbox, now_ms| outbox.queue_framed(answers, now_ms));
        }
        // A client that has not logged in may be holding the parts of a compressed message.
        self.weigh_unauthenticated(slot);
        let Some(cause) = cause else {
            return;
        };
        self.hand_over(&[]);
        let reason = match cause {
            CloseCause::ByPeer => ClosedReason::ClientClosed,
            CloseCause::Violation(text) => {
                self.log_frame_error(slot, &text);
                ClosedReason::ReadError
            }
            CloseCause::TooLarge => {
                self.log_frame_error(slot, "maximum payload exceeded");
                ClosedReason::MaximumPayloadExceeded
            }
        };
        self.begin_close(slot, reason);
    }

    fn log_frame_error(&self, slot: usize, text: &str) {
        if let Some(member) = self.members.get(&slot) {
            let label = member.session.connection.label();
            let events = &self.core.shared.events;
            events.log(Level::Error, format!("{label} - read error: {text}"));
        }
    }
}
