//! White space around a text, as nats-server takes it off: that of Unicode, where the bytes are Unicode.

/// The text without white space at its ends.
#[inline]
pub fn trim(text: &[u8]) -> &[u8] {
    let mut text = text;
    while let [first, rest @ ..] = text {
        text = match first {
            b'\t'..=b'\r' | b' ' => rest,
            0x80.. => match space_length(text) {
                0 => break,
                length => &text[length..],
            },
            _ => break,
        };
    }
    while let [rest @ .., last] = text {
        text = match last {
            b'\t'..=b'\r' | b' ' => rest,
            0x80.. => match last_space_length(text) {
                0 => break,
                length => &text[..text.len() - length],
            },
            _ => break,
        };
    }
    text
}

/// How many bytes the white space has that a text begins with; none has more than three.
fn space_length(text: &[u8]) -> usize {
    let few = &text[..text.len().min(3)];
    let first = few.utf8_chunks().next();
    match first.and_then(|chunk| chunk.valid().chars().next()) {
        Some(character) if character.is_whitespace() => character.len_utf8(),
        _ => 0,
    }
}

fn last_space_length(text: &[u8]) -> usize {
    let matching = (2..=3).find(|length| {
        let start = text.len().checked_sub(*length);
        start.is_some_and(|start| space_length(&text[start..]) == *length)
    });
    matching.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bytes_that_are_no_unicode_stay() {
        assert_eq!(trim(b" \t\x0b\x0c\r\n5 \n"), b"5");
        assert_eq!(trim("\u{a0}\u{3000} 5\u{85}\u{2028}".as_bytes()), b"5");
        assert_eq!(trim(b"\x85 "), b"\x85");
        assert_eq!(trim(b" \xa0"), b"\xa0");
        assert_eq!(trim(b"\xe3\x80"), b"\xe3\x80");
        assert_eq!(trim(b"\xff\xc2\x85"), b"\xff");
        assert_eq!(trim("\u{feff}5".as_bytes()), "\u{feff}5".as_bytes());
        assert_eq!(trim(b"  "), b"");
    }

    proptest! {
        #[test]
        fn unicode_is_trimmed_as_the_standard_library_does(text in "[ \\t\u{a0}\u{85}\u{3000}a\u{e9}\u{1f600}]{0,8}") {
            prop_assert_eq!(trim(text.as_bytes()), text.trim().as_bytes());
        }

        #[test]
        fn any_bytes_are_trimmed(text in proptest::collection::vec(any::<u8>(), 0..12)) {
            let _ = trim(&text);
        }
    }
}
