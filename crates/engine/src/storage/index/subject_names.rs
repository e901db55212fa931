//! The names of many subjects, one after the other: an allocation for each would take more room than most names do.
//!
//! A name that is given up leaves a gap; when gaps are most of it, the names that are left move together. Invariant: `gap_bytes` is what no place
//! stands for.

use crate::storage::format::record::SUBJECT_BYTES_MAX;

/// Gaps of fewer bytes are left as they are.
const GAP_BYTES_MIN: usize = 64 * 1024;

/// Where a name lies: its beginning in the high 48 bits, its length in the low 16, which suffice for every subject.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct NamePlace(u64);

const LENGTH_BITS: u32 = 16;
const _: () = assert!(SUBJECT_BYTES_MAX < 1 << LENGTH_BITS);

impl NamePlace {
    fn new(start: usize, length: usize) -> Self {
        debug_assert!(length <= SUBJECT_BYTES_MAX);
        Self((start as u64) << LENGTH_BITS | length as u64)
    }

    fn start(self) -> usize {
        (self.0 >> LENGTH_BITS) as usize
    }

    fn length(self) -> usize {
        (self.0 & ((1 << LENGTH_BITS) - 1)) as usize
    }
}

#[derive(Default)]
pub struct SubjectNames {
    bytes: Vec<u8>,
    gap_bytes: usize,
}

impl SubjectNames {
    pub fn get(&self, place: NamePlace) -> &[u8] {
        &self.bytes[place.start()..][..place.length()]
    }

    pub fn add(&mut self, name: &[u8]) -> NamePlace {
        let place = NamePlace::new(self.bytes.len(), name.len());
        self.bytes.extend_from_slice(name);
        place
    }

    /// Nobody will ask for this place again.
    pub fn give_up(&mut self, place: NamePlace) {
        self.gap_bytes += place.length();
    }

    /// Whether it is worth it to move the names together.
    pub fn has_gaps(&self) -> bool {
        self.gap_bytes > GAP_BYTES_MIN.max(self.bytes.len() / 2)
    }

    /// Moves the names of these places together, which are all there are; others mean nothing any more.
    pub fn close_gaps<'a>(&mut self, places: impl Iterator<Item = &'a mut NamePlace>) {
        let mut moved = Vec::with_capacity(self.bytes.len() - self.gap_bytes);
        for place in places {
            let start = moved.len();
            moved.extend_from_slice(self.get(*place));
            *place = NamePlace::new(start, place.length());
        }
        self.bytes = moved;
        self.gap_bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_what_they_are_when_they_move_together() {
        let mut names = SubjectNames::default();
        let name = |number: usize| format!("subject.{number}").into_bytes();
        let mut places: Vec<NamePlace> =
            (0..20_000).map(|number| names.add(&name(number))).collect();
        let bytes_before = names.bytes.len();

        for place in places.drain(..15_000) {
            names.give_up(place);
        }
        let had_gaps = names.has_gaps();
        names.close_gaps(places.iter_mut());

        assert!(had_gaps && !names.has_gaps());
        assert!(names.bytes.len() < bytes_before / 3);
        for (place, number) in places.iter().zip(15_000..) {
            assert_eq!(names.get(*place), name(number));
        }
        let longest = names.add(&[b'x'; SUBJECT_BYTES_MAX]);
        assert_eq!(names.get(longest).len(), SUBJECT_BYTES_MAX);
    }
}
