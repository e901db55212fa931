//! `$JS.API.STREAM.UPLOAD.COMMIT.<stream>` and `….ABORT.<stream>`: uploads become messages of the stream, all at once, or are dropped.
//!
//! A commit names the query, the number of its batch, and the uploads with how many messages each has. If the stream has that batch, or a later one of the query,
//! already, nothing is stored and `repeated` is true. It is answered when everything is on disk, by a job of its own: no connection and no other
//! request waits for it. Invariant: at most `WAITING_MAX` requests and `WAITING_BYTES_MAX` of a stream wait; what comes beyond is dropped, as its sender will
//! find by its time-out.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock, Weak};

use ahash::AHashSet;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::committed_batches::{CommittedBatch, CommittedBatches};
use super::uploads;
use super::uploads::refused;
use crate::common::permissions::Permissions;
use crate::routing::router::Publisher;
use crate::routing::sender::Outgoing;
use crate::routing::sink::Sink;
use crate::routing::staging::Staging;
use crate::storage::commit::scheduler::StorageThreads;
use crate::storage::commit::work_pool::Job;
use crate::storage::message::{Appended, StoreError, Ticket};
use crate::storage::store::Store;
use crate::stream::batch::commit::Unstaged;
use crate::stream::publish::acknowledgement::Refusal;
use crate::stream::publish::ingest::store_refusal;
use crate::stream::remembered::FileLocation;
use crate::stream::stream::Stream;
use crate::wire::stored_headers;
use crate::wire::trusted_headers;
use crate::wire::upload_header::is_name;
use crate::wire::Publish;

/// Requests that wait for one stream at most.
const WAITING_MAX: usize = 1000;

/// The same in bytes: a request may be as long as any message.
const WAITING_BYTES_MAX: usize = 16 * 1024 * 1024;

/// How often a commit is tried while publishers fill the store faster than the disk takes it.
const TRIES_MAX: usize = 10;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CommitRequest {
    query: String,
    batch: u64,
    uploads: Vec<NamedUpload>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedUpload {
    id: String,
    messages: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AbortRequest {
    uploads: Vec<String>,
}

#[derive(Default, Serialize)]
struct CommitAnswer<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<CommitFailure<'a>>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    commit: Option<CommitOutcome>,
    #[serde(skip_serializing_if = "Option::is_none")]
    success: Option<bool>,
}

#[derive(Serialize)]
struct CommitFailure<'a> {
    code: u16,
    err_code: u16,
    description: &'a str,
}

/// What became of a commit.
#[derive(Serialize)]
struct CommitOutcome {
    batch: u64,
    /// It, or a later one, was there already.
    repeated: bool,
    messages: u64,
    /// The sequence of the last message.
    last: u64,
}

struct UploadsRequest {
    /// The sender, whose uploads the request is about.
    user: String,
    subject: Vec<u8>,
    reply: Vec<u8>,
    body: Vec<u8>,
    /// What the sender was allowed to do when the request came; `None` is everything.
    permissions: Option<Arc<Permissions>>,
}

#[derive(Default)]
struct WaitingCommit {
    requests: VecDeque<UploadsRequest>,
    bytes: usize,
}

pub struct UploadRequests {
    stream: Weak<Stream>,
    committed: Mutex<CommittedBatches>,
    waiting: Mutex<WaitingCommit>,
    job: OnceLock<Arc<Job>>,
}

impl UploadRequests {
    pub fn new(
        stream: Weak<Stream>,
        name: &str,
        place: Option<FileLocation>,
        threads: &StorageThreads,
    ) -> Arc<Self> {
        let requests = Arc::new(Self {
            stream,
            committed: Mutex::new(CommittedBatches::new(name, place)),
            waiting: Mutex::default(),
            job: OnceLock::new(),
        });
        let weak = Arc::downgrade(&requests);
        let job = threads.committing(move || {
            if let Some(requests) = weak.upgrade() {
                requests.run();
            }
        });
        // Nobody else has it yet.
        let _ = requests.job.set(job);
        requests
    }

    /// Where requests come for a stream.
    pub fn subject(name: &str) -> String {
        format!("$JS.API.STREAM.UPLOAD.*.{name}")
    }

    /// Writes down which batches there are, before messages that say it are removed.
    pub fn save(&self) {
        if let Some(stream) = self.stream.upgrade() {
            // Removing must go on where the disk is full: it makes room. And as long as it is not written, the messages say it.
            let _ = self.committed.lock().save(stream.store());
        }
    }

    /// The stream is closed.
    pub fn close(&self, store: &Store) {
        // What is not written down is found again in the messages.
        let _ = self.committed.lock().close(store);
    }

    /// The clock comes by: what could not be written is tried again.
    pub fn tick(&self) {
        let committed = self.committed.try_lock();
        if committed.is_some_and(|committed| committed.is_unsaved()) {
            self.finish_read();
        }
    }

    fn run(&self) {
        self.save();
        let waiting = std::mem::take(&mut *self.waiting.lock()).requests;
        let Some(stream) = self.stream.upgrade() else {
            return;
        };
        for request in waiting {
            let is_abort = request.subject.starts_with(b"$JS.API.STREAM.UPLOAD.ABORT.");
            let answered = match is_abort {
                true => abort(&stream, &request).map(|()| CommitAnswer {
                    kind: "io.nats.jetstream.api.v1.stream_upload_abort_response",
                    success: Some(true),
                    ..CommitAnswer::default()
                }),
                false => self.commit(&stream, &request).map(|commit| CommitAnswer {
                    kind: "io.nats.jetstream.api.v1.stream_upload_commit_response",
                    commit: Some(commit),
                    ..CommitAnswer::default()
                }),
            };
            let body = match &answered {
                Ok(answer) => serde_json::to_vec(answer),
                Err(refusal) => serde_json::to_vec(&CommitAnswer {
                    kind: "io.nats.jetstream.api.v1.stream_upload_response",
                    error: Some(CommitFailure {
                        code: refusal.code,
                        err_code: refusal.error_code,
                        description: &refusal.description,
                    }),
                    ..CommitAnswer::default()
                }),
            };
            stream.send(&Outgoing {
                subject: &request.reply,
                reply: None,
                header: b"",
                payload: &body.expect("it has nothing that JSON has not"),
            });
        }
    }

    fn commit(&self, stream: &Stream, asked: &UploadsRequest) -> Result<CommitOutcome, Refusal> {
        let request: CommitRequest = read(&asked.body)?;
        if !is_name(&request.query) {
            return Err(refused(
                400,
                "query must be letters, digits, '-', '_' and '.'",
            ));
        }
        let ids: Vec<&str> = request.uploads.iter().map(|upload| &*upload.id).collect();
        let distinct: AHashSet<&str> = ids.iter().copied().collect();
        if distinct.len() < ids.len() {
            return Err(refused(400, "an upload is named twice: name each once"));
        }
        stream.check_uploads(&asked.user, &ids, asked.permissions.as_deref())?;
        let mut committed = self.committed.lock();
        let last = committed.last(stream.store(), &request.query);
        let last = last.map_err(|error| store_refusal(&error))?;
        if let Some(last) = last.filter(|last| last.batch >= request.batch) {
            stream.drop_uploads(&asked.user, &ids);
            return Ok(CommitOutcome {
                batch: request.batch,
                repeated: true,
                messages: 0,
                last: last.sequence,
            });
        }
        let mark = committed.mark(&request.query, request.batch);
        let uploads = request.uploads.iter();
        let uploads: Vec<(&str, u64)> = uploads.map(|one| (&*one.id, one.messages)).collect();
        if uploads.iter().all(|(_, messages)| *messages == 0) {
            return Err(refused(
                400,
                "there is no message to commit: leave the batch out",
            ));
        }
        let sequence = store_durably(stream, &asked.user, &uploads, mark.as_bytes())?;
        let batch = CommittedBatch {
            batch: request.batch,
            sequence,
        };
        committed.add(&request.query, batch);
        drop(committed);
        self.save();
        stream.drop_uploads(&asked.user, &ids);
        Ok(CommitOutcome {
            batch: request.batch,
            repeated: false,
            // Each is what its upload had, so that they add up.
            messages: uploads.iter().map(|(_, messages)| messages).sum(),
            last: sequence,
        })
    }
}

fn abort(stream: &Stream, asked: &UploadsRequest) -> Result<(), Refusal> {
    let request: AbortRequest = read(&asked.body)?;
    let ids: Vec<&str> = request.uploads.iter().map(String::as_str).collect();
    stream.check_uploads(&asked.user, &ids, asked.permissions.as_deref())?;
    stream.drop_uploads(&asked.user, &ids);
    Ok(())
}

/// Stores the messages of uploads, and returns the sequence of the last when they are on disk.
fn store_durably(
    stream: &Stream,
    user: &str,
    uploads: &[(&str, u64)],
    mark: &[u8],
) -> Result<u64, Refusal> {
    let store = stream.store();
    for _ in 0..TRIES_MAX {
        let resets = store.resets();
        let mark_line = (trusted_headers::BATCH, mark);
        let staged = match stream.stage_uploads(user, uploads, mark_line) {
            Ok(staged) => staged,
            Err(Unstaged::Store(StoreError::Behind)) => {
                // What others have staged goes first.
                let _ = store.commit();
                stream.commit_soon();
                continue;
            }
            Err(Unstaged::Store(StoreError::TooLarge)) => return Err(uploads::too_large()),
            Err(unstaged) => return Err(unstaged.refusal()),
        };
        let committed = store.commit();
        // Those whose messages went with it are answered.
        stream.commit_soon();
        let ticket = committed
            .as_ref()
            .map_or(Ticket::default(), |done| done.ticket);
        if (store.resets() == resets && ticket >= staged.ticket) || is_there(stream, staged, mark) {
            return Ok(staged.sequence);
        }
        return Err(match committed {
            Err(error) => store_refusal(&error),
            Ok(_) => refused(503, "the disk refused the batch: see the server's log"),
        });
    }
    Err(store_refusal(&StoreError::Behind))
}

/// Whether the last message of a batch is stored: when something was refused, it may have been this batch or another.
fn is_there(stream: &Stream, staged: Appended, mark: &[u8]) -> bool {
    let message = stream
        .store()
        .messages()
        .read(staged.sequence)
        .ok()
        .flatten();
    message.is_some_and(|message| {
        stored_headers::value(message.headers(), trusted_headers::BATCH) == Some(mark)
    })
}

fn read<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Refusal> {
    serde_json::from_slice(body).map_err(|error| refused(400, &format!("invalid JSON: {error}")))
}

impl Sink for UploadRequests {
    fn accept(
        &self,
        publisher: &Publisher<'_>,
        publish: &Publish<'_>,
        _staging: &mut Staging,
    ) -> bool {
        let Some(reply) = publish.reply else {
            return true;
        };
        let stream = self.stream.upgrade();
        let user = stream.and_then(|stream| stream.uploading_user(publisher.connection_id));
        let Some(user) = user else {
            return true;
        };
        let bytes = publish.subject.len() + reply.len() + publish.payload().len();
        let mut waiting = self.waiting.lock();
        let has_room = waiting.bytes + bytes <= WAITING_BYTES_MAX;
        if has_room && waiting.requests.len() < WAITING_MAX {
            waiting.bytes += bytes;
            waiting.requests.push_back(UploadsRequest {
                user,
                subject: publish.subject.to_vec(),
                reply: reply.to_vec(),
                body: publish.payload().to_vec(),
                permissions: publisher.permissions.cloned(),
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
