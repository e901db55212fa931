//! The lines of a header block: `NATS/1.0`, a line for each header, and an empty one.

const VERSION_LINE: &[u8] = b"NATS/1.0\r\n";

/// Appends a block with this header in it, in place of all that have its name, and says how long the block is.
pub fn set(block: &[u8], name: &[u8], value: &[u8], out: &mut Vec<u8>) -> usize {
    let start = out.len();
    let mut lines = block.split_inclusive(|byte| *byte == b'\n');
    out.extend_from_slice(lines.next().unwrap_or(VERSION_LINE));
    for line in lines {
        let is_end = line == b"\r\n" || line == b"\n";
        if !is_end && !has_name(line, name) {
            out.extend_from_slice(line);
        }
    }
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n\r\n");
    out.len() - start
}

/// Whether a line is of the header with this name, in any case.
fn has_name(line: &[u8], name: &[u8]) -> bool {
    let end = memchr::memchr(b':', line).unwrap_or(line.len());
    line[..end].trim_ascii().eq_ignore_ascii_case(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(block: &[u8]) -> String {
        let mut out = b"before".to_vec();
        let length = set(block, b"Who", b"me", &mut out);
        assert_eq!(length, out.len() - 6);
        String::from_utf8(out.split_off(6)).unwrap()
    }

    #[test]
    fn a_header_is_added_to_those_that_are_there() {
        assert_eq!(with(b""), "NATS/1.0\r\nWho: me\r\n\r\n");
        assert_eq!(
            with(b"NATS/1.0\r\nA: 1\r\n\r\n"),
            "NATS/1.0\r\nA: 1\r\nWho: me\r\n\r\n"
        );
        assert_eq!(
            with(b"NATS/1.0 503\r\n\r\n"),
            "NATS/1.0 503\r\nWho: me\r\n\r\n"
        );
    }

    #[test]
    fn what_somebody_else_said_under_the_name_is_gone() {
        assert_eq!(
            with(b"NATS/1.0\r\nwho: you\r\nWhom: x\r\nWHO : they\r\n\r\n"),
            "NATS/1.0\r\nWhom: x\r\nWho: me\r\n\r\n"
        );
    }
}
