//! Writing pieces to a socket that does not block: as much as it takes, with as few calls as possible.

use std::io::{self, IoSlice, Write};

use mio::net::TcpStream;

/// Buffers given to one vectored write. Linux takes up to 1024; gains end well before.
pub const SLICES_PER_WRITE_MAX: usize = 256;

#[derive(Debug, Default)]
pub struct WriteOutcome {
    /// Bytes of the pieces that are done with.
    pub written: usize,
    /// Bytes the socket took.
    pub sent: usize,
    /// Bytes that were made from the pieces and that the socket did not take: only where they are encrypted.
    pub unsent: Vec<u8>,
    /// The socket took less than was offered.
    pub full: bool,
    pub failed: bool,
}

/// Writes as much as the socket takes.
pub fn write_pieces(socket: &TcpStream, pieces: &[IoSlice<'_>]) -> WriteOutcome {
    let mut outcome = WriteOutcome::default();
    for chunk in pieces.chunks(SLICES_PER_WRITE_MAX) {
        let offered: usize = chunk.iter().map(|piece| piece.len()).sum();
        match write_chunk(socket, chunk, offered) {
            Ok(taken) => {
                outcome.written += taken;
                outcome.full = taken < offered;
            }
            Err(_) => outcome.failed = true,
        }
        if outcome.full || outcome.failed {
            break;
        }
    }
    outcome.sent = outcome.written;
    outcome
}

fn write_chunk(mut socket: &TcpStream, chunk: &[IoSlice<'_>], offered: usize) -> io::Result<usize> {
    let mut written = 0;
    while written < offered {
        let result = if written == 0 {
            match chunk {
                [one] => socket.write(one),
                many => socket.write_vectored(many),
            }
        } else {
            // A short write is rare: finish it from a copy of the slices that skips what was taken.
            socket.write_vectored(&skip(chunk, written))
        };
        match result {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(taken) => written += taken,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(written)
}

/// The pieces without their first bytes.
pub fn skip<'a>(pieces: &'a [IoSlice<'_>], mut bytes: usize) -> Vec<IoSlice<'a>> {
    let mut rest = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let start = bytes.min(piece.len());
        bytes -= start;
        if start < piece.len() {
            rest.push(IoSlice::new(&piece[start..]));
        }
    }
    rest
}

/// One buffer of the pieces, from the byte `start` on.
pub fn concatenate(pieces: &[IoSlice<'_>], start: usize) -> Vec<u8> {
    let rest = skip(pieces, start);
    let mut bytes = Vec::with_capacity(rest.iter().map(|piece| piece.len()).sum());
    for piece in &rest {
        bytes.extend_from_slice(piece);
    }
    bytes
}
