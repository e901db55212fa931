//! Committing messages that belong together: each is checked as if those before it were stored, then all are staged together or none.

use std::sync::Arc;

use ahash::{AHashMap, AHashSet};

use super::advisory;
use super::atomic_batches::{AtomicBatch, BatchStep};
use crate::storage::message::{Appended, NewMessage, StoreError};
use crate::storage::store::Store;
use crate::stream::publish::acknowledgement::{Refusal, StoredPublish};
use crate::stream::publish::admitted::Admitted;
use crate::stream::publish::checks;
use crate::stream::publish::checks::{refusal, CheckOutcome, Publication, Rollup, View};
use crate::stream::publish::counter::{Counter, CounterError};
use crate::stream::publish::headers::PublishHeaders;
use crate::stream::publish::ingest::{store_refusal, Ingest};
use crate::stream::publish::staged_view::StagedView;
use crate::stream::settings::StreamSettings;
use crate::stream::staged_commit::held_messages::HeldMessage;
use crate::wire::stored_headers;

/// Accepts a message that names a batch.
pub(in crate::stream) fn accept(
    ingest: &mut Ingest,
    store: &Store,
    publication: &Publication<'_>,
    headers: &PublishHeaders<'_>,
    reply: &[u8],
) {
    if !ingest.settings().allow_atomic_batch {
        let disabled = refusal(400, 10174, "atomic publish is disabled");
        return ingest.refuse(&disabled, b"", reply);
    }
    let id = headers.batch_id.unwrap_or_default();
    match ingest.incomplete_mut().batches.accept(publication, headers) {
        BatchStep::Held => {
            ingest.answer(reply, |_| {});
        }
        BatchStep::Complete(batch) => {
            commit_batch(ingest, store, id, &batch, publication.now_ns, reply)
        }
        BatchStep::Refused { refusal, abandoned } => {
            ingest.refuse(&refusal, b"", reply);
            if let Some(reason) = abandoned {
                tell_abandoned(ingest, id, reason);
            }
        }
    }
}

/// Gives up batches that have been idle for too long.
pub fn expire_batches(ingest: &mut Ingest, now_ns: i64) -> bool {
    ingest.incomplete_mut().fast_batches.expire(now_ns);
    ingest.incomplete_mut().uploads.expire(now_ns);
    let ids = ingest.incomplete_mut().batches.expire(now_ns);
    for id in &ids {
        tell_abandoned(ingest, id, "timeout");
    }
    !ids.is_empty()
}

fn tell_abandoned(ingest: &mut Ingest, id: &[u8], reason: &str) {
    let stream = Arc::clone(ingest.settings());
    let subject = advisory::subject(&stream.name);
    let mut payload = Vec::new();
    advisory::write(&mut payload, &stream.name, id, reason, ingest.random());
    ingest.send(subject.as_bytes(), |out| out.extend_from_slice(&payload));
}

fn commit_batch(
    ingest: &mut Ingest,
    store: &Store,
    id: &[u8],
    batch: &AtomicBatch,
    now_ns: i64,
    reply: &[u8],
) {
    let together = match stage_together(ingest, store, batch.messages.iter(), now_ns, None) {
        Ok(together) => together,
        Err(unstaged) => return ingest.refuse(&unstaged.refusal(), b"", reply),
    };
    let mut answer = Vec::new();
    let id = String::from_utf8_lossy(id);
    let stored = StoredPublish {
        stream: &ingest.settings().name,
        domain: ingest.settings().domain.as_deref(),
        sequence: together.last().map_or(0, |last| last.sequence),
        batch: Some((&id, together.messages.len() as u64)),
        ..StoredPublish::default()
    };
    stored.encode(&mut answer);
    note_together(ingest, store, together, &answer, reply);
}

/// Checks messages and stages them, all or none. The last one gets one more header, if one is given.
pub(in crate::stream) fn stage_together<'a>(
    ingest: &mut Ingest,
    store: &Store,
    held: impl Iterator<Item = HeldMessage<'a>>,
    now_ns: i64,
    mark: Option<(&[u8], &[u8])>,
) -> Result<Together<'a>, Unstaged> {
    let checked = check_batch(ingest, store, held, now_ns);
    let mut messages = checked.map_err(Unstaged::Refused)?;
    if let (Some(last), Some((name, value))) = (messages.last_mut(), mark) {
        stored_headers::add(last.headers.to_mut(), 0, name, value);
    }
    let previous = messages
        .iter()
        .map(|message| ingest.previous_sequence(store, message.subject))
        .collect();
    let new: Vec<NewMessage<'_>> = messages.iter().map(Admitted::message).collect();
    let appended = store.append_all(&new).map_err(Unstaged::Store)?;
    Ok(Together {
        messages,
        previous,
        appended,
    })
}

/// Notes messages that were staged together; the last one is answered.
pub(in crate::stream) fn note_together(
    ingest: &mut Ingest,
    store: &Store,
    together: Together<'_>,
    answer: &[u8],
    reply: &[u8],
) {
    let count = together.messages.len();
    let mut last_of: AHashMap<Box<[u8]>, u64> = AHashMap::new();
    let all = together.messages.into_iter().zip(together.appended);
    for (number, ((message, appended), previous)) in all.zip(together.previous).enumerate() {
        let previous = last_of.get(message.subject).copied().unwrap_or(previous);
        if ingest.settings().republish.is_some() {
            last_of.insert(message.subject.into(), appended.sequence);
        }
        let begun = ingest.answers().begin();
        let mut answered: &[u8] = b"";
        if number + 1 == count {
            answered = reply;
            begun.extend_from_slice(answer);
        }
        ingest.note(store, message, appended, previous, answered);
    }
}

/// Checks all messages of a batch.
fn check_batch<'a>(
    ingest: &mut Ingest,
    store: &Store,
    held: impl Iterator<Item = HeldMessage<'a>>,
    now_ns: i64,
) -> Result<Vec<Admitted<'a>>, Refusal> {
    let settings = Arc::clone(ingest.settings());
    let mut before = Before::default();
    let mut all = Vec::new();
    for held in held {
        let headers = PublishHeaders::read(held.headers);
        let publication = Publication {
            subject: held.subject,
            headers: held.headers,
            payload: held.payload,
            now_ns,
        };
        ingest.prepare(&headers, now_ns);
        before.check(&settings, &publication, &headers)?;
        let view = BatchView {
            staged: ingest.view(store),
            before: &before,
        };
        match checks::check(&settings, &view, &publication, &headers)? {
            CheckOutcome::Duplicate { .. } => return Err(duplicate()),
            CheckOutcome::Store(passed) => {
                // A schedule replaces what its subject has though it may not say so.
                let admitted = Admitted::new(&settings, &publication, &headers, passed);
                if admitted.rollup == Some(Rollup::Subject) && before.has(held.subject) {
                    return Err(refusal(500, 10111, "batch rollup sub invalid"));
                }
                if admitted.rollup == Some(Rollup::All) && before.messages > 0 {
                    return Err(refusal(500, 10111, "batch rollup all invalid"));
                }
                before.add(&settings, &admitted);
                all.push(admitted);
            }
        }
    }
    Ok(all)
}

/// Messages that are staged, all or none, and not noted yet.
pub(in crate::stream) struct Together<'a> {
    messages: Vec<Admitted<'a>>,
    /// The message before on the same subject, of each.
    previous: Vec<u64>,
    appended: Vec<Appended>,
}

impl Together<'_> {
    pub(in crate::stream) fn last(&self) -> Option<Appended> {
        self.appended.last().copied()
    }

    /// What they count for in the size of the stream.
    pub(in crate::stream) fn counted_bytes(&self, settings: &StreamSettings) -> u64 {
        let bytes = |message: &Admitted<'_>| {
            let message = message.message();
            let lengths = (
                message.subject.len(),
                message.headers.len(),
                message.payload.len(),
            );
            settings.counting.bytes(lengths.0, lengths.1, lengths.2)
        };
        self.messages.iter().map(bytes).sum()
    }
}

/// Why messages were not staged.
pub(in crate::stream) enum Unstaged {
    Refused(Refusal),
    Store(StoreError),
}

impl Unstaged {
    pub(in crate::stream) fn refusal(self) -> Refusal {
        match self {
            Self::Refused(refusal) => refusal,
            Self::Store(error) => store_refusal(&error),
        }
    }
}

fn duplicate() -> Refusal {
    let text = "atomic publish batch contains duplicate message id";
    refusal(400, 10201, text)
}

/// The messages of the batch that come before the one being checked.
#[derive(Default)]
struct Before {
    messages: u64,
    bytes: u64,
    by_subject: AHashMap<Box<[u8]>, u64>,
    ids: AHashSet<Box<[u8]>>,
    counters: AHashMap<Box<[u8]>, Counter>,
}

impl Before {
    fn has(&self, subject: &[u8]) -> bool {
        self.by_subject.contains_key(subject)
    }

    /// What a batch asks for beyond what every message is asked for.
    fn check(
        &self,
        settings: &StreamSettings,
        publication: &Publication<'_>,
        headers: &PublishHeaders<'_>,
    ) -> Result<(), Refusal> {
        let is_there = |value: Option<&[u8]>| value.is_some_and(|value| !value.is_empty());
        if is_there(headers.expected_last_message_id) {
            let text = "atomic publish unsupported header used: Nats-Expected-Last-Msg-Id";
            return Err(refusal(400, 10177, text));
        }
        if is_there(headers.time_to_live) && !settings.allow_time_to_live {
            return Err(refusal(400, 10166, "per-message TTL is disabled"));
        }
        let of_subject = headers
            .expected_last_subject_sequence_subject
            .filter(|subject| !subject.is_empty())
            .unwrap_or(publication.subject);
        let late = is_there(headers.expected_last_sequence) && self.messages > 0;
        let written = is_there(headers.expected_last_subject_sequence) && self.has(of_subject);
        if late || written {
            return Err(refusal(400, 10164, "wrong last sequence"));
        }
        if headers.message_id.is_some_and(|id| self.ids.contains(id)) {
            return Err(duplicate());
        }
        Ok(())
    }

    fn add(&mut self, settings: &StreamSettings, admitted: &Admitted<'_>) {
        let message = admitted.message();
        self.messages += 1;
        self.bytes += settings.counting.bytes(
            message.subject.len(),
            message.headers.len(),
            message.payload.len(),
        );
        *self.by_subject.entry(admitted.subject.into()).or_default() += 1;
        if let Some(id) = admitted.message_id {
            self.ids.insert(id.into());
        }
        if let Some(counter) = &admitted.counter {
            self.counters
                .insert(admitted.subject.into(), counter.clone());
        }
    }
}

/// The stream as it would be with the messages of the batch before this one.
struct BatchView<'a> {
    staged: StagedView<'a>,
    before: &'a Before,
}

impl View for BatchView<'_> {
    fn is_kept(&self, subject: &[u8]) -> bool {
        self.staged.is_kept(subject)
    }

    fn last_sequence(&self) -> u64 {
        self.staged.last_sequence()
    }

    fn last_sequence_of(&self, filter: &[u8]) -> u64 {
        self.staged.last_sequence_of(filter)
    }

    fn messages(&self) -> u64 {
        self.staged.messages() + self.before.messages
    }

    fn bytes(&self) -> u64 {
        self.staged.bytes() + self.before.bytes
    }

    fn count_of(&self, subject: &[u8]) -> u64 {
        let before = self.before.by_subject.get(subject).copied();
        self.staged.count_of(subject) + before.unwrap_or(0)
    }

    fn oldest_bytes_of(&self, subject: &[u8]) -> u64 {
        self.staged.oldest_bytes_of(subject)
    }

    fn find_message_id(&self, id: &[u8]) -> Option<u64> {
        self.staged.find_message_id(id)
    }

    fn last_message_id(&self) -> &[u8] {
        self.staged.last_message_id()
    }

    fn is_server_full(&self) -> bool {
        self.staged.is_server_full()
    }

    fn account_has_room(&self, bytes: u64) -> bool {
        self.staged.account_has_room(bytes + self.before.bytes)
    }

    fn has_schedule(&self, subject: &[u8]) -> Option<bool> {
        self.staged.has_schedule(subject)
    }

    fn counter_of(&self, subject: &[u8]) -> Result<Counter, CounterError> {
        match self.before.counters.get(subject) {
            Some(counter) => Ok(counter.clone()),
            None => self.staged.counter_of(subject),
        }
    }
}
