//! What a consumer tells whoever listens: that a message was given up, refused, or ended, who is pinned, and how long an acknowledgement took.
//!
//! The fields and their order are nats-server's. Nothing is written unless somebody listens to the subject, so its cost is not that of a message.

use crate::clock::system_ns;
use crate::random::Random;
use crate::stream::moment;

const ID_LENGTH: usize = 22;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// A message was delivered as often as it may be.
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

impl Event<'_> {
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

pub fn subject(stream: &str, consumer: &str, event: &Event<'_>) -> String {
    let (subject, _) = event.kind();
    format!("$JS.EVENT.{subject}.{stream}.{consumer}")
}

/// Appends the advisory.
pub fn write(
    out: &mut Vec<u8>,
    stream: &str,
    consumer: &str,
    account: &str,
    domain: Option<&str>,
    event: &Event<'_>,
    random: &mut Random,
) {
    let (_, kind) = event.kind();
    out.extend_from_slice(b"{\"type\":\"io.nats.jetstream.");
    out.extend_from_slice(kind.as_bytes());
    out.extend_from_slice(b"\",\"id\":\"");
    out.extend(random_letters(random, ID_LENGTH));
    out.extend_from_slice(b"\",\"timestamp\":\"");
    moment::write(out, system_ns());
    out.push(b'"');
    if event.is_of_group() && !account.is_empty() {
        put_text(out, "account", account.as_bytes());
    }
    put_text(out, "stream", stream.as_bytes());
    put_text(out, "consumer", consumer.as_bytes());
    let domain = domain.filter(|domain| !domain.is_empty());
    if let Some(domain) = domain.filter(|_| event.is_of_group()) {
        put_text(out, "domain", domain.as_bytes());
    }
    put_event(out, event);
    if let Some(domain) = domain.filter(|_| !event.is_of_group()) {
        put_text(out, "domain", domain.as_bytes());
    }
    out.push(b'}');
}

/// Letters and digits that nobody else draws, as long as they are not few.
pub fn random_text(random: &mut Random, length: usize) -> String {
    random_letters(random, length).map(char::from).collect()
}

fn random_letters(random: &mut Random, length: usize) -> impl Iterator<Item = u8> + '_ {
    (0..length).map(|_| random.letter())
}

fn put_event(out: &mut Vec<u8>, event: &Event<'_>) {
    match *event {
        Event::MaxDeliveries {
            stream_sequence,
            deliveries,
        } => {
            put_number(out, "stream_seq", stream_sequence);
            put_number(out, "deliveries", deliveries);
        }
        Event::Nak {
            consumer_sequence,
            stream_sequence,
            deliveries,
        } => {
            put_number(out, "consumer_seq", consumer_sequence);
            put_number(out, "stream_seq", stream_sequence);
            put_number(out, "deliveries", deliveries);
        }
        Event::Terminated {
            consumer_sequence,
            stream_sequence,
            deliveries,
            reason,
        } => {
            put_number(out, "consumer_seq", consumer_sequence);
            put_number(out, "stream_seq", stream_sequence);
            put_number(out, "deliveries", deliveries);
            if !reason.is_empty() {
                put_text(out, "reason", reason);
            }
        }
        Event::Pinned { group, pinned_id } => {
            put_text(out, "group", group.as_bytes());
            put_text(out, "pinned_id", pinned_id.as_bytes());
        }
        Event::Unpinned { group, reason } => {
            put_text(out, "group", group.as_bytes());
            put_text(out, "reason", reason.as_bytes());
        }
        Event::Acknowledged {
            consumer_sequence,
            stream_sequence,
            ack_time_ns,
            deliveries,
        } => {
            put_number(out, "consumer_seq", consumer_sequence);
            put_number(out, "stream_seq", stream_sequence);
            put_number(out, "ack_time", ack_time_ns);
            put_number(out, "deliveries", deliveries);
        }
    }
}

fn put_key(out: &mut Vec<u8>, key: &str) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(key.as_bytes());
    out.extend_from_slice(b"\":");
}

fn put_number(out: &mut Vec<u8>, key: &str, number: impl itoa::Integer) {
    put_key(out, key);
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// A reason comes from a client, so it may be any bytes: each that is no Unicode becomes U+FFFD.
fn put_text(out: &mut Vec<u8>, key: &str, text: &[u8]) {
    put_key(out, key);
    out.push(b'"');
    for chunk in text.utf8_chunks() {
        for character in chunk.valid().chars() {
            put_character(out, character);
        }
        for _ in chunk.invalid() {
            put_character(out, char::REPLACEMENT_CHARACTER);
        }
    }
    out.push(b'"');
}

fn put_character(out: &mut Vec<u8>, character: char) {
    const HEXADECIMAL: &[u8; 16] = b"0123456789abcdef";
    let short = match character {
        '"' | '\\' => character as u8,
        '\u{08}' => b'b',
        '\u{0c}' => b'f',
        '\n' => b'n',
        '\r' => b'r',
        '\t' => b't',
        // Dangerous in a web page, or no line of JavaScript.
        '\0'..' ' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
            out.extend_from_slice(b"\\u");
            let number = character as usize;
            out.extend([12, 8, 4, 0].map(|shift| HEXADECIMAL[number >> shift & 15]));
            return;
        }
        other => {
            let mut bytes = [0; 4];
            out.extend_from_slice(other.encode_utf8(&mut bytes).as_bytes());
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The advisory, with its id and time taken out.
    fn written(event: Event<'_>, domain: Option<&str>) -> String {
        let mut out = Vec::new();
        write(
            &mut out,
            "S",
            "C",
            "$G",
            domain,
            &event,
            &mut Random::seeded(1),
        );
        let value: serde_json::Value = serde_json::from_slice(&out).unwrap();
        let (id, time) = (
            value["id"].as_str().unwrap(),
            value["timestamp"].as_str().unwrap(),
        );
        assert_eq!(id.len(), ID_LENGTH);
        assert!(moment::read(time).is_some());
        let text = String::from_utf8(out).unwrap();
        text.replace(&format!(",\"id\":\"{id}\",\"timestamp\":\"{time}\""), "")
    }

    #[test]
    fn events_are_written_as_nats_server_writes_them() {
        let exceeded = Event::MaxDeliveries {
            stream_sequence: 1,
            deliveries: 2,
        };
        let naked = Event::Nak {
            consumer_sequence: 65,
            stream_sequence: 49,
            deliveries: 1,
        };
        let acknowledged = Event::Acknowledged {
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
        let pinned = Event::Pinned {
            group: "g",
            pinned_id: "qg5hoK7GtOBLxV9ByfiS6o",
        };
        let unpinned = Event::Unpinned {
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
        let terminated = |reason| Event::Terminated {
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
        let event = Event::MaxDeliveries {
            stream_sequence: 1,
            deliveries: 2,
        };

        assert_eq!(
            subject("S", "C", &event),
            "$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.S.C"
        );
    }
}
