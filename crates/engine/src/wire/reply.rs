//! The other direction: what a server says, read from bytes. The load generator and the bulk readers are clients and use this.
//!
//! Like the parser it keeps no state and borrows from the buffer; the peer is trusted no more than a client is.

use super::parser::parse_size;

/// One complete line of a server, with the body of a message.
#[derive(Debug, PartialEq, Eq)]
pub enum Reply<'a> {
    Message {
        subject: &'a [u8],
        sid: &'a [u8],
        reply: Option<&'a [u8]>,
        header_len: usize,
        body: &'a [u8],
    },
    Ping,
    Pong,
    Acknowledged,
    /// The text of `-ERR 'text'`, with its quotes.
    Error(&'a [u8]),
    Information(&'a [u8]),
}

/// A server that does not speak the protocol.
#[derive(Debug, PartialEq, Eq)]
pub struct NotUnderstood;

/// Reads one reply from the front of `buffer`, or `None` when more bytes are needed.
pub fn parse_reply(buffer: &[u8]) -> Result<Option<(Reply<'_>, usize)>, NotUnderstood> {
    let Some(line_end) = memchr::memchr(b'\n', buffer) else {
        return Ok(None);
    };
    let line = buffer[..line_end]
        .strip_suffix(b"\r")
        .ok_or(NotUnderstood)?;
    let next = line_end + 1;
    if let Some(arguments) = line.strip_prefix(b"MSG ") {
        return message(buffer, next, arguments, false);
    }
    if let Some(arguments) = line.strip_prefix(b"HMSG ") {
        return message(buffer, next, arguments, true);
    }
    let reply = match line {
        b"PING" => Reply::Ping,
        b"PONG" => Reply::Pong,
        b"+OK" => Reply::Acknowledged,
        _ => {
            if let Some(json) = line.strip_prefix(b"INFO ") {
                Reply::Information(json)
            } else if let Some(text) = line.strip_prefix(b"-ERR ") {
                Reply::Error(text)
            } else {
                return Err(NotUnderstood);
            }
        }
    };
    Ok(Some((reply, next)))
}

fn message<'a>(
    buffer: &'a [u8],
    body_start: usize,
    arguments: &'a [u8],
    with_headers: bool,
) -> Result<Option<(Reply<'a>, usize)>, NotUnderstood> {
    // Servers may leave two blanks where an empty reply subject stands, so empty tokens are skipped.
    let mut tokens: [&[u8]; 5] = [b""; 5];
    let mut count = 0;
    for token in arguments
        .split(|byte| *byte == b' ')
        .filter(|token| !token.is_empty())
    {
        if count == tokens.len() {
            return Err(NotUnderstood);
        }
        tokens[count] = token;
        count += 1;
    }
    let sizes = if with_headers { 2 } else { 1 };
    let reply = match count - sizes.min(count) {
        2 => None,
        3 => Some(tokens[2]),
        _ => return Err(NotUnderstood),
    };
    let header_len = if with_headers {
        parse_size(tokens[count - 2]).ok_or(NotUnderstood)?
    } else {
        0
    };
    let total_len = parse_size(tokens[count - 1]).ok_or(NotUnderstood)?;
    if header_len > total_len {
        return Err(NotUnderstood);
    }
    let body_end = body_start + total_len;
    if buffer.len() < body_end + 2 {
        return Ok(None);
    }
    if &buffer[body_end..body_end + 2] != b"\r\n" {
        return Err(NotUnderstood);
    }
    let message = Reply::Message {
        subject: tokens[0],
        sid: tokens[1],
        reply,
        header_len,
        body: &buffer[body_start..body_end],
    };
    Ok(Some((message, body_end + 2)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read_with_and_without_reply() {
        let (reply, consumed) = parse_reply(b"MSG a 1 r 2\r\nhi\r\nPING\r\n")
            .unwrap()
            .unwrap();

        assert_eq!(consumed, 17);
        assert_eq!(
            reply,
            Reply::Message {
                subject: b"a",
                sid: b"1",
                reply: Some(b"r"),
                header_len: 0,
                body: b"hi"
            }
        );
    }

    #[test]
    fn an_unfinished_message_is_not_an_error() {
        assert_eq!(parse_reply(b"MSG a 1 5\r\nhe"), Ok(None));
        assert_eq!(parse_reply(b"MS"), Ok(None));
    }

    #[test]
    fn a_size_that_is_no_number_is_not_understood() {
        assert_eq!(parse_reply(b"MSG a 1 x\r\n"), Err(NotUnderstood));
        assert_eq!(
            parse_reply(b"HMSG a 1 9 5\r\nhello\r\n"),
            Err(NotUnderstood)
        );
        assert_eq!(parse_reply(b"MSG 1\r\n"), Err(NotUnderstood));
    }
}
