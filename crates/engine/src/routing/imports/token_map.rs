//! How the subjects of two accounts belong together: two patterns whose wildcards stand for the same tokens.
//!
//! `orders.*.>` and `shop.$1.orders.>` make `orders.eu.new` and `shop.eu.orders.new` the same. Without numbers, the wildcards of the two follow each other in the same
//! order. Invariant: every wildcard of one side has exactly one on the other, so that a map goes both ways.

use crate::common::error::EngineError;
use crate::common::subject::{is_valid_subscription, tokens};

const ANY: &[u8] = b"*";
const REST: &[u8] = b">";

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Literal(Box<[u8]>),
    /// The wildcard of the other side with this number.
    Wildcard(usize),
    Rest,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenMap {
    from: Vec<Token>,
    to: Vec<Token>,
    wildcard_count: usize,
}

impl TokenMap {
    pub fn new(from: &str, to: &str) -> Result<Self, EngineError> {
        let refuse = |why: &str| {
            EngineError::Options(format!("{from:?} cannot be imported as {to:?}: {why}"))
        };
        if !is_valid_subscription(from.as_bytes()) || !is_valid_subscription(to.as_bytes()) {
            return Err(refuse("one of them is not a valid subject"));
        }
        let from_tokens =
            read(from.as_bytes()).map_err(|()| refuse("a wildcard is named twice"))?;
        let to_tokens = read(to.as_bytes()).map_err(|()| refuse("a wildcard is named twice"))?;
        let takes_rest = |tokens: &[Token]| tokens.last() == Some(&Token::Rest);
        if takes_rest(&from_tokens) != takes_rest(&to_tokens) {
            return Err(refuse("only one of them ends in '>'"));
        }
        let wildcards = |tokens: &[Token]| {
            let mut numbers: Vec<usize> = tokens
                .iter()
                .filter_map(|token| match token {
                    Token::Wildcard(number) => Some(*number),
                    _ => None,
                })
                .collect();
            numbers.sort_unstable();
            numbers
        };
        let numbers = wildcards(&from_tokens);
        if numbers != wildcards(&to_tokens) {
            return Err(refuse("they have different wildcards"));
        }
        Ok(Self {
            from: from_tokens,
            to: to_tokens,
            wildcard_count: numbers.len(),
        })
    }

    /// The pattern of the first side, with plain wildcards.
    pub fn from_pattern(&self) -> Vec<u8> {
        pattern(&self.from)
    }

    pub fn to_pattern(&self) -> Vec<u8> {
        pattern(&self.to)
    }

    /// Appends what a subject, or a narrower pattern, of the first side is on the second; false, and nothing appended, if it is not of the first.
    pub fn forward(&self, subject: &[u8], out: &mut Vec<u8>) -> bool {
        self.translate(&self.from, &self.to, subject, out)
    }

    /// The same the other way.
    pub fn backward(&self, subject: &[u8], out: &mut Vec<u8>) -> bool {
        self.translate(&self.to, &self.from, subject, out)
    }

    fn translate(&self, from: &[Token], to: &[Token], subject: &[u8], out: &mut Vec<u8>) -> bool {
        let mut captured: Vec<&[u8]> = vec![b""; self.wildcard_count];
        let mut rest: &[u8] = b"";
        let mut start = 0;
        let mut position = 0;
        for token in tokens(subject) {
            match from.get(position) {
                Some(Token::Literal(text)) if **text == *token => {}
                // A pattern with wildcards where this side has a certain token is wider.
                Some(Token::Wildcard(number)) if token != REST => captured[*number] = token,
                Some(Token::Rest) => {
                    rest = &subject[start..];
                    position += 1;
                    break;
                }
                _ => return false,
            }
            start += token.len() + 1;
            position += 1;
        }
        if position != from.len() {
            return false;
        }
        for (index, token) in to.iter().enumerate() {
            if index > 0 {
                out.push(b'.');
            }
            out.extend_from_slice(match token {
                Token::Literal(text) => text,
                Token::Wildcard(number) => captured[*number],
                Token::Rest => rest,
            });
        }
        true
    }
}

fn read(pattern: &[u8]) -> Result<Vec<Token>, ()> {
    let mut seen = Vec::new();
    let mut read = Vec::new();
    for token in tokens(pattern) {
        let number = token
            .strip_prefix(b"$")
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| digits.parse::<usize>().ok())
            .filter(|number| *number > 0);
        let number = match number {
            Some(number) => Some(number - 1),
            None => (token == ANY).then_some(seen.len()),
        };
        read.push(match number {
            Some(number) => {
                if seen.contains(&number) {
                    return Err(());
                }
                seen.push(number);
                Token::Wildcard(number)
            }
            None if token == REST => Token::Rest,
            None => Token::Literal(token.into()),
        });
    }
    // The numbers are those from the first on, so that captures have a place.
    if seen.iter().any(|number| *number >= seen.len()) {
        return Err(());
    }
    Ok(read)
}

fn pattern(tokens: &[Token]) -> Vec<u8> {
    let parts: Vec<&[u8]> = tokens
        .iter()
        .map(|token| match token {
            Token::Literal(text) => &**text,
            Token::Wildcard(_) => ANY,
            Token::Rest => REST,
        })
        .collect();
    parts.join(&b'.')
}

/// What two patterns have in common, as a pattern; `None` if nothing matches both.
pub fn intersection(one: &[u8], other: &[u8]) -> Option<Vec<u8>> {
    let one: Vec<&[u8]> = tokens(one).collect();
    let other: Vec<&[u8]> = tokens(other).collect();
    let mut common: Vec<&[u8]> = Vec::new();
    let mut position = 0;
    loop {
        match (one.get(position), other.get(position)) {
            (None, None) => return Some(common.join(&b'.')),
            (Some(&REST), Some(_)) => {
                common.extend_from_slice(&other[position..]);
                return Some(common.join(&b'.'));
            }
            (Some(_), Some(&REST)) => {
                common.extend_from_slice(&one[position..]);
                return Some(common.join(&b'.'));
            }
            (Some(&ANY), Some(token)) | (Some(token), Some(&ANY)) => common.push(token),
            (Some(token), Some(same)) if token == same => common.push(token),
            _ => return None,
        }
        position += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(from: &str, to: &str) -> TokenMap {
        TokenMap::new(from, to).unwrap()
    }

    fn forward(map: &TokenMap, subject: &str) -> Option<String> {
        let mut out = Vec::new();
        map.forward(subject.as_bytes(), &mut out)
            .then(|| String::from_utf8(out).unwrap())
    }

    fn backward(map: &TokenMap, subject: &str) -> Option<String> {
        let mut out = Vec::new();
        map.backward(subject.as_bytes(), &mut out)
            .then(|| String::from_utf8(out).unwrap())
    }

    #[test]
    fn subjects_go_there_and_back() {
        for (from, to, there, back) in [
            ("a", "b", "a", "b"),
            ("a.*", "x.a.*", "a.1", "x.a.1"),
            ("a.*.*", "b.$2.$1", "a.1.2", "b.2.1"),
            ("a.>", "x.y.>", "a.b.c", "x.y.b.c"),
            ("*.a.>", "x.$1.>", "1.a.b.c", "x.1.b.c"),
            (">", "x.>", "a.b", "x.a.b"),
        ] {
            let map = map(from, to);
            assert_eq!(forward(&map, there).as_deref(), Some(back));
            assert_eq!(backward(&map, back).as_deref(), Some(there));
        }
    }

    #[test]
    fn narrower_patterns_are_translated_and_wider_ones_are_not() {
        let map = map("a.*.>", "x.$1.b.>");

        assert_eq!(backward(&map, "x.*.b.>").as_deref(), Some("a.*.>"));
        assert_eq!(backward(&map, "x.1.b.*.c").as_deref(), Some("a.1.*.c"));
        assert_eq!(backward(&map, "x.>"), None);
        assert_eq!(backward(&map, "x.1.*.c"), None);
        assert_eq!(forward(&map, "a.1"), None);
        assert_eq!(forward(&map, "b.1.2"), None);
    }

    #[test]
    fn what_two_patterns_have_in_common_matches_both() {
        for (one, other, common) in [
            ("a.*", "a.b", Some("a.b")),
            ("a.*", "*.b", Some("a.b")),
            (">", "a.*.>", Some("a.*.>")),
            ("a.>", "a.*.c", Some("a.*.c")),
            ("a.>", "a", None),
            ("a.*.*", "a.>", Some("a.*.*")),
            ("a", "b", None),
            ("a.b", "a", None),
        ] {
            let found = |one: &str, other: &str| {
                intersection(one.as_bytes(), other.as_bytes())
                    .map(|common| String::from_utf8(common).unwrap())
            };
            assert_eq!(found(one, other).as_deref(), common, "{one} and {other}");
            assert_eq!(found(other, one).as_deref(), common, "{other} and {one}");
        }
    }

    #[test]
    fn maps_that_do_not_go_both_ways_are_refused() {
        for (from, to) in [
            ("a.*", "b"),
            ("a", "b.*"),
            ("a.>", "b.*"),
            ("a.*.*", "b.$1.$1"),
            ("a.*", "b.$2"),
            ("a..b", "b"),
        ] {
            assert!(TokenMap::new(from, to).is_err(), "{from} {to}");
        }
    }
}
