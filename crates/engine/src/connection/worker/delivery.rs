//! Handing over what sessions staged, and seeing to receivers that are behind, cut off or gone.

use std::sync::atomic::Ordering;
use std::sync::Arc;

use super::{Stall, Worker};
use crate::config::{STALL_HARD_MS, STALL_SOFT_MS, STALL_SOFT_PART};
use crate::connection::staging::Followup;
use crate::connection::Connection;

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
        }) = self.core.followups.pop()
        {
            if self.core.shared.settle(&connection, flushed) {
                if let Some(publisher) = publisher.filter(|slot| *slot != connection.slot) {
                    self.stall(publisher, connection);
                }
            }
        }
    }

    /// Stops reading a publisher for a moment when its receiver is far behind.
    fn stall(&mut self, publisher: usize, receiver: Arc<Connection>) {
        if !self.core.shared.options().fast_producer_stall {
            return;
        }
        let pending = receiver.outbox.pending_bytes();
        let max = receiver.outbox.pending_bytes_max();
        if pending < max / STALL_SOFT_PART {
            return;
        }
        let wait_ms = if pending > max / 4 * 3 {
            STALL_HARD_MS
        } else {
            STALL_SOFT_MS
        };
        if let Some(member) = self.members.get_mut(&publisher) {
            if member.stall.is_none() {
                let connection = &member.session.connection;
                connection.stalls.fetch_add(1, Ordering::Relaxed);
                self.core
                    .shared
                    .totals
                    .stalls
                    .fetch_add(1, Ordering::Relaxed);
                self.stalled.push(publisher);
            }
            member.stall = Some(Stall {
                receiver,
                until_ms: self.core.now_ms + wait_ms,
            });
        }
    }

    pub(super) fn retry_stalled(&mut self) {
        let mut position = 0;
        while position < self.stalled.len() {
            let slot = self.stalled[position];
            let over = match self
                .members
                .get(&slot)
                .and_then(|member| member.stall.as_ref())
            {
                None => true,
                Some(stall) => {
                    let outbox = &stall.receiver.outbox;
                    self.core.now_ms >= stall.until_ms
                        || outbox.pending_bytes() < outbox.pending_bytes_max() / STALL_SOFT_PART
                }
            };
            if over {
                self.stalled.swap_remove(position);
                if let Some(member) = self.members.get_mut(&slot) {
                    member.stall = None;
                }
                self.make_ready(slot);
            } else {
                position += 1;
            }
        }
    }
}
