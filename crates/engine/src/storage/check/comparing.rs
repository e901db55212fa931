//! Compares a footer with the records it describes.
//!
//! A footer describes the messages that were alive when the segment was sealed. A record that it does not know was
//! removed, which is not a fault. The reverse is always one: where the footer places a message, that message must lie.

use crate::storage::format::footer::Footer;
use crate::storage::format::record::{Record, RecordKind};
use crate::storage::format::removal::Removal;
use crate::storage::format::segment_header::SegmentHeader;
use crate::storage::index::messages::counted_bytes;
use crate::storage::index::segments::{Extent, RecordLocation};

/// What a footer and its records say together, record by record from front to back.
pub struct Comparison<'a> {
    footer: &'a Footer,
    header: &'a SegmentHeader,
    /// The next rank that no record was held against yet.
    rank: usize,
    /// Live in the footer, without a good record.
    unreadable: Vec<u64>,
    wrong: Option<&'static str>,
    removed: Vec<Removal>,
    erased: Vec<Removal>,
}

impl<'a> Comparison<'a> {
    pub fn new(footer: &'a Footer, header: &'a SegmentHeader) -> Self {
        Self {
            footer,
            header,
            rank: 0,
            unreadable: Vec::new(),
            wrong: None,
            removed: Vec::new(),
            erased: Vec::new(),
        }
    }

    /// The ranges a removal in the file lists.
    pub fn removed(&mut self, removals: &[Removal]) {
        self.removed.extend_from_slice(removals);
    }

    pub fn record(&mut self, record: &Record<'_>, position: u64, length: usize) {
        if record.kind == RecordKind::Erased {
            self.erased.push(Removal {
                first: record.sequence,
                last: record.sequence,
                erase: false,
            });
        }
        self.skip_to(position);
        let index = &self.footer.index;
        let Some(place) = self.live_place() else {
            return;
        };
        if place.position() != position {
            return;
        }
        let sequence = index.sequence(self.rank);
        match record.kind {
            _ if record.sequence != sequence => self.unreadable.push(sequence),
            RecordKind::Message | RecordKind::Compressed => {
                self.message(record, Extent { position, length })
            }
            // Erased since the segment was sealed.
            RecordKind::Erased => {}
            RecordKind::Removed | RecordKind::Dictionary | RecordKind::Group => {
                self.unreadable.push(sequence)
            }
        }
        self.rank += 1;
    }

    fn message(&mut self, record: &Record<'_>, extent: Extent) {
        let index = &self.footer.index;
        if index.extent(self.rank) != Some(extent) {
            self.wrong = Some("a message has another length");
        }
        if index.expires_ns(record.sequence) != record.expires_ns {
            self.wrong = Some("a message expires at another time");
        }
        let subject = self
            .footer
            .subjects
            .get(index.subject_ids[self.rank] as usize);
        let same = subject.is_some_and(|subject| *subject.name == *record.subject);
        if !same {
            self.wrong = Some("a message has another subject");
        }
    }

    /// The place of the next live message.
    fn live_place(&mut self) -> Option<RecordLocation> {
        let index = &self.footer.index;
        while self.rank < index.rank_count() && index.place(self.rank) == RecordLocation::NONE {
            self.rank += 1;
        }
        (self.rank < index.rank_count()).then(|| index.place(self.rank))
    }

    /// Live messages that should lie before this position have no record.
    fn skip_to(&mut self, position: u64) {
        while let Some(place) = self.live_place() {
            if place.position() >= position {
                return;
            }
            self.unreadable.push(self.footer.index.sequence(self.rank));
            self.rank += 1;
        }
    }

    /// The messages that cannot be read, and what else is wrong. `whole` says that no record was unreadable.
    pub fn finish(mut self, whole: bool) -> (Vec<u64>, Option<&'static str>) {
        self.skip_to(u64::MAX);
        let wrong = self
            .wrong
            .or_else(|| self.wrong_counts())
            .or_else(|| self.wrong_removals(whole));
        (self.unreadable, wrong)
    }

    /// Whether the sums of the footer are those of its parts.
    fn wrong_counts(&self) -> Option<&'static str> {
        let index = &self.footer.index;
        let mut tallies = vec![(0, u64::MAX, 0); self.footer.subjects.len()];
        let mut count = 0;
        let mut bytes = 0;
        for rank in 0..index.rank_count() {
            if index.place(rank) == RecordLocation::NONE {
                continue;
            }
            let sequence = index.sequence(rank);
            let Some(tally) = tallies.get_mut(index.subject_ids[rank] as usize) else {
                return Some("a message has a subject that is not listed");
            };
            *tally = (tally.0 + 1, tally.1.min(sequence), tally.2.max(sequence));
            count += 1;
            bytes += counted_bytes(index, self.header.extra_bytes(), rank);
        }
        if (count, bytes) != (self.footer.count, self.footer.bytes) {
            return Some("the messages or their bytes are counted wrong");
        }
        let told = self
            .footer
            .subjects
            .iter()
            .map(|subject| (subject.count, subject.first, subject.last));
        (!told.eq(tallies)).then_some("the messages of a subject are counted wrong")
    }

    /// Whether the footer knows the removals of the file and no others.
    fn wrong_removals(&self, whole: bool) -> Option<&'static str> {
        let told = joined(self.footer.index.removals.iter().copied());
        if !covers(&told, &joined(self.removed.iter().copied())) {
            return Some("it does not know a removal");
        }
        let there = self.removed.iter().chain(&self.erased);
        let unfounded = whole && !covers(&joined(there.copied()), &told);
        unfounded.then_some("it knows a removal that is not there")
    }
}

/// The same messages in as few ranges as they need, in order.
fn joined(removals: impl Iterator<Item = Removal>) -> Vec<Removal> {
    let mut sorted: Vec<Removal> = removals.collect();
    sorted.sort_unstable();
    let mut joined: Vec<Removal> = Vec::new();
    for removal in sorted {
        match joined.last_mut() {
            Some(last) if removal.first <= last.last.saturating_add(1) => {
                last.last = last.last.max(removal.last);
            }
            _ => joined.push(removal),
        }
    }
    joined
}

/// Whether every message of `inner` is in `outer`; both as `joined` returns them.
fn covers(outer: &[Removal], inner: &[Removal]) -> bool {
    inner.iter().all(|range| {
        let at = outer.partition_point(|one| one.last < range.first);
        let found = outer.get(at);
        found.is_some_and(|one| one.first <= range.first && range.last <= one.last)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(first: u64, last: u64) -> Removal {
        Removal {
            first,
            last,
            erase: false,
        }
    }

    #[test]
    fn the_same_messages_cover_each_other_however_they_are_listed() {
        let one = joined([range(1, 4), range(9, 9)].into_iter());
        let other = joined([range(9, 9), range(3, 4), range(1, 2), range(1, 1)].into_iter());

        assert_eq!(one, other);
        assert!(covers(&one, &other));
        assert!(!covers(&one, &[range(4, 5)]));
        assert!(!covers(&one, &[range(20, 20)]));
    }
}
