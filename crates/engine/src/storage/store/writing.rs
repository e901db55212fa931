//! Making a batch durable: one write per segment, one sync, and only then its effect.
//!
//! The end of a segment is always followed by zeros that are part of the file (`SLACK_BYTES`), so that a file which was cut off is recognised, and
//! so that a removal finds room on a full disk. Invariant: bytes after `Active::end` are zeros; a failed batch is wiped
//! out before another is written in its place, because records of it that are whole would be taken for messages later.
//! Wiping it out may fail as well, on a disk that is full: then it is tried again before anything else is written.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::folder::StoreFolder;
use super::options::StoreOptions;
use super::settling::Settling;
use super::spare::{create, Spare};
use super::staging::{SegmentPart, StagedBatch};
use crate::storage::disk::file_system::{File, FileSystem};
use crate::storage::disk::twin_file;
use crate::storage::format::anchor;
use crate::storage::format::anchor::{Anchor, Closed, StoredAnchor, RESERVE_STEP};
use crate::storage::format::chain::ChainLink;
use crate::storage::format::encryption;
use crate::storage::format::segment_header::{SegmentHeader, RECORDS_START};
use crate::storage::message::Committed;
use crate::storage::segment::segment_file;
use crate::storage::segment::segment_file::SegmentFile;

/// Zeros that follow the last record. Removals may use them when the disk is full.
pub const SLACK_BYTES: u64 = 16 * 1024;

/// Fewer zeros than this after the last record: the file was cut off.
pub const SLACK_BYTES_MIN: u64 = 64;

/// Files grow in such steps.
pub const BLOCK_BYTES: u64 = 4096;

/// How far ahead zeros are written where batches are small; a quarter of what is there, within these bounds.
const FILL_BYTES_MIN: u64 = 64 * 1024;
const FILL_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Batches from this size on are written once, not twice: growing costs them less than filling.
const FILL_BATCH_BYTES_MAX: usize = 64 * 1024;

/// The next segment is prepared from this part of the current one on …
const SPARE_FROM_PART: f64 = 0.125;

/// … if that one is full within this time.
const FAST_SEGMENT_SECONDS: f64 = 60.0;

static ZEROS: [u8; 256 * 1024] = [0; 256 * 1024];

/// The segment that is written to.
#[derive(Clone)]
pub struct Active {
    pub file: Arc<SegmentFile>,
    /// After the last record.
    pub end: u64,
    /// The length of the file: zeros up to here.
    pub filled: u64,
}

pub struct Writer {
    active: Active,
    committed: Committed,
    /// Segments that the batch being written has begun.
    opened: Vec<Arc<SegmentFile>>,
    anchor: StoredAnchor,
    /// Written to, but not synced.
    unsynced: Vec<Arc<SegmentFile>>,
    /// The link of the last message, if the stream is chained.
    link: Option<ChainLink>,
    /// When the active segment was begun.
    begun: Instant,
    /// A file of zeros that becomes the next segment.
    spare: Option<Spare>,
    /// What a failed batch may have left behind, if that is not wiped out yet.
    undo: Option<Undo>,
}

/// Where the last commit ended.
pub struct CommittedEnd {
    pub header: SegmentHeader,
    pub position: u64,
    pub next_sequence: u64,
    pub link: Option<ChainLink>,
}

/// What to do before anything is written after `Active::end`: to write zeros there, and to remove these segments.
struct Undo {
    begun: Vec<PathBuf>,
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

    pub fn committed(&self) -> Committed {
        self.committed
    }

    /// The segment that is written to, so that a batch that fails can be undone.
    pub fn active(&self) -> Active {
        self.active.clone()
    }

    /// Where what is staged next belongs, if nothing is staged.
    pub fn committed_end(&self) -> CommittedEnd {
        CommittedEnd {
            header: self.active.file.header,
            position: self.active.end,
            next_sequence: self.committed.last_sequence + 1,
            link: self.link,
        }
    }

    /// Leaves nothing to be done before a batch is written: what a failed one has left is wiped out, and what the store began with is durable.
    pub fn prepare(&mut self, folder: &StoreFolder, settling: &Settling) -> io::Result<()> {
        self.finish_undoing(folder)?;
        self.write_beginning(folder, settling)
    }

    /// Writes a batch and makes it durable. Returns how long that took the disk, if commits wait for it.
    pub fn write(
        &mut self,
        folder: &StoreFolder,
        batch: &StagedBatch,
    ) -> io::Result<Option<Duration>> {
        debug_assert!(self.undo.is_none() && self.opened.is_empty());
        self.reserve(folder, batch.last_sequence)?;
        for part in &batch.parts {
            if part.opens {
                // A segment that exists answers for all sequences from its base on, so those before it must be safe.
                self.sync()?;
                self.open(folder, &part.header)?;
            }
            self.write_part(folder, part)?;
            self.unsynced.push(Arc::clone(&self.active.file));
        }
        if folder.options.sync_commits {
            let begun = Instant::now();
            self.sync()?;
            return Ok(Some(begun.elapsed()));
        }
        self.unsynced.dedup_by(|one, other| Arc::ptr_eq(one, other));
        Ok(None)
    }

    /// A batch was written: it counts as committed.
    pub fn note_committed(&mut self, batch: &StagedBatch) {
        debug_assert!(self.committed.last_sequence <= batch.last_sequence);
        debug_assert!(self.committed.ticket <= batch.last_ticket);
        self.committed = Committed {
            ticket: batch.last_ticket,
            last_sequence: batch.last_sequence,
        };
        self.link = batch.last_link;
    }

    /// The segments that the last batch has begun.
    pub fn take_opened(&mut self) -> impl Iterator<Item = Arc<SegmentFile>> + '_ {
        self.opened.drain(..)
    }

    /// Whether the current segment fills up so fast that it pays to fill the next one with zeros ahead.
    pub fn wants_spare(&self, options: &StoreOptions) -> bool {
        let full = self.active.end as f64 / options.segment_bytes as f64;
        let is_fast = self.begun.elapsed().as_secs_f64() < full * FAST_SEGMENT_SECONDS;
        options.fill_ahead && self.spare.is_none() && full >= SPARE_FROM_PART && is_fast
    }

    pub fn put_spare(&mut self, spare: Spare) {
        self.spare = Some(spare);
    }

    pub fn sync(&mut self) -> io::Result<()> {
        for segment in &self.unsynced {
            segment.file.sync()?;
        }
        self.unsynced.clear();
        Ok(())
    }

    /// Makes durable what the store began with, if that was left for later, and says so to its owner.
    pub fn write_beginning(&mut self, folder: &StoreFolder, settling: &Settling) -> io::Result<()> {
        if !settling.is_unsettled() {
            return Ok(());
        }
        let file_system = &*folder.file_system;
        if folder.stream_key.is_some() {
            twin_file::sync(file_system, &folder.path, encryption::NAME)?;
        }
        twin_file::sync(file_system, &folder.path, anchor::NAME)?;
        self.active.file.file.sync()?;
        file_system.sync_folder(&folder.path)?;
        settling.mark_settled()
    }

    /// Ensures that the sequences of a batch can never be given out again, and that the store counts as in use.
    fn reserve(&mut self, folder: &StoreFolder, last_sequence: u64) -> io::Result<()> {
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
        self.replace_anchor(folder, anchor)
    }

    fn replace_anchor(&mut self, folder: &StoreFolder, anchor: Anchor) -> io::Result<()> {
        let mut kept = StoredAnchor {
            anchor,
            ..self.anchor
        };
        kept.write(&*folder.file_system, &folder.path)?;
        self.anchor = kept;
        Ok(())
    }

    /// Notes the number of the segment written to, once a batch has gone into it.
    pub fn note_number(&mut self, folder: &StoreFolder) -> io::Result<()> {
        let number = self.active.file.header.number;
        if number <= self.anchor.anchor.last_number {
            return Ok(());
        }
        let anchor = Anchor {
            last_number: number,
            ..self.anchor.anchor
        };
        self.replace_anchor(folder, anchor)
    }

    fn open(&mut self, folder: &StoreFolder, header: &SegmentHeader) -> io::Result<()> {
        let file_system = &*folder.file_system;
        let mut filled = RECORDS_START + SLACK_BYTES;
        let (path, file) = match self.spare.take() {
            Some(spare) => {
                filled = spare.filled();
                spare.become_segment(file_system, &folder.path, header, true)?
            }
            None => create(file_system, &folder.path, header, true)?,
        };
        let file = SegmentFile::new(*header, path, file, folder.stream_key.as_ref());
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

    fn write_part(&mut self, folder: &StoreFolder, part: &SegmentPart) -> io::Result<()> {
        let active = &mut self.active;
        debug_assert_eq!(part.start, active.end, "a part goes behind the last record");
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
            if folder.options.fill_ahead && part.bytes.len() < FILL_BATCH_BYTES_MAX {
                filled += (end / 4).clamp(FILL_BYTES_MIN, FILL_BYTES_MAX);
            }
            let filled = filled.next_multiple_of(BLOCK_BYTES);
            write_zeros(&**file, end.max(active.filled), filled)?;
            active.filled = filled;
        }
        active.end = end;
        debug_assert!(active.end + SLACK_BYTES_MIN <= active.filled);
        Ok(())
    }

    /// A batch could not be written: what it may have left behind must be wiped out.
    pub fn begin_undoing(&mut self, folder: &StoreFolder, batch: &StagedBatch, before: Active) {
        self.unsynced.clear();
        self.opened.clear();
        self.active = before;
        let begun = batch.parts.iter().filter(|part| part.opens);
        let begun = begun.map(|part| segment_file::path(&folder.path, part.header.number));
        let begun: Vec<PathBuf> = begun.collect();
        // One that is still to be undone has left more: this one has written nothing.
        self.undo.get_or_insert(Undo { begun });
    }

    /// Wipes out what a failed batch may have left behind, if there is something.
    pub fn finish_undoing(&mut self, folder: &StoreFolder) -> io::Result<()> {
        let Some(undo) = &self.undo else {
            return Ok(());
        };
        // The last part of the batch first: what is left of it after a crash must not look as if something were missing before it.
        for path in undo.begun.iter().rev() {
            remove_if_there(&*folder.file_system, path)?;
        }
        if !undo.begun.is_empty() {
            folder.file_system.sync_folder(&folder.path)?;
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

    /// Frees what was prepared for messages to come; what is left is enough for removals.
    pub fn give_back_space(&mut self, folder: &StoreFolder) -> io::Result<()> {
        self.give_back_spare(folder)?;
        self.give_back_zeros(BLOCK_BYTES)
    }

    fn give_back_spare(&mut self, folder: &StoreFolder) -> io::Result<()> {
        match self.spare.take() {
            Some(spare) => spare.remove(&*folder.file_system),
            None => Ok(()),
        }
    }

    /// Cuts off zeros that were written ahead, but for this many bytes.
    fn give_back_zeros(&mut self, slack: u64) -> io::Result<()> {
        let needed = (self.active.end + slack).next_multiple_of(BLOCK_BYTES);
        if needed < self.active.filled {
            self.active.file.file.set_len(needed)?;
            self.active.file.file.sync()?;
            self.active.filled = needed;
        }
        Ok(())
    }

    /// Writes down that the store ends here, in good order.
    pub fn close(&mut self, folder: &StoreFolder, settling: &Settling) -> io::Result<()> {
        self.prepare(folder, settling)?;
        self.sync()?;
        self.give_back_spare(folder)?;
        self.give_back_zeros(SLACK_BYTES)?;
        let anchor = Anchor {
            last_number: self.active.file.header.number,
            closed: Some(Closed {
                last_sequence: self.committed.last_sequence,
                number: self.active.file.header.number,
                end: self.active.end,
            }),
            ..self.anchor.anchor
        };
        self.replace_anchor(folder, anchor)
    }
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
