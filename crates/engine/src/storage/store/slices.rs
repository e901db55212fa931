//! Work on many messages, a few at a time: the index is free for others between two slices.
//!
//! Threads that serve connections use the index of a store; a walk through a million messages must let them in.
//! Invariants: no lock is held for more than `SLICE_MESSAGES`, or `SCANNED_MESSAGES` that are only looked at; between
//! slices the index is exactly right.

use std::ops::Bound;
use std::time::Duration;

use parking_lot::RwLockWriteGuard;

use super::committed::CommittedMessages;
use crate::common::subject;
use crate::storage::format::removal;
use crate::storage::format::removal::Removal;
use crate::storage::index::lookup::Matching;
use crate::storage::index::messages::MessageIndex;
use crate::storage::message::{Expired, Limits, Purge};

/// Messages that are looked at or removed before others get the lock: about half a millisecond.
pub const SLICE_MESSAGES: usize = 2048;

/// Messages whose subject is compared before others get the lock: a tenth of a millisecond.
const SCANNED_MESSAGES: usize = 64 * 1024;

/// What others get between two slices: a thread that takes the lock once per message must be able to take it many times.
const PAUSE: Duration = Duration::from_micros(200);

/// Counts what was done in a slice.
#[derive(Default)]
pub struct Pace {
    done: usize,
}

impl Pace {
    /// One message more; lets others at the index when a slice is full.
    pub fn step(&mut self, index: &mut RwLockWriteGuard<'_, MessageIndex>) {
        self.done += 1;
        if self.done >= SLICE_MESSAGES {
            self.done = 0;
            RwLockWriteGuard::unlocked_fair(index, || std::thread::sleep(PAUSE));
        }
    }
}

/// Takes out everything in a range.
pub(super) fn remove_range(
    index: &mut RwLockWriteGuard<'_, MessageIndex>,
    range: Removal,
    pace: &mut Pace,
) {
    let mut next = index.next_live(range.first);
    while let Some(sequence) = next.filter(|sequence| *sequence <= range.last) {
        index.remove(sequence);
        pace.step(index);
        next = index.next_live(sequence + 1);
    }
}

/// Removes whatever exceeds the limits, of the whole stream and of each subject.
pub(super) fn enforce(
    index: &mut RwLockWriteGuard<'_, MessageIndex>,
    limits: &Limits,
    removed: &mut Vec<Removal>,
) {
    let mut pace = Pace::default();
    if let Some(most) = limits.per_subject_max {
        let mut ids = Vec::new();
        index.subjects.for_each_match(b">", |id| ids.push(id));
        for id in ids {
            while index.trim_subject_once(id, most, removed) {
                pace.step(index);
            }
            pace.step(index);
        }
    }
    while index.trim_once(limits, removed) {
        pace.step(index);
    }
}

/// Removes what is due: what has expired by `now_ns`, and what has a lower sequence than `first_young`.
pub(super) fn expire(
    index: &mut RwLockWriteGuard<'_, MessageIndex>,
    now_ns: i64,
    first_young: u64,
    spare_last: bool,
) -> (Expired, Vec<Removal>) {
    let mut due = DueMessages {
        spare_last,
        ..DueMessages::default()
    };
    let mut after = Bound::Unbounded;
    loop {
        let ends = (after, Bound::Included((now_ns, u64::MAX)));
        let some: Vec<(i64, u64)> = index
            .expiries
            .range(ends)
            .take(SLICE_MESSAGES)
            .copied()
            .collect();
        let Some(last) = some.last() else {
            break;
        };
        after = Bound::Excluded(*last);
        for entry in some {
            if index.locate(entry.1).is_some() {
                due.remove(index, entry.1);
            } else {
                index.expiries.remove(&entry);
            }
        }
    }
    let mut next = index.next_live(index.first_sequence);
    while let Some(sequence) = next.filter(|sequence| *sequence < first_young) {
        if !index.stays_for_ever(sequence) {
            due.remove(index, sequence);
        }
        next = index.next_live(sequence + 1);
    }
    due.spared.sort_unstable();
    due.spared.dedup();
    let expired = Expired {
        removed: due.removed,
        spared: due.spared,
    };
    (expired, due.removals)
}

#[derive(Default)]
struct DueMessages {
    spare_last: bool,
    removed: u64,
    spared: Vec<u64>,
    removals: Vec<Removal>,
    pace: Pace,
}

impl DueMessages {
    fn remove(&mut self, index: &mut RwLockWriteGuard<'_, MessageIndex>, sequence: u64) {
        if self.spare_last && index.is_last_of_subject(sequence) {
            self.spared.push(sequence);
        } else if index.remove(sequence) {
            self.removed += 1;
            removal::push(&mut self.removals, Removal::of(sequence));
        }
        self.pace.step(index);
    }
}

/// A purge by subject that is under way.
pub struct FilteredPurge {
    filter: Vec<u8>,
    matching: Matching,
    next: u64,
    /// Nothing from here on is removed.
    end: u64,
    /// How many more may be removed.
    left: u64,
}

impl FilteredPurge {
    /// Of what is committed now.
    pub(super) fn begin(messages: &CommittedMessages, filter: &[u8], purge: &Purge) -> Self {
        let index = messages.index();
        let matching = index.matching(filter);
        let end = index.last_sequence + 1;
        let end = purge.below_sequence.map_or(end, |below| below.min(end));
        let left = match purge.keep {
            0 => u64::MAX,
            keep => {
                let behind = index.count_matches(&matching, end);
                let there = index.count_matches(&matching, 0) - behind;
                there.saturating_sub(keep)
            }
        };
        Self {
            filter: filter.to_vec(),
            matching,
            next: index.first_sequence,
            end,
            left,
        }
    }

    /// What the next slice removes; `None` if there is nothing left to look at.
    pub(super) fn next_slice(&mut self, messages: &CommittedMessages) -> Option<Vec<u64>> {
        loop {
            let (found, is_over) = self.find_slice(messages);
            if !found.is_empty() {
                debug_assert!(found.len() as u64 <= self.left);
                self.left -= found.len() as u64;
                return Some(found);
            }
            if is_over {
                return None;
            }
        }
    }

    /// What the next slice removes, if anything, and whether it is the last.
    fn find_slice(&mut self, messages: &CommittedMessages) -> (Vec<u64>, bool) {
        let most = SLICE_MESSAGES.min(self.left.min(usize::MAX as u64) as usize);
        let mut found = Vec::new();
        let mut scannable = SCANNED_MESSAGES;
        let index = messages.index();
        for _ in 0..most {
            match index.next_match_among(&self.matching, self.next, &mut scannable) {
                Err(next) => {
                    self.next = next;
                    return (found, next >= self.end);
                }
                Ok(Some(sequence)) if sequence < self.end => {
                    self.next = sequence + 1;
                    // The number of a subject may have become another's since the purge began.
                    let name = index.subject_name(sequence);
                    if name.is_some_and(|name| subject::matches(&self.filter, name)) {
                        found.push(sequence);
                    }
                }
                Ok(_) => return (found, true),
            }
        }
        (found, most == 0)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use crate::storage::disk::memory::MemoryFileSystem;
    use crate::storage::message::NewMessage;
    use crate::storage::store::{Store, StoreOptions};

    #[test]
    fn a_purge_by_subject_lets_others_in_while_nothing_matches() {
        const MESSAGES: u64 = 3 * SCANNED_MESSAGES as u64;
        let store = Store::open(
            Arc::new(MemoryFileSystem::default()),
            Path::new("/s"),
            StoreOptions::default(),
        )
        .unwrap();
        for number in 0..MESSAGES {
            let subject: &[u8] = match number {
                7 => b"rare.first",
                _ if number == MESSAGES - 1 => b"rare.last",
                _ => b"common",
            };
            let message = NewMessage {
                subject,
                ..NewMessage::default()
            };
            store.append(&message).unwrap();
        }
        store.commit().unwrap();

        let mut purge = store.begin_filtered_purge(b"rare.*", &Purge::default());
        let mut looks = 0;
        let mut found = Vec::new();
        loop {
            let (some, is_over) = purge.find_slice(store.messages());
            looks += 1;
            found.extend(some);
            if is_over {
                break;
            }
        }
        assert_eq!(found, [8, MESSAGES]);
        assert!(looks >= 3, "{looks}");

        let mut purge = store.begin_filtered_purge(b"rare.*", &Purge::default());
        let mut removed = 0;
        while let Some(work) = store.stage_slice(&mut purge).unwrap() {
            removed += work.removed;
        }
        store.commit().unwrap();
        assert_eq!(removed, 2);
        assert_eq!(store.messages().counts().messages, MESSAGES - 2);
    }
}
