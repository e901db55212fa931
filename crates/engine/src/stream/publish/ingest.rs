//! Taking a message into a stream: the checks, the store's staging, and a note of whom to answer when it is durable.
//!
//! Everything here happens under the stream's lock, on the thread that read the message. What must be read of the disk first is read by `loading`, and messages that need it are held
//! back until then. Invariant: the checks see what will be there when everything staged is committed.

use std::sync::Arc;

use super::acknowledgement::{Refusal, StoredPublish};
use super::admitted::Admitted;
use super::answer_queue::{AnswerQueue, BufferLimits};
use super::checks;
use super::checks::{check_message_id, CheckOutcome, Publication, Rollup, View};
use super::duplicates::Duplicates;
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
use crate::storage::message::{Appended, CommitProgress, StoreError};
use crate::storage::receipts::Receipt;
use crate::storage::store::Store;
use crate::stream::batch::atomic_batches::AtomicBatches;
use crate::stream::batch::commit;
use crate::stream::batch::fast_batches;
use crate::stream::batch::fast_batches::FastBatches;
use crate::stream::batch::fast_publish;
use crate::stream::replication::followers::Followers;
use crate::stream::schedule::schedules::Schedules;
use crate::stream::schedule::scheduling;
use crate::stream::settings::{Discard, Retention, StreamSettings};
use crate::stream::staged_commit::uploading;
use crate::stream::staged_commit::uploads::Uploads;
use crate::stream::usage::account_usage::StreamUsage;
use crate::wire::stored_headers;
use crate::wire::stored_headers::Author;

const TOO_MANY_REQUESTS: &[u8] = b"NATS/1.0 429 Too Many Requests\r\n\r\n";

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
    settings: Arc<StreamSettings>,
    answers: AnswerQueue,
    ids: MessageIds,
    held_back: HeldBack,
    effects: StagedEffects,
    schedules: Schedules,
    usage: Arc<StreamUsage>,
    incomplete: Incomplete,
    /// The connection whose message is being taken; 0 is the server itself.
    publisher_id: u64,
    readers: Readers,
    random: Random,
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
        limits: BufferLimits,
        usage: Arc<StreamUsage>,
        incomplete: Incomplete,
        readers: Readers,
        seed: u64,
    ) -> Self {
        Self {
            ids: MessageIds::new(settings.duplicate_window_ns, seed),
            settings,
            answers: AnswerQueue::new(limits),
            held_back: HeldBack::default(),
            effects: StagedEffects::default(),
            schedules: Schedules::unknown(),
            usage,
            incomplete,
            publisher_id: 0,
            readers,
            random: Random::seeded(seed),
            scratch: Scratch::default(),
        }
    }

    pub fn settings(&self) -> &Arc<StreamSettings> {
        &self.settings
    }

    /// Answers to publishers.
    pub(in crate::stream) fn answers(&mut self) -> &mut AnswerQueue {
        &mut self.answers
    }

    /// Messages whose fate is not known yet.
    pub(in crate::stream) fn pending(&self) -> &PendingPublishes {
        self.answers.pending()
    }

    /// Makes ready to look for waiting messages by their subjects.
    pub(in crate::stream) fn sort_pending(&mut self) {
        self.answers.pending_mut().sort();
    }

    pub(in crate::stream) fn ids(&self) -> &MessageIds {
        &self.ids
    }

    pub(in crate::stream) fn effects(&self) -> &StagedEffects {
        &self.effects
    }

    pub(in crate::stream) fn schedules(&self) -> &Schedules {
        &self.schedules
    }

    pub(in crate::stream) fn schedules_mut(&mut self) -> &mut Schedules {
        &mut self.schedules
    }

    pub(in crate::stream) fn usage(&self) -> &StreamUsage {
        &self.usage
    }

    /// What waits for the rest of it.
    pub(in crate::stream) fn incomplete(&self) -> &Incomplete {
        &self.incomplete
    }

    pub(in crate::stream) fn incomplete_mut(&mut self) -> &mut Incomplete {
        &mut self.incomplete
    }

    /// What waits for something to be read.
    pub(in crate::stream) fn held_back(&mut self) -> &mut HeldBack {
        &mut self.held_back
    }

    pub(in crate::stream) fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    /// Messages are this connection's from now on.
    pub(in crate::stream) fn set_publisher(&mut self, connection_id: u64) {
        self.publisher_id = connection_id;
    }

    pub(in crate::stream) fn publisher_id(&self) -> u64 {
        self.publisher_id
    }

    /// Enters the ids that were read of the disk.
    pub(in crate::stream) fn load_ids(&mut self, ids: Duplicates, last: Vec<u8>, now_ns: i64) {
        self.ids.load(ids, last);
        self.ids
            .set_window(self.settings.duplicate_window_ns, now_ns);
    }

    /// Puts other settings in force, for what comes from now on.
    pub fn set(&mut self, settings: Arc<StreamSettings>, now_ns: i64) {
        self.ids.set_window(settings.duplicate_window_ns, now_ns);
        if !settings.allow_atomic_batch {
            self.incomplete.batches.clear();
        }
        if !settings.allow_fast_batch {
            self.incomplete.fast_batches.clear();
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
            if tracing::trace(self, trace, store, &publication, &headers, reply) {
                return;
            }
        }
        if may_hold {
            let totals = loading::totals_on_disk(self, store, publication.subject, &headers);
            if loading::hold_back(self, store, sent, &headers, totals, reply) {
                return;
            }
        }
        if let Err(refusal) = check_message_id(headers.message_id) {
            return self.refuse(&refusal, b"", reply);
        }
        if let Some(value) = headers.upload {
            return uploading::accept(self, value, &publication, reply);
        }
        if reply.ends_with(fast_batches::SUFFIX) {
            return fast_publish::accept(self, store, &publication, &headers, reply);
        }
        if headers.batch_id.is_some_and(|id| !id.is_empty()) {
            return commit::accept(self, store, &publication, &headers, reply);
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
        publication.subject = self.subject_as_stored(settings, sent.subject, subject);
        publication
    }

    /// The subject that a message gets from the stream; `changed` holds it if it is another one.
    pub(in crate::stream) fn subject_as_stored<'a>(
        &mut self,
        settings: &StreamSettings,
        subject: &'a [u8],
        changed: &'a mut Vec<u8>,
    ) -> &'a [u8] {
        let Some(transform) = &settings.subject_transform else {
            return subject;
        };
        changed.clear();
        match transform.apply(subject, &mut self.random, changed) {
            true => changed,
            false => subject,
        }
    }

    pub(in crate::stream) fn is_full(&self) -> bool {
        self.answers.is_full(&self.settings)
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
            self.sort_pending();
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
        let answer = self.answers.begin();
        if let Some(counter) = &admitted.counter {
            let stored = StoredPublish {
                stream: &self.settings.name,
                domain: self.settings.domain.as_deref(),
                sequence: appended.sequence,
                counter: Some(&counter.total.to_string()),
                ..StoredPublish::default()
            };
            stored.encode(answer);
        }
        self.note(store, admitted, appended, previous_sequence, reply);
        Ok(())
    }

    /// Completes a receipt when the fate of everything accepted so far is known.
    pub(in crate::stream) fn add_receipt(&mut self, receipt: Arc<dyn Receipt>) {
        if let Some(receipt) = self.held_back.add_receipt(receipt) {
            self.answers.push_receipt(receipt);
        }
    }

    /// The previous message on the same subject, if it will be needed.
    pub(in crate::stream) fn previous_sequence(&self, store: &Store, subject: &[u8]) -> u64 {
        match &self.settings.republish {
            Some(_) => self.view(store).last_sequence_of(subject),
            None => 0,
        }
    }

    /// A message was staged: notes what that changes, and that its answer is the one begun, or the plain one if that is
    /// empty.
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
        self.answers.note_staged(appended.ticket);
        let removed = match admitted.rollup {
            Some(Rollup::Subject) => self.roll_up_subject(store, message.subject, sequence),
            Some(Rollup::All) => self.roll_up_all(store, sequence),
            None => Ok(()),
        };
        self.schedules
            .note(message.subject, sequence, admitted.due_ns);
        let removed = removed.and_then(|()| match &admitted.ended_schedule {
            Some(subject) => scheduling::end(self, store, subject, sequence),
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
            reply,
            kept_headers,
            kept_payload,
            ..PendingItem::default()
        };
        self.usage.add_waiting(counted_bytes);
        self.answers.push_stored(&settings, counted_bytes, item);
        if let Some(counter) = admitted.counter {
            self.effects.set_counter(admitted.subject, counter);
        }
    }

    /// Whether a reader wants a message of this subject, or none is required to.
    pub(in crate::stream) fn is_kept(&self, subject: &[u8]) -> bool {
        self.settings.retention != Retention::Interest
            || self.readers.followers.want(subject)
            || self.readers.consumers.has_unserved()
            || self.readers.consumers.want(subject)
    }

    fn roll_up_subject(
        &mut self,
        store: &Store,
        subject: &[u8],
        sequence: u64,
    ) -> Result<(), StoreError> {
        self.sort_pending();
        let staged: Vec<u64> = self.pending().sequences_of(subject, 0).collect();
        self.effects.roll_up_subject(subject, sequence);
        store.roll_up(subject, &staged, sequence)
    }

    fn roll_up_all(&mut self, store: &Store, sequence: u64) -> Result<(), StoreError> {
        self.effects.roll_up_all(sequence);
        store.roll_up_all(sequence)
    }

    pub(in crate::stream) fn refuse(&mut self, refusal: &Refusal, header: &[u8], reply: &[u8]) {
        self.answers.refuse(&self.settings, refusal, header, reply);
    }

    pub(in crate::stream) fn answer_duplicate(&mut self, sequence: u64, reply: &[u8]) {
        self.answers
            .answer_duplicate(&self.settings, sequence, reply);
    }

    /// Answers when everything that came before is answered.
    pub(in crate::stream) fn answer(&mut self, reply: &[u8], write: impl FnOnce(&mut Vec<u8>)) {
        write(self.answers.begin());
        self.answers.push_answer(&self.settings, b"", reply);
    }

    /// Answers when everything that came before is stored, or says why it is not.
    pub(in crate::stream) fn answer_final(
        &mut self,
        reply: &[u8],
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        write(self.answers.begin());
        self.answers.push_final(&self.settings, reply);
    }

    /// Sends a message of its own when everything that came before is answered.
    pub(in crate::stream) fn send(&mut self, subject: &[u8], write: impl FnOnce(&mut Vec<u8>)) {
        write(self.answers.begin());
        self.answers.push_message(subject);
    }

    /// Moves everything whose fate is known to `drained`; refusals are numbered as in `progress`.
    pub fn drain_decided(
        &mut self,
        store: &Store,
        progress: &CommitProgress,
        drained: &mut Drained,
    ) {
        for first in self.answers.drain(progress, drained) {
            let last = loading::last_message_id(store);
            self.ids.forget_from(first, last);
            self.effects.clear();
            self.schedules.invalidate();
            self.incomplete.fast_batches.clear();
        }
        let last_sequence = progress.committed.last_sequence;
        self.effects
            .forget_committed(last_sequence, self.answers.pending_mut());
    }

    /// Forgets counters that the store knows, too.
    pub fn forget_counters(&mut self) {
        self.effects.forget_counters(self.answers.pending_mut());
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
