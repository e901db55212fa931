//! Connections to other servers: those that this one has made, and what their handshake asks of the transport.

use std::os::fd::AsRawFd;
use std::sync::Arc;

use mio::unix::SourceFd;
use mio::{Interest, Token};

use super::reading::{ReadTurn, Received};
use super::transport::{Handshake, Secure, Transport};
use super::{Worker, WorkerConnection};
use crate::common::events::Level;
use crate::config::leaf::LeafCompression;
use crate::config::options::READ_BUFFER_BYTES;
use crate::connection::session::{Next, Session};
use crate::connection::timers::Timer;
use crate::routing::clients::closed_reason::ClosedReason;
use crate::routing::clients::mailbox::SolicitedConnection;
use crate::transport::outbox::OutboxFraming;
use crate::transport::s2_link::{S2Framing, S2Unframing};
use crate::transport::tls::client;
use crate::transport::tls::TlsChannel;

/// How long a handshake of TLS may take if the configuration does not say.
const SECURE_TIMEOUT_MS_DEFAULT: u64 = 2_000;

impl WorkerConnection {
    /// Reads once, and takes the bytes of the session out of their chunks.
    pub(super) fn receive_chunks(
        &mut self,
        buffer: &mut Vec<u8>,
        kept: usize,
        apart: Option<&mut [u8]>,
    ) -> Received {
        let Some(mut unframing) = self.unframing.take() else {
            return Received::Nothing { drained: true };
        };
        unframing.limit_blocks(self.session.block_bytes_max());
        let mut is_drained = false;
        if !unframing.has_unread() {
            match self.receive_bytes(buffer, kept, None) {
                Received::Bytes { count, drained } => {
                    unframing.add(&buffer[kept..kept + count]);
                    is_drained = drained;
                }
                other => {
                    self.unframing = Some(unframing);
                    return other;
                }
            }
        }
        let target = match apart {
            Some(apart) => apart,
            None => &mut buffer[kept..READ_BUFFER_BYTES],
        };
        let taken = unframing.read_into(target);
        let drained = is_drained && !unframing.has_unread();
        self.unframing = Some(unframing);
        match taken {
            Ok(0) => Received::Nothing { drained },
            Ok(count) => Received::Bytes { count, drained },
            Err(_) => Received::Ended(ClosedReason::ReadError),
        }
    }
}

impl Worker {
    /// A connection to another server that this one has made.
    pub(super) fn admit_solicited(&mut self, solicited: SolicitedConnection) {
        let SolicitedConnection {
            accepted: (connection, socket),
            remote,
            url,
        } = solicited;
        let slot = connection.slot;
        let shared = Arc::clone(&self.core.shared);
        let session = Session::solicited(Arc::clone(&connection), &shared, remote, &url);
        let registered = self.poll.registry().register(
            &mut SourceFd(&socket.as_raw_fd()),
            Token(slot),
            Interest::READABLE | Interest::WRITABLE,
        );
        let member = WorkerConnection::new(session, socket, Transport::Plain, None);
        self.members.insert(slot, member);
        if registered.is_err() {
            return self.end(slot, ClosedReason::ReadError);
        }
        self.start_clocks(slot);
        let session = &self.members[&slot].session;
        if session.secures_first() || session.secures_upgrade() {
            self.secure_link(slot, &[]);
        } else {
            self.ask_for_upgrade(slot);
        }
        self.make_ready(slot);
    }

    /// What a session asked for that concerns the bytes below it. `rest` is what has been read after that.
    pub(super) fn change_transport(&mut self, slot: usize, next: Next, rest: &[u8]) -> ReadTurn {
        match next {
            Next::Secure => self.secure_link(slot, rest),
            Next::Compress(compression) => self.compress_link(slot, compression, rest),
            Next::Close(reason) => {
                self.hand_over(&[]);
                self.begin_close(slot, reason);
            }
            Next::Read { .. } | Next::HandOver | Next::Wait => {}
        }
        ReadTurn::More
    }

    /// Begins TLS with the server that was connected to.
    fn secure_link(&mut self, slot: usize, rest: &[u8]) {
        let Some(member) = self.members.get_mut(&slot) else {
            return;
        };
        let begun = member
            .session
            .client_tls()
            .and_then(|(host, config, timeout_ms)| {
                if !rest.is_empty() {
                    return Err("something came before TLS".to_owned());
                }
                let name = client::server_name(&host)?;
                let channel = TlsChannel::to_server(&config, name);
                let channel = channel.map_err(|error| error.to_string())?;
                Ok((Arc::new(channel), timeout_ms))
            });
        let (channel, timeout_ms) = match begun {
            Ok(begun) => begun,
            Err(text) => return self.fail_handshake(slot, Level::Error, &text),
        };
        let connection = Arc::clone(&member.session.connection);
        connection.outbox.encrypt(Arc::clone(&channel));
        member.transport = Transport::Secure(Secure::new(channel, Handshake::as_client()));
        let timeout_ms = match timeout_ms {
            0 => SECURE_TIMEOUT_MS_DEFAULT,
            timeout_ms => timeout_ms,
        };
        let due_ms = self.core.now_ms.saturating_add(timeout_ms);
        self.timers.add(due_ms, slot, connection.id, Timer::Secure);
        self.answer_records(slot);
    }

    /// Everything that follows is compressed.
    fn compress_link(&mut self, slot: usize, compression: LeafCompression, rest: &[u8]) {
        let Some(member) = self.members.get_mut(&slot) else {
            return;
        };
        let mut unframing = Box::<S2Unframing>::default();
        unframing.add(rest);
        member.unframing = Some(unframing);
        let connection = Arc::clone(&member.session.connection);
        let framing = OutboxFraming::S2(S2Framing::new(compression));
        connection.outbox.frame(framing);
        member.session.compressed(&mut self.core.context());
        self.hand_over(&[]);
        self.make_ready(slot);
    }

    /// The server that was connected to is who it says: the handshake of the link goes on.
    pub(super) fn continue_link(&mut self, slot: usize) {
        self.ask_for_upgrade(slot);
        let Some(member) = self.members.get_mut(&slot) else {
            return;
        };
        let result = member.session.secured(&mut self.core.context());
        self.hand_over(&[]);
        if let Err(next) = result {
            self.change_transport(slot, next, &[]);
        }
    }
}
