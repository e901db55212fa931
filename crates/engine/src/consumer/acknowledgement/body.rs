//! What a client says about a message that was delivered to it: the body of an acknowledgement.
//!
//! | body                               | meaning                                                     |
//! |------------------------------------|-------------------------------------------------------------|
//! | empty, `+ACK`, `+OK`               | done                                                        |
//! | `+NXT`, and a pull request or none | done, and more                                              |
//! | `-NAK`                             | again, now                                                  |
//! | `-NAK 1.5s`, `-NAK {"delay":ns}`   | again, later; an invalid delay is again, now                |
//! | `+WPI`                             | still at work                                               |
//! | `+TERM`, and a reason or none      | never again                                                 |
//!
//! A reason, a delay or a request may follow without a blank; nothing may follow the other three. Read once per message; only a delay in JSON whose key has
//! escapes allocates.

use crate::common::go_duration;
use crate::common::json_text::Object;
use crate::common::white_space::trim;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AckBody<'a> {
    Acknowledge,
    /// Acknowledged; the rest is a pull request.
    Next(&'a [u8]),
    Nak {
        /// None is at once. Zero and less is as soon as what waits is looked at.
        delay_ns: Option<i64>,
    },
    Progress,
    Terminate {
        /// Without white space around it; may be empty, and may be no Unicode.
        reason: &'a [u8],
    },
    /// Means nothing; it is answered all the same.
    Unknown,
}

#[inline]
pub fn read(body: &[u8]) -> AckBody<'_> {
    match body {
        b"" | b"+ACK" | b"+OK" => AckBody::Acknowledge,
        [b'+', b'N', b'X', b'T', request @ ..] => AckBody::Next(request),
        [b'-', b'N', b'A', b'K', delay @ ..] => AckBody::Nak {
            delay_ns: read_delay(trim(delay)),
        },
        b"+WPI" => AckBody::Progress,
        [b'+', b'T', b'E', b'R', b'M', reason @ ..] => AckBody::Terminate {
            reason: trim(reason),
        },
        _ => AckBody::Unknown,
    }
}

fn read_delay(text: &[u8]) -> Option<i64> {
    match text.first()? {
        b'{' => read_options(text),
        _ => go_duration::parse(text),
    }
}

/// An object without a delay has one of zero.
fn read_options(text: &[u8]) -> Option<i64> {
    let mut delay_ns = 0;
    for member in Object::read(text).ok()?.members() {
        if member.is("delay") {
            delay_ns = member.integer("time.Duration").ok()?.unwrap_or(delay_ns);
        }
    }
    Some(delay_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_may_follow_an_acknowledgement_or_a_sign_of_work() {
        for body in ["", "+ACK", "+OK"] {
            assert_eq!(read(body.as_bytes()), AckBody::Acknowledge);
        }
        assert_eq!(read(b"+WPI"), AckBody::Progress);
        for body in [
            "+ACK ", " +ACK", "+ACKfoo", "+ack", "+WPI ", "+NX", "-NA", "+TER", "garbage", "+",
        ] {
            assert_eq!(read(body.as_bytes()), AckBody::Unknown, "{body}");
        }
    }

    #[test]
    fn what_follows_next_is_a_request() {
        assert_eq!(read(b"+NXT"), AckBody::Next(b""));
        assert_eq!(read(b"+NXTfoo"), AckBody::Next(b"foo"));
        assert_eq!(read(b"+NXT 5"), AckBody::Next(b" 5"));
    }

    #[test]
    fn a_reason_has_no_white_space_around_it() {
        for (body, reason) in [
            (&b"+TERM"[..], &b""[..]),
            (b"+TERM ", b""),
            (b"+TERM  because of it ", b"because of it"),
            (b"+TERMfoo", b"foo"),
            (b"+TERMS\n", b"S"),
            (b"+TERM \xc2\xa0x\xc2\x85", b"x"),
            (b"+TERM \xff", b"\xff"),
        ] {
            assert_eq!(read(body), AckBody::Terminate { reason });
        }
    }

    #[test]
    fn delays_are_read_as_nats_server_reads_them() {
        for (body, delay_ns) in [
            ("-NAK", None),
            ("-NAK  ", None),
            ("-NAKx", None),
            ("-NAK 1", None),
            ("-NAK 300ms x", None),
            ("-NAK []", None),
            ("-NAK {", None),
            ("-NAK {\"delay\":\"50ms\"}", None),
            ("-NAK {\"delay\":1.5}", None),
            ("-NAK {\"delay\":1} x", None),
            ("-NAK 0", Some(0)),
            ("-NAK -1s", Some(-1_000_000_000)),
            ("-NAK 50ms", Some(50_000_000)),
            ("-NAK50ms", Some(50_000_000)),
            ("-NAK\t\n50ms\u{b}", Some(50_000_000)),
            ("-NAK .05s", Some(50_000_000)),
            ("-NAK {\"delay\":50000000}", Some(50_000_000)),
            ("-NAK {\"Delay\":50000000,\"delay\":null}", Some(50_000_000)),
            ("-NAK{\"delay\":-5}", Some(-5)),
            ("-NAK {\"delay\":1,\"delay\":2,\"other\":[{}]}", Some(2)),
            ("-NAK {}", Some(0)),
        ] {
            assert_eq!(read(body.as_bytes()), AckBody::Nak { delay_ns }, "{body}");
        }
    }

    proptest! {
        #[test]
        fn any_body_is_read(body in proptest::collection::vec(any::<u8>(), 0..24), kind in 0..4usize) {
            let start = [&b""[..], b"-NAK ", b"-NAK {\"delay\":", b"+TERM"][kind];
            let _ = read(&[start, &body].concat());
        }
    }
}
