//! JSON as Go's encoder writes it, and nats-server with it: what could end a script of a web page is escaped.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

/// Dangerous in a web page, or no line of JavaScript.
const ESCAPED: [char; 5] = ['<', '>', '&', '\u{2028}', '\u{2029}'];

struct GoFormatter;

impl Formatter for GoFormatter {
    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut rest = fragment;
        while let Some(at) = rest.find(ESCAPED) {
            let (plain, from) = rest.split_at(at);
            let mut characters = from.chars();
            let escaped = characters.next().expect("something was found there");
            write!(writer, "{plain}\\u{:04x}", escaped as u32)?;
            rest = characters.as_str();
        }
        writer.write_all(rest.as_bytes())
    }
}

/// Appends a value that has strings, numbers, and structs of them.
pub fn append(out: &mut Vec<u8>, value: &impl Serialize) {
    let mut serializer = Serializer::with_formatter(out, GoFormatter);
    value
        .serialize(&mut serializer)
        .expect("strings and numbers always serialise");
}

/// Decodes bytes as UTF-8; each invalid byte becomes one U+FFFD, as in Go.
pub fn lossy_text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dangerous_in_a_page_is_escaped() {
        let mut out = Vec::new();

        append(&mut out, &"<a>&\"b\"\u{2028}\u{8}\u{1}\t\u{7f}é");

        let expected = "\"\\u003ca\\u003e\\u0026\\\"b\\\"\\u2028\\b\\u0001\\t\u{7f}é\"";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn each_byte_that_is_no_text_becomes_one_character() {
        assert_eq!(
            lossy_text(b"\xff\xfe\xe2\x82x"),
            "\u{fffd}\u{fffd}\u{fffd}\u{fffd}x"
        );
    }
}
