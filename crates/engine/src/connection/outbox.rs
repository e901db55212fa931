//! What waits to be written to one socket, and who may write it.
//!
//! Any thread may deliver; at most one writes at a time. Whoever finds the outbox idle becomes the writer: it marks that under the lock,
//! writes without the lock, and looks again afterwards for what others queued in the meantime. So no lock is held across a system call,
//! and bytes leave in the order in which they were handed over.
//!
//! Invariants: `writing` is true exactly while one thread is between taking and returning the write role; `blocked` means the socket took
//! no more, and the owner's poll will report when it does again (edge-triggered: the owner calls `writable` once per edge).

use std::collections::VecDeque;
use std::io::{self, IoSlice, Write};
use std::net::Shutdown;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc;

use mio::net::TcpStream;
use parking_lot::{Mutex, MutexGuard};

/// Buffers given to one vectored write. Linux takes up to 1024; gains end well before.
const SLICES_PER_WRITE_MAX: usize = 256;

/// Small deliveries are added to the last waiting buffer as long as it stays below this, so that a blocked socket does not collect crumbs.
const COALESCE_BYTES_MAX: usize = 64 * 1024;

/// Rounds in which one thread goes on writing what others queue; then the owner takes over, so that no publisher works for all others.
const WRITE_ROUNDS_MAX: usize = 4;

/// What became of a delivery or a flush. Everything but `Settled` is for the owner's session to act on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flushed {
    /// Written, or waiting for the socket or for the present writer.
    Settled,
    /// The owner should go on writing: this thread did its share.
    HandOver,
    /// More than `pending_bytes_max` would wait: the client was cut off.
    SlowConsumer,
    /// The socket failed; the connection is gone.
    WriteFailed,
    /// It was gone before.
    Gone,
}

pub struct Outbox {
    state: Mutex<State>,
    pending_bytes: AtomicUsize,
    pending_bytes_max: usize,
    /// Clock milliseconds (at least 1) since which the socket takes nothing; 0 while it does.
    blocked_since_ms: AtomicU64,
}

struct State {
    socket: Option<Arc<TcpStream>>,
    queue: VecDeque<Vec<u8>>,
    /// Bytes of the first buffer that are written already.
    head_written: usize,
    writing: bool,
    blocked: bool,
    /// The socket became writable while a thread was writing: what that thread learned may be old.
    writable_again: bool,
    /// Shut the writing side as soon as nothing waits.
    ending: bool,
}

impl Outbox {
    pub fn new(socket: Arc<TcpStream>, pending_bytes_max: usize) -> Self {
        Self {
            state: Mutex::new(State {
                socket: Some(socket),
                queue: VecDeque::new(),
                head_written: 0,
                writing: false,
                blocked: false,
                writable_again: false,
                ending: false,
            }),
            pending_bytes: AtomicUsize::new(0),
            pending_bytes_max,
            blocked_since_ms: AtomicU64::new(0),
        }
    }

    /// Bytes handed over and not yet taken by the socket.
    #[inline]
    pub fn pending_bytes(&self) -> usize {
        self.pending_bytes.load(Ordering::Relaxed)
    }

    pub fn pending_bytes_max(&self) -> usize {
        self.pending_bytes_max
    }

    pub fn blocked_since_ms(&self) -> u64 {
        self.blocked_since_ms.load(Ordering::Relaxed)
    }

    /// Hands over one delivery made of several pieces, writing it straight from where the pieces are if the outbox is idle.
    pub fn deliver(&self, pieces: &[IoSlice<'_>], now_ms: u64) -> Flushed {
        let total: usize = pieces.iter().map(|piece| piece.len()).sum();
        let mut state = self.state.lock();
        let Some(socket) = state.socket.clone() else {
            return Flushed::Gone;
        };
        if !state.is_idle() {
            drop(state);
            return self.queue(concatenate(pieces, 0), now_ms);
        }
        state.writing = true;
        drop(state);

        let outcome = write_pieces(&socket, pieces);

        let written = outcome.written;
        let mut state = self.state.lock();
        state.writing = false;
        if let Some(failed) = self.after_write(&mut state, &outcome, now_ms) {
            return failed;
        }
        if written < total {
            let rest = concatenate(pieces, written);
            if self.reserve(&mut state, rest.len()).is_err() {
                return Flushed::SlowConsumer;
            }
            // In front of whatever others queued while this thread wrote.
            state.queue.push_front(rest);
        }
        self.drain(state, now_ms)
    }

    /// Hands over bytes that are already in a buffer of their own.
    pub fn queue(&self, bytes: Vec<u8>, now_ms: u64) -> Flushed {
        let mut state = self.state.lock();
        match self.append(&mut state, bytes) {
            Flushed::Settled => self.drain(state, now_ms),
            other => other,
        }
    }

    /// Queues without writing; the owner will be told to flush.
    pub fn queue_for_owner(&self, bytes: Vec<u8>) -> Flushed {
        self.append(&mut self.state.lock(), bytes)
    }

    /// Writes what waits, if nobody does.
    pub fn flush(&self, now_ms: u64) -> Flushed {
        self.drain(self.state.lock(), now_ms)
    }

    /// The owner's poll reported that the socket takes bytes again.
    pub fn writable(&self, now_ms: u64) -> Flushed {
        let mut state = self.state.lock();
        state.blocked = false;
        state.writable_again = state.writing;
        self.drain(state, now_ms)
    }

    /// Shuts the writing side as soon as everything that waits is written.
    pub fn end_when_drained(&self, now_ms: u64) {
        let mut state = self.state.lock();
        state.ending = true;
        self.drain(state, now_ms);
    }

    /// Drops everything and closes the socket.
    pub fn abort(&self) {
        self.discard(&mut self.state.lock());
    }

    fn append(&self, state: &mut State, bytes: Vec<u8>) -> Flushed {
        if state.socket.is_none() || state.ending {
            return Flushed::Gone;
        }
        if self.reserve(state, bytes.len()).is_err() {
            return Flushed::SlowConsumer;
        }
        match state.queue.back_mut() {
            // Never into a buffer that is being written: those are out of the queue while they are.
            Some(last) if last.len() + bytes.len() <= COALESCE_BYTES_MAX => {
                last.extend_from_slice(&bytes);
            }
            _ => state.queue.push_back(bytes),
        }
        Flushed::Settled
    }

    /// Counts bytes as pending; cuts the client off when it is too far behind.
    fn reserve(&self, state: &mut State, bytes: usize) -> Result<(), ()> {
        let pending = self.pending_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if pending > self.pending_bytes_max {
            self.discard(state);
            return Err(());
        }
        Ok(())
    }

    fn drain<'a>(&'a self, mut state: MutexGuard<'a, State>, now_ms: u64) -> Flushed {
        for _ in 0..WRITE_ROUNDS_MAX {
            let Some(socket) = state.socket.clone() else {
                return Flushed::Settled;
            };
            if state.writing || state.blocked {
                return Flushed::Settled;
            }
            if state.queue.is_empty() {
                if state.ending {
                    // An error means the peer is gone already, which is what is wanted.
                    let _ = socket.shutdown(Shutdown::Write);
                }
                return Flushed::Settled;
            }
            state.writing = true;
            let mut batch = std::mem::take(&mut state.queue);
            let mut head_written = std::mem::take(&mut state.head_written);
            drop(state);

            let outcome = {
                let mut pieces = Vec::with_capacity(batch.len().min(SLICES_PER_WRITE_MAX));
                for (index, buffer) in batch.iter().take(SLICES_PER_WRITE_MAX).enumerate() {
                    let start = if index == 0 { head_written } else { 0 };
                    pieces.push(IoSlice::new(&buffer[start..]));
                }
                write_pieces(&socket, &pieces)
            };
            let mut left = outcome.written;
            while let Some(first) = batch.front() {
                let rest = first.len() - head_written;
                if left < rest {
                    head_written += left;
                    break;
                }
                left -= rest;
                head_written = 0;
                batch.pop_front();
            }

            state = self.state.lock();
            state.writing = false;
            self.pending_bytes
                .fetch_sub(outcome.written, Ordering::Relaxed);
            if !batch.is_empty() {
                batch.append(&mut state.queue);
                state.queue = batch;
                state.head_written = head_written;
            }
            if let Some(failed) = self.after_write(&mut state, &outcome, now_ms) {
                return failed;
            }
        }
        if state.blocked || state.queue.is_empty() {
            Flushed::Settled
        } else {
            Flushed::HandOver
        }
    }

    /// Notes whether the socket is full, and what a failure means. Called with the write role just returned.
    fn after_write(&self, state: &mut State, outcome: &Outcome, now_ms: u64) -> Option<Flushed> {
        if state.socket.is_none() {
            return Some(Flushed::Gone);
        }
        if outcome.failed {
            self.discard(state);
            return Some(Flushed::WriteFailed);
        }
        let writable_again = std::mem::take(&mut state.writable_again);
        state.blocked = outcome.full && !writable_again;
        if !state.blocked {
            self.blocked_since_ms.store(0, Ordering::Relaxed);
        } else if outcome.written > 0 || self.blocked_since_ms() == 0 {
            self.blocked_since_ms
                .store(now_ms.max(1), Ordering::Relaxed);
        }
        None
    }

    fn discard(&self, state: &mut State) {
        if let Some(socket) = state.socket.take() {
            // The peer must see the end now, even if another thread still holds the socket for a moment.
            let _ = socket.shutdown(Shutdown::Both);
        }
        state.queue = VecDeque::new();
        self.pending_bytes.store(0, Ordering::Relaxed);
    }
}

impl State {
    fn is_idle(&self) -> bool {
        !self.writing && !self.blocked && self.queue.is_empty() && !self.ending
    }
}

struct Outcome {
    written: usize,
    /// The socket took less than was offered.
    full: bool,
    failed: bool,
}

/// Writes as much as the socket takes.
fn write_pieces(socket: &TcpStream, pieces: &[IoSlice<'_>]) -> Outcome {
    let mut written = 0;
    for chunk in pieces.chunks(SLICES_PER_WRITE_MAX) {
        let offered: usize = chunk.iter().map(|piece| piece.len()).sum();
        match write_chunk(socket, chunk, offered) {
            Ok(taken) => {
                written += taken;
                if taken < offered {
                    return Outcome {
                        written,
                        full: true,
                        failed: false,
                    };
                }
            }
            Err(_) => {
                return Outcome {
                    written,
                    full: false,
                    failed: true,
                }
            }
        }
    }
    Outcome {
        written,
        full: false,
        failed: false,
    }
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

fn skip<'a>(pieces: &'a [IoSlice<'_>], mut bytes: usize) -> Vec<IoSlice<'a>> {
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

fn concatenate(pieces: &[IoSlice<'_>], start: usize) -> Vec<u8> {
    let rest = skip(pieces, start);
    let mut bytes = Vec::with_capacity(rest.iter().map(|piece| piece.len()).sum());
    for piece in &rest {
        bytes.extend_from_slice(piece);
    }
    bytes
}

#[cfg(test)]
#[path = "outbox_tests.rs"]
mod tests;
