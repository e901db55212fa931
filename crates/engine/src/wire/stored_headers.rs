//! The headers of a message as they are stored: what only the server may say is taken out, what it says is put in. The one place for both.
//!
//! A block is a line with the version, lines with a name and a value, and an empty line. Invariant: what goes in as a block comes out as one.

use super::trusted_headers::{
    is_owned, may_be_owned, REQUEST_INFORMATION, TRACE_DESTINATION, TRACE_DISABLED,
};

const VERSION: &[u8] = b"NATS/1.0";
const LINE_END: &[u8] = b"\r\n";

/// Who has made a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Author {
    /// Anybody: what only the server may say does not count.
    Publisher,
    /// The server itself, which says what it must.
    Server,
}

/// Whether a block has something that is not stored: a status on its first line, or what only servers say.
pub fn needs_cleaning(block: &[u8]) -> bool {
    if block.is_empty() {
        return false;
    }
    let has_status = block
        .strip_prefix(VERSION)
        .is_some_and(|rest| !rest.starts_with(LINE_END));
    has_status || lines_of(block).any(may_be_owned)
}

/// Appends a block to `out` without its status, and without lines for which `drop` says so by their name. Empty if no line is left.
pub fn copy_without(block: &[u8], drop: impl Fn(&[u8]) -> bool, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(VERSION);
    out.extend_from_slice(LINE_END);
    let lines = out.len();
    for line in lines_of(block) {
        let name = &line[..memchr::memchr(b':', line).unwrap_or(line.len())];
        if !drop(name) {
            out.extend_from_slice(line);
            out.extend_from_slice(LINE_END);
        }
    }
    if out.len() == lines {
        out.truncate(start);
    } else {
        out.extend_from_slice(LINE_END);
    }
}

/// The block as it is stored.
pub fn clean(block: &[u8], author: Author, out: &mut Vec<u8>) {
    let start = out.len();
    let is_out = |name: &[u8]| match author {
        Author::Publisher => is_owned(name),
        Author::Server => name == REQUEST_INFORMATION,
    };
    copy_without(block, is_out, out);
    if value(&out[start..], TRACE_DESTINATION).is_some_and(|value| value != TRACE_DISABLED) {
        let copied = out.split_off(start);
        put_with(&copied, TRACE_DESTINATION, TRACE_DISABLED, out);
    }
}

/// Appends a line to a block that ends `out`, or begins one.
pub fn add(out: &mut Vec<u8>, start: usize, name: &[u8], value: &[u8]) {
    if out.len() == start {
        out.extend_from_slice(VERSION);
        out.extend_from_slice(LINE_END);
    } else {
        out.truncate(out.len() - LINE_END.len());
    }
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(LINE_END);
    out.extend_from_slice(LINE_END);
}

/// The value of the first line with this name.
pub fn value<'a>(block: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    lines_of(block).find_map(|line| {
        let rest = line.strip_prefix(name)?.strip_prefix(b":")?;
        let blanks = rest.iter().take_while(|byte| **byte == b' ').count();
        Some(&rest[blanks..])
    })
}

/// Writes a block with another value of a header: it replaces the first one of its name, or comes at the end.
pub fn put_with(block: &[u8], name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    if let Some(start) = value_start(block, name) {
        let start = start + usize::from(block.get(start) == Some(&b' '));
        let length = memchr::memchr(b'\r', &block[start..]);
        let end = length.map_or(block.len(), |length| start + length);
        out.extend_from_slice(&block[..start]);
        out.extend_from_slice(value);
        out.extend_from_slice(&block[end..]);
        return;
    }
    out.extend_from_slice(block.strip_suffix(b"\r\n").unwrap_or(block));
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n\r\n");
}

/// Where the value of a header begins: after the colon that follows its name at the beginning of a line.
fn value_start(block: &[u8], name: &[u8]) -> Option<usize> {
    memchr::memmem::find_iter(block, b"\r\n")
        .map(|line_end| line_end + 2)
        .find(|line| {
            block[*line..]
                .strip_prefix(name)
                .is_some_and(|rest| rest.first() == Some(&b':'))
        })
        .map(|line| line + name.len() + 1)
}

/// The names of all lines.
pub fn names(block: &[u8]) -> impl Iterator<Item = &[u8]> {
    lines_of(block).map(|line| &line[..memchr::memchr(b':', line).unwrap_or(line.len())])
}

/// The lines after the first, without the empty one.
fn lines_of(block: &[u8]) -> impl Iterator<Item = &[u8]> {
    let first_end = memchr::memchr(b'\n', block).map_or(block.len(), |end| end + 1);
    block[first_end..]
        .split(|byte| *byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .filter(|line| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cleaned(block: &[u8]) -> String {
        let mut out = Vec::new();
        clean(block, Author::Publisher, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn status_and_request_information_are_taken_out() {
        let block = b"NATS/1.0 503 No Responders\r\nA: b\r\nNats-Request-Info: x\r\n\r\n";

        assert!(needs_cleaning(block));
        assert_eq!(cleaned(block), "NATS/1.0\r\nA: b\r\n\r\n");
        assert_eq!(cleaned(b"NATS/1.0 100\r\n\r\n"), "");
        assert!(!needs_cleaning(b"NATS/1.0\r\nA: b\r\n\r\n"));
    }

    #[test]
    fn what_only_the_server_says_is_taken_out_of_what_others_publish() {
        let block = b"NATS/1.0\r\nJetlake-Batch: S/q/9\r\nA: b\r\nJetlake-Dead-Subject: x\r\nJetlake-Batch: S/q/8\r\nJetlake-Upload: u/1\r\n\r\n";
        let mut of_server = Vec::new();
        clean(block, Author::Server, &mut of_server);

        assert!(needs_cleaning(block));
        assert_eq!(
            cleaned(block),
            "NATS/1.0\r\nA: b\r\nJetlake-Upload: u/1\r\n\r\n"
        );
        assert_eq!(of_server, block);
        assert_eq!(cleaned(b"NATS/1.0\nJetlake-Batch: S/q/9\n\n"), "");
    }

    #[test]
    fn lines_are_added_and_found() {
        let mut out = b"before".to_vec();
        add(&mut out, 6, b"A", b"1");
        add(&mut out, 6, b"B", b"2");

        assert_eq!(out, b"beforeNATS/1.0\r\nA: 1\r\nB: 2\r\n\r\n");
        assert_eq!(value(&out[6..], b"B"), Some(b"2".as_slice()));
        assert_eq!(value(&out[6..], b"C"), None);
    }

    proptest! {
        #[test]
        fn any_block_is_cleaned(block in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut out = Vec::new();
            clean(&block, Author::Publisher, &mut out);
            let mut again = Vec::new();
            clean(&out, Author::Publisher, &mut again);
            prop_assert_eq!(&out, &again);
            prop_assert!(!names(&out).any(is_owned));
            // Trace destinations are disabled, and then need no more cleaning but are looked at.
            prop_assert!(needs_cleaning(&block) || block.is_empty() || !names(&block).any(is_owned));
            value(&block, b"A");
        }
    }
}
