//! The archive of a stream: what nats-server 2.15 writes when it is asked for a snapshot, before compression.
//!
//! ```text
//! NATSARC1
//! entry*      name length, time, sequence, headers length, payload length   numbers in groups of seven bits, the time zigzag
//!             name, headers, payload                                         bytes
//! terminator  an entry that is all zeros: without it the archive was cut off
//! ```
//! The entries are `state.json`, then `consumers/<name>` as many times as the state says, then the messages with their subjects as names.
//!
//! Invariant: whatever the bytes, the reader keeps one entry in memory, within the limits here, and makes room for what comes and not for what is
//! promised.

use std::fmt;
use std::io::{self, Read, Write};

use crate::common::subject;
use crate::storage::format::record::SUBJECT_BYTES_MAX;

pub const MAGIC: &[u8; 8] = b"NATSARC1";

pub const STATE_NAME: &[u8] = b"state.json";
pub const CONSUMER_PREFIX: &[u8] = b"consumers/";

/// The state of a stream as JSON; nats-server lists no deleted messages in it.
pub const STATE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The configuration and the state of a consumer as JSON; some hundred bytes for each of its pending messages.
pub const CONSUMER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The headers and the payload of a message together: nats-server has no larger ones, whatever its configuration.
pub const MESSAGE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Sequences end here, so that no sum of them overflows.
pub const SEQUENCE_MAX: u64 = 1 << 62;

/// A number of 64 bits takes no more.
const VARINT_BYTES_MAX: usize = 10;

/// Why an archive cannot be read.
#[derive(Debug)]
pub enum ArchiveError {
    /// The bytes before the archive cannot be read: the disk, or the compression.
    Read(io::Error),
    /// It ends before its terminator.
    Truncated,
    /// It says something that no archive says.
    Invalid(String),
}

impl fmt::Display for ArchiveError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => write!(formatter, "{error}"),
            Self::Truncated => write!(formatter, "the archive is not complete"),
            Self::Invalid(reason) => write!(formatter, "{reason}"),
        }
    }
}

impl std::error::Error for ArchiveError {}

fn invalid(reason: impl Into<String>) -> ArchiveError {
    ArchiveError::Invalid(reason.into())
}

pub type ArchiveResult<T> = Result<T, ArchiveError>;

/// One entry that is written.
#[derive(Debug, Clone, Copy, Default)]
pub struct NewEntry<'a> {
    pub name: &'a [u8],
    pub time_ns: i64,
    pub sequence: u64,
    pub headers: &'a [u8],
    pub payload: &'a [u8],
}

/// Writes an archive. Without `finish` it will be seen to be cut off.
pub struct ArchiveWriter<W: Write> {
    inner: W,
    head: Vec<u8>,
}

impl<W: Write> ArchiveWriter<W> {
    pub fn new(mut inner: W) -> io::Result<Self> {
        inner.write_all(MAGIC)?;
        Ok(Self {
            inner,
            head: Vec::new(),
        })
    }

    pub fn write(&mut self, entry: &NewEntry<'_>) -> io::Result<()> {
        let head = &mut self.head;
        head.clear();
        put_varint(head, entry.name.len() as u64);
        put_varint(head, zigzag(entry.time_ns));
        put_varint(head, entry.sequence);
        put_varint(head, entry.headers.len() as u64);
        put_varint(head, entry.payload.len() as u64);
        head.extend_from_slice(entry.name);
        self.inner.write_all(head)?;
        self.inner.write_all(entry.headers)?;
        self.inner.write_all(entry.payload)
    }

    /// Writes the terminator and gives back what it was written to.
    pub fn finish(mut self) -> io::Result<W> {
        self.write(&NewEntry::default())?;
        Ok(self.inner)
    }
}

/// One message that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchivedMessage<'a> {
    pub subject: &'a [u8],
    pub time_ns: i64,
    pub sequence: u64,
    pub headers: &'a [u8],
    pub payload: &'a [u8],
}

/// The numbers before an entry.
#[derive(Debug, PartialEq, Eq)]
struct Head {
    name: usize,
    time_ns: i64,
    sequence: u64,
    headers: u64,
    payload: u64,
}

/// Reads an archive whose magic has been read: the state, then the consumers, then the messages.
pub struct ArchiveReader<R> {
    inner: R,
    name: Vec<u8>,
    body: Vec<u8>,
    last_sequence: u64,
}

impl<R: Read> ArchiveReader<R> {
    pub fn new(inner: R) -> Self {
        Self {
            inner,
            name: Vec::new(),
            body: Vec::new(),
            last_sequence: 0,
        }
    }

    /// Messages below this sequence are refused.
    pub fn expect_from(&mut self, first_sequence: u64) {
        self.last_sequence = first_sequence.saturating_sub(1);
    }

    /// The state of the stream, as JSON.
    pub fn state(&mut self) -> ArchiveResult<&[u8]> {
        let head = self.head()?;
        if self.name != STATE_NAME {
            return Err(invalid("expected state.json first"));
        }
        self.read_body(&head, STATE_BYTES_MAX)?;
        Ok(&self.body)
    }

    /// The next consumer: its name, and what is known of it as JSON.
    pub fn consumer(&mut self) -> ArchiveResult<(&[u8], &[u8])> {
        let head = self.head()?;
        if !self.name.starts_with(CONSUMER_PREFIX) {
            let found = subject::quoted(&self.name);
            return Err(invalid(format!("expected consumer, found {found}")));
        }
        self.read_body(&head, CONSUMER_BYTES_MAX)?;
        Ok((&self.name[CONSUMER_PREFIX.len()..], &self.body))
    }

    /// The next message; `None` after the last.
    pub fn message(&mut self) -> ArchiveResult<Option<ArchivedMessage<'_>>> {
        let head = self.head()?;
        let Head {
            sequence, time_ns, ..
        } = head;
        if sequence == 0 {
            if (time_ns, head.headers, head.payload, head.name) != (0, 0, 0, 0) {
                return Err(invalid("expected message sequence"));
            }
            return self.end();
        }
        if sequence <= self.last_sequence {
            let reason = format!("message sequence {sequence} out of order");
            return Err(invalid(reason));
        }
        if sequence > SEQUENCE_MAX {
            let reason = format!("message sequence {sequence} is beyond all sequences");
            return Err(invalid(reason));
        }
        if !is_subject(&self.name) {
            let name = subject::quoted(&self.name);
            let reason = format!("message sequence {sequence} has no valid subject: {name}");
            return Err(invalid(reason));
        }
        self.last_sequence = sequence;
        self.read_body(&head, MESSAGE_BYTES_MAX)?;
        let (headers, payload) = self.body.split_at(head.headers as usize);
        Ok(Some(ArchivedMessage {
            subject: &self.name,
            time_ns,
            sequence,
            headers,
            payload,
        }))
    }

    /// Nothing may follow the terminator.
    fn end<T>(&mut self) -> ArchiveResult<Option<T>> {
        match self.inner.read(&mut [0]) {
            Ok(0) => Ok(None),
            Ok(_) => Err(invalid("something follows the end of the archive")),
            Err(error) => Err(ArchiveError::Read(error)),
        }
    }

    fn head(&mut self) -> ArchiveResult<Head> {
        let name = self.varint()?;
        let time_ns = unzigzag(self.varint()?);
        let sequence = self.varint()?;
        let headers = self.varint()?;
        let payload = self.varint()?;
        if name > SUBJECT_BYTES_MAX as u64 {
            return Err(invalid(format!("an entry has a name of {name} bytes")));
        }
        let head = Head {
            name: name as usize,
            time_ns,
            sequence,
            headers,
            payload,
        };
        self.name.clear();
        read_up_to(&mut self.inner, head.name, &mut self.name)?;
        Ok(head)
    }

    fn read_body(&mut self, head: &Head, bytes_max: usize) -> ArchiveResult<()> {
        self.body.clear();
        let length = head.headers.checked_add(head.payload);
        let Some(length) = length.filter(|length| *length <= bytes_max as u64) else {
            let name = subject::quoted(&self.name);
            let reason = format!("entry {name} says it has more than {bytes_max} bytes");
            return Err(invalid(reason));
        };
        read_up_to(&mut self.inner, length as usize, &mut self.body)
    }

    fn varint(&mut self) -> ArchiveResult<u64> {
        let mut number = 0_u64;
        for group in 0..VARINT_BYTES_MAX {
            let mut byte = [0];
            self.inner.read_exact(&mut byte).map_err(read_error)?;
            let bits = u64::from(byte[0] & 0x7f);
            // The last group has one bit left.
            if group == VARINT_BYTES_MAX - 1 && byte[0] > 1 {
                break;
            }
            number |= bits << (7 * group);
            if byte[0] < 0x80 {
                return Ok(number);
            }
        }
        Err(invalid("an entry has a number of more than 64 bits"))
    }
}

/// Whether messages can have this subject.
pub(in crate::stream) fn is_subject(name: &[u8]) -> bool {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | 0x0c | 0);
    subject::is_literal(name) && !name.iter().any(is_blank)
}

/// Reads `length` bytes, and makes room for them as they come.
pub(in crate::stream) fn read_up_to(
    reader: &mut impl Read,
    length: usize,
    out: &mut Vec<u8>,
) -> ArchiveResult<()> {
    let read = reader.take(length as u64).read_to_end(out);
    match read.map_err(read_error)? {
        count if count < length => Err(ArchiveError::Truncated),
        _ => Ok(()),
    }
}

fn read_error(error: io::Error) -> ArchiveError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => ArchiveError::Truncated,
        _ => ArchiveError::Read(error),
    }
}

fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

#[cfg(test)]
#[path = "format_tests.rs"]
mod tests;
