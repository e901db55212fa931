//! Finding out what one segment file holds: by its footer, or by reading its records.

use std::io;
use std::path::Path;

use super::scan::{scan, SegmentScan, Tail};
use super::segment_file;
use super::segment_file::SegmentFile;
use crate::storage::disk::file_system::{FileSystem, OpenMode};
use crate::storage::format::bytes::ByteReader;
use crate::storage::format::compression;
use crate::storage::format::encryption::StreamKey;
use crate::storage::format::footer;
use crate::storage::format::footer::{Footer, FooterSubject};
use crate::storage::format::group::Group;
use crate::storage::format::record;
use crate::storage::format::record::{Record, RecordKind};
use crate::storage::format::removal;
use crate::storage::format::removal::Removal;
use crate::storage::format::segment_header::{HeaderState, SegmentHeader, RECORDS_START};
use crate::storage::index::messages::counted_bytes;
use crate::storage::index::segments::{Placed, SegmentIndex};
use crate::storage::index::subjects::SubjectIndex;
use crate::storage::message::Counting;

/// What there is under the name of a segment.
pub enum Loading {
    Segment(Box<LoadedSegment>),
    /// Neither copy of the header can be read.
    HeaderLost,
    /// Made by a later version of this program.
    TooNew(u32),
    /// Encrypted, and there is no key.
    Locked,
}

pub struct LoadedSegment {
    pub file: SegmentFile,
    /// The subjects in it are numbered by the footer itself.
    pub footer: Footer,
    pub file_bytes: u64,
    pub header_healed: bool,
    /// How reading its records went, if there was no good footer.
    pub scan: Option<SegmentScan>,
    /// What follows its last record is neither blank nor a footer: there may have been more.
    pub is_cut: bool,
}

/// Looks at one file. Nothing is changed but a bad copy of its header, if `heal` is set. With `in_use` its last write may be unfinished.
pub fn load(
    file_system: &dyn FileSystem,
    path: &Path,
    heal: bool,
    in_use: bool,
    stream_key: Option<&StreamKey>,
) -> io::Result<Loading> {
    let access = if heal {
        OpenMode::Write
    } else {
        OpenMode::Read
    };
    let mut file = file_system.open(path, access)?;
    let file_bytes = file.len()?;
    let mut shared = file.links()? > 1;
    let mut state = SegmentHeader::read(&*file, heal && !shared)?;
    if heal && shared && matches!(state, HeaderState::Healed(_)) {
        file = segment_file::replace_by_copy(file_system, path, &*file)?;
        shared = false;
        state = SegmentHeader::read(&*file, true)?;
    }
    let (header, header_healed) = match state {
        HeaderState::Good(header) => (header, false),
        HeaderState::Healed(header) => (header, true),
        HeaderState::TooNew(version) => return Ok(Loading::TooNew(version)),
        HeaderState::Lost => return Ok(Loading::HeaderLost),
    };
    let mut file = SegmentFile::new(header, path.to_owned(), file, stream_key);
    if shared {
        file.set_shared();
    }
    if header.encrypted && file.key.is_none() {
        return Ok(Loading::Locked);
    }
    if header.compressed {
        file.read_dictionary()?;
    }
    let (footer, scan) = match footer::read(&*file.file, &header, file.key.as_ref())? {
        Some(footer) => (footer, None),
        None => {
            let (footer, scan) = read_finished(&file, file_bytes, in_use)?;
            (footer, Some(scan))
        }
    };
    let is_cut = match &scan {
        Some(scan) => is_cut(&file, scan)?,
        None => false,
    };
    Ok(Loading::Segment(Box::new(LoadedSegment {
        file,
        footer,
        file_bytes,
        header_healed,
        scan,
        is_cut,
    })))
}

/// Whether something else than a footer follows the last record.
pub fn is_cut(file: &SegmentFile, scan: &SegmentScan) -> io::Result<bool> {
    Ok(scan.tail == Tail::Torn && !footer::begins_at(&*file.file, scan.end)?)
}

/// As `read_records`, of a segment without a footer; with `in_use`, without what was never finished at its end.
pub fn read_finished(
    file: &SegmentFile,
    file_bytes: u64,
    in_use: bool,
) -> io::Result<(Footer, SegmentScan)> {
    let (footer, scan) = read_records(file, file_bytes)?;
    let unfinished = match in_use {
        true => scan.unfinished(&*file.file)?,
        false => None,
    };
    let Some(unfinished) = unfinished else {
        return Ok((footer, scan));
    };
    // The padding of the last record may be cut off.
    let dirty_end = scan.dirty_end.min(file_bytes);
    let (footer, mut scan) = read_records(file, unfinished.position)?;
    scan.tail = Tail::Torn;
    scan.dirty_end = dirty_end;
    scan.unfinished_group = unfinished.group;
    Ok((footer, scan))
}

/// Makes from the records what the footer would say.
pub fn read_records(file: &SegmentFile, file_bytes: u64) -> io::Result<(Footer, SegmentScan)> {
    let header = &file.header;
    let binding = header.binding();
    let mut plain = Vec::new();
    let mut index = SegmentIndex::new(header.base_sequence, RECORDS_START, 0);
    index.sizes = header.compressed.then(Vec::new);
    let mut names = SubjectIndex::default();
    let mut subjects: Vec<FooterSubject> = Vec::new();
    let found = |record: Record<'_>, position: u64, bytes: &[u8]| {
        let length = bytes.len();
        let end = position + record::padded(length) as u64;
        let mut record = record;
        if let (true, Some(key)) = (record.encrypted, &file.key) {
            plain.clear();
            plain.extend_from_slice(bytes);
            match record::open(&mut plain, binding, position, key) {
                Some(opened) => record = opened,
                // Intact, but not written with this key.
                None => return index.add_other(position, end),
            }
        }
        match record.kind {
            // A record out of order cannot have been written so.
            RecordKind::Message | RecordKind::Compressed
                if index.rank_from(record.sequence) == index.rank_count() =>
            {
                let id = names.intern(record.subject);
                names.add(id, 1, record.sequence, record.sequence);
                if id as usize == subjects.len() {
                    subjects.push(FooterSubject {
                        name: record.subject.into(),
                        count: 0,
                        first: record.sequence,
                        last: record.sequence,
                    });
                }
                let subject = &mut subjects[id as usize];
                subject.count += 1;
                subject.last = record.sequence;
                let placed = Placed {
                    sequence: record.sequence,
                    position,
                    length,
                    time_ns: record.time_ns,
                    expires_ns: record.expires_ns,
                    counted_bytes: counted_record(&record),
                };
                index.add(&placed, id);
            }
            RecordKind::Message | RecordKind::Compressed | RecordKind::Dictionary => {
                index.add_other(position, end);
            }
            RecordKind::Erased => {
                let removal = Removal {
                    first: record.sequence,
                    last: record.sequence,
                    erase: false,
                };
                index.add_other(position, end);
                index.last_sequence = index.last_sequence.max(record.sequence);
                removal::push(&mut index.removals, removal);
            }
            RecordKind::Removed => {
                index.add_other(position, end);
                index.last_sequence = index.last_sequence.max(record.sequence - 1);
                if let Some(removals) = removal::decode(&mut ByteReader::new(record.payload)) {
                    index.removals.extend(removals);
                }
            }
            RecordKind::Group => {
                index.add_other(position, end);
                // Shows which messages there were, should the last of them be damaged.
                if let Some(group) = Group::decode(&record, position) {
                    index.last_sequence = index.last_sequence.max(group.last_sequence);
                }
            }
        }
    };
    let scan = scan(&*file.file, binding, file_bytes, found)?;
    // A message ends where damage begins.
    for hole in &scan.holes {
        index.others.push(hole.start as u32);
    }
    index.others.sort_unstable();
    index.end = scan.end;
    let extra = header.extra_bytes();
    let ranks = 0..index.rank_count();
    let bytes = ranks.map(|rank| counted_bytes(&index, extra, rank)).sum();
    let count = subjects
        .iter()
        .map(|subject| u64::from(subject.count))
        .sum();
    let footer = Footer {
        index,
        subjects,
        count,
        bytes,
    };
    Ok((footer, scan))
}

/// What a message counts for, compressed or not.
fn counted_record(record: &Record<'_>) -> u64 {
    let (headers_len, payload_len) = match record.kind {
        RecordKind::Compressed => compression::lengths(record.payload).unwrap_or((0, 0)),
        _ => (record.headers.len(), record.payload.len()),
    };
    // What is loaded is in files.
    Counting::File.bytes(record.subject.len(), headers_len, payload_len)
}
