//! What is done in the background: sealing, giving space back, and joining what has become small.
//!
//! Nothing here changes what a reader sees. A rewritten segment gets its name only when it is durable as a whole; until then the old one
//! counts, and afterwards a leftover of it is recognised by its sequences, which the new one answers for.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::copying::{common, CopySource, SegmentCopy};
use super::opening::random_identity;
use super::staging::SEQUENCE_SPAN_MAX;
use super::writing::{remove_if_there, write_zeros, Spare, BLOCK_BYTES, SLACK_BYTES};
use super::Store;
use crate::storage::disk::failure;
use crate::storage::disk::file_system::OpenMode;
use crate::storage::format::compression;
use crate::storage::format::compression::Unpacker;
use crate::storage::format::footer::Footer;
use crate::storage::format::removal;
use crate::storage::format::removal::Removal;
use crate::storage::format::segment_header::{SegmentHeader, FORMAT_VERSION, RECORDS_START};
use crate::storage::index::bits::Bits;
use crate::storage::index::messages::Segment;
use crate::storage::index::segments::SegmentIndex;
use crate::storage::index::subjects::SubjectId;
use crate::storage::message::{StoreError, StoreResult};
use crate::storage::segment::sealing;
use crate::storage::segment::sealing::Contents;
use crate::storage::segment::segment_file;
use crate::storage::segment::segment_file::SegmentFile;

/// A segment is rewritten when this part of it is of no use.
const DEAD_PART_MAX: f64 = 0.5;

/// A segment with less than this part of what it may hold is joined to its neighbours.
const SMALL_PART: u64 = 8;

/// Most segments that become one at a time.
const JOINED_MAX: usize = 64;

/// The next segment is prepared from this part of the current one on …
const SPARE_FROM_PART: f64 = 0.125;

/// … if that one is full within this time.
const FAST_SEGMENT_SECONDS: f64 = 60.0;

/// Zeros written between two syncs.
const SPARE_PIECE_BYTES: u64 = 8 * 1024 * 1024;

/// Removed on opening, like everything that is not finished.
const SPARE_NAME: &str = "spare.new";

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
    /// Nothing behind it is copied.
    pub last_sequence: u64,
}

/// A rewritten segment.
pub struct Rewritten {
    pub file: SegmentFile,
    footer: Footer,
    ids: Vec<SubjectId>,
    lost: Vec<u64>,
}

impl Store {
    /// Does what has become necessary; true if something was.
    pub fn maintain(&self) -> StoreResult<bool> {
        let freed = self.free_front()?;
        let maintenance = self.maintenance.lock();
        self.health.check_removable()?;
        {
            let mut writer = self.writer.lock();
            writer
                .finish_undoing(self)
                .and_then(|()| writer.write_beginning(self))
                .and_then(|()| writer.note_number(self))
                .map_err(|error| self.postpone(error))?;
        }
        self.remove_leftovers()
            .map_err(|error| self.postpone(error))?;
        let prepared = self.prepare_spare().map_err(|error| self.postpone(error))?;
        let done = self
            .seal_closed()
            .and_then(|sealed| Ok(sealed | self.compact()?));
        // Overwriting needs the lock that is held here.
        drop(maintenance);
        if !self.erasures.lock().is_empty() {
            self.carry_out_erasures()?;
        }
        Ok(freed || prepared || done?)
    }

    /// What says nothing about the disk only postpones maintenance; anything else is serious.
    pub(super) fn postpone(&self, error: io::Error) -> StoreError {
        failure::refusal(&error).unwrap_or_else(|| self.health.become_read_only(error))
    }

    /// Gives back segments at the front that have no message any more.
    fn free_front(&self) -> StoreResult<bool> {
        let emptied = {
            let index = self.index.read();
            let emptied = |segment: &&Segment| segment.closed && segment.live_count == 0;
            let front = index.segments.iter().take_while(emptied);
            // From the first sequence on: whichever of the files a crash brings back, this says why nothing comes before it.
            front.last().map(|segment| Removal {
                first: 1,
                last: segment.index.last_sequence,
                erase: false,
            })
        };
        let Some(emptied) = emptied else {
            return Ok(false);
        };
        // It must be known that they were removed before they are: a missing file would be taken for a loss.
        self.health.check_removable()?;
        let emptying = self.stage_range(emptied);
        self.commit_through(&emptying)?;
        let _maintaining = self.maintenance.lock();
        let files: Vec<PathBuf> = {
            let mut index = self.index.write();
            // The one that is written to stays, even if no sequence has come into it yet.
            let gone = index.segments.partition_point(|segment| {
                segment.closed && segment.index.last_sequence <= emptied.last
            });
            let gone = index.segments.drain(..gone);
            gone.map(|segment| segment.file.path.clone()).collect()
        };
        self.remove_files(files)
            .map_err(|error| self.postpone(error))?;
        self.health.recover();
        Ok(true)
    }

    /// Some segments as they are at one moment.
    fn sources(&self, run: Range<usize>) -> Vec<CopySource> {
        let index = self.index.read();
        let name = |id: usize| {
            let id = id as SubjectId;
            (id, index.subjects.name(id).into())
        };
        index.segments[run]
            .iter()
            .map(|segment| CopySource {
                file: Arc::clone(&segment.file),
                index: Arc::clone(&segment.index),
                dead: segment.dead.clone(),
                names: segment.subjects.ones().map(name).collect(),
            })
            .collect()
    }

    /// Fills the next segment with zeros, if the current one fills up fast enough for that to pay.
    fn prepare_spare(&self) -> io::Result<bool> {
        if !self.options.fill_ahead {
            return Ok(false);
        }
        {
            let writer = self.writer.lock();
            let full = writer.active.end as f64 / self.options.segment_bytes as f64;
            let fast = writer.begun.elapsed().as_secs_f64() < full * FAST_SEGMENT_SECONDS;
            if writer.spare.is_some() || full < SPARE_FROM_PART || !fast {
                return Ok(false);
            }
        }
        let path = self.folder.join(SPARE_NAME);
        remove_if_there(&*self.file_system, &path)?;
        let file = self.file_system.open(&path, OpenMode::Create)?;
        let filled = (self.options.segment_bytes + SLACK_BYTES).next_multiple_of(BLOCK_BYTES);
        let mut from = 0;
        while from < filled {
            // In pieces, so that commits of others do not wait long behind it.
            let to = (from + SPARE_PIECE_BYTES).min(filled);
            if let Err(error) = write_zeros(&*file, from, to).and_then(|()| file.sync()) {
                // It only helps; where there is no room for it, messages need what it has taken.
                remove_if_there(&*self.file_system, &path)?;
                return Err(error);
            }
            from = to;
        }
        self.writer.lock().spare = Some(Spare { file, path, filled });
        Ok(true)
    }

    /// Sees to it that every removal which shows in some segments is durable by itself. Otherwise some would become so with the segments and others, for
    /// which those made room, would not: and the limits would not ask for them again.
    fn settle_removals(&self) -> StoreResult<()> {
        self.commit_batch(self.writer.lock(), true).map(drop)
    }

    fn seal_closed(&self) -> StoreResult<bool> {
        let mut any = false;
        loop {
            // A removal that is still to be carried out must be found again after a crash, and that is looked for in open segments.
            if !self.erasures.lock().is_empty() {
                return Ok(any);
            }
            let open = |segment: &Segment| segment.closed && !segment.sealed;
            let at = self.index.read().segments.iter().position(open);
            let Some(at) = at else {
                return Ok(any);
            };
            let source = &self.sources(at..at + 1)[0];
            self.settle_removals()?;
            let contents = Contents {
                index: &source.index,
                dead: &source.dead,
                names: &source.names,
            };
            let footer = sealing::footer(&contents, source.file.header.extra_bytes());
            sealing::seal(&source.file, &footer).map_err(|error| self.postpone(error))?;
            self.index.write().segments[at].sealed = true;
            any = true;
        }
    }

    /// Rewrites one run of neighbours that are mostly of no use.
    fn compact(&self) -> StoreResult<bool> {
        let Some(run) = self.run_to_rewrite() else {
            return Ok(false);
        };
        let front = {
            let index = self.index.read();
            Front {
                base: index.segments[0].index.base_sequence,
                sequence: index.first_sequence,
            }
        };
        let sources = self.sources(run.clone());
        self.settle_removals()?;
        self.replace(run, &sources, front)
            .map_err(|error| self.postpone(error))?;
        Ok(true)
    }

    /// Puts a rewritten segment in the place of others.
    fn replace(&self, run: Range<usize>, sources: &[CopySource], front: Front) -> io::Result<()> {
        let target = RewriteTarget {
            folder: &self.folder,
            compressed: self.options.compressed,
            last_sequence: u64::MAX,
        };
        let rewritten = self.rewrite(sources, front, &target).or_else(|error| {
            // Half of it helps nobody, and takes room on a disk that may be full.
            let number = sources[0].file.header.number;
            let unfinished = unfinished_path(&self.folder, number);
            remove_if_there(&*self.file_system, &unfinished)?;
            Err(error)
        })?;
        let target = segment_file::path(&self.folder, rewritten.file.header.number);
        self.file_system.rename(&rewritten.file.path, &target)?;
        self.file_system.sync_folder(&self.folder)?;
        self.exchange(run, rewritten, target);
        let paths = sources[1..].iter().map(|source| source.file.path.clone());
        self.remove_files(paths.collect())
    }

    /// Neighbours that are worth rewriting: mostly of no use, or small, or not compressed although they should be.
    fn run_to_rewrite(&self) -> Option<Range<usize>> {
        let index = self.index.read();
        let bytes_max = self.options.segment_bytes;
        let is_small = |segment: &Segment| segment.live_bytes < bytes_max / SMALL_PART;
        let is_wasteful = |segment: &Segment| {
            let gained = segment.file.header.rewritten
                || segment.live_bytes + RECORDS_START * 2 < segment.index.end;
            segment.dead_part() > DEAD_PART_MAX && gained
        };
        let is_plain = |segment: &Segment| {
            self.options.compressed
                && !segment.file.header.compressed
                && segment.live_bytes >= compression::SEGMENT_BYTES_MIN
        };
        for (start, first) in index.segments.iter().enumerate() {
            if !first.sealed {
                continue;
            }
            let mut bytes = 0;
            let joined = index.segments[start..]
                .iter()
                .take(JOINED_MAX)
                .take_while(|segment| {
                    bytes += segment.live_bytes;
                    let alike = segment.file.header.chained == first.file.header.chained;
                    let worth = is_small(segment) || is_wasteful(segment);
                    let span = segment.index.last_sequence - first.index.base_sequence;
                    let near = span < SEQUENCE_SPAN_MAX;
                    segment.sealed && alike && worth && near && bytes <= bytes_max
                });
            let count = joined.count();
            if count > 1 {
                return Some(start..start + count);
            }
            if is_wasteful(first) || is_plain(first) {
                return Some(start..start + 1);
            }
        }
        None
    }

    /// Removes files for good: one that came back later would not be recognised, because its removal may be forgotten by then.
    fn remove_files(&self, paths: Vec<PathBuf>) -> io::Result<()> {
        self.leftovers.lock().extend(paths);
        self.remove_leftovers()
    }

    /// The same for those that could not be removed before. They stay noted until their folder says durably that they are gone.
    fn remove_leftovers(&self) -> io::Result<()> {
        let mut leftovers = self.leftovers.lock();
        if leftovers.is_empty() {
            return Ok(());
        }
        for path in &*leftovers {
            remove_if_there(&*self.file_system, path)?;
        }
        self.file_system.sync_folder(&self.folder)?;
        leftovers.clear();
        Ok(())
    }

    /// Writes the live messages of some segments into one new file, which has no name yet.
    pub(super) fn rewrite(
        &self,
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
            encrypted: self.stream_key.is_some(),
            compressed,
            rewritten: true,
            ..first.file.header
        };
        let path = unfinished_path(target.folder, header.number);
        remove_if_there(&*self.file_system, &path)?;
        let file = self.file_system.open(&path, OpenMode::Create)?;
        header.write(&*file)?;
        let file = SegmentFile::new(header, path, file, self.stream_key.as_ref());
        let mut copy = SegmentCopy::new(&file, self.options.counting, target.last_sequence);
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
            lost,
            last_time_ns,
            ..
        } = copy;
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
        Ok(Rewritten {
            file,
            footer,
            ids,
            lost,
        })
    }

    /// Puts the rewritten segment in the place of those it was made of.
    fn exchange(&self, run: Range<usize>, rewritten: Rewritten, path: PathBuf) {
        let mut file = rewritten.file;
        file.path = path;
        let file = Arc::new(file);
        let contents = SegmentIndex {
            // Those in a footer are numbers of its own.
            subject_ids: rewritten.ids,
            ..rewritten.footer.index
        };
        let mut segment = Segment::new(file, contents, true);
        let mut index = self.index.write();
        for sequence in &rewritten.lost {
            index.lose(*sequence);
        }
        for rank in 0..segment.index.rank_count() {
            if index.locate(segment.index.sequence(rank)).is_none() {
                segment.dead.set(rank);
                continue;
            }
            segment.live_count += 1;
            segment.live_bytes += segment.counted_bytes(rank);
            let id = segment.index.subject_ids[rank];
            segment.subjects.set(id as usize);
        }
        index.segments.splice(run, [segment]);
    }
}

/// Where a segment is rewritten, until it is finished.
fn unfinished_path(folder: &Path, number: u64) -> PathBuf {
    segment_file::path(folder, number).with_extension("segment.new")
}
