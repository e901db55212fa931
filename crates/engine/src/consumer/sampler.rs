//! The share of acknowledgements, in percent, that a metric is sent for.

use crate::common::random::Random;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampler {
    percent: u8,
}

impl Sampler {
    pub const fn new(percent: u8) -> Self {
        Self { percent }
    }

    /// Whether this one is sampled. As on nats-server one percent more than was asked for.
    #[inline]
    pub fn takes(self, random: &mut Random) -> bool {
        match self.percent {
            0 => false,
            100.. => true,
            percent => random.below(100) <= usize::from(percent),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_taken() {
        let mut random = Random::seeded(3);
        let mut taken = |percent: u8| {
            let sampler = Sampler::new(percent);
            (0..10_000).filter(|_| sampler.takes(&mut random)).count()
        };

        assert_eq!(taken(0), 0);
        assert_eq!(taken(100), 10_000);
        assert_eq!(taken(255), 10_000);
        assert!((2_700..3_500).contains(&taken(30)));
    }
}
