//! What the server says, appended to a byte buffer: `MSG`, `HMSG`, `-ERR` and the fixed words.
//!
//! The line of a delivery is written here; its body is added by the caller, who knows whether to copy it or to send it from where it is.

use super::operation::Publish;

pub const PING: &[u8] = b"PING\r\n";
pub const PONG: &[u8] = b"PONG\r\n";
pub const OK: &[u8] = b"+OK\r\n";

/// Appends `MSG subject sid [reply] size\r\n` for a message without headers (or whose headers the receiver does not take).
#[inline]
pub fn message_line(
    out: &mut Vec<u8>,
    subject: &[u8],
    sid: &[u8],
    reply: Option<&[u8]>,
    size_text: &[u8],
) {
    out.reserve(4 + subject.len() + sid.len() + reply.map_or(0, <[u8]>::len) + size_text.len() + 8);
    out.extend_from_slice(b"MSG ");
    line_tail(out, subject, sid, reply);
    out.extend_from_slice(size_text);
    out.extend_from_slice(b"\r\n");
}

/// Appends `HMSG subject sid [reply] header_size total_size\r\n`.
#[inline]
pub fn header_message_line(
    out: &mut Vec<u8>,
    subject: &[u8],
    sid: &[u8],
    reply: Option<&[u8]>,
    header_size_text: &[u8],
    total_size_text: &[u8],
) {
    out.extend_from_slice(b"HMSG ");
    line_tail(out, subject, sid, reply);
    out.extend_from_slice(header_size_text);
    out.push(b' ');
    out.extend_from_slice(total_size_text);
    out.extend_from_slice(b"\r\n");
}

#[inline]
fn line_tail(out: &mut Vec<u8>, subject: &[u8], sid: &[u8], reply: Option<&[u8]>) {
    out.extend_from_slice(subject);
    out.push(b' ');
    out.extend_from_slice(sid);
    out.push(b' ');
    if let Some(reply) = reply {
        out.extend_from_slice(reply);
        out.push(b' ');
    }
}

/// The line of one delivery. Returns where in `publish.body` the part to send begins: after the headers for a receiver
/// without them.
#[inline]
pub fn delivery_line(
    out: &mut Vec<u8>,
    publish: &Publish<'_>,
    sid: &[u8],
    receiver_takes_headers: bool,
) -> usize {
    if publish.header_len == 0 {
        message_line(
            out,
            publish.subject,
            sid,
            publish.reply,
            publish.total_size_text,
        );
        return 0;
    }
    if receiver_takes_headers {
        header_message_line(
            out,
            publish.subject,
            sid,
            publish.reply,
            publish.header_size_text,
            publish.total_size_text,
        );
        return 0;
    }
    let mut digits = [0; DECIMAL_DIGITS_MAX];
    let size_text = decimal(&mut digits, publish.payload().len());
    message_line(out, publish.subject, sid, publish.reply, size_text);
    publish.header_len
}

/// The line of a message for a server behind a link: `LMSG`, or `HMSG` with headers. `queues` are the groups that must
/// get it, each followed by a blank. Returns where in `publish.body` the part to send begins.
#[inline]
pub fn leaf_line(
    out: &mut Vec<u8>,
    publish: &Publish<'_>,
    queues: &[u8],
    receiver_takes_headers: bool,
) -> usize {
    let sends_headers = publish.header_len > 0 && receiver_takes_headers;
    out.extend_from_slice(if sends_headers { b"HMSG " } else { b"LMSG " });
    out.extend_from_slice(publish.subject);
    out.push(b' ');
    if !queues.is_empty() {
        out.extend_from_slice(if publish.reply.is_some() {
            b"+ "
        } else {
            b"| "
        });
    }
    if let Some(reply) = publish.reply {
        out.extend_from_slice(reply);
        out.push(b' ');
    }
    out.extend_from_slice(queues);
    let skipped = if sends_headers {
        out.extend_from_slice(publish.header_size_text);
        out.push(b' ');
        0
    } else {
        publish.header_len
    };
    if skipped == 0 {
        out.extend_from_slice(publish.total_size_text);
    } else {
        let mut digits = [0; DECIMAL_DIGITS_MAX];
        out.extend_from_slice(decimal(&mut digits, publish.payload().len()));
    }
    out.extend_from_slice(b"\r\n");
    skipped
}

/// Appends the answer to a request that nobody listens to: status 503 and the subject it was sent to.
pub fn no_responders(out: &mut Vec<u8>, reply: &[u8], sid: &[u8], subject: &[u8]) {
    const STATUS: &[u8] = b"NATS/1.0 503\r\nNats-Subject: ";
    const END: &[u8] = b"\r\n\r\n";
    let mut digits = [0; DECIMAL_DIGITS_MAX];
    let size_text = decimal(&mut digits, STATUS.len() + subject.len() + END.len());
    header_message_line(out, reply, sid, None, size_text, size_text);
    out.extend_from_slice(STATUS);
    out.extend_from_slice(subject);
    out.extend_from_slice(END);
    out.extend_from_slice(b"\r\n");
}

/// Appends `-ERR 'text'\r\n`.
pub fn error(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(b"-ERR '");
    out.extend_from_slice(text.as_bytes());
    out.extend_from_slice(b"'\r\n");
}

const DECIMAL_DIGITS_MAX: usize = 20;

/// A number as decimal text, without allocating.
#[inline]
pub fn decimal(digits: &mut [u8; DECIMAL_DIGITS_MAX], value: usize) -> &[u8] {
    let mut position = digits.len();
    let mut rest = value;
    loop {
        position -= 1;
        digits[position] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            return &digits[position..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_responders_counts_thirty_two_bytes_and_the_subject() {
        let mut out = Vec::new();

        no_responders(&mut out, b"_INBOX.1", b"7", b"orders");

        assert_eq!(
            out,
            b"HMSG _INBOX.1 7 38 38\r\nNATS/1.0 503\r\nNats-Subject: orders\r\n\r\n\r\n"
        );
    }

    #[test]
    fn a_receiver_without_headers_gets_the_payload_alone() {
        let publish = Publish {
            subject: b"a",
            reply: Some(b"r"),
            header_size_text: b"12",
            total_size_text: b"14",
            header_len: 12,
            body: b"NATS/1.0\r\n\r\nhi",
        };
        let mut out = Vec::new();

        let start = delivery_line(&mut out, &publish, b"1", false);

        assert_eq!(out, b"MSG a 1 r 2\r\n");
        assert_eq!(&publish.body[start..], b"hi");
    }

    #[test]
    fn decimal_writes_every_digit() {
        let mut digits = [0; DECIMAL_DIGITS_MAX];

        assert_eq!(decimal(&mut digits, 0), b"0");
        assert_eq!(decimal(&mut digits, usize::MAX), b"18446744073709551615");
    }
}
