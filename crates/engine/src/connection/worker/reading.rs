//! Reading: one connection's bytes into its session.
//!
//! A short read means that the socket is empty for now: the poll reports the next bytes, so the read that would find nothing is saved.
//! Not so when the poll has said that the peer ended its side: then it is read until the end is seen, which is not reported twice.

use std::io::{self, Read};

use mio::net::TcpStream;

use super::transport::Transport;
use super::{Worker, WorkerConnection};
use crate::config::options::{READS_PER_TURN_MAX, READ_BUFFER_BYTES};
use crate::connection::session::Next;
use crate::routing::clients::closed_reason::ClosedReason;

/// What becomes of a connection after a read.
pub(super) enum ReadTurn {
    Drained,
    More,
    Ended(ClosedReason),
}

/// What a read brought for the session. `drained` means that the next read would find nothing.
pub(super) enum Received {
    Bytes { count: usize, drained: bool },
    Nothing { drained: bool },
    Ended(ClosedReason),
}

impl WorkerConnection {
    /// Reads once: to `apart`, or to `buffer`, which is the worker's, after what is kept there.
    fn receive(&mut self, buffer: &mut Vec<u8>, kept: usize, apart: Option<&mut [u8]>) -> Received {
        if self.unframing.is_some() {
            return self.receive_chunks(buffer, kept, apart);
        }
        match self.websocket {
            None => self.receive_bytes(buffer, kept, apart),
            Some(_) => self.receive_frames(buffer, kept, apart),
        }
    }

    /// The same as it comes from the socket, or out of TLS.
    pub(super) fn receive_bytes(
        &mut self,
        buffer: &mut Vec<u8>,
        kept: usize,
        apart: Option<&mut [u8]>,
    ) -> Received {
        if let Transport::Secure(secure) = &mut self.transport {
            return secure.receive(&self.socket, self.read_closed, buffer, kept, apart);
        }
        let target = match apart {
            Some(apart) => apart,
            None => &mut buffer[kept..READ_BUFFER_BYTES],
        };
        match read(&self.socket, target) {
            Ok(0) => Received::Ended(ClosedReason::ClientClosed),
            Ok(count) => Received::Bytes {
                count,
                drained: count < target.len() && !self.read_closed,
            },
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                Received::Nothing { drained: true }
            }
            Err(_) => Received::Ended(ClosedReason::ReadError),
        }
    }
}

impl Worker {
    /// One connection's share of reading.
    pub(super) fn take_turn(&mut self, slot: usize) {
        let Some(member) = self.members.get_mut(&slot) else {
            return;
        };
        member.queued = false;
        if member.stall.is_some() {
            return;
        }
        for _ in 0..READS_PER_TURN_MAX {
            match self.read_once(slot) {
                ReadTurn::Drained => return,
                ReadTurn::More => {}
                ReadTurn::Ended(reason) => {
                    // A client that only ended its own side still gets the answers to its last words.
                    self.hand_over(&[]);
                    return self.end_after_answers(slot, reason);
                }
            }
        }
        self.make_ready(slot);
    }

    /// Ends a connection, but not before another thread that is writing to it has taken its last answers along.
    fn end_after_answers(&mut self, slot: usize, reason: ClosedReason) {
        let owed = self
            .members
            .get(&slot)
            .is_some_and(|member| member.session.connection.outbox.pending_bytes() > 0);
        if owed && reason == ClosedReason::ClientClosed {
            // If it is closing already, its deadline ends it.
            self.begin_close(slot, reason);
        } else {
            self.end(slot, reason);
        }
    }

    fn read_once(&mut self, slot: usize) -> ReadTurn {
        let Some(member) = self.members.get_mut(&slot) else {
            return ReadTurn::Drained;
        };
        if member.closing.is_some() {
            return discard(member, &mut self.read_buffer);
        }
        if member.session.is_waiting() || member.stall.is_some() {
            return ReadTurn::Drained;
        }
        if std::mem::take(&mut member.interrupted) {
            let bytes = member.session.input.take_operation();
            return self.process(slot, &bytes);
        }
        if !member.transport.carries_messages() {
            return self.shake_hands(slot);
        }
        let encrypted = matches!(member.transport, Transport::Secure(_));
        let framed = member.websocket.is_some();
        let compressed = member.unframing.is_some();
        let mut buffer = std::mem::take(&mut self.read_buffer);
        let turn = if member.is_upgrading() {
            self.upgrade(slot, &mut buffer)
        } else if member.session.input.has_missing() {
            self.read_large(slot, &mut buffer)
        } else {
            self.read_small(slot, &mut buffer)
        };
        self.read_buffer = buffer;
        if framed {
            self.answer_frames(slot);
        }
        if compressed {
            // A server that has not logged in may be holding a chunk that has not come as a whole.
            self.weigh_unauthenticated(slot);
        }
        if encrypted {
            self.answer_records(slot);
        }
        turn
    }

    /// Reads after what was kept, in the worker's buffer.
    fn read_small(&mut self, slot: usize, buffer: &mut Vec<u8>) -> ReadTurn {
        let member = self.members.get_mut(&slot).expect("the caller found it");
        let kept = member.session.input.move_to(buffer);
        let (count, drained) = match member.receive(buffer, kept, None) {
            Received::Bytes { count, drained } => (count, drained),
            Received::Nothing { drained } => {
                let input = &mut member.session.input;
                input.keep(&buffer[..kept], kept + 1, READ_BUFFER_BYTES);
                return if drained {
                    ReadTurn::Drained
                } else {
                    ReadTurn::More
                };
            }
            Received::Ended(reason) => return ReadTurn::Ended(reason),
        };
        match self.process(slot, &buffer[..kept + count]) {
            ReadTurn::More if drained => ReadTurn::Drained,
            other => other,
        }
    }

    /// Reads the rest of an operation that is larger than the worker's buffer.
    fn read_large(&mut self, slot: usize, buffer: &mut Vec<u8>) -> ReadTurn {
        let member = self.members.get_mut(&slot).expect("the caller found it");
        let mut input = std::mem::take(&mut member.session.input);
        let received = member.receive(buffer, 0, Some(input.missing()));
        member.session.input = input;
        match received {
            Received::Bytes { count, .. } => member.session.input.add(count),
            Received::Nothing { drained: true } => return ReadTurn::Drained,
            Received::Nothing { drained: false } => return ReadTurn::More,
            Received::Ended(reason) => return ReadTurn::Ended(reason),
        }
        if member.session.input.has_missing() {
            return ReadTurn::More;
        }
        let bytes = member.session.input.take_operation();
        self.process(slot, &bytes)
    }

    /// Runs what was read. Where much is staged for one receiver it is handed over in between; if that stalls this connection, the rest
    /// of what was read waits until the stall is over.
    pub(super) fn process(&mut self, slot: usize, mut bytes: &[u8]) -> ReadTurn {
        let member = self.members.get_mut(&slot).expect("the caller found it");
        let was_connected = member.session.is_connected();
        let mut progress = member.session.process(bytes, &mut self.core.context());
        while progress.next == Next::HandOver {
            self.hand_over(bytes);
            bytes = &bytes[progress.consumed..];
            let Some(member) = self.members.get_mut(&slot) else {
                return ReadTurn::Drained;
            };
            if member.stall.is_some() && !bytes.is_empty() {
                let input = &mut member.session.input;
                input.keep(bytes, bytes.len(), READ_BUFFER_BYTES);
                member.interrupted = true;
                if !was_connected && member.session.is_connected() {
                    self.start_pings(slot);
                }
                return ReadTurn::Drained;
            }
            progress = member.session.process(bytes, &mut self.core.context());
        }
        let closes = matches!(
            progress.next,
            Next::Close(_) | Next::Secure | Next::Compress(_)
        );
        if closes || self.core.staging.is_due() {
            self.hand_over(bytes);
        }
        let Some(member) = self.members.get_mut(&slot) else {
            return ReadTurn::Drained;
        };
        let rest = &bytes[progress.consumed..];
        match progress.next {
            Next::Read { bytes_needed } => {
                member
                    .session
                    .input
                    .keep(rest, bytes_needed, READ_BUFFER_BYTES);
                let counted = member.unauthenticated_bytes > 0;
                if !was_connected && member.session.is_connected() {
                    self.start_pings(slot);
                }
                if counted {
                    self.weigh_unauthenticated(slot);
                }
                ReadTurn::More
            }
            Next::Wait => {
                // These are all: it is not read on before the verdict.
                member
                    .session
                    .input
                    .keep(rest, rest.len(), READ_BUFFER_BYTES);
                self.weigh_unauthenticated(slot);
                ReadTurn::Drained
            }
            Next::Close(reason) => {
                self.begin_close(slot, reason);
                ReadTurn::More
            }
            Next::Secure | Next::Compress(_) => self.change_transport(slot, progress.next, rest),
            Next::HandOver => unreachable!("handed over above"),
        }
    }

    /// The client was let in: run what it sent meanwhile, then read on.
    pub(super) fn resume(&mut self, slot: usize) {
        self.start_pings(slot);
        self.weigh_unauthenticated(slot);
        if let Some(member) = self.members.get_mut(&slot) {
            let bytes = member.session.input.take_operation();
            if !bytes.is_empty() {
                self.process(slot, &bytes);
            }
        }
        self.make_ready(slot);
    }
}

pub(super) fn read(mut socket: &TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match socket.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// Reads and drops what a connection that is being closed still sends.
fn discard(member: &WorkerConnection, buffer: &mut [u8]) -> ReadTurn {
    match read(&member.socket, buffer) {
        Ok(0) => ReadTurn::Ended(ClosedReason::ClientClosed),
        Ok(count) if count == buffer.len() || member.read_closed => ReadTurn::More,
        Ok(_) => ReadTurn::Drained,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => ReadTurn::Drained,
        Err(_) => ReadTurn::Ended(ClosedReason::ReadError),
    }
}
