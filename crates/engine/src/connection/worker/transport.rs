//! How a connection's bytes travel: in the clear, through TLS, or not yet.
//!
//! Invariant: no session receives a byte before `carries_messages`.

use std::io;
use std::sync::Arc;

use mio::net::TcpStream;

use super::reading::{read, Received};
use crate::config::options::{READ_BUFFER_BYTES, TLS_READ_BYTES, TLS_STATE_BYTES};
use crate::routing::clients::closed_reason::ClosedReason;
use crate::transport::tls::channel::{
    Plaintext, TlsChannel, TlsEnd, RECORD_BYTES_MAX, ROOM_BEFORE_BYTES,
};
use crate::transport::tls::TlsSettings;

/// How a connection's bytes travel.
pub(super) enum Transport {
    Plain,
    /// TLS is expected, or possible, and the first record is not there yet.
    Awaiting(Awaiting),
    Secure(Secure),
    /// The handshake failed, and the connection is being closed.
    Failed,
}

pub(super) struct Awaiting {
    pub(super) settings: Arc<TlsSettings>,
    pub(super) received: Vec<u8>,
    pub(super) greeted: bool,
}

pub(super) struct Secure {
    pub(super) channel: Arc<TlsChannel>,
    /// What is still to be seen to when the handshake is over; nothing afterwards.
    pub(super) handshake: Option<Handshake>,
    /// Plaintext that did not fit into the reader's buffer.
    pub(super) unread: Vec<u8>,
    /// What to end with once everything that came before is read.
    end: Option<ClosedReason>,
}

pub(super) struct Handshake {
    /// None if this side is the client.
    pub(super) settings: Option<Arc<TlsSettings>>,
    pub(super) greeted: bool,
}

impl Handshake {
    pub(super) fn as_client() -> Self {
        Self {
            settings: None,
            greeted: true,
        }
    }
}

impl Transport {
    pub(super) fn new(settings: Option<Arc<TlsSettings>>) -> Self {
        match settings {
            None => Self::Plain,
            Some(settings) => Self::Awaiting(Awaiting {
                greeted: settings.handshake_first_ms.is_none(),
                settings,
                received: Vec::new(),
            }),
        }
    }

    /// Whether INFO is the first thing that is said.
    pub(super) fn greets_at_once(&self) -> bool {
        match self {
            Self::Plain => true,
            Self::Awaiting(awaiting) => awaiting.greeted,
            Self::Secure(_) | Self::Failed => false,
        }
    }

    /// Whether a handshake will be the first thing that is read.
    pub(super) fn must_encrypt(&self) -> bool {
        matches!(self, Self::Awaiting(awaiting) if !awaiting.settings.allow_non_tls)
    }

    #[inline]
    pub(super) fn carries_messages(&self) -> bool {
        match self {
            Self::Plain => true,
            Self::Awaiting(_) | Self::Failed => false,
            Self::Secure(secure) => secure.handshake.is_none(),
        }
    }

    /// What it holds for a client that nobody knows yet.
    pub(super) fn unauthenticated_bytes(&self) -> usize {
        match self {
            Self::Plain | Self::Failed => 0,
            Self::Awaiting(awaiting) => awaiting.received.len(),
            Self::Secure(secure) => TLS_STATE_BYTES + secure.unread.len(),
        }
    }
}

impl Secure {
    pub(super) fn new(channel: Arc<TlsChannel>, handshake: Handshake) -> Self {
        Self {
            channel,
            handshake: Some(handshake),
            unread: Vec::new(),
            end: None,
        }
    }

    /// Reads once, and decrypts. With `apart`, plaintext goes there; else into `buffer`, from `kept` on. `buffer` is the worker's;
    /// `read_closed` means that the end of the socket is there to be read.
    pub(super) fn receive(
        &mut self,
        socket: &TcpStream,
        read_closed: bool,
        buffer: &mut Vec<u8>,
        kept: usize,
        apart: Option<&mut [u8]>,
    ) -> Received {
        let room = apart
            .as_ref()
            .map_or(READ_BUFFER_BYTES - kept, |apart| apart.len());
        if !self.unread.is_empty() {
            let count = self.unread.len().min(room);
            let target = match apart {
                Some(apart) => &mut apart[..count],
                None => &mut buffer[kept..][..count],
            };
            target.copy_from_slice(&self.unread[..count]);
            self.unread.drain(..count);
            return Received::Bytes {
                count,
                drained: false,
            };
        }
        self.unread = Vec::new();
        if let Some(reason) = self.end {
            return Received::Ended(reason);
        }
        make_room(buffer);
        // Plaintext is never longer than its records; one record may be there already, as far as it came.
        let limit = room
            .saturating_sub(RECORD_BYTES_MAX)
            .clamp(RECORD_BYTES_MAX, TLS_READ_BYTES);
        let start = kept + ROOM_BEFORE_BYTES;
        let count = match read(socket, &mut buffer[start..][..limit]) {
            Ok(0) => return Received::Ended(ClosedReason::ClientClosed),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Received::Nothing { drained: true }
            }
            Err(_) => return Received::Ended(ClosedReason::ReadError),
        };
        let plaintext = match apart {
            Some(apart) => Plaintext::apart(apart, &mut self.unread),
            None => Plaintext::to_front(kept..READ_BUFFER_BYTES, &mut self.unread),
        };
        let opened = self.channel.open(buffer, start..start + count, plaintext);
        if let Some(end) = &opened.end {
            self.end_after_unread(end);
        }
        let drained = count < limit && !read_closed && self.unread.is_empty() && self.end.is_none();
        match opened.count {
            0 => Received::Nothing { drained },
            count => Received::Bytes { count, drained },
        }
    }

    /// Nothing more will come: what came before is read first.
    pub(super) fn end_after_unread(&mut self, end: &TlsEnd) {
        self.end = Some(match end {
            TlsEnd::ByPeer => ClosedReason::ClientClosed,
            TlsEnd::Failed(_) => ClosedReason::ReadError,
        });
    }
}

/// Makes room for records after what is kept of an operation. A worker without TLS does not need it.
pub(super) fn make_room(buffer: &mut Vec<u8>) {
    let bytes = READ_BUFFER_BYTES + ROOM_BEFORE_BYTES + TLS_READ_BYTES;
    if buffer.len() < bytes {
        buffer.resize(bytes, 0);
    }
}
