//! Bytes in, one operation out: the protocol between a leaf node and its hub.
//!
//! | operation | form |
//! |---|---|
//! | interest | `LS+ subject`, `LS+ subject queue weight`; ends with `LS- subject`, `LS- subject queue` |
//! | a message | `LMSG subject [reply] size`, for queue groups `LMSG subject | queue … size` or `LMSG subject + reply queue … size` |
//! | a message with headers | the same with `HMSG`, and the size of the headers before the size of all |
//! | the rest | `INFO`, `CONNECT`, `PING`, `PONG`, `+OK`, `-ERR`, as between clients and servers |
//!
//! Invariant, as in `parser`: an operation consumes at least one byte and never more than the buffer holds.

use super::operation::Publish;
use super::parser::{
    check_name, incomplete_line, parse_size, read_body, BodySearch, ParserLimits, ParserStep,
    ProtocolViolation,
};

/// A line may name many queue groups: this many times the limit of clients.
pub const CONTROL_LINE_FACTOR: usize = 16;

/// What a server on the other side of a link may say, borrowed from the bytes it sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeafOperation<'a> {
    Connect(&'a [u8]),
    Information(&'a [u8]),
    Interest(LeafSubject<'a>),
    InterestEnded(LeafSubject<'a>),
    Message(LeafMessage<'a>),
    Ping,
    Pong,
    Acknowledged,
    /// The text after `-ERR`.
    Failed(&'a [u8]),
}

/// What the other side wants, or no longer wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeafSubject<'a> {
    pub subject: &'a [u8],
    pub queue: Option<&'a [u8]>,
    /// Members of the queue group behind the link.
    pub weight: u32,
}

/// A message, and the queue groups that are to have it besides everybody without a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeafMessage<'a> {
    pub publish: Publish<'a>,
    /// Their names, with blanks between them.
    pub queues: &'a [u8],
}

/// What the front of the buffer holds.
#[derive(Debug, PartialEq, Eq)]
pub enum LeafStep<'a> {
    Operation {
        operation: LeafOperation<'a>,
        consumed: usize,
    },
    Incomplete {
        bytes_needed: usize,
    },
    Refused(ProtocolViolation),
}

type Parsed<'a> = Result<LeafStep<'a>, ProtocolViolation>;

/// Reads one operation from the front of `buffer`.
pub fn parse_leaf<'a>(buffer: &'a [u8], limits: &ParserLimits) -> LeafStep<'a> {
    match parse_operation(buffer, limits) {
        Ok(step) => step,
        Err(refusal) => LeafStep::Refused(refusal),
    }
}

fn parse_operation<'a>(buffer: &'a [u8], limits: &ParserLimits) -> Parsed<'a> {
    let Some(&first) = buffer.first() else {
        return Ok(LeafStep::Incomplete { bytes_needed: 1 });
    };
    match first.to_ascii_uppercase() {
        b'L' => match buffer.get(1).map(u8::to_ascii_uppercase) {
            Some(b'M') => parse_message(buffer, b"LMSG", limits),
            Some(b'S') => match buffer.get(2) {
                Some(b'+') => parse_line(buffer, b"LS+", limits, read_interest),
                Some(b'-') => parse_line(buffer, b"LS-", limits, read_interest_ended),
                Some(_) => Err(ProtocolViolation::UnknownOperation),
                None => Ok(LeafStep::Incomplete { bytes_needed: 3 }),
            },
            Some(_) => Err(ProtocolViolation::UnknownOperation),
            None => Ok(LeafStep::Incomplete { bytes_needed: 2 }),
        },
        b'H' => parse_message(buffer, b"HMSG", limits),
        b'P' => match buffer.get(1).map(u8::to_ascii_uppercase) {
            Some(b'I') => parse_line(buffer, b"PING", limits, |_| Ok(LeafOperation::Ping)),
            Some(b'O') => parse_line(buffer, b"PONG", limits, |_| Ok(LeafOperation::Pong)),
            Some(_) => Err(ProtocolViolation::UnknownOperation),
            None => Ok(LeafStep::Incomplete { bytes_needed: 2 }),
        },
        b'I' => parse_line(buffer, b"INFO", limits, |text| {
            Ok(LeafOperation::Information(text))
        }),
        b'C' => parse_line(buffer, b"CONNECT", limits, |text| {
            Ok(LeafOperation::Connect(text))
        }),
        b'+' => parse_line(buffer, b"+OK", limits, |_| Ok(LeafOperation::Acknowledged)),
        b'-' => parse_line(buffer, b"-ERR", limits, |text| {
            Ok(LeafOperation::Failed(text))
        }),
        _ => Err(ProtocolViolation::UnknownOperation),
    }
}

/// Reads an operation that is one line; `read` gets what follows its name.
fn parse_line<'a>(
    buffer: &'a [u8],
    name: &[u8],
    limits: &ParserLimits,
    read: impl FnOnce(&'a [u8]) -> Result<LeafOperation<'a>, ProtocolViolation>,
) -> Parsed<'a> {
    let (text, consumed) = match find_line(buffer, name, limits)? {
        Ok(found) => found,
        Err(step) => return Ok(step),
    };
    Ok(LeafStep::Operation {
        operation: read(text)?,
        consumed,
    })
}

/// The arguments of a line, without the blanks around them, and where the bytes after it begin.
#[inline]
fn find_line<'a>(
    buffer: &'a [u8],
    name: &[u8],
    limits: &ParserLimits,
) -> Result<Result<(&'a [u8], usize), LeafStep<'a>>, ProtocolViolation> {
    if let Some(step) = check_name(buffer, name)? {
        return Ok(Err(incomplete(step)));
    }
    let Some(length) = memchr::memchr(b'\n', &buffer[name.len()..]) else {
        let step = incomplete_line(buffer, name.len(), limits)?;
        return Ok(Err(incomplete(step)));
    };
    let text = buffer[name.len()..name.len() + length].trim_ascii();
    if text.len() > limits.control_line_bytes_max {
        return Err(ProtocolViolation::ControlLineTooLong);
    }
    Ok(Ok((text, name.len() + length + 1)))
}

/// The same wait in the words of this parser.
fn incomplete<'a>(step: ParserStep<'_>) -> LeafStep<'a> {
    match step {
        ParserStep::Incomplete { bytes_needed } => LeafStep::Incomplete { bytes_needed },
        ParserStep::Operation { .. } => unreachable!("only waits are passed on"),
        ParserStep::Refused(refusal) => LeafStep::Refused(refusal),
    }
}

fn read_interest(text: &[u8]) -> Result<LeafOperation<'_>, ProtocolViolation> {
    let (subject, rest) = first_token(text);
    if subject.is_empty() {
        return Err(ProtocolViolation::BadArguments);
    }
    if rest.is_empty() {
        return Ok(LeafOperation::Interest(LeafSubject {
            subject,
            queue: None,
            weight: 1,
        }));
    }
    let (queue, rest) = first_token(rest);
    let weight = parse_size(rest).and_then(|weight| u32::try_from(weight).ok());
    Ok(LeafOperation::Interest(LeafSubject {
        subject,
        queue: Some(queue),
        weight: weight.ok_or(ProtocolViolation::BadArguments)?.max(1),
    }))
}

fn read_interest_ended(text: &[u8]) -> Result<LeafOperation<'_>, ProtocolViolation> {
    let (subject, queue) = first_token(text);
    if subject.is_empty() || queue.contains(&b' ') {
        return Err(ProtocolViolation::BadArguments);
    }
    Ok(LeafOperation::InterestEnded(LeafSubject {
        subject,
        queue: (!queue.is_empty()).then_some(queue),
        weight: 0,
    }))
}

#[inline]
fn parse_message<'a>(buffer: &'a [u8], name: &[u8], limits: &ParserLimits) -> Parsed<'a> {
    let (text, body_start) = match find_line(buffer, name, limits)? {
        Ok(found) => found,
        Err(step) => return Ok(step),
    };
    let with_headers = name[0] == b'H';
    if with_headers && !limits.headers {
        return Err(ProtocolViolation::HeadersNotAnnounced);
    }
    let (rest, total_size_text) = last_token(text);
    let total_len = parse_size(total_size_text).ok_or(ProtocolViolation::BadArguments)?;
    let (rest, header_size_text, header_len) = if with_headers {
        let (rest, text) = last_token(rest);
        let length = parse_size(text).ok_or(ProtocolViolation::BadArguments)?;
        (rest, text, length)
    } else {
        (rest, &b""[..], 0)
    };
    if header_len > total_len {
        return Err(ProtocolViolation::BadArguments);
    }
    if total_len > limits.payload_bytes_max {
        return Err(ProtocolViolation::PayloadTooLarge);
    }
    let (subject, reply, queues) = read_addresses(rest)?;
    let body = match read_body(buffer, body_start, total_len)? {
        BodySearch::Complete(body) => body,
        BodySearch::Incomplete(step) => return Ok(incomplete(step)),
    };
    Ok(LeafStep::Operation {
        operation: LeafOperation::Message(LeafMessage {
            publish: Publish {
                subject,
                reply,
                header_size_text,
                total_size_text,
                header_len,
                body,
            },
            queues,
        }),
        consumed: body_start + total_len + 2,
    })
}

type Addresses<'a> = (&'a [u8], Option<&'a [u8]>, &'a [u8]);

/// Reads `subject`, `subject reply`, `subject | queue …` or `subject + reply queue …`.
#[inline]
fn read_addresses(text: &[u8]) -> Result<Addresses<'_>, ProtocolViolation> {
    let (subject, rest) = first_token(text);
    if subject.is_empty() {
        return Err(ProtocolViolation::BadArguments);
    }
    if rest.is_empty() {
        return Ok((subject, None, b""));
    }
    let (second, rest) = first_token(rest);
    if rest.is_empty() {
        return Ok((subject, Some(second), b""));
    }
    match second {
        b"|" => Ok((subject, None, rest)),
        b"+" => {
            let (reply, queues) = first_token(rest);
            if queues.is_empty() {
                return Err(ProtocolViolation::BadArguments);
            }
            Ok((subject, Some(reply), queues))
        }
        _ => Err(ProtocolViolation::BadArguments),
    }
}

#[inline]
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// The first token, and what follows it without the blanks in between.
#[inline]
fn first_token(text: &[u8]) -> (&[u8], &[u8]) {
    match text.iter().position(|byte| is_blank(*byte)) {
        None => (text, b""),
        Some(end) => (&text[..end], text[end..].trim_ascii_start()),
    }
}

/// What stands before the last token, without the blanks in between, and that token.
#[inline]
fn last_token(text: &[u8]) -> (&[u8], &[u8]) {
    match text.iter().rposition(|byte| is_blank(*byte)) {
        None => (b"", text),
        Some(blank) => (text[..blank].trim_ascii_end(), &text[blank + 1..]),
    }
}

#[cfg(test)]
#[path = "leaf_parser_tests.rs"]
mod tests;
