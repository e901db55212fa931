//! Taking a message into a stream: the checks, the store's staging, and a note of whom to answer when it is durable.
//!
//! Everything here happens under the stream's lock, on the thread that read the message, and never waits for a disk, but for the first message
//! with an id after a start, and the first of all where there may be schedules: both are looked for in what is stored. Invariant: the checks see what will be there when everything staged is committed.

use std::sync::Arc;

use ahash::AHashMap;

use super::account_usage::StreamUsage;
use super::acknowledgement::{Refusal, Stored};
use super::admitted::Admitted;
use super::atomic_batches::AtomicBatches;
use super::counter::Counter;
use super::delete_marker;
use super::duplicates::Duplicates;
use super::fast_batches::{self, FastBatches};
use super::followers::Followers;
use super::pending::{About, Drained, Item, Pending};
use super::publish_checks::{self, Outcome, Publication, Rollup, View};
use super::publish_headers::PublishHeaders;
use super::schedules::Schedules;
use super::settings::{Discard, Retention, Settings};
use super::staged_view::StagedView;
use super::stored_headers;
use super::uploading::Committing;
use super::uploads::Uploads;
use crate::consumer::consumers::Consumers;
use crate::random::Random;
use crate::storage::message::{Appended, Progress, StoreError, Ticket};
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

/// What waits for the rest of it before it is stored.
pub struct Incomplete {
    pub batches: AtomicBatches,
    pub fast_batches: FastBatches,
    pub uploads: Uploads,
}

/// Those whom messages are kept for.
pub struct Readers {
    pub followers: Arc<Followers>,
    pub consumers: Arc<Consumers>,
}

pub struct Ingest {
    pub settings: Arc<Settings>,
    buffer: BufferLimits,
    pub(super) pending: Pending,
    pub(super) duplicates: Duplicates,
    /// What was stored before the start has been looked through for ids.
    ids_loaded: bool,
    pub(super) last_message_id: Vec<u8>,
    last_ticket: Ticket,
    /// The fate of everything up to here is known.
    settled: Ticket,
    /// Everything below is replaced, once that is committed.
    pub(super) rolled_up: u64,
    /// The same for single subjects; only while something waits.
    pub(super) rolled_up_subjects: Vec<(Box<[u8]>, u64)>,
    /// Counters of subjects that have a message waiting.
    pub(super) counters: AHashMap<Box<[u8]>, Counter>,
    pub(super) schedules: Schedules,
    pub(super) usage: Arc<StreamUsage>,
    pub(super) batches: AtomicBatches,
    pub(super) fast_batches: FastBatches,
    pub(super) uploads: Uploads,
    pub(super) committing: Committing,
    readers: Readers,
    pub(super) random: Random,
    pub(super) answer: Vec<u8>,
    scratch: Scratch,
}

/// Parts of a message that are not stored as they were sent.
#[derive(Default)]
struct Scratch {
    subject: Vec<u8>,
    headers: Vec<u8>,
}

impl Ingest {
    pub fn new(
        settings: Arc<Settings>,
        buffer: BufferLimits,
        usage: Arc<StreamUsage>,
        incomplete: Incomplete,
        readers: Readers,
        seed: u64,
    ) -> Self {
        let Incomplete {
            batches,
            fast_batches,
            uploads,
        } = incomplete;
        Self {
            duplicates: Duplicates::new(settings.duplicate_window_ns, seed),
            settings,
            buffer,
            pending: Pending::default(),
            ids_loaded: false,
            last_message_id: Vec::new(),
            last_ticket: Ticket::default(),
            settled: Ticket::default(),
            rolled_up: 0,
            rolled_up_subjects: Vec::new(),
            counters: AHashMap::new(),
            schedules: Schedules::unknown(),
            usage,
            batches,
            fast_batches,
            uploads,
            committing: Committing::default(),
            readers,
            random: Random::seeded(seed),
            answer: Vec::new(),
            scratch: Scratch::default(),
        }
    }

    /// Puts other settings in force, for what comes from now on.
    pub fn set(&mut self, settings: Arc<Settings>, now_ns: i64) {
        self.duplicates
            .set_window(settings.duplicate_window_ns, now_ns);
        if !settings.allow_atomic_batch {
            self.batches.clear();
        }
        if !settings.allow_fast_batch {
            self.fast_batches.clear();
        }
        self.settings = settings;
    }

    /// Takes a message: stages it, or notes why not. `reply` is empty if nobody wants an answer.
    pub fn take(&mut self, store: &Store, publication: &Publication<'_>, reply: &[u8]) {
        if self.is_full() {
            let refusal = Refusal {
                code: 429,
                error_code: 10167,
                description: "too many requests".to_owned(),
            };
            return self.refuse(&refusal, TOO_MANY_REQUESTS, reply);
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        self.take_with(store, publication, reply, &mut scratch);
        self.scratch = scratch;
    }

    fn take_with(
        &mut self,
        store: &Store,
        sent: &Publication<'_>,
        reply: &[u8],
        scratch: &mut Scratch,
    ) {
        let settings = Arc::clone(&self.settings);
        let publication =
            self.as_stored(&settings, sent, &mut scratch.subject, &mut scratch.headers);
        let headers = match publication.headers {
            b"" => PublishHeaders::default(),
            block => PublishHeaders::read(block),
        };
        if reply.ends_with(fast_batches::SUFFIX) {
            return self.take_fast(store, &publication, &headers, reply);
        }
        if let Some(value) = headers.upload {
            return self.take_upload(value, &publication, reply);
        }
        if headers.batch_id.is_some_and(|id| !id.is_empty()) {
            return self.take_into_batch(store, &publication, &headers, reply);
        }
        self.prepare(store, &headers, sent.now_ns);
        match publish_checks::check(&settings, &self.view(store), &publication, &headers) {
            Err(refusal) => self.refuse(&refusal, b"", reply),
            Ok(Outcome::Duplicate { sequence }) => self.answer_duplicate(sequence, reply),
            Ok(Outcome::Store(passed)) => {
                let admitted = Admitted::new(&settings, &publication, &headers, passed);
                self.store(store, admitted, reply);
            }
        }
    }

    /// The message as it would be stored: without what only servers say, and under the subject the stream gives it.
    fn as_stored<'a>(
        &mut self,
        settings: &Settings,
        sent: &Publication<'a>,
        subject: &'a mut Vec<u8>,
        block: &'a mut Vec<u8>,
    ) -> Publication<'a> {
        let mut publication = *sent;
        if stored_headers::needs_cleaning(sent.headers) {
            block.clear();
            stored_headers::clean(sent.headers, block);
            publication.headers = block;
        }
        if let Some(transform) = &settings.subject_transform {
            subject.clear();
            if transform.apply(sent.subject, &mut self.random, subject) {
                publication.subject = subject;
            }
        }
        publication
    }

    fn answer_duplicate(&mut self, sequence: u64, reply: &[u8]) {
        let settings = Arc::clone(&self.settings);
        let stored = Stored {
            stream: &settings.name,
            domain: settings.domain.as_deref(),
            sequence,
            duplicate: true,
            ..Stored::default()
        };
        self.answer.clear();
        stored.encode_in(settings.dialect, &mut self.answer);
        self.push_answer(b"", reply);
    }

    /// Puts a marker in the place of a subject's last message, whose time is over.
    pub fn mark_expired(&mut self, store: &Store, subject: &[u8], sequence: u64, now_ns: i64) {
        self.pending.sort();
        if self.view(store).last_sequence_of(subject) != sequence {
            // Another message has come, or the marker waits already.
            return;
        }
        let ttl_ns = self.settings.delete_marker_ttl_ns;
        let admitted = Admitted {
            headers: delete_marker::headers(ttl_ns).into(),
            expires_ns: Some(now_ns.saturating_add(ttl_ns)),
            rollup: Some(Rollup::Subject),
            ..Admitted::of(subject, now_ns)
        };
        self.store(store, admitted, b"");
    }

    fn is_full(&self) -> bool {
        let (messages, bytes) = self.pending.counts_behind(0);
        // Publishers of the old dialects were held up instead of refused, and do not look: only bytes are bounded.
        let is_counted = self.settings.dialect.is_none();
        (is_counted && messages as usize >= self.buffer.messages_max + self.committing.messages)
            || bytes >= self.buffer.bytes_max.saturating_add(self.committing.bytes)
    }

    /// Makes ready what the checks of this message will ask for.
    pub(super) fn prepare(&mut self, store: &Store, headers: &PublishHeaders<'_>, now_ns: i64) {
        if self.schedules.outdated && self.settings.allow_schedules {
            self.schedules = Schedules::load(store);
        }
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
            || headers.schedule.is_some()
            || headers.scheduler.is_some()
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

    pub(super) fn store(&mut self, store: &Store, admitted: Admitted<'_>, reply: &[u8]) {
        let previous_sequence = self.previous_sequence(store, admitted.subject);
        let appended = match store.append(&admitted.message()) {
            Ok(appended) => appended,
            Err(error) => return self.refuse(&store_refusal(&error), b"", reply),
        };
        self.answer.clear();
        if let Some(counter) = &admitted.counter {
            let stored = Stored {
                stream: &self.settings.name,
                domain: self.settings.domain.as_deref(),
                sequence: appended.sequence,
                counter: Some(&counter.total.to_string()),
                ..Stored::default()
            };
            stored.encode(&mut self.answer);
        }
        self.note(store, admitted, appended, previous_sequence, reply);
    }

    /// The message before on the same subject, if somebody will want to know.
    pub(super) fn previous_sequence(&self, store: &Store, subject: &[u8]) -> u64 {
        match &self.settings.republish {
            Some(_) => self.view(store).last_sequence_of(subject),
            None => 0,
        }
    }

    /// A message was staged: notes what that changes, and that it is to be answered with `self.answer`, or plainly if that is empty.
    pub(super) fn note(
        &mut self,
        store: &Store,
        admitted: Admitted<'_>,
        appended: Appended,
        previous_sequence: u64,
        reply: &[u8],
    ) {
        let settings = Arc::clone(&self.settings);
        let sequence = appended.sequence;
        let message = admitted.message();
        self.last_ticket = appended.ticket;
        let removed = match admitted.rollup {
            Some(Rollup::Subject) => self.roll_up_subject(store, message.subject, sequence),
            Some(Rollup::All) => self.roll_up_all(store, sequence),
            None => Ok(()),
        };
        self.schedule(message.subject, sequence, admitted.due_ns);
        let removed = removed.and_then(|()| match &admitted.ended_schedule {
            Some(subject) => self.end_schedule(store, subject, sequence),
            None => Ok(()),
        });
        // Where nobody is interested, the sequence is used, and nothing is kept.
        let removed = removed.and_then(|()| match self.is_kept(message.subject) {
            true => Ok(()),
            false => store.remove_staged(sequence),
        });
        // A store that has become read-only meanwhile refuses the message itself, too, when it is committed.
        drop(removed);
        self.last_message_id.clear();
        if let Some(id) = admitted.message_id {
            self.last_message_id.extend_from_slice(id);
            self.duplicates.add(id, sequence, message.time_ns);
        }
        let (kept_headers, kept_payload): (&[u8], &[u8]) = match &settings.republish {
            Some(_) => (message.headers, message.payload),
            None => (b"", b""),
        };
        let counted_bytes = settings.counting.bytes(
            message.subject.len(),
            message.headers.len(),
            message.payload.len(),
        );
        let item = Item {
            about: About::Stored { sequence },
            previous_sequence,
            time_ns: message.time_ns,
            subject: message.subject,
            reply: self.heard(reply),
            answer_header: b"",
            answer: &self.answer,
            kept_headers,
            kept_payload,
        };
        self.pending.push(appended.ticket, counted_bytes, &item);
        if let Some(counter) = admitted.counter {
            self.counters.insert(admitted.subject.into(), counter);
        }
    }

    /// Whether somebody wants a message of this subject, or nobody need want it.
    pub(super) fn is_kept(&self, subject: &[u8]) -> bool {
        self.settings.retention != Retention::Interest
            || !self.readers.followers.is_empty()
            || self.readers.consumers.want(subject)
    }

    fn roll_up_subject(
        &mut self,
        store: &Store,
        subject: &[u8],
        sequence: u64,
    ) -> Result<(), StoreError> {
        self.pending.sort();
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

    pub(super) fn refuse(&mut self, refusal: &Refusal, header: &[u8], reply: &[u8]) {
        let settings = Arc::clone(&self.settings);
        self.answer.clear();
        refusal.encode_in(settings.dialect, &settings.name, &mut self.answer);
        self.push_answer(header, reply);
    }

    /// Sends `self.answer` as a message of its own, when everything that came before is answered.
    pub(super) fn push_message(&mut self, subject: &[u8]) {
        self.push_to(About::Answer, b"", subject);
    }

    /// Answers with `self.answer` when everything that came before is stored, or says why it is not.
    pub(super) fn push_final(&mut self, reply: &[u8]) {
        self.push_to(About::Final, b"", self.heard(reply));
    }

    /// Answers when everything that came before is answered.
    pub(super) fn push_answer(&mut self, header: &[u8], reply: &[u8]) {
        self.push_to(About::Answer, header, self.heard(reply));
    }

    fn push_to(&mut self, about: About, header: &[u8], reply: &[u8]) {
        let most = self.buffer.messages_max.saturating_mul(ANSWERS_MAX_FACTOR);
        if reply.is_empty() || self.pending.len() >= most {
            return;
        }
        let item = Item {
            about,
            reply,
            answer_header: header,
            answer: &self.answer,
            ..Item::default()
        };
        self.pending.push(self.last_ticket, 0, &item);
    }

    /// Moves everything whose fate is known to `drained`; refusals are numbered as in `progress`.
    pub fn settle(&mut self, store: &Store, progress: &Progress, drained: &mut Drained) {
        for (number, refused) in progress.refused.iter().enumerate() {
            self.pending.drain(refused.after, None, drained);
            self.settled = self.settled.max(refused.through);
            let first = self.pending.drain(refused.through, Some(number), drained);
            if let Some(first) = first {
                self.duplicates.forget_from(first);
                self.forget_waiting();
                self.schedules.outdated = true;
                self.fast_batches.clear();
                self.load_last_id(store);
            }
        }
        self.settled = self.settled.max(progress.committed.ticket);
        if self.settled >= self.committing.ticket {
            self.committing = Committing::default();
        }
        // What is only an answer may stand behind the last message that was refused.
        self.pending.drain(self.settled, None, drained);
        self.forget_committed(progress.committed.last_sequence);
    }

    /// Forgets what was only known of messages that waited and do no more: everything up to a sequence.
    fn forget_committed(&mut self, last_sequence: u64) {
        if self.pending.is_empty() {
            return self.forget_waiting();
        }
        if self.rolled_up <= last_sequence {
            self.rolled_up = 0;
        }
        self.rolled_up_subjects
            .retain(|(_, sequence)| *sequence > last_sequence);
        if self.counters.len() > 2 * self.pending.len() {
            self.forget_counters();
        }
    }

    /// Forgets counters that the store knows, too: those of subjects without a message waiting.
    pub fn forget_counters(&mut self) {
        self.pending.sort();
        let pending = &self.pending;
        self.counters
            .retain(|subject, _| pending.sequences_of(subject, 0).next().is_some());
    }

    /// Forgets what was known of messages that wait.
    fn forget_waiting(&mut self) {
        self.rolled_up = 0;
        self.rolled_up_subjects.clear();
        self.counters.clear();
    }

    pub(super) fn view<'a>(&'a self, store: &'a Store) -> StagedView<'a> {
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
