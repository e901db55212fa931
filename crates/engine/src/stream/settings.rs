//! What a stream's configuration means for each message, decided once when the configuration is set.

use std::sync::Arc;

use super::replication::origin::Origin;
use crate::routing::subject_transform::SubjectTransform;
use crate::storage::message::{Counting, Limits};
use crate::wire::dialect::Dialect;

/// What happens when the limits of a stream are reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Discard {
    /// The oldest messages make room.
    #[default]
    Old,
    /// The new message is refused.
    New,
}

/// Where messages are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Storage {
    #[default]
    File,
    Memory,
}

/// What keeps a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Retention {
    /// The limits alone.
    #[default]
    Limits,
    /// Consumers that have not acknowledged it.
    Interest,
    /// The one consumer that has not acknowledged it.
    WorkQueue,
}

/// Messages that were stored are published once more, under another subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Republish {
    pub transform: SubjectTransform,
    pub headers_only: bool,
}

impl StreamSettings {
    /// The limits that the store keeps by removing messages. Where new messages are refused instead, none make room for them.
    pub fn removing_limits(&self) -> Limits {
        match self.discard {
            Discard::Old => self.limits,
            Discard::New => Limits {
                messages_max: None,
                bytes_max: None,
                ..self.limits
            },
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StreamSettings {
    pub name: String,
    pub domain: Option<String>,
    pub subjects: Vec<String>,
    pub storage: Storage,
    pub retention: Retention,
    pub limits: Limits,
    pub counting: Counting,
    /// Headers and payload together.
    pub message_bytes_max: Option<u64>,
    pub discard: Discard,
    /// With `Discard::New`: a subject that has reached its own limit takes nothing more either.
    pub discard_new_per_subject: bool,
    /// How long message ids are remembered; not at all if zero.
    pub duplicate_window_ns: i64,
    /// The sequence of the first message that is ever stored.
    pub first_sequence: u64,
    pub compressed: bool,
    pub chained: bool,
    /// The stream that keeps what consumers give up.
    pub dead_letters: Option<String>,
    /// In which it answers publishers, unless in today's.
    pub dialect: Option<Dialect>,
    /// Acknowledged before it is on disk.
    pub asynchronous: bool,
    pub sealed: bool,
    pub deny_delete: bool,
    pub deny_purge: bool,
    pub allow_rollup: bool,
    pub allow_direct: bool,
    /// Answers direct gets of the stream it mirrors.
    pub mirror_direct: Option<String>,
    pub is_mirror: bool,
    /// The mirrored stream, or the sources.
    pub origins: Vec<Arc<Origin>>,
    /// Distinguishes this stream from another of its name, created later.
    pub identity: String,
    pub allow_time_to_live: bool,
    /// How long a marker stays that says a subject's last message has expired; none is made if zero.
    pub delete_marker_ttl_ns: i64,
    pub allow_counter: bool,
    pub allow_atomic_batch: bool,
    pub allow_fast_batch: bool,
    pub allow_schedules: bool,
    /// What any client may send to this server at most.
    pub payload_bytes_max: usize,
    /// Nothing is answered, not even refusals.
    pub no_acknowledgement: bool,
    pub subject_transform: Option<SubjectTransform>,
    pub republish: Option<Republish>,
}
