//! Messages that were delivered and wait for their acknowledgement, in the order of their sequences.
//!
//! They come in at the end and mostly leave at the front, so they lie in a ring; what leaves from the middle is only marked, until many are.
//! Invariant: sequences grow from front to back, the front is never a marked one, and `live` counts those that are not.

use std::collections::VecDeque;

/// The ring is rebuilt when more than this part of its entries is marked: one in two.
const GONE_PART: usize = 2;

/// A shorter ring is not worth rebuilding.
const LENGTH_MIN: usize = 64;

/// How a message that is not settled stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Passed over and never delivered: another message of its key must be settled first.
    Parked,
    /// Delivered at least once; a client has it and must acknowledge it.
    Delivered,
    /// To be delivered at once: once more, or for the first time if its only delivery reached nobody.
    Queued,
}

/// A message that is not settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PendingMessage {
    pub stream_sequence: u64,
    /// Of its first delivery.
    pub consumer_sequence: u64,
    /// Since when it waits.
    pub time_ns: i64,
    /// How often it was delivered to a client.
    pub deliveries: u32,
    pub standing: Standing,
    gone: bool,
}

impl PendingMessage {
    pub fn new(
        stream_sequence: u64,
        consumer_sequence: u64,
        time_ns: i64,
        deliveries: u32,
        standing: Standing,
    ) -> Self {
        Self {
            stream_sequence,
            consumer_sequence,
            time_ns,
            deliveries,
            standing,
            gone: false,
        }
    }

    /// Whether a client has it, or had it.
    pub fn was_delivered(&self) -> bool {
        self.deliveries > 0
    }
}

#[derive(Debug, Default)]
pub struct PendingList {
    entries: VecDeque<PendingMessage>,
    live: usize,
}

impl PendingList {
    pub fn len(&self) -> usize {
        self.live
    }

    pub fn is_empty(&self) -> bool {
        self.live == 0
    }

    pub fn insert(&mut self, entry: PendingMessage) {
        let behind_all = self
            .entries
            .back()
            .is_none_or(|last| last.stream_sequence < entry.stream_sequence);
        if behind_all {
            self.entries.push_back(entry);
            self.live += 1;
            return;
        }
        match self.search(entry.stream_sequence) {
            Ok(at) => {
                self.live += usize::from(self.entries[at].gone);
                self.entries[at] = entry;
            }
            Err(at) => {
                self.entries.insert(at, entry);
                self.live += 1;
            }
        }
    }

    pub fn get(&self, sequence: u64) -> Option<&PendingMessage> {
        let at = self.search(sequence).ok()?;
        Some(&self.entries[at]).filter(|entry| !entry.gone)
    }

    pub fn get_mut(&mut self, sequence: u64) -> Option<&mut PendingMessage> {
        let at = self.search(sequence).ok()?;
        Some(&mut self.entries[at]).filter(|entry| !entry.gone)
    }

    pub fn remove(&mut self, sequence: u64) -> Option<PendingMessage> {
        let at = self.search(sequence).ok()?;
        let entry = &mut self.entries[at];
        if entry.gone {
            return None;
        }
        entry.gone = true;
        let removed = *entry;
        self.live -= 1;
        while self.entries.front().is_some_and(|front| front.gone) {
            self.entries.pop_front();
        }
        if self.entries.len() > LENGTH_MIN && self.live * GONE_PART < self.entries.len() {
            self.entries.retain(|entry| !entry.gone);
        }
        Some(removed)
    }

    pub fn iter(&self) -> impl Iterator<Item = &PendingMessage> {
        self.entries.iter().filter(|entry| !entry.gone)
    }

    /// Those after a sequence.
    pub fn iter_behind(&self, sequence: u64) -> impl Iterator<Item = &PendingMessage> {
        let at = self
            .entries
            .partition_point(|entry| entry.stream_sequence <= sequence);
        self.entries.range(at..).filter(|entry| !entry.gone)
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut PendingMessage> {
        self.entries.iter_mut().filter(|entry| !entry.gone)
    }

    /// The first one after a sequence.
    pub fn first_behind(&self, sequence: u64) -> Option<&PendingMessage> {
        let at = self
            .entries
            .partition_point(|entry| entry.stream_sequence <= sequence);
        self.entries.range(at..).find(|entry| !entry.gone)
    }

    /// Takes out everything up to a sequence.
    pub fn drain_through(&mut self, sequence: u64) -> impl Iterator<Item = PendingMessage> + '_ {
        let end = self
            .entries
            .partition_point(|entry| entry.stream_sequence <= sequence);
        let drained = self.entries.range(..end);
        self.live -= drained.filter(|entry| !entry.gone).count();
        let behind = self.entries.range(end..);
        let gone = behind.take_while(|entry| entry.gone).count();
        // The front is never a marked one.
        self.entries.drain(..end + gone).filter(|entry| !entry.gone)
    }

    /// Up to `most` sequences after `sequence`.
    pub fn sequences_behind(&self, sequence: u64, most: usize) -> Vec<u64> {
        let at = self
            .entries
            .partition_point(|entry| entry.stream_sequence <= sequence);
        let live = self.entries.range(at..).filter(|entry| !entry.gone);
        live.take(most).map(|entry| entry.stream_sequence).collect()
    }

    pub fn clear(&mut self) {
        self.entries.clear();
        self.live = 0;
    }

    fn search(&self, sequence: u64) -> Result<usize, usize> {
        // Acknowledgements mostly come in order.
        if let Some(front) = self.entries.front() {
            if front.stream_sequence == sequence {
                return Ok(0);
            }
        }
        self.entries
            .binary_search_by_key(&sequence, |entry| entry.stream_sequence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn it_holds_what_a_sorted_map_would(
            steps in proptest::collection::vec((0u64..200, any::<bool>()), 1..400),
        ) {
            let mut list = PendingList::default();
            let mut twin = BTreeMap::new();
            for (number, (sequence, adds)) in steps.into_iter().enumerate() {
                if adds {
                    let entry = PendingMessage::new(sequence, number as u64, 0, 1, Standing::Delivered);
                    list.insert(entry);
                    twin.insert(sequence, entry);
                } else {
                    let removed = list.remove(sequence).map(|entry| entry.consumer_sequence);
                    let wanted = twin.remove(&sequence).map(|entry| entry.consumer_sequence);
                    prop_assert_eq!(removed, wanted);
                }
                if number % 50 == 49 {
                    let drained: Vec<u64> = list.drain_through(sequence / 4).map(|entry| entry.stream_sequence).collect();
                    let above = twin.split_off(&(sequence / 4 + 1));
                    prop_assert_eq!(drained, twin.into_keys().collect::<Vec<_>>());
                    twin = above;
                }
                let behind: Vec<u64> = twin.range(sequence + 1..).map(|(sequence, _)| *sequence).take(3).collect();
                prop_assert_eq!(list.sequences_behind(sequence, 3), behind);
                prop_assert_eq!(list.len(), twin.len());
                let behind = list.first_behind(sequence).copied();
                prop_assert_eq!(behind, twin.range(sequence + 1..).next().map(|(_, entry)| *entry));
            }
            let all: Vec<PendingMessage> = list.iter().copied().collect();
            prop_assert_eq!(all, twin.into_values().collect::<Vec<_>>());
        }
    }
}
