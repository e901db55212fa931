//! Taking a message into a stream: the checks, the store's staging, and a note of whom to answer when it is durable.
//!
//! Everything here happens under the stream's lock, on the thread that read the message. What must be read of the disk first is read by `loading`, and messages that need it are held
//! back until then. Invariant: the checks see what will be there when everything staged is committed.

use std::sync::Arc;

use ahash::AHashMap;

use super::account_usage::StreamUsage;
use super::acknowledgement::{Refusal, Stored};
use super::admitted::Admitted;
use super::atomic_batches::AtomicBatches;
use super::counter::Counter;
use super::duplicates::Duplicates;
use super::fast_batches::{self, FastBatches};
use super::followers::Followers;
use super::loading::{self, HeldBack};
use super::pending::{About, Drained, Item, Pending};
use super::publish_checks::{self, Outcome, Publication, Rollup, View};
use super::publish_headers::PublishHeaders;
use super::receipts::{Receipt, Receipts};
use super::schedules::Schedules;
use super::settings::{Discard, Retention, Settings};
use super::staged_view::StagedView;
use super::stored_headers::{self, Author};
use super::tracing;
use super::trusted_headers;
use super::uploading::Committing;
use super::uploads::Uploads;
use crate::consumer::consumers::Consumers;
use crate::message_trace::MessageTrace;
use crate::random::Random;
use crate::storage::message::{Appended, Progress, Purge, StoreError, Ticket};
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
    pub(super) buffer: BufferLimits,
    pub(super) pending: Pending,
    receipts: Receipts,
    pub(super) duplicates: Duplicates,
    /// What was stored before the start has been looked through for ids.
    pub(super) ids_loaded: bool,
    pub(super) held_back: HeldBack,
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
    /// The connection whose message is being taken; 0 is the server itself.
    pub(super) publisher_id: u64,
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
            receipts: Receipts::default(),
            ids_loaded: false,
            held_back: HeldBack::default(),
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
            publisher_id: 0,
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
        self.take_noting(store, publication, reply, None);
    }

    /// The same; what becomes of the message is noted in its trace, if there is one.
    pub(super) fn take_noting(
        &mut self,
        store: &Store,
        publication: &Publication<'_>,
        reply: &[u8],
        trace: Option<&MessageTrace>,
    ) {
        self.take_or_hold(store, publication, reply, trace, true);
    }

    /// The same for one that was held back.
    pub(super) fn take_now(&mut self, store: &Store, publication: &Publication<'_>, reply: &[u8]) {
        self.take_or_hold(store, publication, reply, None, false);
    }

    fn take_or_hold(
        &mut self,
        store: &Store,
        publication: &Publication<'_>,
        reply: &[u8],
        trace: Option<&MessageTrace>,
        may_hold: bool,
    ) {
        if self.is_full() {
            return self.refuse_too_many(reply, trace);
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        self.take_with(store, publication, reply, trace, &mut scratch, may_hold);
        self.scratch = scratch;
    }

    pub(super) fn refuse_too_many(&mut self, reply: &[u8], trace: Option<&MessageTrace>) {
        let refusal = publish_checks::refusal(429, 10167, "too many requests");
        tracing::note_refusal(trace, &self.settings.name, &refusal);
        self.refuse(&refusal, TOO_MANY_REQUESTS, reply);
    }

    /// Answers a message whose sender may not have it do what it says.
    pub(super) fn refuse_unauthorized(
        &mut self,
        refusal: &Refusal,
        reply: &[u8],
        trace: Option<&MessageTrace>,
    ) {
        tracing::note_refusal(trace, &self.settings.name, refusal);
        self.refuse(refusal, b"", reply);
    }

    fn take_with(
        &mut self,
        store: &Store,
        sent: &Publication<'_>,
        reply: &[u8],
        trace: Option<&MessageTrace>,
        scratch: &mut Scratch,
        may_hold: bool,
    ) {
        let settings = Arc::clone(&self.settings);
        let marked = tracing::marked_headers(trace, sent.headers);
        let sent = &Publication {
            headers: marked.as_deref().unwrap_or(sent.headers),
            ..*sent
        };
        let publication = self.as_stored(
            &settings,
            sent,
            Author::Publisher,
            &mut scratch.subject,
            &mut scratch.headers,
        );
        let headers = match publication.headers {
            b"" => PublishHeaders::default(),
            block => PublishHeaders::read(block),
        };
        if let Some(trace) = trace {
            if self.trace(trace, store, &publication, &headers, reply) {
                return;
            }
        }
        if may_hold {
            let totals = self.totals_on_disk(store, publication.subject, &headers);
            if self.hold_back(store, sent, &headers, totals, reply) {
                return;
            }
        }
        if let Err(refusal) = trusted_headers::check_message_id(headers.message_id) {
            return self.refuse(&refusal, b"", reply);
        }
        if let Some(value) = headers.upload {
            return self.take_upload(value, &publication, reply);
        }
        if reply.ends_with(fast_batches::SUFFIX) {
            return self.take_fast(store, &publication, &headers, reply);
        }
        if headers.batch_id.is_some_and(|id| !id.is_empty()) {
            return self.take_into_batch(store, &publication, &headers, reply);
        }
        self.prepare(&headers, sent.now_ns);
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
    pub(super) fn as_stored<'a>(
        &mut self,
        settings: &Settings,
        sent: &Publication<'a>,
        author: Author,
        subject: &'a mut Vec<u8>,
        block: &'a mut Vec<u8>,
    ) -> Publication<'a> {
        let mut publication = *sent;
        if stored_headers::needs_cleaning(sent.headers) {
            block.clear();
            stored_headers::clean(sent.headers, author, block);
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

    pub(super) fn answer_duplicate(&mut self, sequence: u64, reply: &[u8]) {
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

    pub(super) fn is_full(&self) -> bool {
        let (messages, bytes) = self.pending.counts_behind(0);
        // Publishers of the old dialects were held up instead of refused, and do not look: only bytes are bounded.
        let is_counted = self.settings.dialect.is_none();
        (is_counted && messages as usize >= self.buffer.messages_max + self.committing.messages)
            || bytes >= self.buffer.bytes_max.saturating_add(self.committing.bytes)
    }

    /// Makes ready what the checks of this message will ask for.
    pub(super) fn prepare(&mut self, headers: &PublishHeaders<'_>, now_ns: i64) {
        if headers.message_id.is_some() || headers.expected_last_message_id.is_some() {
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

    pub(super) fn store(&mut self, store: &Store, admitted: Admitted<'_>, reply: &[u8]) {
        if let Err(refusal) = self.try_store(store, admitted, reply) {
            self.refuse(&refusal, b"", reply);
        }
    }

    /// Stages a message, or says why not.
    pub(super) fn try_store(
        &mut self,
        store: &Store,
        admitted: Admitted<'_>,
        reply: &[u8],
    ) -> Result<(), Refusal> {
        let previous_sequence = self.previous_sequence(store, admitted.subject);
        let appended = store.append(&admitted.message());
        let appended = appended.map_err(|error| store_refusal(&error))?;
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
        Ok(())
    }

    /// Whether one more may wait for a receipt: what was refused is not among the messages that are counted.
    pub(super) fn has_receipt_room(&self) -> bool {
        let most = self.buffer.messages_max.saturating_mul(ANSWERS_MAX_FACTOR);
        self.receipts.len() < most
    }

    /// Completes a receipt when the fate of everything that was taken up to now is known.
    pub(super) fn add_receipt(&mut self, receipt: Arc<dyn Receipt>) {
        if let Some(receipt) = self.held_back.add_receipt(receipt) {
            self.push_receipt(receipt);
        }
    }

    /// The same for what was just taken, whatever is held back behind it.
    pub(super) fn push_receipt(&mut self, receipt: Arc<dyn Receipt>) {
        self.receipts.push(self.last_ticket, receipt);
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
        self.usage.add_waiting(counted_bytes);
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
            self.receipts
                .drain(refused.after, None, &mut drained.receipts);
            self.settled = self.settled.max(refused.through);
            let first = self.pending.drain(refused.through, Some(number), drained);
            self.receipts
                .drain(refused.through, Some(number), &mut drained.receipts);
            if let Some(first) = first {
                self.duplicates.forget_from(first);
                self.forget_waiting();
                self.schedules.outdated = true;
                self.fast_batches.clear();
                self.last_message_id = loading::last_message_id(store);
            }
        }
        self.settled = self.settled.max(progress.committed.ticket);
        if self.settled >= self.committing.ticket {
            self.committing = Committing::default();
        }
        // What is only an answer may stand behind the last message that was refused.
        self.pending.drain(self.settled, None, drained);
        self.receipts
            .drain(self.settled, None, &mut drained.receipts);
        self.forget_committed(progress.committed.last_sequence);
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

#[path = "staged_memory.rs"]
mod staged_memory;
