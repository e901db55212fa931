//! What goes into a store and comes out of it: messages, limits, states, and everything that can be refused.

use std::fmt;
use std::io;
use std::sync::Arc;

use super::format::removal::Removal;

/// A message to be stored.
#[derive(Debug, Clone, Copy, Default)]
pub struct NewMessage<'a> {
    pub subject: &'a [u8],
    pub headers: &'a [u8],
    pub payload: &'a [u8],
    pub time_ns: i64,
    pub expires_ns: Option<i64>,
}

/// A message that was stored. Its parts lie in one buffer that is kept as long as they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub sequence: u64,
    pub time_ns: i64,
    pub expires_ns: Option<i64>,
    pub(super) bytes: Vec<u8>,
    pub(super) subject_start: usize,
    pub(super) subject_len: usize,
    pub(super) headers_len: usize,
}

impl Message {
    pub fn subject(&self) -> &[u8] {
        &self.bytes[self.subject_start..][..self.subject_len]
    }

    pub fn headers(&self) -> &[u8] {
        &self.bytes[self.subject_start + self.subject_len..][..self.headers_len]
    }

    pub fn payload(&self) -> &[u8] {
        &self.bytes[self.subject_start + self.subject_len + self.headers_len..]
    }
}

/// A place in the order of everything staged, never given twice, while the sequence of a refused message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Ticket(pub u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    pub sequence: u64,
    pub ticket: Ticket,
}

/// What a commit made durable: everything up to this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Committed {
    pub ticket: Ticket,
    pub last_sequence: u64,
}

/// Staged messages that will not be stored: those after `after`, up to `through`.
#[derive(Debug, Clone)]
pub struct Refused {
    pub after: Ticket,
    pub through: Ticket,
    pub error: StoreError,
}

/// What became of everything staged, up to now.
#[derive(Debug, Default)]
pub struct CommitProgress {
    pub committed: Committed,
    /// In their order; what is not in here and not after `committed` is durable.
    pub refused: Vec<Refused>,
    /// The outcome of everything up to here was reported.
    pub told_through: Ticket,
}

/// How the size of a stream is counted: as nats-server does for each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Counting {
    #[default]
    File,
    Memory,
}

impl Counting {
    /// What a message counts for in the size of the stream.
    pub fn bytes(self, subject_len: usize, headers_len: usize, payload_len: usize) -> u64 {
        let own = (subject_len + headers_len + payload_len) as u64;
        match self {
            Self::File if headers_len > 0 => own + FILE_BYTES_BEYOND + FILE_HEADERS_BYTES_BEYOND,
            Self::File => own + FILE_BYTES_BEYOND,
            Self::Memory => own + MEMORY_BYTES_BEYOND,
        }
    }
}

const FILE_BYTES_BEYOND: u64 = 30;
const FILE_HEADERS_BYTES_BEYOND: u64 = 4;
const MEMORY_BYTES_BEYOND: u64 = 16;

/// How many messages there are, and how large they are together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub messages: u64,
    pub bytes: u64,
    pub first_sequence: u64,
    pub last_sequence: u64,
}

/// Limits of what a stream keeps; `None` means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    pub messages_max: Option<u64>,
    pub bytes_max: Option<u64>,
    pub age_ns_max: Option<i64>,
    pub per_subject_max: Option<u64>,
}

/// What the clock took away.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expired {
    pub removed: u64,
    /// Their time is over, but they are the last of their subjects and were to be spared.
    pub spared: Vec<u64>,
}

/// Expires when time itself ends: not even the age limit of a stream removes it.
pub const EXPIRES_NEVER_NS: i64 = i64::MAX;

/// Which messages to remove.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Purge {
    /// Only those whose subject matches.
    pub filter: Option<Vec<u8>>,
    /// Only those below this sequence.
    pub below_sequence: Option<u64>,
    /// But not the last `keep`.
    pub keep: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoreState {
    pub messages: u64,
    pub bytes: u64,
    /// One above the last sequence where there is no message.
    pub first_sequence: u64,
    pub first_time_ns: i64,
    pub last_sequence: u64,
    pub last_time_ns: i64,
    pub subjects: u64,
    /// Messages that were acknowledged and cannot be read any more.
    pub lost: Vec<Removal>,
}

#[derive(Debug, Clone)]
pub enum StoreError {
    /// The disk is full. Is returned by everything that writes; goes away by itself when there is space.
    Full,
    /// The process has no file descriptors or no memory left, or a call was interrupted. Is returned by everything that writes; goes away by itself.
    Temporary(Arc<io::Error>),
    /// A write or a sync failed, so nothing is certain about what would be written now. Is returned by everything that writes, until the
    /// store is opened again.
    ReadOnly(Arc<io::Error>),
    /// The message was stored, but what is found now is not what was written. Is returned by reads.
    Damaged { sequence: u64 },
    /// More is waiting for the disk than may. Is returned by appends; try again when something was committed.
    Behind,
    /// The subject or the whole message is larger than a segment can hold, or a group of messages than may wait for the disk. Is returned by appends.
    TooLarge,
    /// The last sequence there is was given. Is returned by appends.
    Exhausted,
    /// Files were made by a later version of this program. Is returned by opening.
    TooNew { version: u32 },
    /// The messages are encrypted, and no key or another key was given. Is returned by opening.
    Key,
    /// Reading failed. Is returned by reads and by opening.
    Read(Arc<io::Error>),
    /// Another store could not be made of this one, which is as it was. Is returned by forking.
    NotForked(Arc<io::Error>),
}

impl fmt::Display for StoreError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => {
                write!(formatter, "the disk is full: free some space, or purge; writing goes on by itself then")
            }
            Self::Temporary(cause) => write!(
                formatter,
                "writing is not possible for the moment ({cause}): try again; raise the limit of open files or memory if this lasts"
            ),
            Self::ReadOnly(cause) => write!(
                formatter,
                "writing failed ({cause}): the stream can only be read until the server is started again on a good disk"
            ),
            Self::Damaged { sequence } => {
                write!(formatter, "message {sequence} is damaged on disk")
            }
            Self::Behind => write!(formatter, "the disk cannot keep up: publish slower"),
            Self::TooLarge => write!(formatter, "the message is too large to be stored"),
            Self::Exhausted => write!(
                formatter,
                "the stream has no sequences left: create another one"
            ),
            Self::TooNew { version } => write!(
                formatter,
                "the files have format {version}, made by a later version: open them with that one"
            ),
            Self::Key => write!(
                formatter,
                "the messages are encrypted with another key: give the key they were written with"
            ),
            Self::Read(cause) => write!(formatter, "reading failed: {cause}"),
            Self::NotForked(cause) => write!(formatter, "the fork could not be made: {cause}"),
        }
    }
}

impl std::error::Error for StoreError {}

pub type StoreResult<T> = Result<T, StoreError>;
