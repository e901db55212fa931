//! Writing the live messages of some segments into one new file.
//!
//! Invariant: the new file is durable as a whole before it is returned, and has no segment name until the caller gives
//! it one.

use std::io;
use std::path::{Path, PathBuf};

use super::copying::{common, CopySource, SegmentCopy};
use super::folder::StoreFolder;
use super::opening::random_identity;
use super::writing::remove_if_there;
use crate::storage::disk::file_system::OpenMode;
use crate::storage::format::compression::Unpacker;
use crate::storage::format::footer::Footer;
use crate::storage::format::removal;
use crate::storage::format::removal::Removal;
use crate::storage::format::segment_header::{SegmentHeader, FORMAT_VERSION};
use crate::storage::index::bits::Bits;
use crate::storage::index::subjects::SubjectId;
use crate::storage::segment::sealing;
use crate::storage::segment::sealing::Contents;
use crate::storage::segment::segment_file;
use crate::storage::segment::segment_file::SegmentFile;

/// Where a stream began before its segments were looked at.
#[derive(Clone, Copy)]
pub struct Front {
    /// Of the first segment.
    pub base: u64,
    /// Of the first message.
    pub sequence: u64,
}

/// Where a rewritten segment goes, and how much of the old ones.
pub struct RewriteTarget<'a> {
    pub folder: &'a Path,
    pub compressed: bool,
    /// Nothing after it is copied.
    pub last_sequence: u64,
}

/// A rewritten segment.
pub struct Rewritten {
    pub file: SegmentFile,
    pub footer: Footer,
    /// The subjects of its messages, by the numbers of the store.
    pub ids: Vec<SubjectId>,
}

/// Writes the live messages of some segments into one new file, which has no name yet.
pub fn rewrite(
    folder: &StoreFolder,
    sources: &[CopySource],
    front: Front,
    target: &RewriteTarget<'_>,
) -> io::Result<Rewritten> {
    let first = &sources[0];
    let last = &sources[sources.len() - 1];
    let compressed = target.compressed;
    let header = SegmentHeader {
        version: FORMAT_VERSION,
        identity: random_identity(),
        encrypted: folder.stream_key.is_some(),
        compressed,
        rewritten: true,
        ..first.file.header
    };
    let path = unfinished_path(target.folder, header.number);
    remove_if_there(&*folder.file_system, &path)?;
    let file = folder.file_system.open(&path, OpenMode::Create)?;
    header.write(&*file)?;
    let file = SegmentFile::new(header, path, file, folder.stream_key.as_ref());
    let mut copy = SegmentCopy::new(&file, folder.options.counting, target.last_sequence);
    let dictionary = if compressed {
        common(sources)?
    } else {
        Vec::new()
    };
    if compressed {
        copy.dictionary(&dictionary);
    }
    for source in sources {
        copy.messages(source, front.sequence)?;
    }
    // What these segments remember of others that are still there goes on being remembered, and why the first one is the first.
    let mut removals: Vec<Removal> = Vec::new();
    for removal in sources.iter().flat_map(|source| &source.index.removals) {
        if removal.last + 1 >= front.base && removal.first < header.base_sequence {
            let last = removal.last.min(header.base_sequence - 1);
            removal::push(&mut removals, Removal { last, ..*removal });
        }
    }
    copy.removals(&removals)?;
    copy.flush()?;
    let SegmentCopy {
        mut index,
        mut lost,
        last_time_ns,
        ..
    } = copy;
    lost.sort_unstable();
    let last_sequence = target.last_sequence.min(last.index.last_sequence);
    index.first_time_ns = first.index.first_time_ns;
    index.last_time_ns = match last_sequence == last.index.last_sequence {
        true => last.index.last_time_ns,
        false => last_time_ns.unwrap_or(index.first_time_ns),
    };
    index.last_sequence = last_sequence;
    index.removals = removals;
    let known_lost = sources.iter().flat_map(|source| &source.index.lost);
    let known_lost = known_lost.filter(|range| range.first <= last_sequence);
    index.lost = known_lost
        .map(|range| Removal {
            last: range.last.min(last_sequence),
            ..*range
        })
        .collect();
    for sequence in &lost {
        let range = Removal {
            first: *sequence,
            last: *sequence,
            erase: false,
        };
        removal::push(&mut index.lost, range);
    }
    let mut names: Vec<(SubjectId, Box<[u8]>)> = sources
        .iter()
        .flat_map(|source| source.names.iter().cloned())
        .collect();
    names.sort_by_key(|(id, _)| *id);
    names.dedup_by_key(|(id, _)| *id);
    let ids = index.subject_ids.clone();
    let contents = Contents {
        index: &index,
        dead: &Bits::default(),
        names: &names,
    };
    let footer = sealing::footer(&contents, header.extra_bytes());
    sealing::seal(&file, &footer)?;
    let mut file = file;
    file.unpacker = compressed.then(|| Unpacker::new(&dictionary)).flatten();
    Ok(Rewritten { file, footer, ids })
}

/// Where a segment is rewritten, until it is finished.
pub fn unfinished_path(folder: &Path, number: u64) -> PathBuf {
    segment_file::path(folder, number).with_extension("segment.new")
}
