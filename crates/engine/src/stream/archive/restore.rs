//! A restore under way: the archive of a stream comes in as requests, waits in a file, and becomes a store when it is complete.
//!
//! Each chunk is answered when it is in the file, so that its sender goes no faster than the disk; an empty one says that it was the last. Then the
//! archive is read, and Python decides whether what came of it becomes a stream, and makes its consumers. Its definition is written last: until then
//! nothing of it would survive a start of the server, so an interruption at any moment leaves all of it or nothing.
//!
//! Invariant: what waits in memory is bounded by `WAITING_BYTES_MAX`, what is on disk by what may be stored. After `Over` nothing is left of it.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::import;
use super::import::{ArchivedConsumer, ImportError, Imported, Terms};
use crate::common::clock::system_ns;
use crate::common::events::ArchiveEventKind;
use crate::routing::account::Account;
use crate::routing::router::Publisher;
use crate::routing::sender::{Outgoing, Senders};
use crate::routing::sink::Sink;
use crate::routing::staging::Staging;
use crate::routing::subscription::{Receiver, Restrictions, Subscription};
use crate::storage::commit::work_pool::{Job, WorkPool};
use crate::storage::disk::file_system::File;
use crate::storage::store::Store;
use crate::stream::registry::Streams;
use crate::stream::settings::StreamSettings;
use crate::stream::stream::Stream;
use crate::stream::usage::shares::HeldShare;
use crate::wire::Publish;

/// Chunks that wait for the disk: four times what clients send without an answer.
const WAITING_BYTES_MAX: usize = 32 * 1024 * 1024;

/// The same in chunks, for those that are small.
const WAITING_CHUNKS_MAX: usize = 64 * 1024;

/// A client that sends nothing for this long has given up.
const IDLE_MAX: Duration = Duration::from_secs(5);

/// The file in which the archive waits.
pub const SPOOL_NAME: &str = "archive";

/// What is asked for. Python has checked it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RestoreRequest {
    pub id: String,
    /// Where the chunks come.
    pub subject: String,
    /// What the archive may take on disk while it waits.
    pub spool_bytes_max: u64,
    /// What the messages may count for together.
    pub stored_bytes_max: u64,
    /// The first and the last sequence, as the client remembers them: old archives do not say.
    pub first_sequence: u64,
    pub last_sequence: u64,
}

/// Events for Python.
#[derive(Debug, Default, Serialize)]
struct RestoreDetails<'a> {
    /// Where the answer goes; empty if nobody waits for one.
    reply: &'a str,
    /// Bytes that came.
    bytes: u64,
    /// Consumers that were in the archive, and how many were in a form that is not read.
    consumers: &'a [ArchivedConsumer],
    consumers_lost: u64,
    /// When the stream was made, if the archive knows.
    created: &'a str,
    failure: String,
    /// There would be more than may be stored.
    exceeded: bool,
    /// There is a stream of this name by now.
    taken: bool,
    /// Nothing came for too long.
    stalled: bool,
}

/// The file that the chunks go into.
pub struct Spool {
    pub file: Arc<dyn File>,
    bytes: u64,
}

impl Spool {
    pub fn new(file: Arc<dyn File>) -> Self {
        Self { file, bytes: 0 }
    }
}

/// Reads a spool from its beginning.
struct SpoolReader {
    file: Arc<dyn File>,
    position: u64,
    end: u64,
}

impl Read for SpoolReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = (out.len() as u64).min(self.end - self.position) as usize;
        self.file.read_exact_at(&mut out[..count], self.position)?;
        self.position += count as u64;
        Ok(count)
    }
}

struct UploadedChunk {
    reply: Vec<u8>,
    bytes: Vec<u8>,
}

struct RestoreInbox {
    chunks: VecDeque<UploadedChunk>,
    bytes: usize,
    overflowed: bool,
    active: Instant,
}

enum RestorePhase {
    Receiving,
    Importing,
    /// Python decides.
    Imported(Arc<Store>),
    /// Consumers are made.
    Filling(RestoredStream),
    Over,
}

/// A stream that waits for its consumers: nobody finds it, and it takes no messages.
#[derive(Clone)]
pub struct RestoredStream {
    pub stream: Arc<Stream>,
    /// What is written when they are all durable.
    pub definition: Vec<u8>,
}

pub struct Restore {
    request: RestoreRequest,
    pub account: Arc<Account>,
    pub settings: StreamSettings,
    streams: Weak<Streams>,
    senders: Arc<Senders>,
    inbox: Mutex<RestoreInbox>,
    spool: Mutex<Spool>,
    phase: Mutex<RestorePhase>,
    subscription: Mutex<Option<Arc<Subscription>>>,
    job: OnceLock<Arc<Job>>,
    stopped: AtomicBool,
    /// Free again when nothing is left of it.
    _place: HeldShare,
}

impl Restore {
    pub fn new(
        request: RestoreRequest,
        account: Arc<Account>,
        settings: StreamSettings,
        spool: Spool,
        place: HeldShare,
        streams: &Arc<Streams>,
        pool: &WorkPool,
    ) -> Arc<Self> {
        let restore = Arc::new(Self {
            request,
            account,
            settings,
            streams: Arc::downgrade(streams),
            senders: Arc::clone(&streams.senders),
            inbox: Mutex::new(RestoreInbox {
                chunks: VecDeque::new(),
                bytes: 0,
                overflowed: false,
                active: Instant::now(),
            }),
            spool: Mutex::new(spool),
            phase: Mutex::new(RestorePhase::Receiving),
            subscription: Mutex::default(),
            job: OnceLock::new(),
            stopped: AtomicBool::new(false),
            _place: place,
        });
        let weak = Arc::downgrade(&restore);
        let job = pool.job(move || {
            if let Some(restore) = weak.upgrade() {
                restore.run();
            }
        });
        // Nobody else has it yet.
        let _ = restore.job.set(job);
        restore
    }

    pub fn id(&self) -> &str {
        &self.request.id
    }

    /// Takes chunks from now on.
    pub fn listen(self: &Arc<Self>) {
        let subscription = Arc::new(Subscription::new(
            Receiver::Sink(Arc::clone(self) as Arc<dyn Sink>),
            self.request.subject.as_bytes(),
            None,
            b"",
            Restrictions::default(),
        ));
        *self.subscription.lock() = Some(Arc::clone(&subscription));
        self.account.subscribe(subscription);
    }

    fn stop_listening(&self) {
        if let Some(subscription) = self.subscription.lock().take() {
            self.account.unsubscribe(&subscription);
        }
    }

    /// The server stops: what is being read is not read to its end.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        self.stop_listening();
    }

    /// Gives up if nothing has come for too long.
    pub fn tick(&self) {
        let idle = {
            let inbox = self.inbox.lock();
            inbox.chunks.is_empty() && inbox.active.elapsed() > IDLE_MAX
        };
        if idle && self.leave_receiving(RestorePhase::Over) {
            let failure = format!(
                "restore for stream '{} > {}' is stalled",
                self.account.name, self.settings.name
            );
            self.end(RestoreDetails {
                failure,
                stalled: true,
                ..RestoreDetails::default()
            });
        }
    }

    /// Goes on to another phase, if nobody else has.
    fn leave_receiving(&self, next: RestorePhase) -> bool {
        let mut phase = self.phase.lock();
        let is_receiving = matches!(*phase, RestorePhase::Receiving);
        if is_receiving {
            *phase = next;
        }
        is_receiving
    }

    fn is_receiving(&self) -> bool {
        matches!(*self.phase.lock(), RestorePhase::Receiving)
    }

    fn run(&self) {
        loop {
            let (chunk, overflowed) = {
                let mut inbox = self.inbox.lock();
                let chunk = inbox.chunks.pop_front();
                inbox.bytes -= chunk.as_ref().map_or(0, |chunk| chunk.bytes.len());
                (chunk, inbox.overflowed)
            };
            if self.stopped.load(Ordering::Acquire) || !self.is_receiving() {
                return;
            }
            let Some(UploadedChunk { reply, bytes }) = chunk else {
                if overflowed {
                    self.refuse("chunks came without waiting for the answers to others", b"");
                }
                return;
            };
            if reply.is_empty() {
                let text = format!(
                    "restore for stream '{} > {}' requires reply subject for each chunk",
                    self.account.name, self.settings.name
                );
                return self.refuse(&text, b"");
            }
            if bytes.is_empty() {
                return self.complete(&reply);
            }
            if !self.keep(&bytes, &reply) {
                return;
            }
            self.inbox.lock().active = Instant::now();
            let answer = Outgoing {
                subject: &reply,
                reply: None,
                header: b"",
                payload: b"",
            };
            self.senders
                .with(|sender| sender.send(&self.account, &answer));
        }
    }

    /// Puts a chunk into the file; false if that has ended the restore.
    fn keep(&self, bytes: &[u8], reply: &[u8]) -> bool {
        let mut spool = self.spool.lock();
        let end = spool.bytes + bytes.len() as u64;
        let failure = if end > self.request.spool_bytes_max {
            ImportError::Exceeded
        } else {
            match spool.file.write_all_at(bytes, spool.bytes) {
                Ok(()) => {
                    spool.bytes = end;
                    return true;
                }
                Err(error) => ImportError::Store(error.to_string()),
            }
        };
        drop(spool);
        self.fail_import(&failure, reply);
        false
    }

    /// Everything has come.
    fn complete(&self, reply: &[u8]) {
        if !self.leave_receiving(RestorePhase::Importing) {
            return;
        }
        self.stop_listening();
        let bytes = self.spool.lock().bytes;
        match self.import() {
            Ok(imported) => {
                *self.phase.lock() = RestorePhase::Imported(imported.store);
                let text = String::from_utf8_lossy(reply);
                self.report(
                    ArchiveEventKind::RestoreReady,
                    &RestoreDetails {
                        reply: &text,
                        bytes,
                        consumers: &imported.consumers,
                        consumers_lost: imported.consumers_lost,
                        created: &imported.created,
                        ..RestoreDetails::default()
                    },
                );
            }
            Err(error) => self.fail_import(&error, reply),
        }
    }

    fn import(&self) -> Result<Imported, ImportError> {
        let streams = self.streams.upgrade().ok_or(ImportError::Stopped)?;
        streams.claim(&self.account.name, &self.settings)?;
        let terms = Terms {
            settings: &self.settings,
            stored_bytes_max: self.request.stored_bytes_max,
            first_sequence: self.request.first_sequence,
            last_sequence: self.request.last_sequence,
            now_ns: system_ns(),
            stopped: &self.stopped,
        };
        let input = || {
            let spool = self.spool.lock();
            SpoolReader {
                file: Arc::clone(&spool.file),
                position: 0,
                end: spool.bytes,
            }
        };
        let imported = import::import(input, &terms, |first_sequence| {
            streams.open_restored(&self.account.name, &self.settings, first_sequence)
        });
        if imported.is_err() {
            streams.give_up(&self.account.name, &self.settings);
        }
        imported
    }

    /// The store that was made, once; `None` if there is none or not any more.
    pub fn take_store(&self) -> Option<Arc<Store>> {
        let mut phase = self.phase.lock();
        match std::mem::replace(&mut *phase, RestorePhase::Over) {
            RestorePhase::Imported(store) => Some(store),
            other => {
                *phase = other;
                None
            }
        }
    }

    /// The store has become a stream.
    pub fn fill(&self, filling: RestoredStream) {
        *self.phase.lock() = RestorePhase::Filling(filling);
    }

    /// The stream whose consumers are made; `None` if there is none, or not any more.
    pub fn filling(&self) -> Option<RestoredStream> {
        match &*self.phase.lock() {
            RestorePhase::Filling(filling) => Some(filling.clone()),
            _ => None,
        }
    }

    /// The same, once.
    pub fn take_filling(&self) -> Option<RestoredStream> {
        let filling = self.filling();
        if filling.is_some() {
            *self.phase.lock() = RestorePhase::Over;
        }
        filling
    }

    fn fail_import(&self, error: &ImportError, reply: &[u8]) {
        let reply = String::from_utf8_lossy(reply);
        self.fail(RestoreDetails {
            reply: &reply,
            failure: error.to_string(),
            exceeded: matches!(error, ImportError::Exceeded),
            taken: matches!(error, ImportError::Taken),
            ..RestoreDetails::default()
        });
    }

    fn refuse(&self, reason: &str, reply: &[u8]) {
        self.fail_import(&ImportError::Refused(reason.to_owned()), reply);
    }

    /// Ends it, unless it has ended.
    fn fail(&self, details: RestoreDetails<'_>) {
        let before = std::mem::replace(&mut *self.phase.lock(), RestorePhase::Over);
        if !matches!(before, RestorePhase::Over) {
            self.end(details);
        }
    }

    fn end(&self, details: RestoreDetails<'_>) {
        self.stop_listening();
        let bytes = self.spool.lock().bytes;
        if let Some(streams) = self.streams.upgrade() {
            streams.forget_restore(self);
        }
        self.report(
            ArchiveEventKind::RestoreFailed,
            &RestoreDetails { bytes, ..details },
        );
    }

    fn report(&self, kind: ArchiveEventKind, details: &RestoreDetails<'_>) {
        if let Some(streams) = self.streams.upgrade() {
            streams.tell_archive(kind, self.id(), details);
        }
    }
}

impl Sink for Restore {
    fn accept(
        &self,
        publisher: &Publisher<'_>,
        publish: &Publish<'_>,
        _staging: &mut Staging,
    ) -> bool {
        // The server's own messages are none: an answer must not become a chunk.
        if publisher.connection_id == 0 {
            return true;
        }
        let mut inbox = self.inbox.lock();
        inbox.active = Instant::now();
        let bytes = inbox.bytes + publish.payload().len();
        if bytes > WAITING_BYTES_MAX || inbox.chunks.len() >= WAITING_CHUNKS_MAX {
            inbox.overflowed = true;
        }
        if !inbox.overflowed {
            inbox.bytes = bytes;
            inbox.chunks.push_back(UploadedChunk {
                reply: publish.reply.unwrap_or_default().to_vec(),
                bytes: publish.payload().to_vec(),
            });
        }
        true
    }

    fn finish_read(&self) {
        if let Some(job) = self.job.get() {
            job.schedule();
        }
    }
}
