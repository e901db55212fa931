//! Tests of counters; what they expect was seen on nats-server 2.15.

use super::*;
use proptest::prelude::*;

fn number(text: &str) -> Number {
    Number::read(text.as_bytes()).unwrap()
}

fn payload(counter: &Counter) -> String {
    let mut out = Vec::new();
    counter.put_payload(&mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn increments_are_digits_with_at_most_one_sign() {
    for (text, expected) in [
        ("1", "1"),
        ("+5", "5"),
        ("-5", "-5"),
        ("007", "7"),
        ("-0", "0"),
        (
            "123456789012345678901234567890",
            "123456789012345678901234567890",
        ),
    ] {
        assert_eq!(number(text).to_string(), expected);
    }
    for text in [
        "", "+", "-", "+-1", "1 ", " 1", "1_0", "0x1", "1.0", "1e3", "٣",
    ] {
        assert_eq!(Number::read(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn only_an_increment_that_stands_alone_is_taken() {
    let check = |headers: &str, payload: &[u8], is_counter| {
        let block = format!("NATS/1.0\r\n{headers}\r\n");
        let headers = PublishHeaders::read(block.as_bytes());
        check_increment(&headers, payload, is_counter)
            .map(|increment| increment.map(|number| number.to_string()))
    };

    assert_eq!(check("Nats-Incr: +2\r\n", b"", true), Ok(Some("2".into())));
    assert_eq!(check("Nats-Incr:\r\n", b"", true), Ok(None));
    assert_eq!(check("", b"payload", false), Ok(None));
    let invalid = Err(CounterError::IncrementInvalid);
    assert_eq!(check("Nats-Incr: x\r\n", b"payload", false), invalid);
    let disabled = Err(CounterError::Disabled);
    assert_eq!(check("Nats-Incr: 1\r\n", b"payload", false), disabled);
    let present = Err(CounterError::PayloadPresent);
    assert_eq!(check("Nats-Incr: 1\r\n", b"payload", true), present);
    for other in [
        "Rollup: sub",
        "Expected-Stream: S",
        "Expected-Last-Msg-Id: 1",
        "Expected-Last-Sequence: 0",
        "Expected-Last-Subject-Sequence: 0",
        "Expected-Last-Subject-Sequence-Subject: a",
    ] {
        let headers = format!("Nats-Incr: 1\r\nNats-{other}\r\n");
        assert_eq!(check(&headers, b"", true), invalid, "{other}");
    }
    let fine = "Nats-Incr: 1\r\nNats-Msg-Id: a\r\nNats-Rollup:\r\n";
    assert_eq!(check(fine, b"", true), Ok(Some("1".into())));
}

#[test]
fn a_counter_goes_on_from_its_last_message() {
    let mut counter = Counter::read(b"", br#"{"val":"-3"}"#).unwrap();

    counter.add(&number("+5"));

    assert_eq!(payload(&counter), r#"{"val":"2"}"#);
    assert_eq!(counter.sources_header(), None);
}

#[test]
fn what_holds_no_total_is_broken() {
    for text in ["", "12", "[]", "[\"1\"]", "{\"val\":1}", "{", "x"] {
        let read = Counter::read(b"", text.as_bytes());
        assert_eq!(read, Err(CounterError::Broken), "{text}");
    }
    for (text, total) in [
        ("{}", "0"),
        ("null", "0"),
        ("{\"val\":null}", "0"),
        (" { \"val\" : \"+12x\" } ", "12"),
        ("{\"val\":\"x\"}", "0"),
    ] {
        let read = Counter::read(b"", text.as_bytes()).unwrap();
        assert_eq!(read.total.to_string(), total, "{text}");
    }
    let broken = b"NATS/1.0\r\nNats-Counter-Sources: {\"a\":1}\r\n\r\n";
    let read = Counter::read(broken, br#"{"val":"1"}"#);
    assert_eq!(read, Err(CounterError::Broken));
}

#[test]
fn of_another_stream_only_the_growth_is_added() {
    let mut counter = Counter::default();
    let source = b"CT 7 > > ct.a";

    let first = counter.add_sourced(source, b"mine", br#"{"val":"3"}"#);
    let second = counter.add_sourced(source, b"mine", br#"{"val":"10"}"#);
    let other = counter.add_sourced(b"Older 1", b"mine", br#"{"val":"-1"}"#);

    let growth = [first, second, other].map(|growth| growth.unwrap().to_string());
    assert_eq!(growth, ["3", "7", "-1"]);
    assert_eq!(payload(&counter), r#"{"val":"9"}"#);
    let header = counter.sources_header().unwrap();
    assert_eq!(header, r#"{"CT":{"ct.a":"10"},"Older":{"mine":"-1"}}"#);
    let block = format!("NATS/1.0\r\nNats-Counter-Sources: {header}\r\n\r\n");
    let again = Counter::read(block.as_bytes(), payload(&counter).as_bytes());
    assert_eq!(again, Ok(counter));
}

#[test]
fn sources_are_written_as_nats_server_writes_them() {
    let headers = "NATS/1.0\r\nNats-Counter-Sources: {\"b\":null,\"a<\":{\"x\":null}}\r\n\r\n";

    let counter = Counter::read(headers.as_bytes(), b"{}").unwrap();

    let header = counter.sources_header().unwrap();
    assert_eq!(header, r#"{"a\u003c":{"x":""},"b":null}"#);
}

#[test]
fn a_header_is_replaced_where_it_stands_or_added_at_the_end() {
    let block = b"NATS/1.0\r\nX-Nats-Incr: 9\r\nNats-Incr:  1\r\nOther: 2\r\n\r\n";
    let mut out = Vec::new();

    stored_headers::put_with(block, INCREMENT_HEADER, b"-15", &mut out);

    let replaced = b"NATS/1.0\r\nX-Nats-Incr: 9\r\nNats-Incr: -15\r\nOther: 2\r\n\r\n";
    assert_eq!(out, replaced);
    assert_eq!(
        stored_headers::value(&out, INCREMENT_HEADER),
        Some(b"-15".as_slice())
    );
    assert_eq!(stored_headers::value(&out, COUNTER_SOURCES), None);
    let mut more = Vec::new();
    stored_headers::put_with(&out, COUNTER_SOURCES, b"{}", &mut more);
    assert!(more.ends_with(b"Other: 2\r\nNats-Counter-Sources: {}\r\n\r\n"));
}

#[test]
fn a_total_must_fit_into_a_message() {
    assert_eq!(check_size(60, 40, 100), Ok(()));
    assert_eq!(check_size(60, 41, 100), Err(CounterError::TooLarge));
}

#[test]
fn long_numbers_are_added_quickly() {
    let nines = Number::read(&vec![b'9'; 1_000_000]).unwrap();

    let more = nines.add(&number("1"));

    assert_eq!(more.subtract(&nines), number("1"));
}

proptest! {
    #[test]
    fn sums_are_those_of_integers(one in -1_000_000_000_000_000_000_000i128..1_000_000_000_000_000_000_000,
                                  other in prop_oneof![-1_000i128..1_000, any::<i64>().prop_map(i128::from)]) {
        let (left, right) = (number(&one.to_string()), number(&other.to_string()));

        prop_assert_eq!(left.add(&right).to_string(), (one + other).to_string());
        prop_assert_eq!(left.subtract(&right).to_string(), (one - other).to_string());
        prop_assert_eq!(right.subtract(&left).to_string(), (other - one).to_string());
    }

    #[test]
    fn anything_is_read_or_refused(
        block in proptest::collection::vec(any::<u8>(), 0..60),
        sources in "\\PC{0,20}",
        payload in prop_oneof!["\\PC{0,20}", "\\{\"val\":\"[+-]?[0-9x]{0,30}\"\\}"],
        source in "\\PC{0,20}",
    ) {
        let mut headers = block.clone();
        stored_headers::put_with(&block, COUNTER_SOURCES, sources.as_bytes(), &mut headers);
        let _ = stored_headers::value(&headers, INCREMENT_HEADER);
        let mut counter = Counter::read(&headers, payload.as_bytes()).unwrap_or_default();
        if let Ok(increment) = counter.add_sourced(source.as_bytes(), &block, payload.as_bytes()) {
            counter.add(&increment);
        }
        let _ = counter.sources_header();
        let _ = Number::read(&block);
    }
}
