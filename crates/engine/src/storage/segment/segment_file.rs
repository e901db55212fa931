//! One segment on disk: its name, its header, and reading records from it.
//!
//! A sealed segment may be shared with a fork of the stream: one file with a name in each folder. Invariant: nothing is
//! ever written into a shared file; a stream that must write to it first replaces it by a copy of its own (`own`).

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use super::scan::scan;
use crate::storage::disk::file_system::{File, FileSystem, OpenMode};
use crate::storage::format::chain;
use crate::storage::format::chain::ChainLink;
use crate::storage::format::compression::{Unpacker, DICTIONARY_BYTES_MAX};
use crate::storage::format::encryption::{SegmentKey, StreamKey};
use crate::storage::format::record;
use crate::storage::format::record::{NotARecord, Record, RecordKind, LINK_BYTES};
use crate::storage::format::segment_header::{SegmentHeader, RECORDS_START};
use crate::storage::index::segments::Extent;
use crate::storage::store::writing::remove_if_there;

const SUFFIX: &str = ".segment";

pub struct SegmentFile {
    pub header: SegmentHeader,
    pub path: PathBuf,
    pub file: Arc<dyn File>,
    /// There if the segment is encrypted.
    pub key: Option<SegmentKey>,
    /// There if the segment is compressed and its dictionary could be read.
    pub unpacker: Option<Unpacker>,
    /// Another stream has the same file, or had it since this one was opened.
    shared: AtomicBool,
}

/// How often a disk that cannot read something is asked: an error of a cable or a controller is gone on the next try, a
/// bad sector stays.
const READ_TRIES: usize = 3;

/// Copied at once.
const COPY_BYTES: u64 = 1 << 20;

/// The path of a segment.
pub fn path(folder: &Path, number: u64) -> PathBuf {
    folder.join(file_name(number))
}

/// The number in the name of a segment; `None` if the name is not that of a segment.
pub fn number(name: &str) -> Option<u64> {
    let number = name.strip_suffix(SUFFIX)?.parse().ok()?;
    // There is one name for each number, and no other is ours.
    (file_name(number) == name).then_some(number)
}

fn file_name(number: u64) -> String {
    format!("{number:010}{SUFFIX}")
}

/// Puts a copy of a file in its place, durably; its other names keep the file itself.
pub fn replace_by_copy(
    file_system: &dyn FileSystem,
    path: &Path,
    file: &dyn File,
) -> io::Result<Arc<dyn File>> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let beside = PathBuf::from(beside);
    remove_if_there(file_system, &beside)?;
    let copy = file_system.open(&beside, OpenMode::Create)?;
    let length = file.len()?;
    let mut buffer = Vec::new();
    for start in (0..length).step_by(COPY_BYTES as usize) {
        buffer.resize(COPY_BYTES.min(length - start) as usize, 0);
        file.read_exact_at(&mut buffer, start)?;
        copy.write_all_at(&buffer, start)?;
    }
    copy.sync()?;
    file_system.rename(&beside, path)?;
    if let Some(folder) = path.parent() {
        file_system.sync_folder(folder)?;
    }
    Ok(copy)
}

/// What is left of a message in a chain after it was removed.
pub struct Remains {
    pub link: ChainLink,
    /// Absent where there was no room for it.
    pub digest: Option<ChainLink>,
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

/// What a message is read into: its record, and its headers and payload if they are compressed there.
#[derive(Default)]
pub struct Buffers {
    pub stored: Vec<u8>,
    pub body: Vec<u8>,
}

/// What was read at the place of a message.
pub enum FoundRecord<'a> {
    Message(Record<'a>),
    /// Erased since its place was looked up.
    Erased,
    Damaged,
}

/// Whether a disk says that it cannot read what it was given to keep: a bad sector, or a checksum of the file system that does not fit. Everything else may
/// be over in a moment, and says nothing about what is stored.
fn is_unreadable(error: &io::Error) -> bool {
    #[cfg(target_os = "linux")]
    const UNREADABLE: [i32; 3] = [libc::EIO, libc::EBADMSG, libc::EUCLEAN];
    #[cfg(not(target_os = "linux"))]
    const UNREADABLE: [i32; 2] = [libc::EIO, libc::EBADMSG];
    let code = error.raw_os_error();
    code.is_some_and(|code| UNREADABLE.contains(&code))
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
            unpacker: None,
            shared: AtomicBool::new(false),
        }
    }

    /// Whether nothing may be written into the file, because another stream would see it.
    ///
    /// Once shared, always shared, as long as it is open: the other one may have given up its name and still be reading.
    pub fn is_shared(&self) -> bool {
        self.shared.load(Ordering::Acquire)
    }

    pub fn set_shared(&self) {
        self.shared.store(true, Ordering::Release);
    }

    /// The same segment, in a file that nobody else has.
    pub fn own(
        &self,
        file_system: &dyn FileSystem,
        stream_key: Option<&StreamKey>,
    ) -> io::Result<Self> {
        let file = replace_by_copy(file_system, &self.path, &*self.file)?;
        let mut own = Self::new(self.header, self.path.clone(), file, stream_key);
        if self.header.compressed {
            own.read_dictionary()?;
        }
        Ok(own)
    }

    /// Finds the dictionary in front of compressed messages: either copy will do.
    pub fn read_dictionary(&mut self) -> io::Result<()> {
        let binding = self.header.binding();
        let copies = 2 * (DICTIONARY_BYTES_MAX + 1024) as u64;
        let until = self.file.len()?.min(RECORDS_START + copies);
        let mut unpacker = None;
        let mut plain = Vec::new();
        scan(&*self.file, binding, until, |record, position, bytes| {
            if record.kind != RecordKind::Dictionary || unpacker.is_some() {
                return;
            }
            plain.clear();
            plain.extend_from_slice(bytes);
            let record = match &self.key {
                Some(key) if record.encrypted => record::open(&mut plain, binding, position, key),
                _ => record::parts_of(&plain, binding),
            };
            unpacker = record.and_then(|record| Unpacker::new(record.payload));
        })?;
        self.unpacker = unpacker;
        Ok(())
    }

    /// A message as it was published, from a record that may be compressed; `None` if it cannot be made from it.
    pub fn expand<'a>(&self, record: Record<'a>, body: &'a mut Vec<u8>) -> Option<Record<'a>> {
        if record.kind == RecordKind::Message {
            return Some(record);
        }
        let unpacker = self.unpacker.as_ref()?;
        let headers_len = unpacker.unpack(record.payload, body)?;
        let (headers, payload) = body.split_at(headers_len);
        Some(Record {
            kind: RecordKind::Message,
            headers,
            payload,
            ..record
        })
    }

    /// Reads the message of this sequence, which lies here.
    pub fn read<'a>(
        &self,
        sequence: u64,
        extent: Extent,
        buffers: &'a mut Buffers,
    ) -> io::Result<FoundRecord<'a>> {
        let Buffers { stored, body } = buffers;
        stored.resize(extent.length, 0);
        match self.read_bytes(stored, extent.position)? {
            true => Ok(self.decode(sequence, extent.position, stored, body)),
            false => Ok(FoundRecord::Damaged),
        }
    }

    /// Reads bytes; false if they are gone: the file ends before, or the disk cannot read them, however often it is asked.
    fn read_bytes(&self, bytes: &mut [u8], position: u64) -> io::Result<bool> {
        for _ in 0..READ_TRIES {
            match self.file.read_exact_at(bytes, position) {
                Ok(()) => return Ok(true),
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
                Err(error) if is_unreadable(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// Reads the bytes of neighbours at once, the first of which is at `start`. Where not all of them can be read, each is by itself, and zeros
    /// stand for what is gone.
    pub fn read_neighbours(
        &self,
        messages: &[(u64, Extent)],
        start: u64,
        bytes: &mut [u8],
    ) -> io::Result<()> {
        if self.read_bytes(bytes, start)? {
            return Ok(());
        }
        for (_, extent) in messages {
            let at = (extent.position - start) as usize;
            let own = &mut bytes[at..at + extent.length];
            if !self.read_bytes(own, extent.position)? {
                own.fill(0);
            }
        }
        Ok(())
    }

    /// The same if that needs no disk; nothing if it may.
    pub fn read_cached<'a>(
        &self,
        sequence: u64,
        extent: Extent,
        buffers: &'a mut Buffers,
    ) -> Option<FoundRecord<'a>> {
        let Buffers { stored, body } = buffers;
        stored.resize(extent.length, 0);
        let cached = self.file.read_cached_at(stored, extent.position);
        cached.then(|| self.decode(sequence, extent.position, stored, body))
    }

    /// Takes the message of this sequence from bytes that stand at `position`, which are decrypted in their place.
    pub fn decode<'a>(
        &self,
        sequence: u64,
        position: u64,
        bytes: &'a mut [u8],
        body: &'a mut Vec<u8>,
    ) -> FoundRecord<'a> {
        let binding = self.header.binding();
        let (kind, encrypted) = match record::decode(bytes, binding, position) {
            Ok((record, _)) if record.sequence == sequence => (record.kind, record.encrypted),
            Ok(_) | Err(NotARecord::Blank | NotARecord::Short { .. } | NotARecord::Damaged) => {
                return FoundRecord::Damaged
            }
        };
        match kind {
            RecordKind::Message | RecordKind::Compressed => {}
            RecordKind::Erased => return FoundRecord::Erased,
            RecordKind::Removed | RecordKind::Dictionary | RecordKind::Group => {
                return FoundRecord::Damaged
            }
        }
        let record = match (&self.key, encrypted) {
            (_, false) => record::parts_of(bytes, binding),
            (Some(key), true) => record::open(bytes, binding, position, key),
            (None, true) => None,
        };
        record
            .and_then(|record| self.expand(record, body))
            .map_or(FoundRecord::Damaged, FoundRecord::Message)
    }

    /// What a chain needs to go on after the message of this place is gone.
    pub fn remains(&self, sequence: u64, extent: Extent) -> io::Result<Option<Remains>> {
        let mut buffers = Buffers::default();
        match self.read(sequence, extent, &mut buffers)? {
            FoundRecord::Message(record) => Ok(record.link.map(|link| Remains {
                link: *link,
                digest: Some(chain::digest(&record)),
            })),
            FoundRecord::Erased => {
                let binding = self.header.binding();
                let decoded = record::decode(&buffers.stored, binding, extent.position);
                Ok(decoded.ok().and_then(|(record, _)| Remains::of(&record)))
            }
            FoundRecord::Damaged => Ok(None),
        }
    }

    /// Overwrites a message so that nothing of it is left but its sequence and its place in a chain; the caller syncs.
    pub fn erase(&self, sequence: u64, extent: Extent) -> io::Result<()> {
        assert!(!self.is_shared(), "somebody else reads this file");
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
