//! The advisory that reports a batch that was given up.

use serde::Serialize;

use crate::common::clock::system_ns;
use crate::common::go_json;
use crate::common::random::Random;
use crate::common::timestamp;

const ID_LENGTH: usize = 22;

pub fn subject(stream: &str) -> String {
    format!("$JS.EVENT.ADVISORY.STREAM.BATCH_ABANDONED.{stream}")
}

#[derive(Serialize)]
struct Abandoned<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    id: String,
    timestamp: String,
    stream: &'a str,
    batch: String,
    reason: &'a str,
}

/// Appends the advisory.
pub fn write(out: &mut Vec<u8>, stream: &str, batch: &[u8], reason: &str, random: &mut Random) {
    let body = Abandoned {
        kind: "io.nats.jetstream.advisory.v1.stream_batch_abandoned",
        id: (0..ID_LENGTH)
            .map(|_| char::from(random.letter()))
            .collect(),
        timestamp: timestamp::text(system_ns()),
        stream,
        batch: String::from_utf8_lossy(batch).into_owned(),
        reason,
    };
    go_json::append(out, &body);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_advisory_is_json_with_an_id_of_its_own() {
        let mut out = Vec::new();

        write(&mut out, "S", b"x\"y", "timeout", &mut Random::seeded(1));

        let value: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(value["batch"], "x\"y");
        assert_eq!(value["id"].as_str().unwrap().len(), ID_LENGTH);
    }
}
