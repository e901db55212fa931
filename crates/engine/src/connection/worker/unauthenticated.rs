//! Clients that have not logged in yet, and what they may cost together.
//!
//! Each is short-lived by its deadline, but a flood can bring more of them than deadlines remove. So what they hold is counted, and when it is
//! too much the oldest make room: they had the most time to say who they are. The same where they are too many for the descriptors of the process, so that those
//! who log in find one. Invariant: `bytes` is the sum of `WorkerConnection::unauthenticated_bytes`, `count` the number of members that have some.

use std::collections::VecDeque;

use super::Worker;
use crate::common::descriptors::Descriptors;
use crate::config::options::{UNAUTHENTICATED_BYTES_MAX, UNAUTHENTICATED_CONNECTION_BYTES};
use crate::routing::clients::closed_reason::ClosedReason;

#[derive(Default)]
pub(super) struct Unauthenticated {
    /// Slot and id, oldest first; those who became known are still in here until their turn comes.
    arrivals: VecDeque<(usize, u64)>,
    bytes: usize,
    count: usize,
}

impl Worker {
    /// A new client, whom nobody knows.
    pub(super) fn expect_login(&mut self, slot: usize, connection_id: u64) {
        self.unauthenticated
            .arrivals
            .push_back((slot, connection_id));
        self.weigh_unauthenticated(slot);
    }

    /// Recounts what an unauthenticated client holds, or stops counting it once it is known.
    pub(super) fn weigh_unauthenticated(&mut self, slot: usize) {
        let Some(member) = self.members.get_mut(&slot) else {
            return;
        };
        let known = member.session.is_known() || member.closing.is_some();
        if known && member.unauthenticated_bytes == 0 {
            return;
        }
        let bytes = if known {
            0
        } else {
            let websocket = member.websocket.as_ref();
            let unframing = member.unframing.as_ref();
            UNAUTHENTICATED_CONNECTION_BYTES
                + member.session.input.bytes()
                + member.transport.unauthenticated_bytes()
                + websocket.map_or(0, |websocket| websocket.held_bytes())
                + unframing.map_or(0, |unframing| unframing.held_bytes())
        };
        let (counted, counts) = (member.unauthenticated_bytes > 0, bytes > 0);
        self.unauthenticated.count =
            self.unauthenticated.count + usize::from(counts) - usize::from(counted);
        self.unauthenticated.bytes =
            self.unauthenticated.bytes + bytes - member.unauthenticated_bytes;
        member.unauthenticated_bytes = bytes;
        self.make_room();
    }

    /// A connection has ended with this many bytes counted for it.
    pub(super) fn forget_unauthenticated(&mut self, bytes: usize) {
        self.unauthenticated.bytes -= bytes;
        self.unauthenticated.count -= usize::from(bytes > 0);
    }

    fn make_room(&mut self) {
        let workers = self.core.shared.worker_count();
        let bytes_max = UNAUTHENTICATED_BYTES_MAX / workers;
        let count_max = Descriptors::of_process()
            .unauthenticated_max
            .div_ceil(workers);
        while self.unauthenticated.bytes > bytes_max || self.unauthenticated.count > count_max {
            let Some((slot, connection_id)) = self.unauthenticated.arrivals.pop_front() else {
                return;
            };
            let unknown = self
                .member(slot, connection_id)
                .is_some_and(|member| member.unauthenticated_bytes > 0);
            if unknown {
                self.end(slot, ClosedReason::AuthenticationTimeout);
            }
        }
    }

    /// Removes those at the front that are known or gone.
    pub(super) fn forget_known(&mut self) {
        while let Some(&(slot, connection_id)) = self.unauthenticated.arrivals.front() {
            let unknown = self
                .member(slot, connection_id)
                .is_some_and(|member| member.unauthenticated_bytes > 0);
            if unknown {
                return;
            }
            self.unauthenticated.arrivals.pop_front();
        }
    }
}
