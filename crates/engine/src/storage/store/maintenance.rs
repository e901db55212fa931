//! What is done in the background to segments that no commit writes to: sealing, giving space back, joining what has become small, and overwriting what is to be erased.
//!
//! Nothing here changes what a reader sees. A rewritten segment gets its name only when it is durable as a whole; until then the old one
//! counts, and afterwards a leftover of it is recognised by its sequences, which the new one answers for. Invariants: segments change only while they are held
//! (`hold_segments`); a file stays among the leftovers until its folder says durably that it is gone, and a removal among the erasures until its bytes are overwritten.

use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use super::committed::CommittedMessages;
use super::copying;
use super::copying::CopySource;
use super::folder::StoreFolder;
use super::health::Health;
use super::options::StoreOptions;
use super::rewriting::{rewrite, unfinished_path, Front, RewriteTarget};
use super::staging::SEQUENCE_SPAN_MAX;
use super::writing::remove_if_there;
use crate::storage::format::compression;
use crate::storage::format::removal::Removal;
use crate::storage::format::segment_header::RECORDS_START;
use crate::storage::index::messages::{MessageIndex, Segment};
use crate::storage::message::StoreResult;
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

#[derive(Default)]
pub struct Maintenance {
    /// Taken by whatever changes segments that no commit writes to.
    segments: Mutex<()>,
    /// Files whose messages are elsewhere or removed, and that could not be removed yet.
    leftovers: Mutex<Vec<PathBuf>>,
    /// What is durably removed and must still be overwritten. A thread that takes it holds the segments until it is done.
    erasures: Mutex<Vec<Removal>>,
}

/// Segments stay as they are as long as this is held, but for what its holder does; messages may be added meanwhile.
pub struct HeldSegments<'a> {
    _segments: MutexGuard<'a, ()>,
}

/// What maintenance works on.
#[derive(Clone, Copy)]
pub struct MaintainedStore<'a> {
    pub folder: &'a StoreFolder,
    pub messages: &'a CommittedMessages,
    pub health: &'a Health,
}

impl Maintenance {
    pub fn hold_segments(&self) -> HeldSegments<'_> {
        HeldSegments {
            _segments: self.segments.lock(),
        }
    }

    /// Of removals that are durable now, those whose bytes must be overwritten.
    pub fn add_erasures(&self, removals: impl Iterator<Item = Removal>) {
        let erased = removals.filter(|removal| removal.erase);
        self.erasures.lock().extend(erased);
    }

    pub fn has_erasures(&self) -> bool {
        !self.erasures.lock().is_empty()
    }

    /// Overwrites the bytes of messages whose removal is committed; when this returns, no other thread is still doing so. `settle` makes the removals
    /// durable, where commits do not.
    pub fn carry_out_erasures(
        &self,
        store: MaintainedStore<'_>,
        settle: impl FnOnce() -> StoreResult<()>,
    ) -> StoreResult<()> {
        let _held = self.hold_segments();
        store.health.check_removable()?;
        let removals = std::mem::take(&mut *self.erasures.lock());
        let erased = settle()
            .and_then(|()| erase(store, &removals).map_err(|error| store.health.postpone(error)));
        if erased.is_err() {
            // The next caller must not take it for done.
            self.erasures.lock().extend(removals);
        }
        erased
    }

    /// Removes files for good: one that came back later would not be recognised, because its removal may be forgotten by then.
    pub fn remove_files(
        &self,
        _held: &HeldSegments<'_>,
        folder: &StoreFolder,
        paths: impl Iterator<Item = PathBuf>,
    ) -> io::Result<()> {
        let mut leftovers = self.leftovers.lock();
        leftovers.extend(paths);
        if leftovers.is_empty() {
            return Ok(());
        }
        for path in &*leftovers {
            remove_if_there(&*folder.file_system, path)?;
        }
        folder.file_system.sync_folder(&folder.path)?;
        leftovers.clear();
        Ok(())
    }

    /// Writes the footers of segments that take no more messages. `settle` makes removals durable that show in them.
    pub fn seal_closed(
        &self,
        _held: &HeldSegments<'_>,
        store: MaintainedStore<'_>,
        settle: impl Fn() -> StoreResult<()>,
    ) -> StoreResult<bool> {
        let mut any = false;
        loop {
            // A removal that is still to be carried out must be found again after a crash, and that is looked for in open segments.
            if self.has_erasures() {
                return Ok(any);
            }
            let Some(at) = store.messages.first_unsealed() else {
                return Ok(any);
            };
            let source = &copying::sources(&store.messages.index(), at..at + 1)[0];
            settle()?;
            let contents = Contents {
                index: &source.index,
                dead: &source.dead,
                names: &source.names,
            };
            let footer = sealing::footer(&contents, source.file.header.extra_bytes());
            sealing::seal(&source.file, &footer).map_err(|error| store.health.postpone(error))?;
            store.messages.set_sealed(at);
            any = true;
        }
    }

    /// Rewrites one run of neighbours that are mostly of no use.
    pub fn compact(
        &self,
        held: &HeldSegments<'_>,
        store: MaintainedStore<'_>,
        settle: impl Fn() -> StoreResult<()>,
    ) -> StoreResult<bool> {
        let run = run_to_rewrite(&store.messages.index(), &store.folder.options);
        let Some(run) = run else {
            return Ok(false);
        };
        let front = store.messages.front();
        let sources = copying::sources(&store.messages.index(), run.clone());
        settle()?;
        replace(store, run, &sources, front)
            .and_then(|()| {
                let paths = sources[1..].iter().map(|source| source.file.path.clone());
                self.remove_files(held, store.folder, paths)
            })
            .map_err(|error| store.health.postpone(error))?;
        Ok(true)
    }
}

/// Replaces segments by a rewritten one.
fn replace(
    store: MaintainedStore<'_>,
    run: Range<usize>,
    sources: &[CopySource],
    front: Front,
) -> io::Result<()> {
    let folder = store.folder;
    let target = RewriteTarget {
        folder: &folder.path,
        compressed: folder.options.compressed,
        last_sequence: u64::MAX,
    };
    let rewritten = rewrite(folder, sources, front, &target).or_else(|error| {
        // Half of it helps nobody, and takes room on a disk that may be full.
        let number = sources[0].file.header.number;
        let unfinished = unfinished_path(&folder.path, number);
        remove_if_there(&*folder.file_system, &unfinished)?;
        Err(error)
    })?;
    let target = segment_file::path(&folder.path, rewritten.file.header.number);
    folder.file_system.rename(&rewritten.file.path, &target)?;
    folder.file_system.sync_folder(&folder.path)?;
    store.messages.exchange(run, rewritten, target);
    Ok(())
}

/// Neighbours that are worth rewriting: mostly of no use, or small, or not compressed although they should be.
fn run_to_rewrite(index: &MessageIndex, options: &StoreOptions) -> Option<Range<usize>> {
    let bytes_max = options.segment_bytes;
    // Of a chained segment something stays of every message.
    let kept_bytes = |segment: &Segment| match segment.file.header.chained {
        true => segment.index.end,
        false => segment.live_bytes,
    };
    let is_small = |segment: &Segment| kept_bytes(segment) < bytes_max / SMALL_PART;
    let is_wasteful = |segment: &Segment| {
        let gained = segment.file.header.rewritten
            || segment.live_bytes + RECORDS_START * 2 < segment.index.end;
        segment.dead_part() > DEAD_PART_MAX && gained
    };
    let is_plain = |segment: &Segment| {
        options.compressed
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
                bytes += kept_bytes(segment);
                let alike = segment.file.header.chained == first.file.header.chained;
                let worth = is_small(segment) || is_wasteful(segment);
                // The last sequence of a segment that none came into is the one before its base.
                let span = segment.index.last_sequence + 1 - first.index.base_sequence;
                let near = span <= SEQUENCE_SPAN_MAX;
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

fn erase(store: MaintainedStore<'_>, removals: &[Removal]) -> io::Result<()> {
    let mut touched: Vec<Arc<SegmentFile>> = Vec::new();
    for removal in removals {
        for sequence in removal.first..=removal.last {
            store.messages.own_file(sequence, store.folder)?;
            let place = {
                let index = store.messages.index();
                index.segment_of(sequence).and_then(|at| {
                    let segment = &index.segments[at];
                    let rank = segment.index.rank(sequence)?;
                    Some((Arc::clone(&segment.file), segment.index.extent(rank)?))
                })
            };
            if let Some((file, extent)) = place {
                file.erase(sequence, extent)?;
                touched.push(file);
            }
        }
    }
    touched.dedup_by(|one, other| Arc::ptr_eq(one, other));
    for file in touched {
        file.file.sync()?;
    }
    Ok(())
}
