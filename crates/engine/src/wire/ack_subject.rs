//! The reply subject of a delivered message, which says all that is needed to acknowledge it, and the reply subject of a flow control request.
//!
//! | written as                                                                  | tokens      |
//! |-----------------------------------------------------------------------------|-------------|
//! | `$JS.ACK.<stream>.<consumer>.<delivered>.<stream seq>.<consumer seq>.<time>.<pending>` | 9           |
//! | `$JS.ACK.<domain>.<account>.<stream>.<consumer>.…` the same five numbers     | 11 or more  |
//! | `$JS.ACK.<stream>.<consumer>.<delivered>.<stream seq>.<consumer seq>`, in the dialect of 2020 | 7 |
//! | `$JS.A.<set>.<observable>.<delivered>.<set seq>.<observable seq>`, in that of 2019 | 7      |
//! | `$JS.FC.<stream>.<consumer>.<four letters>`                                 | 5           |
//! | `$JS.FC.<domain>.<account>.<stream>.<consumer>.<four letters>`              | 7           |
//!
//! Which shape is written is a matter of the server and of the consumer's dialect; all are read. Written and read once per message, so nothing is allocated.
//! Invariant: what `encode` writes, `read` reads back; the shapes of the dialects without time and pending.

use std::sync::Arc;

use super::dialect::Dialect;
use crate::common::permissions::Permissions;
use crate::common::random::Random;

/// Subjects of acknowledgements begin so.
pub const ACK: &[u8] = b"$JS.ACK.";
pub const ACK_OF_2019: &[u8] = b"$JS.A.";
const FLOW_CONTROL: &[u8] = b"$JS.FC.";

/// Distinguishes one flow control request from the last one.
const FLOW_CONTROL_LETTERS: usize = 4;

/// Tokens after the prefix: two names and five numbers, and in the long shape two more names before them.
const SHORT_TOKENS: usize = 7;
/// In the old dialects three numbers.
const OLD_TOKENS: usize = 5;
const LONG_TOKENS: usize = 9;

/// An invalid number. nats-server goes on with it, as no message has this sequence.
const NO_NUMBER: u64 = u64::MAX;

/// The numbers of an acknowledgement's subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AckSubject {
    /// How often the message was delivered, with this time.
    pub delivered_count: u64,
    pub stream_sequence: u64,
    pub consumer_sequence: u64,
    /// When the message was stored.
    pub time_ns: i64,
    /// How many messages come after this one.
    pub pending: u64,
}

/// What all subjects of one consumer begin with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AckPrefix {
    acknowledgement: Box<[u8]>,
    flow_control: Box<[u8]>,
    /// Three numbers are all.
    is_old: bool,
}

impl AckPrefix {
    /// With domain and account hash it is the long shape; a server without a domain has an empty one.
    pub fn new(
        stream: &str,
        consumer: &str,
        origin: Option<(&str, &str)>,
        dialect: Option<Dialect>,
    ) -> Self {
        let origin = origin.filter(|_| dialect.is_none());
        let origin = origin.map_or(String::new(), |(domain, account_hash)| {
            let domain = if domain.is_empty() { "_" } else { domain };
            format!("{domain}.{account_hash}.")
        });
        let names = format!("{origin}{stream}.{consumer}.");
        let start = match dialect {
            Some(Dialect::Of2019) => ACK_OF_2019,
            Some(Dialect::Of2020) | None => ACK,
        };
        Self {
            is_old: dialect.is_some(),
            acknowledgement: [start, names.as_bytes()].concat().into(),
            flow_control: [FLOW_CONTROL, names.as_bytes()].concat().into(),
        }
    }

    /// Appends the subject.
    #[inline]
    pub fn encode(&self, numbers: &AckSubject, out: &mut Vec<u8>) {
        let mut digits = itoa::Buffer::new();
        out.extend_from_slice(&self.acknowledgement);
        for number in [
            numbers.delivered_count,
            numbers.stream_sequence,
            numbers.consumer_sequence,
        ] {
            out.extend_from_slice(digits.format(number).as_bytes());
            out.push(b'.');
        }
        if self.is_old {
            out.pop();
            return;
        }
        out.extend_from_slice(digits.format(numbers.time_ns).as_bytes());
        out.push(b'.');
        out.extend_from_slice(digits.format(numbers.pending).as_bytes());
    }

    /// Appends the subject of a new flow control request.
    pub fn encode_flow_control(&self, random: &mut Random, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.flow_control);
        for _ in 0..FLOW_CONTROL_LETTERS {
            out.push(random.letter());
        }
    }
}

/// Reads the numbers of any shape. One that is not a decimal number, or too large, becomes the largest; a time then is -1.
#[inline]
pub fn read(subject: &[u8]) -> Option<AckSubject> {
    let [delivered, stream, consumer, time, pending] = split(subject)?;
    Some(AckSubject {
        delivered_count: number(delivered).unwrap_or(NO_NUMBER),
        stream_sequence: number(stream).unwrap_or(NO_NUMBER),
        consumer_sequence: number(consumer).unwrap_or(NO_NUMBER),
        time_ns: number(time)
            .and_then(|time_ns| i64::try_from(time_ns).ok())
            .unwrap_or(-1),
        pending: number(pending).unwrap_or(NO_NUMBER),
    })
}

/// The five numbers of a subject as texts.
#[inline]
fn split(subject: &[u8]) -> Option<[&[u8]; 5]> {
    let rest = subject
        .strip_prefix(ACK)
        .or_else(|| subject.strip_prefix(ACK_OF_2019))?;
    let mut tokens: [&[u8]; LONG_TOKENS] = [b""; LONG_TOKENS];
    let mut count = 0;
    let mut start = 0;
    for end in memchr::memchr_iter(b'.', rest).chain([rest.len()]) {
        // In the long shape more tokens may follow, which say nothing yet.
        if count == LONG_TOKENS {
            break;
        }
        tokens[count] = &rest[start..end];
        count += 1;
        start = end + 1;
    }
    match (count, tokens) {
        (SHORT_TOKENS, [_, _, a, b, c, d, e, ..]) | (LONG_TOKENS, [_, _, _, _, a, b, c, d, e]) => {
            Some([a, b, c, d, e])
        }
        (OLD_TOKENS, [_, _, a, b, c, ..]) => Some([a, b, c, b"0", b"0"]),
        _ => None,
    }
}

/// Digits only, without a sign.
#[inline]
fn number(token: &[u8]) -> Option<u64> {
    /// A number of this many digits never overflows.
    const SAFE_DIGITS: usize = 19;
    if token.is_empty() {
        return None;
    }
    let mut value = 0u64;
    for (place, byte) in token.iter().enumerate() {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = if place < SAFE_DIGITS {
            value * 10 + u64::from(digit)
        } else {
            value.checked_mul(10)?.checked_add(u64::from(digit))?
        };
    }
    Some(value)
}

/// Whether a client with these permissions may acknowledge by this subject. One of 2019 needs the right to one of today's, so that a rule
/// about `$JS.ACK` holds for both.
pub fn is_allowed(subject: &[u8], permissions: Option<&Arc<Permissions>>) -> bool {
    match (permissions, subject.strip_prefix(ACK_OF_2019)) {
        (Some(permissions), Some(tail)) => permissions.allows_publish(&[ACK, tail].concat()),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NUMBERS: AckSubject = AckSubject {
        delivered_count: 1,
        stream_sequence: 7,
        consumer_sequence: 3,
        time_ns: 1_794_767_851_320_417_605,
        pending: 35,
    };

    fn encoded(prefix: &AckPrefix, numbers: &AckSubject) -> String {
        let mut out = Vec::new();
        prefix.encode(numbers, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn both_shapes_are_written_as_nats_server_writes_them() {
        let short = AckPrefix::new("X", "c1", None, None);
        let long = AckPrefix::new("X", "c1", Some(("hub", "NUmM6cRx")), None);
        let without_domain = AckPrefix::new("X", "c1", Some(("", "NUmM6cRx")), None);

        assert_eq!(
            encoded(&short, &NUMBERS),
            "$JS.ACK.X.c1.1.7.3.1794767851320417605.35"
        );
        assert_eq!(
            encoded(&long, &NUMBERS),
            "$JS.ACK.hub.NUmM6cRx.X.c1.1.7.3.1794767851320417605.35"
        );
        assert!(encoded(&without_domain, &NUMBERS).starts_with("$JS.ACK._.NUmM6cRx.X.c1.1."));
    }

    #[test]
    fn the_old_dialects_have_three_numbers() {
        for (dialect, subject) in [
            (Dialect::Of2019, "$JS.A.X.c1.1.7.3"),
            (Dialect::Of2020, "$JS.ACK.X.c1.1.7.3"),
        ] {
            let prefix = AckPrefix::new("X", "c1", Some(("hub", "h")), Some(dialect));

            assert_eq!(encoded(&prefix, &NUMBERS), subject);
            let read = read(subject.as_bytes()).unwrap();
            let numbers = [
                read.delivered_count,
                read.stream_sequence,
                read.consumer_sequence,
            ];
            assert_eq!(numbers, [1, 7, 3]);
        }
    }

    #[test]
    fn what_is_no_shape_is_none() {
        for subject in [
            "",
            "$JS.ACK",
            "$JS.ACK.",
            "$JS.ACK.S.C.1.2.3.4",
            "$JS.ACK.S.C.1.2.3.4.5.6",
            "$JS.FC.S.C.1.2.3.4.5",
            "$js.ACK.S.C.1.2.3.4.5",
            "$JS.ACKS.C.1.2.3.4.5",
        ] {
            assert_eq!(read(subject.as_bytes()), None, "{subject}");
        }
    }

    #[test]
    fn tokens_after_the_long_shape_say_nothing() {
        let numbers = read(b"$JS.ACK.hub.h.S.C.1.2.3.4.5.x.y.z").unwrap();

        assert_eq!(numbers.stream_sequence, 2);
        assert_eq!(numbers.pending, 5);
    }

    #[test]
    fn a_token_that_is_no_number_is_a_message_that_does_not_exist() {
        let numbers = read(b"$JS.ACK.S.C.+1.x.18446744073709551616..-5").unwrap();

        assert_eq!(numbers.delivered_count, u64::MAX);
        assert_eq!(numbers.stream_sequence, u64::MAX);
        assert_eq!(numbers.consumer_sequence, u64::MAX);
        assert_eq!(numbers.time_ns, -1);
        assert_eq!(numbers.pending, u64::MAX);
        let numbers = read(b"$JS.ACK.S.C.01.0002.18446744073709551615.4.0").unwrap();
        assert_eq!(numbers.delivered_count, 1);
        assert_eq!(numbers.stream_sequence, 2);
        assert_eq!(numbers.consumer_sequence, u64::MAX);
    }

    #[test]
    fn flow_control_requests_differ() {
        let prefix = AckPrefix::new("S", "C", Some(("hub", "h")), None);
        let mut random = Random::seeded(1);
        let mut draw = || {
            let mut out = Vec::new();
            prefix.encode_flow_control(&mut random, &mut out);
            out
        };

        let (first, second) = (draw(), draw());

        assert!(first.starts_with(b"$JS.FC.hub.h.S.C."));
        assert_eq!(first.len(), b"$JS.FC.hub.h.S.C.wHIB".len());
        assert_ne!(first, second);
    }

    proptest! {
        #[test]
        fn what_is_written_can_be_read(
            delivered_count: u64, stream_sequence: u64, consumer_sequence: u64, time_ns in 0..=i64::MAX, pending: u64, is_long: bool
        ) {
            let prefix = AckPrefix::new("S", "C", is_long.then_some(("hub", "h")), None);
            let numbers = AckSubject { delivered_count, stream_sequence, consumer_sequence, time_ns, pending };
            prop_assert_eq!(read(encoded(&prefix, &numbers).as_bytes()), Some(numbers));
        }

        #[test]
        fn any_subject_is_read(subject in "(\\$JS\\.(ACK|FC)\\.)?[.0-9a-z$-]{0,60}") {
            let _ = read(subject.as_bytes());
        }
    }
}
