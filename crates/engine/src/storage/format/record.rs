//! One stored message as bytes: a fixed head, what it has besides, then subject, headers and payload.
//!
//! ```text
//! offset  bytes
//!  0      4     length of the whole record, head included, padding not
//!  4      8     checksum over everything else in the record, the length, and the place it was written to
//! 12      1     kind (low four bits) and what it has besides (high four bits)
//! 13      1     the round it was written in (low seven bits), and whether it is the first of it (high bit)
//! 14      2     length of the subject
//! 16      4     sequence, counted from the base sequence of the segment
//! 20      8     time, nanoseconds since 1970
//! 28      4     length of the headers, if it has headers
//!         8     when it expires, nanoseconds since 1970, if it does
//!        32     its link in the chain, if it is chained
//!         …     subject, headers, payload; if it is encrypted, their ciphertext and its tag
//! ```
//! All numbers are little-endian. Records begin at multiples of 4 bytes; the padding is zero and not covered by `length`.
//!
//! The checksum is seeded with the segment's own random identity and the record's position, so that a record which is intact but stands in
//! the wrong place — a block put back to an older state, copied, swapped, or of another file — is not taken for one that belongs there.
//! Invariant: `decode` returns a record only if every one of its bits is as it was written, at this place.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::encryption::{SegmentKey, TAG_BYTES};
use super::round::Round;

pub const HEAD_BYTES: usize = 28;
pub const ALIGNMENT: usize = 4;
pub const LINK_BYTES: usize = 32;
const CHECKED_FROM: usize = 12;

const KIND_MASK: u8 = 0x0f;
const HAS_HEADERS: u8 = 0x10;
const HAS_EXPIRY: u8 = 0x20;
const HAS_LINK: u8 = 0x40;
const IS_ENCRYPTED: u8 = 0x80;

/// Longest subject that can be stored; a control line is shorter.
pub const SUBJECT_BYTES_MAX: usize = u16::MAX as usize;

/// What a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordKind {
    Message,
    /// Stands where a message was that has been erased: the sequence is kept, nothing else.
    Erased,
    /// Says that messages were removed; the payload lists them.
    Removed,
    /// A message whose headers and payload are compressed, together, in `payload`.
    Compressed,
    /// What the compressed messages of the segment have in common.
    Dictionary,
    /// Says that the messages after it are there together or not at all; the payload says which.
    Group,
}

impl RecordKind {
    fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::Message),
            2 => Some(Self::Erased),
            3 => Some(Self::Removed),
            4 => Some(Self::Compressed),
            5 => Some(Self::Dictionary),
            6 => Some(Self::Group),
            _ => None,
        }
    }

    fn byte(self) -> u8 {
        match self {
            Self::Message => 1,
            Self::Erased => 2,
            Self::Removed => 3,
            Self::Compressed => 4,
            Self::Dictionary => 5,
            Self::Group => 6,
        }
    }
}

/// A record, borrowed from the bytes it was read from or is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    pub kind: RecordKind,
    /// Subject, headers and payload are one ciphertext, held in `payload`, until `open` has been called.
    pub encrypted: bool,
    pub round: Round,
    pub sequence: u64,
    pub time_ns: i64,
    pub expires_ns: Option<i64>,
    pub link: Option<&'a [u8; LINK_BYTES]>,
    pub subject: &'a [u8],
    pub headers: &'a [u8],
    pub payload: &'a [u8],
}

/// The segment a record belongs to: what its checksum is bound to, besides its position, and what its sequence counts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Binding {
    pub identity: u64,
    pub base_sequence: u64,
}

impl Binding {
    fn seed(self, position: u64) -> u64 {
        // Mixed so that neighbouring positions and segments give unrelated seeds.
        (self.identity ^ self.base_sequence.wrapping_mul(0x9e37_79b9_7f4a_7c15))
            .wrapping_add(position.wrapping_mul(0xc2b2_ae3d_27d4_eb4f))
    }
}

/// Why bytes are not a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotARecord {
    /// Zeros: nothing was written here.
    Blank,
    /// The buffer ends before the record does; this many bytes are needed.
    Short {
        bytes_needed: usize,
    },
    Damaged,
}

impl<'a> Record<'a> {
    /// A record that says what was removed.
    pub fn removed(sequence: u64, payload: &'a [u8]) -> Self {
        Self {
            kind: RecordKind::Removed,
            payload,
            ..Self::erased(sequence, b"")
        }
    }

    /// A record that stands where a message was.
    pub fn erased(sequence: u64, blank: &'a [u8]) -> Self {
        Self {
            kind: RecordKind::Erased,
            encrypted: false,
            round: Round::default(),
            sequence,
            time_ns: 0,
            expires_ns: None,
            link: None,
            subject: b"",
            headers: b"",
            payload: blank,
        }
    }

    /// Bytes of the record without its padding.
    pub fn length(&self) -> usize {
        HEAD_BYTES
            + if self.headers.is_empty() { 0 } else { 4 }
            + if self.expires_ns.is_some() { 8 } else { 0 }
            + if self.link.is_some() { LINK_BYTES } else { 0 }
            + self.subject.len()
            + self.headers.len()
            + self.payload.len()
            + if self.encrypted { TAG_BYTES } else { 0 }
    }

    /// Bytes the record takes, padding included.
    pub fn stored_bytes(&self) -> usize {
        padded(self.length())
    }

    /// Appends the record as it will stand at `position` of its segment, encrypted if it should be.
    pub fn encode(
        &self,
        out: &mut Vec<u8>,
        binding: Binding,
        position: u64,
        key: Option<&SegmentKey>,
    ) {
        let start = out.len();
        let length = self.length();
        let mut kind = self.kind.byte();
        kind |= if self.headers.is_empty() {
            0
        } else {
            HAS_HEADERS
        };
        kind |= if self.expires_ns.is_some() {
            HAS_EXPIRY
        } else {
            0
        };
        kind |= if self.link.is_some() { HAS_LINK } else { 0 };
        kind |= if self.encrypted { IS_ENCRYPTED } else { 0 };
        let delta = (self.sequence - binding.base_sequence) as u32;
        out.reserve(padded(length));
        out.extend_from_slice(&(length as u32).to_le_bytes());
        out.extend_from_slice(&[0; 8]);
        out.extend_from_slice(&[kind, self.round.byte()]);
        out.extend_from_slice(&(self.subject.len() as u16).to_le_bytes());
        out.extend_from_slice(&delta.to_le_bytes());
        out.extend_from_slice(&self.time_ns.to_le_bytes());
        if !self.headers.is_empty() {
            out.extend_from_slice(&(self.headers.len() as u32).to_le_bytes());
        }
        if let Some(expires_ns) = self.expires_ns {
            out.extend_from_slice(&expires_ns.to_le_bytes());
        }
        if let Some(link) = self.link {
            out.extend_from_slice(link);
        }
        let body = out.len();
        out.extend_from_slice(self.subject);
        out.extend_from_slice(self.headers);
        out.extend_from_slice(self.payload);
        if self.encrypted {
            let key = key.expect("who asks for encryption has a key");
            let (front, plain) = out.split_at_mut(body);
            let tag = key.seal(position, &front[start + CHECKED_FROM..], plain);
            out.extend_from_slice(&tag);
        }
        let checksum = checksum(&out[start..start + length], binding, position);
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
    let length = u32_at(bytes, 0) as usize;
    if length == 0 && bytes[..HEAD_BYTES].iter().all(|byte| *byte == 0) {
        return Err(NotARecord::Blank);
    }
    if length < HEAD_BYTES {
        return Err(NotARecord::Damaged);
    }
    if bytes.len() < length {
        return Err(NotARecord::Short {
            bytes_needed: padded(length),
        });
    }
    let bytes = &bytes[..length];
    if u64_at(bytes, 4) != checksum(bytes, binding, position) {
        return Err(NotARecord::Damaged);
    }
    parts(bytes, binding)
        .map(|record| (record, padded(length)))
        .ok_or(NotARecord::Damaged)
}

/// Where the parts of a record lie.
struct Layout {
    headers_len: usize,
    expires_ns: Option<i64>,
    link: Option<std::ops::Range<usize>>,
    body: usize,
}

impl Layout {
    fn of(bytes: &[u8]) -> Option<Self> {
        let flags = bytes[12];
        let mut at = HEAD_BYTES;
        let mut take = |count: usize| -> Option<std::ops::Range<usize>> {
            let range = at..at + count;
            at = range.end;
            (at <= bytes.len()).then_some(range)
        };
        let headers_len = match flags & HAS_HEADERS {
            0 => 0,
            _ => u32_at(bytes, take(4)?.start) as usize,
        };
        let expires_ns = match flags & HAS_EXPIRY {
            0 => None,
            _ => Some(u64_at(bytes, take(8)?.start) as i64),
        };
        let link = match flags & HAS_LINK {
            0 => None,
            _ => Some(take(LINK_BYTES)?),
        };
        Some(Self {
            headers_len,
            expires_ns,
            link,
            body: at,
        })
    }
}

/// The parts of a record whose checksum is right.
fn parts(bytes: &[u8], binding: Binding) -> Option<Record<'_>> {
    let layout = Layout::of(bytes)?;
    let encrypted = bytes[12] & IS_ENCRYPTED != 0;
    let (subject_len, headers_len) = match encrypted {
        true => (0, 0),
        false => (subject_len(bytes), layout.headers_len),
    };
    let (subject, rest) = bytes[layout.body..].split_at_checked(subject_len)?;
    let (headers, payload) = rest.split_at_checked(headers_len)?;
    let link = match layout.link {
        None => None,
        Some(range) => Some(bytes[range].try_into().ok()?),
    };
    Some(Record {
        kind: RecordKind::from_byte(bytes[12] & KIND_MASK)?,
        encrypted,
        round: Round::from_byte(bytes[13]),
        sequence: binding.base_sequence + u64::from(u32_at(bytes, 16)),
        time_ns: u64_at(bytes, 20) as i64,
        expires_ns: layout.expires_ns,
        link,
        subject,
        headers,
        payload,
    })
}

/// The parts of a record that `decode` has taken.
pub fn parts_of(bytes: &[u8], binding: Binding) -> Option<Record<'_>> {
    parts(&bytes[..u32_at(bytes, 0) as usize], binding)
}

/// Decrypts, in place, a record that `decode` has taken, and returns it; `None` if the key does not fit.
pub fn open<'a>(
    bytes: &'a mut [u8],
    binding: Binding,
    position: u64,
    key: &SegmentKey,
) -> Option<Record<'a>> {
    let length = u32_at(bytes, 0) as usize;
    let bytes = &mut bytes[..length];
    let layout = Layout::of(bytes)?;
    let subject_len = subject_len(bytes);
    let (front, body) = bytes.split_at_mut(layout.body);
    key.open(position, &front[CHECKED_FROM..], body)?;
    let bytes: &[u8] = bytes;
    let closed = parts(bytes, binding)?;
    let plain = &bytes[layout.body..length - TAG_BYTES];
    let (subject, rest) = plain.split_at_checked(subject_len)?;
    let (headers, payload) = rest.split_at_checked(layout.headers_len)?;
    Some(Record {
        subject,
        headers,
        payload,
        ..closed
    })
}

fn subject_len(bytes: &[u8]) -> usize {
    usize::from(u16::from_le_bytes([bytes[14], bytes[15]]))
}

/// Everything but the checksum itself; the length goes into the seed, because it stands before what is hashed.
fn checksum(record: &[u8], binding: Binding, position: u64) -> u64 {
    let seed = binding.seed(position) ^ (record.len() as u64).rotate_left(32);
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
        base_sequence: 40,
    };

    fn record<'a>(subject: &'a [u8], headers: &'a [u8], payload: &'a [u8]) -> Record<'a> {
        Record {
            kind: RecordKind::Message,
            encrypted: false,
            round: Round::default().next(),
            sequence: 42,
            time_ns: 1_700_000_000_000_000_000,
            expires_ns: None,
            link: None,
            subject,
            headers,
            payload,
        }
    }

    #[test]
    fn a_single_flipped_bit_anywhere_is_noticed() {
        let link = [7; LINK_BYTES];
        let original = Record {
            expires_ns: Some(1),
            link: Some(&link),
            ..record(b"orders.new", b"NATS/1.0\r\n\r\n", b"hello")
        };
        let mut bytes = Vec::new();
        original.encode(&mut bytes, BINDING, 64, None);
        let length = HEAD_BYTES + 4 + 8 + 32 + 10 + 12 + 5;
        assert_eq!(length, original.length());
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
        record(b"a", b"", b"x").encode(&mut bytes, BINDING, 64, None);

        assert_eq!(decode(&bytes, BINDING, 104), Err(NotARecord::Damaged));
        let other_base = Binding {
            base_sequence: 8,
            ..BINDING
        };
        assert_eq!(decode(&bytes, other_base, 64), Err(NotARecord::Damaged));
        let other_file = Binding {
            identity: 1,
            ..BINDING
        };
        assert_eq!(decode(&bytes, other_file, 64), Err(NotARecord::Damaged));
    }

    #[test]
    fn zeros_are_blank_and_a_prefix_is_short() {
        let mut bytes = Vec::new();
        record(b"a", b"", b"payload").encode(&mut bytes, BINDING, 0, None);

        assert_eq!(decode(&[0; 100], BINDING, 0), Err(NotARecord::Blank));
        assert_eq!(decode(&[], BINDING, 0), Err(NotARecord::Blank));
        assert!(matches!(
            decode(&bytes[..30], BINDING, 0),
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
            expires in any::<Option<i64>>(),
        ) {
            let original = Record { expires_ns: expires, ..record(&subject, &headers, &payload) };
            let mut bytes = vec![9; 3];
            original.encode(&mut bytes, BINDING, position, None);
            prop_assert_eq!(bytes.len() - 3, original.stored_bytes());
            prop_assert_eq!(decode(&bytes[3..], BINDING, position), Ok((original, original.stored_bytes())));
        }

        #[test]
        fn any_bytes_are_decoded_or_not_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&bytes, BINDING, 0);
        }
    }
}
