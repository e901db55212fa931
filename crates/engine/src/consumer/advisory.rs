//! Advisories of a consumer: a message was given up, refused or ended, a client pinned, an acknowledgement measured.
//!
//! The fields and their order are nats-server's. Nothing is written without a subscriber, so it costs less than a message.

use serde::Serialize;

use super::core::PassContext;
use super::delivery::outbound::Outbound;
use crate::common::clock::system_ns;
use crate::common::go_json;
use crate::common::random::Random;
use crate::common::timestamp;

const ID_LENGTH: usize = 22;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advisory<'a> {
    /// A message has used up its deliveries.
    MaxDeliveries {
        stream_sequence: u64,
        deliveries: u64,
    },
    Nak {
        consumer_sequence: u64,
        stream_sequence: u64,
        deliveries: u64,
    },
    Terminated {
        consumer_sequence: u64,
        stream_sequence: u64,
        deliveries: u64,
        /// Left out if empty.
        reason: &'a [u8],
    },
    Pinned {
        group: &'a str,
        pinned_id: &'a str,
    },
    Unpinned {
        group: &'a str,
        /// `admin` or `timeout`.
        reason: &'a str,
    },
    /// The metric of an acknowledgement.
    Acknowledged {
        consumer_sequence: u64,
        stream_sequence: u64,
        /// Since the last delivery.
        ack_time_ns: i64,
        deliveries: u64,
    },
}

impl Advisory<'_> {
    /// What its subject begins with, and its type.
    fn kind(&self) -> (&'static str, &'static str) {
        match self {
            Self::MaxDeliveries { .. } => (
                "ADVISORY.CONSUMER.MAX_DELIVERIES",
                "advisory.v1.max_deliver",
            ),
            Self::Nak { .. } => ("ADVISORY.CONSUMER.MSG_NAKED", "advisory.v1.nak"),
            Self::Terminated { .. } => {
                ("ADVISORY.CONSUMER.MSG_TERMINATED", "advisory.v1.terminated")
            }
            Self::Pinned { .. } => (
                "ADVISORY.CONSUMER.PINNED",
                "advisory.v1.consumer_group_pinned",
            ),
            Self::Unpinned { .. } => (
                "ADVISORY.CONSUMER.UNPINNED",
                "advisory.v1.consumer_group_unpinned",
            ),
            Self::Acknowledged { .. } => ("METRIC.CONSUMER.ACK", "metric.v1.consumer_ack"),
        }
    }

    /// Those of groups name the account, and the domain before what happened.
    fn is_of_group(&self) -> bool {
        matches!(self, Self::Pinned { .. } | Self::Unpinned { .. })
    }
}

pub fn subject(stream: &str, consumer: &str, event: &Advisory<'_>) -> String {
    let (subject, _) = event.kind();
    format!("$JS.EVENT.{subject}.{stream}.{consumer}")
}

/// An advisory as JSON, in nats-server's order.
#[derive(Serialize)]
struct AdvisoryBody<'a> {
    #[serde(rename = "type")]
    kind: String,
    id: String,
    timestamp: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    account: Option<&'a str>,
    stream: &'a str,
    consumer: &'a str,
    #[serde(rename = "domain", skip_serializing_if = "Option::is_none")]
    domain_of_group: Option<&'a str>,
    #[serde(flatten)]
    fields: Fields<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    domain: Option<&'a str>,
}

/// What an advisory says beside who says it.
#[derive(Default, Serialize)]
struct Fields<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    consumer_seq: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_seq: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ack_time: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deliveries: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pinned_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl<'a> Fields<'a> {
    fn of(event: &Advisory<'a>) -> Self {
        match *event {
            Advisory::MaxDeliveries {
                stream_sequence,
                deliveries,
            } => Self {
                stream_seq: Some(stream_sequence),
                deliveries: Some(deliveries),
                ..Self::default()
            },
            Advisory::Nak {
                consumer_sequence,
                stream_sequence,
                deliveries,
            } => Self {
                consumer_seq: Some(consumer_sequence),
                stream_seq: Some(stream_sequence),
                deliveries: Some(deliveries),
                ..Self::default()
            },
            Advisory::Terminated {
                consumer_sequence,
                stream_sequence,
                deliveries,
                reason,
            } => Self {
                consumer_seq: Some(consumer_sequence),
                stream_seq: Some(stream_sequence),
                deliveries: Some(deliveries),
                reason: (!reason.is_empty()).then(|| go_json::lossy_text(reason)),
                ..Self::default()
            },
            Advisory::Pinned { group, pinned_id } => Self {
                group: Some(group),
                pinned_id: Some(pinned_id),
                ..Self::default()
            },
            Advisory::Unpinned { group, reason } => Self {
                group: Some(group),
                reason: Some(reason.to_owned()),
                ..Self::default()
            },
            Advisory::Acknowledged {
                consumer_sequence,
                stream_sequence,
                ack_time_ns,
                deliveries,
            } => Self {
                consumer_seq: Some(consumer_sequence),
                stream_seq: Some(stream_sequence),
                ack_time: Some(ack_time_ns),
                deliveries: Some(deliveries),
                ..Self::default()
            },
        }
    }
}

/// Who an advisory is about.
pub struct AdvisorySource<'a> {
    pub stream: &'a str,
    pub consumer: &'a str,
    pub account: &'a str,
    pub domain: Option<&'a str>,
}

/// Appends the advisory.
pub fn write(
    out: &mut Vec<u8>,
    about: &AdvisorySource<'_>,
    event: &Advisory<'_>,
    random: &mut Random,
) {
    let (_, kind) = event.kind();
    let domain = about.domain.filter(|domain| !domain.is_empty());
    let is_of_group = event.is_of_group();
    let body = AdvisoryBody {
        kind: format!("io.nats.jetstream.{kind}"),
        id: random.text(ID_LENGTH),
        timestamp: timestamp::text(system_ns()),
        account: (is_of_group && !about.account.is_empty()).then_some(about.account),
        stream: about.stream,
        consumer: about.consumer,
        domain_of_group: domain.filter(|_| is_of_group),
        fields: Fields::of(event),
        domain: domain.filter(|_| !is_of_group),
    };
    go_json::append(out, &body);
}

/// Publishes what happens to a consumer, while that happens.
pub struct AdvisoryPublisher<'a> {
    pub context: &'a PassContext<'a>,
    pub random: &'a mut Random,
    pub out: &'a mut Outbound,
}

impl AdvisoryPublisher<'_> {
    /// Publishes an advisory, if anybody listens.
    pub fn publish(&mut self, event: &Advisory<'_>) {
        let context = self.context;
        let subject = subject(context.stream, context.consumer, event);
        let (routes, _) = context.account.find(subject.as_bytes());
        if routes.plain.is_empty() && routes.groups.is_empty() {
            return;
        }
        let mut payload = Vec::new();
        let about = AdvisorySource {
            stream: context.stream,
            consumer: context.consumer,
            account: &context.account.name,
            domain: context.domain,
        };
        write(&mut payload, &about, event, self.random);
        self.out.plain(subject.as_bytes(), &payload);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The advisory, with its id and time taken out.
    fn written(event: Advisory<'_>, domain: Option<&str>) -> String {
        let mut out = Vec::new();
        let about = AdvisorySource {
            stream: "S",
            consumer: "C",
            account: "$G",
            domain,
        };
        write(&mut out, &about, &event, &mut Random::seeded(1));
        let value: serde_json::Value = serde_json::from_slice(&out).unwrap();
        let (id, time) = (
            value["id"].as_str().unwrap(),
            value["timestamp"].as_str().unwrap(),
        );
        assert_eq!(id.len(), ID_LENGTH);
        assert!(timestamp::read(time).is_some());
        let text = String::from_utf8(out).unwrap();
        text.replace(&format!(",\"id\":\"{id}\",\"timestamp\":\"{time}\""), "")
    }

    #[test]
    fn events_are_written_as_nats_server_writes_them() {
        let exceeded = Advisory::MaxDeliveries {
            stream_sequence: 1,
            deliveries: 2,
        };
        let naked = Advisory::Nak {
            consumer_sequence: 65,
            stream_sequence: 49,
            deliveries: 1,
        };
        let acknowledged = Advisory::Acknowledged {
            consumer_sequence: 1,
            stream_sequence: 2,
            ack_time_ns: 100_701_168,
            deliveries: 1,
        };

        assert_eq!(
            written(exceeded, None),
            r#"{"type":"io.nats.jetstream.advisory.v1.max_deliver","stream":"S","consumer":"C","stream_seq":1,"deliveries":2}"#
        );
        assert_eq!(
            written(naked, Some("hub")),
            r#"{"type":"io.nats.jetstream.advisory.v1.nak","stream":"S","consumer":"C","consumer_seq":65,"stream_seq":49,"deliveries":1,"domain":"hub"}"#
        );
        assert_eq!(
            written(acknowledged, Some("hub")),
            r#"{"type":"io.nats.jetstream.metric.v1.consumer_ack","stream":"S","consumer":"C","consumer_seq":1,"stream_seq":2,"ack_time":100701168,"deliveries":1,"domain":"hub"}"#
        );
    }

    #[test]
    fn those_of_groups_name_the_account_and_have_the_domain_in_the_middle() {
        let pinned = Advisory::Pinned {
            group: "g",
            pinned_id: "qg5hoK7GtOBLxV9ByfiS6o",
        };
        let unpinned = Advisory::Unpinned {
            group: "g",
            reason: "timeout",
        };

        assert_eq!(
            written(pinned, Some("hub")),
            r#"{"type":"io.nats.jetstream.advisory.v1.consumer_group_pinned","account":"$G","stream":"S","consumer":"C","domain":"hub","group":"g","pinned_id":"qg5hoK7GtOBLxV9ByfiS6o"}"#
        );
        assert_eq!(
            written(unpinned, None),
            r#"{"type":"io.nats.jetstream.advisory.v1.consumer_group_unpinned","account":"$G","stream":"S","consumer":"C","group":"g","reason":"timeout"}"#
        );
    }

    #[test]
    fn a_reason_may_be_anything() {
        let terminated = |reason| Advisory::Terminated {
            consumer_sequence: 3,
            stream_sequence: 3,
            deliveries: 1,
            reason,
        };
        let start = r#"{"type":"io.nats.jetstream.advisory.v1.terminated","stream":"S","consumer":"C","consumer_seq":3,"stream_seq":3,"deliveries":1"#;

        assert_eq!(written(terminated(b""), None), format!("{start}}}"));
        assert_eq!(
            written(terminated(b"because <a>&\"b\""), Some("hub")),
            format!(r#"{start},"reason":"because \u003ca\u003e\u0026\"b\"","domain":"hub"}}"#)
        );
        assert_eq!(
            written(terminated(b"\xff\xfe\xe2\x82x\xe2\x80\xa8\x7f\x08\x0c\x01\t"), None),
            format!("{start},\"reason\":\"\u{fffd}\u{fffd}\u{fffd}\u{fffd}x\\u2028\u{7f}\\b\\f\\u0001\\t\"}}")
        );
    }

    #[test]
    fn subjects_name_the_stream_and_the_consumer() {
        let event = Advisory::MaxDeliveries {
            stream_sequence: 1,
            deliveries: 2,
        };

        assert_eq!(
            subject("S", "C", &event),
            "$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.S.C"
        );
    }
}
