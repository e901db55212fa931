//! What is read, and the complaints word for word as nats-server 2.15.1 makes them.

use super::*;
use proptest::prelude::*;

fn problem(text: &[u8]) -> String {
    Object::read(text).unwrap_err().0.into_owned()
}

fn first(text: &str) -> (String, Result<Option<String>, Problem>) {
    let object = Object::read(text.as_bytes()).unwrap();
    let member = object.members().next().unwrap();
    let read = member.text().map(|text| text.map(Cow::into_owned));
    (member.key.into_owned(), read)
}

#[test]
fn complaints_are_those_of_nats_server() {
    let texts: &[(&[u8], &str)] = &[
        (b"{", "unexpected end of JSON input"),
        (b"{\"a", "unexpected end of JSON input"),
        (b"{\"a\"", "unexpected end of JSON input"),
        (b"{\"a\":", "unexpected end of JSON input"),
        (b"{\"a\":\"\\u12", "unexpected end of JSON input"),
        (b"{\"a\":\"\\", "unexpected end of JSON input"),
        (b"{\"a\":1", "unexpected end of JSON input"),
        (
            b"{\"a\":1,}",
            "invalid character '}' looking for beginning of object key string",
        ),
        (
            b"{b:3}",
            "invalid character 'b' looking for beginning of object key string",
        ),
        (
            b"{'b':3}",
            "invalid character '\\'' looking for beginning of object key string",
        ),
        (
            b"{\"a\":}",
            "invalid character '}' looking for beginning of value",
        ),
        (
            b"{\"a\":+3}",
            "invalid character '+' looking for beginning of value",
        ),
        (
            b"{\"a\":03}",
            "invalid character '3' after object key:value pair",
        ),
        (
            b"{\"a\":3 \"x\":1}",
            "invalid character '\"' after object key:value pair",
        ),
        (b"{\"a\" 3}", "invalid character '3' after object key"),
        (
            b"{\"a\":3} x",
            "invalid character 'x' after top-level value",
        ),
        (b"{}{}", "invalid character '{' after top-level value"),
        (
            b"{\"x\":nul,\"a\":2}",
            "invalid character ',' in literal null (expecting 'l')",
        ),
        (
            b"{\"x\":tru}",
            "invalid character '}' in literal true (expecting 'e')",
        ),
        (b"{\"x\":-}", "invalid character '}' in numeric literal"),
        (b"{\"x\":1.}", "invalid character '}' in numeric literal"),
        (b"{\"x\":1e}", "invalid character '}' in numeric literal"),
        (
            b"{\"x\":[1,]}",
            "invalid character ']' looking for beginning of value",
        ),
        (
            b"{\"x\":[1 2]}",
            "invalid character '2' after array element",
        ),
        (b"{\"x\":\"\x01\"}", "invalid character '\\x01' in string"),
        (
            b"{\"x\":\"\\q\"}",
            "invalid escape sequence `\\q` in string",
        ),
        (
            b"{\"x\":\"\\u12\"}",
            "invalid escape sequence `\\u12\"}` in string",
        ),
        (
            b"{\"x\":\"\\u12g4\"}",
            "invalid escape sequence `\\u12g4` in string",
        ),
        (
            b"{\xc3\xa9",
            "invalid character '\u{e9}' looking for beginning of object key string",
        ),
        (
            b"{\xff}",
            "invalid character '\\xff' looking for beginning of object key string",
        ),
        (
            b"{\xc2\xa0}",
            "invalid character '\\u00a0' looking for beginning of object key string",
        ),
        (
            b"{\x0b}",
            "invalid character '\\v' looking for beginning of object key string",
        ),
        (b"{}\x00", "invalid character '\\x00' after top-level value"),
    ];

    for (text, expected) in texts {
        assert_eq!(problem(text), *expected);
    }
}

#[test]
fn brackets_may_be_ten_thousand_deep() {
    let nested = |depth: usize| {
        let inside = ["[".repeat(depth), "]".repeat(depth)].concat();
        format!("{{\"x\":{inside},\"batch\":2}}")
    };

    assert!(Object::read(nested(9_999).as_bytes()).is_ok());
    assert_eq!(problem(nested(10_000).as_bytes()), "exceeded max depth");
    let unclosed = "{\"x\":".repeat(100_000);
    assert_eq!(problem(unclosed.as_bytes()), "exceeded max depth");
}

#[test]
fn members_come_in_their_order_whatever_is_between_them() {
    let text = br#" { "a" : [1, {"b": 2}] ,"a":null,"\u0042":"x\"\n", "c":{"d":[]} } "#;

    let object = Object::read(text).unwrap();

    let keys: Vec<_> = object.members().map(|member| member.key).collect();
    assert_eq!(keys, ["a", "a", "B", "c"]);
}

#[test]
fn keys_are_compared_without_regard_to_case() {
    for key in [
        "max_bytes",
        "MAX_bytes",
        "max_byte\u{17f}",
        "max_byte\\u017f",
        "m\\u0061x_bytes",
    ] {
        let text = format!("{{\"{key}\":1}}");
        let object = Object::read(text.as_bytes()).unwrap();
        assert!(
            object.members().all(|member| member.is("max_bytes")),
            "{key}"
        );
    }
    for key in ["maxbytes", "max-bytes", "max_byte", "max_bytess"] {
        let text = format!("{{\"{key}\":1}}");
        let object = Object::read(text.as_bytes()).unwrap();
        assert!(
            !object.members().any(|member| member.is("max_bytes")),
            "{key}"
        );
    }
}

#[test]
fn texts_are_unescaped_and_broken_ones_mended() {
    let long = "\\u00e9\\ud83d\\ude00\\ud83dx\\ude00\\/\\\\\\t";

    assert_eq!(
        first(&format!("{{\"k\":\"{long}\"}}")).1,
        Ok(Some("\u{e9}\u{1f600}\u{fffd}x\u{fffd}/\\\t".to_owned()))
    );
    let object = Object::read(b"{\"\xff\xfe\":\"\\n\xe2\x82\"}").unwrap();
    let member = object.members().next().unwrap();
    assert_eq!(member.key, "\u{fffd}\u{fffd}");
    assert_eq!(member.text().unwrap().unwrap(), "\n\u{fffd}\u{fffd}");
    assert_eq!(first("{\"k\":null}").1, Ok(None));
}

#[test]
fn a_value_of_the_wrong_kind_is_named_with_its_key() {
    for (value, kind) in [
        ("1.5", "number 1.5"),
        ("3.0", "number 3.0"),
        ("1e1", "number 1e1"),
        ("9223372036854775808", "number 9223372036854775808"),
        ("\"3\"", "string"),
        ("true", "bool"),
        ("[]", "array"),
        ("{}", "object"),
    ] {
        let text = format!("{{\"Batch\":{value}}}");
        let object = Object::read(text.as_bytes()).unwrap();
        let member = object.members().next().unwrap();
        let expected =
            format!("json: cannot unmarshal {kind} into Go struct field .Batch of type int");
        assert_eq!(member.integer("int"), Err(Problem(expected.into())));
    }
    let object = Object::read(b"{\"no_wait\":1}").unwrap();
    assert_eq!(
        object.members().next().unwrap().flag().unwrap_err().0,
        "json: cannot unmarshal number into Go struct field .no_wait of type bool"
    );
}

proptest! {
    #[test]
    fn what_serde_json_reads_is_read_and_nothing_else(text in "\\{[\\[\\]{}\":,0-9a-e.+\\\\nu tr-]{0,24}") {
        let is_json = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
        let object = Object::read(text.as_bytes());
        prop_assert_eq!(object.is_ok(), is_json, "{}", text);
        if let Ok(object) = object {
            let map: serde_json::Map<_, _> = serde_json::from_str(&text).unwrap_or_default();
            for (key, _) in map {
                prop_assert!(object.members().any(|member| member.key == key.as_str()));
            }
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(text in proptest::collection::vec(any::<u8>(), 0..40)) {
        if let Ok(object) = Object::read(&text) {
            for member in object.members() {
                let _ = (member.integer("int"), member.flag(), member.text());
            }
        }
    }
}
