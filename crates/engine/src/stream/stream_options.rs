//! How streams are served, as the configuration of the server says.

use serde::Deserialize;

use super::batch::atomic_batches::BatchLimits;
use super::batch::fast_batches::FastLimits;
use super::publish::answer_queue::BufferLimits;
use super::replication::remote::options::RemoteOptions;
use crate::common::secret::Secret;

/// How streams are served.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StreamOptions {
    /// Commits wait for the disk; else it is synced in intervals.
    pub sync_always: bool,
    pub sync_interval_ms: u64,
    pub domain: String,
    /// Subjects of acknowledgements name domain and account.
    pub long_ack_subjects: bool,
    /// What all streams together may take up; -1 means no limit.
    pub memory_bytes_max: i64,
    pub storage_bytes_max: i64,
    /// 0 is the default.
    pub buffered_messages_max: usize,
    pub buffered_bytes_max: u64,
    /// Of atomic batches; 0 is the default, too.
    pub batches_per_stream_max: usize,
    pub batches_max: usize,
    pub batch_messages_max: usize,
    pub batch_idle_ms_max: u64,
    /// The server's key, and the one before; empty means none.
    pub key: Secret,
    pub previous_key: Secret,
    /// Other servers, and accounts of this one, that streams may be copied from.
    pub remotes: Vec<RemoteOptions>,
}

impl Default for StreamOptions {
    fn default() -> Self {
        Self {
            sync_always: true,
            sync_interval_ms: 120_000,
            domain: String::new(),
            long_ack_subjects: false,
            memory_bytes_max: -1,
            storage_bytes_max: -1,
            buffered_messages_max: 0,
            buffered_bytes_max: 0,
            batches_per_stream_max: 0,
            batches_max: 0,
            batch_messages_max: 0,
            batch_idle_ms_max: 0,
            key: Secret::default(),
            previous_key: Secret::default(),
            remotes: Vec::new(),
        }
    }
}

impl StreamOptions {
    pub fn buffer_limits(&self) -> BufferLimits {
        let defaults = BufferLimits::default();
        BufferLimits {
            messages_max: given(self.buffered_messages_max, defaults.messages_max),
            bytes_max: match self.buffered_bytes_max {
                0 => defaults.bytes_max,
                most => most,
            },
        }
    }

    pub fn batch_limits(&self) -> BatchLimits {
        let defaults = BatchLimits::default();
        BatchLimits {
            open_per_stream_max: given(self.batches_per_stream_max, defaults.open_per_stream_max),
            open_max: given(self.batches_max, defaults.open_max),
            messages_max: given(self.batch_messages_max, defaults.messages_max),
            idle_ns_max: match self.batch_idle_ms_max {
                0 => defaults.idle_ns_max,
                idle_ms => (idle_ms as i64).saturating_mul(1_000_000),
            },
        }
    }

    pub fn fast_limits(&self) -> FastLimits {
        let defaults = FastLimits::default();
        FastLimits {
            open_per_stream_max: given(self.batches_per_stream_max, defaults.open_per_stream_max),
            idle_ns_max: self.batch_limits().idle_ns_max,
            ..defaults
        }
    }
}

/// Zero is the default.
fn given(value: usize, default: usize) -> usize {
    match value {
        0 => default,
        value => value,
    }
}
