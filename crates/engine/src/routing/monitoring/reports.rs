//! Connections and subscriptions one by one, as monitoring shows them: JSON lists, made when they are asked for.
//!
//! Invariant: a report holds no credential; the engine keeps none that it could show. Times are unix nanoseconds.

use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Duration;

use ahash::AHashSet;
use serde::{Deserialize, Serialize};

use super::statistics::{to_json, unix_ns, TrafficCounts};
use crate::common::error::EngineError;
use crate::routing::account::Account;
use crate::routing::clients::connection::Connection;
use crate::routing::shared::Shared;
use crate::routing::subscription::{Receiver, Subscription};

#[derive(Debug, Clone, Serialize)]
pub struct ConnectionReport {
    pub id: u64,
    /// How the client connects: `STANDARD` or `WEBSOCKET`.
    connection_type: &'static str,
    ip: String,
    port: u16,
    started_unix_ns: u64,
    last_activity_unix_ns: u64,
    round_trip_ns: u64,
    pending_bytes: usize,
    pub subscriptions: usize,
    stalls: u64,
    traffic: TrafficCounts,
    pub name: String,
    pub language: String,
    pub version: String,
    pub account: String,
    user: String,
    /// Empty without TLS, as is the next.
    tls_version: &'static str,
    tls_cipher: String,
    /// What Python said when it let the client in.
    details: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SubscriptionReport {
    account: String,
    subject: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    queue: String,
    sid: String,
    delivered: u64,
    /// 0: it does not end by itself.
    delivered_max: u64,
    /// 0: a handler of the server itself.
    connection_id: u64,
}

/// Which subscriptions are asked for. What is left out restricts nothing.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SubscriptionQuery {
    account: String,
    connection_ids: Option<Vec<u64>>,
    /// Only those that would get a message on this subject.
    subject: String,
    offset: usize,
    limit: Option<usize>,
}

#[derive(Serialize)]
struct SubscriptionList {
    total: usize,
    subscriptions: Vec<SubscriptionReport>,
}

/// Every living connection, oldest first.
pub fn connections(shared: &Shared) -> Vec<u8> {
    let reports: Vec<ConnectionReport> = shared
        .connections()
        .iter()
        .map(|connection| ConnectionReport::new(shared, connection))
        .collect();
    to_json(&reports)
}

/// One connection, if it is still there.
pub fn connection(shared: &Shared, id: u64) -> Option<Vec<u8>> {
    let connection = shared.connection(id)?;
    Some(to_json(&ConnectionReport::new(shared, &connection)))
}

/// The connections that ended last, oldest first.
pub fn closed_connections(shared: &Shared) -> Vec<u8> {
    to_json(&shared.totals.closed.list())
}

/// The subscriptions of a query, in an order that stays from page to page: by account, connection and sid.
pub fn subscriptions(shared: &Shared, query: &[u8]) -> Result<Vec<u8>, EngineError> {
    let query: SubscriptionQuery =
        serde_json::from_slice(query).map_err(|error| EngineError::Options(error.to_string()))?;
    let wanted: Option<AHashSet<u64>> = query
        .connection_ids
        .as_ref()
        .map(|ids| ids.iter().copied().collect());
    let mut found: Vec<(Arc<Account>, Arc<Subscription>)> = Vec::new();
    for account in shared.accounts() {
        if !query.account.is_empty() && query.account != account.name {
            continue;
        }
        let listed = if query.subject.is_empty() {
            account.subscriptions()
        } else {
            account.receivers(query.subject.as_bytes())
        };
        for subscription in listed {
            let is_wanted = wanted
                .as_ref()
                .is_none_or(|wanted| wanted.contains(&subscription.connection_id()));
            if is_wanted && !subscription.has_ended() {
                found.push((Arc::clone(&account), subscription));
            }
        }
    }
    found.sort_by(|(one_account, one), (other_account, other)| {
        let key = |account: &Arc<Account>, subscription: &Arc<Subscription>| {
            (account.index, subscription.connection_id())
        };
        key(one_account, one)
            .cmp(&key(other_account, other))
            .then_with(|| by_number(&one.sid, &other.sid))
            .then_with(|| one.subject.cmp(&other.subject))
    });
    Ok(to_json(&SubscriptionList {
        total: found.len(),
        subscriptions: found
            .iter()
            .skip(query.offset)
            .take(query.limit.unwrap_or(usize::MAX))
            .map(|(account, subscription)| SubscriptionReport::new(&account.name, subscription))
            .collect(),
    }))
}

/// The order of sids: most are numbers, and 9 comes before 10.
pub(crate) fn by_number(one: &[u8], other: &[u8]) -> std::cmp::Ordering {
    one.len().cmp(&other.len()).then_with(|| one.cmp(other))
}

impl ConnectionReport {
    pub fn new(shared: &Shared, connection: &Connection) -> Self {
        let identity = connection.identity.lock().clone();
        let started_unix_ns = unix_ns(connection.started);
        // The engine's clock began with the engine; a client that has said nothing was last active when it came.
        let last_activity = shared.started + Duration::from_millis(connection.last_traffic_ms());
        Self {
            id: connection.id,
            connection_type: connection.connection_type().name(),
            ip: connection.remote_address.ip().to_string(),
            port: connection.remote_address.port(),
            started_unix_ns,
            last_activity_unix_ns: unix_ns(last_activity).max(started_unix_ns),
            round_trip_ns: connection.round_trip_micros.load(Ordering::Relaxed) * 1_000,
            pending_bytes: connection.outbox.pending_bytes(),
            subscriptions: connection.subscription_count.load(Ordering::Relaxed),
            stalls: connection.stalls.load(Ordering::Relaxed),
            traffic: connection.traffic.read(),
            name: identity.name,
            language: identity.language,
            version: identity.version,
            account: identity.account,
            user: identity.user,
            tls_version: identity.tls_version,
            tls_cipher: identity.tls_cipher,
            details: identity.details,
        }
    }
}

impl SubscriptionReport {
    pub fn new(account: &str, subscription: &Subscription) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self {
            account: account.to_owned(),
            subject: text(&subscription.subject),
            queue: subscription.queue.as_deref().map(text).unwrap_or_default(),
            sid: text(&subscription.sid),
            delivered: subscription.delivered(),
            delivered_max: subscription.delivered_max(),
            connection_id: subscription.connection_id(),
        }
    }
}

impl Subscription {
    /// The connection it belongs to; 0 for a handler of the server itself.
    fn connection_id(&self) -> u64 {
        match &self.receiver {
            Receiver::Connection(connection) => connection.id,
            Receiver::Shadow(shadow) => shadow.original.connection_id(),
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sids_are_ordered_as_numbers() {
        let mut sids = [&b"10"[..], b"9", b"1", b"abc"];

        sids.sort_by(|one, other| by_number(one, other));

        assert_eq!(sids, [&b"1"[..], b"9", b"10", b"abc"]);
    }
}
