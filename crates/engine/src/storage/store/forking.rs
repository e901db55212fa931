//! Making another store of what this one holds up to some message, at the cost of a few names.
//!
//! Sealed segments are shared: the file gets a second name in the other folder. What is not sealed, or reaches beyond the last message wanted, is
//! copied like in a compaction. Which messages of the shared segments are gone is written down in the segment the fork goes on with.
//!
//! Everything is durable before the anchor of the fork is written, and that comes last: a folder with segments and
//! without an anchor is a fork that was never finished, and the next attempt starts over. Invariant: nothing is ever
//! written into a file that two stores have (`SegmentFile::own`). Whether they do is read from the file itself, by the
//! number of its names: a mark in a folder would have to be written and removed in step with the names, on both sides,
//! through every crash; the file system does that already, and counts a backup made of links too.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::assembling::not_removed;
use super::committed::CommittedMessages;
use super::copying::CopySource;
use super::folder::StoreFolder;
use super::opening::random_identity;
use super::rewriting::{rewrite, Front, RewriteTarget};
use super::spare::create;
use super::writing::{write_zeros, BLOCK_BYTES, SLACK_BYTES};
use crate::common::clock::system_ns;
use crate::storage::disk::failure;
use crate::storage::disk::twin_file;
use crate::storage::disk::twin_file::{TwinFile, Twins};
use crate::storage::format::anchor;
use crate::storage::format::anchor::{Anchor, Closed, StoredAnchor, RESERVE_STEP};
use crate::storage::format::encryption;
use crate::storage::format::record::Record;
use crate::storage::format::removal;
use crate::storage::format::removal::{Removal, RANGES_MAX};
use crate::storage::format::round::Round;
use crate::storage::format::segment_header::{SegmentHeader, FORMAT_VERSION, RECORDS_START};
use crate::storage::index::bits::Bits;
use crate::storage::index::messages::{MessageIndex, Segment};
use crate::storage::index::subjects::SubjectId;
use crate::storage::message::{StoreError, StoreResult};
use crate::storage::segment::segment_file;
use crate::storage::segment::segment_file::SegmentFile;

/// No stream gets this far, and there is room after it.
const SEQUENCE_MAX: u64 = u64::MAX / 2;

/// A segment of which a fork has something.
enum ForkedSegment {
    Shared(Arc<SegmentFile>),
    Copied(Box<CopySource>),
}

impl ForkedSegment {
    fn number(&self) -> u64 {
        match self {
            Self::Shared(file) => file.header.number,
            Self::Copied(source) => source.file.header.number,
        }
    }
}

/// What a fork is made of.
pub struct ForkPieces {
    pieces: Vec<ForkedSegment>,
    /// Messages of shared segments that are gone, and sequences that no segment answers for.
    removals: Vec<Removal>,
    front: Front,
    last_sequence: u64,
}

/// A fork that is being made.
struct Fork<'a> {
    from: &'a StoreFolder,
    messages: &'a CommittedMessages,
    folder: &'a Path,
    pieces: &'a ForkPieces,
}

/// Makes a store in another folder of the same file system, of what was found (`pieces`). Segments are held until it is durable.
pub fn fork(
    from: &StoreFolder,
    messages: &CommittedMessages,
    folder: &Path,
    pieces: &ForkPieces,
) -> StoreResult<()> {
    let fork = Fork {
        from,
        messages,
        folder,
        pieces,
    };
    fork.run().map_err(fork_error)
}

/// Whether a fork may go so far.
pub fn check_last_sequence(last_sequence: u64) -> StoreResult<()> {
    match last_sequence <= SEQUENCE_MAX {
        true => Ok(()),
        false => Err(fork_error(io::ErrorKind::InvalidInput.into())),
    }
}

impl Fork<'_> {
    fn run(&self) -> io::Result<()> {
        let file_system = &*self.from.file_system;
        file_system.create_folder(self.folder)?;
        let names = file_system.list(self.folder)?;
        if (1..=2).any(|copy| names.contains(&format!("{}.{copy}", anchor::NAME))) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.clear()?;
        let made = self.make();
        if made.is_err() {
            // Whatever is left of it is cleared away by the next attempt.
            let _ = self.clear();
        }
        made
    }

    /// Removes what an attempt left behind that did not get as far as the anchor.
    fn clear(&self) -> io::Result<()> {
        let file_system = &*self.from.file_system;
        for name in file_system.list(self.folder)? {
            let is_twin = |of: &str| name == format!("{of}.1") || name == format!("{of}.2");
            let is_ours = segment_file::number(&name).is_some()
                || name.ends_with(".new")
                || is_twin(encryption::NAME)
                || is_twin(anchor::NAME);
            if is_ours {
                file_system.remove_file(&self.folder.join(name))?;
            }
        }
        Ok(())
    }

    fn make(&self) -> io::Result<()> {
        let (file_system, folder, pieces) = (&*self.from.file_system, self.folder, self.pieces);
        self.copy_key()?;
        for piece in &pieces.pieces {
            let target = segment_file::path(folder, piece.number());
            match piece {
                ForkedSegment::Shared(file) => {
                    // Before it has two names, so that nobody writes into it between the two.
                    file.set_shared();
                    self.messages.note_shared();
                    file_system.link(&file.path, &target)?;
                }
                ForkedSegment::Copied(source) => {
                    let into = RewriteTarget {
                        folder,
                        compressed: false,
                        last_sequence: pieces.last_sequence,
                    };
                    let source = std::slice::from_ref(&**source);
                    let copied = rewrite(self.from, source, pieces.front, &into)?;
                    file_system.rename(&copied.file.path, &target)?;
                }
            }
        }
        let (header, end) = self.begin()?;
        // Also makes the names above durable.
        file_system.sync_folder(folder)?;
        if let Some(parent) = folder.parent() {
            file_system.sync_folder(parent)?;
        }
        let next_sequence = pieces.last_sequence + 1;
        let mut kept = StoredAnchor {
            anchor: Anchor {
                stream: self.from.stream,
                origin_sequence: self.from.origin_sequence.min(next_sequence),
                reserved_sequence: next_sequence + RESERVE_STEP,
                last_number: header.number,
                closed: Some(Closed {
                    last_sequence: pieces.last_sequence,
                    number: header.number,
                    end,
                }),
            },
            generation: 0,
        };
        kept.write(file_system, folder)
    }

    fn copy_key(&self) -> io::Result<()> {
        let (file_system, folder) = (&*self.from.file_system, self.folder);
        if self.from.stream_key.is_none() {
            return Ok(());
        }
        let twins = twin_file::read(file_system, &self.from.path, encryption::NAME, false)?;
        let body = match twins {
            Twins::Good(twin) | Twins::Behind(twin) | Twins::Healed(twin) => twin.body,
            Twins::Missing | Twins::Lost | Twins::TooNew(_) => {
                return Err(io::Error::other("the key of the stream is lost"))
            }
        };
        let generation = 1;
        let twin = TwinFile { generation, body };
        twin_file::write(file_system, folder, encryption::NAME, &twin)
    }

    /// The segment a fork goes on with: what is gone of the others stands in it. Returns where its records end.
    fn begin(&self) -> io::Result<(SegmentHeader, u64)> {
        let (file_system, folder, pieces) = (&*self.from.file_system, self.folder, self.pieces);
        let last_number = pieces.pieces.iter().map(ForkedSegment::number).max();
        let header = SegmentHeader {
            version: FORMAT_VERSION,
            identity: random_identity(),
            stream: self.from.stream,
            number: last_number.unwrap_or(0) + 1,
            base_sequence: pieces.last_sequence + 1,
            created_ns: system_ns(),
            chained: self.from.options.chained,
            encrypted: self.from.stream_key.is_some(),
            compressed: false,
            rewritten: false,
        };
        let mut bytes = Vec::new();
        let mut round = Round::default().next();
        for some in pieces.removals.chunks(RANGES_MAX) {
            let mut payload = Vec::new();
            removal::encode(some, &mut payload);
            // Twice, like every removal.
            for _ in 0..2 {
                let record = Record {
                    round,
                    ..Record::removed(header.base_sequence, &payload)
                };
                let position = RECORDS_START + bytes.len() as u64;
                record.encode(&mut bytes, header.binding(), position, None);
                round = round.further();
            }
        }
        let (_, file) = create(file_system, folder, &header, true)?;
        let end = RECORDS_START + bytes.len() as u64;
        file.write_all_at(&bytes, RECORDS_START)?;
        let filled = (end + SLACK_BYTES).next_multiple_of(BLOCK_BYTES);
        write_zeros(&*file, end.max(RECORDS_START + SLACK_BYTES), filled)?;
        file.sync()?;
        Ok((header, end))
    }
}

/// What a fork takes of the segments there are.
pub fn pieces(index: &MessageIndex, last_sequence: u64) -> ForkPieces {
    let mut pieces = Vec::new();
    let mut gone: Vec<Removal> = Vec::new();
    let mut first_base = last_sequence + 1;
    let mut lost = index.lost.clone();
    lost.sort_unstable();
    let wanted = |segment: &&Segment| {
        let contents = &segment.index;
        contents.base_sequence <= contents.last_sequence.min(last_sequence)
    };
    for segment in index.segments.iter().filter(wanted) {
        first_base = first_base.min(segment.index.base_sequence);
        if segment.sealed && segment.index.last_sequence <= last_sequence {
            gone_of(segment, &lost, &mut gone);
            pieces.push(ForkedSegment::Shared(Arc::clone(&segment.file)));
        } else {
            pieces.push(ForkedSegment::Copied(Box::new(source(index, segment))));
        }
    }
    let range = |first: u64, last: u64| Removal {
        first,
        last,
        erase: false,
    };
    let mut removals = Vec::new();
    if first_base > 1 {
        // Why the first one is the first.
        removals.push(range(1, first_base - 1));
    }
    removals.append(&mut gone);
    if index.last_sequence < last_sequence {
        // Passed over.
        removals.push(range(index.last_sequence + 1, last_sequence));
    }
    ForkPieces {
        pieces,
        removals,
        front: Front {
            base: first_base,
            sequence: index.first_sequence,
        },
        last_sequence,
    }
}

/// Messages that a shared segment has and that are removed; those that are lost are found to be so again.
fn gone_of(segment: &Segment, lost: &[Removal], gone: &mut Vec<Removal>) {
    let range = |first: u64, last: u64| Removal {
        first,
        last,
        erase: false,
    };
    let contents = &segment.index;
    let mut all: Vec<Removal> = Vec::new();
    if segment.file.header.rewritten {
        // What is not in its footer is not in its records either.
        for rank in segment.dead.ones() {
            let sequence = contents.sequence(rank);
            removal::push(&mut all, range(sequence, sequence));
        }
    } else {
        // Everything, so that the footer is not the only one to know.
        let mut expected = contents.base_sequence;
        let mut next = segment.next_live(0);
        while let Some(rank) = next {
            let sequence = contents.sequence(rank);
            if expected < sequence {
                all.push(range(expected, sequence - 1));
            }
            expected = sequence + 1;
            next = segment.next_live(rank + 1);
        }
        if expected <= contents.last_sequence {
            all.push(range(expected, contents.last_sequence));
        }
    }
    for range in all {
        gone.extend(not_removed(range, lost));
    }
}

/// A segment as it is now; messages may be added to it meanwhile, so its index is a copy.
fn source(index: &MessageIndex, segment: &Segment) -> CopySource {
    let name = |id: usize| {
        let id = id as SubjectId;
        (id, index.subjects.name(id).into())
    };
    CopySource {
        file: Arc::clone(&segment.file),
        index: Arc::new((*segment.index).clone()),
        dead: Bits::clone(&segment.dead),
        names: segment.subjects.ones().map(name).collect(),
    }
}

fn fork_error(error: io::Error) -> StoreError {
    failure::refusal(&error).unwrap_or_else(|| StoreError::NotForked(Arc::new(error)))
}
