//! What the configuration of a consumer means for each message, decided once when the configuration is set.

use crate::wire::dialect::Dialect;

/// Which message of the stream comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DeliverPolicy {
    #[default]
    All,
    Last,
    /// Those that come after the consumer was made.
    New,
    StartSequence(u64),
    /// The first that was stored at this time or later.
    StartTime(i64),
    /// The last of each subject, and then all that come.
    LastPerSubject,
}

/// How messages are acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AckPolicy {
    /// Whatever was delivered is done.
    #[default]
    None,
    /// With a message all before it.
    All,
    /// Each message by itself.
    Explicit,
    /// All before a point, by the answers to flow control.
    FlowControl,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReplayPolicy {
    #[default]
    Instant,
    /// With the pauses there were when the messages came.
    Original,
}

/// Which of several waiting clients gets the next message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PriorityPolicy {
    /// The one that has waited longest.
    #[default]
    None,
    /// Some only when there is much to do.
    Overflow,
    /// One alone, until it is silent.
    PinnedClient,
    /// Those with the lowest number.
    Prioritized,
}

/// The key by which the messages of a key-shared group are divided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    /// A token of the subject, counted from 1.
    SubjectToken(usize),
    Header(String),
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConsumerSettings {
    pub name: String,
    /// It stays when nobody uses it, unless it has an `inactive_threshold_ns`.
    pub durable: bool,
    pub created_ns: i64,
    pub deliver_policy: DeliverPolicy,
    pub ack_policy: AckPolicy,
    pub replay_policy: ReplayPolicy,
    /// How long an acknowledgement may take; the first of `back_off_ns` if there are some.
    pub ack_wait_ns: i64,
    /// How long it may take after the first, the second… delivery; the last counts for all after it.
    pub back_off_ns: Vec<i64>,
    pub max_deliver: Option<u64>,
    /// Everything if empty.
    pub filters: Vec<Vec<u8>>,
    /// Bits per second; zero means no limit.
    pub rate_limit_bps: u64,
    /// The percentage of acknowledgements that a metric is sent for, from 1 to 100.
    pub sample_percent: Option<u8>,
    /// How many pull requests may wait.
    pub max_waiting: usize,
    /// How many messages may wait for their acknowledgement.
    pub max_ack_pending: Option<usize>,
    pub flow_control: bool,
    /// None if zero.
    pub idle_heartbeat_ns: i64,
    pub headers_only: bool,
    /// Limits of a pull request; zero means no limit.
    pub max_batch: i64,
    pub max_expires_ns: i64,
    pub max_bytes: i64,
    /// Where messages are sent without being asked for; without it, messages are pulled.
    pub deliver_subject: Option<String>,
    pub deliver_group: Option<String>,
    /// The consumer is deleted after this long without use; never if zero.
    pub inactive_threshold_ns: i64,
    pub memory_storage: bool,
    /// Belongs to a mirror or a source.
    pub direct: bool,
    pub sourcing: bool,
    pub pause_until_ns: Option<i64>,
    pub priority_policy: PriorityPolicy,
    pub priority_groups: Vec<String>,
    /// How long a pinned client may be silent.
    pub priority_timeout_ns: i64,
    /// Messages of one key are given out one after the other.
    pub key: Option<Key>,
    /// In which reply subjects are written, unless in today's.
    pub dialect: Option<Dialect>,
    /// A message that is to come again without a delay of its own waits as `back_off_ns` says.
    pub nak_backoff: bool,
}

impl ConsumerSettings {
    /// How long a message with this many deliveries may wait for its acknowledgement.
    pub fn wait_ns(&self, deliveries: u32) -> i64 {
        let waits = &self.back_off_ns;
        match waits.len() {
            0 => self.ack_wait_ns,
            length => waits[(deliveries.max(1) as usize - 1).min(length - 1)],
        }
    }

    pub fn is_push(&self) -> bool {
        self.deliver_subject.is_some()
    }
}
