//! Taking a message into a stream: the checks, the store's staging, and a note of whom to answer when it is durable.
//!
//! Everything here happens under the stream's lock, on the thread that read the message. What must be read of the disk first is read by `loading`, and messages that need it are held
//! back until then. Invariant: the checks see what will be there when everything staged is committed.

use std::sync::Arc;

use super::acknowledgement::{Refusal, StoredPublish};
use super::admitted::Admitted;
use super::checks;
use super::checks::{check_message_id, CheckOutcome, Publication, Rollup, View};
use super::headers::PublishHeaders;
use super::loading;
use super::loading::HeldBack;
use super::message_ids::MessageIds;
use super::pending::{About, Drained, PendingItem, PendingPublishes};
use super::staged_effects::StagedEffects;
use super::staged_view::StagedView;
use super::tracing;
use crate::common::random::Random;
use crate::consumer::consumers::Consumers;
use crate::routing::message_trace::MessageTrace;
use crate::storage::message::{Appended, CommitProgress, StoreError, Ticket};
use crate::storage::receipts::{Receipt, Receipts};
use crate::storage::store::Store;
use crate::stream::batch::atomic_batches::AtomicBatches;
use crate::stream::batch::fast_batches;
use crate::stream::batch::fast_batches::FastBatches;
use crate::stream::replication::followers::Followers;
use crate::stream::schedule::schedules::Schedules;
use crate::stream::settings::{Discard, Retention, StreamSettings};
use crate::stream::staged_commit::uploading::Committing;
use crate::stream::staged_commit::uploads::Uploads;
use crate::stream::usage::account_usage::StreamUsage;
use crate::wire::stored_headers;
use crate::wire::stored_headers::Author;

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
    pub settings: Arc<StreamSettings>,
    pub(in crate::stream) buffer: BufferLimits,
    pub(in crate::stream) pending: PendingPublishes,
    receipts: Receipts,
    pub(in crate::stream) ids: MessageIds,
    pub(in crate::stream) held_back: HeldBack,
    last_ticket: Ticket,
    /// The fate of everything up to here is known.
    settled: Ticket,
    pub(in crate::stream) effects: StagedEffects,
    pub(in crate::stream) schedules: Schedules,
    pub(in crate::stream) usage: Arc<StreamUsage>,
    pub(in crate::stream) batches: AtomicBatches,
    pub(in crate::stream) fast_batches: FastBatches,
    pub(in crate::stream) uploads: Uploads,
    /// The connection whose message is being taken; 0 is the server itself.
    pub(in crate::stream) publisher_id: u64,
    pub(in crate::stream) committing: Committing,
    readers: Readers,
    pub(in crate::stream) random: Random,
    pub(in crate::stream) answer: Vec<u8>,
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
        settings: Arc<StreamSettings>,
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
            ids: MessageIds::new(settings.duplicate_window_ns, seed),
            settings,
            buffer,
            pending: PendingPublishes::default(),
            receipts: Receipts::default(),
            held_back: HeldBack::default(),
            last_ticket: Ticket::default(),
            settled: Ticket::default(),
            effects: StagedEffects::default(),
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
    pub fn set(&mut self, settings: Arc<StreamSettings>, now_ns: i64) {
        self.ids.set_window(settings.duplicate_window_ns, now_ns);
        if !settings.allow_atomic_batch {
            self.batches.clear();
        }
        if !settings.allow_fast_batch {
            self.fast_batches.clear();
        }
        self.settings = settings;
    }

    /// Takes a message: stages it, or notes why not. `reply` is empty if nobody wants an answer.
    pub fn stage(&mut self, store: &Store, publication: &Publication<'_>, reply: &[u8]) {
        self.take_noting(store, publication, reply, None);
    }

    /// The same; what becomes of the message is noted in its trace, if there is one.
    pub(in crate::stream) fn take_noting(
        &mut self,
        store: &Store,
        publication: &Publication<'_>,
        reply: &[u8],
        trace: Option<&MessageTrace>,
    ) {
        self.take_or_hold(store, publication, reply, trace, true);
    }

    /// The same for one that was held back.
    pub(in crate::stream) fn take_now(
        &mut self,
        store: &Store,
        publication: &Publication<'_>,
        reply: &[u8],
    ) {
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

    pub(in crate::stream) fn refuse_too_many(
        &mut self,
        reply: &[u8],
        trace: Option<&MessageTrace>,
    ) {
        let refusal = checks::refusal(429, 10167, "too many requests");
        tracing::note_refusal(trace, &self.settings.name, &refusal);
        self.refuse(&refusal, TOO_MANY_REQUESTS, reply);
    }

    /// Answers a message whose sender may not have it do what it says.
    pub(in crate::stream) fn refuse_unauthorized(
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
        if let Err(refusal) = check_message_id(headers.message_id) {
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
        match checks::check(&settings, &self.view(store), &publication, &headers) {
            Err(refusal) => self.refuse(&refusal, b"", reply),
            Ok(CheckOutcome::Duplicate { sequence }) => self.answer_duplicate(sequence, reply),
            Ok(CheckOutcome::Store(passed)) => {
                let admitted = Admitted::new(&settings, &publication, &headers, passed);
                self.store(store, admitted, reply);
            }
        }
    }

    /// The message as it would be stored: without what only servers say, and under the subject the stream gives it.
    pub(in crate::stream) fn as_stored<'a>(
        &mut self,
        settings: &StreamSettings,
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

    pub(in crate::stream) fn answer_duplicate(&mut self, sequence: u64, reply: &[u8]) {
        let settings = Arc::clone(&self.settings);
        let stored = StoredPublish {
            stream: &settings.name,
            domain: settings.domain.as_deref(),
            sequence,
            duplicate: true,
            ..StoredPublish::default()
        };
        self.answer.clear();
        stored.encode_in(settings.dialect, &mut self.answer);
        self.push_answer(b"", reply);
    }

    pub(in crate::stream) fn is_full(&self) -> bool {
        let (messages, bytes) = self.pending.counts_behind(0);
        // Publishers of the old dialects were held up instead of refused, and do not look: only bytes are bounded.
        let is_counted = self.settings.dialect.is_none();
        (is_counted && messages as usize >= self.buffer.messages_max + self.committing.messages)
            || bytes >= self.buffer.bytes_max.saturating_add(self.committing.bytes)
    }

    /// Makes ready what the checks of this message will ask for.
    pub(in crate::stream) fn prepare(&mut self, headers: &PublishHeaders<'_>, now_ns: i64) {
        if headers.message_id.is_some() || headers.expected_last_message_id.is_some() {
            self.ids.expire(now_ns);
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

    pub(in crate::stream) fn store(&mut self, store: &Store, admitted: Admitted<'_>, reply: &[u8]) {
        if let Err(refusal) = self.try_store(store, admitted, reply) {
            self.refuse(&refusal, b"", reply);
        }
    }

    /// Stages a message, or says why not.
    pub(in crate::stream) fn try_store(
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
            let stored = StoredPublish {
                stream: &self.settings.name,
                domain: self.settings.domain.as_deref(),
                sequence: appended.sequence,
                counter: Some(&counter.total.to_string()),
                ..StoredPublish::default()
            };
            stored.encode(&mut self.answer);
        }
        self.note(store, admitted, appended, previous_sequence, reply);
        Ok(())
    }

    /// Whether one more may wait for a receipt: what was refused is not among the messages that are counted.
    pub(in crate::stream) fn has_receipt_room(&self) -> bool {
        let most = self.buffer.messages_max.saturating_mul(ANSWERS_MAX_FACTOR);
        self.receipts.len() < most
    }

    /// Completes a receipt when the fate of everything that was taken up to now is known.
    pub(in crate::stream) fn add_receipt(&mut self, receipt: Arc<dyn Receipt>) {
        if let Some(receipt) = self.held_back.add_receipt(receipt) {
            self.push_receipt(receipt);
        }
    }

    /// The same for what was just taken, whatever is held back behind it.
    pub(in crate::stream) fn push_receipt(&mut self, receipt: Arc<dyn Receipt>) {
        self.receipts.push(self.last_ticket, receipt);
    }

    /// The message before on the same subject, if somebody will want to know.
    pub(in crate::stream) fn previous_sequence(&self, store: &Store, subject: &[u8]) -> u64 {
        match &self.settings.republish {
            Some(_) => self.view(store).last_sequence_of(subject),
            None => 0,
        }
    }

    /// A message was staged: notes what that changes, and that it is to be answered with `self.answer`, or plainly if that is empty.
    pub(in crate::stream) fn note(
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
        self.ids.add(admitted.message_id, sequence, message.time_ns);
        let (kept_headers, kept_payload): (&[u8], &[u8]) = match &settings.republish {
            Some(_) => (message.headers, message.payload),
            None => (b"", b""),
        };
        let counted_bytes = settings.counting.bytes(
            message.subject.len(),
            message.headers.len(),
            message.payload.len(),
        );
        let item = PendingItem {
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
            self.effects.set_counter(admitted.subject, counter);
        }
    }

    /// Whether somebody wants a message of this subject, or nobody need want it.
    pub(in crate::stream) fn is_kept(&self, subject: &[u8]) -> bool {
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
        self.effects.roll_up_subject(subject, sequence);
        store.roll_up(subject, &staged, sequence)
    }

    fn roll_up_all(&mut self, store: &Store, sequence: u64) -> Result<(), StoreError> {
        self.effects.roll_up_all(sequence);
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

    pub(in crate::stream) fn refuse(&mut self, refusal: &Refusal, header: &[u8], reply: &[u8]) {
        let settings = Arc::clone(&self.settings);
        self.answer.clear();
        refusal.encode_in(settings.dialect, &settings.name, &mut self.answer);
        self.push_answer(header, reply);
    }

    /// Sends `self.answer` as a message of its own, when everything that came before is answered.
    pub(in crate::stream) fn push_message(&mut self, subject: &[u8]) {
        self.push_to(About::Answer, b"", subject);
    }

    /// Answers with `self.answer` when everything that came before is stored, or says why it is not.
    pub(in crate::stream) fn push_final(&mut self, reply: &[u8]) {
        self.push_to(About::Final, b"", self.heard(reply));
    }

    /// Answers when everything that came before is answered.
    pub(in crate::stream) fn push_answer(&mut self, header: &[u8], reply: &[u8]) {
        self.push_to(About::Answer, header, self.heard(reply));
    }

    fn push_to(&mut self, about: About, header: &[u8], reply: &[u8]) {
        let most = self.buffer.messages_max.saturating_mul(ANSWERS_MAX_FACTOR);
        if reply.is_empty() || self.pending.len() >= most {
            return;
        }
        let item = PendingItem {
            about,
            reply,
            answer_header: header,
            answer: &self.answer,
            ..PendingItem::default()
        };
        self.pending.push(self.last_ticket, 0, &item);
    }

    /// Moves everything whose fate is known to `drained`; refusals are numbered as in `progress`.
    pub fn drain_decided(
        &mut self,
        store: &Store,
        progress: &CommitProgress,
        drained: &mut Drained,
    ) {
        for (number, refused) in progress.refused.iter().enumerate() {
            self.pending.drain(refused.after, None, drained);
            self.receipts
                .drain(refused.after, None, &mut drained.receipts);
            self.settled = self.settled.max(refused.through);
            let first = self.pending.drain(refused.through, Some(number), drained);
            self.receipts
                .drain(refused.through, Some(number), &mut drained.receipts);
            if let Some(first) = first {
                self.ids.forget_from(first, loading::last_message_id(store));
                self.effects.clear();
                self.schedules.outdated = true;
                self.fast_batches.clear();
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
        let last_sequence = progress.committed.last_sequence;
        self.effects
            .forget_committed(last_sequence, &mut self.pending);
    }

    /// Forgets counters that the store knows, too.
    pub fn forget_counters(&mut self) {
        self.effects.forget_counters(&mut self.pending);
    }

    pub(in crate::stream) fn view<'a>(&'a self, store: &'a Store) -> StagedView<'a> {
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
