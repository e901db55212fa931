//! The connections that ended last, each with the reason, to find out afterwards why a client is gone.
//!
//! Invariant: at most as many as allowed are kept, and each holds at most `SUBSCRIPTIONS_MAX` subscriptions and
//! `TEXT_BYTES_MAX` of each text that a client chose, so that clients that come and go cannot fill memory.

use std::collections::VecDeque;
use std::time::SystemTime;

use parking_lot::Mutex;
use serde::Serialize;

use super::reports::{ConnectionReport, SubscriptionReport};
use super::statistics::unix_ns;
use super::system_events;
use crate::routing::clients::closed_reason::ClosedReason;
use crate::routing::clients::connection::Connection;
use crate::routing::shared::Shared;

/// Subscriptions remembered of one connection: enough to recognise an application. Their number is always right.
pub const SUBSCRIPTIONS_MAX: usize = 32;

/// Bytes remembered of a name, a language and a version.
const TEXT_BYTES_MAX: usize = 256;

#[derive(Default)]
pub struct ClosedConnections {
    connections: Mutex<VecDeque<ClosedConnection>>,
}

#[derive(Debug, Clone, Serialize)]
pub struct ClosedConnection {
    #[serde(flatten)]
    report: ConnectionReport,
    stopped_unix_ns: u64,
    reason: &'static str,
    last_subscriptions: Vec<SubscriptionReport>,
}

impl ClosedConnection {
    /// A connection that has just ended.
    pub fn new(shared: &Shared, connection: &Connection, reason: ClosedReason) -> Self {
        let last = std::mem::take(&mut *connection.last_subscriptions.lock());
        let mut report = ConnectionReport::new(shared, connection);
        report.subscriptions = last.count;
        shorten(&mut report.name);
        shorten(&mut report.language);
        shorten(&mut report.version);
        Self {
            report,
            stopped_unix_ns: unix_ns(SystemTime::now()),
            reason: reason.text(),
            last_subscriptions: last.first,
        }
    }

    pub fn account(&self) -> &str {
        &self.report.account
    }
}

/// What a connection had subscribed to when it ended.
#[derive(Debug, Default)]
pub struct LastSubscriptions {
    pub count: usize,
    /// The first of them.
    pub first: Vec<SubscriptionReport>,
}

impl ClosedConnections {
    /// Remembers a connection, and forgets the oldest when there are too many.
    pub fn add(&self, shared: &Shared, connection: &Connection, reason: ClosedReason) {
        let count_max = shared.options().max_closed_connections;
        let closed = ClosedConnection::new(shared, connection, reason);
        system_events::disconnected(shared, &closed, reason);
        let mut connections = self.connections.lock();
        connections.push_back(closed);
        let excess = connections.len().saturating_sub(count_max);
        connections.drain(..excess);
    }

    /// All of them, oldest first.
    pub fn list(&self) -> Vec<ClosedConnection> {
        self.connections.lock().iter().cloned().collect()
    }
}

fn shorten(text: &mut String) {
    let mut end = TEXT_BYTES_MAX.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text.shrink_to_fit();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_between_characters() {
        let mut text = "é".repeat(TEXT_BYTES_MAX);
        let mut odd = format!("x{text}");
        let mut short = "short".to_owned();

        shorten(&mut text);
        shorten(&mut odd);
        shorten(&mut short);

        assert_eq!(
            (text.len(), odd.len()),
            (TEXT_BYTES_MAX, TEXT_BYTES_MAX - 1)
        );
        assert_eq!(short, "short");
    }
}
