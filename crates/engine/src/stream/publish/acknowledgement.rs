//! The answer to a publish, as bytes: what nats-server would send, letter by letter.

use std::io::Write;

use crate::common::go_json;
use crate::wire::dialect::Dialect;

/// A message was stored, or had been before.
#[derive(Debug, Clone, Copy, Default)]
pub struct StoredPublish<'a> {
    pub stream: &'a str,
    pub domain: Option<&'a str>,
    pub sequence: u64,
    /// It was stored before; this is the sequence it got then.
    pub duplicate: bool,
    /// The total of a counter after this message.
    pub counter: Option<&'a str>,
    /// The batch this message completed, and how many messages it had.
    pub batch: Option<(&'a str, u64)>,
}

impl StoredPublish<'_> {
    /// As a stream says it that speaks this dialect, or today's.
    pub fn encode_in(&self, dialect: Option<Dialect>, out: &mut Vec<u8>) {
        match dialect {
            Some(_) => Dialect::put_stored(out),
            None => self.encode(out),
        }
    }

    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"stream\":");
        put_text(out, self.stream);
        if let Some(domain) = self.domain {
            out.extend_from_slice(b",\"domain\":");
            put_text(out, domain);
        }
        out.extend_from_slice(b",\"seq\":");
        out.extend_from_slice(itoa::Buffer::new().format(self.sequence).as_bytes());
        if self.duplicate {
            // The blank is nats-server's.
            out.extend_from_slice(b",\"duplicate\": true");
        }
        if let Some(total) = self.counter {
            out.extend_from_slice(b",\"val\":");
            put_text(out, total);
        }
        if let Some((batch, count)) = self.batch {
            out.extend_from_slice(b",\"batch\":");
            put_text(out, batch);
            let _ = write!(out, ",\"count\":{count}");
        }
        out.push(b'}');
    }
}

/// A message was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub code: u16,
    pub error_code: u16,
    pub description: String,
}

impl Refusal {
    /// As a stream says it that speaks this dialect, or today's.
    pub fn encode_in(&self, dialect: Option<Dialect>, stream: &str, out: &mut Vec<u8>) {
        match dialect {
            Some(dialect) => dialect.put_refusal(&self.description, out),
            None => self.encode(stream, out),
        }
    }

    pub fn encode(&self, stream: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"error\":");
        self.encode_error(out);
        out.extend_from_slice(b",\"stream\":");
        put_text(out, stream);
        out.extend_from_slice(b",\"seq\":0}");
    }
}

impl Refusal {
    /// The error alone.
    pub fn encode_error(&self, out: &mut Vec<u8>) {
        let _ = write!(
            out,
            "{{\"code\":{},\"err_code\":{},\"description\":",
            self.code, self.error_code
        );
        put_text(out, &self.description);
        out.push(b'}');
    }
}

/// A JSON string.
pub fn put_text(out: &mut Vec<u8>, text: &str) {
    let plain =
        |byte: u8| byte >= 0x20 && !matches!(byte, b'"' | b'\\' | b'<' | b'>' | b'&' | 0x7f);
    if text.bytes().all(plain) {
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
        return;
    }
    go_json::append(out, &text);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(stored: StoredPublish<'_>) -> String {
        let mut out = Vec::new();
        stored.encode(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn answers_are_what_nats_server_sends() {
        let plain = StoredPublish {
            stream: "S",
            sequence: 7,
            ..StoredPublish::default()
        };

        assert_eq!(encoded(plain), r#"{"stream":"S","seq":7}"#);
        let duplicate = StoredPublish {
            domain: Some("hub"),
            duplicate: true,
            ..plain
        };
        assert_eq!(
            encoded(duplicate),
            r#"{"stream":"S","domain":"hub","seq":7,"duplicate": true}"#
        );
        let counter = StoredPublish {
            counter: Some("5"),
            ..plain
        };
        assert_eq!(encoded(counter), r#"{"stream":"S","seq":7,"val":"5"}"#);
        let batch = StoredPublish {
            batch: Some(("b\"<1>", 3)),
            ..plain
        };
        assert_eq!(
            encoded(batch),
            r#"{"stream":"S","seq":7,"batch":"b\"\u003c1\u003e","count":3}"#
        );
    }

    #[test]
    fn a_refusal_names_its_codes() {
        let refusal = Refusal {
            code: 400,
            error_code: 10071,
            description: "wrong last sequence: 4".to_owned(),
        };
        let mut out = Vec::new();

        refusal.encode("S", &mut out);

        assert_eq!(
            String::from_utf8(out).unwrap(),
            r#"{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 4"},"stream":"S","seq":0}"#
        );
    }
}
