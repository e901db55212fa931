//! What is done behind everybody's back: sealing, giving space back, and joining what has become small.
//!
//! Nothing here changes what a reader sees. A rewritten segment gets its name only when it is durable as a whole; until then the old one
//! counts, and afterwards a leftover of it is recognised by its sequences, which the new one answers for.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::Arc;

use super::opening::random_identity;
use super::Store;
use crate::storage::bits::Bits;
use crate::storage::file_system::{Access, File};
use crate::storage::footer::Footer;
use crate::storage::index::Segment;
use crate::storage::message::{StoreError, StoreResult};
use crate::storage::record::Record;
use crate::storage::removal::{self, Removal};
use crate::storage::sealing::{self, Contents};
use crate::storage::segment_file::{self, Found, SegmentFile};
use crate::storage::segment_header::{SegmentHeader, RECORDS_START};
use crate::storage::segment_index::{Extent, Placed, SegmentIndex};
use crate::storage::subject_index::SubjectId;

/// A segment is rewritten when this part of it is of no use.
const DEAD_PART_MAX: f64 = 0.5;

/// Most segments that become one at a time.
const JOINED_MAX: usize = 64;

/// A segment as it was when its rewriting began.
struct Source {
    file: Arc<SegmentFile>,
    index: Arc<SegmentIndex>,
    dead: Bits,
    names: Vec<(SubjectId, Box<[u8]>)>,
}

/// A rewritten segment.
struct Rewritten {
    file: SegmentFile,
    footer: Footer,
    ids: Vec<SubjectId>,
    lost: Vec<u64>,
}

impl Store {
    /// Does what has become necessary; true if something was.
    pub fn upkeep(&self) -> StoreResult<bool> {
        let freed = self.free_front()?;
        let _upkeep = self.upkeep.lock();
        {
            let mut writer = self.writer.lock();
            writer
                .note_number(self)
                .map_err(|error| self.postpone(error))?;
        }
        let sealed = self.seal_closed().map_err(|error| self.postpone(error))?;
        let compacted = self.compact().map_err(|error| self.postpone(error))?;
        Ok(freed || sealed || compacted)
    }

    /// A full disk only postpones upkeep; anything else is serious.
    fn postpone(&self, error: io::Error) -> StoreError {
        match error.raw_os_error() {
            Some(libc::ENOSPC | libc::EDQUOT) => StoreError::Full,
            _ => self.become_read_only(error),
        }
    }

    /// Gives back segments at the front that have no message any more.
    fn free_front(&self) -> StoreResult<bool> {
        let emptied = {
            let index = self.index.read();
            let emptied = |segment: &&Segment| segment.closed && segment.live_count == 0;
            let front = index.segments.iter().take_while(emptied);
            let (mut first, mut last) = (0, 0);
            for segment in front {
                if first == 0 {
                    first = segment.index.base_sequence;
                }
                last = segment.index.last_sequence;
            }
            (first > 0).then_some(Removal {
                first,
                last,
                erase: false,
            })
        };
        let Some(emptied) = emptied else {
            return Ok(false);
        };
        // It must be known that they were removed before they are: a missing file would be taken for a loss.
        self.check_removable()?;
        self.staging.lock().remove(emptied);
        self.commit()?;
        let _upkeep = self.upkeep.lock();
        let files: Vec<Arc<SegmentFile>> = {
            let mut index = self.index.write();
            let gone = index
                .segments
                .partition_point(|segment| segment.index.last_sequence <= emptied.last);
            let gone = index.segments.drain(..gone);
            gone.map(|segment| segment.file).collect()
        };
        for file in files {
            self.file_system
                .remove_file(&file.path)
                .map_err(|error| self.postpone(error))?;
        }
        let mut status = self.status.lock();
        if matches!(*status, super::Status::Full { .. }) {
            *status = super::Status::Writable;
        }
        Ok(true)
    }

    /// Some segments as they are at one moment.
    fn sources(&self, run: std::ops::Range<usize>) -> Vec<Source> {
        let index = self.index.read();
        let name = |id: usize| {
            let id = id as SubjectId;
            (id, index.subjects.name(id).into())
        };
        index.segments[run]
            .iter()
            .map(|segment| Source {
                file: Arc::clone(&segment.file),
                index: Arc::clone(&segment.index),
                dead: segment.dead.clone(),
                names: segment.subjects.ones().map(name).collect(),
            })
            .collect()
    }

    fn seal_closed(&self) -> io::Result<bool> {
        // A removal that is still to be carried out must be found again after a crash, and that is looked for in open segments.
        if self.erasing.load(Ordering::Acquire) > 0 {
            return Ok(false);
        }
        let mut any = false;
        loop {
            let open = |segment: &Segment| segment.closed && !segment.sealed;
            let at = self.index.read().segments.iter().position(open);
            let Some(at) = at else {
                return Ok(any);
            };
            let source = &self.sources(at..at + 1)[0];
            let contents = Contents {
                index: &source.index,
                dead: &source.dead,
                names: &source.names,
            };
            let footer = sealing::footer(&contents, source.file.header.extra_bytes());
            sealing::seal(&source.file, &footer)?;
            self.index.write().segments[at].sealed = true;
            any = true;
        }
    }

    /// Rewrites one run of neighbours that are mostly of no use.
    fn compact(&self) -> io::Result<bool> {
        let run = {
            let index = self.index.read();
            let worth = |segment: &Segment| segment.sealed && segment.dead_part() > DEAD_PART_MAX;
            let Some(start) = index.segments.iter().position(worth) else {
                return Ok(false);
            };
            let mut bytes = 0;
            let count = index.segments[start..]
                .iter()
                .take(JOINED_MAX)
                .take_while(|segment| {
                    bytes += segment.live_bytes;
                    worth(segment) && bytes <= self.options.segment_bytes
                })
                .count();
            // Alone and small it would be rewritten for ever.
            let alone = &index.segments[start];
            let gains = alone.live_bytes + RECORDS_START * 2 < alone.index.end;
            if count == 0 || (count == 1 && !gains) {
                return Ok(false);
            }
            start..start + count
        };
        let first_base = self.index.read().segments[0].index.base_sequence;
        let sources = self.sources(run.clone());
        let rewritten = self.rewrite(&sources, first_base)?;
        let target = segment_file::path(&self.folder, rewritten.file.header.number);
        self.file_system.rename(&rewritten.file.path, &target)?;
        self.file_system.sync_folder(&self.folder)?;
        self.exchange(run, rewritten, target);
        for source in &sources[1..] {
            self.file_system.remove_file(&source.file.path)?;
        }
        Ok(true)
    }

    /// Writes the live messages of some segments into one new file.
    fn rewrite(&self, sources: &[Source], first_base: u64) -> io::Result<Rewritten> {
        let first = &sources[0];
        let last = &sources[sources.len() - 1];
        let header = SegmentHeader {
            identity: random_identity(),
            ..first.file.header
        };
        let path = segment_file::path(&self.folder, header.number).with_extension("segment.new");
        match self.file_system.remove_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            other => other?,
        }
        let file = self.file_system.open(&path, Access::Create)?;
        header.write(&*file)?;
        let mut copy = Copy::new(header, &*file);
        for source in sources {
            copy.messages(source)?;
        }
        // What these segments remember of others that are still there goes on being remembered, and why the first one is the first.
        let mut removals: Vec<Removal> = Vec::new();
        for removal in sources.iter().flat_map(|source| &source.index.removals) {
            if removal.last + 1 >= first_base && removal.first < header.base_sequence {
                let last = removal.last.min(header.base_sequence - 1);
                removal::push(&mut removals, Removal { last, ..*removal });
            }
        }
        copy.removals(&removals)?;
        copy.flush()?;
        let Copy {
            mut index, lost, ..
        } = copy;
        index.last_sequence = last.index.last_sequence;
        index.first_time_ns = first.index.first_time_ns;
        index.last_time_ns = last.index.last_time_ns;
        index.removals = removals;
        index.lost = sources
            .iter()
            .flat_map(|source| source.index.lost.iter().copied())
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
        let file = SegmentFile { header, path, file };
        sealing::seal(&file, &footer)?;
        Ok(Rewritten {
            file,
            footer,
            ids,
            lost,
        })
    }

    /// Puts the rewritten segment in the place of those it was made of.
    fn exchange(
        &self,
        run: std::ops::Range<usize>,
        rewritten: Rewritten,
        path: std::path::PathBuf,
    ) {
        let file = Arc::new(SegmentFile {
            path,
            ..rewritten.file
        });
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

/// Bytes gathered before they are written.
const COPY_BYTES: usize = 1 << 20;

/// A new segment as it is filled with messages of others.
struct Copy<'a> {
    header: SegmentHeader,
    file: &'a dyn File,
    index: SegmentIndex,
    buffer: Vec<u8>,
    written: u64,
    lost: Vec<u64>,
}

impl<'a> Copy<'a> {
    fn new(header: SegmentHeader, file: &'a dyn File) -> Self {
        Self {
            header,
            file,
            index: SegmentIndex {
                sequences: Some(Vec::new()),
                ..SegmentIndex::new(header.base_sequence, RECORDS_START, 0)
            },
            buffer: Vec::new(),
            written: RECORDS_START,
            lost: Vec::new(),
        }
    }

    fn position(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.write_all_at(&self.buffer, self.written)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    fn messages(&mut self, source: &Source) -> io::Result<()> {
        let mut bytes = Vec::new();
        for rank in 0..source.index.rank_count() {
            if source.dead.get(rank) {
                continue;
            }
            let Some(extent) = source.index.extent(rank) else {
                continue;
            };
            let sequence = source.index.sequence(rank);
            let found = source.file.read(sequence, extent, &mut bytes)?;
            self.message(sequence, source.index.subject_ids[rank], extent, &found);
            if self.buffer.len() >= COPY_BYTES {
                self.flush()?;
            }
        }
        Ok(())
    }

    fn message(&mut self, sequence: u64, id: SubjectId, extent: Extent, found: &Found<'_>) {
        let record = match found {
            Found::Message(record) => record,
            Found::Erased => return,
            Found::Damaged => {
                self.lost.push(sequence);
                return;
            }
        };
        let position = self.position();
        record.encode(&mut self.buffer, self.header.binding(), position);
        let placed = Placed {
            sequence,
            position,
            length: extent.length,
            time_ns: record.time_ns,
            expires_ns: record.expires_ns,
        };
        self.index.add_sparse(&placed, id);
    }

    fn removals(&mut self, removals: &[Removal]) -> io::Result<()> {
        for some in removals.chunks(removal::RANGES_MAX) {
            let mut payload = Vec::new();
            removal::encode(some, &mut payload);
            for _ in 0..2 {
                let record = Record::removed(self.header.base_sequence, &payload);
                let position = self.position();
                record.encode(&mut self.buffer, self.header.binding(), position);
                let end = self.position();
                self.index.add_other(position, end);
            }
        }
        self.flush()
    }
}
