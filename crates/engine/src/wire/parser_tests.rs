//! The rules of the client protocol, each on plain bytes.

use super::*;
use proptest::prelude::*;

const LIMITS: ParserLimits = ParserLimits {
    control_line_bytes_max: 4096,
    payload_bytes_max: 1024,
    headers: true,
};

fn operation(buffer: &[u8]) -> (Operation<'_>, usize) {
    match parse(buffer, &LIMITS) {
        ParserStep::Operation {
            operation,
            consumed,
        } => (operation, consumed),
        other => panic!("no operation: {other:?}"),
    }
}

fn refused(buffer: &[u8]) -> ProtocolViolation {
    match parse(buffer, &LIMITS) {
        ParserStep::Refused(refusal) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn a_publish_keeps_its_size_text() {
    let (operation, consumed) = operation(b"PUB foo 002\r\nhi\r\nPING\r\n");

    assert_eq!(consumed, 17);
    let Operation::Publish(publish) = operation else {
        panic!("{operation:?}")
    };
    assert_eq!(
        (publish.subject, publish.total_size_text, publish.body),
        (&b"foo"[..], &b"002"[..], &b"hi"[..])
    );
}

#[test]
fn a_header_publish_is_split_into_header_and_payload() {
    let (operation, _) = operation(b"hpub\tfoo bar 12  14 \nNATS/1.0\r\n\r\nhi\r\n");

    let Operation::Publish(publish) = operation else {
        panic!("{operation:?}")
    };
    assert_eq!(publish.reply, Some(&b"bar"[..]));
    assert_eq!(publish.header(), b"NATS/1.0\r\n\r\n");
    assert_eq!(publish.payload(), b"hi");
}

#[test]
fn headers_larger_than_the_message_are_refused() {
    assert_eq!(
        refused(b"HPUB a 5 4\r\nabcd\r\n"),
        ProtocolViolation::BadArguments
    );
}

#[test]
fn wrong_argument_counts_are_refused() {
    for line in [
        &b"PUB a\r\n"[..],
        b"PUB a b c 1\r\n",
        b"SUB a\r\n",
        b"SUB a b c d\r\n",
        b"UNSUB  \r\n",
        b"UNSUB 1 2 3\r\n",
        b"HPUB a 1\r\n",
        b"PUB a b c d e f g\r\n",
    ] {
        assert_eq!(refused(line), ProtocolViolation::BadArguments, "{line:?}");
    }
}

#[test]
fn sizes_have_one_to_nine_digits() {
    for size in [
        "-1",
        "+1",
        "1234567890",
        "0x1",
        "1.0",
        "99999999999999999999",
    ] {
        assert_eq!(
            refused(format!("PUB a {size}\r\n").as_bytes()),
            ProtocolViolation::BadArguments,
            "{size}"
        );
    }
}

#[test]
fn a_payload_over_the_limit_is_refused_before_it_arrives() {
    assert_eq!(
        refused(b"PUB a 1025\r\n"),
        ProtocolViolation::PayloadTooLarge
    );
}

#[test]
fn the_payload_must_end_in_carriage_return_and_line_feed() {
    assert_eq!(
        refused(b"PUB a 2\r\nhi\n"),
        ProtocolViolation::UnknownOperation
    );
    assert_eq!(
        refused(b"PUB a 2\r\nhix"),
        ProtocolViolation::UnknownOperation
    );
    assert_eq!(
        refused(b"PUB a 2\r\nhi\rx"),
        ProtocolViolation::UnknownOperation
    );
}

#[test]
fn the_control_line_limit_counts_the_arguments_only() {
    let fits = format!("SUB {} 1\r\n", "a".repeat(4094));
    let too_long = format!("SUB {} 1\r\n", "a".repeat(4095));
    let unfinished = format!("SUB {}", "a".repeat(4097));

    assert!(matches!(
        parse(fits.as_bytes(), &LIMITS),
        ParserStep::Operation { .. }
    ));
    assert_eq!(
        refused(too_long.as_bytes()),
        ProtocolViolation::ControlLineTooLong
    );
    assert_eq!(
        refused(unfinished.as_bytes()),
        ProtocolViolation::ControlLineTooLong
    );
}

#[test]
fn names_are_read_in_any_case_and_wrong_bytes_are_refused_at_once() {
    assert_eq!(operation(b"pInGxyz\r\n").0, Operation::Ping);
    assert_eq!(operation(b"+ok\r\n").0, Operation::Acknowledged);
    assert_eq!(operation(b"CONNECT{}\r\n").0, Operation::Connect(b"{}"));
    for line in [
        &b"PX"[..],
        b"\r\n",
        b" PING\r\n",
        b"MSG a 1 0\r\n",
        b"LS+ a\r\n",
        b"PUB\r\n",
        b"SUBa",
    ] {
        assert_eq!(
            refused(line),
            ProtocolViolation::UnknownOperation,
            "{line:?}"
        );
    }
}

#[test]
fn a_maximum_of_zero_or_no_number_ends_the_subscription_now() {
    for (line, expected) in [
        (&b"UNSUB 1\r\n"[..], None),
        (b"UNSUB 1 0\r\n", None),
        (b"UNSUB 1 x\r\n", None),
        (b"UNSUB 1 5\r\n", Some(5)),
    ] {
        assert_eq!(
            operation(line).0,
            Operation::Unsubscribe {
                sid: b"1",
                delivered_max: expected
            }
        );
    }
}

#[test]
fn every_prefix_of_a_valid_operation_is_incomplete_and_asks_for_what_is_missing() {
    for whole in [
        &b"HPUB foo bar 12 14\r\nNATS/1.0\r\n\r\nhi\r\n"[..],
        b"CONNECT {\"verbose\":false}\r\n",
        b"SUB foo.> queue 9\r\n",
        b"PING\r\n",
        b"-ERR 'x'\r\n",
        b"INFO {}\r\n",
    ] {
        for length in 0..whole.len() {
            match parse(&whole[..length], &LIMITS) {
                ParserStep::Incomplete { bytes_needed } => {
                    assert!(
                        bytes_needed > length && bytes_needed <= whole.len(),
                        "{length} of {whole:?}: {bytes_needed}"
                    );
                }
                other => panic!("{length} of {whole:?}: {other:?}"),
            }
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_parsed_refused_or_incomplete_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let mut rest = &bytes[..];
        loop {
            match parse(rest, &LIMITS) {
                ParserStep::Operation { consumed, .. } => {
                    prop_assert!(consumed > 0 && consumed <= rest.len());
                    rest = &rest[consumed..];
                }
                ParserStep::Incomplete { bytes_needed } => {
                    prop_assert!(bytes_needed > rest.len());
                    break;
                }
                ParserStep::Refused(_) => break,
            }
        }
    }

    #[test]
    fn a_stream_of_operations_reads_the_same_wherever_it_is_split(
        picks in proptest::collection::vec(0usize..6, 1..20),
        split in any::<proptest::sample::Index>(),
    ) {
        let samples: [&[u8]; 6] = [b"PING\r\n", b"PUB a 3\r\nabc\r\n", b"HPUB a r 2 3\r\nabc\r\n", b"SUB a q 1\r\n", b"UNSUB 1 4\r\n", b"PUB b 0\r\n\r\n"];
        let stream: Vec<u8> = picks.iter().flat_map(|pick| samples[*pick]).copied().collect();
        let cut = split.index(stream.len());
        let whole = names(&stream).0;
        let (mut parts, used) = names(&stream[..cut]);
        parts.extend(names(&stream[used..]).0);
        prop_assert_eq!(whole, parts);
    }
}

fn names(mut rest: &[u8]) -> (Vec<String>, usize) {
    let mut found = Vec::new();
    let mut used = 0;
    while let ParserStep::Operation {
        operation,
        consumed,
    } = parse(rest, &LIMITS)
    {
        found.push(format!("{operation:?}"));
        used += consumed;
        rest = &rest[consumed..];
    }
    (found, used)
}
