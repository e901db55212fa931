//! The protocol between servers, operation by operation.

use super::*;

const LIMITS: ParserLimits = ParserLimits {
    control_line_bytes_max: 256,
    payload_bytes_max: 64,
    headers: true,
};

fn operation(bytes: &[u8]) -> LeafOperation<'_> {
    match parse_leaf(bytes, &LIMITS) {
        LeafStep::Operation {
            operation,
            consumed,
        } => {
            assert_eq!(consumed, bytes.len());
            operation
        }
        other => panic!("{other:?}"),
    }
}

fn message(bytes: &[u8]) -> LeafMessage<'_> {
    match operation(bytes) {
        LeafOperation::Message(message) => message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn interest_is_read_with_and_without_a_queue_group() {
    let interest = |bytes| match operation(bytes) {
        LeafOperation::Interest(wanted) => (wanted.subject, wanted.queue, wanted.weight),
        other => panic!("{other:?}"),
    };

    assert_eq!(interest(b"LS+ a.>\r\n"), (&b"a.>"[..], None, 1));
    assert_eq!(
        interest(b"ls+ a workers 3\r\n"),
        (&b"a"[..], Some(&b"workers"[..]), 3)
    );
    assert_eq!(
        operation(b"LS- a workers\r\n"),
        LeafOperation::InterestEnded(LeafSubject {
            subject: b"a",
            queue: Some(b"workers"),
            weight: 0
        })
    );
}

#[test]
fn messages_are_read_in_all_forms() {
    for (bytes, subject, reply, queues, payload) in [
        (&b"LMSG a 2\r\nhi\r\n"[..], "a", None, "", "hi"),
        (b"LMSG a r.1 0\r\n\r\n", "a", Some("r.1"), "", ""),
        (b"LMSG a | q1 q2 1\r\nx\r\n", "a", None, "q1 q2", "x"),
        (b"LMSG a + r q1 1\r\nx\r\n", "a", Some("r"), "q1", "x"),
    ] {
        let message = message(bytes);

        assert_eq!(message.publish.subject, subject.as_bytes());
        assert_eq!(message.publish.reply, reply.map(str::as_bytes));
        assert_eq!(message.queues, queues.as_bytes());
        assert_eq!(message.publish.payload(), payload.as_bytes());
    }
}

#[test]
fn messages_with_headers_say_where_the_headers_end() {
    let bytes = b"HMSG a + r q1 q2 12 14\r\nNATS/1.0\r\n\r\nhi\r\n";

    let message = message(bytes);

    assert_eq!(message.publish.header(), b"NATS/1.0\r\n\r\n");
    assert_eq!(message.publish.payload(), b"hi");
    assert_eq!(message.queues, b"q1 q2");
}

#[test]
fn what_is_wrong_is_refused() {
    for (bytes, refusal) in [
        (&b"SUB a 1\r\n"[..], ProtocolViolation::UnknownOperation),
        (b"LSx a\r\n", ProtocolViolation::UnknownOperation),
        (b"LS+ \r\n", ProtocolViolation::BadArguments),
        (b"LS+ a q x\r\n", ProtocolViolation::BadArguments),
        (b"LS- a q x\r\n", ProtocolViolation::BadArguments),
        (b"LMSG a\r\n", ProtocolViolation::BadArguments),
        (b"LMSG 1\r\n", ProtocolViolation::BadArguments),
        (b"LMSG a b c 1\r\nx\r\n", ProtocolViolation::BadArguments),
        (b"LMSG a + r 1\r\nx\r\n", ProtocolViolation::BadArguments),
        (b"HMSG a 5 2\r\n", ProtocolViolation::BadArguments),
        (b"LMSG a 65\r\n", ProtocolViolation::PayloadTooLarge),
        (b"LMSG a 1\r\nxyz", ProtocolViolation::UnknownOperation),
    ] {
        assert_eq!(
            parse_leaf(bytes, &LIMITS),
            LeafStep::Refused(refusal),
            "{}",
            String::from_utf8_lossy(bytes)
        );
    }
    let long = [&b"LS+ "[..], &[b'a'; 300], b"\r\n"].concat();
    assert_eq!(
        parse_leaf(&long, &LIMITS),
        LeafStep::Refused(ProtocolViolation::ControlLineTooLong)
    );
}

#[test]
fn every_beginning_of_an_operation_is_incomplete() {
    for bytes in [
        &b"LS+ a q 2\r\n"[..],
        b"LS- a\r\n",
        b"HMSG a r 12 14\r\nNATS/1.0\r\n\r\nhi\r\n",
        b"INFO {}\r\n",
        b"-ERR 'x'\r\n",
        b"PING\r\n",
    ] {
        for length in 0..bytes.len() {
            match parse_leaf(&bytes[..length], &LIMITS) {
                LeafStep::Incomplete { bytes_needed } => assert!(bytes_needed > length),
                other => panic!("{:?}: {other:?}", &bytes[..length]),
            }
        }
    }
}

proptest::proptest! {
    #[test]
    fn no_bytes_make_it_consume_more_than_there_are(bytes: Vec<u8>) {
        if let LeafStep::Operation { consumed, .. } = parse_leaf(&bytes, &LIMITS) {
            assert!(consumed > 0 && consumed <= bytes.len());
        }
    }
}
