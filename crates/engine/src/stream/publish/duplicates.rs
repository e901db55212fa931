//! Message ids of the last while, so that a message sent twice is stored once.
//!
//! Ids are kept as hashes of 128 bits: two different ids with the same one are less likely than a disk that lies. Some 45 bytes an id.
//! Invariant: entries are in the order of their times, and the table holds exactly the numbers of those that are there.

use std::collections::VecDeque;

use hashbrown::HashTable;
use xxhash_rust::xxh3::xxh3_128_with_seed;

/// One id that was seen.
#[derive(Clone, Copy)]
struct SeenId {
    id: u128,
    sequence: u64,
    time_ns: i64,
}

pub struct Duplicates {
    window_ns: i64,
    /// Unknown to publishers, so that nobody can make ids that collide.
    seed: u64,
    entries: VecDeque<SeenId>,
    /// Numbers of entries, counted from the first that was ever there.
    by_id: HashTable<u32>,
    /// The number of the first entry that is still there; wraps.
    first: u32,
}

impl Duplicates {
    /// Remembers ids for so long; for no time at all if it is zero.
    pub fn new(window_ns: i64, seed: u64) -> Self {
        Self {
            window_ns,
            seed,
            entries: VecDeque::new(),
            by_id: HashTable::new(),
            first: 0,
        }
    }

    pub fn set_window(&mut self, window_ns: i64, now_ns: i64) {
        self.window_ns = window_ns;
        self.expire(now_ns);
    }

    pub fn seed(&self) -> u64 {
        self.seed
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn hash(&self, id: &[u8]) -> u128 {
        xxh3_128_with_seed(id, self.seed)
    }

    fn entry(&self, number: u32) -> &SeenId {
        &self.entries[number.wrapping_sub(self.first) as usize]
    }

    /// The sequence of the message that had this id.
    pub fn find(&self, id: &[u8]) -> Option<u64> {
        let id = self.hash(id);
        let number = self
            .by_id
            .find(id as u64, |number| self.entry(*number).id == id)?;
        Some(self.entry(*number).sequence)
    }

    /// Remembers an id that is not there; times must not go back.
    pub fn add(&mut self, id: &[u8], sequence: u64, time_ns: i64) {
        if self.window_ns <= 0 {
            return;
        }
        let id = self.hash(id);
        let number = self.first.wrapping_add(self.entries.len() as u32);
        self.entries.push_back(SeenId {
            id,
            sequence,
            time_ns,
        });
        let (entries, first) = (&self.entries, self.first);
        self.by_id.insert_unique(id as u64, number, |number| {
            entries[number.wrapping_sub(first) as usize].id as u64
        });
    }

    /// Forgets the newest ids, whose messages were refused after all.
    pub fn forget_from(&mut self, sequence: u64) {
        while let Some(last) = self.entries.back().filter(|last| last.sequence >= sequence) {
            let number = self.first.wrapping_add(self.entries.len() as u32 - 1);
            let id = last.id;
            self.forget(id, number);
            self.entries.pop_back();
        }
    }

    /// Forgets ids that are older than the window; returns how many.
    pub fn expire(&mut self, now_ns: i64) -> usize {
        let mut count = 0;
        while let Some(first) = self.entries.front() {
            if now_ns.saturating_sub(first.time_ns) < self.window_ns {
                break;
            }
            let id = first.id;
            self.forget(id, self.first);
            self.entries.pop_front();
            self.first = self.first.wrapping_add(1);
            count += 1;
        }
        // What a burst needed is given back when it is over.
        if self.entries.capacity() > 1024 && self.entries.len() * 4 < self.entries.capacity() {
            self.entries.shrink_to(self.entries.len() * 2);
            let (entries, first) = (&self.entries, self.first);
            self.by_id.shrink_to(entries.len() * 2, |number| {
                entries[number.wrapping_sub(first) as usize].id as u64
            });
        }
        count
    }

    fn forget(&mut self, id: u128, number: u32) {
        if let Ok(found) = self.by_id.find_entry(id as u64, |other| *other == number) {
            found.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn an_id_is_known_until_its_window_is_over() {
        let mut duplicates = Duplicates::new(100, 1);
        duplicates.add(b"a", 1, 0);
        duplicates.add(b"b", 2, 50);

        assert_eq!(duplicates.find(b"a"), Some(1));
        assert_eq!(duplicates.expire(99), 0);
        assert_eq!(duplicates.expire(100), 1);
        assert_eq!(duplicates.find(b"a"), None);
        assert_eq!(duplicates.find(b"b"), Some(2));
        duplicates.set_window(10, 100);
        assert!(duplicates.is_empty());
    }

    #[test]
    fn nothing_is_remembered_without_a_window() {
        let mut duplicates = Duplicates::new(0, 1);
        duplicates.add(b"a", 1, 0);

        assert_eq!(duplicates.find(b"a"), None);
    }

    proptest! {
        #[test]
        fn it_knows_what_a_simple_list_knows(
            steps in proptest::collection::vec((0..30u8, 0..20i64, any::<bool>()), 1..400),
        ) {
            let mut duplicates = Duplicates::new(50, 7);
            let mut twin: BTreeMap<u8, (u64, i64)> = BTreeMap::new();
            let (mut now, mut sequence) = (0, 0);
            for (id, passed, refuse) in steps {
                now += passed;
                duplicates.expire(now);
                twin.retain(|_, (_, time)| now - *time < 50);
                prop_assert_eq!(duplicates.find(&[id]), twin.get(&id).map(|(sequence, _)| *sequence));
                let known = twin.contains_key(&id);
                if !known {
                    sequence += 1;
                    duplicates.add(&[id], sequence, now);
                    if refuse {
                        duplicates.forget_from(sequence);
                        sequence -= 1;
                    } else {
                        twin.insert(id, (sequence, now));
                    }
                }
                prop_assert_eq!(duplicates.len(), twin.len());
            }
        }
    }
}
