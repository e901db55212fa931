//! The options of an engine, and the limits that are not options.
//!
//! Relations between the numbers are checked once, in `Options::from_json`; code behind it may rely on them.

use serde::Deserialize;

use crate::error::EngineError;

/// Bytes a worker reads at once. Large, because everything shared is touched once per read.
pub const READ_BUFFER_BYTES: usize = 128 * 1024;

/// Reads of one connection before the next one has its turn.
pub const READS_PER_TURN_MAX: usize = 4;

/// Body of a message from a connection that has not said CONNECT: such a connection may not make the server hold more than this.
pub const UNCONNECTED_PAYLOAD_BYTES_MAX: usize = 64 * 1024;

/// How long what is pending may take to leave, and the peer to close, after the server decided to close a connection.
pub const CLOSE_DEADLINE_MS: u64 = 250;

/// A publisher whose receiver is this far behind (as a part of `max_pending_bytes`) is not read for a moment …
pub const STALL_SOFT_PART: usize = 8;
pub const STALL_SOFT_MS: u64 = 1;
/// … and for longer from three quarters on, where the receiver is about to be cut off.
pub const STALL_HARD_MS: u64 = 10;

/// The first PING of the server comes this soon after CONNECT, to learn the round trip time.
pub const FIRST_PING_MS: u64 = 2_000;

/// A round trip time older than this is measured again even on a busy connection.
pub const ROUND_TRIP_AGE_MS_MAX: u64 = 3_600_000;

/// Workers beyond this bring nothing and cost a wake-up each.
pub const WORKER_THREADS_MAX: usize = 64;

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
    /// For connections that never say anything to a server without authentication.
    pub handshake_timeout_ms: u64,
    pub headers: bool,
    pub fast_producer_stall: bool,
    /// 0: as many as there are cores.
    pub worker_threads: usize,
    pub jetstream: bool,
    pub domain: Option<String>,
    pub debug: bool,
    pub trace: bool,
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

    /// The number of workers to start.
    pub fn worker_count(&self) -> usize {
        if self.worker_threads > 0 {
            return self.worker_threads;
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        cores.min(WORKER_THREADS_MAX)
    }
}
