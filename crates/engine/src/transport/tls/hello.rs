//! The first bytes of a client: do they begin a handshake of TLS?
//!
//! They are looked at before anything is made for the handshake, so that a client that sends little and slowly, or no TLS at all, costs
//! no more than the bytes it sent.

/// What a record of a handshake begins with.
const HANDSHAKE: u8 = 0x16;

/// Every version in use gives 3 as its first byte here.
const MAJOR_VERSION: u8 = 3;

const HEADER_BYTES: usize = 5;

/// A record in the clear has no more than this.
const RECORD_BYTES_MAX: usize = 16 * 1024;

/// Whether a client that may choose has chosen TLS.
pub fn begins_handshake(bytes: &[u8]) -> bool {
    bytes.first() == Some(&HANDSHAKE)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hello {
    /// So far it may be one.
    Incomplete,
    /// The first record is there.
    Complete,
    NotTls,
}

pub fn recognise(bytes: &[u8]) -> Hello {
    if bytes.first().is_some_and(|first| *first != HANDSHAKE)
        || bytes.get(1).is_some_and(|major| *major != MAJOR_VERSION)
    {
        return Hello::NotTls;
    }
    let Some(length) = bytes.get(3..HEADER_BYTES) else {
        return Hello::Incomplete;
    };
    let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
    if length == 0 || length > RECORD_BYTES_MAX {
        return Hello::NotTls;
    }
    if bytes.len() < HEADER_BYTES + length {
        return Hello::Incomplete;
    }
    Hello::Complete
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_complete_with_its_last_byte() {
        let record = [0x16, 3, 1, 0, 2, 1, 2];

        for end in 0..record.len() {
            assert_eq!(recognise(&record[..end]), Hello::Incomplete, "{end}");
        }
        assert_eq!(recognise(&record), Hello::Complete);
        assert_eq!(recognise(&[0x16, 3, 1, 0, 2, 1, 2, 9]), Hello::Complete);
    }

    #[test]
    fn whatever_is_no_handshake_is_told_by_its_first_bytes() {
        for bytes in [
            &b"CONNECT {}\r\n"[..],
            b"\x15\x03\x01\x00\x02\x02\x50",
            b"\x16\x02",
            b"\x16\x03\x01\x00\x00",
            b"\x16\x03\x01\x40\x01",
            b"\x80\x2e\x01",
        ] {
            assert_eq!(recognise(bytes), Hello::NotTls, "{bytes:?}");
        }
    }
}
