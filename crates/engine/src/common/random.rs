//! A small fast generator for choices that need no secrecy: a queue member, a jitter.

pub struct Random {
    state: u64,
}

/// What made-up names are made of.
const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

impl Random {
    /// One of the letters and digits that a made-up name may have.
    pub fn letter(&mut self) -> u8 {
        LETTERS[self.below(LETTERS.len())]
    }

    /// Letters and digits that nobody else draws, as long as they are not few.
    pub fn text(&mut self, length: usize) -> String {
        (0..length).map(|_| char::from(self.letter())).collect()
    }

    pub fn seeded(seed: u64) -> Self {
        // Zero would stay zero for ever.
        Self { state: seed | 1 }
    }

    #[inline]
    /// Any number.
    pub fn draw(&mut self) -> u64 {
        // Xorshift64*.
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number from 0 to `bound` - 1; 0 if the bound is 0.
    #[inline]
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.draw()) * bound as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_below_their_bound_and_reach_all_of_it() {
        let mut random = Random::seeded(7);
        let mut seen = [0; 5];
        for _ in 0..5_000 {
            seen[random.below(5)] += 1;
        }

        assert!(seen.iter().all(|count| *count > 800), "{seen:?}");
        assert_eq!(random.below(0), 0);
    }
}
