//! One encrypted connection, shared by the thread that reads it and the threads that write to it.
//!
//! rustls works on our buffers (its unbuffered interface): records are decrypted where they were read and encrypted to where they are
//! written from. All of it happens under one lock that is never held across a system call.
//!
//! Records must leave in the order in which they were encrypted. So whatever rustls wants to send while records are read is encrypted
//! into `outgoing`, and only the holder of the outbox's write role takes bytes out, by `seal`, which takes `outgoing` first.
//!
//! Invariants: between two calls `incoming` holds exactly the bytes that rustls has not given back, no whole record among them, and every
//! call shows it all of them; `is_open` is true from the end of the handshake until a failure.

use std::io::IoSlice;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use parking_lot::Mutex;
use rustls::pki_types::ServerName;
use rustls::unbuffered::{ConnectionState, EncodeError, EncodeTlsData, UnbufferedStatus};
use rustls::{ClientConfig, ServerConfig};

use super::peer::Peer;
use super::role::{Role, Unbuffered};
use super::writing::Sealed;
use crate::config::options::TLS_UNFINISHED_BYTES_MAX;

/// A whole record, in any version: a read must have room for one.
pub const RECORD_BYTES_MAX: usize = 5 + 16 * 1024 + 2048;

/// Room before what is read from the socket: for what was kept of the read before, and so that the plaintext of a record can be moved
/// away to the front while the record itself is still looked at.
pub const ROOM_BEFORE_BYTES: usize = TLS_UNFINISHED_BYTES_MAX + RECORD_BYTES_MAX;

pub struct TlsChannel {
    state: Mutex<TlsState>,
    is_open: AtomicBool,
    /// Whether `outgoing` holds something: for the write role to know without the lock.
    has_outgoing: AtomicBool,
    said_goodbye: AtomicBool,
}

struct TlsState {
    role: Role,
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
    failed: bool,
}

/// What a read brought.
pub struct TlsRead {
    /// Bytes of plaintext written to where they were asked for.
    pub count: usize,
    /// The handshake is over: who is there.
    pub peer: Option<Peer>,
    pub end: Option<TlsEnd>,
}

/// Nothing more will come.
#[derive(Debug, PartialEq, Eq)]
pub enum TlsEnd {
    ByPeer,
    Failed(String),
}

/// Where plaintext goes, in order; what does not fit goes to `unread`.
pub struct Plaintext<'a> {
    place: TlsStage<'a>,
    filled: usize,
    unread: &'a mut Vec<u8>,
}

enum TlsStage<'a> {
    /// To these bytes of the buffer that the records are in, before them.
    Front(Range<usize>),
    Apart(&'a mut [u8]),
}

impl<'a> Plaintext<'a> {
    pub fn to_front(range: Range<usize>, unread: &'a mut Vec<u8>) -> Self {
        Self {
            place: TlsStage::Front(range),
            filled: 0,
            unread,
        }
    }

    pub fn apart(buffer: &'a mut [u8], unread: &'a mut Vec<u8>) -> Self {
        Self {
            place: TlsStage::Apart(buffer),
            filled: 0,
            unread,
        }
    }

    /// Adds the plaintext of one record. `front` is everything before that record.
    fn add(&mut self, front: &mut [u8], bytes: &[u8]) {
        let place = match &mut self.place {
            TlsStage::Front(range) => {
                let end = range.end.min(front.len());
                &mut front[range.start.min(end)..end]
            }
            TlsStage::Apart(buffer) => buffer,
        };
        let room = if self.unread.is_empty() {
            place.len().saturating_sub(self.filled)
        } else {
            0
        };
        let (now, later) = bytes.split_at(bytes.len().min(room));
        place[self.filled..][..now.len()].copy_from_slice(now);
        self.filled += now.len();
        self.unread.extend_from_slice(later);
    }
}

impl TlsChannel {
    /// A channel to a client that begins.
    pub fn new(config: &Arc<ServerConfig>) -> Result<Self, rustls::Error> {
        Ok(Self::with_role(Role::server(config)?))
    }

    /// A channel to another server; what begins the handshake waits to be written.
    pub fn to_server(
        config: &Arc<ClientConfig>,
        name: ServerName<'static>,
    ) -> Result<Self, rustls::Error> {
        let channel = Self::with_role(Role::client(config, name)?);
        let mut state = channel.state.lock();
        let mut unread = Vec::new();
        let mut nothing = Plaintext::apart(&mut [], &mut unread);
        let (_, end) = state.read_records(&mut [], 0, &mut nothing);
        let has_outgoing = !state.outgoing.is_empty();
        drop(state);
        match end {
            Some(TlsEnd::Failed(text)) => Err(rustls::Error::General(text)),
            _ => {
                channel.has_outgoing.store(has_outgoing, Ordering::Release);
                Ok(channel)
            }
        }
    }

    fn with_role(role: Role) -> Self {
        Self {
            state: Mutex::new(TlsState {
                role,
                incoming: Vec::new(),
                outgoing: Vec::new(),
                failed: false,
            }),
            is_open: AtomicBool::new(false),
            has_outgoing: AtomicBool::new(false),
            said_goodbye: AtomicBool::new(false),
        }
    }

    /// Whether messages can be sent.
    pub fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    /// Whether the handshake, or its like, has something to send.
    pub fn has_outgoing(&self) -> bool {
        self.has_outgoing.load(Ordering::Acquire)
    }

    /// Whether the end of the stream was announced to the peer.
    pub fn said_goodbye(&self) -> bool {
        self.said_goodbye.load(Ordering::Acquire)
    }

    /// Decrypts what was read to `received` of `buffer`, with `ROOM_BEFORE_BYTES` before it. What there is to answer is left for the
    /// outbox to write: flush it if `has_outgoing`.
    pub fn open(
        &self,
        buffer: &mut [u8],
        received: Range<usize>,
        mut plaintext: Plaintext<'_>,
    ) -> TlsRead {
        let buffer = &mut buffer[..received.end];
        let mut state = self.state.lock();
        if state.failed {
            return TlsRead {
                count: 0,
                peer: None,
                end: Some(TlsEnd::ByPeer),
            };
        }
        let was_handshaking = state.role.common().is_handshaking();
        let start = received.start - state.incoming.len();
        buffer[start..received.start].copy_from_slice(&state.incoming);
        let (done, mut end) = state.read_records(buffer, start, &mut plaintext);
        if let Err(failure) = state.keep(&buffer[done..]) {
            end.get_or_insert(failure);
        }
        if matches!(end, Some(TlsEnd::Failed(_))) {
            state.failed = true;
            self.is_open.store(false, Ordering::Release);
        }
        let peer = (was_handshaking && !state.failed && !state.role.common().is_handshaking())
            .then(|| Peer::of(state.role.common()));
        if peer.is_some() {
            self.is_open.store(true, Ordering::Release);
        }
        self.has_outgoing
            .store(!state.outgoing.is_empty(), Ordering::Release);
        TlsRead {
            count: plaintext.filled,
            peer,
            end,
        }
    }

    /// Encrypts the pieces from `start` on, as far as there is room, after what already waits to be sent. Says how many
    /// bytes it took. With `goodbye`, the end is also announced to the peer, once everything is taken. `Err` is a channel
    /// that cannot go on.
    pub(super) fn seal(
        &self,
        pieces: &[IoSlice<'_>],
        start: usize,
        goodbye: bool,
        sealed: &mut Sealed,
    ) -> Result<usize, ()> {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        sealed.append(&std::mem::take(&mut state.outgoing));
        self.has_outgoing.store(false, Ordering::Release);
        if state.failed {
            return Ok(0);
        }
        let asked = SealRequest {
            pieces,
            start,
            goodbye,
            said_goodbye: &self.said_goodbye,
        };
        let (incoming, sealed) = (&mut state.incoming, sealed);
        let taken = match &mut state.role {
            Role::Server(connection) => asked.carry_out(&mut **connection, incoming, sealed),
            Role::Client(connection) => asked.carry_out(&mut **connection, incoming, sealed),
        };
        if taken.is_err() {
            state.failed = true;
            self.is_open.store(false, Ordering::Release);
        }
        taken
    }
}

/// What to encrypt.
struct SealRequest<'a> {
    pieces: &'a [IoSlice<'a>],
    start: usize,
    goodbye: bool,
    said_goodbye: &'a AtomicBool,
}

impl SealRequest<'_> {
    fn carry_out<C: Unbuffered>(
        &self,
        connection: &mut C,
        incoming: &mut Vec<u8>,
        sealed: &mut Sealed,
    ) -> Result<usize, ()> {
        loop {
            let UnbufferedStatus {
                discard,
                state: step,
            } = connection.process(incoming);
            let taken = match step {
                Ok(ConnectionState::EncodeTlsData(mut data)) => {
                    sealed.extend_with(|out| encode(&mut data, out));
                    None
                }
                Ok(ConnectionState::TransmitTlsData(data)) => {
                    data.done();
                    None
                }
                Ok(ConnectionState::WriteTraffic(mut traffic)) => {
                    let taken = sealed.encrypt(&mut traffic, self.pieces, self.start)?;
                    let total: usize = self.pieces.iter().map(|piece| piece.len()).sum();
                    if self.goodbye
                        && self.start + taken == total
                        && !self.said_goodbye.swap(true, Ordering::AcqRel)
                    {
                        sealed.say_goodbye(&mut traffic)?;
                    }
                    Some(taken)
                }
                Ok(ConnectionState::PeerClosed) => None,
                Ok(ConnectionState::BlockedHandshake | ConnectionState::Closed) => Some(0),
                Ok(_) | Err(_) => return Err(()),
            };
            incoming.drain(..discard);
            if let Some(taken) = taken {
                return Ok(taken);
            }
        }
    }
}

impl TlsState {
    /// Goes through all whole records of `buffer`, from `start` on. Says where that ended, and whether it was the end of everything.
    fn read_records(
        &mut self,
        buffer: &mut [u8],
        start: usize,
        plaintext: &mut Plaintext<'_>,
    ) -> (usize, Option<TlsEnd>) {
        let outgoing = &mut self.outgoing;
        let (done, end) = match &mut self.role {
            Role::Server(connection) => {
                read_records(&mut **connection, outgoing, buffer, start, plaintext)
            }
            Role::Client(connection) => {
                read_records(&mut **connection, outgoing, buffer, start, plaintext)
            }
        };
        self.failed |= matches!(end, Some(TlsEnd::Failed(_)));
        (done, end)
    }

    /// Keeps an incomplete record; a connection that is between two records keeps nothing.
    fn keep(&mut self, rest: &[u8]) -> Result<(), TlsEnd> {
        if rest.is_empty() {
            self.incoming = Vec::new();
            return Ok(());
        }
        self.incoming.clear();
        if rest.len() > TLS_UNFINISHED_BYTES_MAX {
            return Err(TlsEnd::Failed(format!(
                "a message of more than {TLS_UNFINISHED_BYTES_MAX} bytes"
            )));
        }
        self.incoming.extend_from_slice(rest);
        Ok(())
    }
}

fn read_records<C: Unbuffered>(
    connection: &mut C,
    outgoing: &mut Vec<u8>,
    buffer: &mut [u8],
    mut start: usize,
    plaintext: &mut Plaintext<'_>,
) -> (usize, Option<TlsEnd>) {
    loop {
        let (front, records) = buffer.split_at_mut(start);
        let UnbufferedStatus {
            discard,
            state: step,
        } = connection.process(records);
        start += discard;
        let error = match step {
            Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                let mut failure = None;
                while let Some(record) = traffic.next_record() {
                    match record {
                        Ok(record) => {
                            plaintext.add(front, record.payload);
                            start += record.discard;
                        }
                        Err(error) => failure = Some(error),
                    }
                }
                failure
            }
            Ok(ConnectionState::EncodeTlsData(mut data)) => {
                encode(&mut data, outgoing);
                None
            }
            Ok(ConnectionState::TransmitTlsData(data)) => {
                data.done();
                None
            }
            Ok(ConnectionState::WriteTraffic(_) | ConnectionState::BlockedHandshake) => {
                return (start, None)
            }
            Ok(ConnectionState::PeerClosed | ConnectionState::Closed) => {
                return (start, Some(TlsEnd::ByPeer))
            }
            Ok(_) => Some(rustls::Error::General("not asked for".to_owned())),
            Err(error) => Some(error),
        };
        if let Some(error) = error {
            tell_failure(connection, outgoing);
            return (start, Some(TlsEnd::Failed(error.to_string())));
        }
    }
}

/// The peer is sent the reason, and nothing else goes on: rustls must not be shown the same bytes again.
fn tell_failure<C: Unbuffered>(connection: &mut C, outgoing: &mut Vec<u8>) {
    while connection.wants_write() {
        let status = connection.process(&mut []);
        let Ok(ConnectionState::EncodeTlsData(mut data)) = status.state else {
            break;
        };
        encode(&mut data, outgoing);
    }
}

/// Appends one record that is ready.
fn encode<Data>(data: &mut EncodeTlsData<'_, Data>, out: &mut Vec<u8>) {
    if let Err(EncodeError::InsufficientSize(needed)) = data.encode(&mut []) {
        let start = out.len();
        out.resize(start + needed.required_size, 0);
        // There is room now, and it was not encoded before.
        let encoded = data.encode(&mut out[start..]);
        debug_assert!(encoded.is_ok());
    }
}

#[cfg(test)]
#[path = "channel_tests.rs"]
mod tests;
