//! Handing over what sessions staged, and seeing to receivers that are behind, cut off or gone.

use std::sync::Arc;

use super::{Stall, Worker};
use crate::config::{STALL_HARD_MS, STALL_SOFT_MS, STALL_SOFT_PART};
use crate::connection::closed_reason::ClosedReason;
use crate::connection::mailbox::Letter;
use crate::connection::outbox::Flushed;
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
            .staging
            .flush(buffer, now_ms, &mut self.core.followups);
        self.follow_up();
    }

    pub(super) fn follow_up(&mut self) {
        while let Some(Followup {
            connection,
            flushed,
            publisher,
        }) = self.core.followups.pop()
        {
            let (slot, connection_id) = (connection.slot, connection.id);
            let lost = match flushed {
                Flushed::Settled => None,
                Flushed::HandOver => {
                    self.core.shared.send(
                        connection.worker,
                        Letter::Flush {
                            slot,
                            connection_id,
                        },
                    );
                    None
                }
                Flushed::SlowConsumer => {
                    self.core.shared.report_slow_consumer(&connection);
                    Some(ClosedReason::SlowConsumerPendingBytes)
                }
                Flushed::WriteFailed => Some(ClosedReason::WriteError),
                Flushed::Gone => None,
            };
            if let Some(reason) = lost {
                // By letter even to itself: the session may be in the middle of its own turn.
                self.core.shared.send(
                    connection.worker,
                    Letter::Lost {
                        slot,
                        connection_id,
                        reason,
                    },
                );
            } else if let Some(publisher) = publisher.filter(|publisher| *publisher != slot) {
                self.stall(publisher, connection);
            }
        }
    }

    /// Stops reading a publisher for a moment when its receiver is far behind.
    fn stall(&mut self, publisher: usize, receiver: Arc<Connection>) {
        if !self.core.shared.options.fast_producer_stall {
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
