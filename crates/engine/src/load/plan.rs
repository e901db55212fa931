//! What a load is asked to do, and what it found.

use serde::{Deserialize, Serialize};

use crate::common::error::EngineError;

/// Threads a load may start: each connection has one.
const CONNECTIONS_MAX: usize = 1_024;
const PAYLOAD_BYTES_MAX: usize = 64 * 1024 * 1024;

/// This many answers fit into the buffers between server and client: a client writes all it may before it reads.
const IN_FLIGHT_MAX: u64 = 16 * 1024;

/// Below the stride with which subjects are chosen, which therefore meets every one of them.
const SUBJECTS_MAX: u64 = 1_000_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Workload {
    /// Publishers alone; nobody listens.
    Publish,
    /// Every subscriber gets every message of every publisher.
    PubSub,
    /// Each publisher sends requests one after the other; the subscribers are a queue group that answers.
    Request,
    /// Each publisher sends messages to a stream, with a limited number of them unacknowledged.
    Store,
    /// Each publisher requests stored messages, with a limited number of requests unanswered.
    DirectGet,
    /// Each publisher requests batches of messages from a consumer, with a limited number of batches not yet filled.
    Fetch,
    /// Each publisher has a push consumer of its own, which sends it the stream.
    Push,
    /// Each publisher creates durable consumers, with a limited number of requests unanswered.
    ConsumersCreate,
}

impl Workload {
    pub fn has_subscribers(self) -> bool {
        matches!(self, Self::PubSub | Self::Request)
    }

    /// Whether the plan must name the stream; a message to `store` finds its stream by its subject.
    fn has_stream(self) -> bool {
        matches!(
            self,
            Self::DirectGet | Self::Fetch | Self::Push | Self::ConsumersCreate
        )
    }
}

/// How messages that a consumer sent are acknowledged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Acknowledge {
    /// The consumer wants none.
    #[default]
    None,
    /// Each with a write of its own.
    Each,
    /// What came with one read, all with one write.
    Read,
}

/// Which messages of a stream are asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Get {
    /// One sequence after the other, from the first to the last and again.
    Sequential,
    /// Any sequence of them.
    #[default]
    Random,
    /// The last message of a subject, as key-value clients ask.
    Last,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadPlan {
    /// `host:port`.
    pub url: String,
    pub workload: Workload,
    pub publishers: usize,
    pub subscribers: usize,
    pub payload_bytes: usize,
    /// Per publisher.
    pub messages: u64,
    pub subject: String,
    pub user: Option<String>,
    pub password: Option<String>,
    pub token: Option<String>,
    /// Speak TLS, and trust these authorities.
    #[serde(default)]
    pub tls_ca_pem: Option<String>,
    /// Whether the server is spoken to by WebSocket, in the clear.
    #[serde(default)]
    pub websocket: bool,
    /// Messages per second and publisher; 0 is as fast as it goes.
    #[serde(default)]
    pub rate: u64,
    /// Subscriptions on other subjects that are made first and never get a message.
    #[serde(default)]
    pub idle_subscriptions: usize,
    /// Messages, or requests for batches or consumers, that a connection has unanswered at most.
    #[serde(default = "one")]
    pub in_flight: u64,
    /// `store` and `directget`: one is the subject itself, more are tokens below it, all used equally often and far from one another.
    #[serde(default = "one")]
    pub subjects: u64,
    /// `store`: every message has an id of its own, which the server must keep to find duplicates.
    #[serde(default)]
    pub message_ids: bool,
    /// `store`: messages per atomic batch; one means no batch.
    #[serde(default = "one")]
    pub atomic_batch: u64,
    /// `directget`, `fetch`, `push`: whose messages; `consumerscreate`: whose consumers.
    #[serde(default)]
    pub stream: String,
    #[serde(default)]
    pub get: Get,
    /// `fetch`: who is asked, messages per request, and what becomes of them.
    #[serde(default)]
    pub consumer: String,
    #[serde(default = "one")]
    pub batch: u64,
    #[serde(default)]
    pub acknowledge: Acknowledge,
    /// `fetch` and `push`: the message that comes first. `directget`: the sequences are these many from this one on.
    #[serde(default = "one")]
    pub first_sequence: u64,
    #[serde(default = "one")]
    pub sequences: u64,
}

fn one() -> u64 {
    1
}

impl LoadPlan {
    pub fn from_json(json: &[u8]) -> Result<Self, EngineError> {
        let refuse =
            |reason: String| EngineError::Load(format!("the load cannot be run: {reason}"));
        let plan: Self = serde_json::from_slice(json).map_err(|error| refuse(error.to_string()))?;
        if plan.publishers == 0 || plan.messages == 0 {
            return Err(refuse(
                "it needs at least one publisher and one message".to_owned(),
            ));
        }
        if plan.subscribers == 0 && plan.workload.has_subscribers() {
            return Err(refuse("it needs at least one subscriber".to_owned()));
        }
        if plan.publishers + plan.subscribers > CONNECTIONS_MAX {
            return Err(refuse(format!("at most {CONNECTIONS_MAX} connections")));
        }
        if plan.payload_bytes > PAYLOAD_BYTES_MAX {
            return Err(refuse(format!(
                "a payload has at most {PAYLOAD_BYTES_MAX} bytes"
            )));
        }
        if plan.subject.is_empty() || plan.subject.bytes().any(|byte| byte <= b' ') {
            return Err(refuse(format!(
                "{:?} is not a valid subject: use characters other than blanks and control characters",
                plan.subject
            )));
        }
        plan.check_exchange().map_err(refuse)?;
        plan.check_consumer().map_err(refuse)?;
        Ok(plan)
    }

    /// What `store` and `directget` need besides.
    fn check_exchange(&self) -> Result<(), String> {
        if self.in_flight == 0 || self.in_flight > IN_FLIGHT_MAX {
            return Err(format!("1 to {IN_FLIGHT_MAX} messages in flight"));
        }
        if self.subjects == 0 || self.sequences == 0 || self.atomic_batch == 0 {
            return Err("at least one subject, one sequence, one message per batch".to_owned());
        }
        if self.subjects > SUBJECTS_MAX {
            return Err(format!("at most {SUBJECTS_MAX} subjects"));
        }
        if self.messages % self.atomic_batch != 0 {
            return Err(format!(
                "{} messages cannot be divided into batches of {}: use a multiple",
                self.messages, self.atomic_batch
            ));
        }
        if self.workload.has_stream() && self.stream.is_empty() {
            return Err("the name of a stream is missing".to_owned());
        }
        Ok(())
    }

    /// What `fetch` needs besides.
    fn check_consumer(&self) -> Result<(), String> {
        if self.workload == Workload::Fetch && self.consumer.is_empty() {
            return Err("the name of a consumer is missing".to_owned());
        }
        if self.batch == 0 || self.messages % self.batch != 0 {
            return Err(format!(
                "{} messages cannot be divided into batches of {}: use a multiple",
                self.messages, self.batch
            ));
        }
        Ok(())
    }
}

#[derive(Debug, Serialize)]
pub struct LoadFigures {
    /// Messages sent, or asked for.
    pub published: u64,
    /// Messages that subscribers got; requests, publishes and gets that were answered.
    pub delivered: u64,
    pub seconds: f64,
    pub publish_rate: f64,
    pub deliver_rate: f64,
    /// Absent where the payload is too small to carry a time stamp, or nothing was delivered.
    pub latency_us: Option<LoadLatency>,
}

#[derive(Debug, Serialize)]
pub struct LoadLatency {
    pub p50: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
}
