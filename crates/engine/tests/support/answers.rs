//! What came back from a server: split into answers, and compared with what was expected.

use super::oracle::{Expected, ODD_SUBJECT_ERROR};

/// Texts of `-ERR` that a server may use for one client's input; the last ones quote a subject.
const ERRORS: [&str; 10] = [
    "Unknown Protocol Operation",
    "Authorization Violation",
    "maximum control line exceeded",
    "maximum subscriptions exceeded",
    "Maximum Payload Violation",
    "invalid client protocol",
    "no responders requires headers support",
    "Invalid Subject",
    "Invalid Publish Subject",
    "Authentication Timeout",
];
const QUOTING_ERRORS: [&str; 3] = [
    "Permissions Violation for Publish to \"",
    "Permissions Violation for Publish with Reply of \"",
    "Permissions Violation for Subscription to \"",
];

/// What a server sent: its lines without messages and PINGs, which may come at any time. INFO is cut down to its name.
pub struct Answers {
    pub lines: Vec<Vec<u8>>,
    /// It ends inside a line or a message.
    pub is_cut_off: bool,
}

pub fn split(bytes: &[u8]) -> Result<Answers, String> {
    let mut lines = Vec::new();
    let mut rest = bytes;
    while let Some(length) = rest.windows(2).position(|pair| pair == b"\r\n") {
        let (line, behind) = (&rest[..length], &rest[length + 2..]);
        rest = behind;
        if line.starts_with(b"MSG ") || line.starts_with(b"HMSG ") {
            let size = line
                .rsplit(|byte| *byte == b' ')
                .next()
                .and_then(|token| std::str::from_utf8(token).ok()?.parse::<usize>().ok())
                .ok_or_else(|| format!("a message without a size: {}", line.escape_ascii()))?;
            let Some(end) = behind.get(size..size + 2) else {
                break;
            };
            if end != b"\r\n" {
                return Err(format!(
                    "a message of another size than {}",
                    line.escape_ascii()
                ));
            }
            rest = &behind[size + 2..];
        } else if let Some(json) = line.strip_prefix(b"INFO ") {
            let value: serde_json::Value =
                serde_json::from_slice(json).map_err(|error| format!("INFO: {error}"))?;
            if !value["server_id"].is_string() {
                return Err("INFO without a server id".to_owned());
            }
            lines.push(b"INFO".to_vec());
        } else if line != b"PING" {
            if !is_allowed(line) {
                return Err(format!(
                    "not an answer of the protocol: {}",
                    line.escape_ascii()
                ));
            }
            lines.push(line.to_vec());
        }
    }
    Ok(Answers {
        lines,
        is_cut_off: !rest.is_empty(),
    })
}

fn is_allowed(line: &[u8]) -> bool {
    if matches!(line, b"+OK" | b"PONG") {
        return true;
    }
    let text = line
        .strip_prefix(b"-ERR '")
        .and_then(|text| text.strip_suffix(b"'"));
    text.is_some_and(|text| {
        ERRORS.iter().any(|error| text == error.as_bytes())
            || QUOTING_ERRORS
                .iter()
                .any(|begin| text.starts_with(begin.as_bytes()))
    })
}

impl Answers {
    /// The counterpart of `Judgement::join_repeats`.
    pub fn join_repeats(&mut self) {
        self.lines
            .dedup_by(|next, one| next == ODD_SUBJECT_ERROR && next == one);
    }

    /// Compares with what must come. What follows the expectations of an uncertain judgement is not compared.
    pub fn compare(&self, expected: &[Expected], certain: bool) -> Result<(), String> {
        for (index, expectation) in expected.iter().enumerate() {
            let line = self.lines.get(index).map(Vec::as_slice);
            let fits = match expectation {
                Expected::Line(expected) => line == Some(expected),
                Expected::Begins(begin) => line.is_some_and(|line| line.starts_with(begin)),
            };
            if !fits {
                return Err(format!(
                    "answer {index} must be {expectation:?}, is {}",
                    shown(line)
                ));
            }
        }
        match self.lines.get(expected.len()) {
            Some(surplus) if certain => {
                Err(format!("an answer too many: {}", shown(Some(surplus))))
            }
            _ => Ok(()),
        }
    }
}

fn shown(answer: Option<&[u8]>) -> String {
    answer.map_or("missing".to_owned(), |answer| {
        answer.escape_ascii().to_string()
    })
}
