//! Writing the footer of a segment that no message is added to any more.

use std::io;

use super::segment_file::SegmentFile;
use crate::storage::format::footer;
use crate::storage::format::footer::{Footer, FooterSubject};
use crate::storage::format::record;
use crate::storage::index::bits::Bits;
use crate::storage::index::messages::counted_bytes;
use crate::storage::index::segments::{RecordLocation, SegmentIndex};
use crate::storage::index::subjects::SubjectId;

/// Above this many sequences per message, the messages are listed one by one.
const SPARSE_FROM: usize = 4;

/// What a footer is made of: an index, which of its messages are gone, and the names of its subjects.
pub struct Contents<'a> {
    pub index: &'a SegmentIndex,
    pub dead: &'a Bits,
    /// Sorted by number; all that live messages have.
    pub names: &'a [(SubjectId, Box<[u8]>)],
}

/// The footer that describes the live messages of a segment.
pub fn footer(contents: &Contents<'_>, extra_bytes: usize) -> Footer {
    let source = contents.index;
    let live: Vec<usize> = (0..source.rank_count())
        .filter(|rank| source.place(*rank) != RecordLocation::NONE && !contents.dead.get(*rank))
        .collect();
    let sparse = source.sequences.is_some() || live.len() * SPARSE_FROM < source.rank_count();
    let mut index = SegmentIndex {
        sequences: sparse.then(Vec::new),
        places: Vec::new(),
        subject_ids: Vec::new(),
        sizes: source.sizes.as_ref().map(|_| Vec::new()),
        others: source.others.clone(),
        ..source.clone()
    };
    if !sparse {
        index.places = vec![RecordLocation::NONE.0; source.rank_count()];
        index.subject_ids = vec![0; source.rank_count()];
        index.sizes = source.sizes.clone();
    }
    let mut subjects: Vec<FooterSubject> = Vec::new();
    let mut local = vec![u32::MAX; contents.names.len()];
    let mut bytes = 0;
    for rank in &live {
        let sequence = source.sequence(*rank);
        let id = source.subject_ids[*rank];
        let at = contents
            .names
            .binary_search_by_key(&id, |(id, _)| *id)
            .expect("every live message has a subject");
        if local[at] == u32::MAX {
            local[at] = subjects.len() as u32;
            subjects.push(FooterSubject {
                name: contents.names[at].1.clone(),
                count: 0,
                first: sequence,
                last: sequence,
            });
        }
        let subject = &mut subjects[local[at] as usize];
        subject.count += 1;
        subject.last = sequence;
        bytes += counted_bytes(source, extra_bytes, *rank);
        match &mut index.sequences {
            Some(sequences) => {
                sequences.push((sequence - source.base_sequence) as u32);
                index.places.push(source.places[*rank]);
                index.subject_ids.push(local[at]);
                if let (Some(sizes), Some(source)) = (&mut index.sizes, &source.sizes) {
                    sizes.push(source[*rank]);
                }
            }
            None => {
                index.places[*rank] = source.places[*rank];
                index.subject_ids[*rank] = local[at];
            }
        }
    }
    // A message ends where the next thing begins, so what is left out must still be marked.
    let dead = (0..source.rank_count())
        .filter(|rank| source.place(*rank) != RecordLocation::NONE && contents.dead.get(*rank))
        .map(|rank| source.place(rank).position() as u32);
    index.others.extend(dead);
    index.others.sort_unstable();
    let is_live = |delta: &u32| {
        let rank = source.rank(source.base_sequence + u64::from(*delta));
        rank.is_some_and(|rank| !contents.dead.get(rank))
    };
    index.expiries.retain(|(delta, _)| is_live(delta));
    Footer {
        index,
        subjects,
        count: live.len() as u64,
        bytes,
    }
}

/// Files without a footer have a multiple of this length, and files with one never: so a footer that was wiped out shows.
const BLOCK_BYTES: u64 = 4096;

/// Writes a footer after the records and makes it durable; the file ends with it.
pub fn seal(file: &SegmentFile, footer: &Footer) -> io::Result<()> {
    assert!(!file.is_shared(), "somebody else reads this file");
    let mut position = footer.index.end;
    let mut bytes = footer::encode(footer, &file.header, position, file.key.as_ref());
    if (position + bytes.len() as u64) % BLOCK_BYTES == 0 {
        file.file.write_all_at(&[0; record::ALIGNMENT], position)?;
        position += record::ALIGNMENT as u64;
        bytes = footer::encode(footer, &file.header, position, file.key.as_ref());
    }
    file.file.write_all_at(&bytes, position)?;
    file.file.set_len(position + bytes.len() as u64)?;
    file.file.sync()
}
