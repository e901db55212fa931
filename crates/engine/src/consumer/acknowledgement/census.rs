//! How many messages of a consumer stand how, kept up to date as they change instead of being counted each time.
//!
//! Invariant: what leaves has entered. A count that would fall below zero is a bug, and stops the engine in every build: a wrong one would stop the
//! consumer without a word.

use super::pending_list::{PendingMessage, Standing};

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Census {
    parked: usize,
    delivered: usize,
    queued: usize,
    /// Delivered more than once.
    redelivered: usize,
}

impl Census {
    /// Passed over and never delivered.
    pub fn parked(&self) -> usize {
        self.parked
    }

    /// Waiting for their acknowledgement.
    pub fn delivered(&self) -> usize {
        self.delivered
    }

    /// To be delivered at once.
    pub fn queued(&self) -> usize {
        self.queued
    }

    /// Delivered more than once, however they stand now.
    pub fn redelivered(&self) -> usize {
        self.redelivered
    }

    pub fn enter(&mut self, entry: &PendingMessage) {
        *self.of(entry.standing) += 1;
        self.redelivered += usize::from(entry.deliveries > 1);
    }

    pub fn leave(&mut self, entry: &PendingMessage) {
        let standing = self.of(entry.standing);
        *standing = less_one(*standing);
        if entry.deliveries > 1 {
            self.redelivered = less_one(self.redelivered);
        }
    }

    fn of(&mut self, standing: Standing) -> &mut usize {
        match standing {
            Standing::Parked => &mut self.parked,
            Standing::Delivered => &mut self.delivered,
            Standing::Queued => &mut self.queued,
        }
    }
}

fn less_one(count: usize) -> usize {
    let less = count.checked_sub(1);
    less.expect("a message that leaves a consumer's census has entered it")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(deliveries: u32, standing: Standing) -> PendingMessage {
        PendingMessage::new(1, 1, 0, deliveries, standing)
    }

    #[test]
    fn each_standing_is_counted_apart_and_repeated_deliveries_beside() {
        let mut census = Census::default();

        census.enter(&entry(0, Standing::Parked));
        census.enter(&entry(0, Standing::Queued));
        census.enter(&entry(2, Standing::Queued));
        census.enter(&entry(1, Standing::Delivered));
        census.leave(&entry(0, Standing::Queued));

        assert_eq!((census.parked(), census.queued()), (1, 1));
        assert_eq!((census.delivered(), census.redelivered()), (1, 1));
    }

    #[test]
    #[should_panic(expected = "has entered it")]
    fn a_count_below_zero_stops_the_engine_in_every_build() {
        Census::default().leave(&entry(0, Standing::Parked));
    }
}
