//! The part of a connection that any thread may touch: its outbox and its counters.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::OnceLock;
use std::time::SystemTime;

use parking_lot::Mutex;

use crate::config::connection_type::ConnectionType;
use crate::routing::monitoring::closed::LastSubscriptions;
use crate::transport::outbox::Outbox;

/// Who the client says it is, and as whom it was let in. For people to read.
#[derive(Debug, Clone, Default)]
pub struct Identity {
    pub name: String,
    pub language: String,
    pub version: String,
    pub account: String,
    pub user: String,
    /// Empty without TLS, as is the next.
    pub tls_version: &'static str,
    pub tls_cipher: String,
    /// What Python wants to find again in reports.
    pub details: String,
}

pub struct Connection {
    pub id: u64,
    connection_type: ConnectionType,
    /// A client of WebSocket turned out to be another server.
    is_leaf_by_upgrade: AtomicBool,
    /// Dense number, unique among the living connections: workers index their staging table by it.
    pub slot: usize,
    /// The worker that owns the session.
    pub worker: usize,
    pub remote_address: SocketAddr,
    /// Where a proxy says that the client is. For people to read: anybody can say so.
    pub forwarded_for: OnceLock<IpAddr>,
    pub started: SystemTime,
    pub outbox: Outbox,
    pub identity: Mutex<Identity>,
    pub traffic: Traffic,
    pub subscription_count: AtomicUsize,
    /// What it was subscribed to when it ended; until then, nothing.
    pub last_subscriptions: Mutex<LastSubscriptions>,
    pub round_trip_micros: AtomicU64,
    /// How often a publisher was stalled because this receiver was about to be cut off.
    pub stalls: AtomicU64,
    /// Milliseconds of the engine's clock at which the client last said something that counts as activity.
    pub last_activity_ms: AtomicU64,
    /// The same for the last message it was given, which proves nothing about the client.
    last_delivery_ms: AtomicU64,
    takes_headers: AtomicBool,
    /// Set once it asked for asynchronous INFO lines: CONNECT with protocol 1, and the first PONG is out.
    takes_information: AtomicBool,
}

/// Messages and bytes as seen from the server: `in` came from the client.
#[derive(Debug, Default)]
pub struct Traffic {
    pub in_messages: AtomicU64,
    pub in_bytes: AtomicU64,
    pub out_messages: AtomicU64,
    pub out_bytes: AtomicU64,
}

impl Traffic {
    #[inline]
    pub fn add_in(&self, messages: u64, bytes: u64) {
        self.in_messages.fetch_add(messages, Ordering::Relaxed);
        self.in_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    #[inline]
    pub fn add_out(&self, messages: u64, bytes: u64) {
        self.out_messages.fetch_add(messages, Ordering::Relaxed);
        self.out_bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Connection {
    pub fn new(
        id: u64,
        connection_type: ConnectionType,
        slot: usize,
        worker: usize,
        remote_address: SocketAddr,
        outbox: Outbox,
    ) -> Self {
        Self {
            id,
            connection_type,
            is_leaf_by_upgrade: AtomicBool::new(false),
            slot,
            worker,
            remote_address,
            forwarded_for: OnceLock::new(),
            started: SystemTime::now(),
            outbox,
            identity: Mutex::default(),
            traffic: Traffic::default(),
            subscription_count: AtomicUsize::new(0),
            last_subscriptions: Mutex::default(),
            round_trip_micros: AtomicU64::new(0),
            stalls: AtomicU64::new(0),
            last_activity_ms: AtomicU64::new(0),
            last_delivery_ms: AtomicU64::new(0),
            takes_headers: AtomicBool::new(false),
            takes_information: AtomicBool::new(false),
        }
    }

    pub fn connection_type(&self) -> ConnectionType {
        match self.is_leaf_by_upgrade.load(Ordering::Relaxed) {
            true => ConnectionType::LeafWebSocket,
            false => self.connection_type,
        }
    }

    /// It is another server, as its upgrade to WebSocket shows.
    pub fn become_leaf(&self) {
        self.is_leaf_by_upgrade.store(true, Ordering::Relaxed);
    }

    #[inline]
    pub fn takes_headers(&self) -> bool {
        self.takes_headers.load(Ordering::Relaxed)
    }

    pub fn set_takes_headers(&self, takes_headers: bool) {
        self.takes_headers.store(takes_headers, Ordering::Relaxed);
    }

    pub fn takes_information(&self) -> bool {
        self.takes_information.load(Ordering::Relaxed)
    }

    pub fn set_takes_information(&self, takes_information: bool) {
        self.takes_information
            .store(takes_information, Ordering::Relaxed);
    }

    #[inline]
    pub fn note_delivery(&self, now_ms: u64) {
        self.last_delivery_ms.store(now_ms, Ordering::Relaxed);
    }

    /// When something last went either way, in milliseconds of the engine's clock; 0 when nothing did.
    pub fn last_traffic_ms(&self) -> u64 {
        let said_ms = self.last_activity_ms.load(Ordering::Relaxed);
        said_ms.max(self.last_delivery_ms.load(Ordering::Relaxed))
    }

    /// Until a PING has measured the round trip, the time a client took from INFO to CONNECT is the best there is.
    pub fn guess_round_trip(&self) {
        let micros = self
            .started
            .elapsed()
            .map_or(1, |elapsed| elapsed.as_micros());
        // It fails when a PING was faster, and then that is the better value.
        let _ = self.round_trip_micros.compare_exchange(
            0,
            (micros as u64).max(1),
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
    }

    /// How log lines name it.
    pub fn label(&self) -> String {
        let kind = match self.connection_type() {
            ConnectionType::Standard | ConnectionType::Internal => "cid",
            ConnectionType::WebSocket => "wid",
            ConnectionType::Leaf | ConnectionType::LeafWebSocket => "lid",
        };
        match self.forwarded_for.get() {
            None => format!("{} - {kind}:{}", self.remote_address, self.id),
            Some(IpAddr::V6(ip)) => {
                format!("[{ip}]/{} - {kind}:{}", self.remote_address, self.id)
            }
            Some(ip) => format!("{ip}/{} - {kind}:{}", self.remote_address, self.id),
        }
    }
}
