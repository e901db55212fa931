//! Each of these was asked of nats-server 2.15.1.

use super::*;
use proptest::prelude::*;

fn object(body: &str) -> PullRequest<'_> {
    read(body.as_bytes()).unwrap()
}

fn reason(body: &str) -> String {
    read(body.as_bytes()).unwrap_err().reason.into_owned()
}

#[test]
fn a_body_that_is_no_object_is_a_number_or_nothing() {
    let bodies: &[(&[u8], i64)] = &[
        (b"", 1),
        (b" \t\n\x0b\x0c\r", 1),
        (b"\x85", 1),
        (b"3", 3),
        (b" 3 ", 3),
        (b"\xc2\xa0 5", 5),
        (b"\xe3\x80\x80 5", 5),
        (b"+3", 3),
        (b"-3", -3),
        (b"0", 0),
        (b"00003", 3),
        (b"3.0", 1),
        (b"1_0", 1),
        (b"0x3", 1),
        (b"3 4", 1),
        (b"[1]", 1),
        (b"\"3\"", 1),
        (b"abc", 1),
        (b"null", 1),
        (b"\xef\xbb\xbf{\"batch\":2}", 1),
        (b"\x00{\"batch\":2}", 1),
        (b"9223372036854775807", i64::MAX),
        (b"9223372036854775808", 1),
        (b"-9223372036854775809", 1),
    ];

    for (body, batch) in bodies {
        let expected = PullRequest {
            batch: *batch,
            ..PullRequest::default()
        };
        assert_eq!(read(body), Ok(expected), "{body:?}");
    }
}

#[test]
fn every_field_of_an_object_is_read() {
    let request = object(
        r#" {"batch":5,"expires":60000000000,"no_wait":true,"max_bytes":77,"idle_heartbeat":1000,
            "group":"g","min_pending":1,"min_ack_pending":2,"id":"a\u0062","priority":9,"other":[{"batch":"x"}]} "#,
    );

    let expected = PullRequest {
        batch: 5,
        expires_ns: 60_000_000_000,
        no_wait: true,
        max_bytes: 77,
        idle_heartbeat_ns: 1_000,
        group: "g".into(),
        min_pending: 1,
        min_ack_pending: 2,
        id: "ab".into(),
        priority: 9,
        is_object: true,
    };
    assert_eq!(request, expected);
    assert!(matches!(request.group, Cow::Borrowed(_)));
}

#[test]
fn an_object_that_says_nothing_asks_for_no_number() {
    let request = object("{}");

    assert_eq!(request.batch, 0);
    assert!(request.is_object);
}

#[test]
fn the_last_of_two_keys_counts_unless_it_is_null() {
    assert_eq!(object(r#"{"batch":3,"Batch":2}"#).batch, 2);
    assert_eq!(object(r#"{"BATCH":2,"batch":null}"#).batch, 2);
    assert_eq!(object(r#"{"group":"a","group":null}"#).group, "a");
    assert_eq!(object("{\"batch\":2}\u{b}").batch, 2);
}

#[test]
fn keys_are_known_by_their_letters_alone() {
    assert_eq!(object("{\"MAX_BYTE\u{17f}\":5}").max_bytes, 5);
    assert_eq!(object("{\"min_ac\u{212a}_pending\":5}").min_ack_pending, 5);
    assert_eq!(
        object(r#"{"maxbytes":"x","max-bytes":"x","NoWait":"x","PriorityGroup":5}"#).batch,
        0
    );
}

#[test]
fn the_first_value_of_the_wrong_kind_is_told() {
    for (body, expected) in [
        (
            r#"{"batch":3.0}"#,
            "number 3.0 into Go struct field .batch of type int",
        ),
        (
            r#"{"batch":"3","expires":"1s"}"#,
            "string into Go struct field .batch of type int",
        ),
        (
            r#"{"expires":"1s","batch":"3"}"#,
            "string into Go struct field .expires of type time.Duration",
        ),
        (
            r#"{"expires":1e9}"#,
            "number 1e9 into Go struct field .expires of type time.Duration",
        ),
        (
            r#"{"idle_heartbeat":[]}"#,
            "array into Go struct field .idle_heartbeat of type time.Duration",
        ),
        (
            r#"{"max_bytes":1.5}"#,
            "number 1.5 into Go struct field .max_bytes of type int",
        ),
        (
            r#"{"no_wait":"true"}"#,
            "string into Go struct field .no_wait of type bool",
        ),
        (
            r#"{"group":5}"#,
            "number into Go struct field .group of type string",
        ),
        (
            r#"{"id":5}"#,
            "number into Go struct field .id of type string",
        ),
        (
            r#"{"min_pending":"x"}"#,
            "string into Go struct field .min_pending of type int64",
        ),
        (
            r#"{"min_ack_pending":{}}"#,
            "object into Go struct field .min_ack_pending of type int64",
        ),
        (
            r#"{"priority":99999999999999999999}"#,
            "number 99999999999999999999 into Go struct field .priority of type int",
        ),
        (
            "{\"MAX_BYTE\\u017f\":\"x\"}",
            "string into Go struct field .MAX_BYTE\u{17f} of type int",
        ),
    ] {
        assert_eq!(reason(body), format!("json: cannot unmarshal {expected}"));
    }
    assert_eq!(
        reason(r#"{"batch":"x","expires":"#),
        "unexpected end of JSON input"
    );
}

#[test]
fn two_heartbeats_must_fit_before_the_end() {
    for body in [
        r#"{"idle_heartbeat":1}"#,
        r#"{"idle_heartbeat":1,"expires":1}"#,
        r#"{"idle_heartbeat":5,"expires":-10}"#,
    ] {
        assert_eq!(reason(body), "heartbeat value too large");
    }
    for body in [
        r#"{"idle_heartbeat":1,"expires":2}"#,
        r#"{"idle_heartbeat":-5}"#,
        r#"{"idle_heartbeat":9223372036854775807,"expires":5}"#,
        r#"{"idle_heartbeat":4611686018427387904,"expires":5}"#,
    ] {
        assert!(read(body.as_bytes()).is_ok(), "{body}");
    }
}

proptest! {
    #[test]
    fn any_body_is_read_or_refused(
        key in "batch|expires|no_wait|max_bytes|idle_heartbeat|group|id|priority|min_pending|[a-z\\\\u0-9]{0,6}",
        value in "-?[0-9]{0,20}|true|null|\"[a-z\\\\]{0,3}\"|[\\[\\]{}0-9.e\"]{0,8}"
    ) {
        let _ = read(format!("{{\"{key}\":{value}}}").as_bytes());
        let _ = read(value.as_bytes());
    }
}
