//! Deadlines of connections, and other periodic work of a worker.

use super::{Worker, SWEEP_MS};
use crate::common::events::Level;
use crate::connection::session::Tick;
use crate::connection::timers::Timer;
use crate::routing::clients::closed_reason::ClosedReason;

/// Deadlines are not taken back when a connection ends; when there are this many for each living one, the dead ones' are cleared away.
const TIMERS_PER_CONNECTION_MAX: usize = 6;
const TIMERS_SPARE: usize = 1024;

/// How often, within the time of a write deadline, connections are checked for having missed it.
const DEADLINE_LOOKS: u64 = 8;

/// Deadlines seen to before it is read again: clients that came together are late together, and the others must not wait for all of them.
const TIMERS_PER_TURN_MAX: usize = 32;

impl Worker {
    /// A connection carries messages from now on: its client has so long to say CONNECT, and is asked now and then if it is there.
    pub(super) fn start_clocks(&mut self, slot: usize) {
        let Some(member) = self.members.get(&slot) else {
            return;
        };
        let connection = &member.session.connection;
        let timeout_ms = match member.session.leaf_timeout_ms() {
            Some(timeout_ms) => timeout_ms,
            None => self.core.shared.login_timeout_ms(connection),
        };
        let due_ms = self.core.now_ms.saturating_add(timeout_ms);
        let id = member.session.connection.id;
        self.timers.add(due_ms, slot, id, Timer::Handshake);
        self.start_pings(slot);
    }

    pub(super) fn start_pings(&mut self, slot: usize) {
        if let Some(member) = self.members.get_mut(&slot) {
            let due_ms = member.session.plan_first_ping(&mut self.core.context());
            self.plan_ping(slot, due_ms);
        }
    }

    fn plan_ping(&mut self, slot: usize, due_ms: u64) {
        if let Some(member) = self.members.get_mut(&slot) {
            let id = member.session.connection.id;
            if member.next_ping.plan(due_ms) {
                self.timers.add(due_ms, slot, id, Timer::Ping);
            }
        }
    }

    /// What a client was let in with may end; then so does the connection.
    pub(super) fn plan_expiry(&mut self, slot: usize) {
        let Some(member) = self.members.get_mut(&slot) else {
            return;
        };
        if let Some(in_ms) = member.session.expires_in_ms(&self.core.shared) {
            let due_ms = self.core.now_ms.saturating_add(in_ms);
            let id = member.session.connection.id;
            if member.next_expiry.plan(due_ms) {
                self.timers.add(due_ms, slot, id, Timer::Expire);
            }
        }
    }

    /// Ends a session whose credentials have expired, unless they have been renewed since.
    fn expire(&mut self, slot: usize) {
        let Some(member) = self.members.get_mut(&slot) else {
            return;
        };
        if !member.next_expiry.has_come(self.core.now_ms) {
            return;
        }
        match member.session.expires_in_ms(&self.core.shared) {
            None => {}
            Some(0) => {
                let reason = member.session.expire(&mut self.core.context());
                self.hand_over(&[]);
                self.begin_close(slot, reason);
            }
            Some(_) => self.plan_expiry(slot),
        }
    }

    /// Asks a client if it is there, or finds that it is not.
    fn ping(&mut self, slot: usize) {
        let Some(member) = self.members.get_mut(&slot) else {
            return;
        };
        let now_ms = self.core.now_ms;
        if !member.next_ping.has_come(now_ms) {
            return;
        }
        let due_ms = member.session.ping_due_ms();
        if due_ms > now_ms {
            return self.plan_ping(slot, due_ms);
        }
        let tick = member.session.tick(&mut self.core.context());
        self.hand_over(&[]);
        match tick {
            Tick::Again { due_ms } => self.plan_ping(slot, due_ms),
            Tick::Close(reason) => self.begin_close(slot, reason),
        }
    }

    pub(super) fn run_timers(&mut self) {
        for _ in 0..TIMERS_PER_TURN_MAX {
            let Some((slot, connection_id, timer)) = self.timers.pop_due(self.core.now_ms) else {
                return;
            };
            let Some(member) = self.members.get_mut(&slot) else {
                continue;
            };
            if member.session.connection.id != connection_id {
                continue;
            }
            match timer {
                Timer::Close => {
                    if let Some(reason) = member.closing {
                        self.end(slot, reason);
                    }
                }
                _ if member.closing.is_some() => {}
                Timer::Greet => self.greet_late(slot),
                Timer::Secure => self.handshake_overdue(slot),
                Timer::Upgrade => self.upgrade_overdue(slot),
                Timer::Expire => self.expire(slot),
                Timer::Handshake => {
                    let due = member.session.handshake_due(&mut self.core.context());
                    self.hand_over(&[]);
                    if let Some(reason) = due {
                        self.begin_close(slot, reason);
                    }
                }
                Timer::Ping => self.ping(slot),
            }
        }
    }

    fn report_throttled(&self) {
        let shared = &self.core.shared;
        let rejected = shared
            .tls()
            .and_then(|settings| settings.throttle.take_rejected(self.core.now_ms));
        if let Some(rejected) = rejected {
            shared.events.log(
                Level::Warning,
                format!("Rejected {rejected} connections due to TLS rate limiting"),
            );
        }
    }

    /// What is looked after now and then: write deadlines and outdated routes.
    pub(super) fn sweep(&mut self) {
        if self.core.now_ms < self.next_sweep_ms {
            return;
        }
        self.next_sweep_ms = self.core.now_ms + SWEEP_MS;
        self.core.router.forget_outdated();
        self.forget_known();
        self.report_throttled();
        if self.timers.len() > TIMERS_PER_CONNECTION_MAX * (self.members.len() + TIMERS_SPARE) {
            let members = &self.members;
            self.timers.retain(|slot, connection_id| {
                members
                    .get(&slot)
                    .is_some_and(|member| member.session.connection.id == connection_id)
            });
        }
        self.accept();
        if self.core.now_ms >= self.next_deadlines_ms {
            self.look_at_deadlines();
        }
    }

    /// Ends connections that have taken nothing for too long. All are looked at, so it is done as rarely as the deadline allows.
    fn look_at_deadlines(&mut self) {
        let deadline_ms = self.core.shared.options().write_deadline_ms;
        self.next_deadlines_ms = self.core.now_ms + (deadline_ms / DEADLINE_LOOKS).max(SWEEP_MS);
        let late: Vec<usize> = self
            .members
            .values()
            .map(|member| &member.session.connection)
            .filter(|connection| {
                let since_ms = connection.outbox.blocked_since_ms();
                since_ms > 0 && self.core.now_ms.saturating_sub(since_ms) > deadline_ms
            })
            .map(|connection| connection.slot)
            .collect();
        for slot in late {
            let connection = &self.members[&slot].session.connection;
            self.core.shared.report_write_deadline(connection);
            self.end(slot, ClosedReason::SlowConsumerWriteDeadline);
        }
    }
}

#[cfg(test)]
#[path = "maintenance_tests.rs"]
mod tests;
