//! Counters, and what monitoring shows of them: the engine as a whole, and each account, as one JSON object.
//!
//! Living connections count for themselves; what ended connections counted is kept here. Nothing in here is touched per message.
//! Times are unix nanoseconds.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use ahash::AHashMap;
use parking_lot::Mutex;
use serde::Serialize;

use super::closed::ClosedConnections;
use crate::routing::account::Lookups;
use crate::routing::clients::closed_reason::ClosedReason;
use crate::routing::clients::connection::Connection;
use crate::routing::clients::connection::Traffic;
use crate::routing::shared::Shared;

/// What is counted for the engine as a whole.
#[derive(Default)]
pub struct Totals {
    pub connections: AtomicU64,
    /// How often a publisher was not read for a moment because its receiver was far behind.
    pub stalls: AtomicU64,
    pub closed: ClosedConnections,
    slow_consumers: AtomicU64,
    stale_connections: AtomicU64,
    ended: Mutex<AHashMap<String, Ended>>,
}

/// What the ended connections of one account counted.
#[derive(Debug, Default, Clone, Copy)]
struct Ended {
    connections: u64,
    slow_consumers: u64,
    traffic: TrafficCounts,
}

impl Totals {
    /// A connection is gone: its counts are kept.
    pub fn add_ended(&self, connection: &Connection, reason: ClosedReason) {
        if reason.is_slow_consumer() {
            self.slow_consumers.fetch_add(1, Ordering::Relaxed);
        }
        if reason == ClosedReason::StaleConnection {
            self.stale_connections.fetch_add(1, Ordering::Relaxed);
        }
        let account = connection.identity.lock().account.clone();
        let mut ended = self.ended.lock();
        let ended = ended.entry(account).or_default();
        ended.connections += 1;
        ended.slow_consumers += u64::from(reason.is_slow_consumer());
        ended.traffic = ended.traffic.plus(connection.traffic.read());
    }
}

/// A reading of `Traffic`.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TrafficCounts {
    pub in_messages: u64,
    pub in_bytes: u64,
    pub out_messages: u64,
    pub out_bytes: u64,
}

#[derive(Serialize)]
struct Statistics {
    started_unix_ns: u64,
    worker_threads: usize,
    connections: usize,
    total_connections: u64,
    subscriptions: usize,
    pending_bytes: usize,
    slow_consumers: u64,
    stale_connections: u64,
    stalls: u64,
    traffic: TrafficCounts,
    accounts: Vec<AccountStatistics>,
}

#[derive(Serialize)]
struct AccountStatistics {
    name: String,
    connections: usize,
    total_connections: u64,
    subscriptions: usize,
    slow_consumers: u64,
    traffic: TrafficCounts,
    routing: Lookups,
}

/// The engine's figures.
pub fn statistics(shared: &Shared) -> Vec<u8> {
    let mut pending_bytes = 0;
    let mut living: AHashMap<String, TrafficCounts> = AHashMap::new();
    for connection in shared.connections() {
        pending_bytes += connection.outbox.pending_bytes();
        let counts = connection.traffic.read();
        let account = connection.identity.lock().account.clone();
        let sum = living.entry(account).or_default();
        *sum = sum.plus(counts);
    }
    let ended = shared.totals.ended.lock().clone();
    let accounts: Vec<AccountStatistics> = shared
        .accounts()
        .iter()
        .map(|account| {
            let ended = ended.get(&account.name).copied().unwrap_or_default();
            let living = living.get(&account.name).copied().unwrap_or_default();
            AccountStatistics {
                name: account.name.clone(),
                connections: account.connection_count(),
                total_connections: account.connection_count() as u64 + ended.connections,
                subscriptions: account.subscription_count(),
                slow_consumers: ended.slow_consumers,
                traffic: ended.traffic.plus(living),
                routing: account.lookups(),
            }
        })
        .collect();
    to_json(&Statistics {
        started_unix_ns: unix_ns(shared.started),
        worker_threads: shared.worker_count(),
        connections: shared.listed_count(),
        total_connections: shared.totals.connections.load(Ordering::Relaxed),
        subscriptions: accounts.iter().map(|account| account.subscriptions).sum(),
        pending_bytes,
        slow_consumers: shared.totals.slow_consumers.load(Ordering::Relaxed),
        stale_connections: shared.totals.stale_connections.load(Ordering::Relaxed),
        stalls: shared.totals.stalls.load(Ordering::Relaxed),
        // Of all accounts that ever were, and of clients that are in none yet.
        traffic: ended
            .values()
            .map(|ended| ended.traffic)
            .chain(living.into_values())
            .fold(TrafficCounts::default(), TrafficCounts::plus),
        accounts,
    })
}

pub(crate) fn unix_ns(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos() as u64)
}

pub(crate) fn to_json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("strings and numbers always serialise")
}

impl Traffic {
    pub fn read(&self) -> TrafficCounts {
        TrafficCounts {
            in_messages: self.in_messages.load(Ordering::Relaxed),
            in_bytes: self.in_bytes.load(Ordering::Relaxed),
            out_messages: self.out_messages.load(Ordering::Relaxed),
            out_bytes: self.out_bytes.load(Ordering::Relaxed),
        }
    }
}

impl TrafficCounts {
    fn plus(self, other: Self) -> Self {
        Self {
            in_messages: self.in_messages + other.in_messages,
            in_bytes: self.in_bytes + other.in_bytes,
            out_messages: self.out_messages + other.out_messages,
            out_bytes: self.out_bytes + other.out_bytes,
        }
    }
}
