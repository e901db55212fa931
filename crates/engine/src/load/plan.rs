//! What a load is asked to do, and what it found.

use serde::{Deserialize, Serialize};

use crate::error::EngineError;

/// Threads a load may start: each connection has one.
const CONNECTIONS_MAX: usize = 1_024;
const PAYLOAD_BYTES_MAX: usize = 64 * 1024 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Workload {
    /// Publishers alone; nobody listens.
    Publish,
    /// Every subscriber gets every message of every publisher.
    PubSub,
    /// Each publisher sends requests one after the other; the subscribers are a queue group that answers.
    Request,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
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
    /// Messages per second and publisher; 0 is as fast as it goes.
    #[serde(default)]
    pub rate: u64,
    /// Subscriptions on other subjects that are made first and never get a message.
    #[serde(default)]
    pub idle_subscriptions: usize,
}

impl Plan {
    pub fn from_json(json: &[u8]) -> Result<Self, EngineError> {
        let refuse =
            |reason: String| EngineError::Load(format!("the load cannot be run: {reason}"));
        let plan: Self = serde_json::from_slice(json).map_err(|error| refuse(error.to_string()))?;
        if plan.publishers == 0 || plan.messages == 0 {
            return Err(refuse(
                "it needs at least one publisher and one message".to_owned(),
            ));
        }
        if plan.subscribers == 0 && plan.workload != Workload::Publish {
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
                "{:?} is no subject: no blanks or control characters, and not empty",
                plan.subject
            )));
        }
        Ok(plan)
    }
}

#[derive(Debug, Serialize)]
pub struct Figures {
    pub published: u64,
    pub delivered: u64,
    pub seconds: f64,
    pub publish_rate: f64,
    pub deliver_rate: f64,
    /// Absent where the payload is too small to carry a time stamp, or nothing was delivered.
    pub latency_us: Option<Latency>,
}

#[derive(Debug, Serialize)]
pub struct Latency {
    pub p50: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
}
