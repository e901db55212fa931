//! From an archive to a store: the messages with their sequences, gaps and times, as far as the stream's own limits let them in.
//!
//! Nothing of the archive is believed: what it says is checked where it is read, and what is stored is counted against what may be stored.
//! Invariant: when `import` returns a store, everything in it is durable, and its next sequence is after all that the
//! archive knew.

use std::fmt;
use std::io::{BufReader, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use super::format;
use super::format::{ArchiveError, ArchiveReader, ArchivedMessage, SEQUENCE_MAX};
use super::legacy_format;
use crate::common::error::EngineError;
use crate::common::subject;
use crate::storage::message::{NewMessage, StoreError};
use crate::storage::store::Store;
use crate::stream::publish::headers::PublishHeaders;
use crate::stream::publish::time_to_live::TimeToLive;
use crate::stream::settings::StreamSettings;
use crate::wire::s2_frames::S2FrameReader;

/// Bytes that are staged before they are committed: a sync for each message would take a day.
const COMMIT_BYTES: u64 = 8 * 1024 * 1024;

/// Bytes between two checks whether segments can be sealed.
const MAINTENANCE_BYTES: u64 = 64 * 1024 * 1024;

/// What the consumers of one archive may take together, in memory.
const CONSUMERS_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Read from the disk at once.
const READ_BYTES: usize = 256 * 1024;

/// The subject of the message that keeps the last sequence for a moment, and is never seen.
const PLACEHOLDER: &[u8] = b"_";

/// Why no stream can be made of an archive.
#[derive(Debug)]
pub enum ImportError {
    /// The archive makes no sense, or holds what the stream may not.
    Refused(String),
    /// There would be more than may be stored.
    Exceeded,
    /// There is a stream of this name by now, or another restore makes one.
    Taken,
    /// The disk or the store failed.
    Store(String),
    /// The server stops, or the sender has given up.
    Stopped,
}

impl fmt::Display for ImportError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(reason) | Self::Store(reason) => write!(formatter, "{reason}"),
            Self::Exceeded => write!(formatter, "more than may be stored"),
            Self::Taken => write!(formatter, "the name of the stream is taken"),
            Self::Stopped => write!(formatter, "the server is shutting down"),
        }
    }
}

impl From<ArchiveError> for ImportError {
    fn from(error: ArchiveError) -> Self {
        Self::Refused(error.to_string())
    }
}

impl From<StoreError> for ImportError {
    fn from(error: StoreError) -> Self {
        Self::Store(error.to_string())
    }
}

impl From<EngineError> for ImportError {
    fn from(error: EngineError) -> Self {
        Self::Store(error.to_string())
    }
}

/// What an import is held to.
pub struct Terms<'a> {
    pub settings: &'a StreamSettings,
    /// What the messages may count for together.
    pub stored_bytes_max: u64,
    /// The first and the last sequence, where the archive does not know them.
    pub first_sequence: u64,
    pub last_sequence: u64,
    pub now_ns: i64,
    pub stopped: &'a AtomicBool,
}

/// What was made of an archive.
pub struct Imported {
    pub store: Arc<Store>,
    pub consumers: Vec<ArchivedConsumer>,
    /// Consumers that were in the archive in a form that is not read.
    pub consumers_lost: u64,
    /// When the stream was made, if the archive knows.
    pub created: String,
}

/// A consumer that was in the archive, as it said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ArchivedConsumer {
    pub name: String,
    pub config: String,
    pub state: String,
}

/// What the archive says of the stream as a whole.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ArchivedStreamState {
    bytes: u64,
    first_seq: u64,
    last_seq: u64,
    consumer_count: i64,
}

/// A consumer, as far as its form is looked at.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ConsumerForm {
    config: Option<AnyObject>,
    state: Option<AnyObject>,
}

/// The same as it is written, once its form is known to be right.
#[derive(Deserialize)]
struct RawConsumer<'a> {
    #[serde(borrow)]
    config: &'a RawValue,
    #[serde(borrow)]
    state: &'a RawValue,
}

/// An object of JSON, whatever is in it.
struct AnyObject;

impl<'de> Deserialize<'de> for AnyObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Self)
    }
}

impl<'de> Visitor<'de> for AnyObject {
    type Value = Self;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(self)
    }
}

/// Makes a store of what an archive holds, which `input` reads from its beginning. `open` makes an empty one whose first message will have the
/// sequence it is given.
pub fn import<R: Read>(
    input: impl Fn() -> R,
    terms: &Terms<'_>,
    open: impl FnOnce(u64) -> Result<Arc<Store>, EngineError>,
) -> Result<Imported, ImportError> {
    let frames = || S2FrameReader::new(BufReader::with_capacity(READ_BYTES, input()));
    let mut begun = frames();
    let mut magic = [0; format::MAGIC.len()];
    begun.read_exact(&mut magic).map_err(refused)?;
    if magic == *format::MAGIC {
        import_entries(ArchiveReader::new(begun), terms, open)
    } else {
        import_legacy(frames, terms, open)
    }
}

fn import_legacy<R: Read>(
    frames: impl Fn() -> R,
    terms: &Terms<'_>,
    open: impl FnOnce(u64) -> Result<Arc<Store>, EngineError>,
) -> Result<Imported, ImportError> {
    let name = &terms.settings.name;
    let survey = legacy_format::survey(frames(), name)?;
    let known = [
        terms.first_sequence,
        survey.first_sequence,
        terms.settings.first_sequence,
    ];
    let first_sequence = known.into_iter().find(|first| *first > 0).unwrap_or(1);
    let last_sequence = terms.last_sequence.max(survey.last_sequence);
    if first_sequence > SEQUENCE_MAX || last_sequence > SEQUENCE_MAX {
        let reason = "the state says sequences beyond all sequences";
        return Err(ImportError::Refused(reason.to_owned()));
    }
    let mut filling = ImportedStore::new(terms, open(first_sequence)?);
    legacy_format::for_each_message(frames(), name, &survey, first_sequence, |message| {
        check_stopped(terms)?;
        filling.append_archived(message)
    })?;
    filling.finish(last_sequence)?;
    Ok(Imported {
        store: filling.store,
        consumers: Vec::new(),
        consumers_lost: survey.consumers,
        created: survey.created,
    })
}

fn refused(error: std::io::Error) -> ImportError {
    let reason = match error.kind() {
        std::io::ErrorKind::UnexpectedEof => ArchiveError::Truncated,
        _ => ArchiveError::Read(error),
    };
    reason.into()
}

fn import_entries(
    mut archive: ArchiveReader<impl Read>,
    terms: &Terms<'_>,
    open: impl FnOnce(u64) -> Result<Arc<Store>, EngineError>,
) -> Result<Imported, ImportError> {
    let state: ArchivedStreamState = serde_json::from_slice(archive.state()?)
        .map_err(|error| ImportError::Refused(format!("error in state.json: {error}")))?;
    if state.first_seq > SEQUENCE_MAX || state.last_seq > SEQUENCE_MAX {
        let reason = "error in state.json: sequences are beyond all sequences";
        return Err(ImportError::Refused(reason.to_owned()));
    }
    if state.bytes > terms.stored_bytes_max {
        return Err(ImportError::Exceeded);
    }
    let mut consumers = Vec::new();
    let mut consumers_bytes = 0;
    for _ in 0..state.consumer_count {
        check_stopped(terms)?;
        let (name, body) = archive.consumer()?;
        consumers_bytes += name.len() + body.len();
        if consumers_bytes > CONSUMERS_BYTES_MAX {
            let reason = format!("its consumers take more than {CONSUMERS_BYTES_MAX} bytes");
            return Err(ImportError::Refused(reason));
        }
        consumers.push(read_consumer(name, body)?);
    }
    let first_sequence = match state.first_seq {
        0 => terms.settings.first_sequence,
        first => first,
    };
    archive.expect_from(first_sequence);
    let mut filling = ImportedStore::new(terms, open(first_sequence)?);
    while let Some(message) = archive.message()? {
        check_stopped(terms)?;
        filling.append_archived(&message)?;
    }
    filling.finish(state.last_seq)?;
    Ok(Imported {
        store: filling.store,
        consumers,
        consumers_lost: 0,
        created: String::new(),
    })
}

fn check_stopped(terms: &Terms<'_>) -> Result<(), ImportError> {
    match terms.stopped.load(Ordering::Acquire) {
        true => Err(ImportError::Stopped),
        false => Ok(()),
    }
}

fn read_consumer(name: &[u8], body: &[u8]) -> Result<ArchivedConsumer, ImportError> {
    let shown = subject::quoted(name);
    let is_name = !name.is_empty()
        && !name.iter().any(|byte| {
            matches!(
                byte,
                b' ' | b'\t' | b'\r' | b'\n' | 0x0c | b'.' | b'*' | b'>' | b'/' | b'\\'
            )
        });
    let refuse = |reason: String| Err(ImportError::Refused(reason));
    if !is_name {
        return refuse(format!("no consumer can be named {shown}"));
    }
    match serde_json::from_slice::<ConsumerForm>(body) {
        Err(error) => refuse(format!("failed to decode consumer {shown} state: {error}")),
        Ok(consumer) if consumer.config.is_none() => {
            refuse(format!("consumer {shown} is missing config"))
        }
        Ok(consumer) if consumer.state.is_none() => {
            refuse(format!("consumer {shown} is missing state"))
        }
        Ok(_) => match serde_json::from_slice::<RawConsumer<'_>>(body) {
            Err(error) => refuse(format!("failed to decode consumer {shown} state: {error}")),
            Ok(raw) => Ok(ArchivedConsumer {
                name: String::from_utf8_lossy(name).into_owned(),
                config: raw.config.get().to_owned(),
                state: raw.state.get().to_owned(),
            }),
        },
    }
}

/// A store that is being filled.
pub struct ImportedStore<'a> {
    terms: &'a Terms<'a>,
    store: Arc<Store>,
    resets: u64,
    last_time_ns: i64,
    stored_bytes: u64,
    /// Not yet committed.
    waiting_bytes: u64,
    /// Since the last maintenance.
    kept_up_bytes: u64,
}

impl<'a> ImportedStore<'a> {
    pub fn new(terms: &'a Terms<'a>, store: Arc<Store>) -> Self {
        Self {
            terms,
            resets: store.resets(),
            store,
            last_time_ns: 0,
            stored_bytes: 0,
            waiting_bytes: 0,
            kept_up_bytes: 0,
        }
    }

    /// Takes the next message. One whose time is over is passed over.
    pub fn append_archived(&mut self, message: &ArchivedMessage<'_>) -> Result<(), ImportError> {
        let settings = self.terms.settings;
        let sequence = message.sequence;
        let own_bytes = message.headers.len() + message.payload.len();
        let refuse = |what: &str| {
            let reason = format!("message sequence {sequence} {what}");
            Err(ImportError::Refused(reason))
        };
        if own_bytes > settings.payload_bytes_max {
            return refuse("exceeds maximum payload size");
        }
        if settings
            .message_bytes_max
            .is_some_and(|most| own_bytes as u64 > most)
        {
            return refuse("exceeds maximum message size");
        }
        let headers = PublishHeaders::read(message.headers);
        let Ok(time_to_live) = TimeToLive::read(headers.time_to_live.unwrap_or_default()) else {
            return refuse("has no valid time to live");
        };
        let expires_ns = time_to_live.and_then(|living| living.expiry_ns(message.time_ns));
        if expires_ns.is_some_and(|expires_ns| expires_ns < self.terms.now_ns) {
            return Ok(());
        }
        self.append(
            &NewMessage {
                subject: message.subject,
                headers: message.headers,
                payload: message.payload,
                time_ns: message.time_ns,
                expires_ns: expires_ns.filter(|_| settings.allow_time_to_live),
            },
            sequence,
        )
    }

    fn append(&mut self, message: &NewMessage<'_>, sequence: u64) -> Result<(), ImportError> {
        let counted = self.store.counting().bytes(
            message.subject.len(),
            message.headers.len(),
            message.payload.len(),
        );
        self.stored_bytes += counted;
        if self.stored_bytes > self.terms.stored_bytes_max {
            return Err(ImportError::Exceeded);
        }
        let appended = self
            .store
            .append_following(message, Some(sequence), self.resets)?;
        if appended.is_none() {
            let reason = format!("message sequence {sequence} out of order");
            return Err(ImportError::Refused(reason));
        }
        self.last_time_ns = self.last_time_ns.max(message.time_ns);
        self.waiting_bytes += counted;
        if self.waiting_bytes >= COMMIT_BYTES {
            self.commit()?;
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<(), ImportError> {
        self.store.commit()?;
        self.kept_up_bytes += std::mem::take(&mut self.waiting_bytes);
        if self.kept_up_bytes >= MAINTENANCE_BYTES {
            self.kept_up_bytes = 0;
            while self.store.maintain()? {}
        }
        Ok(())
    }

    /// Skips what the stream had lost after its last message, and makes everything durable.
    pub fn finish(&mut self, last_sequence: u64) -> Result<(), ImportError> {
        self.commit()?;
        if last_sequence > self.store.messages().counts().last_sequence {
            if self.store.messages().counts().messages == 0 {
                self.store.advance(last_sequence + 1).map(drop)?;
            } else {
                let placeholder = NewMessage {
                    subject: PLACEHOLDER,
                    time_ns: self.last_time_ns,
                    ..NewMessage::default()
                };
                let at = Some(last_sequence);
                self.store.append_following(&placeholder, at, self.resets)?;
                self.store.remove_staged(last_sequence)?;
            }
            self.commit()?;
        }
        self.store.sync()?;
        Ok(())
    }
}

#[cfg(test)]
#[path = "import_tests.rs"]
mod tests;
