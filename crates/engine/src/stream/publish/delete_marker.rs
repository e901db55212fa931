//! Delete markers: what stands on a subject for a while after its last message has expired, so that readers notice.

use super::time_to_live::duration_text;
use crate::wire::stored_headers;

const REASON: &[u8] = b"Nats-Marker-Reason";
const OPERATION: &[u8] = b"KV-Operation";

/// The headers of a marker that stays for so long.
pub fn headers(ttl_ns: i64) -> Vec<u8> {
    let mut headers = Vec::new();
    stored_headers::add(&mut headers, 0, REASON, b"MaxAge");
    let ttl = duration_text(ttl_ns);
    stored_headers::add(&mut headers, 0, b"Nats-TTL", ttl.as_bytes());
    stored_headers::add(&mut headers, 0, b"Nats-Rollup", b"sub");
    headers
}

/// Whether a message is a marker itself: made here, or by a key-value client that purged a key.
pub fn is_one(headers: &[u8]) -> bool {
    stored_headers::value(headers, REASON).is_some()
        || stored_headers::value(headers, OPERATION) == Some(b"PURGE")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_is_what_nats_server_writes() {
        let marker = headers(2_000_000_000);

        assert_eq!(
            marker,
            b"NATS/1.0\r\nNats-Marker-Reason: MaxAge\r\nNats-TTL: 2s\r\nNats-Rollup: sub\r\n\r\n"
        );
        assert!(is_one(&marker));
        assert!(is_one(b"NATS/1.0\r\nKV-Operation: PURGE\r\n\r\n"));
        assert!(!is_one(b"NATS/1.0\r\nKV-Operation: DEL\r\n\r\n"));
    }
}
