//! A scan under way: a range of a stream leaves the server as an Arrow stream, no faster than its reader takes it.
//!
//! The bytes of all chunks together are one stream of Arrow's IPC format. Every chunk has a reply subject, and whatever comes there says that one more may
//! be sent. Where a chunk begins a batch (or the schema, or the end mark), its headers say how many bytes that has, and which sequences. An empty
//! message with a status ends it: 204 with the number of rows, 408 where the reader does not follow, 500 where we fail.
//!
//! Invariant: at most `WINDOW_BYTES` wait to be taken and one batch is being made; nothing else of the stream is in memory.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::writer::StreamEncoder;
use arrow_schema::ArrowError;
use serde::Deserialize;

use super::credits::Credits;
use crate::bulk::columns::{Columns, Row};
use crate::bulk::header_block::HeaderBlock;
use crate::bulk::schema::Column;
use crate::routing::sender::{Outgoing, Senders};
use crate::routing::sink::Sink;
use crate::routing::subscription::{Receiver, Restrictions, Subscription};
use crate::storage::format::record::Record;
use crate::storage::message::StoreError;
use crate::storage::store::walking::{Walk, WalkStep};
use crate::stream::stream::Stream;

/// A chunk is well below what a socket's buffers hold, so several arrive with one read.
const CHUNK_BYTES: usize = 128 * 1024;

/// What may be on its way: enough for a reader that is some milliseconds away.
const WINDOW_BYTES: usize = 8 * 1024 * 1024;

const IN_FLIGHT_MAX: usize = WINDOW_BYTES / CHUNK_BYTES;

/// A batch has at most this many rows and bytes; a larger message has one of its own.
const BATCH_ROWS_MAX: usize = 8192;
const BATCH_BYTES_MAX: usize = 8 * 1024 * 1024;

/// How long a reader may pause: it may have a slow receiver of its own. Until then it holds a place of its account's share.
const IDLE_MAX: Duration = Duration::from_secs(60);

/// How often to check whether the reader is still there, and whether the server stops.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// Messages that are read ahead where subjects are looked at.
const AHEAD: usize = 1024;

/// What is asked for. Python has checked where it goes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScanRequest {
    pub id: String,
    pub deliver_subject: String,
    pub start: u64,
    /// Not included.
    pub end: u64,
    pub columns: Vec<Column>,
    #[serde(default)]
    pub subjects: Vec<String>,
    #[serde(default)]
    pub batch_rows: usize,
    #[serde(default)]
    pub batch_bytes: usize,
}

/// Why a scan ended before its end.
enum ScanFailure {
    /// There is no subscriber that it could be reported to.
    Gone,
    Idle,
    Stopping,
    Other(String),
}

impl From<ArrowError> for ScanFailure {
    fn from(error: ArrowError) -> Self {
        Self::Other(error.to_string())
    }
}

impl ScanFailure {
    fn status(&self) -> String {
        match self {
            Self::Gone => "408 Nobody Listens".to_owned(),
            Self::Idle => "408 Nothing Was Taken".to_owned(),
            Self::Stopping => "503 Server Is Shutting Down".to_owned(),
            Self::Other(reason) => {
                let line: String = reason
                    .chars()
                    .map(|letter| if letter.is_control() { ' ' } else { letter })
                    .collect();
                format!("500 {line}")
            }
        }
    }
}

pub struct StreamScan {
    request: ScanRequest,
    stream: Arc<Stream>,
    senders: Arc<Senders>,
    credits: Arc<Credits>,
    stopped: AtomicBool,
}

impl StreamScan {
    pub fn new(request: ScanRequest, stream: Arc<Stream>, senders: Arc<Senders>) -> Arc<Self> {
        Arc::new(Self {
            request,
            stream,
            senders,
            credits: Arc::default(),
            stopped: AtomicBool::new(false),
        })
    }

    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
    }

    /// Sends everything. Takes as long as the reader does.
    pub fn run(&self) {
        let flow = format!("$JS.FC.{}.{}", self.stream.settings().name, self.request.id);
        let subscription = Arc::new(Subscription::new(
            Receiver::Sink(Arc::clone(&self.credits) as Arc<dyn Sink>),
            format!("{flow}.*").as_bytes(),
            None,
            b"",
            Restrictions::default(),
        ));
        self.stream.account.subscribe(Arc::clone(&subscription));
        let sent = ScanChunks::new(self, flow).and_then(|mut chunks| {
            self.read(&mut chunks)?;
            chunks.finish()
        });
        self.stream.account.unsubscribe(&subscription);
        let header = match sent {
            Ok(rows) => format!("NATS/1.0 204 EOB\r\nJetlake-Rows: {rows}\r\n\r\n"),
            Err(failure) => format!("NATS/1.0 {}\r\n\r\n", failure.status()),
        };
        self.send(None, header.as_bytes(), b"");
    }

    fn read(&self, chunks: &mut ScanChunks<'_>) -> Result<(), ScanFailure> {
        let store = self.stream.store();
        let mut outcome = Ok(());
        if self.request.subjects.is_empty() {
            let scanned = store.messages().scan(self.request.start, |record| {
                if record.sequence >= self.request.end {
                    return false;
                }
                outcome = chunks.push(record);
                outcome.is_ok()
            });
            scanned.map_err(|error| ScanFailure::Other(error.to_string()))?;
            return outcome;
        }
        let patterns: Vec<Vec<u8>> = self
            .request
            .subjects
            .iter()
            .map(|subject| subject.as_bytes().to_vec())
            .collect();
        let mut walk = Walk::default();
        let mut from = self.request.start;
        loop {
            let step = walk.step(store.messages(), &patterns, from, AHEAD, |record| {
                if record.sequence < self.request.end {
                    outcome = chunks.push(record);
                }
                record.sequence
            });
            let failed = |error: StoreError| ScanFailure::Other(error.to_string());
            match step.map_err(failed)? {
                WalkStep::Message(sequence) if sequence < self.request.end => from = sequence + 1,
                WalkStep::Message(_) | WalkStep::End(_) => return outcome,
                WalkStep::Unread => walk.load().map_err(failed)?,
            }
            std::mem::replace(&mut outcome, Ok(()))?;
        }
    }

    fn send(&self, reply: Option<&[u8]>, header: &[u8], payload: &[u8]) -> u32 {
        let outgoing = Outgoing {
            subject: self.request.deliver_subject.as_bytes(),
            reply,
            header,
            payload,
        };
        self.senders
            .with(|sender| sender.send(&self.stream.account, &outgoing))
    }

    fn is_listened_to(&self) -> bool {
        let subject = self.request.deliver_subject.as_bytes();
        let (routes, _) = self.stream.account.find(subject);
        !routes.plain.is_empty() || !routes.groups.is_empty()
    }
}

/// Where messages are gathered into batches, and batches are cut into chunks.
struct ScanChunks<'a> {
    scan: &'a StreamScan,
    /// What the reply subjects begin with.
    flow: String,
    columns: Columns,
    encoder: Option<StreamEncoder>,
    batch_rows: usize,
    batch_bytes: usize,
    first_sequence: u64,
    last_sequence: u64,
    rows: u64,
    index: u64,
    chunk: Vec<u8>,
}

impl<'a> ScanChunks<'a> {
    fn new(scan: &'a StreamScan, flow: String) -> Result<Self, ScanFailure> {
        let request = &scan.request;
        let within = |wanted: usize, most: usize| match wanted {
            0 => most,
            wanted => wanted.min(most),
        };
        let columns = Columns::new(&scan.stream.settings().name, &request.columns);
        let encoder = StreamEncoder::try_new(columns.schema())?;
        Ok(Self {
            scan,
            flow,
            columns,
            encoder: Some(encoder),
            batch_rows: within(request.batch_rows, BATCH_ROWS_MAX),
            batch_bytes: within(request.batch_bytes, BATCH_BYTES_MAX),
            first_sequence: 0,
            last_sequence: 0,
            rows: 0,
            index: 0,
            chunk: Vec::with_capacity(CHUNK_BYTES),
        })
    }

    fn push(&mut self, record: &Record<'_>) -> Result<(), ScanFailure> {
        let row = Row {
            subject: record.subject,
            sequence: record.sequence,
            time_ns: record.time_ns,
            header_lines: HeaderBlock::read(record.headers).lines,
            payload: Some(record.payload),
        };
        let is_full = self.columns.rows() >= self.batch_rows
            || self.columns.size_bytes() + row.size_bytes() > self.batch_bytes;
        if is_full {
            self.send_batch()?;
        }
        if self.columns.rows() == 0 {
            self.first_sequence = record.sequence;
        }
        self.last_sequence = record.sequence;
        self.columns.append(&row);
        Ok(())
    }

    fn send_batch(&mut self) -> Result<(), ScanFailure> {
        if self.columns.rows() == 0 {
            return Ok(());
        }
        let batch: RecordBatch = self.columns.finish_batch()?;
        self.rows += batch.num_rows() as u64;
        let Some(encoder) = &mut self.encoder else {
            return Ok(());
        };
        let buffers = encoder.encode(&batch)?;
        self.send_piece(&buffers)
    }

    /// Sends the rest and the end mark; returns how many rows there were.
    fn finish(&mut self) -> Result<u64, ScanFailure> {
        self.send_batch()?;
        if let Some(encoder) = self.encoder.take() {
            let buffers = encoder.finish()?;
            self.send_piece(&buffers)?;
        }
        Ok(self.rows)
    }

    fn send_piece(&mut self, buffers: &[Buffer]) -> Result<(), ScanFailure> {
        let size: usize = buffers.iter().map(Buffer::len).sum();
        let mut header = format!(
            "NATS/1.0\r\nJetlake-Size: {size}\r\nJetlake-First: {}\r\nJetlake-Last: {}\r\n\r\n",
            self.first_sequence, self.last_sequence
        );
        for buffer in buffers {
            let mut rest = buffer.as_slice();
            while !rest.is_empty() {
                let count = rest.len().min(CHUNK_BYTES - self.chunk.len());
                self.chunk.extend_from_slice(&rest[..count]);
                rest = &rest[count..];
                if self.chunk.len() == CHUNK_BYTES {
                    self.send_chunk(&header)?;
                    header.clear();
                }
            }
        }
        if !self.chunk.is_empty() {
            self.send_chunk(&header)?;
        }
        Ok(())
    }

    fn send_chunk(&mut self, header: &str) -> Result<(), ScanFailure> {
        self.await_room()?;
        self.index += 1;
        let reply = format!("{}.{}", self.flow, self.index);
        self.scan.credits.send();
        let receivers = self
            .scan
            .send(Some(reply.as_bytes()), header.as_bytes(), &self.chunk);
        self.chunk.clear();
        match receivers {
            0 => Err(ScanFailure::Gone),
            _ => Ok(()),
        }
    }

    fn await_room(&self) -> Result<(), ScanFailure> {
        let credits = &self.scan.credits;
        let mut taken = credits.taken();
        let mut taken_at = Instant::now();
        while !credits.wait(IN_FLIGHT_MAX, LOOK_INTERVAL) {
            if self.scan.stopped.load(Ordering::Acquire) {
                return Err(ScanFailure::Stopping);
            }
            if !self.scan.is_listened_to() {
                return Err(ScanFailure::Gone);
            }
            let now = credits.taken();
            if now > taken {
                taken = now;
                taken_at = Instant::now();
            }
            if taken_at.elapsed() >= IDLE_MAX {
                return Err(ScanFailure::Idle);
            }
        }
        match self.scan.stopped.load(Ordering::Acquire) {
            true => Err(ScanFailure::Stopping),
            false => Ok(()),
        }
    }
}
