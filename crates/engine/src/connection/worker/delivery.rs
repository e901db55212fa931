//! Handing over what sessions staged, and seeing to receivers that are behind, cut off or gone.
//!
//! A publisher whose receiver is behind is stalled: it is not read for a while. Only its own bytes wait, in its socket; the worker serves
//! all others. Invariant: every stall has an end of its own, whatever the receiver does, so two clients that send to each other cannot
//! stop each other for good; a receiver that never reads is cut off at `max_pending_bytes` or at the write deadline.

use std::sync::atomic::Ordering;
use std::sync::Arc;

use super::Worker;
use crate::config::options::{PAUSE_MS, STALL_BYTES_PER_MS, STALL_MS_MAX, STALL_MS_MIN};
use crate::routing::clients::connection::Connection;
use crate::routing::staging::Followup;

/// Why a publisher is not read.
pub(super) struct Stall {
    receiver: Arc<Connection>,
    /// The receiver was about to be cut off; otherwise it was only behind.
    nearly_full: bool,
    until_ms: u64,
}

impl Stall {
    fn is_over(&self, now_ms: u64) -> bool {
        let outbox = &self.receiver.outbox;
        let caught_up = if self.nearly_full {
            !outbox.is_nearly_full()
        } else {
            !outbox.is_behind()
        };
        caught_up || now_ms >= self.until_ms
    }
}

impl Worker {
    /// Hands staged deliveries over and sees to what that brought up. `buffer` is the one the staged ranges point into.
    pub(super) fn hand_over(&mut self, buffer: &[u8]) {
        if self.core.staging.is_empty() {
            return;
        }
        let now_ms = self.core.now_ms;
        self.core
            .shared
            .events
            .push_requests(self.core.staging.take_requests());
        self.core
            .staging
            .flush(buffer, now_ms, &mut self.core.followups);
        self.core.staging.settle_sinks();
        self.follow_up();
    }

    pub(super) fn follow_up(&mut self) {
        while let Some(Followup {
            connection,
            flushed,
            publisher,
            message_bytes,
        }) = self.core.followups.pop()
        {
            if self.core.shared.follow_up(&connection, flushed) {
                if let Some(publisher) = publisher {
                    self.stall(publisher, connection, message_bytes);
                }
            }
        }
    }

    /// Stops reading a publisher for a while when a receiver is behind: the one it just sent `message_bytes` to.
    fn stall(&mut self, publisher: usize, receiver: Arc<Connection>, message_bytes: u64) {
        if !receiver.outbox.is_behind() || !self.core.shared.options().fast_producer_stall {
            return;
        }
        let nearly_full = receiver.outbox.is_nearly_full();
        let wait_ms = if nearly_full {
            (message_bytes / STALL_BYTES_PER_MS).clamp(STALL_MS_MIN, STALL_MS_MAX)
        } else {
            PAUSE_MS
        };
        let until_ms = self.core.now_ms + wait_ms;
        let Some(member) = self.members.get_mut(&publisher) else {
            return;
        };
        match &member.stall {
            Some(stall) if stall.until_ms >= until_ms => return,
            Some(_) => {}
            None => self.stalled.push(publisher),
        }
        if nearly_full {
            receiver.stalls.fetch_add(1, Ordering::Relaxed);
            let totals = &self.core.shared.totals;
            totals.stalls.fetch_add(1, Ordering::Relaxed);
        }
        member.stall = Some(Stall {
            receiver,
            nearly_full,
            until_ms,
        });
    }

    /// Reads on from publishers whose stall is over.
    pub(super) fn retry_stalled(&mut self) {
        let mut position = 0;
        while position < self.stalled.len() {
            let slot = self.stalled[position];
            let member = self.members.get_mut(&slot);
            if let Some(stall) = member.as_ref().and_then(|member| member.stall.as_ref()) {
                if !stall.is_over(self.core.now_ms) {
                    position += 1;
                    continue;
                }
            }
            self.stalled.swap_remove(position);
            if let Some(member) = member {
                member.stall = None;
            }
            self.make_ready(slot);
        }
    }
}
