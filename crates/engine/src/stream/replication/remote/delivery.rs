//! What a consumer of another server sends: messages, and what becomes of the requests for them.
//!
//! A message says its sequence and its time in the subject on which it would be acknowledged. Invariant: a `Delivery` that exists has a literal subject, a
//! sequence that can be counted on from, and a time.

use crate::common::subject;
use crate::wire::ack_subject;
use crate::wire::reply::Reply;

/// A sequence beyond this is nonsense: nothing could come after it.
const SEQUENCE_MAX: u64 = i64::MAX as u64;

/// The size of a message besides its bytes, for limits.
const OVERHEAD_BYTES: usize = 96;

/// A message of a stream of another server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteDelivery {
    bytes: Box<[u8]>,
    subject_end: usize,
    headers_end: usize,
    pub sequence: u64,
    pub time_ns: i64,
}

impl RemoteDelivery {
    pub fn subject(&self) -> &[u8] {
        &self.bytes[..self.subject_end]
    }

    pub fn headers(&self) -> &[u8] {
        &self.bytes[self.subject_end..self.headers_end]
    }

    pub fn payload(&self) -> &[u8] {
        &self.bytes[self.headers_end..]
    }

    /// What it takes up in memory, about.
    pub fn size_bytes(&self) -> usize {
        self.bytes.len() + OVERHEAD_BYTES
    }
}

/// One thing that a consumer says.
#[derive(Debug, PartialEq, Eq)]
pub enum HeardFrame<'a> {
    Message {
        delivery: RemoteDelivery,
        /// Counts what the consumer has sent.
        consumer_sequence: u64,
        /// How many come after it.
        pending: u64,
        /// Where it is acknowledged.
        reply: &'a [u8],
    },
    /// The request is still there.
    Alive,
    /// The request is over: its status, and the words after it.
    Ended(u16, &'a [u8]),
}

/// Reads a message on the inbox of a request; none if it makes no sense.
pub fn read<'a>(message: &Reply<'a>) -> Option<HeardFrame<'a>> {
    let Reply::Message {
        subject,
        reply,
        header_len,
        body,
        ..
    } = message
    else {
        return None;
    };
    let (headers, payload) = body.split_at_checked(*header_len)?;
    let numbers = reply.and_then(|reply| Some((reply, ack_subject::read(reply)?)));
    let Some((reply, numbers)) = numbers else {
        return read_status(headers);
    };
    let is_sound = (1..SEQUENCE_MAX).contains(&numbers.stream_sequence)
        && (1..SEQUENCE_MAX).contains(&numbers.consumer_sequence)
        && numbers.time_ns >= 0
        && subject::is_literal(subject)
        && !subject::has_empty_token(subject);
    is_sound.then(|| HeardFrame::Message {
        delivery: RemoteDelivery {
            bytes: [*subject, headers, payload].concat().into(),
            subject_end: subject.len(),
            headers_end: subject.len() + headers.len(),
            sequence: numbers.stream_sequence,
            time_ns: numbers.time_ns,
        },
        consumer_sequence: numbers.consumer_sequence,
        pending: match numbers.pending {
            u64::MAX => 0,
            pending => pending,
        },
        reply,
    })
}

fn read_status(headers: &[u8]) -> Option<HeardFrame<'_>> {
    let line = headers.strip_prefix(b"NATS/1.0 ")?;
    let line = &line[..memchr::memchr(b'\r', line)?];
    let (code, words) = line.split_at_checked(3)?;
    let code: u16 = std::str::from_utf8(code).ok()?.parse().ok()?;
    Some(match code {
        100 => HeardFrame::Alive,
        _ => HeardFrame::Ended(code, words.trim_ascii()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::reply::parse_reply;
    use proptest::prelude::*;

    fn heard(bytes: &[u8]) -> Option<HeardFrame<'_>> {
        let (reply, _) = parse_reply(bytes).unwrap().unwrap();
        read(&reply)
    }

    #[test]
    fn a_message_has_sequence_and_time_in_both_shapes() {
        for reply in [
            "$JS.ACK.S.c.1.7.3.5000.35",
            "$JS.ACK.hub.NUmM6cRx.S.c.1.7.3.5000.35",
        ] {
            let frame = format!("HMSG a.b 9 {reply} 12 14\r\nNATS/1.0\r\n\r\nhi\r\n");

            let Some(HeardFrame::Message {
                delivery,
                consumer_sequence,
                pending,
                reply: to,
            }) = heard(frame.as_bytes())
            else {
                panic!("{frame}");
            };

            assert_eq!((delivery.sequence, delivery.time_ns), (7, 5000));
            assert_eq!((consumer_sequence, pending), (3, 35));
            assert_eq!(delivery.subject(), b"a.b");
            assert_eq!(delivery.headers(), b"NATS/1.0\r\n\r\n");
            assert_eq!(delivery.payload(), b"hi");
            assert_eq!(to, reply.as_bytes());
        }
    }

    #[test]
    fn a_status_ends_a_request_or_keeps_it_alive() {
        let alive = b"HMSG i 9 31 31\r\nNATS/1.0 100 Idle Heartbeat\r\n\r\n\r\n";
        let ended = b"HMSG i 9 33 33\r\nNATS/1.0 409 Consumer Deleted  \r\n\r\n\r\n";

        assert_eq!(heard(alive), Some(HeardFrame::Alive));
        assert_eq!(
            heard(ended),
            Some(HeardFrame::Ended(409, b"Consumer Deleted"))
        );
    }

    #[test]
    fn what_makes_no_sense_is_none() {
        for frame in [
            "MSG a 9 2\r\nhi\r\n",
            "MSG a 9 reply 2\r\nhi\r\n",
            "MSG a 9 $JS.ACK.S.c.1.0.3.5000.35 2\r\nhi\r\n",
            "MSG a 9 $JS.ACK.S.c.1.x.3.5000.35 2\r\nhi\r\n",
            "MSG a 9 $JS.ACK.S.c.1.18446744073709551614.3.5000.35 2\r\nhi\r\n",
            "MSG a 9 $JS.ACK.S.c.1.7.3.x.35 2\r\nhi\r\n",
            "MSG a..b 9 $JS.ACK.S.c.1.7.3.5000.35 2\r\nhi\r\n",
            "MSG a.* 9 $JS.ACK.S.c.1.7.3.5000.35 2\r\nhi\r\n",
            "HMSG i 9 12 12\r\nNATS/1.0 x\r\n\r\n",
        ] {
            assert_eq!(heard(frame.as_bytes()), None, "{frame}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_of_a_server_are_too_much(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut position = 0;
            while let Ok(Some((reply, consumed))) = parse_reply(&bytes[position..]) {
                let _ = read(&reply);
                position += consumed;
            }
            prop_assert!(position <= bytes.len());
        }

        #[test]
        fn no_message_of_a_server_is_too_much(
            subject in "[a-z.*> ]{0,12}", reply in "(\\$JS\\.ACK\\.)?[a-z0-9.]{0,60}", headers in "(NATS/1\\.0)?[ -~\r\n]{0,40}", payload in ".{0,20}"
        ) {
            let frame = format!(
                "HMSG {subject} 1 {reply} {} {}\r\n{headers}{payload}\r\n", headers.len(), headers.len() + payload.len()
            );
            if let Ok(Some((reply, _))) = parse_reply(frame.as_bytes()) {
                if let Some(HeardFrame::Message { delivery, .. }) = read(&reply) {
                    prop_assert!(delivery.sequence > 0 && delivery.time_ns >= 0);
                    prop_assert_eq!(delivery.subject().len() + delivery.headers().len() + delivery.payload().len() + OVERHEAD_BYTES, delivery.size_bytes());
                }
            }
        }
    }
}
