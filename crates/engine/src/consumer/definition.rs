//! The definition of a consumer as it is kept on disk: the configuration in JetStream's JSON, of which the engine reads what matters to messages.
//!
//! What is legal was decided before it came here, so a value that makes no sense is refused and not repaired; only what is left out has its default.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::settings::{
    AckPolicy, ConsumerSettings, DeliverPolicy, Key, PriorityPolicy, ReplayPolicy,
};
use crate::common::subject;
use crate::common::timestamp;
use crate::wire::dialect::Dialect;

/// In the metadata: the key by which the messages of a key-shared group are divided.
const KEY_KEY: &str = "jetlake.key";

/// In the metadata: a message that was refused waits before it comes again.
const NAK_BACKOFF_KEY: &str = "jetlake.nak_backoff";

const ACK_WAIT_NS_DEFAULT: i64 = 30_000_000_000;
const WAITING_MAX_DEFAULT: usize = 512;
const PRIORITY_TIMEOUT_NS_DEFAULT: i64 = 120_000_000_000;

/// How nats-server writes an unset time.
const NO_TIME: &str = "0001-01-01T00:00:00Z";

#[derive(Deserialize)]
struct ConsumerDefinition {
    #[serde(default)]
    name: String,
    config: ConsumerConfig,
    #[serde(default)]
    created: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ConsumerConfig {
    durable_name: String,
    name: String,
    deliver_policy: String,
    opt_start_seq: u64,
    opt_start_time: Option<String>,
    ack_policy: String,
    ack_wait: i64,
    max_deliver: i64,
    backoff: Option<Vec<i64>>,
    filter_subject: String,
    filter_subjects: Option<Vec<String>>,
    replay_policy: String,
    rate_limit_bps: u64,
    sample_freq: String,
    max_waiting: i64,
    max_ack_pending: i64,
    flow_control: bool,
    headers_only: bool,
    max_batch: i64,
    max_expires: i64,
    max_bytes: i64,
    deliver_subject: String,
    deliver_group: String,
    idle_heartbeat: i64,
    inactive_threshold: i64,
    mem_storage: bool,
    direct: bool,
    sourcing: bool,
    metadata: Option<BTreeMap<String, String>>,
    pause_until: Option<String>,
    priority_groups: Option<Vec<String>>,
    priority_policy: String,
    priority_timeout: i64,
}

impl ConsumerConfig {
    fn deliver_policy(&self) -> Result<DeliverPolicy, String> {
        Ok(match self.deliver_policy.as_str() {
            "all" | "undefined" | "" => DeliverPolicy::All,
            "last" => DeliverPolicy::Last,
            "new" => DeliverPolicy::New,
            "by_start_sequence" => DeliverPolicy::StartSequence(self.opt_start_seq),
            "by_start_time" => {
                let text = self.opt_start_time.as_deref().unwrap_or_default();
                // The first moment of the year 1 is a time here, and not none.
                let time_ns = timestamp::read(text);
                DeliverPolicy::StartTime(time_ns.ok_or("it has no start time")?)
            }
            "last_per_subject" => DeliverPolicy::LastPerSubject,
            other => return Err(format!("unknown deliver policy {other:?}: use all, last, new, by_start_sequence, by_start_time or last_per_subject")),
        })
    }

    fn ack_policy(&self) -> Result<AckPolicy, String> {
        Ok(match self.ack_policy.as_str() {
            "none" | "" => AckPolicy::None,
            "all" => AckPolicy::All,
            "explicit" => AckPolicy::Explicit,
            "flow_control" => AckPolicy::FlowControl,
            other => {
                return Err(format!(
                    "unknown ack policy {other:?}: use none, all, explicit or flow_control"
                ))
            }
        })
    }

    fn replay_policy(&self) -> Result<ReplayPolicy, String> {
        Ok(match self.replay_policy.as_str() {
            "instant" | "" => ReplayPolicy::Instant,
            "original" => ReplayPolicy::Original,
            other => {
                return Err(format!(
                    "unknown replay policy {other:?}: use instant or original"
                ))
            }
        })
    }

    fn priority_policy(&self) -> Result<PriorityPolicy, String> {
        Ok(match self.priority_policy.as_str() {
            "none" | "" => PriorityPolicy::None,
            "overflow" => PriorityPolicy::Overflow,
            "pinned_client" => PriorityPolicy::PinnedClient,
            "prioritized" => PriorityPolicy::Prioritized,
            other => return Err(format!("unknown priority policy {other:?}: use none, overflow, pinned_client or prioritized")),
        })
    }

    fn filters(&self) -> Result<Vec<Vec<u8>>, String> {
        let one = Some(&self.filter_subject).filter(|filter| !filter.is_empty());
        let filters = one.into_iter().chain(self.filter_subjects.iter().flatten());
        filters
            .map(|filter| match filter.as_bytes() {
                filter if subject::is_valid_subscription(filter) => Ok(filter.to_vec()),
                _ => Err(format!("{filter:?} is not a valid subject: use tokens that are not empty, and '>' only as the last one")),
            })
            .collect()
    }

    fn option(&self, key: &str) -> Option<&str> {
        let metadata = self.metadata.as_ref()?;
        metadata.get(key).map(String::as_str)
    }

    fn key(&self) -> Result<Option<Key>, String> {
        let Some(text) = self.option(KEY_KEY) else {
            return Ok(None);
        };
        let key = match text.split_once('.') {
            Some(("subject", number)) => number
                .parse()
                .ok()
                .filter(|number| *number > 0)
                .map(Key::SubjectToken),
            Some(("header", name)) if !name.is_empty() => Some(Key::Header(name.to_owned())),
            _ => None,
        };
        key.map(Some)
            .ok_or_else(|| format!("{KEY_KEY} is {text:?}, and not subject.<n> or header.<Name>"))
    }
}

/// Reads what a definition means for messages.
pub fn read(definition: &[u8]) -> Result<ConsumerSettings, String> {
    let ConsumerDefinition {
        name,
        config,
        created,
    } = serde_json::from_slice(definition).map_err(|error| error.to_string())?;
    let names = [&name, &config.name, &config.durable_name];
    let name = names.into_iter().find(|name| !name.is_empty());
    let ack_policy = config.ack_policy()?;
    let priority_policy = config.priority_policy()?;
    let back_off_ns = config.backoff.clone().unwrap_or_default();
    if back_off_ns.iter().any(|wait_ns| *wait_ns < 0) || config.ack_wait < 0 {
        return Err("it does not wait for acknowledgements".to_owned());
    }
    let ack_wait_ns = match (back_off_ns.first(), config.ack_wait, ack_policy) {
        (Some(first_ns), ..) => *first_ns,
        (None, 0, AckPolicy::All | AckPolicy::Explicit) => ACK_WAIT_NS_DEFAULT,
        (None, wait_ns, _) => wait_ns,
    };
    let priority_timeout_ns = match (config.priority_timeout, priority_policy) {
        (..=0, PriorityPolicy::PinnedClient) => PRIORITY_TIMEOUT_NS_DEFAULT,
        (timeout_ns, _) => timeout_ns.max(0),
    };
    Ok(ConsumerSettings {
        name: name.ok_or("it has no name")?.clone(),
        durable: !config.durable_name.is_empty(),
        created_ns: time(Some(&created))?.unwrap_or(0),
        deliver_policy: config.deliver_policy()?,
        ack_policy,
        replay_policy: config.replay_policy()?,
        ack_wait_ns,
        back_off_ns,
        max_deliver: limit(config.max_deliver),
        filters: config.filters()?,
        rate_limit_bps: config.rate_limit_bps,
        sample_percent: sample_percent(&config.sample_freq)?,
        max_waiting: limit(config.max_waiting).unwrap_or(WAITING_MAX_DEFAULT),
        max_ack_pending: limit(config.max_ack_pending),
        flow_control: config.flow_control || ack_policy == AckPolicy::FlowControl,
        idle_heartbeat_ns: config.idle_heartbeat.max(0),
        headers_only: config.headers_only,
        max_batch: config.max_batch.max(0),
        max_expires_ns: config.max_expires.max(0),
        max_bytes: config.max_bytes.max(0),
        inactive_threshold_ns: config.inactive_threshold.max(0),
        memory_storage: config.mem_storage,
        direct: config.direct,
        sourcing: config.sourcing,
        pause_until_ns: time(config.pause_until.as_deref())?,
        priority_policy,
        priority_timeout_ns,
        key: config.key()?,
        dialect: Dialect::of(config.metadata.as_ref()),
        nak_backoff: config.option(NAK_BACKOFF_KEY) == Some("true"),
        deliver_subject: Some(config.deliver_subject).filter(|subject| !subject.is_empty()),
        deliver_group: Some(config.deliver_group).filter(|group| !group.is_empty()),
        priority_groups: config.priority_groups.unwrap_or_default(),
    })
}

/// Zero and negative values mean no limit.
fn limit<T: TryFrom<i64>>(value: i64) -> Option<T> {
    T::try_from(value).ok().filter(|_| value > 0)
}

fn time(text: Option<&str>) -> Result<Option<i64>, String> {
    match text {
        None | Some("" | NO_TIME) => Ok(None),
        Some(text) => match timestamp::read(text) {
            None => Err(format!(
                "{text:?} is not a valid time: use RFC 3339, such as 2026-01-01T00:00:00Z"
            )),
            time_ns => Ok(time_ns),
        },
    }
}

/// A whole number, with or without a percent sign; above 100 counts as 100. Empty and zero mean no sampling.
fn sample_percent(text: &str) -> Result<Option<u8>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let number = text.strip_suffix('%').unwrap_or(text);
    match number.parse::<i64>() {
        Ok(0) => Ok(None),
        Ok(percent @ 1..) => Ok(Some(percent.min(100) as u8)),
        _ => Err(format!(
            "{text:?} is not a valid sample frequency: use a number of percent, such as 30%"
        )),
    }
}

#[cfg(test)]
#[path = "definition_tests.rs"]
mod tests;
