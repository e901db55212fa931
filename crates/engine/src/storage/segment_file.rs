//! One segment on disk: its name, its header, and reading records from it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::chain::{self, Link};
use super::encryption::{SegmentKey, StreamKey};
use super::file_system::File;
use super::record::{self, Kind, NotARecord, Record, LINK_BYTES};
use super::segment_header::SegmentHeader;
use super::segment_index::Extent;

const SUFFIX: &str = ".segment";

pub struct SegmentFile {
    pub header: SegmentHeader,
    pub path: PathBuf,
    pub file: Arc<dyn File>,
    /// There if the segment is encrypted.
    pub key: Option<SegmentKey>,
}

/// The path of a segment.
pub fn path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:010}{SUFFIX}"))
}

/// The number in the name of a segment; `None` if it is no name of a segment.
pub fn number(name: &str) -> Option<u64> {
    name.strip_suffix(SUFFIX)?.parse().ok()
}

/// What is left of a message in a chain after it was removed.
pub struct Remains {
    pub link: Link,
    /// Absent where there was no room for it.
    pub digest: Option<Link>,
}

impl Remains {
    /// What an erased record holds.
    pub fn of(record: &Record<'_>) -> Option<Self> {
        let digest = record.payload.get(..LINK_BYTES);
        let digest = digest.and_then(|digest| digest.try_into().ok());
        Some(Self {
            link: *record.link?,
            digest: digest.filter(|digest| *digest != [0; LINK_BYTES]),
        })
    }
}

/// What was read at the place of a message.
pub enum Found<'a> {
    Message(Record<'a>),
    /// Erased since its place was looked up.
    Erased,
    Damaged,
}

impl SegmentFile {
    /// The file of a segment; the key of the stream must be given if it is encrypted.
    pub fn new(
        header: SegmentHeader,
        path: PathBuf,
        file: Arc<dyn File>,
        stream_key: Option<&StreamKey>,
    ) -> Self {
        let key = stream_key
            .filter(|_| header.encrypted)
            .map(|key| key.segment(header.identity));
        Self {
            header,
            path,
            file,
            key,
        }
    }

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

    /// Takes the message of this sequence from bytes that stand at `position`, which are decrypted in their place.
    pub fn decode<'a>(&self, sequence: u64, position: u64, bytes: &'a mut [u8]) -> Found<'a> {
        let binding = self.header.binding();
        let (kind, encrypted) = match record::decode(bytes, binding, position) {
            Ok((record, _)) if record.sequence == sequence => (record.kind, record.encrypted),
            Ok(_) | Err(NotARecord::Blank | NotARecord::Short { .. } | NotARecord::Damaged) => {
                return Found::Damaged
            }
        };
        match kind {
            Kind::Message => {}
            Kind::Erased => return Found::Erased,
            Kind::Removed => return Found::Damaged,
        }
        let record = match (&self.key, encrypted) {
            (_, false) => record::parts_of(bytes, binding),
            (Some(key), true) => record::open(bytes, binding, position, key),
            (None, true) => None,
        };
        record.map_or(Found::Damaged, Found::Message)
    }

    /// What a chain needs to go on after the message of this place is gone.
    pub fn remains(&self, sequence: u64, extent: Extent) -> io::Result<Option<Remains>> {
        let mut buffer = Vec::new();
        match self.read(sequence, extent, &mut buffer)? {
            Found::Message(record) => Ok(record.link.map(|link| Remains {
                link: *link,
                digest: Some(chain::digest(&record)),
            })),
            Found::Erased => {
                let decoded = record::decode(&buffer, self.header.binding(), extent.position);
                Ok(decoded.ok().and_then(|(record, _)| Remains::of(&record)))
            }
            Found::Damaged => Ok(None),
        }
    }

    /// Overwrites a message so that nothing of it is left but its sequence and its place in a chain; the caller syncs.
    pub fn erase(&self, sequence: u64, extent: Extent) -> io::Result<()> {
        let remains = match self.header.chained {
            true => self.remains(sequence, extent)?,
            false => None,
        };
        let link = remains.as_ref().map(|remains| &remains.link);
        let head = record::HEAD_BYTES + if link.is_some() { LINK_BYTES } else { 0 };
        let mut blank = vec![0; extent.length - head];
        if let Some(digest) = remains.as_ref().and_then(|remains| remains.digest) {
            if let Some(front) = blank.get_mut(..LINK_BYTES) {
                front.copy_from_slice(&digest);
            }
        }
        let erased = Record {
            link,
            ..Record::erased(sequence, &blank)
        };
        let mut bytes = Vec::with_capacity(extent.length);
        erased.encode(&mut bytes, self.header.binding(), extent.position, None);
        self.file
            .write_all_at(&bytes[..extent.length], extent.position)
    }
}
