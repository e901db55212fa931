//! Which messages were removed, as the log remembers it: ranges of sequences.
//!
//! Written as differences in as few bytes as they need, because a stream that keeps one message per subject removes one for every one it stores.

use super::bytes::ByteReader;

/// Most ranges one record holds, so that it is read and written as one small piece.
pub const RANGES_MAX: usize = 4096;

/// From the first to the last of one written range at most: the number shares its 64 bits with whether they are erased.
const SPAN_MAX: u64 = u64::MAX >> 1;

/// Messages that are gone, first and last included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Removal {
    pub first: u64,
    pub last: u64,
    /// Their bytes must be overwritten too.
    pub erase: bool,
}

impl Removal {
    /// The removal of one message.
    pub fn of(sequence: u64) -> Self {
        Self {
            first: sequence,
            last: sequence,
            erase: false,
        }
    }

    pub fn contains(&self, sequence: u64) -> bool {
        self.first <= sequence && sequence <= self.last
    }
}

/// Adds one message to a list, joining it to the range before it where it can.
pub fn push(removals: &mut Vec<Removal>, removal: Removal) {
    if let Some(previous) = removals.last_mut() {
        let adjacent = removal.first == previous.last.wrapping_add(1);
        if adjacent && removal.erase == previous.erase {
            previous.last = removal.last;
            return;
        }
    }
    removals.push(removal);
}

/// Writes a list; a range that is too long for one is written as two that follow one another.
pub fn encode(removals: &[Removal], out: &mut Vec<u8>) {
    let is_long = |removal: &&Removal| removal.last - removal.first > SPAN_MAX;
    let long_count = removals.iter().filter(is_long).count();
    put_varint(out, (removals.len() + long_count) as u64);
    let mut previous = 0u64;
    for removal in removals {
        let mut first = removal.first;
        loop {
            // Zigzag: the next one may lie before.
            let step = first.wrapping_sub(previous) as i64;
            put_varint(out, ((step << 1) ^ (step >> 63)) as u64);
            let span = (removal.last - first).min(SPAN_MAX);
            put_varint(out, span << 1 | u64::from(removal.erase));
            previous = first + span;
            if previous == removal.last {
                break;
            }
            first = previous + 1;
        }
    }
}

/// Reads what `encode` wrote; `None` if it did not write this.
pub fn decode(reader: &mut ByteReader<'_>) -> Option<Vec<Removal>> {
    let count = varint(reader)?;
    let mut removals = Vec::with_capacity(count.min(RANGES_MAX as u64) as usize);
    let mut previous = 0u64;
    for _ in 0..count {
        let zigzag = varint(reader)?;
        let step = (zigzag >> 1) as i64 ^ -((zigzag & 1) as i64);
        let first = previous.wrapping_add(step as u64);
        let span = varint(reader)?;
        let last = first.checked_add(span >> 1)?;
        removals.push(Removal {
            first,
            last,
            erase: span & 1 != 0,
        });
        previous = last;
    }
    Some(removals)
}

pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub fn varint(reader: &mut ByteReader<'_>) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = reader.bytes(1)?[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn neighbours_become_one_range() {
        let mut removals = Vec::new();
        for sequence in [4, 5, 6, 9] {
            let removal = Removal {
                first: sequence,
                last: sequence,
                erase: false,
            };
            push(&mut removals, removal);
        }

        assert_eq!(removals.len(), 2);
        assert!(removals[0].contains(5) && !removals[0].contains(7));
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(
            ranges in proptest::collection::vec((any::<u32>(), any::<u16>(), any::<bool>()), 0..50),
        ) {
            let removals: Vec<Removal> = ranges
                .iter()
                .map(|(first, span, erase)| Removal {
                    first: u64::from(*first) << 16,
                    last: (u64::from(*first) << 16) + u64::from(*span),
                    erase: *erase,
                })
                .collect();
            let mut bytes = Vec::new();
            encode(&removals, &mut bytes);
            prop_assert_eq!(decode(&mut ByteReader::new(&bytes)), Some(removals));
        }

        #[test]
        fn ranges_of_any_length_are_found_again(
            ends in proptest::collection::vec((any::<u64>(), any::<u64>(), any::<bool>()), 0..10),
        ) {
            let removals: Vec<Removal> = ends
                .iter()
                .map(|(one, other, erase)| Removal {
                    first: *one.min(other),
                    last: *one.max(other),
                    erase: *erase,
                })
                .collect();
            let mut bytes = Vec::new();
            encode(&removals, &mut bytes);
            let read = decode(&mut ByteReader::new(&bytes)).expect("it was written so");
            let mut parts = read.iter();
            for removal in removals {
                let mut whole = *parts.next().expect("a part of each");
                while whole.last != removal.last {
                    let next = parts.next().expect("the rest of it");
                    prop_assert_eq!((next.first, next.erase), (whole.last + 1, whole.erase));
                    whole.last = next.last;
                }
                prop_assert_eq!(whole, removal);
            }
            prop_assert!(parts.next().is_none());
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = decode(&mut ByteReader::new(&bytes));
        }
    }
}
