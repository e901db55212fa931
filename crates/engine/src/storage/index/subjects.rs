//! The subjects of a stream: for each how many messages it has, which is the first and which the last.
//!
//! A subject has a number while it has messages; those who keep many messages keep numbers, not names. Names are found
//! by hash; wildcards are matched by walking the sorted names and jumping over whole branches that cannot match. New
//! names gather in a small unsorted tail until it is worth sorting them in. Invariant: a number is given to another
//! name only after no sorted list holds it any more.

use ahash::RandomState;
use hashbrown::HashTable;

use super::subject_names::{NamePlace, SubjectNames};
use crate::common::subject;

/// New names that a walk looks at one by one before they are sorted in.
const TAIL_MIN: usize = 1024;

pub type SubjectId = u32;

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct SubjectSummary {
    pub count: u64,
    /// The first message is this one or a later one: after removals only a search finds out.
    pub first: u64,
    pub last: u64,
}

#[derive(Default)]
struct Slot {
    name: NamePlace,
    summary: SubjectSummary,
}

#[derive(Default)]
pub struct SubjectIndex {
    hasher: RandomState,
    by_name: HashTable<SubjectId>,
    slots: Vec<Slot>,
    names: SubjectNames,
    sorted: Vec<SubjectId>,
    tail: Vec<SubjectId>,
    /// Without messages, but maybe still in `sorted` or `tail`.
    leaving: Vec<SubjectId>,
    free: Vec<SubjectId>,
    /// The subject asked for last: streams of one subject never hash.
    recent: SubjectId,
}

impl SubjectIndex {
    /// Subjects that have messages.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    pub fn name(&self, id: SubjectId) -> &[u8] {
        self.names.get(self.slots[id as usize].name)
    }

    pub fn summary(&self, id: SubjectId) -> SubjectSummary {
        self.slots[id as usize].summary
    }

    pub fn find(&self, name: &[u8]) -> Option<SubjectId> {
        if let Some(slot) = self.slots.get(self.recent as usize) {
            if slot.summary.count > 0 && self.names.get(slot.name) == name {
                return Some(self.recent);
            }
        }
        let hash = self.hasher.hash_one(name);
        self.by_name
            .find(hash, |id| self.name(*id) == name)
            .copied()
    }

    /// The number of a subject, new if it has none; `add` must follow.
    pub fn intern(&mut self, name: &[u8]) -> SubjectId {
        if let Some(id) = self.find(name) {
            self.recent = id;
            return id;
        }
        let id = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            (self.slots.len() - 1) as SubjectId
        });
        self.slots[id as usize] = Slot {
            name: self.names.add(name),
            summary: SubjectSummary::default(),
        };
        let hash = self.hasher.hash_one(name);
        let (slots, names, hasher) = (&self.slots, &self.names, &self.hasher);
        self.by_name.insert_unique(hash, id, |id| {
            hasher.hash_one(names.get(slots[*id as usize].name))
        });
        self.tail.push(id);
        if self.tail.len() >= TAIL_MIN.max(self.sorted.len() / 8) {
            self.sort_in();
        }
        self.recent = id;
        id
    }

    /// A subject has `count` more messages, which lie between two sequences.
    pub fn add(&mut self, id: SubjectId, count: u64, first: u64, last: u64) {
        let summary = &mut self.slots[id as usize].summary;
        if summary.count == 0 {
            *summary = SubjectSummary { count, first, last };
        } else {
            summary.count += count;
            summary.first = summary.first.min(first);
            summary.last = summary.last.max(last);
        }
    }

    /// A message of the subject is gone. True if it was the last one and another is left, so that `set_last` must follow.
    pub fn remove(&mut self, id: SubjectId, sequence: u64) -> bool {
        let slot = &mut self.slots[id as usize];
        let summary = &mut slot.summary;
        debug_assert!(summary.count > 0);
        summary.count -= 1;
        if summary.count == 0 {
            self.forget(id);
            return false;
        }
        if sequence == summary.last {
            return true;
        }
        if summary.count == 1 {
            summary.first = summary.last;
        } else if sequence == summary.first {
            summary.first += 1;
        }
        false
    }

    pub fn set_last(&mut self, id: SubjectId, sequence: u64) {
        let summary = &mut self.slots[id as usize].summary;
        summary.last = sequence;
        if summary.count == 1 {
            summary.first = sequence;
        }
    }

    /// What a search has found out.
    pub fn set_first(&mut self, id: SubjectId, sequence: u64) {
        self.slots[id as usize].summary.first = sequence;
    }

    fn forget(&mut self, id: SubjectId) {
        let hash = self.hasher.hash_one(self.name(id));
        if let Ok(entry) = self.by_name.find_entry(hash, |other| *other == id) {
            entry.remove();
        }
        self.leaving.push(id);
        if self.leaving.len() >= TAIL_MIN.max(self.sorted.len() / 8) {
            self.sort_in();
        }
    }

    /// Sorts the tail in and drops names without messages.
    fn sort_in(&mut self) {
        let mut sorted = std::mem::take(&mut self.sorted);
        let mut tail = std::mem::take(&mut self.tail);
        if !self.leaving.is_empty() {
            let has_messages = |id: &SubjectId| {
                let summary = self.summary(*id);
                // A name that was interned just now has none yet.
                summary.count > 0 || summary == SubjectSummary::default()
            };
            tail.retain(has_messages);
            sorted.retain(has_messages);
        }
        tail.sort_unstable_by(|one, other| self.name(*one).cmp(self.name(*other)));
        self.sorted = self.merged(&sorted, &tail);
        tail.clear();
        self.tail = tail;
        for id in std::mem::take(&mut self.leaving) {
            if self.slots[id as usize].summary.count == 0 {
                self.names.give_up(self.slots[id as usize].name);
                self.slots[id as usize] = Slot::default();
                self.free.push(id);
            }
        }
        if self.names.has_gaps() {
            let places = self.slots.iter_mut().map(|slot| &mut slot.name);
            self.names.close_gaps(places);
        }
    }

    /// A long list with a short one sorted in. Names lie all over the memory, so only few of the long list are looked at.
    fn merged(&self, long: &[SubjectId], short: &[SubjectId]) -> Vec<SubjectId> {
        let mut merged = Vec::with_capacity(long.len() + short.len());
        let mut rest = long;
        for id in short {
            let name = self.name(*id);
            let (before, behind) =
                rest.split_at(near_partition_point(rest, |other| self.name(*other) < name));
            merged.extend_from_slice(before);
            merged.push(*id);
            rest = behind;
        }
        merged.extend_from_slice(rest);
        merged
    }

    /// Calls `found` with every subject that has messages and matches, in no order.
    pub fn for_each_match(&self, pattern: &[u8], mut found: impl FnMut(SubjectId)) {
        if subject::is_literal(pattern) {
            if let Some(id) = self.find(pattern) {
                found(id);
            }
            return;
        }
        let has_messages = |id: SubjectId| self.slots[id as usize].summary.count > 0;
        for id in &self.tail {
            if has_messages(*id) && subject::matches(pattern, self.name(*id)) {
                found(*id);
            }
        }
        let mut index = 0;
        while let Some(&id) = self.sorted.get(index) {
            let name = self.name(id);
            if subject::matches(pattern, name) {
                if has_messages(id) {
                    found(id);
                }
                index += 1;
                continue;
            }
            index = match next_candidate(pattern, name) {
                Some(bound) => {
                    let rest = &self.sorted[index + 1..];
                    index + 1 + rest.partition_point(|id| self.name(*id) < bound.as_slice())
                }
                None => return,
            };
        }
    }
}

/// What `partition_point` says, found faster where it is near the front.
fn near_partition_point<T>(list: &[T], is_before: impl Fn(&T) -> bool) -> usize {
    let mut end = 1;
    while end <= list.len() && is_before(&list[end - 1]) {
        end *= 2;
    }
    let start = end / 2;
    let end = (end - 1).min(list.len());
    start + list[start..end].partition_point(is_before)
}

/// The smallest name after `name` that could match a pattern which `name` does not match, as far as that is easily said; `None` if there is none.
fn next_candidate(pattern: &[u8], name: &[u8]) -> Option<Vec<u8>> {
    // The bytes of `name` up to the token that does not fit; the next name differs in it or before it.
    let mut done = 0;
    let mut names = name.split(|byte| *byte == b'.');
    let mut patterns = pattern.split(|byte| *byte == b'.').peekable();
    loop {
        let Some(wanted) = patterns.next() else {
            // The name has more tokens than the pattern: jump over the branch below its last matching token.
            return after_branch(&name[..done.max(1) - 1]);
        };
        let Some(token) = names.next() else {
            // The name is shorter than the pattern: longer names follow directly.
            let mut bound = name.to_vec();
            bound.push(0);
            return Some(bound);
        };
        if wanted == b">" || wanted == b"*" || wanted == token {
            done += token.len() + 1;
            continue;
        }
        // A match goes on with exactly this token, alone or before a dot; other tokens may sort between the two.
        let mut bound = [&name[..done], wanted].concat();
        if name < bound.as_slice() {
            return Some(bound);
        }
        bound.push(b'.');
        if name < bound.as_slice() {
            return Some(bound);
        }
        if pattern.get(..done) == Some(&name[..done]) {
            // What comes before has no choice: nothing later can match.
            return None;
        }
        return after_branch(&name[..done - 1]);
    }
}

/// The first name after all that begin with `prefix` and a dot.
fn after_branch(prefix: &[u8]) -> Option<Vec<u8>> {
    let mut bound = prefix.to_vec();
    bound.push(b'.' + 1);
    Some(bound)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    fn matching(index: &SubjectIndex, pattern: &[u8]) -> BTreeSet<Vec<u8>> {
        let mut found = BTreeSet::new();
        index.for_each_match(pattern, |id| {
            assert!(found.insert(index.name(id).to_vec()), "named twice");
        });
        found
    }

    #[test]
    fn first_and_last_follow_what_is_added_and_removed() {
        let mut index = SubjectIndex::default();
        let id = index.intern(b"a.b");
        index.add(id, 1, 3, 3);
        index.add(id, 1, 5, 5);
        index.add(id, 1, 9, 9);

        assert!(!index.remove(id, 3));
        assert_eq!((index.summary(id).first, index.summary(id).last), (4, 9));
        assert!(index.remove(id, 9));
        index.set_last(id, 5);
        assert_eq!(
            index.summary(id),
            SubjectSummary {
                count: 1,
                first: 5,
                last: 5
            }
        );
        assert!(!index.remove(id, 5));
        assert_eq!(index.find(b"a.b"), None);
        assert_eq!(index.len(), 0);
    }

    #[test]
    fn a_wildcard_in_front_jumps_over_branches_without_missing_one() {
        let mut index = SubjectIndex::default();
        for first in 0..60 {
            for second in 0..60 {
                let id = index.intern(format!("a{first}.b{second}.c").as_bytes());
                index.add(id, 1, 1, 1);
            }
        }

        assert_eq!(matching(&index, b"*.b7.c").len(), 60);
        assert_eq!(matching(&index, b"a3.*.c").len(), 60);
        assert_eq!(matching(&index, b"a3.>").len(), 60);
        assert_eq!(matching(&index, b">").len(), 3600);
        assert_eq!(matching(&index, b"*.*").len(), 0);
        assert_eq!(matching(&index, b"zz.>").len(), 0);
    }

    fn token() -> impl Strategy<Value = &'static str> {
        prop_oneof![
            Just("a"),
            Just("b"),
            Just("ab"),
            Just("!"),
            Just("~"),
            Just("a-")
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn walking_finds_what_looking_at_every_name_finds(
            history in proptest::collection::vec((proptest::collection::vec(token(), 1..4), any::<bool>()), 1..4000),
            patterns in proptest::collection::vec(
                proptest::collection::vec(prop_oneof![token(), Just("*")], 1..4), 1..8),
            ends in any::<bool>(),
        ) {
            let mut index = SubjectIndex::default();
            let mut twin: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
            for (sequence, (tokens, adds)) in history.iter().enumerate() {
                let name = tokens.join(".").into_bytes();
                let sequence = sequence as u64 + 1;
                if *adds {
                    let id = index.intern(&name);
                    index.add(id, 1, sequence, sequence);
                    *twin.entry(name).or_default() += 1;
                } else if let Some(count) = twin.get_mut(&name) {
                    let id = index.find(&name).unwrap();
                    if index.remove(id, index.summary(id).last) {
                        index.set_last(id, 0);
                    }
                    *count -= 1;
                    if *count == 0 {
                        twin.remove(&name);
                    }
                }
            }
            prop_assert_eq!(index.len(), twin.len());
            for tokens in patterns {
                let mut pattern = tokens.join(".").into_bytes();
                if ends {
                    pattern.extend_from_slice(b".>");
                }
                let wanted: BTreeSet<Vec<u8>> =
                    twin.keys().filter(|name| subject::matches(&pattern, name)).cloned().collect();
                prop_assert_eq!(matching(&index, &pattern), wanted);
            }
        }
    }
}
