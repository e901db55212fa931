//! What waits for the next commit: messages and removals, already as bytes and in their places.
//!
//! Invariant: the bytes of a part are exactly what will stand in its segment from `start` on.

use std::collections::HashMap;
use std::sync::Arc;

use super::options::StoreOptions;
use super::staged_work::{Epoch, StagedWork};
use super::writing::CommittedEnd;
use crate::storage::format::chain;
use crate::storage::format::chain::ChainLink;
use crate::storage::format::encryption::{SegmentKey, StreamKey};
use crate::storage::format::group;
use crate::storage::format::record;
use crate::storage::format::record::{Record, RecordKind, SUBJECT_BYTES_MAX};
use crate::storage::format::removal;
use crate::storage::format::removal::{Removal, RANGES_MAX};
use crate::storage::format::round::Round;
use crate::storage::format::segment_header::{SegmentHeader, FORMAT_VERSION, RECORDS_START};
use crate::storage::index::segments::Placed;
use crate::storage::message::{Appended, Committed, NewMessage, StoreError, StoreResult, Ticket};

/// Waiting bytes from which on no more is taken: the disk is slower than the publishers.
pub const STAGED_BYTES_MAX: usize = 256 * 1024 * 1024;

/// A segment never spans more sequences, so that their distances fit into 32 bits.
pub const SEQUENCE_SPAN_MAX: u64 = 1 << 31;

/// Removals go into a segment until it has this many times the bytes that messages may fill.
const REMOVALS_FACTOR: u64 = 2;

/// Records longer than this would not fit into a segment's index.
const RECORD_BYTES_MAX: usize = 1 << 29;

/// Buffers larger than this are not kept for the next batch.
const BUFFER_BYTES_KEPT_MAX: usize = 16 * 1024 * 1024;

pub struct StagedMessage {
    pub placed: Placed,
    /// Where its subject ends in the part's `names`; it begins where the one before it ends.
    pub name_end: usize,
}

/// What goes into one segment.
pub struct SegmentPart {
    pub header: SegmentHeader,
    /// The segment begins with this part.
    pub opens: bool,
    pub start: u64,
    pub bytes: Vec<u8>,
    pub names: Vec<u8>,
    pub messages: Vec<StagedMessage>,
    /// Where records other than messages begin and end.
    pub others: Vec<(u64, u64)>,
    /// What the removals among them say.
    pub removals: Vec<Removal>,
}

impl SegmentPart {
    fn new(header: SegmentHeader, opens: bool, start: u64) -> Self {
        Self {
            header,
            opens,
            start,
            bytes: Vec::new(),
            names: Vec::new(),
            messages: Vec::new(),
            others: Vec::new(),
            removals: Vec::new(),
        }
    }

    pub fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

pub struct StagedBatch {
    pub parts: Vec<SegmentPart>,
    /// As they were asked for, and durable with this batch; each with the number of messages of the batch that come before it.
    pub removals: Vec<(usize, Removal)>,
    /// Known already, and only to be remembered.
    pub lazy_removals: Vec<Removal>,
    pub last_ticket: Ticket,
    pub last_sequence: u64,
    pub last_link: Option<ChainLink>,
}

pub struct AppendStaging {
    next_ticket: u64,
    next_sequence: u64,
    /// The segment the next record goes to, and where.
    header: SegmentHeader,
    position: u64,
    opens: bool,
    /// The round of the next record.
    round: Round,
    parts: Vec<SegmentPart>,
    staged_bytes: usize,
    staged_messages: usize,
    removals: Vec<(usize, Removal)>,
    lazy_removals: Vec<Removal>,
    /// Messages whose removal waits, so that it is counted once, with what waits …
    leaving: HashMap<u64, Ticket>,
    /// … and those whose removal is being written.
    departing: HashMap<u64, Ticket>,
    /// The last of all of them.
    last_leaving: Option<Ticket>,
    spare: Option<SegmentPart>,
    stream_key: Option<StreamKey>,
    /// The key of the segment the next record goes to.
    key: Option<Arc<SegmentKey>>,
    /// The link of the last message, if the stream is chained.
    link: Option<ChainLink>,
    last_time_ns: i64,
    /// How often everything staged was forgotten.
    resets: u64,
    /// Of everything staged since then.
    epoch: Arc<Epoch>,
}

/// Where a stream goes on.
pub struct StreamStart {
    pub header: SegmentHeader,
    pub position: u64,
    pub next_sequence: u64,
    /// When the last message was stored.
    pub last_time_ns: i64,
    pub round: Round,
    pub stream_key: Option<StreamKey>,
    pub link: Option<ChainLink>,
}

impl AppendStaging {
    pub fn new(start: StreamStart) -> Self {
        let StreamStart {
            header,
            position,
            next_sequence,
            last_time_ns,
            round,
            stream_key,
            link,
        } = start;
        let key = stream_key
            .as_ref()
            .filter(|_| header.encrypted)
            .map(|key| Arc::new(key.segment(header.identity)));
        Self {
            stream_key,
            key,
            link,
            last_time_ns,
            next_ticket: 1,
            next_sequence,
            header,
            position,
            opens: false,
            round,
            parts: Vec::new(),
            staged_bytes: 0,
            staged_messages: 0,
            removals: Vec::new(),
            lazy_removals: Vec::new(),
            leaving: HashMap::new(),
            departing: HashMap::new(),
            last_leaving: None,
            spare: None,
            resets: 0,
            epoch: Arc::default(),
        }
    }

    pub fn append(
        &mut self,
        message: &NewMessage<'_>,
        options: &StoreOptions,
    ) -> StoreResult<Appended> {
        let bytes = self.stored_bytes(message)?;
        self.check_sequences(1)?;
        if self.staged_bytes > 0 && self.staged_bytes + bytes > STAGED_BYTES_MAX {
            return Err(StoreError::Behind);
        }
        self.make_room(bytes, 1, options.segment_bytes);
        Ok(self.stage(message, options))
    }

    /// Stages a message that follows others: nothing, if something was refused since `resets` was asked for, because then they may be missing. With a
    /// sequence it gets that one, and those between are passed over; nothing is staged if it is behind.
    pub fn append_following(
        &mut self,
        message: &NewMessage<'_>,
        sequence: Option<u64>,
        resets: u64,
        options: &StoreOptions,
    ) -> StoreResult<Option<Appended>> {
        let sequence = sequence.unwrap_or(self.next_sequence);
        if self.resets != resets || sequence < self.next_sequence {
            return Ok(None);
        }
        if sequence > self.next_sequence {
            // Refused before anything is passed over.
            self.stored_bytes(message)?;
            // In front of the message: whatever of the two survives a crash, nothing is missed.
            self.remember(&[Removal {
                first: self.next_sequence,
                last: sequence - 1,
                erase: false,
            }]);
            self.next_sequence = sequence;
        }
        self.append(message, options).map(Some)
    }

    /// Stages messages that are stored together or not at all: in one segment, after a record that says so.
    pub fn append_all(
        &mut self,
        messages: &[NewMessage<'_>],
        options: &StoreOptions,
    ) -> StoreResult<Vec<Appended>> {
        match messages {
            [] => return Ok(Vec::new()),
            [message] => return Ok(vec![self.append(message, options)?]),
            _ => {}
        }
        self.check_sequences(messages.len() as u64)?;
        let mut body_bytes = 0;
        for message in messages {
            body_bytes += self.stored_bytes(message)?;
            if body_bytes > STAGED_BYTES_MAX {
                return Err(StoreError::TooLarge);
            }
        }
        let blank = vec![0; group::payload_bytes(body_bytes)];
        let head = Record {
            kind: RecordKind::Group,
            round: self.round,
            ..Record::removed(self.next_sequence, &blank)
        };
        let bytes = head.stored_bytes() + body_bytes;
        if self.staged_bytes > 0 && self.staged_bytes + bytes > STAGED_BYTES_MAX {
            return Err(StoreError::Behind);
        }
        if self.header.version < group::SINCE_VERSION {
            // A reader of that version would not know what it means.
            self.roll();
        }
        self.make_room(bytes, messages.len(), options.segment_bytes);
        let (position, start) = (self.position, self.position + head.stored_bytes() as u64);
        let part = self.part();
        let binding = part.header.binding();
        let at = part.bytes.len();
        // Only its room: its contents are known when its messages are there.
        part.bytes.resize(at + head.stored_bytes(), 0);
        part.others.push((position, start));
        self.position = start;
        self.staged_bytes += head.stored_bytes();
        self.round = self.round.further();
        let staged = messages.iter().map(|message| self.stage(message, options));
        let appended: Vec<Appended> = staged.collect();
        let part = self.part();
        let (front, body) = part.bytes.split_at_mut(at + head.stored_bytes());
        debug_assert_eq!(body.len(), body_bytes);
        let payload = group::encode(messages.len() as u32, start, body);
        let mut encoded = Vec::with_capacity(head.stored_bytes());
        let head = Record {
            payload: &payload,
            ..head
        };
        head.encode(&mut encoded, binding, position, None);
        front[at..].copy_from_slice(&encoded);
        Ok(appended)
    }

    /// Whether there are sequences for this many messages. The highest number is never used, so every sequence has a
    /// successor.
    fn check_sequences(&self, messages: u64) -> StoreResult<()> {
        match self.next_sequence.checked_add(messages) {
            Some(_) => Ok(()),
            None => Err(StoreError::Exhausted),
        }
    }

    /// What a message takes in a segment.
    fn stored_bytes(&self, message: &NewMessage<'_>) -> StoreResult<usize> {
        let record = self.record(message, self.link.as_ref());
        let length = record.length();
        if message.subject.len() > SUBJECT_BYTES_MAX || length > RECORD_BYTES_MAX {
            return Err(StoreError::TooLarge);
        }
        Ok(record::padded(length))
    }

    /// The next message as a record.
    fn record<'a>(&self, message: &NewMessage<'a>, link: Option<&'a ChainLink>) -> Record<'a> {
        Record {
            kind: RecordKind::Message,
            encrypted: self.header.encrypted,
            round: self.round,
            sequence: self.next_sequence,
            // A clock that was set back must not make the search for times go astray.
            time_ns: message.time_ns.max(self.last_time_ns),
            expires_ns: message.expires_ns,
            link,
            subject: message.subject,
            headers: message.headers,
            payload: message.payload,
        }
    }

    /// Appends a message after all others; there is room for it.
    fn stage(&mut self, message: &NewMessage<'_>, options: &StoreOptions) -> Appended {
        let previous = self.link;
        let mut record = self.record(message, previous.as_ref());
        let length = record.length();
        let link = previous.map(|previous| chain::link(&previous, &chain::digest(&record)));
        record.link = link.as_ref();
        let position = self.position;
        let key = self.key.clone();
        let part = self.part();
        record.encode(
            &mut part.bytes,
            part.header.binding(),
            position,
            key.as_deref(),
        );
        part.names.extend_from_slice(message.subject);
        part.messages.push(StagedMessage {
            placed: Placed {
                sequence: record.sequence,
                position,
                length,
                time_ns: record.time_ns,
                expires_ns: message.expires_ns,
                counted_bytes: options.counting.bytes(
                    message.subject.len(),
                    message.headers.len(),
                    message.payload.len(),
                ),
            },
            name_end: part.names.len(),
        });
        self.round = self.round.further();
        self.position += record::padded(length) as u64;
        self.staged_bytes += record::padded(length);
        self.link = link;
        self.last_time_ns = record.time_ns;
        self.staged_messages += 1;
        self.next_sequence += 1;
        Appended {
            sequence: record.sequence,
            ticket: self.ticket(),
        }
    }

    fn ticket(&mut self) -> Ticket {
        self.next_ticket += 1;
        Ticket(self.next_ticket - 1)
    }

    /// Begins the next segment if the current one has no room for this many bytes and messages.
    fn make_room(&mut self, bytes: usize, messages: usize, segment_bytes: u64) {
        let is_empty = self.position == RECORDS_START;
        let full = self.position + bytes as u64 > segment_bytes && !is_empty;
        let end_sequence = self.next_sequence + messages as u64;
        let spans = end_sequence - self.header.base_sequence > SEQUENCE_SPAN_MAX;
        if full || spans {
            self.roll();
        }
    }

    /// The next message gets this sequence, in a new segment, and everything from `first` up to it is removed.
    pub fn advance(&mut self, first: u64, next_sequence: u64) -> Ticket {
        let removal = Removal {
            first,
            last: next_sequence - 1,
            erase: false,
        };
        // In the segment before: it is durable when the next one gets its name, so the sequences between the two are never missed.
        self.remember(&[removal]);
        self.next_sequence = next_sequence;
        self.roll();
        self.remove(removal)
    }

    /// The next record begins a new segment.
    pub fn roll(&mut self) {
        self.header = SegmentHeader {
            version: FORMAT_VERSION,
            identity: crate::storage::store::opening::random_identity(),
            number: self.header.number + 1,
            base_sequence: self.next_sequence,
            created_ns: crate::common::clock::system_ns(),
            ..self.header
        };
        self.key = self
            .stream_key
            .as_ref()
            .map(|key| Arc::new(key.segment(self.header.identity)));
        self.position = RECORDS_START;
        self.opens = true;
    }

    /// The part the next record goes into.
    fn part(&mut self) -> &mut SegmentPart {
        if self.opens || self.parts.is_empty() {
            let mut part = SegmentPart::new(self.header, self.opens, self.position);
            if let Some(spare) = self.spare.take() {
                part.bytes = spare.bytes;
                part.names = spare.names;
                part.messages = spare.messages;
            }
            self.parts.push(part);
            self.opens = false;
        }
        self.parts.last_mut().expect("there is one now")
    }

    /// The sequence of the next message.
    pub fn next_sequence(&self) -> u64 {
        self.next_sequence
    }

    /// How often everything staged was refused and forgotten.
    pub fn resets(&self) -> u64 {
        self.resets
    }

    /// The ticket given last.
    pub fn last_ticket(&self) -> Ticket {
        Ticket(self.next_ticket - 1)
    }

    pub fn staged_messages(&self) -> usize {
        self.staged_messages
    }

    /// New work, still empty, in the epoch of what is staged now.
    pub fn new_work(&self) -> StagedWork {
        StagedWork::new(&self.epoch)
    }

    /// Reports to all who staged something after `after` that it is discarded.
    pub fn discard(&mut self, after: Ticket, error: &StoreError) {
        std::mem::take(&mut self.epoch).discard(after, error);
    }

    /// The removal of this message, if it has been requested already.
    pub fn removal_of(&self, sequence: u64) -> Option<Ticket> {
        let waiting = self.leaving.get(&sequence);
        waiting.or_else(|| self.departing.get(&sequence)).copied()
    }

    /// The removals of single messages that wait or are being written, as work to commit; `None` if there are none.
    pub fn removals_under_way(&self) -> Option<StagedWork> {
        if self.leaving.is_empty() && self.departing.is_empty() {
            return None;
        }
        let mut work = self.new_work();
        work.cover(self.last_leaving?);
        Some(work)
    }

    /// Stages the removal of one message; the caller has checked that it is there and that no removal of it is staged yet.
    pub fn remove_one(&mut self, sequence: u64, erase: bool) -> Ticket {
        let ticket = self.remove(Removal {
            first: sequence,
            last: sequence,
            erase,
        });
        self.leaving.insert(sequence, ticket);
        self.last_leaving = Some(ticket);
        ticket
    }

    /// Stages a removal; the caller has seen that the messages are there.
    pub fn remove(&mut self, removal: Removal) -> Ticket {
        self.removals.push((self.staged_messages, removal));
        self.ticket()
    }

    /// Stages the memory of removals that have taken effect already, because the limits of the stream would ask for them again.
    pub fn remove_lazily(&mut self, removals: Vec<Removal>) {
        for removal in removals {
            removal::push(&mut self.lazy_removals, removal);
        }
    }

    /// Everything staged, to be written now; `None` if there is nothing that anybody waits for. With `lazy`, what nobody waits for is written too.
    pub fn take_batch(
        &mut self,
        committed: Committed,
        lazy: bool,
        segment_bytes: u64,
    ) -> Option<StagedBatch> {
        let lazy_min = if lazy { 1 } else { RANGES_MAX };
        let enough_lazy = self.lazy_removals.len() >= lazy_min;
        if self.parts.is_empty() && self.removals.is_empty() && !enough_lazy {
            return None;
        }
        let removals = std::mem::take(&mut self.removals);
        let lazy_removals = std::mem::take(&mut self.lazy_removals);
        let mut asked = Vec::new();
        for (_, removal) in &removals {
            removal::push(&mut asked, *removal);
        }
        // Removals fill a segment as messages do. One that is somewhat too long needs no new file, which a full disk may not have.
        if self.position > segment_bytes.saturating_mul(REMOVALS_FACTOR) {
            self.roll();
        }
        self.remember(&asked);
        self.remember(&lazy_removals);
        self.departing = std::mem::take(&mut self.leaving);
        self.staged_bytes = 0;
        self.staged_messages = 0;
        Some(StagedBatch {
            parts: std::mem::take(&mut self.parts),
            removals,
            lazy_removals,
            last_ticket: Ticket(self.next_ticket - 1),
            last_sequence: committed.last_sequence.max(self.next_sequence - 1),
            last_link: self.link,
        })
    }

    /// Writes down which messages are removed, twice, so that one damaged record cannot bring them back.
    fn remember(&mut self, removals: &[Removal]) {
        // Records how far messages had come, should the last of them be damaged.
        let next_sequence = self.next_sequence;
        for some in removals.chunks(RANGES_MAX) {
            let mut payload = Vec::new();
            removal::encode(some, &mut payload);
            for _ in 0..2 {
                let position = self.position;
                let round = self.round;
                let part = self.part();
                let binding = part.header.binding();
                let record = Record {
                    round,
                    ..Record::removed(next_sequence, &payload)
                };
                record.encode(&mut part.bytes, binding, position, None);
                let end = position + record.stored_bytes() as u64;
                part.others.push((position, end));
                self.position = end;
                self.round = round.further();
            }
            self.part().removals.extend_from_slice(some);
        }
    }

    /// What is staged from now on is written after a sync.
    pub fn begin_round(&mut self) {
        self.round = self.round.next();
    }

    /// Takes the buffers of a batch back, for the next one.
    pub fn give_back(&mut self, batch: StagedBatch) {
        self.departing.clear();
        let Some(mut part) = batch.parts.into_iter().next_back() else {
            return;
        };
        if part.bytes.capacity() <= BUFFER_BYTES_KEPT_MAX {
            part.bytes.clear();
            part.names.clear();
            part.messages.clear();
            self.spare = Some(part);
        }
    }

    /// Forgets everything staged: the next record goes where the last commit ended.
    pub fn reset(&mut self, end: CommittedEnd) {
        debug_assert!(end.next_sequence <= self.next_sequence);
        let is_encrypted = end.header.encrypted;
        let start = StreamStart {
            header: end.header,
            position: end.position,
            next_sequence: end.next_sequence,
            last_time_ns: self.last_time_ns,
            round: self.round.next(),
            stream_key: self.stream_key.take(),
            link: end.link,
        };
        *self = Self {
            next_ticket: self.next_ticket,
            resets: self.resets + 1,
            epoch: std::mem::take(&mut self.epoch),
            // What was only to be remembered is remembered with the next batch.
            lazy_removals: std::mem::take(&mut self.lazy_removals),
            ..Self::new(start)
        };
        if is_encrypted {
            // What was refused may be on the disk all the same, and no two messages may be encrypted for one place.
            self.roll();
        }
    }
}
