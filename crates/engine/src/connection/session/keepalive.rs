//! PING and PONG in both directions: who is still there, and how far away.

use std::sync::atomic::Ordering;

use super::{Context, Session};
use crate::config::options::{FIRST_PING_MS, ROUND_TRIP_AGE_MS_MAX};
use crate::routing::clients::closed_reason::ClosedReason;
use crate::wire::encoder;

/// What the ping timer asks for.
pub enum Tick {
    Again { due_ms: u64 },
    Close(ClosedReason),
}

impl Session {
    pub(super) fn answer_ping(&mut self, context: &mut Context<'_>) {
        let line = context.staging.entry(&self.connection).line();
        line.extend_from_slice(encoder::PONG);
        let first = self.connected && !std::mem::replace(&mut self.answered_ping, self.connected);
        if first && self.options.protocol >= 1 {
            let mut information = context.shared.information(&self.connection);
            information.nonce.clone_from(&self.nonce);
            information.connect_info = true;
            information.remote_account.clone_from(&self.account.name);
            information.acc_is_sys = context.shared.options().system_account == self.account.name;
            information.max_payload = self.limits.payload_bytes_max;
            information.write(line);
            self.connection.set_takes_information(true);
        }
    }

    pub(super) fn take_pong(&mut self, context: &Context<'_>) {
        if self.pings_outstanding > 0 {
            let micros = context.shared.clock.now_micros() - self.ping_sent_micros;
            self.connection
                .round_trip_micros
                .store(micros.max(1), Ordering::Relaxed);
            self.round_trip_measured_ms = Some(context.now_ms);
        }
        self.pings_outstanding = 0;
    }

    /// Plans the first PING and says when: soon after CONNECT, with a jitter so that a thousand clients are not asked at once.
    pub fn plan_first_ping(&mut self, context: &mut Context<'_>) -> u64 {
        let interval_ms = context.shared.ping_interval_ms(&self.connection);
        let in_ms = if self.connected {
            let base_ms = interval_ms.min(FIRST_PING_MS);
            base_ms + context.router.random().below((base_ms / 5) as usize + 1) as u64
        } else {
            interval_ms
        };
        self.plan_ping(context.now_ms.saturating_add(in_ms))
    }

    fn plan_ping(&mut self, due_ms: u64) -> u64 {
        self.ping_due_ms = due_ms;
        due_ms
    }

    /// When the next PING was planned for, most recently.
    pub fn ping_due_ms(&self) -> u64 {
        self.ping_due_ms
    }

    pub fn is_connected(&self) -> bool {
        self.connected
    }

    /// The ping timer has come.
    pub fn tick(&mut self, context: &mut Context<'_>) -> Tick {
        let ping_max = context.shared.options().ping_max;
        let interval_ms = context.shared.ping_interval_ms(&self.connection);
        let again = Tick::Again {
            due_ms: self.plan_ping(context.now_ms.saturating_add(interval_ms)),
        };
        let idle_ms = context.now_ms
            - self
                .connection
                .last_activity_ms
                .load(Ordering::Relaxed)
                .min(context.now_ms);
        let round_trip_known = self
            .round_trip_measured_ms
            .is_some_and(|measured_ms| context.now_ms - measured_ms < ROUND_TRIP_AGE_MS_MAX);
        if idle_ms < interval_ms && round_trip_known {
            return again;
        }
        if self.pings_outstanding + 1 > ping_max {
            let reason = ClosedReason::StaleConnection;
            self.close_with_error(context, "Stale Connection", reason);
            return Tick::Close(reason);
        }
        self.pings_outstanding += 1;
        self.ping_sent_micros = context.shared.clock.now_micros();
        context
            .staging
            .entry(&self.connection)
            .line()
            .extend_from_slice(encoder::PING);
        again
    }
}
