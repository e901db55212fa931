//! The dialects of JetStream's first two years, in which some streams and consumers were asked for and go on speaking.
//!
//! | dialect | a stored message | a refused one  | the reply subject of a delivery |
//! |---------|------------------|----------------|---------------------------------|
//! | 2019    | `+OK`            | `-ERR text`    | `$JS.A.<set>.<observable>.…`    |
//! | 2020    | `+OK`            | `-ERR 'text'`  | `$JS.ACK.<stream>.<consumer>.…` |
//!
//! Which one is said by the metadata of a definition; without it, today's is spoken.

use std::collections::BTreeMap;

/// In the metadata of a stream and of a consumer.
const KEY: &str = "jetlake.dialect";

const OK: &[u8] = b"+OK";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Message sets and observables.
    Of2019,
    /// Streams and consumers, before `$JS.API`.
    Of2020,
}

impl Dialect {
    /// The dialect that metadata names; none if it names none that is known.
    pub fn of(metadata: Option<&BTreeMap<String, String>>) -> Option<Self> {
        match metadata?.get(KEY)?.as_str() {
            "2019" => Some(Self::Of2019),
            "2020" => Some(Self::Of2020),
            _ => None,
        }
    }

    pub fn put_stored(out: &mut Vec<u8>) {
        out.extend_from_slice(OK);
    }

    pub fn put_refusal(self, text: &str, out: &mut Vec<u8>) {
        let quote: &[u8] = match self {
            Self::Of2019 => b"",
            Self::Of2020 => b"'",
        };
        for part in [b"-ERR ", quote, text.as_bytes(), quote] {
            out.extend_from_slice(part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_names_a_dialect_or_none() {
        let of = |value: &str| {
            let metadata = BTreeMap::from([(KEY.to_owned(), value.to_owned())]);
            Dialect::of(Some(&metadata))
        };

        assert_eq!(of("2019"), Some(Dialect::Of2019));
        assert_eq!(of("2020"), Some(Dialect::Of2020));
        assert_eq!(of("2021"), None);
        assert_eq!(Dialect::of(None), None);
    }

    #[test]
    fn a_refusal_is_quoted_since_2020() {
        let said = |dialect: Dialect| {
            let mut out = Vec::new();
            dialect.put_refusal("no room", &mut out);
            String::from_utf8(out).unwrap()
        };

        assert_eq!(said(Dialect::Of2019), "-ERR no room");
        assert_eq!(said(Dialect::Of2020), "-ERR 'no room'");
    }
}
