//! Archives that nats-server made before 2.15: a tar of the files of its store, in S2.
//!
//! ```text
//! meta.inf                    the configuration as JSON, with the time of creation
//! msgs/<number>.blk           messages and removals, one record after the other
//! obs/<consumer>/meta.inf     one for each consumer
//! ```
//! Everything else is passed over: checksums of the above, and an index of what is said there too.
//!
//! A removal may stand in a later block than its message, so the archive is read twice: first the removals, then the messages.
//! Invariant: whatever the bytes, one record is in memory, and at most `REMOVALS_MAX` removals.

use std::io::{self, Read};

use ahash::AHashSet;
use highway::{HighwayHash, HighwayHasher, Key};
use serde::Deserialize;

use super::format::{
    read_up_to, ArchiveError, ArchiveResult, ArchivedMessage, MESSAGE_BYTES_MAX, SEQUENCE_MAX,
};
use crate::common::subject;

const META_NAME: &str = "meta.inf";
const BLOCKS_PREFIX: &str = "msgs/";
const BLOCK_SUFFIX: &str = ".blk";
const CONSUMERS_PREFIX: &str = "obs/";

/// The configuration of a stream as JSON: its metadata alone may have 128 KiB.
const META_BYTES_MAX: usize = 1024 * 1024;

/// Headers that precede a file in the archive: a name, and times.
const EXTENDED_BYTES_MAX: usize = 64 * 1024;

/// Removals that are remembered: some hundred megabytes of them.
const REMOVALS_MAX: usize = 8 * 1024 * 1024;

const TAR_BLOCK_BYTES: usize = 512;

/// Before the subject: length, sequence, time, length of the subject.
const RECORD_HEAD_BYTES: usize = 22;
const RECORD_SUM_BYTES: usize = 8;
const RECORD_BYTES_MAX: usize = MESSAGE_BYTES_MAX + 128 * 1024;

/// In the length of a record: it has headers.
const HAS_HEADERS: u32 = 1 << 31;
/// In the sequence of a record: the message was overwritten.
const ERASED: u64 = 1 << 63;
/// In the sequence of a record: it says that the message is removed.
const REMOVAL: u64 = 1 << 62;

fn invalid<T>(reason: impl Into<String>) -> ArchiveResult<T> {
    Err(ArchiveError::Invalid(reason.into()))
}

/// What the first reading finds.
#[derive(Debug, Default)]
pub struct Survey {
    /// When the stream was made.
    pub created: String,
    pub consumers: u64,
    /// Of all records, removals and what was overwritten included.
    pub first_sequence: u64,
    pub last_sequence: u64,
    removed: AHashSet<u64>,
}

#[derive(Deserialize)]
struct Meta {
    #[serde(default, alias = "Created")]
    created: String,
    name: String,
}

/// Reads what must be known before the messages are read.
pub fn survey(input: impl Read, name: &str) -> ArchiveResult<Survey> {
    let mut tar = Tar::new(input);
    let mut survey = Survey::default();
    let mut has_meta = false;
    while let Some(entry) = tar.next_entry()? {
        if entry == META_NAME {
            let mut body = Vec::new();
            tar.read_body(META_BYTES_MAX, &mut body)?;
            let meta: Meta = match serde_json::from_slice(&body) {
                Ok(meta) => meta,
                Err(error) => return invalid(format!("error in meta.inf: {error}")),
            };
            if meta.name != name {
                return invalid("stream names do not match");
            }
            survey.created = meta.created;
            has_meta = true;
        } else if let Some(block) = block_number(&entry) {
            let mut records = Records::new(&mut tar, name, block);
            while let Some(record) = records.next_record()? {
                survey.note(record.sequence)?;
            }
        } else if entry.starts_with(CONSUMERS_PREFIX) && entry.ends_with(META_NAME) {
            survey.consumers += 1;
        }
    }
    match has_meta {
        true => Ok(survey),
        false => invalid("the archive has no meta.inf"),
    }
}

impl Survey {
    fn note(&mut self, marked: u64) -> ArchiveResult<()> {
        let sequence = marked & !(ERASED | REMOVAL);
        if sequence > SEQUENCE_MAX {
            return invalid(format!(
                "message sequence {sequence} is beyond all sequences"
            ));
        }
        if sequence == 0 {
            return Ok(());
        }
        if marked & REMOVAL != 0 {
            self.removed.insert(sequence);
            if self.removed.len() > REMOVALS_MAX {
                return invalid("the archive has too many removals");
            }
        } else if marked & ERASED == 0
            && (self.first_sequence == 0 || sequence < self.first_sequence)
        {
            self.first_sequence = sequence;
        }
        self.last_sequence = self.last_sequence.max(sequence);
        Ok(())
    }
}

/// Calls `take` with the messages from `first_sequence` on that were not removed.
pub fn for_each_message<E: From<ArchiveError>>(
    input: impl Read,
    name: &str,
    survey: &Survey,
    first_sequence: u64,
    mut take: impl FnMut(&ArchivedMessage<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let mut tar = Tar::new(input);
    let mut last_sequence = first_sequence.saturating_sub(1);
    while let Some(entry) = tar.next_entry()? {
        let Some(block) = block_number(&entry) else {
            continue;
        };
        let mut records = Records::new(&mut tar, name, block);
        while let Some(record) = records.next_record()? {
            let sequence = record.sequence;
            let is_message = sequence & (ERASED | REMOVAL) == 0 && sequence > 0;
            // As nats-server does: sequences only move up.
            if !is_message || sequence <= last_sequence || survey.removed.contains(&sequence) {
                continue;
            }
            last_sequence = sequence;
            take(&record.message()?)?;
        }
    }
    Ok(())
}

/// The number of a block of messages, if this is one.
fn block_number(entry: &str) -> Option<u32> {
    let number = entry
        .strip_prefix(BLOCKS_PREFIX)?
        .strip_suffix(BLOCK_SUFFIX)?;
    number.parse().ok()
}

/// The files of a tar, one after the other.
struct Tar<R> {
    inner: R,
    /// Of the file that is being read.
    left: u64,
    padding: u64,
}

impl<R: Read> Tar<R> {
    fn new(inner: R) -> Self {
        Self {
            inner,
            left: 0,
            padding: 0,
        }
    }

    /// Goes on to the next file; `None` after the last.
    fn next_entry(&mut self) -> ArchiveResult<Option<String>> {
        let mut name = None;
        let mut size = None;
        loop {
            self.pass_over()?;
            let Some(header) = self.header()? else {
                return Ok(None);
            };
            self.left = number(&header[124..136])?;
            self.padding = self.left.next_multiple_of(TAR_BLOCK_BYTES as u64) - self.left;
            match header[156] {
                b'x' => {
                    let mut body = Vec::new();
                    self.read_body(EXTENDED_BYTES_MAX, &mut body)?;
                    for (key, value) in extended(&body)? {
                        match key.as_str() {
                            "path" => name = Some(value),
                            "size" => size = Some(value),
                            _ => {}
                        }
                    }
                }
                b'0' | 0 => {
                    if let Some(size) = &size {
                        let Ok(size) = size.parse() else {
                            return invalid("a file in the archive has no valid size");
                        };
                        self.left = size;
                        self.padding = (TAR_BLOCK_BYTES as u64 - size % TAR_BLOCK_BYTES as u64)
                            % TAR_BLOCK_BYTES as u64;
                    }
                    let own = || text(&header[..100]);
                    return name.map_or_else(own, Ok).map(Some);
                }
                _ => return invalid("unexpected content"),
            }
        }
    }

    fn header(&mut self) -> ArchiveResult<Option<[u8; TAR_BLOCK_BYTES]>> {
        let mut header = Vec::with_capacity(TAR_BLOCK_BYTES);
        let read = self
            .inner
            .by_ref()
            .take(TAR_BLOCK_BYTES as u64)
            .read_to_end(&mut header)
            .map_err(ArchiveError::Read)?;
        if read == 0 {
            return Err(ArchiveError::Truncated);
        }
        let Ok(header) = <[u8; TAR_BLOCK_BYTES]>::try_from(header) else {
            return Err(ArchiveError::Truncated);
        };
        if header.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        // The sum is made with blanks in its own place.
        let sum: u64 = header.iter().map(|byte| u64::from(*byte)).sum();
        let own: u64 = header[148..156].iter().map(|byte| u64::from(*byte)).sum();
        if sum - own + 8 * u64::from(b' ') != number(&header[148..156])? {
            return invalid("a file in the archive has a wrong checksum");
        }
        Ok(Some(header))
    }

    /// Reads the whole of a file.
    fn read_body(&mut self, bytes_max: usize, out: &mut Vec<u8>) -> ArchiveResult<()> {
        if self.left > bytes_max as u64 {
            return invalid(format!(
                "a file in the archive has more than {bytes_max} bytes"
            ));
        }
        read_up_to(&mut self.inner, self.left as usize, out)?;
        self.left = 0;
        Ok(())
    }

    fn pass_over(&mut self) -> ArchiveResult<()> {
        let length = self.left.saturating_add(self.padding);
        let passed = io::copy(&mut self.inner.by_ref().take(length), &mut io::sink());
        if passed.map_err(ArchiveError::Read)? < length {
            return Err(ArchiveError::Truncated);
        }
        (self.left, self.padding) = (0, 0);
        Ok(())
    }
}

/// A number in octal digits.
fn number(field: &[u8]) -> ArchiveResult<u64> {
    let digits = field
        .iter()
        .copied()
        .skip_while(|byte| *byte == b' ')
        .take_while(|byte| !matches!(byte, 0 | b' '));
    let mut number = 0_u64;
    for digit in digits {
        if !(b'0'..=b'7').contains(&digit) || number >= 1 << 40 {
            return invalid("a file in the archive has no valid size");
        }
        number = number * 8 + u64::from(digit - b'0');
    }
    Ok(number)
}

fn text(field: &[u8]) -> ArchiveResult<String> {
    let end = field.iter().position(|byte| *byte == 0);
    let text = &field[..end.unwrap_or(field.len())];
    match std::str::from_utf8(text) {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => invalid("a file in the archive has no valid name"),
    }
}

/// Keys and values: `<length> <key>=<value>\n`, where the length is that of the whole line.
fn extended(mut body: &[u8]) -> ArchiveResult<Vec<(String, String)>> {
    let mut values = Vec::new();
    let wrong = || ArchiveError::Invalid("a file in the archive has wrong headers".to_owned());
    while !body.is_empty() {
        let blank = body.iter().position(|byte| *byte == b' ');
        let (digits, _) = body.split_at(blank.ok_or_else(wrong)?);
        let length: usize = std::str::from_utf8(digits)
            .ok()
            .and_then(|digits| digits.parse().ok())
            .ok_or_else(wrong)?;
        if length <= digits.len() + 1 || length > body.len() {
            return Err(wrong());
        }
        let (line, rest) = body.split_at(length);
        let line = line[digits.len() + 1..].strip_suffix(b"\n");
        let line = std::str::from_utf8(line.ok_or_else(wrong)?).map_err(|_| wrong())?;
        let (key, value) = line.split_once('=').ok_or_else(wrong)?;
        values.push((key.to_owned(), value.to_owned()));
        body = rest;
    }
    Ok(values)
}

/// The records of one block.
struct Records<'a, R> {
    tar: &'a mut Tar<R>,
    key: [u64; 4],
    bytes: Vec<u8>,
}

/// One record whose checksum is right.
struct LegacyRecord<'a> {
    sequence: u64,
    time_ns: i64,
    has_headers: bool,
    subject_len: usize,
    /// Without head and checksum.
    body: &'a [u8],
}

impl<'a, R: Read> Records<'a, R> {
    fn new(tar: &'a mut Tar<R>, name: &str, block: u32) -> Self {
        let digest =
            ring::digest::digest(&ring::digest::SHA256, format!("{name}-{block}").as_bytes());
        let mut key = [0; 4];
        for (word, bytes) in key.iter_mut().zip(digest.as_ref().chunks_exact(8)) {
            *word = bytes
                .iter()
                .rev()
                .fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        }
        Self {
            tar,
            key,
            bytes: Vec::new(),
        }
    }

    fn next_record(&mut self) -> ArchiveResult<Option<LegacyRecord<'_>>> {
        if self.tar.left == 0 {
            return Ok(None);
        }
        self.bytes.clear();
        self.read(RECORD_HEAD_BYTES)?;
        let head: [u8; RECORD_HEAD_BYTES] = self.bytes[..].try_into().expect("so many were read");
        let [length, sequence, time] = [(0, 4), (4, 12), (12, 20)].map(|(start, end)| {
            let field = head[start..end].iter().rev();
            field.fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte))
        });
        let has_headers = length & u64::from(HAS_HEADERS) != 0;
        let length = (length & !u64::from(HAS_HEADERS)) as usize;
        let subject_len = usize::from(u16::from_le_bytes([head[20], head[21]]));
        let least =
            RECORD_HEAD_BYTES + subject_len + if has_headers { 4 } else { 0 } + RECORD_SUM_BYTES;
        if length < least || length > RECORD_BYTES_MAX {
            return invalid("a block of messages is damaged");
        }
        self.read(length - RECORD_HEAD_BYTES)?;
        let (content, sum) = self.bytes.split_at(length - RECORD_SUM_BYTES);
        let body = &content[RECORD_HEAD_BYTES..];
        let mut hasher = HighwayHasher::new(Key(self.key));
        hasher.append(&head[4..20]);
        hasher.append(&body[..subject_len]);
        hasher.append(&body[subject_len + if has_headers { 4 } else { 0 }..]);
        if hasher.finalize64().to_le_bytes() != *sum {
            return invalid("a block of messages has a wrong checksum");
        }
        Ok(Some(LegacyRecord {
            sequence,
            time_ns: time as i64,
            has_headers,
            subject_len,
            body,
        }))
    }

    fn read(&mut self, count: usize) -> ArchiveResult<()> {
        if count as u64 > self.tar.left {
            return invalid("a block of messages ends too early");
        }
        self.tar.left -= count as u64;
        read_up_to(&mut self.tar.inner, count, &mut self.bytes)
    }
}

impl<'a> LegacyRecord<'a> {
    fn message(&self) -> ArchiveResult<ArchivedMessage<'a>> {
        let (name, rest) = self.body.split_at(self.subject_len);
        if !crate::stream::archive::format::is_subject(name) {
            let sequence = self.sequence;
            let name = subject::quoted(name);
            return invalid(format!(
                "message sequence {sequence} has no valid subject: {name}"
            ));
        }
        let (headers, payload) = match self.has_headers {
            false => (&rest[..0], rest),
            true => {
                let (length, rest) = rest.split_at(4);
                let length = length
                    .iter()
                    .rev()
                    .fold(0, |sum, byte| sum << 8 | usize::from(*byte));
                let Some(parts) = rest.split_at_checked(length) else {
                    return invalid("a block of messages is damaged");
                };
                parts
            }
        };
        Ok(ArchivedMessage {
            subject: name,
            time_ns: self.time_ns,
            sequence: self.sequence,
            headers,
            payload,
        })
    }
}

#[cfg(test)]
#[path = "legacy_format_tests.rs"]
mod tests;
