//! Taking a message into a stream: the checks, the store's staging, and a note of whom to answer when it is durable.
//!
//! Everything here happens under the stream's lock, on the thread that read the message, and never waits for a disk, but for the first message
//! with an id after a start. Invariant: the checks see what will be there when everything staged is committed.

use std::sync::Arc;

use super::acknowledgement::{Refusal, Stored};
use super::delete_marker;
use super::duplicates::Duplicates;
use super::pending::{About, Drained, New, Pending};
use super::publish_checks::{self, Outcome, Publication, Rollup, View};
use super::publish_headers::PublishHeaders;
use super::settings::{Discard, Retention, Settings};
use super::time_to_live::TimeToLive;
use crate::storage::message::{Counts, NewMessage, Progress, StoreError, Ticket, EXPIRES_NEVER_NS};
use crate::storage::store::Store;

/// Messages that wait for their commit at most, unless the configuration says otherwise.
pub const BUFFERED_MESSAGES_MAX: usize = 100_000;

/// The same in bytes.
pub const BUFFERED_BYTES_MAX: u64 = 128 * 1024 * 1024;

/// Refusals may wait beyond that limit, so that publishers hear of it; what comes beyond this is not answered.
const ANSWERS_MAX_FACTOR: usize = 2;

const TOO_MANY_REQUESTS: &[u8] = b"NATS/1.0 429 Too Many Requests\r\n\r\n";

/// How much may wait for a commit.
#[derive(Debug, Clone, Copy)]
pub struct BufferLimits {
    pub messages_max: usize,
    pub bytes_max: u64,
}

impl Default for BufferLimits {
    fn default() -> Self {
        Self {
            messages_max: BUFFERED_MESSAGES_MAX,
            bytes_max: BUFFERED_BYTES_MAX,
        }
    }
}

pub struct Ingest {
    pub settings: Arc<Settings>,
    buffer: BufferLimits,
    pending: Pending,
    duplicates: Duplicates,
    /// What was stored before the start has been looked through for ids.
    ids_loaded: bool,
    last_message_id: Vec<u8>,
    last_ticket: Ticket,
    /// Everything below is replaced, once that is committed.
    rolled_up: u64,
    /// The same for single subjects; only while something waits.
    rolled_up_subjects: Vec<(Box<[u8]>, u64)>,
    answer: Vec<u8>,
}

impl Ingest {
    pub fn new(settings: Arc<Settings>, buffer: BufferLimits, seed: u64) -> Self {
        Self {
            duplicates: Duplicates::new(settings.duplicate_window_ns, seed),
            settings,
            buffer,
            pending: Pending::default(),
            ids_loaded: false,
            last_message_id: Vec::new(),
            last_ticket: Ticket::default(),
            rolled_up: 0,
            rolled_up_subjects: Vec::new(),
            answer: Vec::new(),
        }
    }

    /// Puts other settings in force, for what comes from now on.
    pub fn set(&mut self, settings: Arc<Settings>, now_ns: i64) {
        self.duplicates
            .set_window(settings.duplicate_window_ns, now_ns);
        self.settings = settings;
    }

    /// Takes a message: stages it, or notes why not. `reply` is empty if nobody wants an answer.
    pub fn take(
        &mut self,
        store: &Store,
        publication: &Publication<'_>,
        reply: &[u8],
        now_ns: i64,
    ) {
        let headers = if publication.headers.is_empty() {
            PublishHeaders::default()
        } else {
            PublishHeaders::read(publication.headers)
        };
        if self.is_full() {
            let refusal = Refusal {
                code: 429,
                error_code: 10167,
                description: "too many requests".to_owned(),
            };
            return self.refuse(&refusal, TOO_MANY_REQUESTS, reply);
        }
        self.prepare(store, &headers, now_ns);
        let settings = Arc::clone(&self.settings);
        let view = StagedView {
            store,
            ingest: self,
        };
        match publish_checks::check(&settings, &view, publication, &headers) {
            Err(refusal) => self.refuse(&refusal, b"", reply),
            Ok(Outcome::Duplicate { sequence }) => {
                let stored = Stored {
                    stream: &settings.name,
                    domain: settings.domain.as_deref(),
                    sequence,
                    duplicate: true,
                    ..Stored::default()
                };
                self.answer.clear();
                stored.encode(&mut self.answer);
                self.push_answer(b"", reply);
            }
            Ok(Outcome::Store {
                time_to_live,
                rollup,
            }) => {
                let expires_ns = match time_to_live {
                    Some(TimeToLive::Never) => Some(EXPIRES_NEVER_NS),
                    Some(time_to_live) => time_to_live.expires_ns(now_ns),
                    None => None,
                };
                let message = NewMessage {
                    subject: publication.subject,
                    headers: publication.headers,
                    payload: publication.payload,
                    time_ns: now_ns,
                    expires_ns,
                };
                self.store(store, &message, &headers, rollup, reply);
            }
        }
    }

    /// Puts a marker in the place of a subject's last message, whose time is over.
    pub fn mark_expired(&mut self, store: &Store, subject: &[u8], sequence: u64, now_ns: i64) {
        self.pending.sort();
        if self.view(store).last_sequence_of(subject) != sequence {
            // Another message has come, or the marker waits already.
            return;
        }
        let ttl_ns = self.settings.delete_marker_ttl_ns;
        let headers = delete_marker::headers(ttl_ns);
        let message = NewMessage {
            subject,
            headers: &headers,
            payload: b"",
            time_ns: now_ns,
            expires_ns: Some(now_ns.saturating_add(ttl_ns)),
        };
        let none = PublishHeaders::default();
        self.store(store, &message, &none, Some(Rollup::Subject), b"");
    }

    fn is_full(&self) -> bool {
        let (messages, bytes) = self.pending.counts_behind(0);
        messages as usize >= self.buffer.messages_max || bytes >= self.buffer.bytes_max
    }

    /// Makes ready what the checks of this message will ask for.
    fn prepare(&mut self, store: &Store, headers: &PublishHeaders<'_>, now_ns: i64) {
        let by_id = headers.message_id.is_some() || headers.expected_last_message_id.is_some();
        if by_id {
            if !self.ids_loaded {
                self.load_ids(store, now_ns);
            }
            self.duplicates.expire(now_ns);
        }
        let limited =
            self.settings.discard == Discard::New && self.settings.limits.per_subject_max.is_some();
        if limited
            || headers.expected_last_subject_sequence.is_some()
            || headers.rollup.is_some()
            || self.settings.republish.is_some()
        {
            self.pending.sort();
        }
    }

    /// Looks through what was stored within the window before the start.
    fn load_ids(&mut self, store: &Store, now_ns: i64) {
        self.ids_loaded = true;
        let window_ns = self.settings.duplicate_window_ns;
        let Ok(first) = store.sequence_at(now_ns.saturating_sub(window_ns)) else {
            return;
        };
        // What was taken since the start is known, or had no id.
        let mut loaded = Duplicates::new(window_ns, self.duplicates.seed());
        // Damaged messages are passed over, and reading errors end it: an id that cannot be read cannot be compared.
        let _ = store.scan(first, |record| {
            let headers = PublishHeaders::read(record.headers);
            self.last_message_id.clear();
            if let Some(id) = headers.message_id.filter(|id| !id.is_empty()) {
                self.last_message_id.extend_from_slice(id);
                if loaded.find(id).is_none() {
                    loaded.add(id, record.sequence, record.time_ns);
                }
            }
            true
        });
        self.duplicates = loaded;
        let (waiting, _) = self.pending.counts_behind(0);
        if waiting > 0 {
            // The last message waits, and had no id.
            self.last_message_id.clear();
        } else if self.last_message_id.is_empty() {
            self.load_last_id(store);
        }
    }

    fn load_last_id(&mut self, store: &Store) {
        self.last_message_id.clear();
        let last = store.counts().last_sequence;
        if let Ok(Some(message)) = store.read(last) {
            let headers = PublishHeaders::read(message.headers());
            self.last_message_id
                .extend_from_slice(headers.message_id.unwrap_or_default());
        }
    }

    fn store(
        &mut self,
        store: &Store,
        message: &NewMessage<'_>,
        headers: &PublishHeaders<'_>,
        rollup: Option<Rollup>,
        reply: &[u8],
    ) {
        let previous_sequence = match &self.settings.republish {
            Some(_) => self.view(store).last_sequence_of(message.subject),
            None => 0,
        };
        let appended = match store.append(message) {
            Ok(appended) => appended,
            Err(error) => return self.refuse(&store_refusal(&error), b"", reply),
        };
        self.last_ticket = appended.ticket;
        let sequence = appended.sequence;
        let removed = match rollup {
            Some(Rollup::Subject) => self.roll_up_subject(store, message.subject, sequence),
            Some(Rollup::All) => self.roll_up_all(store, sequence),
            None => Ok(()),
        };
        // Without a consumer nobody is interested: the sequence is used, and nothing is kept.
        let removed = removed.and_then(|()| match self.settings.retention {
            Retention::Interest => store.remove_staged(sequence),
            Retention::Limits | Retention::WorkQueue => Ok(()),
        });
        // A store that has become read-only meanwhile refuses the message itself, too, when it is committed.
        drop(removed);
        self.last_message_id.clear();
        if let Some(id) = headers.message_id.filter(|id| !id.is_empty()) {
            self.last_message_id.extend_from_slice(id);
            self.duplicates.add(id, sequence, message.time_ns);
        }
        let counting = self.settings.counting;
        self.pending.push(&New {
            ticket: appended.ticket,
            about: About::Stored { sequence },
            counted_bytes: counting.bytes(
                message.subject.len(),
                message.headers.len(),
                message.payload.len(),
            ),
            previous_sequence,
            subject: message.subject,
            reply: self.heard(reply),
            answer_header: b"",
            answer: b"",
        });
    }

    fn roll_up_subject(
        &mut self,
        store: &Store,
        subject: &[u8],
        sequence: u64,
    ) -> Result<(), StoreError> {
        let staged: Vec<u64> = self.pending.sequences_of(subject, 0).collect();
        self.rolled_up_subjects.push((subject.into(), sequence));
        store.roll_up(subject, &staged, sequence)
    }

    fn roll_up_all(&mut self, store: &Store, sequence: u64) -> Result<(), StoreError> {
        self.rolled_up = sequence;
        store.roll_up_all(sequence)
    }

    /// The reply subject, unless the stream answers nothing.
    fn heard<'a>(&self, reply: &'a [u8]) -> &'a [u8] {
        if self.settings.no_acknowledgement {
            b""
        } else {
            reply
        }
    }

    fn refuse(&mut self, refusal: &Refusal, header: &[u8], reply: &[u8]) {
        let settings = Arc::clone(&self.settings);
        self.answer.clear();
        refusal.encode(&settings.name, &mut self.answer);
        self.push_answer(header, reply);
    }

    /// Answers when everything that came before is answered.
    fn push_answer(&mut self, header: &[u8], reply: &[u8]) {
        let reply = self.heard(reply);
        let most = self.buffer.messages_max.saturating_mul(ANSWERS_MAX_FACTOR);
        if reply.is_empty() || self.pending.len() >= most {
            return;
        }
        self.pending.push(&New {
            ticket: self.last_ticket,
            about: About::Answer,
            counted_bytes: 0,
            previous_sequence: 0,
            subject: b"",
            reply,
            answer_header: header,
            answer: &self.answer,
        });
    }

    /// Moves everything whose fate is known to `drained`; refusals are numbered as in `progress`.
    pub fn settle(&mut self, store: &Store, progress: &Progress, drained: &mut Drained) {
        for (number, refused) in progress.refused.iter().enumerate() {
            self.pending.drain(refused.after, None, drained);
            let first = self.pending.drain(refused.through, Some(number), drained);
            if let Some(first) = first {
                self.duplicates.forget_from(first);
                self.rolled_up = 0;
                self.rolled_up_subjects.clear();
                self.load_last_id(store);
            }
        }
        self.pending.drain(progress.committed.ticket, None, drained);
        if self.pending.is_empty() {
            self.rolled_up = 0;
            self.rolled_up_subjects.clear();
        }
    }

    fn view<'a>(&'a self, store: &'a Store) -> StagedView<'a> {
        StagedView {
            store,
            ingest: self,
        }
    }
}

/// Why a store took nothing, as the answer to a publish.
pub fn store_refusal(error: &StoreError) -> Refusal {
    Refusal {
        code: 503,
        error_code: 10077,
        description: error.to_string(),
    }
}

/// The stream as it will be when everything staged is committed.
struct StagedView<'a> {
    store: &'a Store,
    ingest: &'a Ingest,
}

impl StagedView<'_> {
    /// The last sequence that is replaced on this subject by a message that waits.
    fn rolled_up(&self, subject: &[u8]) -> u64 {
        let subjects = &self.ingest.rolled_up_subjects;
        let own = subjects.iter().rev().find(|(own, _)| **own == *subject);
        own.map_or(0, |(_, sequence)| *sequence)
            .max(self.ingest.rolled_up)
    }

    fn counts(&self) -> (u64, u64) {
        let Counts {
            messages,
            bytes,
            last_sequence,
            ..
        } = self.store.counts();
        if self.ingest.rolled_up > last_sequence {
            return self.ingest.pending.counts_behind(self.ingest.rolled_up - 1);
        }
        let (waiting, waiting_bytes) = self.ingest.pending.counts_behind(last_sequence);
        (messages + waiting, bytes + waiting_bytes)
    }
}

impl View for StagedView<'_> {
    fn last_sequence(&self) -> u64 {
        self.store.last_given_sequence()
    }

    fn last_sequence_of(&self, filter: &[u8]) -> u64 {
        let committed = self.store.last_match(filter).unwrap_or(0);
        let last = committed.max(self.ingest.pending.last_match(filter));
        if last < self.ingest.rolled_up {
            0
        } else {
            last
        }
    }

    fn messages(&self) -> u64 {
        self.counts().0
    }

    fn bytes(&self) -> u64 {
        self.counts().1
    }

    fn count_of(&self, subject: &[u8]) -> u64 {
        let (committed, last_sequence) = self.store.subject_count(subject);
        let rolled_up = self.rolled_up(subject);
        let behind = last_sequence.max(rolled_up.saturating_sub(1));
        let waiting = self.ingest.pending.sequences_of(subject, behind).count() as u64;
        if rolled_up > last_sequence {
            waiting
        } else {
            committed + waiting
        }
    }

    fn oldest_bytes_of(&self, subject: &[u8]) -> u64 {
        let first = self.store.next_match(subject, 0);
        let message = first.and_then(|first| self.store.read(first).ok().flatten());
        message.map_or(0, |message| {
            self.ingest.settings.counting.bytes(
                message.subject().len(),
                message.headers().len(),
                message.payload().len(),
            )
        })
    }

    fn find_message_id(&self, id: &[u8]) -> Option<u64> {
        self.ingest.duplicates.find(id)
    }

    fn last_message_id(&self) -> &[u8] {
        &self.ingest.last_message_id
    }
}
