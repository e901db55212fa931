//! What a stream must read of its own messages before it can check some of the new ones: message ids within the window,
//! schedules, and totals of counters.
//!
//! Ids and schedules are read when they are first needed, a total whenever it is not in memory, on a storage thread and
//! without any lock. Meanwhile the messages that need them, and all that follow, are held back (`HeldBack`).
//! Invariants: messages are accepted in the order in which they came; nothing with an id is stored before the ids are
//! known.

use std::collections::VecDeque;
use std::sync::Arc;

use super::answer_queue::BufferLimits;
use super::checks::Publication;
use super::duplicates::Duplicates;
use super::headers::PublishHeaders;
use super::ingest::Ingest;
use crate::storage::receipts::Receipt;
use crate::storage::segment::segment_file::Buffers;
use crate::storage::store::reading::Cached;
use crate::storage::store::Store;
use crate::stream::schedule::remembered_schedules::DueTimes;
use crate::stream::schedule::schedules::Schedules;
use crate::stream::settings::StreamSettings;
use crate::stream::stream::Stream;

/// Messages that are taken before others get the stream's lock.
const SLICE_MESSAGES: usize = 256;

struct HeldPublication {
    subject: Box<[u8]>,
    headers: Box<[u8]>,
    payload: Box<[u8]>,
    now_ns: i64,
    reply: Box<[u8]>,
    publisher_id: u64,
    receipts: Vec<Arc<dyn Receipt>>,
}

impl HeldPublication {
    fn bytes(&self) -> u64 {
        (self.subject.len() + self.headers.len() + self.payload.len() + self.reply.len()) as u64
    }
}

/// Messages that wait for what is being read. Not more than may wait for a commit.
#[derive(Default)]
pub struct HeldBack {
    messages: VecDeque<HeldPublication>,
    bytes: u64,
    /// The messages that hold the totals they count on from: one for each that waits, and one for each of a batch that one completes.
    totals: Vec<u64>,
}

impl HeldBack {
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    fn is_full(&self, limits: &BufferLimits) -> bool {
        self.messages.len() >= limits.messages_max || self.bytes >= limits.bytes_max
    }

    fn push(&mut self, publication: &Publication<'_>, reply: &[u8], publisher_id: u64) {
        let held = HeldPublication {
            subject: publication.subject.into(),
            headers: publication.headers.into(),
            payload: publication.payload.into(),
            now_ns: publication.now_ns,
            reply: reply.into(),
            publisher_id,
            receipts: Vec::new(),
        };
        self.bytes += held.bytes();
        self.messages.push_back(held);
    }

    fn pop(&mut self) -> Option<HeldPublication> {
        let held = self.messages.pop_front()?;
        debug_assert!(self.bytes >= held.bytes());
        self.bytes -= held.bytes();
        Some(held)
    }

    /// Takes the list of messages that hold totals: the caller reads them now.
    fn take_totals(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.totals)
    }

    /// Completes a receipt with the message that was held back last; gives it back if there is none.
    pub fn add_receipt(&mut self, receipt: Arc<dyn Receipt>) -> Option<Arc<dyn Receipt>> {
        match self.messages.back_mut() {
            Some(last) => {
                last.receipts.push(receipt);
                None
            }
            None => Some(receipt),
        }
    }
}

impl Drop for HeldBack {
    fn drop(&mut self) {
        for receipt in self.messages.iter().flat_map(|held| &held.receipts) {
            receipt.complete(Err("the stream was closed"));
        }
    }
}

/// What is missing.
#[derive(Clone, Copy)]
struct Missing {
    window_ns: i64,
    seed: u64,
    ids: bool,
    schedules: bool,
}

/// What was read.
struct LoadedState {
    ids: Option<LoadedIds>,
    schedules: Option<Schedules>,
}

struct LoadedIds {
    duplicates: Duplicates,
    last_message_id: Vec<u8>,
    /// The stream ended here when that was read.
    last_sequence: u64,
}

impl LoadedIds {
    /// Looks through what was stored within the window.
    fn read(store: &Store, missing: Missing, now_ns: i64) -> Self {
        let mut loaded = Self {
            duplicates: Duplicates::new(missing.window_ns, missing.seed),
            last_message_id: Vec::new(),
            last_sequence: store.messages().marks().last_sequence,
        };
        if let Ok(first) = store
            .messages()
            .sequence_at(now_ns.saturating_sub(missing.window_ns))
        {
            // Damaged messages are passed over, and reading errors end it: an id that cannot be read cannot be compared.
            let _ = store.messages().scan(first, |record| {
                loaded.last_sequence = loaded.last_sequence.max(record.sequence);
                let headers = PublishHeaders::read(record.headers);
                loaded.last_message_id.clear();
                if let Some(id) = headers.message_id.filter(|id| !id.is_empty()) {
                    loaded.last_message_id.extend_from_slice(id);
                    if loaded.duplicates.find(id).is_none() {
                        loaded.duplicates.add(id, record.sequence, record.time_ns);
                    }
                }
                true
            });
        }
        if loaded.last_message_id.is_empty() {
            loaded.last_message_id = last_message_id(store);
        }
        loaded
    }
}

/// The id of the last message; empty if it has none.
pub(in crate::stream) fn last_message_id(store: &Store) -> Vec<u8> {
    let last = store
        .messages()
        .read(store.messages().marks().last_sequence)
        .ok()
        .flatten();
    let id = last.as_ref().and_then(|message| {
        let headers = PublishHeaders::read(message.headers());
        headers.message_id.map(<[u8]>::to_vec)
    });
    id.unwrap_or_default()
}

impl LoadedState {
    fn read(
        store: &Store,
        settings: &StreamSettings,
        missing: Missing,
        due_times: &DueTimes,
        now_ns: i64,
    ) -> Self {
        let transform = settings.subject_transform.as_ref();
        Self {
            ids: missing.ids.then(|| LoadedIds::read(store, missing, now_ns)),
            schedules: missing
                .schedules
                .then(|| Schedules::load(store, transform, due_times)),
        }
    }
}

/// Holds a message back if it must wait for what is not read yet, or stands behind one that does; false if it need not. Refuses it if too many wait. `totals` are the messages that it counts on from, if they are to be read first.
pub(in crate::stream) fn hold_back(
    ingest: &mut Ingest,
    store: &Store,
    sent: &Publication<'_>,
    headers: &PublishHeaders<'_>,
    totals: Vec<u64>,
    reply: &[u8],
) -> bool {
    if ingest.held_back().is_empty() {
        let needs_schedules = ingest.schedules().is_outdated() && ingest.settings().allow_schedules;
        let needs_ids = !ingest.ids().is_loaded() && is_about_ids(headers);
        if !needs_schedules && !needs_ids && totals.is_empty() {
            return false;
        }
        if !store.has_disk() || store.messages().marks().last_sequence == 0 {
            // Nothing has to be waited for, and nothing is remembered of a stream without messages or without a disk.
            let nothing = DueTimes::default();
            let loaded = LoadedState::read(
                store,
                ingest.settings(),
                missing(ingest),
                &nothing,
                sent.now_ns,
            );
            enter_loaded(ingest, store, loaded, sent.now_ns);
            return false;
        }
    }
    let limits = *ingest.answers().limits();
    if ingest.held_back().is_full(&limits) {
        ingest.refuse_too_many(reply, None);
    } else {
        let publisher_id = ingest.publisher_id();
        ingest.held_back().push(sent, reply, publisher_id);
        ingest.held_back().totals.extend(totals);
    }
    true
}

/// The messages whose totals one counts on from, as far as the disk may have to be waited for. Those of a batch are needed when it is complete.
pub(in crate::stream) fn totals_on_disk(
    ingest: &Ingest,
    store: &Store,
    subject: &[u8],
    headers: &PublishHeaders<'_>,
) -> Vec<u64> {
    if !ingest.settings().allow_counter || !store.has_disk() {
        return Vec::new();
    }
    let mut totals = Vec::new();
    if let Some(id) = headers.batch_id.filter(|id| !id.is_empty()) {
        if headers.batch_commit.is_none() {
            return totals;
        }
        for held in ingest.incomplete().batches.messages(id) {
            let headers = PublishHeaders::read(held.headers);
            totals.extend(total_on_disk(ingest, store, held.subject, &headers));
        }
    }
    totals.extend(total_on_disk(ingest, store, subject, headers));
    totals
}

fn total_on_disk(
    ingest: &Ingest,
    store: &Store,
    subject: &[u8],
    headers: &PublishHeaders<'_>,
) -> Option<u64> {
    if headers.increment.is_none() || ingest.effects().counter(subject).is_some() {
        return None;
    }
    let last = store.messages().last_match(subject)?;
    let cached = store
        .messages()
        .read_cached(last, &mut Buffers::default(), |_| {});
    (cached == Cached::Unknown).then_some(last)
}

fn missing(ingest: &Ingest) -> Missing {
    Missing {
        window_ns: ingest.settings().duplicate_window_ns,
        seed: ingest.ids().seed(),
        ids: !ingest.ids().is_loaded(),
        schedules: ingest.schedules().is_outdated() && ingest.settings().allow_schedules,
    }
}

/// Enters what was read, unless another thread has done so already.
fn enter_loaded(ingest: &mut Ingest, store: &Store, loaded: LoadedState, now_ns: i64) {
    if let Some(ids) = loaded.ids.filter(|_| !ingest.ids().is_loaded()) {
        // What has come since the stream was opened had no id, or would be here.
        let (waiting, _) = ingest.pending().counts_behind(0);
        let is_last = waiting == 0 && store.messages().marks().last_sequence == ids.last_sequence;
        let last = match is_last {
            true => ids.last_message_id,
            false => Vec::new(),
        };
        ingest.load_ids(ids.duplicates, last, now_ns);
    }
    if let Some(schedules) = loaded
        .schedules
        .filter(|_| ingest.schedules().is_outdated())
    {
        *ingest.schedules_mut() = schedules;
    }
}

/// Takes a few of those that were held back; false if none are left.
fn take_held_back(ingest: &mut Ingest, store: &Store) -> bool {
    for _ in 0..SLICE_MESSAGES {
        let Some(held) = ingest.held_back().pop() else {
            return false;
        };
        let publication = Publication {
            subject: &held.subject,
            headers: &held.headers,
            payload: &held.payload,
            now_ns: held.now_ns,
        };
        ingest.set_publisher(held.publisher_id);
        ingest.take_now(store, &publication, &held.reply);
        for receipt in held.receipts {
            ingest.answers().push_receipt(receipt);
        }
    }
    !ingest.held_back().is_empty()
}

/// Whether the ids of other messages decide about one.
fn is_about_ids(headers: &PublishHeaders<'_>) -> bool {
    headers.message_id.is_some() || headers.expected_last_message_id.is_some()
}

impl Stream {
    /// Reads what messages may have to wait for, and takes those that were held back. Waits for the disk, and holds no lock meanwhile.
    pub(in crate::stream) fn load_stored(&self) {
        let missing = missing(&self.ingest.lock());
        if missing.ids || missing.schedules {
            let now_ns = self.now_ns();
            let due_times = match missing.schedules {
                true => self.remembered_schedules.read(),
                false => DueTimes::default(),
            };
            let settings = self.settings();
            let loaded = LoadedState::read(&self.store, &settings, missing, &due_times, now_ns);
            let mut ingest = self.ingest.lock();
            enter_loaded(&mut ingest, &self.store, loaded, now_ns);
        }
        loop {
            let totals = self.ingest.lock().held_back().take_totals();
            totals
                .into_iter()
                .for_each(|total| self.store.messages().prefetch(total));
            if !take_held_back(&mut self.ingest.lock(), &self.store) {
                break;
            }
        }
        self.commit_soon();
    }

    /// The same where a message of the server itself comes next, which is not held back; it costs nothing when there is nothing to read.
    pub(in crate::stream) fn load_stored_once(&self) {
        let missing = missing(&self.ingest.lock());
        if missing.ids || missing.schedules {
            self.load_stored();
        }
    }
}
