//! What waits to be written to one socket, and who may write it.
//!
//! Any thread may deliver; at most one writes at a time. A thread that finds the outbox idle becomes the writer: it
//! marks that under the lock, writes without the lock, and checks again afterwards for what others queued in the
//! meantime. So no lock is held across a system call, and bytes leave in the order in which they were handed over.
//!
//! Invariants: `writing` is true exactly while one thread is between taking and returning the write role; `blocked` means the socket took
//! no more, and the owner's poll will report when it does again (edge-triggered: the owner calls `writable` once per edge).
//!
//! On an encrypted connection the queue holds plaintext, and the writer encrypts it as it writes. Encrypted bytes that the socket did not
//! take are `unsent` and go before everything else: `blocked` means the same for them.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::net::Shutdown;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use mio::net::TcpStream;
use parking_lot::{Mutex, MutexGuard};

use super::s2_link::S2Framing;
use super::socket::{concatenate, write_pieces, WriteOutcome, SLICES_PER_WRITE_MAX};
use super::tls;
use super::tls::TlsChannel;
use super::websocket::Framing;
use crate::config::options::PAUSE_PART;

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

/// What bytes are put into before they leave.
#[derive(Debug)]
pub enum OutboxFraming {
    WebSocket(Framing),
    S2(S2Framing),
}

impl OutboxFraming {
    fn frame<T>(&self, pieces: &[IoSlice<'_>], send: impl FnOnce(&[IoSlice<'_>]) -> T) -> T {
        match self {
            Self::WebSocket(framing) => framing.frame(pieces, send),
            Self::S2(framing) => framing.frame(pieces, send),
        }
    }
}

pub struct Outbox {
    state: Mutex<OutboxState>,
    /// Set for good when a client was upgraded to WebSocket, or a link is compressed: what is handed over from then on is put into frames, before anything
    /// else is done with it.
    framing: OnceLock<OutboxFraming>,
    pending_bytes: AtomicUsize,
    pending_bytes_max: usize,
    /// Clock milliseconds (at least 1) since which the socket takes nothing; 0 while it does.
    blocked_since_ms: AtomicU64,
    /// The owner has a letter that it should go on writing: a second one would have it write what comes meanwhile, in crumbs.
    owner_asked: AtomicBool,
    /// The client was too far behind. Set before the socket is shut, so that a thread that sees the end can tell why.
    cut_off: AtomicBool,
}

struct OutboxState {
    socket: Option<Arc<TcpStream>>,
    /// Set for good when the connection begins to be encrypted.
    channel: Option<Arc<TlsChannel>>,
    /// Bytes ready for the wire. Empty while a thread writes, and always without encryption.
    unsent: Vec<u8>,
    queue: VecDeque<Vec<u8>>,
    /// Bytes of the first buffer that are written already.
    head_written: usize,
    writing: bool,
    blocked: bool,
    /// The socket became writable while a thread was writing: what that thread learned may be old.
    writable_again: bool,
    /// Shut the writing side as soon as nothing waits.
    ending: bool,
    /// It is shut.
    ended: bool,
}

impl Outbox {
    pub fn new(socket: Arc<TcpStream>, pending_bytes_max: usize) -> Self {
        Self {
            state: Mutex::new(OutboxState {
                socket: Some(socket),
                channel: None,
                unsent: Vec::new(),
                queue: VecDeque::new(),
                head_written: 0,
                writing: false,
                blocked: false,
                writable_again: false,
                ending: false,
                ended: false,
            }),
            framing: OnceLock::new(),
            pending_bytes: AtomicUsize::new(0),
            pending_bytes_max,
            blocked_since_ms: AtomicU64::new(0),
            owner_asked: AtomicBool::new(false),
            cut_off: AtomicBool::new(false),
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

    /// Whether the client is so far behind that publishers are paused for a moment.
    #[inline]
    pub fn is_behind(&self) -> bool {
        self.pending_bytes() > self.pending_bytes_max / PAUSE_PART
    }

    /// Whether the client is about to be cut off: three quarters of what may wait do.
    #[inline]
    pub fn is_nearly_full(&self) -> bool {
        self.pending_bytes() > self.pending_bytes_max / 4 * 3
    }

    pub fn blocked_since_ms(&self) -> u64 {
        self.blocked_since_ms.load(Ordering::Relaxed)
    }

    /// Whether the client was cut off for being too far behind.
    pub fn was_cut_off(&self) -> bool {
        self.cut_off.load(Ordering::Acquire)
    }

    /// Hands over one delivery made of several pieces, writing it straight from where the pieces are if the outbox is idle.
    pub fn deliver(&self, pieces: &[IoSlice<'_>], now_ms: u64) -> Flushed {
        match self.framing.get() {
            None => self.deliver_framed(pieces, now_ms),
            Some(framing) => framing.frame(pieces, |framed| self.deliver_framed(framed, now_ms)),
        }
    }

    fn deliver_framed(&self, pieces: &[IoSlice<'_>], now_ms: u64) -> Flushed {
        let total: usize = pieces.iter().map(|piece| piece.len()).sum();
        let mut state = self.state.lock();
        let Some(socket) = state.socket.clone() else {
            return Flushed::Gone;
        };
        if !state.is_idle() {
            drop(state);
            return self.queue_framed(concatenate(pieces, 0), now_ms);
        }
        state.writing = true;
        let channel = state.channel.clone();
        drop(state);

        let outcome = match &channel {
            None => write_pieces(&socket, pieces),
            Some(channel) => tls::writing::write(channel, &socket, Vec::new(), pieces, false),
        };

        let written = outcome.written;
        let mut state = self.state.lock();
        state.writing = false;
        if let Some(failed) = self.after_write(&mut state, outcome, now_ms) {
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

    /// Hands over bytes that are ready for the wire: those of a connection without frames, or a frame.
    pub fn queue_framed(&self, bytes: Vec<u8>, now_ms: u64) -> Flushed {
        let mut state = self.state.lock();
        match self.append(&mut state, bytes) {
            Flushed::Settled => self.drain(state, now_ms),
            other => other,
        }
    }

    /// Queues without writing; the owner will be asked to flush.
    pub fn queue_for_owner(&self, bytes: Vec<u8>) -> Flushed {
        let framed = match self.framing.get() {
            None => bytes,
            Some(framing) => {
                framing.frame(&[IoSlice::new(&bytes)], |framed| concatenate(framed, 0))
            }
        };
        self.append(&mut self.state.lock(), framed)
    }

    /// Notes that the owner is asked to go on writing; false if it is already.
    pub fn ask_owner(&self) -> bool {
        !self.owner_asked.swap(true, Ordering::AcqRel)
    }

    /// The owner was asked to go on writing, and does. What is queued from now on needs another letter.
    pub fn flush_for_owner(&self, now_ms: u64) -> Flushed {
        self.owner_asked.store(false, Ordering::Release);
        self.flush(now_ms)
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

    /// From here on everything is put into frames.
    pub fn frame(&self, framing: OutboxFraming) {
        // This happens once.
        let _ = self.framing.set(framing);
    }

    /// From here on everything is encrypted. What waits goes out as it is, first.
    pub fn encrypt(&self, channel: Arc<TlsChannel>) {
        let mut state = self.state.lock();
        let queue = std::mem::take(&mut state.queue);
        let head_written = std::mem::take(&mut state.head_written);
        debug_assert!(!state.writing, "only the owner writes before TLS");
        for buffer in &queue {
            state.unsent.extend_from_slice(buffer);
        }
        state.unsent.drain(..head_written);
        state.channel = Some(channel);
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

    fn append(&self, state: &mut OutboxState, bytes: Vec<u8>) -> Flushed {
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
    fn reserve(&self, state: &mut OutboxState, bytes: usize) -> Result<(), ()> {
        let pending = self.pending_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if pending > self.pending_bytes_max {
            self.cut_off.store(true, Ordering::Release);
            self.discard(state);
            return Err(());
        }
        Ok(())
    }

    fn drain<'a>(&'a self, mut state: MutexGuard<'a, OutboxState>, now_ms: u64) -> Flushed {
        for _ in 0..WRITE_ROUNDS_MAX {
            let Some(socket) = state.socket.clone() else {
                return Flushed::Settled;
            };
            if state.writing || state.blocked {
                return Flushed::Settled;
            }
            if !state.has_work() {
                if state.ending && !state.ended {
                    // Once only: each time, the poll would report the socket as writable again.
                    state.ended = true;
                    // An error means the peer is gone already, which is what is wanted.
                    let _ = socket.shutdown(Shutdown::Write);
                }
                return Flushed::Settled;
            }
            state.writing = true;
            let mut batch = std::mem::take(&mut state.queue);
            let mut head_written = std::mem::take(&mut state.head_written);
            let unsent = std::mem::take(&mut state.unsent);
            let unsent_before = unsent.len();
            let channel = state.channel.clone();
            let goodbye = state.ending && batch.len() <= SLICES_PER_WRITE_MAX;
            drop(state);

            let outcome = {
                let mut pieces = Vec::with_capacity(batch.len().min(SLICES_PER_WRITE_MAX));
                for (index, buffer) in batch.iter().take(SLICES_PER_WRITE_MAX).enumerate() {
                    let start = if index == 0 { head_written } else { 0 };
                    pieces.push(IoSlice::new(&buffer[start..]));
                }
                match &channel {
                    None => write_pieces(&socket, &pieces),
                    Some(channel) => {
                        tls::writing::write(channel, &socket, unsent, &pieces, goodbye)
                    }
                }
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
            if state.socket.is_some() {
                let done = outcome.written + unsent_before;
                self.pending_bytes.fetch_sub(done, Ordering::Relaxed);
            }
            if !batch.is_empty() {
                batch.append(&mut state.queue);
                state.queue = batch;
                state.head_written = head_written;
            }
            if let Some(failed) = self.after_write(&mut state, outcome, now_ms) {
                return failed;
            }
        }
        if state.blocked || !state.has_work() {
            Flushed::Settled
        } else {
            Flushed::HandOver
        }
    }

    /// Notes whether the socket is full, and what a failure means. Called with the write role just returned.
    fn after_write(
        &self,
        state: &mut OutboxState,
        outcome: WriteOutcome,
        now_ms: u64,
    ) -> Option<Flushed> {
        if state.socket.is_none() {
            return Some(Flushed::Gone);
        }
        if outcome.failed {
            self.discard(state);
            return Some(Flushed::WriteFailed);
        }
        if !outcome.unsent.is_empty() {
            self.pending_bytes
                .fetch_add(outcome.unsent.len(), Ordering::Relaxed);
            state.unsent = outcome.unsent;
        }
        let writable_again = std::mem::take(&mut state.writable_again);
        state.blocked = outcome.full && !writable_again;
        if !state.blocked {
            self.blocked_since_ms.store(0, Ordering::Relaxed);
        } else if outcome.sent > 0 || self.blocked_since_ms() == 0 {
            self.blocked_since_ms
                .store(now_ms.max(1), Ordering::Relaxed);
        }
        None
    }

    fn discard(&self, state: &mut OutboxState) {
        if let Some(socket) = state.socket.take() {
            // The peer must see the end now, even if another thread still holds the socket for a moment.
            let _ = socket.shutdown(Shutdown::Both);
        }
        state.queue = VecDeque::new();
        state.unsent = Vec::new();
        self.pending_bytes.store(0, Ordering::Relaxed);
    }
}

impl OutboxState {
    /// Whether a delivery can be written straight away.
    fn is_idle(&self) -> bool {
        let can_go_out = match &self.channel {
            None => true,
            Some(channel) => channel.is_open() && self.unsent.is_empty(),
        };
        can_go_out && !self.writing && !self.blocked && self.queue.is_empty() && !self.ending
    }

    /// Whether there is something to write that could be written now. Nothing can be encrypted before the handshake is over.
    fn has_work(&self) -> bool {
        match &self.channel {
            None => !self.queue.is_empty(),
            Some(channel) => {
                let goodbye_due = self.ending && !channel.said_goodbye();
                !self.unsent.is_empty()
                    || channel.has_outgoing()
                    || (channel.is_open() && (goodbye_due || !self.queue.is_empty()))
            }
        }
    }
}

#[cfg(test)]
#[path = "outbox_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "outbox_tls_tests.rs"]
mod tls_tests;
