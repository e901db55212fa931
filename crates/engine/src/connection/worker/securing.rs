//! From the first byte of a client to a connection that carries messages.
//!
//! What a client may hold before its handshake is over is small: its first record as far as it came, then what rustls needs, and never
//! more than `TLS_UNFINISHED_BYTES_MAX` of input. All of it counts as what clients that have not logged in hold.

use std::io;
use std::sync::Arc;

use super::reading::{read, ReadTurn};
use super::transport::{make_room, Handshake, Secure, Transport};
use super::Worker;
use crate::common::events::Level;
use crate::connection::timers::Timer;
use crate::routing::clients::closed_reason::ClosedReason;
use crate::routing::staging::Followup;
use crate::transport::outbox::{Flushed, Outbox};
use crate::transport::tls::channel::{
    Plaintext, TlsChannel, TlsEnd, RECORD_BYTES_MAX, ROOM_BEFORE_BYTES,
};
use crate::transport::tls::hello;
use crate::transport::tls::hello::Hello;
use crate::transport::tls::peer::Peer;

impl Worker {
    /// A new connection may not speak yet: sets its deadlines.
    pub(super) fn await_handshake(&mut self, slot: usize) {
        let Some(member) = self.members.get(&slot) else {
            return;
        };
        let Transport::Awaiting(awaiting) = &member.transport else {
            return;
        };
        let id = member.session.connection.id;
        let first_ms = awaiting.settings.handshake_first_ms.unwrap_or(0);
        let due_ms = self.core.now_ms.saturating_add(first_ms);
        if first_ms > 0 {
            self.timers.add(due_ms, slot, id, Timer::Greet);
        }
        let due_ms = due_ms.saturating_add(awaiting.settings.timeout_ms);
        self.timers.add(due_ms, slot, id, Timer::Secure);
    }

    /// A client that could have begun with TLS did not: it waits for INFO.
    pub(super) fn greet_late(&mut self, slot: usize) {
        let Some(member) = self.members.get_mut(&slot) else {
            return;
        };
        if let Transport::Awaiting(awaiting) = &mut member.transport {
            if awaiting.received.is_empty() && !std::mem::replace(&mut awaiting.greeted, true) {
                member.session.greet(&mut self.core.context());
                self.hand_over(&[]);
            }
        }
    }

    /// The time for the handshake is over.
    pub(super) fn handshake_overdue(&mut self, slot: usize) {
        let Some(member) = self.members.get_mut(&slot) else {
            return;
        };
        match &member.transport {
            transport if transport.carries_messages() => {}
            // It listens in the clear, and has nothing to say yet.
            Transport::Awaiting(awaiting)
                if awaiting.settings.allow_non_tls && awaiting.received.is_empty() =>
            {
                member.transport = Transport::Plain;
                self.start_clocks(slot);
            }
            _ => self.fail_handshake(slot, Level::Debug, "timeout"),
        }
    }

    /// Whether too many handshakes have begun within this second; then the client gets an error, in the clear, and is
    /// closed.
    pub(super) fn throttle(&mut self, slot: usize) -> bool {
        let Some(member) = self.members.get_mut(&slot) else {
            return false;
        };
        let Transport::Awaiting(awaiting) = &member.transport else {
            return false;
        };
        if awaiting.settings.throttle.admits(self.core.now_ms) {
            return false;
        }
        member.session.refuse_handshake(&mut self.core.context());
        self.hand_over(&[]);
        self.begin_close(slot, ClosedReason::MaximumConnectionsExceeded);
        true
    }

    /// Reads once for a connection that carries no messages yet.
    pub(super) fn shake_hands(&mut self, slot: usize) -> ReadTurn {
        let mut buffer = std::mem::take(&mut self.read_buffer);
        make_room(&mut buffer);
        let turn = self.shake_hands_once(slot, &mut buffer);
        self.read_buffer = buffer;
        // Last, because it may be this one that has to go.
        self.weigh_unauthenticated(slot);
        turn
    }

    fn shake_hands_once(&mut self, slot: usize, buffer: &mut [u8]) -> ReadTurn {
        let member = self.members.get_mut(&slot).expect("the caller found it");
        let room = &mut buffer[ROOM_BEFORE_BYTES..][..RECORD_BYTES_MAX];
        let mut count = match read(&member.socket, room) {
            Ok(0) => return ReadTurn::Ended(ClosedReason::TlsHandshakeFailure),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return ReadTurn::Drained,
            Err(_) => return ReadTurn::Ended(ClosedReason::ReadError),
        };
        let drained = count < room.len() && !member.read_closed;
        let pause = if drained {
            ReadTurn::Drained
        } else {
            ReadTurn::More
        };
        if let Transport::Awaiting(awaiting) = &mut member.transport {
            awaiting.received.reserve_exact(count);
            awaiting.received.extend_from_slice(&room[..count]);
            match hello::recognise(&awaiting.received) {
                Hello::Incomplete => return pause,
                Hello::NotTls => return self.take_as_plain(slot, drained),
                Hello::Complete => {
                    let received = std::mem::take(&mut awaiting.received);
                    count = received.len();
                    buffer[ROOM_BEFORE_BYTES..][..count].copy_from_slice(&received);
                }
            }
            if !self.begin_handshake(slot) {
                return ReadTurn::More;
            }
        }
        self.advance_handshake(slot, buffer, count);
        match self.members.get(&slot) {
            Some(member) if member.transport.carries_messages() => ReadTurn::More,
            Some(member) if member.closing.is_some() => ReadTurn::More,
            _ => pause,
        }
    }

    /// The bytes are not TLS: the connection continues in the clear if that is allowed, and ends otherwise.
    fn take_as_plain(&mut self, slot: usize, drained: bool) -> ReadTurn {
        let member = self.members.get_mut(&slot).expect("the caller found it");
        let Transport::Awaiting(awaiting) = &mut member.transport else {
            return ReadTurn::More;
        };
        if !awaiting.settings.allow_non_tls || hello::begins_handshake(&awaiting.received) {
            let text = "first record does not look like a TLS handshake";
            self.fail_handshake(slot, Level::Debug, text);
            return ReadTurn::More;
        }
        let bytes = std::mem::take(&mut awaiting.received);
        member.transport = Transport::Plain;
        self.start_clocks(slot);
        match self.process(slot, &bytes) {
            ReadTurn::More if drained => ReadTurn::Drained,
            other => other,
        }
    }

    /// The first record is there: from now on rustls has the say. False when it could not be asked.
    fn begin_handshake(&mut self, slot: usize) -> bool {
        let member = self.members.get_mut(&slot).expect("the caller found it");
        let Transport::Awaiting(awaiting) = &member.transport else {
            return false;
        };
        // Of those who need not use TLS it is known only now.
        if awaiting.settings.allow_non_tls && self.throttle(slot) {
            return false;
        }
        let member = self.members.get_mut(&slot).expect("it was there before");
        let Transport::Awaiting(awaiting) = &member.transport else {
            return false;
        };
        let connection = &member.session.connection;
        self.core.shared.events.debug(|| {
            format!(
                "{} - Starting TLS client connection handshake",
                connection.label()
            )
        });
        let channel = match TlsChannel::new(&awaiting.settings.server_config) {
            Ok(channel) => Arc::new(channel),
            Err(error) => {
                self.fail_handshake(slot, Level::Error, &error.to_string());
                return false;
            }
        };
        connection.outbox.encrypt(Arc::clone(&channel));
        let handshake = Handshake {
            settings: Some(Arc::clone(&awaiting.settings)),
            greeted: awaiting.greeted,
        };
        member.transport = Transport::Secure(Secure::new(channel, handshake));
        true
    }

    fn advance_handshake(&mut self, slot: usize, buffer: &mut [u8], count: usize) {
        let member = self.members.get_mut(&slot).expect("the caller found it");
        let Transport::Secure(secure) = &mut member.transport else {
            return;
        };
        let received = ROOM_BEFORE_BYTES..ROOM_BEFORE_BYTES + count;
        let plaintext = Plaintext::apart(&mut [], &mut secure.unread);
        let opened = secure.channel.open(buffer, received, plaintext);
        self.answer_records(slot);
        if let Some(peer) = opened.peer {
            self.finish_handshake(slot, &peer);
            return self.end_after_unread(slot, opened.end.as_ref());
        }
        match opened.end {
            Some(TlsEnd::Failed(text)) => self.fail_handshake(slot, Level::Error, &text),
            Some(TlsEnd::ByPeer) => self.fail_handshake(slot, Level::Debug, "EOF"),
            None => {}
        }
    }

    /// The end may come with the last words of the handshake; what was sent in between is carried out first.
    fn end_after_unread(&mut self, slot: usize, end: Option<&TlsEnd>) {
        let transport = self
            .members
            .get_mut(&slot)
            .map(|member| &mut member.transport);
        if let (Some(Transport::Secure(secure)), Some(end)) = (transport, end) {
            secure.end_after_unread(end);
        }
    }

    /// The handshake is over: the session may begin.
    fn finish_handshake(&mut self, slot: usize, peer: &Peer) {
        let member = self.members.get_mut(&slot).expect("the caller found it");
        let Transport::Secure(secure) = &mut member.transport else {
            return;
        };
        let Some(handshake) = secure.handshake.take() else {
            return;
        };
        let settings = handshake.settings.as_ref();
        if settings.is_some_and(|settings| !peer.is_pinned(&settings.pinned)) {
            return self.fail_handshake(slot, Level::Error, "certificate not pinned");
        }
        let connection = &member.session.connection;
        self.core.shared.events.debug(|| {
            format!(
                "{} - TLS handshake complete, version {}, cipher suite {}",
                connection.label(),
                peer.version,
                peer.cipher
            )
        });
        let mut identity = connection.identity.lock();
        identity.tls_version = peer.version;
        identity.tls_cipher.clone_from(&peer.cipher);
        drop(identity);
        member.session.tls = peer.to_json();
        if member.is_upgrading() {
            return;
        }
        if handshake.settings.is_none() {
            return self.continue_link(slot);
        }
        if !handshake.greeted {
            member.session.greet(&mut self.core.context());
            self.hand_over(&[]);
        }
        self.start_clocks(slot);
    }

    pub(super) fn fail_handshake(&mut self, slot: usize, level: Level, text: &str) {
        let Some(member) = self.members.get_mut(&slot) else {
            return;
        };
        // What it held goes at once; only the alert may still have to leave.
        member.transport = Transport::Failed;
        let label = member.session.connection.label();
        let events = &self.core.shared.events;
        match level {
            Level::Debug => events.debug(|| format!("{label} - TLS handshake error: {text}")),
            level => events.log(level, format!("{label} - TLS handshake error: {text}")),
        }
        self.begin_close(slot, ClosedReason::TlsHandshakeFailure);
    }

    /// Sends what TLS has to say by itself, such as its side of the handshake.
    pub(super) fn answer_records(&mut self, slot: usize) {
        let member = self.members.get(&slot);
        if let Some(Transport::Secure(secure)) = member.map(|member| &member.transport) {
            if secure.channel.has_outgoing() {
                self.flush(slot, Outbox::flush);
            }
        }
    }

    /// Writes what waits for a connection, in this way.
    pub(super) fn flush(&mut self, slot: usize, write: impl FnOnce(&Outbox, u64) -> Flushed) {
        let Some(member) = self.members.get(&slot) else {
            return;
        };
        let connection = Arc::clone(&member.session.connection);
        let flushed = write(&connection.outbox, self.core.now_ms);
        self.core.followups.push(Followup {
            connection,
            flushed,
            publisher: None,
            message_bytes: 0,
        });
        self.follow_up();
    }
}
