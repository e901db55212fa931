//! The event of a trace: which server says it, what was asked, and the steps; compressed if the publisher wants that.

use std::collections::BTreeMap;
use std::io::Write;

use serde::Serialize;

use super::steps::{now, TraceStep};
use super::MessageTrace;
use crate::routing::sender::{Outgoing, Sender};
use crate::routing::shared::Shared;

/// What a server with JetStream can do, as bits: JetStream, binary snapshots, accounts of their own for replication.
const JETSTREAM_FLAGS: u64 = 7;

/// How the body of an event is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    Unasked,
    Snappy,
    Gzip,
    /// Something was asked for that this server has not: it says so.
    Identity,
}

impl Encoding {
    /// The one that nats-server takes for such an `Accept-Encoding`.
    pub fn chosen(accepted: &str) -> Self {
        let accepted = accepted.to_ascii_lowercase();
        if accepted.contains("snappy") || accepted.contains("s2") {
            Self::Snappy
        } else if accepted.contains("gzip") {
            Self::Gzip
        } else {
            Self::Identity
        }
    }

    fn header(self) -> &'static [u8] {
        match self {
            Self::Unasked => b"",
            Self::Snappy => b"NATS/1.0\r\nContent-Encoding: snappy\r\n\r\n",
            Self::Gzip => b"NATS/1.0\r\nContent-Encoding: gzip\r\n\r\n",
            Self::Identity => b"NATS/1.0\r\nContent-Encoding: identity\r\n\r\n",
        }
    }

    fn pack(self, body: Vec<u8>) -> std::io::Result<Vec<u8>> {
        match self {
            Self::Unasked | Self::Identity => Ok(body),
            Self::Snappy => {
                let mut encoder = snap::write::FrameEncoder::new(Vec::new());
                encoder.write_all(&body)?;
                encoder.into_inner().map_err(|error| error.into_error())
            }
            Self::Gzip => {
                let level = flate2::Compression::default();
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
                encoder.write_all(&body)?;
                encoder.finish()
            }
        }
    }
}

#[derive(Serialize)]
struct TraceEvent<'a> {
    server: ServerPart<'a>,
    request: RequestPart<'a>,
    #[serde(skip_serializing_if = "is_zero")]
    hops: u32,
    events: &'a [TraceStep],
}

#[derive(Serialize)]
struct ServerPart<'a> {
    name: &'a str,
    host: &'a str,
    id: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    domain: &'a str,
    ver: &'a str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    tags: &'a [String],
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    metadata: &'a BTreeMap<String, String>,
    jetstream: bool,
    flags: u64,
    seq: u64,
    time: String,
}

#[derive(Serialize)]
struct RequestPart<'a> {
    header: &'a BTreeMap<String, Vec<String>>,
    msgsize: usize,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl MessageTrace {
    /// Publishes the event to the destination, in the publisher's account.
    pub fn send(self, shared: &Shared, sender: &mut Sender) {
        let options = shared.options();
        let information = shared.server_information();
        let event = TraceEvent {
            server: ServerPart {
                name: &information.server_name,
                host: &options.host,
                id: &information.server_id,
                domain: options.domain.as_deref().unwrap_or_default(),
                ver: &options.version,
                tags: &options.server_tags,
                metadata: &options.server_metadata,
                jetstream: options.jetstream,
                flags: if options.jetstream {
                    JETSTREAM_FLAGS
                } else {
                    0
                },
                seq: shared.next_event_sequence(),
                time: now(),
            },
            request: RequestPart {
                header: &self.headers,
                msgsize: self.message_bytes,
            },
            hops: self.hops.get(),
            events: &self.steps.borrow(),
        };
        let body = serde_json::to_vec(&event).expect("texts and numbers become JSON");
        // Writing to memory does not fail.
        let payload = self.encoding.pack(body).unwrap_or_default();
        let outgoing = Outgoing {
            subject: &self.destination,
            reply: None,
            header: self.encoding.header(),
            payload: &payload,
        };
        sender.send_now(&self.account, &outgoing);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn encodings_are_chosen_as_by_nats_server() {
        for (accepted, encoding) in [
            ("gzip", Encoding::Gzip),
            ("GZIP, br", Encoding::Gzip),
            ("gzip, Snappy", Encoding::Snappy),
            ("s2", Encoding::Snappy),
            ("br", Encoding::Identity),
        ] {
            assert_eq!(Encoding::chosen(accepted), encoding, "{accepted}");
        }
    }

    #[test]
    fn what_is_packed_can_be_unpacked() {
        let body = b"{}".repeat(100_000);
        let mut text = Vec::new();

        let packed = Encoding::Gzip.pack(body.clone()).unwrap();
        flate2::read::GzDecoder::new(&packed[..])
            .read_to_end(&mut text)
            .unwrap();
        assert_eq!(text, body);

        text.clear();
        let packed = Encoding::Snappy.pack(body.clone()).unwrap();
        snap::read::FrameDecoder::new(&packed[..])
            .read_to_end(&mut text)
            .unwrap();
        assert_eq!(text, body);
    }
}
