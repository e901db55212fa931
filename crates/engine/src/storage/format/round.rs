//! Which records became durable together: those of one round, which lies between two syncs.
//!
//! When a round begins, everything before it is durable. So in the last one, and only there, a part may be missing that was never
//! acknowledged. Rounds are counted modulo 128: what matters is that neighbours differ.

/// The round of a record, and whether the record is the first of it; one byte in the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Round(u8);

const FIRST: u8 = 0x80;

impl Round {
    pub fn from_byte(byte: u8) -> Self {
        Self(byte)
    }

    pub fn byte(self) -> u8 {
        self.0
    }

    /// The first record of the round after this one.
    pub fn next(self) -> Self {
        Self(self.0.wrapping_add(1) | FIRST)
    }

    /// A further record of the same round.
    pub fn further(self) -> Self {
        Self(self.0 & !FIRST)
    }

    pub fn is_first(self) -> bool {
        self.0 & FIRST != 0
    }

    pub fn is_same(self, other: Self) -> bool {
        self.further() == other.further()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_round_begins_with_its_first_record_and_differs_from_its_neighbour() {
        let mut round = Round::default();
        for _ in 0..300 {
            let next = round.next();
            assert!(next.is_first() && !next.further().is_first());
            assert!(next.is_same(next.further()) && !next.is_same(round));
            round = next.further();
        }
    }
}
