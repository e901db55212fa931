//! Counters: each message says by how much the total of its subject changes, and the stored message holds the total.
//!
//! Totals have any number of digits, and are added as decimal text: that takes time in proportion to their length, which turning text into
//! binary numbers and back would not, and a counter is text before and after. A total that came from another stream is remembered with that
//! stream and subject, so that only what it grew by since is added, however often and with whatever gaps it arrives.
//! Invariant: digits have no leading zero, and zero is not negative.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

use super::acknowledgement::Refusal;
use super::headers::PublishHeaders;
use crate::wire::stored_headers;
use crate::wire::trusted_headers::COUNTER_SOURCES;

/// No number is longer: it stands in a header or a payload, and nats-server allows no `max_payload` above 64 MiB.
pub const DIGITS_MAX: usize = 64 * 1024 * 1024;

pub const INCREMENT_HEADER: &[u8] = b"Nats-Incr";
/// Why a message is not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CounterError {
    /// The stream does not count.
    Disabled,
    /// The stream counts, and the message does not say how much.
    IncrementMissing,
    PayloadPresent,
    /// The increment is not a number, or there is a header that does not go with it.
    IncrementInvalid,
    /// The last message of the subject, or one from another stream, holds no total.
    Broken,
    /// The total has become too long for a message.
    TooLarge,
}

impl CounterError {
    pub fn refusal(self) -> Refusal {
        let (error_code, description) = match self {
            Self::Disabled => (10168, "message counters is disabled"),
            Self::IncrementMissing => (10169, "message counter increment is missing"),
            Self::PayloadPresent => (10170, "message counter has payload"),
            Self::IncrementInvalid => (10171, "message counter increment is invalid"),
            Self::Broken => (10172, "message counter is broken"),
            Self::TooLarge => (10054, "message size exceeds maximum allowed"),
        };
        Refusal {
            code: 400,
            error_code,
            description: description.to_owned(),
        }
    }
}

/// A whole number of any length.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Number {
    is_negative: bool,
    /// In ASCII, the highest first; none is zero.
    digits: Vec<u8>,
}

impl Number {
    /// Reads `[+|-]digits`, and nothing else.
    pub fn read(text: &[u8]) -> Option<Self> {
        let (number, rest) = Self::read_beginning(text)?;
        rest.is_empty().then_some(number)
    }

    /// The number a text begins with, and what follows it.
    fn read_beginning(text: &[u8]) -> Option<(Self, &[u8])> {
        let (is_negative, unsigned) = match text {
            [b'-', unsigned @ ..] => (true, unsigned),
            [b'+', unsigned @ ..] => (false, unsigned),
            unsigned => (false, unsigned),
        };
        let count = unsigned
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        if count == 0 || count > DIGITS_MAX {
            return None;
        }
        let (digits, rest) = unsigned.split_at(count);
        Some((Self::of(is_negative, digits), rest))
    }

    /// A stored total. What follows the number is not looked at, and where there is none it is zero, as on nats-server.
    fn read_stored(text: &str) -> Self {
        Self::read_beginning(text.as_bytes()).map_or_else(Self::default, |(number, _)| number)
    }

    fn of(is_negative: bool, digits: &[u8]) -> Self {
        let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
        let digits = digits[zeros..].to_vec();
        Self {
            is_negative: is_negative && !digits.is_empty(),
            digits,
        }
    }

    pub fn add(&self, other: &Self) -> Self {
        if self.is_negative == other.is_negative {
            let digits = sum(&self.digits, &other.digits);
            return Self::of(self.is_negative, &digits);
        }
        match compare(&self.digits, &other.digits) {
            Ordering::Equal => Self::default(),
            Ordering::Greater => {
                Self::of(self.is_negative, &difference(&self.digits, &other.digits))
            }
            Ordering::Less => Self::of(other.is_negative, &difference(&other.digits, &self.digits)),
        }
    }

    pub fn subtract(&self, other: &Self) -> Self {
        self.add(&Self::of(!other.is_negative, &other.digits))
    }

    fn text_bytes(&self) -> usize {
        self.digits.len().max(1) + usize::from(self.is_negative)
    }

    pub fn put(&self, out: &mut Vec<u8>) {
        if self.is_negative {
            out.push(b'-');
        }
        match self.digits.as_slice() {
            [] => out.push(b'0'),
            digits => out.extend_from_slice(digits),
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::with_capacity(self.digits.len() + 1);
        self.put(&mut text);
        formatter.write_str(&String::from_utf8_lossy(&text))
    }
}

/// Which of two is larger, without their signs.
fn compare(one: &[u8], other: &[u8]) -> Ordering {
    one.len().cmp(&other.len()).then_with(|| one.cmp(other))
}

fn sum(one: &[u8], other: &[u8]) -> Vec<u8> {
    let (longer, shorter) = if one.len() >= other.len() {
        (one, other)
    } else {
        (other, one)
    };
    // One digit more, for what is carried at last.
    let mut digits = vec![b'0'; longer.len() + 1];
    digits[1..].copy_from_slice(longer);
    let mut addends = shorter.iter().rev();
    let mut carry = 0;
    for digit in digits.iter_mut().rev() {
        let addend = match addends.next() {
            Some(addend) => addend - b'0',
            None if carry == 0 => break,
            None => 0,
        };
        let value = *digit - b'0' + addend + carry;
        *digit = b'0' + value % 10;
        carry = value / 10;
    }
    digits
}

/// What remains of the larger number without the smaller one.
fn difference(larger: &[u8], smaller: &[u8]) -> Vec<u8> {
    let mut digits = larger.to_vec();
    let mut taken = smaller.iter().rev();
    let mut borrow = 0;
    for digit in digits.iter_mut().rev() {
        let take = match taken.next() {
            Some(take) => take - b'0' + borrow,
            None if borrow == 0 => break,
            None => borrow,
        };
        let value = *digit - b'0';
        borrow = u8::from(value < take);
        *digit = b'0' + value + 10 * borrow - take;
    }
    digits
}

/// The increment of a message, which an empty header has not.
pub fn read_increment(headers: &PublishHeaders<'_>) -> Result<Option<Number>, CounterError> {
    match headers.increment.filter(|text| !text.is_empty()) {
        None => Ok(None),
        Some(text) => Number::read(text)
            .map(Some)
            .ok_or(CounterError::IncrementInvalid),
    }
}

/// The increment of a message that does not come from another stream. That a counter has none is found later, after other checks.
pub fn check_increment(
    headers: &PublishHeaders<'_>,
    payload: &[u8],
    is_counter: bool,
) -> Result<Option<Number>, CounterError> {
    let Some(increment) = read_increment(headers)? else {
        return Ok(None);
    };
    if !is_counter {
        return Err(CounterError::Disabled);
    }
    if !payload.is_empty() {
        return Err(CounterError::PayloadPresent);
    }
    let incompatible = [
        headers.rollup,
        headers.expected_stream,
        headers.expected_last_message_id,
        headers.expected_last_sequence,
        headers.expected_last_subject_sequence,
        headers.expected_last_subject_sequence_subject,
    ];
    if incompatible
        .into_iter()
        .flatten()
        .any(|value| !value.is_empty())
    {
        return Err(CounterError::IncrementInvalid);
    }
    Ok(Some(increment))
}

/// Whether the message with the new total may be as long as it is; this comes before the limit of the stream.
pub fn check_size(
    headers_bytes: usize,
    payload_bytes: usize,
    max_payload: usize,
) -> Result<(), CounterError> {
    if headers_bytes.saturating_add(payload_bytes) > max_payload {
        return Err(CounterError::TooLarge);
    }
    Ok(())
}

/// The last total of each subject of each stream this counter is fed by. A stream without subjects was `null`, and stays it.
type Sources = BTreeMap<String, Option<BTreeMap<String, Option<String>>>>;

/// The counter of a subject, as its last message has it; a subject without messages has the default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counter {
    pub total: Number,
    sources: Sources,
}

impl Counter {
    /// Reads the last message of the subject.
    pub fn read(headers: &[u8], payload: &[u8]) -> Result<Self, CounterError> {
        let total = read_payload(payload)?;
        let sources = match stored_headers::value(headers, COUNTER_SOURCES) {
            None | Some(b"") => None,
            Some(text) => serde_json::from_str::<Option<Sources>>(&String::from_utf8_lossy(text))
                .map_err(|_| CounterError::Broken)?,
        };
        Ok(Self {
            total,
            sources: sources.unwrap_or_default(),
        })
    }

    pub fn add(&mut self, increment: &Number) {
        self.total = self.total.add(increment);
    }

    /// Takes a message of another stream: adds what its total grew by since the last one, and returns that.
    ///
    /// `stream_source` is the header that says where it comes from, `subject` the one it gets here.
    pub fn add_sourced(
        &mut self,
        stream_source: &[u8],
        subject: &[u8],
        payload: &[u8],
    ) -> Result<Number, CounterError> {
        let total = read_payload(payload)?;
        let mut fields = stream_source.split(|byte| *byte == b' ');
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let stream = text(fields.next().unwrap_or_default());
        let origin = text(fields.nth(3).unwrap_or(subject));
        let subjects = self.sources.entry(stream).or_default();
        let before = subjects
            .get_or_insert_default()
            .insert(origin, Some(total.to_string()));
        let before = before
            .flatten()
            .map_or_else(Number::default, |text| Number::read_stored(&text));
        let increment = total.subtract(&before);
        self.add(&increment);
        Ok(increment)
    }

    /// How long `put_payload` makes it.
    pub fn payload_bytes(&self) -> usize {
        b"{\"val\":\"\"}".len() + self.total.text_bytes()
    }

    /// Appends what is stored as the payload.
    pub fn put_payload(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"val\":\"");
        self.total.put(out);
        out.extend_from_slice(b"\"}");
    }

    /// The header that remembers the totals of other streams; none if there are none. It is kept from message to message.
    pub fn sources_header(&self) -> Option<String> {
        if self.sources.is_empty() {
            return None;
        }
        let written: BTreeMap<_, _> = self
            .sources
            .iter()
            .map(|(stream, subjects)| {
                let subjects = subjects.as_ref().map(|subjects| {
                    let subjects = subjects.iter();
                    subjects
                        .map(|(subject, total)| (subject, total.as_deref().unwrap_or_default()))
                        .collect::<BTreeMap<_, _>>()
                });
                (stream, subjects)
            })
            .collect();
        let json = serde_json::to_string(&written).ok()?;
        let mut text = String::with_capacity(json.len());
        for character in json.chars() {
            match character {
                // As encoders for web pages do, and nats-server with them.
                '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                    text.push_str(&format!("\\u{:04x}", character as u32));
                }
                other => text.push(other),
            }
        }
        Some(text)
    }
}

/// The total in a payload `{"val":"12"}`.
fn read_payload(payload: &[u8]) -> Result<Number, CounterError> {
    // What we write is read without a parser.
    let plain = payload
        .strip_prefix(b"{\"val\":\"")
        .and_then(|rest| rest.strip_suffix(b"\"}"))
        .and_then(Number::read);
    if let Some(total) = plain {
        return Ok(total);
    }
    let text = String::from_utf8_lossy(payload);
    let value: serde_json::Value = serde_json::from_str(&text).map_err(|_| CounterError::Broken)?;
    let total = match &value {
        serde_json::Value::Null => None,
        serde_json::Value::Object(fields) => fields.get("val"),
        _ => return Err(CounterError::Broken),
    };
    match total {
        None | Some(serde_json::Value::Null) => Ok(Number::default()),
        Some(serde_json::Value::String(text)) => Ok(Number::read_stored(text)),
        Some(_) => Err(CounterError::Broken),
    }
}

#[cfg(test)]
#[path = "counter_tests.rs"]
mod tests;
