//! A request for messages, as JSON: which of its fields are there, and what they say.
//!
//! Names of fields are compared without regard to case, `null` is nothing, and unknown fields are passed over, as nats-server does for direct gets.

use serde_json::{Map, Value};

use crate::common::timestamp;

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct GetRequest {
    pub sequence: u64,
    pub last_by_subject: String,
    pub next_by_subject: String,
    pub start_time_ns: Option<i64>,
    pub batch: i64,
    pub bytes_max: i64,
    pub multi_last: Vec<String>,
    pub up_to_sequence: u64,
    pub up_to_time_ns: Option<i64>,
    pub no_headers: bool,
    /// There was a field other than these.
    pub has_unknown: bool,
}

/// The text is not a JSON object, or a field has the wrong type.
#[derive(Debug, PartialEq, Eq)]
pub struct Malformed;

impl GetRequest {
    pub fn read(body: &[u8]) -> Result<Self, Malformed> {
        if let Some(sequence) = only_sequence(body) {
            return Ok(Self {
                sequence,
                ..Self::default()
            });
        }
        let object: Map<String, Value> = serde_json::from_slice(body).map_err(|_| Malformed)?;
        let mut request = Self::default();
        for (key, value) in &object {
            if value.is_null() {
                continue;
            }
            match key.to_ascii_lowercase().as_str() {
                "seq" => request.sequence = value.as_u64().ok_or(Malformed)?,
                "last_by_subj" => request.last_by_subject = text(value)?,
                "next_by_subj" => request.next_by_subject = text(value)?,
                "start_time" => request.start_time_ns = Some(time(value)?),
                "batch" => request.batch = value.as_i64().ok_or(Malformed)?,
                "max_bytes" => request.bytes_max = value.as_i64().ok_or(Malformed)?,
                "multi_last" => {
                    let list = value.as_array().ok_or(Malformed)?;
                    let texts: Result<_, _> = list.iter().map(text).collect();
                    request.multi_last = texts?;
                }
                "up_to_seq" => request.up_to_sequence = value.as_u64().ok_or(Malformed)?,
                "up_to_time" => request.up_to_time_ns = Some(time(value)?),
                "no_hdr" => request.no_headers = value.as_bool().ok_or(Malformed)?,
                _ => request.has_unknown = true,
            }
        }
        Ok(request)
    }
}

/// What most requests say: one sequence, written without blanks, as client libraries do.
fn only_sequence(body: &[u8]) -> Option<u64> {
    let digits = body.strip_prefix(b"{\"seq\":")?.strip_suffix(b"}")?;
    // No number in JSON begins with a zero and goes on.
    let right = digits.iter().all(u8::is_ascii_digit) && digits.first() != Some(&b'0');
    let digits = std::str::from_utf8(digits).ok().filter(|_| right)?;
    digits.parse().ok()
}

fn text(value: &Value) -> Result<String, Malformed> {
    value.as_str().map(str::to_owned).ok_or(Malformed)
}

fn time(value: &Value) -> Result<i64, Malformed> {
    value.as_str().and_then(timestamp::read).ok_or(Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_whatever_their_case() {
        let body = br#"{"SEQ":3,"Next_By_Subj":"a.*","start_time":"1970-01-01T00:00:01Z","multi_last":["x"],"batch":null,"other":1}"#;

        let request = GetRequest::read(body).unwrap();

        assert_eq!(request.sequence, 3);
        assert_eq!(request.next_by_subject, "a.*");
        assert_eq!(request.start_time_ns, Some(1_000_000_000));
        assert_eq!(request.multi_last, ["x"]);
        assert!(request.has_unknown);
    }

    #[test]
    fn a_sequence_alone_is_read_like_any_other_request() {
        for (body, sequence) in [
            ("{\"seq\":7}", Ok(7)),
            ("{\"seq\":0}", Ok(0)),
            ("{\"seq\": 18446744073709551615 }", Ok(u64::MAX)),
            ("{\"seq\":18446744073709551615}", Ok(u64::MAX)),
            ("{\"seq\":18446744073709551616}", Err(Malformed)),
            ("{\"seq\":}", Err(Malformed)),
            ("{\"seq\":+7}", Err(Malformed)),
            ("{\"seq\":07}", Err(Malformed)),
        ] {
            let request = GetRequest::read(body.as_bytes());
            assert_eq!(request.map(|request| request.sequence), sequence, "{body}");
        }
    }

    #[test]
    fn wrong_types_are_malformed() {
        for body in [
            &b""[..],
            b"[]",
            b"{\"seq\":-1}",
            b"{\"seq\":\"1\"}",
            b"{\"seq\":1.5}",
            b"{\"multi_last\":[1]}",
            b"{\"start_time\":\"now\"}",
            b"{\"no_hdr\":1}",
        ] {
            assert_eq!(GetRequest::read(body), Err(Malformed));
        }
    }
}
