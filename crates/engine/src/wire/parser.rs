//! Bytes in, one operation out: the client protocol as a state machine without a socket.
//!
//! `parse` looks at the front of a buffer and says one of three things: here is an operation and how many bytes it took; more bytes are
//! needed (a normal condition of a stream, so a value and not an error); or the client broke the protocol, and how. It keeps no state
//! of its own: the bytes of an unfinished operation are its state, and their number is limited by `ParserLimits`.
//!
//! Invariant: `Step::Operation` consumes at least one byte and never more than the buffer holds, so a caller that loops always ends.

use super::operation::{Operation, Publish};

/// Blanks and junk that a line may carry on top of its arguments; the limit proper is on the arguments.
const LINE_SLACK_BYTES: usize = 4096;

/// Sizes have at most nine digits on the wire, so they always fit and never overflow.
const SIZE_DIGITS_MAX: usize = 9;

/// `HPUB subject reply header_size total_size` is the longest: one more is kept to notice a surplus.
const ARGUMENTS_MAX: usize = 5;

/// What one connection may send; set at the handshake, read for every operation.
#[derive(Debug, Clone, Copy)]
pub struct ParserLimits {
    pub control_line_bytes_max: usize,
    pub payload_bytes_max: usize,
    /// Whether the client announced headers (and the server allows them): without, `HPUB` is refused.
    pub headers: bool,
}

/// What the front of the buffer holds.
#[derive(Debug, PartialEq, Eq)]
pub enum ParserStep<'a> {
    Operation {
        operation: Operation<'a>,
        consumed: usize,
    },
    /// Try again when the buffer holds at least this many bytes (counted from its front).
    Incomplete {
        bytes_needed: usize,
    },
    Refused(ProtocolViolation),
}

/// How a client broke the protocol. The session decides what is said and closes the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProtocolViolation {
    UnknownOperation,
    ControlLineTooLong,
    PayloadTooLarge,
    /// Wrong number of arguments or an invalid size: the reference server closes without a word.
    BadArguments,
    HeadersNotAnnounced,
}

type Parsed<'a> = Result<ParserStep<'a>, ProtocolViolation>;

/// Reads one operation from the front of `buffer`.
pub fn parse<'a>(buffer: &'a [u8], limits: &ParserLimits) -> ParserStep<'a> {
    match parse_operation(buffer, limits) {
        Ok(step) => step,
        Err(refusal) => ParserStep::Refused(refusal),
    }
}

fn parse_operation<'a>(buffer: &'a [u8], limits: &ParserLimits) -> Parsed<'a> {
    let Some(&first) = buffer.first() else {
        return Ok(ParserStep::Incomplete { bytes_needed: 1 });
    };
    match first {
        b'P' | b'p' => match buffer.get(1) {
            Some(b'U' | b'u') => parse_publish(buffer, false, limits),
            Some(b'I' | b'i') => parse_bare(buffer, b"PING", Operation::Ping, limits),
            Some(b'O' | b'o') => parse_bare(buffer, b"PONG", Operation::Pong, limits),
            Some(_) => Err(ProtocolViolation::UnknownOperation),
            None => Ok(ParserStep::Incomplete { bytes_needed: 2 }),
        },
        b'H' | b'h' => parse_publish(buffer, true, limits),
        b'S' | b's' => parse_subscribe(buffer, limits),
        b'U' | b'u' => parse_unsubscribe(buffer, limits),
        b'C' | b'c' => parse_text(buffer, b"CONNECT", limits, Operation::Connect),
        b'+' => parse_bare(buffer, b"+OK", Operation::Acknowledged, limits),
        b'-' => parse_error(buffer, limits),
        b'I' | b'i' => parse_text(buffer, b"INFO", limits, Operation::Information),
        _ => Err(ProtocolViolation::UnknownOperation),
    }
}

/// What the line of a `PUB` or `HPUB` says, checked as far as the line goes.
struct Announced<'a> {
    subject: &'a [u8],
    reply: Option<&'a [u8]>,
    header_size_text: &'a [u8],
    total_size_text: &'a [u8],
    header_len: usize,
    total_len: usize,
    /// Where the body begins.
    body_start: usize,
}

/// Reads and checks the line of a publish. Sizes over the limit are refused here, so that no room is made for the body.
#[inline]
fn read_announced<'a>(
    buffer: &'a [u8],
    with_headers: bool,
    limits: &ParserLimits,
) -> Result<Result<Announced<'a>, ParserStep<'a>>, ProtocolViolation> {
    let name: &[u8] = if with_headers { b"HPUB" } else { b"PUB" };
    let line = match read_line(buffer, name, CarriageReturn::IsText, limits)? {
        LineSearch::Complete(line) => line,
        LineSearch::Incomplete(step) => return Ok(Err(step)),
    };
    if with_headers && !limits.headers {
        return Err(ProtocolViolation::HeadersNotAnnounced);
    }
    let (subject, reply, header_size_text, total_size_text) = match (with_headers, line.arguments())
    {
        (false, [subject, total]) => (*subject, None, &b""[..], *total),
        (false, [subject, reply, total]) => (*subject, Some(*reply), &b""[..], *total),
        (true, [subject, header, total]) => (*subject, None, *header, *total),
        (true, [subject, reply, header, total]) => (*subject, Some(*reply), *header, *total),
        _ => return Err(ProtocolViolation::BadArguments),
    };
    let header_len = if with_headers {
        parse_size(header_size_text).ok_or(ProtocolViolation::BadArguments)?
    } else {
        0
    };
    let total_len = parse_size(total_size_text).ok_or(ProtocolViolation::BadArguments)?;
    if header_len > total_len {
        return Err(ProtocolViolation::BadArguments);
    }
    if total_len > limits.payload_bytes_max {
        return Err(ProtocolViolation::PayloadTooLarge);
    }
    Ok(Ok(Announced {
        subject,
        reply,
        header_size_text,
        total_size_text,
        header_len,
        total_len,
        body_start: line.end,
    }))
}

#[inline]
fn parse_publish<'a>(buffer: &'a [u8], with_headers: bool, limits: &ParserLimits) -> Parsed<'a> {
    let announced = match read_announced(buffer, with_headers, limits)? {
        Ok(announced) => announced,
        Err(step) => return Ok(step),
    };
    let body = match read_body(buffer, announced.body_start, announced.total_len)? {
        BodySearch::Complete(body) => body,
        BodySearch::Incomplete(step) => return Ok(step),
    };
    let publish = Publish {
        subject: announced.subject,
        reply: announced.reply,
        header_size_text: announced.header_size_text,
        total_size_text: announced.total_size_text,
        header_len: announced.header_len,
        body,
    };
    Ok(ParserStep::Operation {
        operation: Operation::Publish(publish),
        consumed: announced.body_start + announced.total_len + 2,
    })
}

fn parse_subscribe<'a>(buffer: &'a [u8], limits: &ParserLimits) -> Parsed<'a> {
    let line = match read_line(buffer, b"SUB", CarriageReturn::IsBlank, limits)? {
        LineSearch::Complete(line) => line,
        LineSearch::Incomplete(step) => return Ok(step),
    };
    let (subject, queue, sid) = match line.arguments() {
        [subject, sid] => (*subject, None, *sid),
        [subject, queue, sid] => (*subject, Some(*queue), *sid),
        _ => return Err(ProtocolViolation::BadArguments),
    };
    Ok(ParserStep::Operation {
        operation: Operation::Subscribe {
            subject,
            queue,
            sid,
        },
        consumed: line.end,
    })
}

fn parse_unsubscribe<'a>(buffer: &'a [u8], limits: &ParserLimits) -> Parsed<'a> {
    let line = match read_line(buffer, b"UNSUB", CarriageReturn::IsBlank, limits)? {
        LineSearch::Complete(line) => line,
        LineSearch::Incomplete(step) => return Ok(step),
    };
    let (sid, delivered_max) = match line.arguments() {
        [sid] => (*sid, None),
        // A maximum that is not a number counts as none, as does zero: the subscription ends now.
        [sid, max] => (
            *sid,
            parse_size(max).filter(|max| *max > 0).map(|max| max as u64),
        ),
        _ => return Err(ProtocolViolation::BadArguments),
    };
    Ok(ParserStep::Operation {
        operation: Operation::Unsubscribe { sid, delivered_max },
        consumed: line.end,
    })
}

/// `-ERR text`: the blank after the name is a must.
fn parse_error<'a>(buffer: &'a [u8], limits: &ParserLimits) -> Parsed<'a> {
    const NAME: &[u8] = b"-ERR";
    if let Some(step) = check_name(buffer, NAME)? {
        return Ok(step);
    }
    match buffer.get(NAME.len()) {
        Some(b' ' | b'\t') => parse_text(buffer, NAME, limits, |_| Operation::Failed),
        Some(_) => Err(ProtocolViolation::UnknownOperation),
        None => Ok(ParserStep::Incomplete {
            bytes_needed: NAME.len() + 1,
        }),
    }
}

/// An operation whose argument is free text: `CONNECT {json}`, `INFO {json}`. The blank after the name may be missing.
fn parse_text<'a>(
    buffer: &'a [u8],
    name: &[u8],
    limits: &ParserLimits,
    operation: impl FnOnce(&'a [u8]) -> Operation<'a>,
) -> Parsed<'a> {
    if let Some(step) = check_name(buffer, name)? {
        return Ok(step);
    }
    let start = skip_blanks(buffer, name.len());
    match memchr::memchr(b'\n', &buffer[start..]) {
        Some(length) => {
            let mut text = &buffer[start..start + length];
            if let Some(stripped) = text.strip_suffix(b"\r") {
                text = stripped;
            }
            if text.len() > limits.control_line_bytes_max {
                return Err(ProtocolViolation::ControlLineTooLong);
            }
            Ok(ParserStep::Operation {
                operation: operation(text),
                consumed: start + length + 1,
            })
        }
        None => incomplete_line(buffer, start, limits),
    }
}

/// An operation without arguments: whatever stands before the line feed is tolerated.
fn parse_bare<'a>(
    buffer: &'a [u8],
    name: &[u8],
    operation: Operation<'a>,
    limits: &ParserLimits,
) -> Parsed<'a> {
    if let Some(step) = check_name(buffer, name)? {
        return Ok(step);
    }
    match memchr::memchr(b'\n', &buffer[name.len()..]) {
        Some(length) => Ok(ParserStep::Operation {
            operation,
            consumed: name.len() + length + 1,
        }),
        None => incomplete_line(buffer, name.len(), limits),
    }
}

/// The subject of a publish whose line is complete and right while its body is not there (or is wrong): some answers do not wait for it.
pub fn announced_subject<'a>(buffer: &'a [u8], limits: &ParserLimits) -> Option<&'a [u8]> {
    let with_headers = matches!(buffer.first(), Some(b'H' | b'h'));
    match read_announced(buffer, with_headers, limits) {
        Ok(Ok(announced)) => Some(announced.subject),
        _ => None,
    }
}

enum LineSearch<'a> {
    Complete(ControlLine<'a>),
    Incomplete(ParserStep<'a>),
}

struct ControlLine<'a> {
    items: [&'a [u8]; ARGUMENTS_MAX],
    count: usize,
    /// Where the bytes after the line begin.
    end: usize,
}

impl<'a> ControlLine<'a> {
    fn arguments(&self) -> &[&'a [u8]] {
        &self.items[..self.count]
    }
}

/// What a carriage return inside a line is. Only the last one before the line feed belongs to the line's end in either case.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CarriageReturn {
    IsBlank,
    IsText,
}

/// Reads `NAME blank arguments LF` and splits the arguments in the same pass.
#[inline]
fn read_line<'a>(
    buffer: &'a [u8],
    name: &[u8],
    carriage_return: CarriageReturn,
    limits: &ParserLimits,
) -> Result<LineSearch<'a>, ProtocolViolation> {
    if let Some(step) = check_name(buffer, name)? {
        return Ok(LineSearch::Incomplete(step));
    }
    match buffer.get(name.len()) {
        Some(b' ' | b'\t') => {}
        Some(_) => return Err(ProtocolViolation::UnknownOperation),
        None => {
            return Ok(LineSearch::Incomplete(ParserStep::Incomplete {
                bytes_needed: name.len() + 1,
            }))
        }
    }
    let arguments_start = skip_blanks(buffer, name.len());
    let mut items: [&[u8]; ARGUMENTS_MAX] = [b""; ARGUMENTS_MAX];
    let mut count = 0;
    let mut token_start = arguments_start;
    let mut position = arguments_start;
    while position < buffer.len() {
        let byte = buffer[position];
        if byte > b' ' {
            position += 1;
            continue;
        }
        let ends_line = byte == b'\n';
        if ends_line
            || matches!(byte, b' ' | b'\t')
            || (byte == b'\r' && carriage_return == CarriageReturn::IsBlank)
        {
            let ended_by_pair =
                ends_line && position > token_start && buffer[position - 1] == b'\r';
            let token_end = position - usize::from(ended_by_pair);
            if token_start < token_end {
                if count < ARGUMENTS_MAX {
                    items[count] = &buffer[token_start..token_end];
                }
                count += 1;
            }
            token_start = position + 1;
            if ends_line {
                let has_pair = position > arguments_start && buffer[position - 1] == b'\r';
                if position - usize::from(has_pair) - arguments_start
                    > limits.control_line_bytes_max
                {
                    return Err(ProtocolViolation::ControlLineTooLong);
                }
                if count > ARGUMENTS_MAX {
                    return Err(ProtocolViolation::BadArguments);
                }
                return Ok(LineSearch::Complete(ControlLine {
                    items,
                    count,
                    end: position + 1,
                }));
            }
        }
        position += 1;
    }
    incomplete_line(buffer, arguments_start, limits).map(LineSearch::Incomplete)
}

pub(super) enum BodySearch<'a> {
    Complete(&'a [u8]),
    Incomplete(ParserStep<'a>),
}

#[inline]
pub(super) fn read_body<'a>(
    buffer: &'a [u8],
    start: usize,
    length: usize,
) -> Result<BodySearch<'a>, ProtocolViolation> {
    let end = start + length;
    // A wrong byte after the payload is an error as soon as it is there, even when the second one is still missing.
    if buffer.get(end).is_some_and(|byte| *byte != b'\r') {
        return Err(ProtocolViolation::UnknownOperation);
    }
    match buffer.get(end + 1) {
        Some(b'\n') => Ok(BodySearch::Complete(&buffer[start..end])),
        Some(_) => Err(ProtocolViolation::UnknownOperation),
        None => Ok(BodySearch::Incomplete(ParserStep::Incomplete {
            bytes_needed: end + 2,
        })),
    }
}

/// Names are case-insensitive. A buffer that ends inside the name is incomplete; a wrong byte is an error at once.
#[inline]
pub(super) fn check_name<'a>(
    buffer: &[u8],
    name: &[u8],
) -> Result<Option<ParserStep<'a>>, ProtocolViolation> {
    let length = name.len().min(buffer.len());
    if !buffer[..length].eq_ignore_ascii_case(&name[..length]) {
        return Err(ProtocolViolation::UnknownOperation);
    }
    if length < name.len() {
        return Ok(Some(ParserStep::Incomplete {
            bytes_needed: length + 1,
        }));
    }
    Ok(None)
}

#[inline]
fn skip_blanks(buffer: &[u8], start: usize) -> usize {
    let mut position = start;
    while matches!(buffer.get(position), Some(b' ' | b'\t')) {
        position += 1;
    }
    position
}

/// No line feed yet: fine as long as the arguments so far keep within the limit.
pub(super) fn incomplete_line<'a>(
    buffer: &[u8],
    arguments_start: usize,
    limits: &ParserLimits,
) -> Result<ParserStep<'a>, ProtocolViolation> {
    let carriage_return = usize::from(buffer.last() == Some(&b'\r'));
    let arguments_len = (buffer.len() - arguments_start).saturating_sub(carriage_return);
    if arguments_len > limits.control_line_bytes_max
        || buffer.len() > limits.control_line_bytes_max + LINE_SLACK_BYTES
    {
        return Err(ProtocolViolation::ControlLineTooLong);
    }
    Ok(ParserStep::Incomplete {
        bytes_needed: buffer.len() + 1,
    })
}

/// One to nine decimal digits.
#[inline]
pub fn parse_size(text: &[u8]) -> Option<usize> {
    if text.is_empty() || text.len() > SIZE_DIGITS_MAX {
        return None;
    }
    let mut value = 0usize;
    for byte in text {
        if !byte.is_ascii_digit() {
            return None;
        }
        value = value * 10 + usize::from(byte - b'0');
    }
    Some(value)
}

#[cfg(test)]
#[path = "parser_tests.rs"]
mod tests;
