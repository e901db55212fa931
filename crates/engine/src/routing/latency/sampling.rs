//! Which requests are measured: some of a hundred, and those whose tracing headers say that they are sampled.
//!
//! Invariant: the headers are read only if chance has not chosen the request already, and are the ones that nats-server knows: Jaeger's, Zipkin's B3 in both forms and
//! W3C's trace context, in this order.

use std::collections::BTreeMap;

use crate::common::random::Random;
use crate::routing::message_trace::request::wants_samples;

const VERSION_LINE: &[u8] = b"NATS/1.0";

const JAEGER: &str = "Uber-Trace-Id";
const JAEGER_BAGGAGE_PREFIX: &str = "Uberctx-";
const B3: &str = "B3";
const B3_SAMPLED: &str = "X-B3-Sampled";
const B3_TRACE: &str = "X-B3-Traceid";
const B3_OF_SPANS: [&str; 4] = [B3_SAMPLED, B3_TRACE, "X-B3-Parentspanid", "X-B3-Spanid"];
const TRACE_PARENT: &str = "Traceparent";
const TRACE_STATE: &str = "Tracestate";

pub type Headers = BTreeMap<String, Vec<String>>;

/// The headers that made a request part of the sample, none if chance did; `None` if it is not part of it.
pub fn sampled(percent: u8, block: &[u8], random: &mut Random) -> Option<Headers> {
    if percent >= 100 {
        return Some(Headers::new());
    }
    // One more than asked for, as nats-server does it.
    if percent > 0 && random.below(100) <= usize::from(percent) {
        return Some(Headers::new());
    }
    asked_by(&read(block))
}

/// The headers that ask for a measurement; `None` if none does.
fn asked_by(headers: &Headers) -> Option<Headers> {
    let first = |name: &str| headers.get(name).and_then(|values| values.first());
    let with = |names: &[&str]| -> Headers {
        let named = names.iter().filter_map(|name| headers.get_key_value(*name));
        named
            .map(|(name, values)| (name.clone(), values.clone()))
            .collect()
    };
    if let Some(value) = first(JAEGER) {
        return jaeger_is_sampled(value).then(|| {
            let baggage = headers
                .iter()
                .filter(|(name, _)| name.starts_with(JAEGER_BAGGAGE_PREFIX));
            let mut found = with(&[JAEGER]);
            found.extend(baggage.map(|(name, values)| (name.clone(), values.clone())));
            found
        });
    }
    match first(B3_SAMPLED).map(String::as_str) {
        Some("1") => return Some(with(&B3_OF_SPANS)),
        Some("0") => return None,
        _ if headers.contains_key(B3_TRACE) => return Some(with(&B3_OF_SPANS)),
        _ => {}
    }
    if let Some(value) = first(B3) {
        let parts: Vec<&str> = value.split('-').collect();
        let is_denied = parts.get(2) == Some(&"0") || parts == ["0"];
        return (!is_denied).then(|| with(&[B3]));
    }
    let value = first(TRACE_PARENT)?;
    wants_samples(value.as_bytes()).then(|| with(&[TRACE_PARENT, TRACE_STATE]))
}

/// `479fefe9525eddb:5adb976bfc1f95c1:479fefe9525eddb:1`: the last digit of the flags.
fn jaeger_is_sampled(value: &str) -> bool {
    let parts: Vec<&str> = value.split(':').collect();
    let [_, _, _, flags] = parts[..] else {
        return false;
    };
    let last = flags.chars().last().and_then(|last| last.to_digit(16));
    flags.len() <= 2 && last.is_some_and(|last| last & 1 == 1)
}

/// All headers, by the names that Go gives them: `uber-trace-id` is `Uber-Trace-Id`.
fn read(block: &[u8]) -> Headers {
    let mut headers = Headers::new();
    let text = String::from_utf8_lossy(block);
    if !block.starts_with(VERSION_LINE) {
        return headers;
    }
    for line in text.split("\r\n").skip(1) {
        if let Some((name, value)) = line.split_once(':') {
            let values: &mut Vec<String> = headers.entry(canonical(name)).or_default();
            values.push(value.trim_matches([' ', '\t']).to_owned());
        }
    }
    headers
}

fn canonical(name: &str) -> String {
    let mut starts_word = true;
    name.chars()
        .map(|letter| {
            let cased = if starts_word {
                letter.to_ascii_uppercase()
            } else {
                letter.to_ascii_lowercase()
            };
            starts_word = letter == '-';
            cased
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(lines: &str) -> Option<Vec<String>> {
        let block = format!("NATS/1.0\r\n{lines}\r\n\r\n");
        let found = sampled(0, block.as_bytes(), &mut Random::seeded(1));
        found.map(|headers| headers.into_keys().collect())
    }

    #[test]
    fn tracing_headers_choose_requests_as_on_nats_server() {
        for (lines, expected) in [
            ("", None),
            ("A: 1", None),
            ("uber-trace-id: a:b:c:1", Some(vec![JAEGER])),
            ("Uber-Trace-Id: a:b:c:01", Some(vec![JAEGER])),
            ("Uber-Trace-Id: a:b:c:0", None),
            ("Uber-Trace-Id: a:b:c:001", None),
            ("Uber-Trace-Id: a:b:1", None),
            (
                "uberctx-x: y\r\nuber-trace-id: a:b:c:1",
                Some(vec![JAEGER, "Uberctx-X"]),
            ),
            ("X-B3-Sampled: 1", Some(vec![B3_SAMPLED])),
            ("X-B3-Sampled: 0\r\nX-B3-TraceId: a", None),
            (
                "X-B3-TraceId: a\r\nX-B3-SpanId: b",
                Some(vec!["X-B3-Spanid", B3_TRACE]),
            ),
            ("b3: 0", None),
            ("b3: a-b-0-c", None),
            ("b3: a-b-1-c", Some(vec![B3])),
            ("traceparent: 00-a-b-00", None),
            (
                "traceparent: 00-a-b-01\r\ntracestate: s",
                Some(vec![TRACE_PARENT, TRACE_STATE]),
            ),
        ] {
            let expected: Option<Vec<String>> =
                expected.map(|names: Vec<&str>| names.into_iter().map(str::to_owned).collect());
            assert_eq!(asked(lines), expected, "{lines}");
        }
    }

    #[test]
    fn chance_chooses_all_or_some() {
        let mut random = Random::seeded(3);
        let mut chosen = |percent| {
            let all = (0..10_000).filter(|_| sampled(percent, b"", &mut random).is_some());
            all.count()
        };

        assert_eq!(chosen(100), 10_000);
        assert_eq!(chosen(0), 0);
        let half = chosen(50);
        assert!((4_500..5_700).contains(&half), "{half}");
    }
}
