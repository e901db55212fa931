//! The options of an engine, and the limits that are not options.
//!
//! Relations between the numbers are checked once, in `Options::from_json`; code after it may rely on them.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;

use super::connection_type::ConnectionType;
use super::imports::ImportOptions;
use super::leaf::{LeafListenerOptions, LeafOptions};
use super::mappings::MappingOptions;
use crate::common::error::EngineError;

/// Bytes a worker reads at once. Large, because everything shared is touched once per read.
pub const READ_BUFFER_BYTES: usize = 512 * 1024;

/// Bytes staged for one receiver after which they are handed over before the rest of the read is looked at, so that a stall comes in
/// time when a message has many receivers on one connection. More than one read brings where each message has one receiver.
pub const STAGED_BYTES_MAX: usize = 2 * 1024 * 1024;

/// The same as a part of `max_pending_bytes`, where that is small: a quarter of it is the room in which publishers are stalled.
pub const STAGED_PART: usize = 16;

/// Reads of one connection before the next one has its turn.
pub const READS_PER_TURN_MAX: usize = 4;

/// Body of a message from a connection that has not said CONNECT: such a connection may not make the server hold more than this.
pub const UNCONNECTED_PAYLOAD_BYTES_MAX: usize = 64 * 1024;

/// What all clients together may hold that have not said who they are: beyond that the oldest of them go.
pub const UNAUTHENTICATED_BYTES_MAX: usize = 16 * 1024 * 1024;

/// What one of them costs before it has said anything: its session, its place in the tables, its deadlines.
pub const UNAUTHENTICATED_CONNECTION_BYTES: usize = 2 * 1024;

/// How long what is pending may take to leave, and the peer to close, after the server decided to close a connection.
pub const CLOSE_DEADLINE_MS: u64 = 250;

/// A publisher whose receiver is this far behind (as a part of `max_pending_bytes`) is not read for a moment, so that little piles up.
pub const PAUSE_PART: usize = 32;
pub const PAUSE_MS: u64 = 1;

/// Bytes per millisecond that a publisher still sends to a receiver that has three quarters of `max_pending_bytes` waiting and is about to
/// be cut off. The pace of nats-server: it waits up to 10 ms for each read of 64 KB.
pub const STALL_BYTES_PER_MS: u64 = 64 * 1024 / 10;

/// The shortest stall: that of nats-server for one message.
pub const STALL_MS_MIN: u64 = 2;

/// The longest: what else the publisher sends, to others, waits as well.
pub const STALL_MS_MAX: u64 = 100;

/// The JetStream API level that is announced; what asks for more is refused.
pub const API_LEVEL: u8 = 5;

/// The first PING of the server comes this soon after CONNECT, to learn the round trip time.
pub const FIRST_PING_MS: u64 = 2_000;

/// A round trip time older than this is measured again even on a busy connection.
pub const ROUND_TRIP_AGE_MS_MAX: u64 = 3_600_000;

/// Workers beyond this bring nothing and cost a wake-up each.
pub const WORKER_THREADS_MAX: usize = 64;

/// Bytes of TLS that a connection may have sent without completing a record or a message of the handshake. One record has up to 18 KB;
/// the rest is room for a client's chain of certificates, which must be held as a whole to be read.
pub const TLS_UNFINISHED_BYTES_MAX: usize = 32 * 1024;

/// What rustls holds for one connection.
pub const TLS_STATE_BYTES: usize = 4 * 1024;

/// Encrypted bytes a worker reads at once. Less than in the clear: decrypting moves them twice more, and that is fast only within a cache.
pub const TLS_READ_BYTES: usize = 128 * 1024;

/// Bytes encrypted under one lock, and written with one call. More than a read brings, so that what came with one read leaves with one
/// write; a reader of the same connection waits for some tens of microseconds at most.
pub const TLS_SEAL_BYTES_MAX: usize = 256 * 1024;

/// How long an upgrade to WebSocket may take, its handshake of TLS included, where nothing is configured.
pub const UPGRADE_TIMEOUT_MS: u64 = 10_000;

/// What a compressed message of WebSocket may hold, before and after: several bodies of the largest size, for clients that send many at once.
pub const WEBSOCKET_MESSAGE_PAYLOADS: usize = 8;
pub const WEBSOCKET_MESSAGE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Largest body a client may ever be allowed: sizes have nine digits on the wire and buffers must be made for them.
pub const PAYLOAD_BYTES_LIMIT: usize = 64 * 1024 * 1024;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    pub host: String,
    /// 0 takes any free port.
    pub port: u16,
    /// Empty: the server id.
    pub server_name: String,
    /// The version clients gate their features on.
    pub version: String,
    pub git_commit: String,
    /// `host:port` to announce instead of the address listened on.
    pub client_advertise: Option<String>,
    pub max_connections: usize,
    /// Per connection; 0 is unlimited.
    pub max_subscriptions: usize,
    /// Tokens of a subscription's subject; 0 is unlimited.
    pub max_subscription_tokens: usize,
    pub max_control_line_bytes: usize,
    pub max_payload_bytes: usize,
    pub max_pending_bytes: usize,
    pub write_deadline_ms: u64,
    pub ping_interval_ms: u64,
    pub ping_max: u32,
    pub auth_required: bool,
    pub auth_timeout_ms: u64,
    /// Whether clients get a nonce to sign: only where keys are configured.
    #[serde(default)]
    pub nonce: bool,
    /// Whether a client may begin with something else than CONNECT: it is then asked about as one without credentials.
    #[serde(default)]
    pub admits_without_connect: bool,
    /// The account of the server's own events and requests; empty without one.
    #[serde(default)]
    pub system_account: String,
    /// What operators call this server and say about it, for events.
    #[serde(default)]
    pub server_tags: Vec<String>,
    #[serde(default)]
    pub server_metadata: BTreeMap<String, String>,
    /// Where accounts want traces that a trace context asks for, by the account's name.
    #[serde(default)]
    pub message_traces: BTreeMap<String, MessageTraceOptions>,
    /// What accounts make of the subjects their clients publish to, by the account's name.
    #[serde(default)]
    pub mappings: BTreeMap<String, Vec<MappingOptions>>,
    /// What accounts see of others, by the name of the account that imports.
    #[serde(default)]
    pub imports: BTreeMap<String, ImportOptions>,
    /// What INFO says about authentication, where that is not simply `auth_required`.
    #[serde(default)]
    pub info_auth_required: Option<bool>,
    /// Ended connections that monitoring remembers.
    #[serde(default = "default_closed_connections")]
    pub max_closed_connections: usize,
    /// For connections that never say anything to a server without authentication.
    pub handshake_timeout_ms: u64,
    pub headers: bool,
    pub fast_producer_stall: bool,
    /// 0: as many as there are cores.
    pub worker_threads: usize,
    pub jetstream: bool,
    pub domain: Option<String>,
    /// The time of day stands still but for `Engine::advance`.
    #[serde(default)]
    pub manual_clock: bool,
    pub debug: bool,
    pub trace: bool,
    /// TLS on the client port; without it, clients speak in the clear.
    #[serde(default)]
    pub tls: Option<TlsOptions>,
    /// A second port, where clients speak WebSocket.
    #[serde(default)]
    pub websocket: Option<WebSocketOptions>,
    /// Links to other servers.
    #[serde(default)]
    pub leaf: Option<LeafOptions>,
}

fn default_closed_connections() -> usize {
    10_000
}

/// What an account wants to know of messages with a trace context.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MessageTraceOptions {
    pub destination: String,
    /// How many of a hundred messages are traced.
    pub sampling_percent: u8,
}

/// TLS as it is asked for. Certificates and keys are text: the files are Python's to read.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsOptions {
    /// The server's certificate, then those that lead to its authority.
    pub certificate_pem: String,
    pub key_pem: String,
    /// The authorities that sign clients' certificates.
    #[serde(default)]
    pub ca_pem: Option<String>,
    /// Whether a client must show a certificate.
    #[serde(default)]
    pub verify: bool,
    #[serde(default)]
    pub min_version: TlsVersion,
    /// IANA names; empty allows all there are.
    #[serde(default)]
    pub cipher_suites: Vec<String>,
    /// TLS before INFO: 0 for every client; else how long to wait for a client that begins so, before INFO is said first.
    #[serde(default)]
    pub handshake_first_ms: Option<u64>,
    /// Whether a client may also speak in the clear; its first byte shows which.
    #[serde(default)]
    pub allow_non_tls: bool,
    pub timeout_ms: u64,
    /// SHA-256 of the public keys (as DER, in hexadecimal) of the only clients let in; empty lets all in.
    #[serde(default)]
    pub pinned_certificates: Vec<String>,
    /// Certificates besides the first: a client gets the first one that has the name it asks for.
    #[serde(default)]
    pub further_certificates: Vec<TlsCertificate>,
    /// Curves of the key exchange, by Go's names, in order of preference; empty allows all there are.
    #[serde(default)]
    pub curves: Vec<String>,
    /// Handshakes that may begin within a second; 0 is unlimited.
    #[serde(default)]
    pub handshakes_per_second_max: u64,
}

/// WebSocket on a port of its own. A number that is 0 and a text that is empty say nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WebSocketOptions {
    pub host: String,
    /// 0 takes any free port.
    pub port: u16,
    /// Without it, clients speak in the clear.
    pub tls: Option<TlsOptions>,
    /// Pages of a browser may connect only to where they came from.
    pub same_origin: bool,
    /// The origins of the only pages that may connect; empty allows all.
    pub allowed_origins: Vec<String>,
    pub handshake_timeout_ms: u64,
    pub compress: bool,
    /// Whether clients are asked who they are, even where those of the other port are not.
    pub auth_required: bool,
    pub auth_timeout_ms: u64,
    pub ping_interval_ms: u64,
    /// Names of cookies that carry credentials.
    pub jwt_cookie: String,
    pub user_cookie: String,
    pub password_cookie: String,
    pub token_cookie: String,
    /// Further headers of the answer to an upgrade.
    pub headers: Vec<(String, String)>,
}

/// A certificate with those that lead to its authority, and its key.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsCertificate {
    pub certificate_pem: String,
    pub key_pem: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub enum TlsVersion {
    #[default]
    #[serde(rename = "1.2")]
    Tls12,
    #[serde(rename = "1.3")]
    Tls13,
}

impl fmt::Debug for TlsOptions {
    /// Options may end up in a log, a key never.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("TlsOptions")
            .field("verify", &self.verify)
            .field("min_version", &self.min_version)
            .field("cipher_suites", &self.cipher_suites)
            .field("handshake_first_ms", &self.handshake_first_ms)
            .field("allow_non_tls", &self.allow_non_tls)
            .field("timeout_ms", &self.timeout_ms)
            .finish_non_exhaustive()
    }
}

impl Options {
    pub fn from_json(json: &[u8]) -> Result<Self, EngineError> {
        let options: Self = serde_json::from_slice(json)
            .map_err(|error| EngineError::Options(error.to_string()))?;
        options.check()?;
        Ok(options)
    }

    fn check(&self) -> Result<(), EngineError> {
        let refuse = |reason: String| Err(EngineError::Options(reason));
        if self.max_payload_bytes > self.max_pending_bytes {
            return refuse(format!(
                "max_payload ({}) must not be larger than max_pending ({}): a message has to fit into the room for waiting ones",
                self.max_payload_bytes, self.max_pending_bytes
            ));
        }
        if self.max_payload_bytes > PAYLOAD_BYTES_LIMIT {
            return refuse(format!(
                "max_payload ({}) must not be larger than {PAYLOAD_BYTES_LIMIT}",
                self.max_payload_bytes
            ));
        }
        if self.max_control_line_bytes == 0 || self.max_control_line_bytes > READ_BUFFER_BYTES / 2 {
            return refuse(format!(
                "max_control_line ({}) must be between 1 and {}",
                self.max_control_line_bytes,
                READ_BUFFER_BYTES / 2
            ));
        }
        if self.ping_interval_ms == 0 {
            return refuse("ping_interval must be longer than 0".to_owned());
        }
        if self.worker_threads > WORKER_THREADS_MAX {
            return refuse(format!(
                "worker_threads ({}) must not be more than {WORKER_THREADS_MAX}",
                self.worker_threads
            ));
        }
        Ok(())
    }

    /// Whether these may replace others while the engine runs.
    pub fn check_reload(&self, old: &Self) -> Result<(), EngineError> {
        let refuse = |name: &str, old: &dyn std::fmt::Debug, new: &dyn std::fmt::Debug| {
            Err(EngineError::Options(format!(
                "config reload not supported for {name}: old={old:?}, new={new:?}"
            )))
        };
        if self.host != old.host {
            return refuse("Host", &old.host, &self.host);
        }
        if self.port != old.port {
            return refuse("Port", &old.port, &self.port);
        }
        if self.max_pending_bytes != old.max_pending_bytes {
            return refuse(
                "MaxPending",
                &old.max_pending_bytes,
                &self.max_pending_bytes,
            );
        }
        if self.websocket_but_tls() != old.websocket_but_tls() {
            return refuse("Websocket", &old.websocket, &self.websocket);
        }
        if self.worker_threads != old.worker_threads {
            return refuse("WorkerThreads", &old.worker_threads, &self.worker_threads);
        }
        if self.server_name != old.server_name {
            return refuse("ServerName", &old.server_name, &self.server_name);
        }
        Ok(())
    }

    /// What is different for clients that connect like this.
    pub fn websocket_of(&self, connection_type: ConnectionType) -> Option<&WebSocketOptions> {
        match connection_type {
            ConnectionType::WebSocket => self.websocket.as_ref(),
            ConnectionType::Standard
            | ConnectionType::Leaf
            | ConnectionType::LeafWebSocket
            | ConnectionType::Internal => None,
        }
    }

    /// Where other servers connect, if they may.
    pub fn leaf_listener(&self) -> Option<&LeafListenerOptions> {
        self.leaf.as_ref()?.listener.as_ref()
    }

    /// What of WebSocket cannot change while the engine runs.
    fn websocket_but_tls(&self) -> Option<WebSocketOptions> {
        let mut websocket = self.websocket.clone()?;
        // Certificates may change, but not whether there are any.
        if let Some(tls) = &mut websocket.tls {
            *tls = TlsOptions::default();
        }
        Some(websocket)
    }

    /// The number of workers to start.
    pub fn worker_count(&self) -> usize {
        if self.worker_threads > 0 {
            return self.worker_threads;
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        cores.min(WORKER_THREADS_MAX)
    }
}
