//! The part of a connection that any thread may touch: its outbox and its counters.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::SystemTime;

use parking_lot::Mutex;

use super::outbox::Outbox;

/// Who the client says it is, and as whom it was let in. For people to read.
#[derive(Debug, Clone, Default)]
pub struct Identity {
    pub name: String,
    pub language: String,
    pub version: String,
    pub account: String,
    pub user: String,
}

pub struct Connection {
    pub id: u64,
    /// Dense number, unique among the living connections: workers index their staging table by it.
    pub slot: usize,
    /// The worker that owns the session.
    pub worker: usize,
    pub remote_address: SocketAddr,
    pub started: SystemTime,
    pub outbox: Outbox,
    pub identity: Mutex<Identity>,
    pub traffic: Traffic,
    pub subscription_count: AtomicUsize,
    pub round_trip_micros: AtomicU64,
    /// Milliseconds of the engine's clock at which the client last said something that counts as activity.
    pub last_activity_ms: AtomicU64,
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
        slot: usize,
        worker: usize,
        remote_address: SocketAddr,
        outbox: Outbox,
    ) -> Self {
        Self {
            id,
            slot,
            worker,
            remote_address,
            started: SystemTime::now(),
            outbox,
            identity: Mutex::default(),
            traffic: Traffic::default(),
            subscription_count: AtomicUsize::new(0),
            round_trip_micros: AtomicU64::new(0),
            last_activity_ms: AtomicU64::new(0),
            takes_headers: AtomicBool::new(false),
            takes_information: AtomicBool::new(false),
        }
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

    /// How log lines name it.
    pub fn label(&self) -> String {
        format!("{} - cid:{}", self.remote_address, self.id)
    }
}
