//! The headers of a message as bytes: `NATS/1.0`, perhaps a status, lines of `Name: value`, an empty line.
//!
//! Invariant: any bytes are accepted; what is not a line is skipped.

const VERSION: &[u8] = b"NATS/1.0";

/// What a Direct Get adds after the headers that were stored.
const ADDED: [&[u8]; 7] = [
    b"Nats-Stream",
    b"Nats-Subject",
    b"Nats-Sequence",
    b"Nats-Time-Stamp",
    b"Nats-Num-Pending",
    b"Nats-Last-Sequence",
    b"Nats-UpTo-Sequence",
];

/// A block, split at its first line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeaderBlock<'a> {
    /// After the version: empty for a message, a code and a text for a status.
    pub status: &'a [u8],
    /// The lines, without the version.
    pub lines: &'a [u8],
}

impl<'a> HeaderBlock<'a> {
    pub fn read(block: &'a [u8]) -> Self {
        let Some(rest) = block.strip_prefix(VERSION) else {
            return Self {
                status: b"",
                lines: b"",
            };
        };
        let end = memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
        Self {
            status: rest[..end].trim_ascii(),
            lines: &rest[end..],
        }
    }

    /// The code of a status; `None` for a message.
    pub fn code(&self) -> Option<u16> {
        let code = self.status.get(..3)?;
        std::str::from_utf8(code).ok()?.parse().ok()
    }

    /// The text of a status.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(self.status).into_owned()
    }

    /// The value of the last line with this name.
    pub fn value(&self, name: &[u8]) -> Option<&'a [u8]> {
        lines(self.lines)
            .filter(|line| line.name == name)
            .last()
            .map(|line| line.value)
    }

    /// The same as a number.
    pub fn number(&self, name: &[u8]) -> Option<u64> {
        number(self.value(name)?)
    }
}

/// Digits as a number.
pub fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.trim().parse().ok()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeaderLine<'a> {
    pub name: &'a [u8],
    pub value: &'a [u8],
    /// Where it begins.
    pub start: usize,
}

/// The lines of a block in their order.
pub fn lines(block: &[u8]) -> impl Iterator<Item = HeaderLine<'_>> {
    let mut start = 0;
    std::iter::from_fn(move || loop {
        let rest = block.get(start..).filter(|rest| !rest.is_empty())?;
        let end = memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
        let line_start = start;
        start += end;
        let line = rest[..end].strip_suffix(b"\n").unwrap_or(&rest[..end]);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if let Some(colon) = memchr::memchr(b':', line).filter(|colon| *colon > 0) {
            let value = &line[colon + 1..];
            let blanks = value
                .iter()
                .take_while(|byte| matches!(byte, b' ' | b'\t'))
                .count();
            return Some(HeaderLine {
                name: &line[..colon],
                value: &value[blanks..],
                start: line_start,
            });
        }
    })
}

/// Where a message comes from, as a Direct Get says it, and the headers it was stored with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DirectGetOrigin<'a> {
    pub subject: &'a [u8],
    pub sequence: u64,
    pub time: &'a [u8],
    pub pending: Option<u64>,
    /// The lines that were stored.
    pub stored: &'a [u8],
}

impl<'a> DirectGetOrigin<'a> {
    /// A stored message may itself have headers of these names, so only the last line of each counts, and only after all
    /// others.
    pub fn read(block: &HeaderBlock<'a>) -> Option<Self> {
        let mut origin = Self::default();
        let mut seen = [false; ADDED.len()];
        let mut end = block.lines.len();
        let body = trim_end(block.lines);
        end = end.min(body.len());
        loop {
            let line_start = memchr::memrchr(b'\n', trim_end(&block.lines[..end]))
                .map_or(0, |newline| newline + 1);
            let Some(line) = lines(&block.lines[line_start..end]).next() else {
                break;
            };
            let Some(which) = ADDED.iter().position(|name| *name == line.name) else {
                break;
            };
            if std::mem::replace(&mut seen[which], true) {
                break;
            }
            match which {
                1 => origin.subject = line.value,
                2 => origin.sequence = number(line.value)?,
                3 => origin.time = line.value,
                4 => origin.pending = number(line.value),
                _ => {}
            }
            end = line_start;
            if end == 0 {
                break;
            }
        }
        origin.stored = &block.lines[..end];
        (seen[1] && seen[2] && seen[3]).then_some(origin)
    }
}

fn trim_end(mut bytes: &[u8]) -> &[u8] {
    while let Some(rest) = bytes
        .strip_suffix(b"\n")
        .or_else(|| bytes.strip_suffix(b"\r"))
    {
        bytes = rest;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_status_is_told_from_a_message() {
        let status = HeaderBlock::read(b"NATS/1.0 404 No Messages\r\nA: 7\r\n\r\n");
        let message = HeaderBlock::read(b"NATS/1.0\r\nA: b\r\n\r\n");

        assert_eq!(status.code(), Some(404));
        assert_eq!(status.text(), "404 No Messages");
        assert_eq!(status.number(b"A"), Some(7));
        assert_eq!(message.code(), None);
        assert_eq!(message.value(b"A"), Some(&b"b"[..]));
    }

    #[test]
    fn headers_of_a_direct_get_are_told_from_stored_ones_of_the_same_name() {
        let block = HeaderBlock::read(
            b"NATS/1.0\r\nNats-Sequence: 99\r\nA: b\r\nNats-Stream: S\r\nNats-Subject: a.b\r\n\
              Nats-Sequence: 7\r\nNats-Time-Stamp: 2026-01-01T00:00:00Z\r\nNats-Num-Pending: 3\r\n\r\n",
        );

        let origin = DirectGetOrigin::read(&block).unwrap();

        assert_eq!(origin.subject, b"a.b");
        assert_eq!(origin.sequence, 7);
        assert_eq!(origin.pending, Some(3));
        assert_eq!(origin.stored, b"Nats-Sequence: 99\r\nA: b\r\n");
    }

    #[test]
    fn a_message_without_an_origin_is_none() {
        assert_eq!(
            DirectGetOrigin::read(&HeaderBlock::read(b"NATS/1.0\r\nA: b\r\n\r\n")),
            None
        );
        assert_eq!(DirectGetOrigin::read(&HeaderBlock::read(b"")), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(block in proptest::collection::vec(any::<u8>(), 0..200), text in "(NATS/1.0)?[ A:\r\n0-9]{0,60}") {
            for bytes in [block.as_slice(), text.as_bytes()] {
                let read = HeaderBlock::read(bytes);
                let _ = (read.code(), DirectGetOrigin::read(&read), lines(bytes).count());
            }
        }
    }
}
