//! What the server says when a batch has been given up, for whoever listens.

use super::acknowledgement::put_text;
use super::moment;
use crate::clock::system_ns;
use crate::random::Random;

const ID_LENGTH: usize = 22;

pub fn subject(stream: &str) -> String {
    format!("$JS.EVENT.ADVISORY.STREAM.BATCH_ABANDONED.{stream}")
}

/// Appends the advisory.
pub fn write(out: &mut Vec<u8>, stream: &str, batch: &[u8], reason: &str, random: &mut Random) {
    out.extend_from_slice(
        b"{\"type\":\"io.nats.jetstream.advisory.v1.stream_batch_abandoned\",\"id\":\"",
    );
    for _ in 0..ID_LENGTH {
        out.push(random.letter());
    }
    out.extend_from_slice(b"\",\"timestamp\":\"");
    moment::write(out, system_ns());
    out.extend_from_slice(b"\",\"stream\":");
    put_text(out, stream);
    out.extend_from_slice(b",\"batch\":");
    put_text(out, &String::from_utf8_lossy(batch));
    out.extend_from_slice(b",\"reason\":");
    put_text(out, reason);
    out.push(b'}');
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
