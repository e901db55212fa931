//! One stored message as bytes: a fixed head, then subject, headers and payload.
//!
//! ```text
//! offset  bytes
//!  0      4     length of the whole record, head included
//!  4      8     checksum over everything else in the record, the length, and the place it was written to
//! 12      1     kind
//! 13      3     length of the subject (2) and reserved (1)
//! 16      4     length of the headers
//! 20      8     sequence
//! 28      8     time, nanoseconds since 1970
//! 36      …     subject, headers, payload
//! ```
//! All numbers are little-endian. Records begin at multiples of 4 bytes; the padding is zero and not covered by `length`.
//!
//! The checksum is seeded with the segment's own random identity, its number and the record's position, so that a record which is intact but stands in the wrong
//! place — a block put back to an older state, copied, swapped, or left over in a recycled file — is not taken for one that belongs there.
//! Invariant: `decode` returns a record only if every one of its bits is as it was written, at this place.

use xxhash_rust::xxh3::xxh3_64_with_seed;

pub const HEAD_BYTES: usize = 36;
pub const ALIGNMENT: usize = 4;
const CHECKED_FROM: usize = 12;

/// Longest subject that can be stored; a control line is shorter.
pub const SUBJECT_BYTES_MAX: usize = u16::MAX as usize;

/// What a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Message,
    /// Stood for a message that was deleted and erased: the sequence is kept, nothing else.
    Erased,
    /// Says that messages were deleted; the payload lists ranges of sequences.
    Deleted,
    /// Says that everything below `sequence` is gone.
    FirstMoved,
}

impl Kind {
    fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::Message),
            2 => Some(Self::Erased),
            3 => Some(Self::Deleted),
            4 => Some(Self::FirstMoved),
            _ => None,
        }
    }

    fn byte(self) -> u8 {
        match self {
            Self::Message => 1,
            Self::Erased => 2,
            Self::Deleted => 3,
            Self::FirstMoved => 4,
        }
    }
}

/// A record, borrowed from the bytes it was read from or is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    pub kind: Kind,
    pub sequence: u64,
    pub time_ns: i64,
    pub subject: &'a [u8],
    pub headers: &'a [u8],
    pub payload: &'a [u8],
}

/// The segment a record belongs to: what its checksum is bound to, besides its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Binding {
    pub identity: u64,
    pub number: u64,
}

impl Binding {
    fn seed(self, position: u64) -> u64 {
        // Mixed so that neighbouring positions and segments give unrelated seeds.
        (self.identity ^ self.number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
            .wrapping_add(position.wrapping_mul(0xc2b2_ae3d_27d4_eb4f))
    }
}

/// Why bytes are not a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotARecord {
    /// Zeros: nothing was written here.
    Blank,
    /// The buffer ends before the record does; so many bytes are needed.
    Short {
        bytes_needed: usize,
    },
    Damaged,
}

impl Record<'_> {
    /// Bytes the record takes, padding included.
    pub fn stored_bytes(&self) -> usize {
        padded(HEAD_BYTES + self.subject.len() + self.headers.len() + self.payload.len())
    }

    /// Appends the record as it will stand at `position` of its segment.
    pub fn encode(&self, out: &mut Vec<u8>, binding: Binding, position: u64) {
        let start = out.len();
        let length = HEAD_BYTES + self.subject.len() + self.headers.len() + self.payload.len();
        out.reserve(padded(length));
        out.extend_from_slice(&(length as u32).to_le_bytes());
        out.extend_from_slice(&[0; 8]);
        out.push(self.kind.byte());
        out.push(0);
        out.extend_from_slice(&(self.subject.len() as u16).to_le_bytes());
        out.extend_from_slice(&(self.headers.len() as u32).to_le_bytes());
        out.extend_from_slice(&self.sequence.to_le_bytes());
        out.extend_from_slice(&self.time_ns.to_le_bytes());
        out.extend_from_slice(self.subject);
        out.extend_from_slice(self.headers);
        out.extend_from_slice(self.payload);
        let checksum = checksum(&out[start..start + length], length, binding, position);
        out[start + 4..start + 12].copy_from_slice(&checksum.to_le_bytes());
        out.resize(start + padded(length), 0);
    }
}

/// Reads the record at the front of `bytes`, which stand at `position` of the segment. Returns it with the bytes it takes.
pub fn decode(
    bytes: &[u8],
    binding: Binding,
    position: u64,
) -> Result<(Record<'_>, usize), NotARecord> {
    if bytes.len() < HEAD_BYTES {
        return Err(if bytes.iter().all(|byte| *byte == 0) {
            NotARecord::Blank
        } else {
            NotARecord::Short {
                bytes_needed: HEAD_BYTES,
            }
        });
    }
    if bytes[..HEAD_BYTES].iter().all(|byte| *byte == 0) {
        return Err(NotARecord::Blank);
    }
    let length = u32_at(bytes, 0) as usize;
    let subject_len = usize::from(u16::from_le_bytes([bytes[14], bytes[15]]));
    let headers_len = u32_at(bytes, 16) as usize;
    let parts = HEAD_BYTES
        .checked_add(subject_len)
        .and_then(|sum| sum.checked_add(headers_len));
    if length < HEAD_BYTES || parts.is_none_or(|parts| parts > length) || bytes[13] != 0 {
        return Err(NotARecord::Damaged);
    }
    if bytes.len() < length {
        return Err(NotARecord::Short {
            bytes_needed: padded(length),
        });
    }
    if u64_at(bytes, 4) != checksum(&bytes[..length], length, binding, position) {
        return Err(NotARecord::Damaged);
    }
    let kind = Kind::from_byte(bytes[12]).ok_or(NotARecord::Damaged)?;
    let (subject, rest) = bytes[HEAD_BYTES..length].split_at(subject_len);
    let (headers, payload) = rest.split_at(headers_len);
    let record = Record {
        kind,
        sequence: u64_at(bytes, 20),
        time_ns: u64_at(bytes, 28) as i64,
        subject,
        headers,
        payload,
    };
    Ok((record, padded(length)))
}

/// Everything but the checksum itself; the length goes into the seed, because it stands before what is hashed.
fn checksum(record: &[u8], length: usize, binding: Binding, position: u64) -> u64 {
    let seed = binding.seed(position) ^ (length as u64).rotate_left(32);
    xxh3_64_with_seed(&record[CHECKED_FROM..], seed)
}

pub fn padded(length: usize) -> usize {
    length.next_multiple_of(ALIGNMENT)
}

fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(bytes[offset..offset + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(bytes[offset..offset + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BINDING: Binding = Binding {
        identity: 0x0123_4567_89ab_cdef,
        number: 7,
    };

    fn record<'a>(subject: &'a [u8], headers: &'a [u8], payload: &'a [u8]) -> Record<'a> {
        Record {
            kind: Kind::Message,
            sequence: 42,
            time_ns: 1_700_000_000_000_000_000,
            subject,
            headers,
            payload,
        }
    }

    #[test]
    fn a_single_flipped_bit_anywhere_is_noticed() {
        let original = record(b"orders.new", b"NATS/1.0\r\n\r\n", b"hello");
        let mut bytes = Vec::new();
        original.encode(&mut bytes, BINDING, 64);
        let length = HEAD_BYTES + 10 + 12 + 5;
        assert_eq!(decode(&bytes, BINDING, 64), Ok((original, padded(length))));

        for bit in 0..length * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(&flipped, BINDING, 64).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn a_record_in_another_place_is_not_taken() {
        let mut bytes = Vec::new();
        record(b"a", b"", b"x").encode(&mut bytes, BINDING, 64);

        assert_eq!(decode(&bytes, BINDING, 104), Err(NotARecord::Damaged));
        let recycled = Binding {
            number: 8,
            ..BINDING
        };
        assert_eq!(decode(&bytes, recycled, 64), Err(NotARecord::Damaged));
        let other_stream = Binding {
            identity: 1,
            ..BINDING
        };
        assert_eq!(decode(&bytes, other_stream, 64), Err(NotARecord::Damaged));
    }

    #[test]
    fn zeros_are_blank_and_a_prefix_is_short() {
        let mut bytes = Vec::new();
        record(b"a", b"", b"payload").encode(&mut bytes, BINDING, 0);

        assert_eq!(decode(&[0; 100], BINDING, 0), Err(NotARecord::Blank));
        assert_eq!(decode(&[], BINDING, 0), Err(NotARecord::Blank));
        assert!(matches!(
            decode(&bytes[..40], BINDING, 0),
            Err(NotARecord::Short { .. })
        ));
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(
            subject in proptest::collection::vec(any::<u8>(), 0..50),
            headers in proptest::collection::vec(any::<u8>(), 0..50),
            payload in proptest::collection::vec(any::<u8>(), 0..200),
            position in any::<u64>(),
        ) {
            let original = record(&subject, &headers, &payload);
            let mut bytes = vec![9; 3];
            original.encode(&mut bytes, BINDING, position);
            prop_assert_eq!(bytes.len() - 3, original.stored_bytes());
            prop_assert_eq!(decode(&bytes[3..], BINDING, position), Ok((original, original.stored_bytes())));
        }

        #[test]
        fn any_bytes_are_decoded_or_not_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&bytes, BINDING, 0);
        }
    }
}
