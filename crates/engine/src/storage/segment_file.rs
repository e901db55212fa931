//! One segment on disk: its name, its header, and reading records from it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::file_system::File;
use super::record::{self, Kind, NotARecord, Record};
use super::segment_header::SegmentHeader;
use super::segment_index::Extent;

const SUFFIX: &str = ".segment";

pub struct SegmentFile {
    pub header: SegmentHeader,
    pub path: PathBuf,
    pub file: Arc<dyn File>,
}

/// The path of a segment.
pub fn path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:010}{SUFFIX}"))
}

/// The number in the name of a segment; `None` if it is no name of a segment.
pub fn number(name: &str) -> Option<u64> {
    name.strip_suffix(SUFFIX)?.parse().ok()
}

/// What was read at the place of a message.
pub enum Found<'a> {
    Message(Record<'a>),
    /// Erased since its place was looked up.
    Erased,
    Damaged,
}

impl SegmentFile {
    /// Reads the message of this sequence, which lies here, into `buffer`.
    pub fn read<'a>(
        &self,
        sequence: u64,
        extent: Extent,
        buffer: &'a mut Vec<u8>,
    ) -> io::Result<Found<'a>> {
        buffer.resize(extent.length, 0);
        match self.file.read_exact_at(buffer, extent.position) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Ok(Found::Damaged)
            }
            other => other?,
        }
        Ok(self.decode(sequence, extent.position, buffer))
    }

    /// Takes the message of this sequence from bytes that stand at `position`.
    pub fn decode<'a>(&self, sequence: u64, position: u64, bytes: &'a [u8]) -> Found<'a> {
        match record::decode(bytes, self.header.binding(), position) {
            Ok((record, _)) if record.sequence != sequence => Found::Damaged,
            Ok((record, _)) => match record.kind {
                Kind::Message => Found::Message(record),
                Kind::Erased => Found::Erased,
                Kind::Removed => Found::Damaged,
            },
            Err(NotARecord::Blank | NotARecord::Short { .. } | NotARecord::Damaged) => {
                Found::Damaged
            }
        }
    }

    /// Overwrites a message so that nothing of it is left but its sequence; the caller syncs.
    pub fn erase(&self, sequence: u64, extent: Extent) -> io::Result<()> {
        let blank = vec![0; extent.length - record::HEAD_BYTES];
        let erased = Record::erased(sequence, &blank);
        let mut bytes = Vec::with_capacity(extent.length);
        erased.encode(&mut bytes, self.header.binding(), extent.position);
        self.file
            .write_all_at(&bytes[..extent.length], extent.position)
    }
}
