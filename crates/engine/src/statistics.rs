//! Counters and reports: what monitoring shows of an engine, as one JSON object each.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

use crate::connection::handle::Traffic;
use crate::connection::Connection;
use crate::engine::Shared;

/// What is counted for the engine as a whole. Living connections count for themselves; `ended` holds the sum of those that are gone.
#[derive(Debug, Default)]
pub struct Totals {
    pub connections: AtomicU64,
    pub slow_consumers: AtomicU64,
    pub stale_connections: AtomicU64,
    ended: Traffic,
}

impl Totals {
    pub fn add_ended(&self, traffic: &Traffic) {
        let counts = traffic.read();
        self.ended.add_in(counts.in_messages, counts.in_bytes);
        self.ended.add_out(counts.out_messages, counts.out_bytes);
    }
}

/// A reading of `Traffic`.
#[derive(Debug, Default, Clone, Copy, Serialize)]
pub struct TrafficCounts {
    pub in_messages: u64,
    pub in_bytes: u64,
    pub out_messages: u64,
    pub out_bytes: u64,
}

#[derive(Serialize)]
struct Statistics {
    started_unix_ms: u64,
    connections: usize,
    total_connections: u64,
    subscriptions: usize,
    slow_consumers: u64,
    stale_connections: u64,
    worker_threads: usize,
    traffic: TrafficCounts,
}

#[derive(Serialize)]
struct ConnectionReport {
    id: u64,
    remote_address: String,
    started_unix_ms: u64,
    idle_ms: u64,
    round_trip_micros: u64,
    pending_bytes: usize,
    subscriptions: usize,
    name: String,
    language: String,
    version: String,
    account: String,
    user: String,
    traffic: TrafficCounts,
}

/// The engine's figures.
pub fn statistics(shared: &Shared) -> Vec<u8> {
    let mut traffic = shared.totals.ended.read();
    for connection in shared.connections() {
        traffic = traffic.plus(connection.traffic.read());
    }
    to_json(&Statistics {
        started_unix_ms: unix_ms(shared.started),
        connections: shared.connection_count(),
        total_connections: shared.totals.connections.load(Ordering::Relaxed),
        subscriptions: shared
            .accounts()
            .iter()
            .map(|account| account.subscription_count())
            .sum(),
        slow_consumers: shared.totals.slow_consumers.load(Ordering::Relaxed),
        stale_connections: shared.totals.stale_connections.load(Ordering::Relaxed),
        worker_threads: shared.worker_count(),
        traffic,
    })
}

/// Every living connection, oldest first.
pub fn connections(shared: &Shared) -> Vec<u8> {
    let reports: Vec<ConnectionReport> = shared
        .connections()
        .iter()
        .map(|connection| report(shared, connection))
        .collect();
    to_json(&reports)
}

fn report(shared: &Shared, connection: &Connection) -> ConnectionReport {
    let identity = connection.identity.lock().clone();
    let last_ms = connection.last_activity_ms.load(Ordering::Relaxed);
    ConnectionReport {
        id: connection.id,
        remote_address: connection.remote_address.to_string(),
        started_unix_ms: unix_ms(connection.started),
        idle_ms: shared.clock.now_ms().saturating_sub(last_ms),
        round_trip_micros: connection.round_trip_micros.load(Ordering::Relaxed),
        pending_bytes: connection.outbox.pending_bytes(),
        subscriptions: connection.subscription_count.load(Ordering::Relaxed),
        name: identity.name,
        language: identity.language,
        version: identity.version,
        account: identity.account,
        user: identity.user,
        traffic: connection.traffic.read(),
    }
}

fn unix_ms(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as u64)
}

fn to_json(value: &impl Serialize) -> Vec<u8> {
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
