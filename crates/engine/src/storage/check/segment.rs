//! Reading one segment file as a whole, whether it has a footer or not: every record, and every byte between them.

use std::io;
use std::path::PathBuf;

use super::comparing::Comparison;
use super::zeros::Zeros;
use super::Meter;
use crate::storage::finding::Finding;
use crate::storage::format::bytes::ByteReader;
use crate::storage::format::footer;
use crate::storage::format::group::Group;
use crate::storage::format::record::{padded, Record, RecordKind};
use crate::storage::format::removal;
use crate::storage::format::removal::Removal;
use crate::storage::format::segment_header::{COPY_OFFSETS, HEADER_BYTES, RECORDS_START};
use crate::storage::segment::loading::LoadedSegment;
use crate::storage::segment::scan::{scan, SegmentScan};

/// What was found in one file, before it is known which of its messages still count.
#[derive(Default)]
pub struct Examined {
    pub path: PathBuf,
    pub records: u64,
    /// Its footer cannot be understood, because it is encrypted.
    pub locked: bool,
    pub findings: Vec<Finding>,
    /// Messages the footer counts on that cannot be read.
    pub unreadable: Vec<u64>,
    /// Messages the footer says were lost before.
    pub known_lost: Vec<Removal>,
    /// Messages that are there although they were to be overwritten.
    pub unerased: Vec<u64>,
}

/// Reads all of a segment. `erasures` are sorted.
pub fn examine(
    loaded: &LoadedSegment,
    erasures: &[Removal],
    meter: &mut Meter<'_>,
) -> io::Result<Examined> {
    let sealed = loaded.scan.is_none();
    let mut zeros = Zeros::new(&*loaded.file.file, loaded.file_bytes);
    let mut examined = Examined {
        path: loaded.file.path.clone(),
        ..Examined::default()
    };
    examined.header_block(&mut zeros)?;
    let header = &loaded.file.header;
    let until = if sealed {
        loaded.footer.index.end.min(loaded.file_bytes)
    } else {
        loaded.file_bytes
    };
    examined.locked = header.encrypted && loaded.file.key.is_none();
    let understood = sealed && !examined.locked;
    let mut comparison = understood.then(|| Comparison::new(&loaded.footer, header));
    let mut gaps = Gaps::new(header.base_sequence);
    let mut compressed = Compressed::default();
    let mut failed = None;
    let found = |record: Record<'_>, position: u64, bytes: &[u8]| {
        examined.records += 1;
        meter.reached(position);
        let end = position + bytes.len() as u64;
        let padding_end = position + padded(bytes.len()) as u64;
        match zeros.first_stray(end, padding_end) {
            Ok(stray) => examined.stray(stray),
            Err(error) => failed = Some(error),
        }
        examined.record(&record, position, padding_end, erasures);
        gaps.record(&record, position, padding_end);
        compressed.record(&record);
        if let Some(comparison) = &mut comparison {
            comparison.record(&record, position, bytes.len());
            if record.kind == RecordKind::Removed {
                let listed = removal::decode(&mut ByteReader::new(record.payload));
                comparison.removed(&listed.unwrap_or_default());
            }
        }
    };
    let scan = scan(&*loaded.file.file, header.binding(), until, found)?;
    if let Some(error) = failed {
        return Err(error);
    }
    if sealed {
        examined.unreadable_stretches(&scan, until);
    }
    match comparison {
        Some(comparison) => examined.compare(loaded, &scan, until, comparison)?,
        None if sealed => examined.unreadable = gaps.missing,
        None => {}
    }
    examined.unreadable.extend(compressed.unreadable());
    Ok(examined)
}

impl Examined {
    fn stray(&mut self, position: Option<u64>) {
        if let Some(position) = position {
            let path = self.path.clone();
            self.findings.push(Finding::Stray { path, position });
        }
    }

    fn damaged(&mut self, start: u64, end: u64) {
        self.findings.push(Finding::Damaged {
            path: self.path.clone(),
            position: start,
            bytes: end - start,
        });
    }

    /// The first block holds the two copies of the header and nothing else.
    fn header_block(&mut self, zeros: &mut Zeros<'_>) -> io::Result<()> {
        let ends = [COPY_OFFSETS[1], RECORDS_START];
        for (copy, end) in COPY_OFFSETS.iter().zip(ends) {
            let stray = zeros.first_stray(copy + HEADER_BYTES as u64, end)?;
            self.stray(stray);
        }
        Ok(())
    }

    fn record(&mut self, record: &Record<'_>, position: u64, end: u64, erasures: &[Removal]) {
        match record.kind {
            RecordKind::Message | RecordKind::Compressed
                if is_listed(erasures, record.sequence) =>
            {
                self.unerased.push(record.sequence);
            }
            RecordKind::Message
            | RecordKind::Compressed
            | RecordKind::Erased
            | RecordKind::Dictionary => {}
            RecordKind::Removed => {
                // Its checksum is right, so it was written like this.
                if removal::decode(&mut ByteReader::new(record.payload)).is_none() {
                    self.damaged(position, end);
                }
            }
            RecordKind::Group => {
                if Group::decode(record, position).is_none() {
                    self.damaged(position, end);
                }
            }
        }
    }

    /// What has no record in a segment with a footer; for others opening finds it.
    fn unreadable_stretches(&mut self, scan: &SegmentScan, until: u64) {
        for hole in &scan.holes {
            self.damaged(hole.start, hole.end);
        }
        if scan.end < until {
            self.damaged(scan.end, until);
        }
    }

    /// What a footer and its records say together.
    fn compare(
        &mut self,
        loaded: &LoadedSegment,
        scan: &SegmentScan,
        until: u64,
        comparison: Comparison<'_>,
    ) -> io::Result<()> {
        let whole = scan.holes.is_empty() && scan.end == until;
        let (unreadable, mut wrong) = comparison.finish(whole);
        self.unreadable = unreadable;
        self.known_lost.clone_from(&loaded.footer.index.lost);
        if !self.footer_bytes_are_right(loaded, until)? {
            wrong = Some("it does not stand where it says");
        }
        if let Some(what) = wrong {
            let path = self.path.clone();
            self.findings.push(Finding::FooterWrong { path, what });
        }
        Ok(())
    }

    /// The footer begins where the records end, and nothing else follows them.
    fn footer_bytes_are_right(&self, loaded: &LoadedSegment, end: u64) -> io::Result<bool> {
        let expected = footer::encode(&loaded.footer, &loaded.file.header, end, None);
        if loaded.file_bytes - end != expected.len() as u64 {
            return Ok(false);
        }
        let mut found = vec![0; expected.len()];
        loaded.file.file.read_exact_at(&mut found, end)?;
        Ok(found == expected)
    }
}

/// Whether one of the ranges, which are sorted and may overlap, has this message.
pub fn is_listed(removals: &[Removal], sequence: u64) -> bool {
    let end = removals.partition_point(|removal| removal.first <= sequence);
    let mut before = removals[..end].iter().rev();
    before.any(|removal| removal.contains(sequence))
}

/// Messages that must have stood where nothing can be read, by the sequences around it.
struct Gaps {
    next_sequence: u64,
    next_position: u64,
    /// Since the last message there was something that is not a record.
    hole: bool,
    missing: Vec<u64>,
}

impl Gaps {
    fn new(base_sequence: u64) -> Self {
        Self {
            next_sequence: base_sequence,
            next_position: RECORDS_START,
            hole: false,
            missing: Vec::new(),
        }
    }

    fn record(&mut self, record: &Record<'_>, position: u64, end: u64) {
        let is_message = match record.kind {
            RecordKind::Message | RecordKind::Compressed | RecordKind::Erased => true,
            RecordKind::Removed | RecordKind::Dictionary | RecordKind::Group => false,
        };
        self.hole |= position > self.next_position;
        if is_message {
            if std::mem::take(&mut self.hole) {
                self.missing.extend(self.next_sequence..record.sequence);
            }
            self.next_sequence = record.sequence + 1;
        }
        self.next_position = end;
    }
}

/// Messages that can be read only with a dictionary of their segment.
#[derive(Default)]
struct Compressed {
    has_dictionary: bool,
    sequences: Vec<u64>,
}

impl Compressed {
    fn record(&mut self, record: &Record<'_>) {
        match record.kind {
            RecordKind::Dictionary => self.has_dictionary = true,
            // The dictionary stands in front of them all.
            RecordKind::Compressed if !self.has_dictionary => self.sequences.push(record.sequence),
            RecordKind::Message
            | RecordKind::Compressed
            | RecordKind::Erased
            | RecordKind::Removed
            | RecordKind::Group => {}
        }
    }

    fn unreadable(self) -> Vec<u64> {
        self.sequences
    }
}
