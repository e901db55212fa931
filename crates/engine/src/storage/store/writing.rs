//! Making a batch durable: one write per segment, one sync, and only then its effect.
//!
//! The end of a segment is always followed by zeros that are part of the file (`SLACK_BYTES`), so that a file which was cut off is recognised, and
//! so that a removal finds room on a full disk. Invariant: bytes behind `Active::end` are zeros; a failed batch is wiped out before another
//! is written in its place, because records of it that are whole would be taken for messages later. Wiping it out may fail as well, on a disk that is full: then it is
//! tried again before anything else is written.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Instant;

use super::slices;
use super::slices::Pace;
use super::staging::{SegmentPart, StagedBatch};
use super::Store;
use crate::storage::disk::failure;
use crate::storage::disk::file_system::{File, FileSystem, OpenMode};
use crate::storage::disk::twin_file;
use crate::storage::format::anchor;
use crate::storage::format::anchor::{Anchor, Closed, StoredAnchor, RESERVE_STEP};
use crate::storage::format::chain::ChainLink;
use crate::storage::format::encryption;
use crate::storage::format::removal::Removal;
use crate::storage::format::segment_header::{SegmentHeader, RECORDS_START};
use crate::storage::index::messages::{MessageIndex, Segment};
use crate::storage::index::segments::SegmentIndex;
use crate::storage::message::{Committed, Counting, Refused, StoreError, Ticket};
use crate::storage::segment::segment_file;
use crate::storage::segment::segment_file::SegmentFile;

/// Zeros that follow the last record. Removals may use them when the disk is full.
pub const SLACK_BYTES: u64 = 16 * 1024;

/// Fewer zeros than this behind the last record: the file was cut off.
pub const SLACK_BYTES_MIN: u64 = 64;

/// Files grow in such steps.
pub const BLOCK_BYTES: u64 = 4096;

/// How far ahead zeros are written where batches are small; a quarter of what is there, within these bounds.
const FILL_BYTES_MIN: u64 = 64 * 1024;
const FILL_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Batches from this size on are written once, not twice: growing costs them less than filling.
const FILL_BATCH_BYTES_MAX: usize = 64 * 1024;

static ZEROS: [u8; 256 * 1024] = [0; 256 * 1024];

/// The segment that is written to.
#[derive(Clone)]
pub struct Active {
    pub file: Arc<SegmentFile>,
    /// Behind the last record.
    pub end: u64,
    /// The length of the file: zeros up to here.
    pub filled: u64,
}

pub struct Writer {
    pub active: Active,
    pub committed: Committed,
    /// Segments that the batch being written has begun.
    pub opened: Vec<Arc<SegmentFile>>,
    pub anchor: StoredAnchor,
    /// Written to, but not synced.
    unsynced: Vec<Arc<SegmentFile>>,
    /// The link of the last message, if the stream is chained.
    pub link: Option<ChainLink>,
    /// When the active segment was begun.
    pub begun: Instant,
    /// A file of zeros that becomes the next segment.
    pub spare: Option<Spare>,
    /// What a failed batch may have left behind, if that is not wiped out yet.
    undo: Option<Undo>,
}

/// What is to be done before anything is written behind `Active::end`: to bring zeros there, and to remove these segments.
struct Undo {
    begun: Vec<PathBuf>,
}

/// A file of zeros: writing over blocks that are there is faster than adding some.
pub struct Spare {
    pub file: Arc<dyn File>,
    pub path: PathBuf,
    pub filled: u64,
}

impl Writer {
    pub fn new(
        active: Active,
        committed: Committed,
        anchor: StoredAnchor,
        link: Option<ChainLink>,
    ) -> Self {
        Self {
            link,
            active,
            committed,
            opened: Vec::new(),
            anchor,
            unsynced: Vec::new(),
            begun: Instant::now(),
            spare: None,
            undo: None,
        }
    }

    /// Writes a batch and makes it durable.
    pub fn write(&mut self, store: &Store, batch: &StagedBatch) -> io::Result<()> {
        self.write_beginning(store)?;
        self.reserve(store, batch.last_sequence)?;
        for part in &batch.parts {
            if part.opens {
                // A segment that exists answers for all sequences from its base on, so those before it must be safe.
                self.sync()?;
                self.open(store, &part.header)?;
            }
            self.write_part(store, part)?;
            self.unsynced.push(Arc::clone(&self.active.file));
        }
        if store.options.sync_commits {
            let begun = Instant::now();
            self.sync()?;
            store.sync_times.add(begun.elapsed());
        } else {
            self.unsynced.dedup_by(|one, other| Arc::ptr_eq(one, other));
        }
        Ok(())
    }

    pub fn sync(&mut self) -> io::Result<()> {
        for segment in &self.unsynced {
            segment.file.sync()?;
        }
        self.unsynced.clear();
        Ok(())
    }

    /// Makes durable what the store began with, if that was left for later, and says so to its owner.
    pub fn write_beginning(&mut self, store: &Store) -> io::Result<()> {
        if !store.is_unsettled.load(Ordering::Acquire) {
            return Ok(());
        }
        let (file_system, folder) = (&*store.file_system, &store.folder);
        if store.stream_key.is_some() {
            twin_file::sync(file_system, folder, encryption::NAME)?;
        }
        twin_file::sync(file_system, folder, anchor::NAME)?;
        self.active.file.file.sync()?;
        file_system.sync_folder(folder)?;
        (store.on_settled.lock())()?;
        store.is_unsettled.store(false, Ordering::Release);
        Ok(())
    }

    /// Sees to it that the sequences of a batch can never be given again, and that the store counts as in use.
    fn reserve(&mut self, store: &Store, last_sequence: u64) -> io::Result<()> {
        let mut anchor = self.anchor.anchor;
        // From the second batch of a segment on its absence is a loss, and must show. Number zero: nothing was ever written.
        let begun = self.active.end > RECORDS_START || anchor.last_number == 0;
        let noted = !begun || anchor.last_number >= self.active.file.header.number;
        let in_use = anchor.closed.is_none() && noted;
        if in_use && last_sequence < anchor.reserved_sequence {
            return Ok(());
        }
        anchor.closed = None;
        if last_sequence >= anchor.reserved_sequence {
            anchor.reserved_sequence = last_sequence.saturating_add(RESERVE_STEP);
        }
        anchor.last_number = anchor.last_number.max(self.active.file.header.number);
        self.replace_anchor(store, anchor)
    }

    fn replace_anchor(&mut self, store: &Store, anchor: Anchor) -> io::Result<()> {
        let mut kept = StoredAnchor {
            anchor,
            ..self.anchor
        };
        kept.write(&*store.file_system, &store.folder)?;
        self.anchor = kept;
        Ok(())
    }

    /// Notes the number of the segment written to, once a batch has gone into it.
    pub fn note_number(&mut self, store: &Store) -> io::Result<()> {
        let number = self.active.file.header.number;
        if number <= self.anchor.anchor.last_number {
            return Ok(());
        }
        let anchor = Anchor {
            last_number: number,
            ..self.anchor.anchor
        };
        self.replace_anchor(store, anchor)
    }

    fn open(&mut self, store: &Store, header: &SegmentHeader) -> io::Result<()> {
        let filled = match &self.spare {
            Some(spare) => spare.filled,
            None => RECORDS_START + SLACK_BYTES,
        };
        let file = match self.spare.take() {
            Some(spare) => take_spare(&*store.file_system, &store.folder, header, spare, true)?,
            None => create(&*store.file_system, &store.folder, header, true)?,
        };
        let (path, file) = file;
        let file = SegmentFile::new(*header, path, file, store.stream_key.as_ref());
        let file = Arc::new(file);
        self.begun = Instant::now();
        self.active = Active {
            file,
            end: RECORDS_START,
            filled,
        };
        self.opened.push(Arc::clone(&self.active.file));
        Ok(())
    }

    fn write_part(&mut self, store: &Store, part: &SegmentPart) -> io::Result<()> {
        let active = &mut self.active;
        let file = &active.file.file;
        let end = part.end();
        let only_removals = part.messages.is_empty() && !part.opens;
        let enough = if only_removals {
            SLACK_BYTES_MIN
        } else {
            SLACK_BYTES
        };
        file.write_all_at(&part.bytes, part.start)?;
        if end + enough > active.filled {
            let mut filled = end + SLACK_BYTES;
            if store.options.fill_ahead && part.bytes.len() < FILL_BATCH_BYTES_MAX {
                filled += (end / 4).clamp(FILL_BYTES_MIN, FILL_BYTES_MAX);
            }
            let filled = filled.next_multiple_of(BLOCK_BYTES);
            write_zeros(&**file, end.max(active.filled), filled)?;
            active.filled = filled;
        }
        active.end = end;
        Ok(())
    }

    /// A batch could not be written: what it may have left behind is to be wiped out.
    fn begin_undoing(&mut self, store: &Store, batch: &StagedBatch, before: Active) {
        self.unsynced.clear();
        self.opened.clear();
        self.active = before;
        let begun = batch.parts.iter().filter(|part| part.opens);
        let begun = begun.map(|part| segment_file::path(&store.folder, part.header.number));
        let begun: Vec<PathBuf> = begun.collect();
        // One that is still to be undone has left more: this one has written nothing.
        self.undo.get_or_insert(Undo { begun });
    }

    /// Wipes out what a failed batch may have left behind, if there is something.
    pub fn finish_undoing(&mut self, store: &Store) -> io::Result<()> {
        let Some(undo) = &self.undo else {
            return Ok(());
        };
        // The last part of the batch first: what is left of it after a crash must not look as if something were missing before it.
        for path in undo.begun.iter().rev() {
            remove_if_there(&*store.file_system, path)?;
        }
        if !undo.begun.is_empty() {
            store.file_system.sync_folder(&store.folder)?;
        }
        let Active { file, end, filled } = &self.active;
        let file = &file.file;
        if file.len()? > *filled {
            file.set_len(*filled)?;
        }
        write_zeros(&**file, *end, *filled)?;
        file.sync()?;
        self.undo = None;
        Ok(())
    }

    /// Writes down that the store ends here, in good order.
    pub fn close(&mut self, store: &Store) -> io::Result<()> {
        self.finish_undoing(store)?;
        self.write_beginning(store)?;
        self.sync()?;
        if let Some(spare) = self.spare.take() {
            store.file_system.remove_file(&spare.path)?;
        }
        // Zeros that were written ahead and are not needed for now.
        let needed = (self.active.end + SLACK_BYTES).next_multiple_of(BLOCK_BYTES);
        if needed < self.active.filled {
            self.active.file.file.set_len(needed)?;
            self.active.file.file.sync()?;
            self.active.filled = needed;
        }
        let anchor = Anchor {
            last_number: self.active.file.header.number,
            closed: Some(Closed {
                last_sequence: self.committed.last_sequence,
                number: self.active.file.header.number,
                end: self.active.end,
            }),
            ..self.anchor.anchor
        };
        self.replace_anchor(store, anchor)
    }
}

/// Makes the file of a new segment.
pub fn create(
    file_system: &dyn FileSystem,
    folder: &Path,
    header: &SegmentHeader,
    is_synced: bool,
) -> io::Result<(PathBuf, Arc<dyn File>)> {
    let path = segment_file::path(folder, header.number).with_extension("segment.new");
    remove_if_there(file_system, &path)?;
    let file = file_system.open(&path, OpenMode::Create)?;
    let filled = RECORDS_START + SLACK_BYTES;
    if let Err(error) = write_zeros(&*file, RECORDS_START, filled) {
        file_system.remove_file(&path)?;
        return Err(error);
    }
    let spare = Spare { file, path, filled };
    take_spare(file_system, folder, header, spare, is_synced)
}

/// Makes a file of zeros the file of a new segment. It gets its name when its header is durable, so a segment without a header is damage.
fn take_spare(
    file_system: &dyn FileSystem,
    folder: &Path,
    header: &SegmentHeader,
    spare: Spare,
    is_synced: bool,
) -> io::Result<(PathBuf, Arc<dyn File>)> {
    let path = segment_file::path(folder, header.number);
    let sync = |sync: &dyn Fn() -> io::Result<()>| if is_synced { sync() } else { Ok(()) };
    let made = header
        .write(&*spare.file)
        .and_then(|()| sync(&|| spare.file.sync()))
        .and_then(|()| file_system.rename(&spare.path, &path))
        .and_then(|()| sync(&|| file_system.sync_folder(folder)));
    if let Err(error) = made {
        // Neither may be there when the number is used again.
        remove_if_there(file_system, &spare.path)?;
        remove_if_there(file_system, &path)?;
        return Err(error);
    }
    Ok((path, spare.file))
}

/// Removes what an interrupted attempt may have left behind.
pub fn remove_if_there(file_system: &dyn FileSystem, path: &Path) -> io::Result<()> {
    match file_system.remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

pub fn write_zeros(file: &dyn File, from: u64, to: u64) -> io::Result<()> {
    let mut at = from;
    while at < to {
        let count = (to - at).min(ZEROS.len() as u64);
        file.write_all_at(&ZEROS[..count as usize], at)?;
        at += count;
    }
    Ok(())
}

impl Store {
    /// A batch could not be written: nothing of it remains, and nothing of what was staged behind it.
    pub(super) fn refuse(
        &self,
        writer: &mut Writer,
        batch: &StagedBatch,
        before: Active,
        error: io::Error,
    ) -> StoreError {
        let error = match failure::refusal(&error) {
            Some(refusal) => {
                writer.begin_undoing(self, batch, before);
                match writer.finish_undoing(self) {
                    Ok(()) => self.health.hinder(refusal),
                    Err(error) => match failure::refusal(&error) {
                        // The next commit tries again, and writes nothing before.
                        Some(_) => self.health.hinder(refusal),
                        None => self.health.become_read_only(error),
                    },
                }
            }
            None => self.health.become_read_only(error),
        };
        let mut staging = self.staging.lock();
        self.note_refused(writer.committed.ticket, staging.last_ticket(), &error);
        staging.discard(writer.committed.ticket, &error);
        staging.remove_lazily(batch.lazy_removals.clone());
        staging.reset(
            writer.active.file.header,
            writer.active.end,
            writer.committed.last_sequence + 1,
            writer.link,
        );
        error
    }

    /// Notes that nothing staged behind `after` will be stored, so that whoever asks for progress next hears of it.
    pub(super) fn note_refused(&self, after: Ticket, through: Ticket, error: &StoreError) {
        let mut progress = self.progress.lock();
        // What was refused before is not refused again.
        let after = after.max(progress.told_through);
        progress.told_through = through;
        match progress.refused.last_mut() {
            Some(last) if last.through == after => last.through = through,
            _ => progress.refused.push(Refused {
                after,
                through,
                error: error.clone(),
            }),
        }
    }

    /// Lets a durable batch take effect. Returns what the limits of the stream removed in return.
    pub(super) fn apply(
        &self,
        batch: &StagedBatch,
        opened: impl Iterator<Item = Arc<SegmentFile>>,
    ) -> Vec<Removal> {
        let limits = *self.limits.lock();
        let mut lazy = Vec::new();
        let mut index = self.index.write();
        let mut pace = Pace::default();
        let mut opened = opened;
        let mut removals = batch.removals.iter().peekable();
        let mut applied = 0;
        for part in &batch.parts {
            if part.opens {
                let file = opened.next().expect("every segment begun has its file");
                begin_segment(&mut index, file, self.options.counting);
            }
            let mut name_start = 0;
            let mut others = part.others.iter().peekable();
            for message in &part.messages {
                let position = message.placed.position;
                // A message ends where the next thing begins, so that must be known before anything is removed.
                while let Some(other) = others.next_if(|other| other.0 < position) {
                    open_index(&mut index).add_other(other.0, other.1);
                }
                while let Some((_, removal)) = removals.next_if(|(before, _)| *before <= applied) {
                    slices::remove_range(&mut index, *removal, &mut pace);
                }
                applied += 1;
                let name = &part.names[name_start..message.name_end];
                name_start = message.name_end;
                let id = index.add(&message.placed, name);
                if let Some(most) = limits.per_subject_max {
                    index.trim_subject(id, most, &mut lazy);
                }
            }
            let open = open_index(&mut index);
            for (position, end) in others {
                open.add_other(*position, *end);
            }
            open.removals.extend_from_slice(&part.removals);
        }
        for (_, removal) in removals {
            slices::remove_range(&mut index, *removal, &mut pace);
        }
        if batch.last_sequence > index.last_sequence {
            // Sequences were passed over.
            index.last_sequence = batch.last_sequence;
            if index.messages == 0 {
                index.first_sequence = batch.last_sequence + 1;
            }
        }
        index.trim(&limits, &mut lazy);
        lazy
    }
}

/// The index of the segment that is written to.
fn open_index(index: &mut MessageIndex) -> &mut SegmentIndex {
    let segment = index.segments.last_mut().expect("there is always one");
    Arc::get_mut(&mut segment.index).expect("nobody shares an open segment")
}

fn begin_segment(index: &mut MessageIndex, file: Arc<SegmentFile>, counting: Counting) {
    let base_sequence = file.header.base_sequence;
    if let Some(previous) = index.segments.last_mut() {
        previous.closed = true;
        let closed = Arc::get_mut(&mut previous.index).expect("nobody shares an open segment");
        closed.last_sequence = base_sequence - 1;
    }
    let mut open = SegmentIndex::new(base_sequence, RECORDS_START, index.last_time_ns);
    open.count_by(counting);
    index.segments.push(Segment::new(file, open, false));
}
