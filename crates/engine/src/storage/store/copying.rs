//! Filling a new segment with what is still needed of old ones.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use super::verifying::links;
use crate::storage::format::compression;
use crate::storage::format::compression::{Packer, SAMPLES_MAX, SAMPLE_BYTES_MAX};
use crate::storage::format::record::{Record, RecordKind};
use crate::storage::format::removal;
use crate::storage::format::removal::Removal;
use crate::storage::format::segment_header::RECORDS_START;
use crate::storage::index::bits::Bits;
use crate::storage::index::messages::MessageIndex;
use crate::storage::index::segments::{Placed, RecordLocation, SegmentIndex};
use crate::storage::index::subjects::SubjectId;
use crate::storage::message::Counting;
use crate::storage::segment::segment_file::{Buffers, FoundRecord, Remains, SegmentFile};

/// A segment as it was when its rewriting began.
pub struct CopySource {
    pub file: Arc<SegmentFile>,
    pub index: Arc<SegmentIndex>,
    pub dead: Bits,
    pub names: Vec<(SubjectId, Box<[u8]>)>,
}

impl CopySource {
    fn is_live(&self, rank: usize) -> bool {
        self.index.place(rank) != RecordLocation::NONE && !self.dead.get(rank)
    }
}

/// Some segments as they are at one moment.
pub fn sources(index: &MessageIndex, run: Range<usize>) -> Vec<CopySource> {
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

/// What the live messages of some segments have in common; nothing if that is too little.
pub fn common(sources: &[CopySource]) -> io::Result<Vec<u8>> {
    let mut samples = Vec::new();
    let mut buffers = Buffers::default();
    let each = SAMPLES_MAX / sources.len();
    for source in sources {
        let step = source.index.rank_count().div_ceil(each.max(1)).max(1);
        for rank in (0..source.index.rank_count()).step_by(step) {
            let extent = source.index.extent(rank);
            let Some(extent) = extent.filter(|_| source.is_live(rank)) else {
                continue;
            };
            let sequence = source.index.sequence(rank);
            if let FoundRecord::Message(record) =
                source.file.read(sequence, extent, &mut buffers)?
            {
                let mut sample = [record.headers, record.payload].concat();
                sample.truncate(SAMPLE_BYTES_MAX);
                samples.push(sample);
            }
        }
    }
    Ok(compression::train(&samples))
}

/// Bytes gathered before they are written.
const COPY_BYTES: usize = 1 << 20;

/// A new segment as it is filled with messages of others.
pub struct SegmentCopy<'a> {
    file: &'a SegmentFile,
    pub index: SegmentIndex,
    packer: Option<Packer>,
    counting: Counting,
    /// Nothing after it is copied.
    last_sequence: u64,
    buffer: Vec<u8>,
    written: u64,
    /// Messages that could not be read.
    pub lost: Vec<u64>,
    /// When the last message was stored, if there is one.
    pub last_time_ns: Option<i64>,
}

impl<'a> SegmentCopy<'a> {
    pub fn new(file: &'a SegmentFile, counting: Counting, last_sequence: u64) -> Self {
        let header = &file.header;
        Self {
            file,
            index: SegmentIndex {
                sequences: Some(Vec::new()),
                sizes: (header.compressed || counting == Counting::Memory).then(Vec::new),
                ..SegmentIndex::new(header.base_sequence, RECORDS_START, 0)
            },
            packer: None,
            counting,
            last_sequence,
            buffer: Vec::new(),
            written: RECORDS_START,
            lost: Vec::new(),
            last_time_ns: None,
        }
    }

    fn position(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// Puts the dictionary of the messages that follow in front of them, twice.
    pub fn dictionary(&mut self, dictionary: &[u8]) {
        for _ in 0..2 {
            let binding = self.file.header.binding();
            let record = Record {
                kind: RecordKind::Dictionary,
                encrypted: self.file.header.encrypted,
                ..Record::removed(binding.base_sequence, dictionary)
            };
            let position = self.position();
            record.encode(&mut self.buffer, binding, position, self.file.key.as_ref());
            let end = self.position();
            self.index.add_other(position, end);
        }
        self.packer = Packer::new(dictionary);
    }

    pub fn flush(&mut self) -> io::Result<()> {
        self.file.file.write_all_at(&self.buffer, self.written)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Copies the live messages of a segment, and of a chained one what is left of the others.
    pub fn messages(&mut self, source: &CopySource, first_sequence: u64) -> io::Result<()> {
        let mut buffers = Buffers::default();
        if self.file.header.chained {
            let mut chained = Vec::new();
            links(&source.file, source.index.end, |sequence, remains| {
                if sequence <= self.last_sequence {
                    chained.push((sequence, remains));
                }
            })?;
            for (sequence, remains) in &chained {
                let (sequence, remains) = (*sequence, remains.as_ref());
                let rank = source.index.rank(sequence);
                match rank.filter(|rank| source.is_live(*rank)) {
                    Some(rank) => self.live(source, rank, &mut buffers)?,
                    // Nothing before the first message is ever verified.
                    None if sequence > first_sequence => self.remains(sequence, remains),
                    None => {}
                }
            }
            self.note_lost(source, &chained);
        } else {
            for rank in 0..source.index.rank_count() {
                let wanted = source.index.sequence(rank) <= self.last_sequence;
                if wanted && source.is_live(rank) {
                    self.live(source, rank, &mut buffers)?;
                }
            }
        }
        Ok(())
    }

    /// Notes the live messages of a chained segment of which no record was found.
    fn note_lost(&mut self, source: &CopySource, found: &[(u64, Option<Remains>)]) {
        for rank in 0..source.index.rank_count() {
            let sequence = source.index.sequence(rank);
            let wanted = sequence <= self.last_sequence && source.is_live(rank);
            let place = found.binary_search_by_key(&sequence, |(found, _)| *found);
            if wanted && place.is_err() {
                self.lost.push(sequence);
            }
        }
    }

    fn live(&mut self, source: &CopySource, rank: usize, buffers: &mut Buffers) -> io::Result<()> {
        let Some(extent) = source.index.extent(rank) else {
            return Ok(());
        };
        let sequence = source.index.sequence(rank);
        let found = source.file.read(sequence, extent, buffers)?;
        self.message(sequence, source.index.subject_ids[rank], &found);
        if self.buffer.len() >= COPY_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    /// What a chain needs of a message that is not copied.
    fn remains(&mut self, sequence: u64, remains: Option<&Remains>) {
        let Some(remains) = remains else {
            return;
        };
        let digest = remains.digest.unwrap_or_default();
        let record = Record {
            link: Some(&remains.link),
            ..Record::erased(sequence, &digest)
        };
        let position = self.position();
        record.encode(&mut self.buffer, self.file.header.binding(), position, None);
        let end = self.position();
        self.index.add_other(position, end);
    }

    fn message(&mut self, sequence: u64, id: SubjectId, found: &FoundRecord<'_>) {
        let record = match found {
            FoundRecord::Message(record) => record,
            FoundRecord::Erased => return,
            FoundRecord::Damaged => {
                self.lost.push(sequence);
                return;
            }
        };
        let counted_bytes = self.counting.bytes(
            record.subject.len(),
            record.headers.len(),
            record.payload.len(),
        );
        let packer = self.packer.as_mut();
        let packed = packer.and_then(|packer| packer.pack(record.headers, record.payload));
        let mut record = Record {
            encrypted: self.file.header.encrypted,
            ..*record
        };
        if let Some(packed) = &packed {
            record = Record {
                kind: RecordKind::Compressed,
                headers: b"",
                payload: packed,
                ..record
            };
        }
        let position = self.position();
        let binding = self.file.header.binding();
        record.encode(&mut self.buffer, binding, position, self.file.key.as_ref());
        let placed = Placed {
            sequence,
            position,
            length: record.length(),
            time_ns: record.time_ns,
            expires_ns: record.expires_ns,
            counted_bytes,
        };
        self.index.add_sparse(&placed, id);
        self.last_time_ns = Some(record.time_ns);
    }

    pub fn removals(&mut self, removals: &[Removal]) -> io::Result<()> {
        for some in removals.chunks(removal::RANGES_MAX) {
            let mut payload = Vec::new();
            removal::encode(some, &mut payload);
            for _ in 0..2 {
                let binding = self.file.header.binding();
                let record = Record::removed(binding.base_sequence, &payload);
                let position = self.position();
                record.encode(&mut self.buffer, binding, position, None);
                let end = self.position();
                self.index.add_other(position, end);
            }
        }
        self.flush()
    }
}
