//! Reading: one connection's bytes into its session.
//!
//! A short read means that the socket is empty for now: the poll reports the next bytes, so the read that would find nothing is saved.

use std::io::{self, Read};

use mio::net::TcpStream;

use super::Worker;
use crate::config::{READS_PER_TURN_MAX, READ_BUFFER_BYTES};
use crate::connection::closed_reason::ClosedReason;
use crate::connection::session::Next;

/// What a read found.
enum Turn {
    Drained,
    More,
    Ended(ClosedReason),
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
                Turn::Drained => return,
                Turn::More => {}
                Turn::Ended(reason) => return self.end(slot, reason),
            }
        }
        self.make_ready(slot);
    }

    fn read_once(&mut self, slot: usize) -> Turn {
        let Some(member) = self.members.get_mut(&slot) else {
            return Turn::Drained;
        };
        if member.closing.is_some() {
            return discard(&member.socket, &mut self.read_buffer);
        }
        if member.session.is_waiting() || member.stall.is_some() {
            return Turn::Drained;
        }
        let mut buffer = std::mem::take(&mut self.read_buffer);
        let turn = if member.session.input.has_missing() {
            self.read_large(slot)
        } else {
            self.read_small(slot, &mut buffer)
        };
        self.read_buffer = buffer;
        turn
    }

    /// Reads behind what was kept, in the worker's buffer.
    fn read_small(&mut self, slot: usize, buffer: &mut [u8]) -> Turn {
        let member = self.members.get_mut(&slot).expect("the caller found it");
        let kept = member.session.input.move_to(buffer);
        let room = buffer.len() - kept;
        let count = match read(&member.socket, &mut buffer[kept..]) {
            Ok(0) => return Turn::Ended(ClosedReason::ClientClosed),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                member
                    .session
                    .input
                    .keep(&buffer[..kept], kept + 1, buffer.len());
                return Turn::Drained;
            }
            Err(_) => return Turn::Ended(ClosedReason::ReadError),
        };
        let drained = count < room;
        match self.process(slot, &buffer[..kept + count], buffer.len()) {
            Turn::More if drained => Turn::Drained,
            other => other,
        }
    }

    /// Reads the rest of an operation that is larger than the worker's buffer.
    fn read_large(&mut self, slot: usize) -> Turn {
        let member = self.members.get_mut(&slot).expect("the caller found it");
        match read(&member.socket, member.session.input.missing()) {
            Ok(0) => return Turn::Ended(ClosedReason::ClientClosed),
            Ok(count) => member.session.input.add(count),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Turn::Drained,
            Err(_) => return Turn::Ended(ClosedReason::ReadError),
        }
        if member.session.input.has_missing() {
            return Turn::More;
        }
        let bytes = member.session.input.take();
        self.process(slot, &bytes, READ_BUFFER_BYTES)
    }

    fn process(&mut self, slot: usize, bytes: &[u8], read_buffer_bytes: usize) -> Turn {
        let member = self.members.get_mut(&slot).expect("the caller found it");
        let was_connected = member.session.is_connected();
        let progress = member.session.process(bytes, &mut self.core.context());
        let closes = matches!(progress.next, Next::Close(_));
        if closes || self.core.staging.is_due() {
            self.hand_over(bytes);
        }
        let Some(member) = self.members.get_mut(&slot) else {
            return Turn::Drained;
        };
        let rest = &bytes[progress.consumed..];
        match progress.next {
            Next::Read { bytes_needed } => {
                member
                    .session
                    .input
                    .keep(rest, bytes_needed, read_buffer_bytes);
                if !was_connected && member.session.is_connected() {
                    self.start_pings(slot);
                }
                Turn::More
            }
            Next::Wait => {
                member
                    .session
                    .input
                    .keep(rest, rest.len() + 1, read_buffer_bytes);
                Turn::Drained
            }
            Next::Close(reason) => {
                self.begin_close(slot, reason);
                Turn::More
            }
        }
    }

    /// The client was let in: run what it sent meanwhile, then read on.
    pub(super) fn resume(&mut self, slot: usize) {
        self.start_pings(slot);
        if let Some(member) = self.members.get_mut(&slot) {
            let bytes = member.session.input.take();
            if !bytes.is_empty() {
                self.process(slot, &bytes, READ_BUFFER_BYTES);
            }
        }
        self.make_ready(slot);
    }
}

fn read(mut socket: &TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match socket.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// Reads and drops what a connection that is being closed still sends.
fn discard(socket: &TcpStream, buffer: &mut [u8]) -> Turn {
    match read(socket, buffer) {
        Ok(0) => Turn::Ended(ClosedReason::ClientClosed),
        Ok(count) if count == buffer.len() => Turn::More,
        Ok(_) => Turn::Drained,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Turn::Drained,
        Err(_) => Turn::Ended(ClosedReason::ReadError),
    }
}
