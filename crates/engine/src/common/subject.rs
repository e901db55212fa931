//! The rules of subjects: tokens between dots, `*` for one token, `>` for the rest.
//!
//! Wildcards count only as whole tokens: `foo*` is a literal. Any byte but white space may stand in a token.

const SEPARATOR: u8 = b'.';

/// The tokens of a subject.
pub fn tokens(subject: &[u8]) -> impl Iterator<Item = &[u8]> {
    subject.split(|byte| *byte == SEPARATOR)
}

/// Whether a subscription may name this subject: no empty token, and `>` only at the end.
pub fn is_valid_subscription(subject: &[u8]) -> bool {
    let mut full_wildcard_seen = false;
    for token in tokens(subject) {
        if token.is_empty() || full_wildcard_seen {
            return false;
        }
        full_wildcard_seen = token == b">";
    }
    true
}

/// Whether this names exactly one subject: no empty token and no wildcard token.
pub fn is_literal(subject: &[u8]) -> bool {
    tokens(subject).all(|token| !token.is_empty() && token != b"*" && token != b">")
}

/// What every subject begins with that a pattern matches: all of it up to its first wildcard.
pub fn literal_beginning(pattern: &[u8]) -> &[u8] {
    let is_wildcard = |token: &&[u8]| *token == b"*" || *token == b">";
    let literal = tokens(pattern).take_while(|token| !is_wildcard(token));
    let length: usize = literal.map(|token| token.len() + 1).sum();
    &pattern[..length.min(pattern.len())]
}

/// Whether some token is empty; such a subject reaches nobody.
pub fn has_empty_token(subject: &[u8]) -> bool {
    tokens(subject).any(<[u8]>::is_empty)
}

/// Whether a pattern matches one concrete subject, whose tokens are all taken as they are.
pub fn matches(pattern: &[u8], subject: &[u8]) -> bool {
    let mut subject_tokens = tokens(subject);
    for wanted in tokens(pattern) {
        let Some(token) = subject_tokens.next() else {
            return false;
        };
        match wanted {
            b">" => return true,
            b"*" => {}
            literal if literal == token => {}
            _ => return false,
        }
    }
    subject_tokens.next().is_none()
}

/// Whether everything that `inner` can match is matched by `outer` too.
pub fn covers(outer: &[u8], inner: &[u8]) -> bool {
    let mut inner_tokens = tokens(inner);
    for wanted in tokens(outer) {
        let Some(token) = inner_tokens.next() else {
            return false;
        };
        match (wanted, token) {
            (b">", _) => return true,
            (_, b">") => return false,
            (b"*", _) => {}
            (literal, other) if literal == other => {}
            _ => return false,
        }
    }
    inner_tokens.next().is_none()
}

/// Whether some concrete subject is matched by both patterns.
pub fn overlaps(one: &[u8], other: &[u8]) -> bool {
    let mut other_tokens = tokens(other);
    for token in tokens(one) {
        let Some(other_token) = other_tokens.next() else {
            return false;
        };
        match (token, other_token) {
            (b">", _) | (_, b">") => return true,
            (b"*", _) | (_, b"*") => {}
            (literal, other) if literal == other => {}
            _ => return false,
        }
    }
    other_tokens.next().is_none()
}

pub fn token_count(subject: &[u8]) -> usize {
    tokens(subject).count()
}

/// A subject as Go's `%q` prints it: in double quotes, with what is not printable escaped. Error texts quote subjects this way.
pub fn quoted(subject: &[u8]) -> String {
    let mut text = String::with_capacity(subject.len() + 2);
    text.push('"');
    for chunk in subject.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '"' => text.push_str("\\\""),
                '\\' => text.push_str("\\\\"),
                '\u{07}' => text.push_str("\\a"),
                '\u{08}' => text.push_str("\\b"),
                '\u{0b}' => text.push_str("\\v"),
                '\u{0c}' => text.push_str("\\f"),
                '\n' => text.push_str("\\n"),
                '\r' => text.push_str("\\r"),
                '\t' => text.push_str("\\t"),
                control if control.is_control() && (control as u32) < 0x80 => {
                    text.push_str(&format!("\\x{:02x}", control as u32));
                }
                control if control.is_control() => {
                    text.push_str(&format!("\\u{:04x}", control as u32));
                }
                printable => text.push(printable),
            }
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_count_only_as_whole_tokens() {
        assert!(is_valid_subscription(b"foo.*.bar.>"));
        assert!(!is_valid_subscription(b"foo.>.bar"));
        assert!(is_literal(b"foo*.>bar"));
        assert!(!is_literal(b"foo.*"));
    }

    #[test]
    fn a_pattern_is_literal_up_to_its_first_wildcard() {
        for (pattern, beginning) in [
            ("a.b", "a.b"),
            ("a.*.b", "a."),
            ("a.>", "a."),
            (">", ""),
            ("*", ""),
            ("a*.b>", "a*.b>"),
        ] {
            let found = literal_beginning(pattern.as_bytes());
            assert_eq!(found, beginning.as_bytes(), "{pattern}");
        }
    }

    #[test]
    fn empty_tokens_are_invalid_everywhere() {
        for subject in [&b""[..], b".", b".a", b"a.", b"a..b"] {
            assert!(!is_valid_subscription(subject), "{subject:?}");
            assert!(!is_literal(subject), "{subject:?}");
            assert!(has_empty_token(subject), "{subject:?}");
        }
    }

    #[test]
    fn covering_is_for_every_subject_and_overlapping_for_some() {
        for (outer, inner) in [
            (">", "a.>"),
            ("a.*", "a.b"),
            ("a.*", "a.*"),
            ("a.>", "a.*.c"),
        ] {
            assert!(
                covers(outer.as_bytes(), inner.as_bytes()),
                "{outer} {inner}"
            );
        }
        for (outer, inner) in [("a.*", "a.>"), ("a.b", "a.*"), ("a.>", "a"), ("*", ">")] {
            assert!(
                !covers(outer.as_bytes(), inner.as_bytes()),
                "{outer} {inner}"
            );
        }
        for (one, other) in [
            ("a.*", "*.b"),
            ("a.>", "a.b.*"),
            (">", "x"),
            ("a.*.c", "a.>"),
        ] {
            assert!(overlaps(one.as_bytes(), other.as_bytes()), "{one} {other}");
        }
        for (one, other) in [("a.*", "b.*"), ("a", "a.>"), ("a.*", "a.b.c")] {
            assert!(!overlaps(one.as_bytes(), other.as_bytes()), "{one} {other}");
        }
    }

    #[test]
    fn quotes_follow_go() {
        assert_eq!(quoted(b"a.b"), "\"a.b\"");
        assert_eq!(quoted(b"a\"\\\x00\xff"), "\"a\\\"\\\\\\x00\\xff\"");
    }
}
