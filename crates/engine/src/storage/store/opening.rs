//! Opening a folder of segments, after whatever happened to it.
//!
//! Sealed segments are known by their footers, the others by reading their records. What cannot be read is reported and left out; nothing is
//! cut but the torn end of the last segment, and that is put aside first. Every sequence from the first segment's base to the last message
//! belongs to exactly one segment, so a missing file shows. Invariant: no sequence is given a second time.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::assembling::{assemble, finish_erasures, own_file, Assembly};
use super::options::StoreOptions;
use super::reading::read_error;
use super::spare::create;
use super::staging::{AppendStaging, StreamStart};
use super::verifying::last_link;
use super::writing::{write_zeros, Active, Writer, SLACK_BYTES, SLACK_BYTES_MIN};
use crate::common::clock::system_ns;
use crate::storage::disk::file_system::{FileSystem, OpenMode};
use crate::storage::finding::Finding;
use crate::storage::format::anchor;
use crate::storage::format::anchor::{Anchor, StoredAnchor, RESERVE_STEP};
use crate::storage::format::chain::ChainLink;
use crate::storage::format::encryption;
use crate::storage::format::encryption::{KeyFound, StreamKey};
use crate::storage::format::record::HEAD_BYTES;
use crate::storage::format::round::Round;
use crate::storage::format::segment_header::{SegmentHeader, FORMAT_VERSION, RECORDS_START};
use crate::storage::index::messages::MessageIndex;
use crate::storage::message::{Committed, StoreError, StoreResult, Ticket};
use crate::storage::segment::loading::LoadedSegment;
use crate::storage::segment::scan::Tail;
use crate::storage::segment::sealing;
use crate::storage::segment::sealing::Contents;
use crate::storage::segment::segment_file;
use crate::storage::segment::segment_file::SegmentFile;

/// Torn bytes put aside at most.
const ASIDE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// A number nobody has had before.
pub fn random_identity() -> u64 {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).expect("the operating system has random bytes");
    u64::from_le_bytes(bytes)
}

/// Opens the store in a folder, or makes one there.
pub fn open(
    file_system: &dyn FileSystem,
    folder: &Path,
    options: &StoreOptions,
) -> StoreResult<OpenedStore> {
    let mut opening = Opening {
        file_system,
        folder,
        findings: Vec::new(),
        anchor_missing: false,
        anchor_foreign: false,
        aside_number: 0,
        stream_key: None,
        is_unsettled: false,
    };
    opening.open(options)
}

/// What was found in a folder, and what goes on from there.
pub struct OpenedStore {
    pub index: MessageIndex,
    pub findings: Vec<Finding>,
    pub stream_key: Option<StreamKey>,
    pub is_unsettled: bool,
    pub anchor: StoredAnchor,
    pub writer: Writer,
    pub staging: AppendStaging,
}

struct BuiltStore {
    assembly: Assembly,
    active: Active,
    kept: StoredAnchor,
    next_sequence: u64,
    /// Of the last record.
    round: Round,
    /// Of the last message, if the stream is chained.
    link: Option<ChainLink>,
}

/// Where the last segment ends, and which sequence comes next.
struct TailRecovery {
    next_sequence: u64,
    /// The segment can be written on from here, and is filled up to there.
    writable: Option<(u64, u64)>,
}

pub struct Opening<'a> {
    pub file_system: &'a dyn FileSystem,
    pub folder: &'a Path,
    pub findings: Vec<Finding>,
    pub anchor_missing: bool,
    pub anchor_foreign: bool,
    /// The highest number in the name of a segment that was put aside.
    pub aside_number: u64,
    pub stream_key: Option<StreamKey>,
    /// The store is new, and what it begins with is made durable later.
    pub is_unsettled: bool,
}

impl Opening<'_> {
    fn open(&mut self, options: &StoreOptions) -> StoreResult<OpenedStore> {
        self.file_system
            .create_folder(self.folder)
            .map_err(read_error)?;
        if options.settles_later {
            let names = self.file_system.list(self.folder).map_err(read_error)?;
            self.is_unsettled = names.is_empty();
        }
        let kept = self.read_anchor()?;
        self.read_key(options)?;
        let loaded = self.load_segments(kept.as_ref())?;
        let kept = kept.filter(|_| !self.anchor_foreign);
        let built = self.build(options, kept, loaded).map_err(read_error)?;
        Ok(self.finish(built))
    }

    fn finish(&mut self, built: BuiltStore) -> OpenedStore {
        let committed = Committed {
            ticket: Ticket(0),
            last_sequence: built.next_sequence - 1,
        };
        let staging = AppendStaging::new(StreamStart {
            header: built.active.file.header,
            position: built.active.end,
            next_sequence: built.next_sequence,
            last_time_ns: built.assembly.index.last_time_ns,
            round: built.round.next(),
            stream_key: self.stream_key.clone(),
            link: built.link,
        });
        OpenedStore {
            index: built.assembly.index,
            findings: std::mem::take(&mut self.findings),
            stream_key: self.stream_key.take(),
            is_unsettled: self.is_unsettled,
            anchor: built.kept,
            writer: Writer::new(built.active, committed, built.kept, built.link),
            staging,
        }
    }

    fn read_anchor(&mut self) -> StoreResult<Option<StoredAnchor>> {
        let path = self.folder.join(anchor::NAME);
        match anchor::read(self.file_system, self.folder, true).map_err(read_error)? {
            anchor::FoundAnchor::Good(kept) => Ok(Some(kept)),
            anchor::FoundAnchor::Healed(kept) => {
                let what = "a copy of the anchor";
                self.findings.push(Finding::Healed { path, what });
                Ok(Some(kept))
            }
            anchor::FoundAnchor::TooNew(version) => Err(StoreError::TooNew { version }),
            anchor::FoundAnchor::Lost => {
                self.findings.push(Finding::AnchorLost { path });
                Ok(None)
            }
            anchor::FoundAnchor::Missing => {
                self.anchor_missing = true;
                Ok(None)
            }
        }
    }

    /// Finds the key of the stream, or makes one if there should be one.
    fn read_key(&mut self, options: &StoreOptions) -> StoreResult<()> {
        let master = options.key.as_ref();
        let mut found =
            encryption::read(self.file_system, self.folder, master).map_err(read_error)?;
        if let (KeyFound::Locked, Some(new), Some(old)) = (&found, master, &options.previous_key) {
            if encryption::rotate(self.file_system, self.folder, old, new).map_err(read_error)? {
                found =
                    encryption::read(self.file_system, self.folder, master).map_err(read_error)?;
            }
        }
        self.stream_key = match (found, master) {
            (KeyFound::Key(key), _) => Some(key),
            (KeyFound::Healed(key), _) => {
                let path = self.folder.join(encryption::NAME);
                let what = "a copy of the key";
                self.findings.push(Finding::Healed { path, what });
                Some(key)
            }
            (KeyFound::Locked, _) => return Err(StoreError::Key),
            (KeyFound::None, None) => None,
            (KeyFound::None, Some(master)) => {
                let made =
                    encryption::create(self.file_system, self.folder, master, !self.is_unsettled);
                Some(made.map_err(read_error)?)
            }
        };
        Ok(())
    }

    fn build(
        &mut self,
        options: &StoreOptions,
        kept: Option<StoredAnchor>,
        loaded: Vec<LoadedSegment>,
    ) -> io::Result<BuiltStore> {
        let is_new = kept.is_none() && loaded.is_empty();
        let origin = kept.map_or(options.first_sequence, |kept| kept.anchor.origin_sequence);
        let mut assembly = assemble(loaded, origin, &mut self.findings);
        // The names found may not be durable yet, if only the process ended: what replaces a leftover must not go when that does.
        if !self.is_unsettled {
            self.file_system.sync_folder(self.folder)?;
        }
        for path in std::mem::take(&mut assembly.leftovers) {
            self.file_system.remove_file(&path)?;
        }
        let erased = finish_erasures(&mut assembly, self.file_system, self.stream_key.as_ref())?;
        let erased = erased.into_iter();
        if kept.is_some_and(|kept| kept.anchor.closed.is_some()) {
            // Closed in good order, so no erasure was under way.
            let back = erased.map(|sequence| Finding::Unerased { sequence });
            self.findings.extend(back);
        }
        for at in std::mem::take(&mut assembly.torn_footers) {
            self.seal(&mut assembly, at)?;
        }
        let tail = assembly.tail.as_ref();
        let round = tail.map_or(Round::default(), |tail| tail.round);
        let mut tail = self.recover_tail(&mut assembly, kept.as_ref(), origin, options.follows)?;
        let last = assembly.index.segments.last().map(|last| last.file.header);
        let alike = |header: &SegmentHeader| {
            header.chained == options.chained && header.encrypted == self.stream_key.is_some()
        };
        if tail.writable.is_some() && !last.as_ref().is_some_and(alike) {
            // What is stored from now on looks different, and a segment looks the same all over.
            self.end_segment(&mut assembly, tail.next_sequence)?;
            tail.writable = None;
        }
        let next_sequence = tail.next_sequence;
        assembly.index.last_sequence = next_sequence - 1;
        if assembly.index.messages == 0 {
            assembly.index.first_sequence = next_sequence;
        }

        let last_number = assembly
            .index
            .segments
            .last()
            .map_or(0, |segment| segment.file.header.number)
            .max(kept.map_or(0, |kept| kept.anchor.last_number));
        let stream = kept
            .map(|kept| kept.anchor.stream)
            .or(assembly
                .index
                .segments
                .first()
                .map(|one| one.file.header.stream))
            .unwrap_or_else(random_identity);
        let mut kept = kept;
        if is_new {
            // Before the first segment: a segment without an anchor would look as if the anchor had been lost.
            let mut first = StoredAnchor {
                anchor: Anchor {
                    stream,
                    origin_sequence: next_sequence,
                    reserved_sequence: next_sequence.saturating_add(RESERVE_STEP),
                    // Where both become durable before either counts, it need not be written again when the segment is used.
                    last_number: u64::from(self.is_unsettled),
                    closed: None,
                },
                generation: 0,
            };
            match self.is_unsettled {
                true => first.write_unsynced(self.file_system, self.folder)?,
                false => first.write(self.file_system, self.folder)?,
            }
            kept = Some(first);
        }
        let active = match (tail.writable, assembly.index.segments.last()) {
            (Some((end, filled)), Some(segment)) => Active {
                file: Arc::clone(&segment.file),
                end,
                filled,
            },
            _ => {
                let header = SegmentHeader {
                    version: FORMAT_VERSION,
                    identity: random_identity(),
                    stream,
                    number: last_number + 1,
                    base_sequence: next_sequence,
                    created_ns: system_ns(),
                    chained: options.chained,
                    encrypted: self.stream_key.is_some(),
                    compressed: false,
                    rewritten: false,
                };
                let (path, file) =
                    create(self.file_system, self.folder, &header, !self.is_unsettled)?;
                let file = SegmentFile::new(header, path, file, self.stream_key.as_ref());
                let file = Arc::new(file);
                assembly.begin(Arc::clone(&file), options.counting);
                Active {
                    file,
                    end: RECORDS_START,
                    filled: RECORDS_START + SLACK_BYTES,
                }
            }
        };
        let kept = match kept {
            Some(kept) => kept,
            None => {
                let anchor = Anchor {
                    stream,
                    origin_sequence: origin,
                    reserved_sequence: next_sequence.saturating_add(RESERVE_STEP),
                    last_number: active.file.header.number,
                    closed: None,
                };
                let mut kept = StoredAnchor {
                    anchor,
                    generation: 0,
                };
                kept.write(self.file_system, self.folder)?;
                kept
            }
        };
        let link = match options.chained {
            true => {
                let segments = assembly.index.segments.iter().rev();
                let files = segments.map(|segment| (&*segment.file, segment.index.end));
                Some(last_link(files, stream)?)
            }
            false => None,
        };
        Ok(BuiltStore {
            assembly,
            active,
            kept,
            next_sequence,
            round,
            link,
        })
    }

    /// Looks at the end of the last segment: what was torn is put aside and wiped out.
    fn recover_tail(
        &mut self,
        assembly: &mut Assembly,
        kept: Option<&StoredAnchor>,
        origin: u64,
        follows: bool,
    ) -> io::Result<TailRecovery> {
        let anchor = kept.map(|kept| kept.anchor);
        let reserved = anchor.map_or(0, |anchor| anchor.reserved_sequence);
        let closed = anchor.and_then(|anchor| anchor.closed);
        let next_sequence = assembly.index.last_sequence + 1;
        let Some(segment) = assembly.index.segments.last() else {
            // All segments are gone, or there never was one with a message.
            let any = anchor.is_some_and(|anchor| anchor.last_number.max(self.aside_number) > 0);
            let next_sequence = if any { reserved } else { origin };
            if any {
                self.findings.push(Finding::SegmentMissing {
                    first: origin,
                    last: closed.map_or(reserved, |closed| closed.last_sequence + 1) - 1,
                });
            }
            return Ok(TailRecovery {
                next_sequence,
                writable: None,
            });
        };
        let file = Arc::clone(&segment.file);
        let last_in_segment = segment.index.last_sequence;
        let number = file.header.number;
        if anchor.is_some_and(|anchor| anchor.last_number.max(self.aside_number) > number) {
            let last = closed.map_or(reserved - 1, |closed| closed.last_sequence);
            self.findings.push(Finding::SegmentMissing {
                first: next_sequence,
                last,
            });
            let next_sequence = next_sequence.max(last + 1);
            self.end_segment(assembly, next_sequence)?;
            return Ok(TailRecovery {
                next_sequence,
                writable: None,
            });
        }
        let Some(tail) = assembly.tail.take() else {
            // Sealed: the next one was never begun.
            return Ok(TailRecovery {
                next_sequence,
                writable: None,
            });
        };
        let dirty_end = tail.dirty_end.max(tail.end);
        let cut_off = tail.beyond || tail.file_bytes < dirty_end + SLACK_BYTES_MIN;
        let short = closed.filter(|closed| {
            closed.number == number
                && (closed.last_sequence >= next_sequence || closed.end > tail.end)
        });
        let torn = tail.kind == Tail::Torn;
        if !cut_off && !torn && short.is_none() {
            if last_in_segment + 1 < next_sequence || file.is_shared() {
                // A message after skipped sequences begins a segment, and nothing is written into a shared file.
                self.end_segment(assembly, next_sequence)?;
                return Ok(TailRecovery {
                    next_sequence,
                    writable: None,
                });
            }
            if closed.is_none() {
                // The process may have ended before it synced what is read here, and readers are not shown what could still be lost.
                file.file.sync()?;
            }
            return Ok(TailRecovery {
                next_sequence,
                writable: Some((tail.end, tail.file_bytes)),
            });
        }
        let torn_bytes = tail.dirty_end.saturating_sub(tail.end);
        let next_sequence = match closed.filter(|closed| closed.number == number) {
            _ if follows => next_sequence,
            Some(closed) => closed.last_sequence + 1,
            None if cut_off => reserved,
            None => next_sequence.saturating_add(torn_bytes / HEAD_BYTES as u64 + 1),
        }
        .max(next_sequence);
        self.put_tail_aside(&file, tail.end, tail.dirty_end)?;
        self.findings.push(Finding::TailCut {
            path: file.path.clone(),
            position: tail.end,
            bytes: torn_bytes,
            next_sequence,
        });
        self.findings.extend(tail.group_cut(&file.path));
        self.end_segment(assembly, next_sequence)?;
        Ok(TailRecovery {
            next_sequence,
            writable: None,
        })
    }

    /// Keeps torn bytes for a later inspection.
    fn put_tail_aside(
        &self,
        segment: &segment_file::SegmentFile,
        from: u64,
        to: u64,
    ) -> io::Result<()> {
        let count = to.saturating_sub(from).min(ASIDE_BYTES_MAX);
        if count == 0 {
            return Ok(());
        }
        let mut bytes = vec![0; count as usize];
        segment.file.read_exact_at(&mut bytes, from)?;
        let name = format!("{:010}.tail-{from}.aside", segment.header.number);
        let path = self.folder.join(name);
        match self.file_system.open(&path, OpenMode::Create) {
            Ok(file) => {
                file.write_all_at(&bytes, 0)?;
                file.sync()
            }
            // A crash came between putting aside and wiping out.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Nothing more goes into the last segment: it is sealed, and answers for everything below `next_sequence`.
    fn end_segment(&self, assembly: &mut Assembly, next_sequence: u64) -> io::Result<()> {
        let Some(segment) = assembly.index.segments.last_mut() else {
            return Ok(());
        };
        let index = Arc::get_mut(&mut segment.index).expect("nobody else has it yet");
        index.last_sequence = next_sequence - 1;
        segment.closed = true;
        let last = assembly.index.segments.len() - 1;
        self.seal(assembly, last)
    }

    /// Writes the footer of a segment, in place of whatever follows its records.
    fn seal(&self, assembly: &mut Assembly, at: usize) -> io::Result<()> {
        let names = assembly.names(at);
        let segment = &mut assembly.index.segments[at];
        own_file(segment, self.file_system, self.stream_key.as_ref())?;
        let contents = Contents {
            index: &segment.index,
            dead: &segment.dead,
            names: &names,
        };
        let footer = sealing::footer(&contents, segment.file.header.extra_bytes());
        let file = &segment.file.file;
        let end = footer.index.end;
        if file.len()? > end {
            write_zeros(&**file, end, file.len()?)?;
            // Half wiped out and half overwritten it could no longer be recognised.
            file.sync()?;
        }
        sealing::seal(&segment.file, &footer)?;
        segment.sealed = true;
        Ok(())
    }
}
