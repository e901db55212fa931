//! The messages of a segment by subject, built when one subject among many is first requested.

use std::sync::OnceLock;

use super::segments::{RecordLocation, SegmentIndex};
use super::subjects::SubjectId;

/// Ranks, sorted by subject and then by rank.
#[derive(Default)]
pub struct Postings {
    ranks: OnceLock<Box<[u32]>>,
}

impl Postings {
    /// The ranks of one subject, ascending, dead ones included.
    pub fn of<'a>(&'a self, index: &SegmentIndex, id: SubjectId) -> &'a [u32] {
        let ranks = self.ranks.get_or_init(|| {
            let mut ranks: Vec<u32> = (0..index.rank_count() as u32)
                .filter(|rank| index.place(*rank as usize) != RecordLocation::NONE)
                .collect();
            ranks.sort_by_key(|rank| index.subject_ids[*rank as usize]);
            ranks.into_boxed_slice()
        });
        let subject = |rank: &u32| index.subject_ids[*rank as usize];
        let start = ranks.partition_point(|rank| subject(rank) < id);
        let count = ranks[start..].partition_point(|rank| subject(rank) == id);
        &ranks[start..start + count]
    }
}
