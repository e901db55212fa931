//! What a header block asks for: to be traced at all, where to, and whether the message shall go anywhere besides.

use std::collections::BTreeMap;

use crate::wire::trusted_headers::{TRACE_DESTINATION_NAME, TRACE_DISABLED};

const VERSION_LINE: &[u8] = b"NATS/1.0\r\n";

pub const TRACE_ONLY: &str = "Nats-Trace-Only";
pub const ORIGIN_ACCOUNT: &str = "Nats-Trace-Origin-Account";
/// Which of the servers on the way a message was sent on to.
pub const TRACE_HOP: &str = "Nats-Trace-Hop";
pub const ACCEPT_ENCODING: &str = "Accept-Encoding";
/// The header of W3C's trace context, in any case.
const TRACE_PARENT: &[u8] = b"traceparent";

/// All headers of a message that asks to be traced.
#[derive(Debug, PartialEq, Eq)]
pub struct TraceRequest {
    pub headers: BTreeMap<String, Vec<String>>,
    /// Only a trace context asks for it: the account says where to.
    pub external: bool,
}

impl TraceRequest {
    /// The first value of a header.
    pub fn value(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .and_then(|values| values.first())
            .map_or("", String::as_str)
    }

    pub fn is_only(&self) -> bool {
        !self.external
            && matches!(
                self.value(TRACE_ONLY).to_ascii_lowercase().as_str(),
                "1" | "true" | "on"
            )
    }
}

/// Whether a block might ask for a trace. Looks at the beginning of each line and no further.
#[inline]
pub fn is_mentioned(block: &[u8]) -> bool {
    memchr::memchr_iter(b'\n', block).any(|end| {
        let line = &block[end + 1..];
        match line.first() {
            Some(b'N') => line.starts_with(TRACE_DESTINATION_NAME.as_bytes()),
            Some(b't' | b'T') => line
                .get(..TRACE_PARENT.len())
                .is_some_and(|name| name.eq_ignore_ascii_case(TRACE_PARENT)),
            _ => false,
        }
    })
}

/// What a block asks for; nothing if it does not, or says that it must not be traced.
pub fn read(block: &[u8]) -> Option<TraceRequest> {
    let mut rest = block.strip_prefix(VERSION_LINE)?;
    let mut headers: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let (mut names_destination, mut is_sampled) = (false, false);
    while let Some(length) = memchr::memmem::find(rest, b"\r\n") {
        let line = &rest[..length];
        rest = &rest[length + 2..];
        let Some(colon) = memchr::memchr(b':', line) else {
            continue;
        };
        let (name, value) = (&line[..colon], trimmed(&line[colon + 1..]));
        if name.is_empty() || value.is_empty() {
            continue;
        }
        if name == TRACE_DESTINATION_NAME.as_bytes() && !names_destination {
            if value == TRACE_DISABLED {
                return None;
            }
            names_destination = true;
        } else if name.eq_ignore_ascii_case(TRACE_PARENT) {
            is_sampled |= wants_samples(value);
        }
        headers.entry(text(name)).or_default().push(text(value));
    }
    (names_destination || is_sampled).then_some(TraceRequest {
        headers,
        external: !names_destination,
    })
}

/// Whether a trace context says that its message is sampled: the last bit of its flags.
pub fn wants_samples(value: &[u8]) -> bool {
    let parts: Vec<&[u8]> = value.split(|byte| *byte == b'-').collect();
    let [_, _, _, flags] = parts[..] else {
        return false;
    };
    flags.len() == 2
        && std::str::from_utf8(flags)
            .ok()
            .and_then(|flags| i8::from_str_radix(flags, 16).ok())
            .is_some_and(|flags| flags & 1 == 1)
}

fn trimmed(value: &[u8]) -> &[u8] {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let start = value.iter().take_while(|byte| is_blank(byte)).count();
    let value = &value[start..];
    let end = value.iter().rev().take_while(|byte| is_blank(byte)).count();
    &value[..value.len() - end]
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(lines: &str) -> Vec<u8> {
        format!("NATS/1.0\r\n{lines}\r\n").into_bytes()
    }

    #[test]
    fn messages_without_a_trace_header_are_passed_over_at_once() {
        for lines in [
            "",
            "A: 1\r\n",
            "Nats-Msg-Id: 1\r\n",
            "Tracer: x\r\n",
            "t\r\n",
        ] {
            assert!(!is_mentioned(&block(lines)), "{lines}");
            assert_eq!(read(&block(lines)), None);
        }
        assert!(!is_mentioned(b""));
    }

    #[test]
    fn a_destination_asks_for_a_trace_and_all_headers_are_kept() {
        let block =
            block("A: 1\r\nNats-Trace-Dest:  t.1\t\r\nEmpty: \r\nA: 2\r\nNats-Trace-Only: On\r\n");

        assert!(is_mentioned(&block));
        let request = read(&block).unwrap();
        assert!(request.is_only() && !request.external);
        assert_eq!(request.value(TRACE_DESTINATION_NAME), "t.1");
        assert_eq!(request.headers["A"], ["1", "2"]);
        assert!(!request.headers.contains_key("Empty"));
    }

    #[test]
    fn a_trace_context_asks_if_it_is_sampled_and_is_never_a_dry_run() {
        for (flags, asks) in [
            ("01", true),
            ("03", true),
            ("00", false),
            ("81", false),
            ("1", false),
        ] {
            let block = block(&format!(
                "TraceParent: 00-a-b-{flags}\r\nNats-Trace-Only: true\r\n"
            ));

            assert!(is_mentioned(&block));
            let request = read(&block);
            assert_eq!(request.is_some(), asks, "{flags}");
            assert!(request.is_none_or(|request| request.external && !request.is_only()));
        }
    }

    #[test]
    fn what_was_traced_before_is_not_traced_again() {
        let block = block("Nats-Trace-Dest: trace disabled\r\ntraceparent: 00-a-b-01\r\n");

        assert_eq!(read(&block), None);
    }

    #[test]
    fn a_status_line_or_an_unfinished_block_asks_for_nothing() {
        assert_eq!(read(b"NATS/1.0 503\r\nNats-Trace-Dest: t\r\n\r\n"), None);
        assert_eq!(read(b"NATS/1.0\r\nNats-Trace-Dest: t"), None);
    }
}
