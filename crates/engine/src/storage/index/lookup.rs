//! Finding messages by subject: the next one, how many, the last ones.
//!
//! A filter becomes a set of subject numbers once; whether a message matches is then one bit. Segments that hold none of these subjects are
//! passed over.

use super::bits::Bits;
use super::messages::{MessageIndex, Segment};
use super::subjects::SubjectId;
use crate::common::subject;

/// The subjects a filter stands for, at the moment it was made.
pub enum Matching {
    Everything,
    Nothing,
    One(SubjectId),
    Many(Bits),
}

impl Matching {
    pub fn contains(&self, id: SubjectId) -> bool {
        match self {
            Self::Everything => true,
            Self::Nothing => false,
            Self::One(one) => *one == id,
            Self::Many(bits) => bits.get(id as usize),
        }
    }

    /// Whether a segment may hold a match.
    pub fn touches(&self, segment: &Segment) -> bool {
        segment.live_count > 0
            && match self {
                Self::Everything => true,
                Self::Nothing => false,
                Self::One(id) => segment.subjects.get(*id as usize),
                Self::Many(bits) => bits.meets(&segment.subjects),
            }
    }
}

impl MessageIndex {
    pub fn matching(&self, filter: &[u8]) -> Matching {
        if filter == b">" {
            return Matching::Everything;
        }
        if subject::is_literal(filter) {
            return self
                .subjects
                .find(filter)
                .map_or(Matching::Nothing, Matching::One);
        }
        let mut bits = Bits::default();
        let mut count = 0;
        let mut one = 0;
        self.subjects.for_each_match(filter, |id| {
            bits.set(id as usize);
            count += 1;
            one = id;
        });
        match count {
            0 => Matching::Nothing,
            1 => Matching::One(one),
            _ if count == self.subjects.len() => Matching::Everything,
            _ => Matching::Many(bits),
        }
    }

    /// The subjects that any of these patterns stands for; without one, all.
    pub fn matching_any(&self, patterns: &[Vec<u8>]) -> Matching {
        match patterns {
            [] => return Matching::Everything,
            [one] => return self.matching(one),
            _ => {}
        }
        let mut bits = Bits::default();
        for pattern in patterns {
            self.subjects.for_each_match(pattern, |id| {
                bits.set(id as usize);
            });
        }
        Matching::Many(bits)
    }

    /// The first message from `sequence` on that matches.
    pub fn next_match(&self, matching: &Matching, sequence: u64) -> Option<u64> {
        let mut from = sequence;
        if let Matching::One(id) = matching {
            let summary = self.subjects.summary(*id);
            if sequence > summary.last {
                return None;
            }
            from = from.max(summary.first);
            if summary.count == 1 {
                return Some(summary.last);
            }
        }
        let after = self
            .segments
            .partition_point(|segment| segment.index.last_sequence < from);
        self.segments[after..]
            .iter()
            .filter(|segment| matching.touches(segment))
            .find_map(|segment| {
                let rank = first_rank(segment, matching, segment.index.rank_from(from))?;
                Some(segment.index.sequence(rank))
            })
    }

    /// The same, but looks at no more than `most` messages one by one, and counts them down; `Err` says where to go on.
    pub fn next_match_among(
        &self,
        matching: &Matching,
        sequence: u64,
        most: &mut usize,
    ) -> Result<Option<u64>, u64> {
        let after = self
            .segments
            .partition_point(|segment| segment.index.last_sequence < sequence);
        for segment in &self.segments[after..] {
            if !matching.touches(segment) {
                continue;
            }
            let from = segment.index.rank_from(sequence);
            let found = match matching {
                Matching::One(_) if segment.closed => first_rank(segment, matching, from),
                _ => {
                    let end = from.saturating_add(*most).min(segment.index.rank_count());
                    let ids = &segment.index.subject_ids;
                    let matches =
                        |rank: &usize| matching.contains(ids[*rank]) && segment.is_live(*rank);
                    let found = (from..end).find(matches);
                    *most -= found.map_or(end, |rank| rank + 1) - from;
                    if found.is_none() && end < segment.index.rank_count() {
                        return Err(segment.index.sequence(end));
                    }
                    found
                }
            };
            if let Some(rank) = found {
                return Ok(Some(segment.index.sequence(rank)));
            }
        }
        Ok(None)
    }

    /// The last message of a subject below `sequence`.
    pub fn previous_of(&self, id: SubjectId, sequence: u64) -> Option<u64> {
        let after = self
            .segments
            .partition_point(|segment| segment.index.base_sequence < sequence);
        for segment in self.segments[..after].iter().rev() {
            if segment.live_count == 0 || !segment.subjects.get(id as usize) {
                continue;
            }
            let end = segment.index.rank_from(sequence);
            let ids = &segment.index.subject_ids[..end];
            let found = (0..end)
                .rev()
                .find(|rank| ids[*rank] == id && segment.is_live(*rank));
            if let Some(rank) = found {
                return Some(segment.index.sequence(rank));
            }
        }
        None
    }

    /// How many messages from `sequence` on match.
    pub fn count_matches(&self, matching: &Matching, sequence: u64) -> u64 {
        let total = match matching {
            Matching::Nothing => return 0,
            Matching::Everything => self.messages,
            Matching::One(id) => self.subjects.summary(*id).count,
            Matching::Many(bits) => bits
                .ones()
                .map(|id| self.subjects.summary(id as SubjectId).count)
                .sum(),
        };
        if sequence <= self.first_sequence {
            return total;
        }
        // The shorter side is counted.
        let middle = self
            .segments
            .partition_point(|segment| segment.index.last_sequence < sequence);
        let count = |segment: &Segment, from: usize, to: usize| -> u64 {
            if !matching.touches(segment) {
                return 0;
            }
            if let (Matching::Everything, true) =
                (matching, from == 0 && to == segment.index.rank_count())
            {
                return segment.live_count;
            }
            count_ranks(segment, matching, from, to)
        };
        let split = |segment: &Segment| segment.index.rank_from(sequence);
        if middle * 2 >= self.segments.len() {
            self.segments[middle..]
                .iter()
                .map(|segment| count(segment, split(segment), segment.index.rank_count()))
                .sum()
        } else {
            let before: u64 = self.segments[..=middle]
                .iter()
                .map(|segment| count(segment, 0, split(segment)))
                .sum();
            total - before
        }
    }

    /// The last message that matches.
    pub fn last_match(&self, matching: &Matching) -> Option<u64> {
        match matching {
            Matching::Nothing => None,
            Matching::Everything => self.last_live(),
            Matching::One(id) => Some(self.subjects.summary(*id).last),
            Matching::Many(bits) => bits
                .ones()
                .map(|id| self.subjects.summary(id as SubjectId).last)
                .max(),
        }
    }

    /// The first message of a subject: what its summary says is only a bound.
    pub fn first_of(&mut self, id: SubjectId) -> Option<u64> {
        let first = self.next_match(&Matching::One(id), 0)?;
        self.subjects.set_first(id, first);
        Some(first)
    }
}

fn first_rank(segment: &Segment, matching: &Matching, from: usize) -> Option<usize> {
    let ids = &segment.index.subject_ids;
    match matching {
        Matching::Nothing => None,
        Matching::Everything => segment.next_live(from),
        Matching::One(id) if segment.closed => {
            let ranks = segment.postings.of(&segment.index, *id);
            let start = ranks.partition_point(|rank| (*rank as usize) < from);
            ranks[start..]
                .iter()
                .map(|rank| *rank as usize)
                .find(|rank| segment.is_live(*rank))
        }
        _ => (from..ids.len()).find(|rank| matching.contains(ids[*rank]) && segment.is_live(*rank)),
    }
}

fn count_ranks(segment: &Segment, matching: &Matching, from: usize, to: usize) -> u64 {
    let ids = &segment.index.subject_ids;
    let live = |rank: &usize| segment.is_live(*rank);
    match matching {
        Matching::One(id) if segment.closed => segment
            .postings
            .of(&segment.index, *id)
            .iter()
            .map(|rank| *rank as usize)
            .filter(|rank| (from..to).contains(rank))
            .filter(live)
            .count() as u64,
        _ => (from..to)
            .filter(|rank| matching.contains(ids[*rank]))
            .filter(live)
            .count() as u64,
    }
}
