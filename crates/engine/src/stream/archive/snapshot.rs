//! A snapshot under way: a stream leaves the server as an archive, in chunks, no faster than its receiver acknowledges them.
//!
//! Every full chunk carries a reply subject; whatever comes there acknowledges one chunk. The last chunk is shorter and carries none. An empty
//! message says how it ended: without a status if there was no full chunk, else 204, 408 where the receiver does not follow, 500 where we fail.
//!
//! Invariant: at most `chunks_in_flight_max` chunks wait for their acknowledgements, and one is being made; nothing else of the stream is in memory.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde::Deserialize;

use super::format::{ArchiveWriter, NewEntry, STATE_NAME};
use crate::common::clock::system_ns;
use crate::common::error::EngineError;
use crate::consumer::journal::archived_state;
use crate::routing::account::Account;
use crate::routing::sender::{Outgoing, Senders};
use crate::routing::sink::Sink;
use crate::routing::subscription::{Receiver, Restrictions, Subscription};
use crate::stream::read::credits::Credits;
use crate::stream::stream::Stream;
use crate::stream::usage::shares::HeldShare;

/// nats-server's own bounds; the chunk must fit into one message.
const CHUNK_BYTES_MIN: usize = 1024;
const CHUNK_BYTES_MAX: usize = 1024 * 1024;
const WINDOW_BYTES_MAX: usize = 32 * 1024 * 1024;

/// How long a receiver may take to subscribe after it has asked.
const INTEREST_WAIT_MAX: Duration = Duration::from_secs(2);

/// How often that is checked.
const INTEREST_INTERVAL: Duration = Duration::from_millis(10);

/// How long the receiver may take to acknowledge anything.
const ACKNOWLEDGEMENT_WAIT_MAX: Duration = Duration::from_secs(5);

/// How often a snapshot that waits checks whether it must stop.
const STOP_INTERVAL: Duration = Duration::from_millis(100);

const COMPLETE: &[u8] = b"NATS/1.0 204\r\n\r\n";
const NO_INTEREST: &[u8] = b"NATS/1.0 408 No Interest\r\n\r\n";
const NO_FLOW: &[u8] = b"NATS/1.0 408 No Flow Response\r\n\r\n";

/// What is asked for. Python has checked it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SnapshotRequest {
    pub id: String,
    pub deliver_subject: String,
    pub chunk_bytes: usize,
    pub window_bytes: usize,
    /// The state of the stream as the archive says it, and the last message that belongs to it.
    pub state: String,
    pub last_sequence: u64,
}

/// A consumer to put into the archive, with its configuration as JSON.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WantedConsumer {
    name: String,
    config: String,
}

/// Why a snapshot ended before its end.
#[derive(Debug, Clone, PartialEq, Eq)]
enum SnapshotFailure {
    NoInterest,
    NoFlow,
    Other(String),
}

impl SnapshotFailure {
    /// As the receiver gets it.
    fn header(&self) -> Vec<u8> {
        match self {
            Self::NoInterest => NO_INTEREST.to_vec(),
            Self::NoFlow => NO_FLOW.to_vec(),
            Self::Other(reason) => {
                let line: String = reason
                    .chars()
                    .map(|letter| if letter.is_control() { ' ' } else { letter })
                    .collect();
                format!("NATS/1.0 500 {line}\r\n\r\n").into_bytes()
            }
        }
    }

    /// As the advisory reports it.
    fn text(self) -> String {
        match self {
            Self::NoInterest => "no interest".to_owned(),
            Self::NoFlow => "no flow response".to_owned(),
            Self::Other(reason) => reason,
        }
    }
}

pub struct Snapshot {
    request: SnapshotRequest,
    stream: Arc<Stream>,
    senders: Arc<Senders>,
    credits: Arc<Credits>,
    /// Names of entries, and what the archive says of each consumer: as it stood before the first chunk.
    consumers: Mutex<Vec<(String, String)>>,
    stopped: AtomicBool,
    /// Free again when it has ended.
    place: Mutex<Option<HeldShare>>,
}

impl Snapshot {
    pub fn new(
        request: SnapshotRequest,
        stream: Arc<Stream>,
        senders: Arc<Senders>,
        place: HeldShare,
    ) -> Arc<Self> {
        Arc::new(Self {
            request,
            stream,
            senders,
            credits: Arc::default(),
            consumers: Mutex::default(),
            stopped: AtomicBool::new(false),
            place: Mutex::new(Some(place)),
        })
    }

    /// Notes how consumers stand. One that is gone meanwhile is not in the archive.
    pub fn add_consumers(&self, wanted: &[WantedConsumer]) -> Result<(), EngineError> {
        for WantedConsumer { name, config } in wanted {
            let Some(consumer) = self.stream.consumers().find(name) else {
                continue;
            };
            let last_sequence = self.request.last_sequence;
            let state = consumer
                .with_core(|core, _, _| archived_state::write(core.acks(), last_sequence))
                .map_err(|error| EngineError::Options(error.to_string()))?;
            let said = format!(r#"{{"config":{config},"state":{state}}}"#);
            self.consumers
                .lock()
                .push((format!("consumers/{name}"), said));
        }
        Ok(())
    }

    /// Gives its place to another.
    pub fn leave_place(&self) {
        drop(self.place.lock().take());
    }

    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
    }

    fn account(&self) -> &Arc<Account> {
        &self.stream.account
    }

    /// Sends everything; returns what went wrong, nothing if it is empty. Takes as long as the receiver does.
    pub fn run(&self) -> String {
        let name = &self.stream.settings().name;
        let subject = format!("$JS.SNAPSHOT.ACK.{name}.{}", self.request.id);
        let subscription = Arc::new(Subscription::new(
            Receiver::Sink(Arc::clone(&self.credits) as Arc<dyn Sink>),
            format!("{subject}.>").as_bytes(),
            None,
            b"",
            Restrictions::default(),
        ));
        self.account().subscribe(Arc::clone(&subscription));
        let mut chunks = SnapshotChunks::new(self, subject);
        let sent = self.await_interest().and_then(|()| {
            let written = self.write(&mut chunks);
            written.map_err(|error| match chunks.failure.take() {
                Some(failure) => failure,
                None => SnapshotFailure::Other(error.to_string()),
            })
        });
        self.account().unsubscribe(&subscription);
        let header = match &sent {
            Ok(()) if chunks.index > 0 => COMPLETE.to_vec(),
            Ok(()) => Vec::new(),
            Err(failure) => failure.header(),
        };
        self.send(None, &header, b"");
        sent.err().map(SnapshotFailure::text).unwrap_or_default()
    }

    /// Waits for a subscription to exactly this subject: a client may receive its answers by a wildcard, and subscribe
    /// for the chunks only after the answer. A client with a wildcard alone is served when the wait is over.
    fn await_interest(&self) -> Result<(), SnapshotFailure> {
        let begun = Instant::now();
        let subject = self.request.deliver_subject.as_bytes();
        loop {
            let (routes, _) = self.account().find(subject);
            let members = routes.groups.iter().flat_map(|group| &group.members);
            let mut all = routes.plain.iter().chain(members);
            if all.any(|subscription| *subscription.subject == *subject) {
                return Ok(());
            }
            if begun.elapsed() > INTEREST_WAIT_MAX || self.stopped.load(Ordering::Acquire) {
                let is_heard = !routes.plain.is_empty() || !routes.groups.is_empty();
                return if is_heard {
                    Ok(())
                } else {
                    Err(SnapshotFailure::NoInterest)
                };
            }
            std::thread::sleep(INTEREST_INTERVAL);
        }
    }

    fn write(&self, chunks: &mut SnapshotChunks<'_>) -> io::Result<()> {
        let encoder = snap::write::FrameEncoder::new(&mut *chunks);
        let mut archive = ArchiveWriter::new(encoder)?;
        archive.write(&NewEntry {
            name: STATE_NAME,
            time_ns: system_ns(),
            payload: self.request.state.as_bytes(),
            ..NewEntry::default()
        })?;
        for (name, said) in &std::mem::take(&mut *self.consumers.lock()) {
            archive.write(&NewEntry {
                name: name.as_bytes(),
                time_ns: system_ns(),
                payload: said.as_bytes(),
                ..NewEntry::default()
            })?;
        }
        let mut outcome = Ok(());
        let scanned = self.stream.store().messages().scan(0, |record| {
            if record.sequence > self.request.last_sequence {
                return false;
            }
            outcome = archive.write(&NewEntry {
                name: record.subject,
                time_ns: record.time_ns,
                sequence: record.sequence,
                headers: record.headers,
                payload: record.payload,
            });
            outcome.is_ok()
        });
        outcome?;
        scanned.map_err(io::Error::other)?;
        let encoder = archive.finish()?;
        let chunks = encoder
            .into_inner()
            .map_err(|error| io::Error::other(error.to_string()))?;
        chunks.finish();
        Ok(())
    }

    fn send(&self, reply: Option<&[u8]>, header: &[u8], payload: &[u8]) -> u32 {
        let outgoing = Outgoing {
            subject: self.request.deliver_subject.as_bytes(),
            reply,
            header,
            payload,
        };
        self.senders
            .with(|sender| sender.send(self.account(), &outgoing))
    }
}

/// Where the archive is written to: it leaves in chunks of one size.
struct SnapshotChunks<'a> {
    snapshot: &'a Snapshot,
    /// What the reply subjects begin with.
    subject: String,
    chunk: Vec<u8>,
    chunk_bytes: usize,
    in_flight_max: usize,
    /// Of the last full chunk.
    index: u64,
    failure: Option<SnapshotFailure>,
}

impl<'a> SnapshotChunks<'a> {
    fn new(snapshot: &'a Snapshot, subject: String) -> Self {
        let request = &snapshot.request;
        let chunk_bytes = request.chunk_bytes.clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX);
        let window_bytes = request.window_bytes.clamp(chunk_bytes, WINDOW_BYTES_MAX);
        Self {
            snapshot,
            subject,
            chunk: Vec::with_capacity(chunk_bytes),
            chunk_bytes,
            in_flight_max: window_bytes / chunk_bytes,
            index: 0,
            failure: None,
        }
    }

    /// Sends a full chunk as soon as there is room in the window.
    fn send(&mut self) -> Result<(), SnapshotFailure> {
        self.await_room()?;
        self.index += 1;
        let reply = format!("{}.{}.{}", self.subject, self.chunk.len(), self.index);
        self.snapshot.credits.send();
        let receivers = self.snapshot.send(Some(reply.as_bytes()), b"", &self.chunk);
        self.chunk.clear();
        match receivers {
            0 => Err(SnapshotFailure::NoInterest),
            _ => Ok(()),
        }
    }

    fn await_room(&self) -> Result<(), SnapshotFailure> {
        let begun = Instant::now();
        while !self
            .snapshot
            .credits
            .wait(self.in_flight_max, STOP_INTERVAL)
        {
            if self.snapshot.stopped.load(Ordering::Acquire) {
                return Err(SnapshotFailure::Other(
                    "the server is shutting down".to_owned(),
                ));
            }
            if begun.elapsed() >= ACKNOWLEDGEMENT_WAIT_MAX {
                return Err(SnapshotFailure::NoFlow);
            }
        }
        Ok(())
    }

    /// Sends what is left, which nobody has to acknowledge.
    fn finish(&mut self) {
        if !self.chunk.is_empty() {
            self.snapshot.send(None, b"", &self.chunk);
        }
    }
}

impl Write for SnapshotChunks<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.failure.is_some() || self.snapshot.stopped.load(Ordering::Acquire) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let count = bytes.len().min(self.chunk_bytes - self.chunk.len());
        self.chunk.extend_from_slice(&bytes[..count]);
        if self.chunk.len() == self.chunk_bytes {
            if let Err(failure) = self.send() {
                self.failure = Some(failure);
                return Err(io::ErrorKind::BrokenPipe.into());
            }
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
