//! A growing row of bits, all zero at first.

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Bits {
    words: Vec<u64>,
}

impl Bits {
    pub fn get(&self, index: usize) -> bool {
        self.words
            .get(index / 64)
            .is_some_and(|word| word >> (index % 64) & 1 != 0)
    }

    /// Sets a bit; true if it was not set before.
    pub fn set(&mut self, index: usize) -> bool {
        if self.words.len() <= index / 64 {
            self.words.resize(index / 64 + 1, 0);
        }
        let word = &mut self.words[index / 64];
        let mask = 1 << (index % 64);
        let new = *word & mask == 0;
        *word |= mask;
        new
    }

    pub fn clear(&mut self, index: usize) {
        if let Some(word) = self.words.get_mut(index / 64) {
            *word &= !(1 << (index % 64));
        }
    }

    /// The first bit from `index` on, below `end`, that is zero.
    pub fn next_zero(&self, index: usize, end: usize) -> Option<usize> {
        let mut at = index;
        while at < end {
            let word = self.words.get(at / 64).copied().unwrap_or(0);
            let free = !word >> (at % 64);
            if free != 0 {
                let found = at + free.trailing_zeros() as usize;
                return (found < end).then_some(found);
            }
            at = (at / 64 + 1) * 64;
        }
        None
    }

    /// The last bit below `end` that is zero.
    pub fn last_zero(&self, end: usize) -> Option<usize> {
        let mut end = end;
        while end > 0 {
            let at = end - 1;
            let word = self.words.get(at / 64).copied().unwrap_or(0);
            let free = !word << (63 - at % 64);
            if free != 0 {
                return Some(at - free.leading_zeros() as usize);
            }
            end = at / 64 * 64;
        }
        None
    }

    /// Whether some bit is set in both.
    pub fn meets(&self, other: &Self) -> bool {
        let mut pairs = self.words.iter().zip(&other.words);
        pairs.any(|(one, other)| one & other != 0)
    }

    /// The bits that are set, ascending.
    pub fn ones(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(number, word)| {
            let mut rest = *word;
            std::iter::from_fn(move || {
                if rest == 0 {
                    return None;
                }
                let bit = rest.trailing_zeros() as usize;
                rest &= rest - 1;
                Some(number * 64 + bit)
            })
        })
    }

    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_are_found_between_ones() {
        let mut bits = Bits::default();
        for index in 0..130 {
            assert!(bits.set(index));
        }
        bits.clear(70);

        assert!(!bits.set(5));
        assert_eq!(bits.next_zero(0, 200), Some(70));
        assert_eq!(bits.next_zero(71, 200), Some(130));
        assert_eq!(bits.next_zero(71, 130), None);
        assert_eq!(bits.last_zero(70), None);
        assert_eq!(bits.last_zero(100), Some(70));
        assert!(bits.get(129) && !bits.get(130) && !bits.is_empty());
        assert_eq!(bits.ones().count(), 129);
        let mut other = Bits::default();
        other.set(70);
        assert!(!bits.meets(&other));
        other.set(128);
        assert!(bits.meets(&other));
    }
}
