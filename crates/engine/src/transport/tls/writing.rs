//! How the outbox writes through a channel: encrypt some, write it, encrypt more.
//!
//! Each thread has one buffer to encrypt into; only what a socket did not take is copied out of it, as `unsent`. Called with the outbox's
//! write role and without its lock.

use std::cell::RefCell;
use std::io::IoSlice;

use mio::net::TcpStream;
use rustls::unbuffered::{EncryptError, WriteTraffic};

use super::TlsChannel;
use crate::config::options::TLS_SEAL_BYTES_MAX;
use crate::transport::socket::{write_pieces, WriteOutcome};

/// Plaintext of one record.
const FRAGMENT_BYTES: usize = 16 * 1024;

/// What the records of one `seal` need besides their plaintext: some thirty bytes each, and a change of keys now and then.
const OVERHEAD_BYTES: usize = 4 * 1024;

/// Records that were encrypted, ready for the wire.
pub struct Sealed {
    bytes: Vec<u8>,
    filled: usize,
    /// Small pieces put together, so that each does not become a record of its own.
    gathered: Vec<u8>,
}

thread_local! {
    static SEALED: RefCell<Sealed> = const { RefCell::new(Sealed::new()) };
}

/// Writes `unsent` and then the pieces, as far as the socket takes them. `written` of the outcome counts bytes of the pieces.
pub fn write(
    channel: &TlsChannel,
    socket: &TcpStream,
    mut unsent: Vec<u8>,
    pieces: &[IoSlice<'_>],
    goodbye: bool,
) -> WriteOutcome {
    let mut sent = 0;
    if !unsent.is_empty() {
        let outcome = write_pieces(socket, &[IoSlice::new(&unsent)]);
        sent = outcome.written;
        if outcome.full || outcome.failed {
            unsent.drain(..sent);
            return WriteOutcome {
                written: 0,
                unsent,
                ..outcome
            };
        }
    }
    SEALED.with_borrow_mut(|sealed| {
        let mut written = 0;
        loop {
            sealed.clear();
            let Ok(taken) = channel.seal(pieces, written, goodbye, sealed) else {
                return WriteOutcome {
                    written,
                    sent,
                    failed: true,
                    ..WriteOutcome::default()
                };
            };
            written += taken;
            if sealed.filled().is_empty() {
                return WriteOutcome {
                    written,
                    sent,
                    ..WriteOutcome::default()
                };
            }
            let outcome = write_pieces(socket, &[IoSlice::new(sealed.filled())]);
            sent += outcome.sent;
            if outcome.full || outcome.failed {
                return WriteOutcome {
                    written,
                    sent,
                    unsent: sealed.filled()[outcome.written..].to_vec(),
                    ..outcome
                };
            }
        }
    })
}

impl Sealed {
    pub(super) const fn new() -> Self {
        Self {
            bytes: Vec::new(),
            filled: 0,
            gathered: Vec::new(),
        }
    }

    pub(super) fn clear(&mut self) {
        // Room that an unusual case needed is given back; the usual room is made once.
        self.bytes.resize(TLS_SEAL_BYTES_MAX + OVERHEAD_BYTES, 0);
        self.filled = 0;
    }

    pub(super) fn filled(&self) -> &[u8] {
        &self.bytes[..self.filled]
    }

    fn room(&mut self, bytes: usize) -> &mut [u8] {
        if self.bytes.len() < self.filled + bytes {
            self.bytes.resize(self.filled + bytes, 0);
        }
        &mut self.bytes[self.filled..]
    }

    pub(super) fn append(&mut self, bytes: &[u8]) {
        self.room(bytes.len())[..bytes.len()].copy_from_slice(bytes);
        self.filled += bytes.len();
    }

    pub(super) fn extend_with(&mut self, fill: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = Vec::new();
        fill(&mut bytes);
        self.append(&bytes);
    }

    /// Encrypts up to `TLS_SEAL_BYTES_MAX` of the pieces, from the byte `start` on, and says how many.
    pub(super) fn encrypt<Data>(
        &mut self,
        traffic: &mut WriteTraffic<'_, Data>,
        pieces: &[IoSlice<'_>],
        start: usize,
    ) -> Result<usize, ()> {
        let mut runs = Runs::starting_at(pieces, start);
        let mut taken = 0;
        while taken < TLS_SEAL_BYTES_MAX {
            let room = TLS_SEAL_BYTES_MAX - taken;
            let run = runs.present();
            if run.is_empty() {
                break;
            }
            let count = if runs.is_last() {
                run.len().min(room)
            } else {
                run.len().min(room) / FRAGMENT_BYTES * FRAGMENT_BYTES
            };
            if count > 0 {
                self.encrypt_run(traffic, &run[..count])?;
                runs.skip(count);
                taken += count;
            } else {
                let mut gathered = std::mem::take(&mut self.gathered);
                gathered.clear();
                runs.gather(&mut gathered, room.min(FRAGMENT_BYTES));
                taken += gathered.len();
                let result = self.encrypt_run(traffic, &gathered);
                self.gathered = gathered;
                result?;
            }
        }
        Ok(taken)
    }

    fn encrypt_run<Data>(
        &mut self,
        traffic: &mut WriteTraffic<'_, Data>,
        run: &[u8],
    ) -> Result<(), ()> {
        let mut result = traffic.encrypt(run, self.room(0));
        if let Err(EncryptError::InsufficientSize(needed)) = result {
            result = traffic.encrypt(run, self.room(needed.required_size));
        }
        self.filled += result.map_err(|_| ())?;
        Ok(())
    }

    pub(super) fn say_goodbye<Data>(
        &mut self,
        traffic: &mut WriteTraffic<'_, Data>,
    ) -> Result<(), ()> {
        let mut result = traffic.queue_close_notify(self.room(0));
        if let Err(EncryptError::InsufficientSize(needed)) = result {
            result = traffic.queue_close_notify(self.room(needed.required_size));
        }
        self.filled += result.map_err(|_| ())?;
        Ok(())
    }
}

/// Pieces as contiguous runs of bytes.
struct Runs<'a> {
    pieces: &'a [IoSlice<'a>],
    /// Bytes of the first piece that are done with.
    offset: usize,
}

impl<'a> Runs<'a> {
    fn starting_at(pieces: &'a [IoSlice<'a>], start: usize) -> Self {
        let mut runs = Self { pieces, offset: 0 };
        runs.skip(start);
        runs
    }

    /// What is left of the present piece; empty at the end.
    fn present(&self) -> &'a [u8] {
        self.pieces
            .first()
            .map_or(&[][..], |piece| &piece[self.offset..])
    }

    fn is_last(&self) -> bool {
        self.pieces.len() <= 1
    }

    fn skip(&mut self, mut bytes: usize) {
        while let Some(piece) = self.pieces.first() {
            let rest = piece.len() - self.offset;
            if bytes < rest {
                self.offset += bytes;
                return;
            }
            bytes -= rest;
            self.pieces = &self.pieces[1..];
            self.offset = 0;
        }
    }

    /// Moves up to `count` bytes into `into`.
    fn gather(&mut self, into: &mut Vec<u8>, count: usize) {
        while into.len() < count {
            let run = self.present();
            if run.is_empty() {
                return;
            }
            let part = run.len().min(count - into.len());
            into.extend_from_slice(&run[..part]);
            self.skip(part);
        }
    }
}
