//! What is asked of another server's API: what the stream is, and a consumer that reads it.
//!
//! Where messages stay, the consumer acknowledges nothing and goes with the connection. Where messages go once they are acknowledged, it stays, and every
//! reader of it begins where its last acknowledgement was. An answer is read as far as it is needed, and no further.

use serde::de::DeserializeOwned;
use serde::Deserialize;
use serde_json::json;

use super::connection::RemoteConnection;
use super::trouble::Trouble;
use crate::common::short_hash::hash8;
use crate::common::timestamp;
use crate::stream::replication::origin::Origin;

/// A consumer without a reader is deleted after this long.
const INACTIVE_NS: u64 = 60_000_000_000;

/// A message that is not acknowledged is redelivered after this long, and a reader that starts over does not wait for
/// that: a full stream here must not make the other server resend everything repeatedly.
const ACK_WAIT_NS: u64 = 22 * 3_600_000_000_000;

/// Nobody has it.
const CONSUMER_NOT_FOUND: u16 = 10014;

/// What the other server says about a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OriginStream {
    /// Distinguishes it from another of its name, created later.
    pub identity: String,
    pub first_sequence: u64,
    /// Messages are kept until they are acknowledged, not longer.
    pub is_consumed: bool,
}

/// Where a reader begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadStart {
    Sequence(u64),
    Time(i64),
}

#[derive(Deserialize)]
struct OriginAnswer<Body> {
    error: Option<ApiError>,
    #[serde(flatten)]
    body: Option<Body>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ApiError {
    code: u16,
    err_code: u16,
    description: String,
}

#[derive(Deserialize)]
struct StreamAnswer {
    created: String,
    config: OriginStreamConfig,
    state: OriginStreamState,
}

#[derive(Deserialize)]
struct OriginStreamConfig {
    #[serde(default)]
    retention: String,
}

#[derive(Deserialize)]
struct OriginStreamState {
    #[serde(default)]
    first_seq: u64,
}

#[derive(Deserialize)]
struct OriginConsumerAnswer {
    #[serde(default)]
    num_pending: u64,
}

/// Reads an answer, or why there is none.
fn read<Body: DeserializeOwned>(answer: &[u8]) -> Result<Body, Trouble> {
    let nonsense = || Trouble::NotUnderstood("an answer of its API makes no sense");
    let answer: OriginAnswer<Body> = serde_json::from_slice(answer).map_err(|_| nonsense())?;
    if let Some(error) = answer.error {
        return Err(Trouble::api(error.code, error.err_code, &error.description));
    }
    answer.body.ok_or_else(nonsense)
}

/// Reads the answer to `STREAM.INFO`.
pub fn read_stream(answer: &[u8]) -> Result<OriginStream, Trouble> {
    let answer: StreamAnswer = read(answer)?;
    Ok(OriginStream {
        identity: hash8(&answer.created),
        first_sequence: answer.state.first_seq,
        is_consumed: !matches!(answer.config.retention.as_str(), "limits" | ""),
    })
}

/// Reads the answer to a request for a consumer: how many messages are there for it.
pub fn read_consumer(answer: &[u8]) -> Result<u64, Trouble> {
    read::<OriginConsumerAnswer>(answer).map(|answer| answer.num_pending)
}

/// The API of the other server, for one stream of it.
pub struct OriginApi<'a> {
    pub api: &'a str,
    pub origin: &'a Origin,
    /// Of the consumer.
    pub name: &'a str,
}

impl OriginApi<'_> {
    fn subject(&self, verb: &str, consumer: &str) -> String {
        let tail = if consumer.is_empty() { "" } else { "." };
        format!("{}.{verb}.{}{tail}{consumer}", self.api, self.origin.name)
    }

    pub fn find_stream(&self, connection: &mut RemoteConnection) -> Result<OriginStream, Trouble> {
        read_stream(&connection.request(&self.subject("STREAM.INFO", ""), b"")?)
    }

    /// Makes the consumer, or restarts it after what was acknowledged; returns how many messages are there for it.
    pub fn begin(
        &self,
        connection: &mut RemoteConnection,
        found: &OriginStream,
        start: ReadStart,
    ) -> Result<u64, Trouble> {
        if found.is_consumed {
            let info = connection.request(&self.subject("CONSUMER.INFO", self.name), b"")?;
            match read_consumer(&info) {
                Ok(_) => return self.reset(connection),
                Err(Trouble::Api { error_code, .. }) if error_code == CONSUMER_NOT_FOUND => {}
                Err(trouble) => return Err(trouble),
            }
        }
        let body = self.consumer(found, start).to_string();
        let subject = self.subject("CONSUMER.CREATE", self.name);
        read_consumer(&connection.request(&subject, body.as_bytes())?)
    }

    fn reset(&self, connection: &mut RemoteConnection) -> Result<u64, Trouble> {
        let answer = connection.request(&self.subject("CONSUMER.RESET", self.name), b"");
        match answer {
            Ok(answer) => read_consumer(&answer),
            Err(Trouble::Refused(_)) => Err(Trouble::Refused(
                "it cannot reset consumers, which a stream that keeps messages only until they are taken needs: it takes nats-server 2.14 or later".to_owned(),
            )),
            Err(trouble) => Err(trouble),
        }
    }

    fn consumer(&self, found: &OriginStream, start: ReadStart) -> serde_json::Value {
        let mut config = json!({ "name": self.name, "replay_policy": "instant" });
        if found.is_consumed {
            config["durable_name"] = self.name.into();
            config["ack_policy"] = "explicit".into();
            config["ack_wait"] = ACK_WAIT_NS.into();
        } else {
            config["ack_policy"] = "none".into();
            config["inactive_threshold"] = INACTIVE_NS.into();
            config["mem_storage"] = true.into();
            config["num_replicas"] = 1.into();
        }
        // Where messages go once they are taken, all that are there are wanted, and a work queue gives them no other way.
        match start {
            _ if found.is_consumed => config["deliver_policy"] = "all".into(),
            ReadStart::Sequence(sequence) => {
                config["deliver_policy"] = "by_start_sequence".into();
                config["opt_start_seq"] = sequence.max(1).into();
            }
            ReadStart::Time(time_ns) => {
                let mut text = Vec::new();
                timestamp::write(&mut text, time_ns);
                config["deliver_policy"] = "by_start_time".into();
                config["opt_start_time"] = String::from_utf8_lossy(&text).into();
            }
        }
        let filters = self.origin.filters.iter();
        let filters: Vec<&str> = filters.map(|filter| filter.subject.as_str()).collect();
        match filters.as_slice() {
            _ if self.origin.takes_everything() => {}
            [filter] => config["filter_subject"] = (*filter).into(),
            filters => config["filter_subjects"] = filters.into(),
        }
        json!({ "stream_name": self.origin.name, "config": config, "action": "" })
    }

    /// Where requests for messages go.
    pub fn next_subject(&self) -> String {
        self.subject("CONSUMER.MSG.NEXT", self.name)
    }

    /// Appends a request that the consumer goes; nobody waits for an answer.
    pub fn put_deletion(&self, out: &mut Vec<u8>) {
        let subject = self.subject("CONSUMER.DELETE", self.name);
        out.extend_from_slice(format!("PUB {subject} 0\r\n\r\n").as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::replication::origin::Parts;
    use proptest::prelude::*;

    fn origin(transforms: Vec<(&str, &str)>) -> Origin {
        Origin::new(Parts {
            name: "O",
            external: None,
            consumer: None,
            is_mirror: false,
            filter: "",
            transforms,
            start_sequence: 0,
            start_time_ns: None,
        })
        .unwrap()
    }

    #[test]
    fn answers_say_what_there_is_or_why_not() {
        let found = read_stream(
            br#"{"type":"x","config":{"name":"O","retention":"workqueue"},"created":"2026-01-01T00:00:00Z","state":{"first_seq":3,"last_seq":9}}"#,
        );
        let missing = read_stream(
            br#"{"type":"x","error":{"code":404,"err_code":10059,"description":"stream not found"}}"#,
        );

        let expected = OriginStream {
            identity: hash8("2026-01-01T00:00:00Z"),
            first_sequence: 3,
            is_consumed: true,
        };
        assert_eq!(found, Ok(expected));
        assert_eq!(missing, Err(Trouble::api(404, 10059, "stream not found")));
        assert_eq!(read_consumer(br#"{"num_pending":7}"#), Ok(7));
        for nonsense in [&b""[..], b"[]", b"{}", b"{\"created\":1}", b"\xff"] {
            assert!(read_stream(nonsense).is_err());
        }
    }

    #[test]
    fn a_consumer_has_the_filters_and_the_start_of_its_origin() {
        let origin = origin(vec![("a.*", ""), ("b", "c")]);
        let api = OriginApi {
            api: "$JS.hub.API",
            origin: &origin,
            name: "N",
        };
        let mut found = OriginStream {
            identity: String::new(),
            first_sequence: 1,
            is_consumed: false,
        };

        let plain = api.consumer(&found, ReadStart::Sequence(5));
        let timed = api.consumer(&found, ReadStart::Time(1_500_000_000));
        found.is_consumed = true;
        let durable = api.consumer(&found, ReadStart::Sequence(5));

        assert_eq!(plain["config"]["filter_subjects"], json!(["a.*", "b"]));
        assert_eq!(plain["config"]["opt_start_seq"], 5);
        assert_eq!(plain["config"]["ack_policy"], "none");
        assert_eq!(timed["config"]["opt_start_time"], "1970-01-01T00:00:01.5Z");
        assert_eq!(durable["config"]["durable_name"], "N");
        assert_eq!(durable["config"]["deliver_policy"], "all");
        assert_eq!(api.next_subject(), "$JS.hub.API.CONSUMER.MSG.NEXT.O.N");
    }

    proptest! {
        #[test]
        fn no_answer_is_too_much(answer in ".{0,200}") {
            let is_object = answer.trim_start().starts_with("{");
            prop_assert!(read_stream(answer.as_bytes()).is_err());
            prop_assert!(read_consumer(answer.as_bytes()).is_err() || is_object);
        }
    }
}
