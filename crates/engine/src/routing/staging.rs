//! Deliveries of one read, gathered per receiver, so that each receiver's outbox is touched once per read and not once per message.
//!
//! Small bodies are copied after their line. Large ones are only noted, as a range of the read buffer, and written from
//! there.
//! Invariant: between two `flush` calls every entry belongs to the same read buffer.

use std::io::IoSlice;
use std::ops::Range;
use std::sync::Arc;

use super::clients::connection::Connection;
use super::leaf::targets::LeafTargets;
use super::leaf::LeafLink;
use super::router::Publisher;
use super::sink::Sink;
use super::subscription::Subscription;
use crate::common::events::ServiceRequest;
use crate::config::options::{STAGED_BYTES_MAX, STAGED_PART};
use crate::transport::outbox::Flushed;
use crate::wire::{encoder, Publish};

/// Bodies from this size on are sent from the read buffer. Below, a copy costs less than a slice more in the vectored write.
pub const BODY_BY_REFERENCE_BYTES_MIN: usize = 1024;

/// Receivers of one read that the publishing thread writes to itself. With more, the owners write, in parallel.
pub const DIRECT_WRITES_MAX: usize = 32;

/// Room that a staging buffer keeps between reads; what a burst needed beyond that is given back.
const KEPT_BYTES_MAX: usize = 512 * 1024;

/// Staged bytes from which on they are handed over at once; less may wait until the worker has read its other ready connections.
const HAND_OVER_BYTES: usize = 32 * 1024;

/// Parts of the server that wait to be settled, at most about: each more makes it longer to find whether one is noted already.
const SINKS_NOTED_MAX: usize = 16;

const NOT_STAGED: u32 = u32::MAX;

pub struct Staging {
    /// Whose staging this is; a number that no worker has for one outside of them.
    worker: usize,
    /// Where each connection's entry is, by slot.
    entry_of_slot: Vec<u32>,
    entries: Vec<StagedDeliveries>,
    used: usize,
    /// Some body is only noted as a range of the read buffer.
    references: bool,
    /// What may be staged for one receiver, about.
    entry_bytes_max: usize,
    /// More than that is staged for one.
    full: bool,
    /// Messages for handlers in Python.
    requests: Vec<ServiceRequest>,
    /// Parts of the server that took something.
    sinks: Vec<Arc<dyn Sink>>,
    /// Receivers of the present message that are in another account.
    onward: Vec<Arc<Subscription>>,
    /// Links that the present message goes to.
    pub leaf_targets: LeafTargets,
    /// Room for the reply of a message that a consumer sends through a link.
    leaf_reply: Vec<u8>,
    /// Bodies are copied, because they are not in the read buffer.
    copies: bool,
}

#[derive(Default)]
pub struct StagedDeliveries {
    connection: Option<Arc<Connection>>,
    /// Lines and small bodies.
    bytes: Vec<u8>,
    /// Empty as long as everything is in `bytes`.
    pieces: Vec<StagedPiece>,
    /// How much of `bytes` the pieces cover.
    covered: usize,
    messages: u64,
    message_bytes: u64,
    /// The slot of the connection that published the last message in here.
    publisher: Option<usize>,
}

enum StagedPiece {
    Staged(Range<usize>),
    Read(Range<usize>),
}

impl StagedDeliveries {
    /// Where protocol lines are appended.
    #[inline]
    pub fn line(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Adds the body of a message: `range` of `buffer`, with the CR LF that follows it there. True when it was not copied.
    #[inline]
    fn body(
        &mut self,
        publisher: Option<usize>,
        buffer: &[u8],
        range: Range<usize>,
        copies: bool,
    ) -> bool {
        self.publisher = publisher;
        self.messages += 1;
        self.message_bytes += range.len() as u64;
        let with_end = range.start..range.end + 2;
        if copies || range.len() < BODY_BY_REFERENCE_BYTES_MIN {
            self.bytes.extend_from_slice(&buffer[with_end]);
            false
        } else {
            self.pieces
                .push(StagedPiece::Staged(self.covered..self.bytes.len()));
            self.covered = self.bytes.len();
            self.pieces.push(StagedPiece::Read(with_end));
            true
        }
    }

    /// What is staged, at most: a body that was copied counts twice.
    #[inline]
    fn bytes_max(&self) -> usize {
        self.bytes.len() + self.message_bytes as usize
    }

    fn reset(&mut self) {
        self.connection = None;
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES_MAX);
        self.pieces.clear();
        self.covered = 0;
        self.messages = 0;
        self.message_bytes = 0;
        self.publisher = None;
    }
}

/// What a flush left for the worker to see to.
pub struct Followup {
    pub connection: Arc<Connection>,
    pub flushed: Flushed,
    /// Who published to it last, to be slowed down if it is far behind.
    pub publisher: Option<usize>,
    /// Bytes of the messages that were handed over.
    pub message_bytes: u64,
}

impl Staging {
    pub fn new(worker: usize) -> Self {
        Self {
            worker,
            entry_of_slot: Vec::new(),
            entries: Vec::new(),
            used: 0,
            references: false,
            entry_bytes_max: STAGED_BYTES_MAX,
            full: false,
            requests: Vec::new(),
            sinks: Vec::new(),
            onward: Vec::new(),
            leaf_targets: LeafTargets::default(),
            leaf_reply: Vec::new(),
            copies: false,
        }
    }

    /// Notes that the present message also goes to another account.
    pub fn add_onward(&mut self, subscription: &Arc<Subscription>) {
        self.onward.push(Arc::clone(subscription));
    }

    #[inline]
    pub fn has_onward(&self) -> bool {
        !self.onward.is_empty()
    }

    pub fn take_onward(&mut self) -> Vec<Arc<Subscription>> {
        std::mem::take(&mut self.onward)
    }

    /// Stages what `work` delivers as copies: its bodies are in a buffer that ends with it.
    pub fn copying<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.copies, true);
        let result = work(self);
        self.copies = before;
        result
    }

    /// Stages only a small part of what may wait for a client before it is handed over.
    pub fn limit_entries(&mut self, pending_bytes_max: usize) {
        self.entry_bytes_max = STAGED_BYTES_MAX.min(pending_bytes_max / STAGED_PART);
    }

    /// Whether what is staged should be handed over before the rest of the read is looked at.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// The entry of a connection in the present read.
    #[inline]
    pub fn entry(&mut self, connection: &Arc<Connection>) -> &mut StagedDeliveries {
        let slot = connection.slot;
        if slot >= self.entry_of_slot.len() {
            self.entry_of_slot.resize(slot + 1, NOT_STAGED);
        }
        let mut position = self.entry_of_slot[slot];
        let is_its_own = self
            .entries
            .get(position as usize)
            .and_then(|entry| entry.connection.as_ref())
            .is_some_and(|staged| Arc::ptr_eq(staged, connection));
        // Another connection may have had the slot a moment ago, and what is staged for that one is not for this one.
        if !is_its_own {
            position = self.begin(connection);
        }
        &mut self.entries[position as usize]
    }

    #[cold]
    fn begin(&mut self, connection: &Arc<Connection>) -> u32 {
        if self.used == self.entries.len() {
            self.entries.push(StagedDeliveries::default());
        }
        let position = self.used as u32;
        self.entries[self.used].connection = Some(Arc::clone(connection));
        self.entry_of_slot[connection.slot] = position;
        self.used += 1;
        position
    }

    /// Stages one delivery: its line, and the body from where it is in `buffer`.
    #[inline]
    pub fn deliver(
        &mut self,
        receiver: &Arc<Connection>,
        publisher: Option<usize>,
        publish: &Publish<'_>,
        sid: &[u8],
        buffer: &[u8],
    ) {
        let body_offset = publish.body.as_ptr() as usize - buffer.as_ptr() as usize;
        let takes_headers = receiver.takes_headers();
        let copies = self.copies;
        let entry = self.entry(receiver);
        let skipped = encoder::delivery_line(entry.line(), publish, sid, takes_headers);
        let range = body_offset + skipped..body_offset + publish.body.len();
        let by_reference = entry.body(publisher, buffer, range, copies);
        let entry_bytes = entry.bytes_max();
        self.references |= by_reference;
        self.full |= entry_bytes > self.entry_bytes_max;
    }

    /// Stages the present message for the links that were noted. A message that a consumer sends is known there by the subject it is delivered to; its own
    /// is appended to the reply, and the server that has the client restores it.
    pub fn deliver_to_links(
        &mut self,
        publish: &Publish<'_>,
        deliver_subject: Option<&[u8]>,
        buffer: &[u8],
    ) {
        let mut targets = std::mem::take(&mut self.leaf_targets);
        let mut reply_room = std::mem::take(&mut self.leaf_reply);
        let mut sent = *publish;
        if let Some(subject) = deliver_subject.filter(|subject| *subject != publish.subject) {
            sent.subject = subject;
            if let Some(reply) = publish.reply {
                reply_room.clear();
                reply_room.extend_from_slice(reply);
                reply_room.push(b'@');
                reply_room.extend_from_slice(publish.subject);
                sent.reply = Some(&reply_room);
            }
        }
        targets.drain(|link, queues| self.deliver_to_link(link, &sent, queues, buffer));
        self.leaf_targets = targets;
        self.leaf_reply = reply_room;
    }

    /// Stages one message for one link. Its publisher is not stalled if the link is slow: a link that falls behind is cut off.
    pub fn deliver_to_link(
        &mut self,
        link: &LeafLink,
        publish: &Publish<'_>,
        queues: &[u8],
        buffer: &[u8],
    ) {
        let body_offset = publish.body.as_ptr() as usize - buffer.as_ptr() as usize;
        let receiver = &link.connection;
        let takes_headers = receiver.takes_headers();
        let copies = self.copies;
        let entry = self.entry(receiver);
        let skipped = encoder::leaf_line(entry.line(), publish, queues, takes_headers);
        let range = body_offset + skipped..body_offset + publish.body.len();
        let by_reference = entry.body(None, buffer, range, copies);
        let entry_bytes = entry.bytes_max();
        self.references |= by_reference;
        self.full |= entry_bytes > self.entry_bytes_max;
    }

    /// Stages one message for a handler in Python, as a copy: it leaves the data plane here.
    pub fn request(&mut self, service: u64, publisher: &Publisher<'_>, publish: &Publish<'_>) {
        self.requests.push(ServiceRequest {
            service,
            connection_id: publisher.connection_id,
            account: publisher.account.name.clone(),
            permissions: publisher.permissions.cloned(),
            subject: publish.subject.to_vec(),
            reply: publish.reply.unwrap_or_default().to_vec(),
            header: publish.header().to_vec(),
            payload: publish.payload().to_vec(),
        });
    }

    pub fn take_requests(&mut self) -> Vec<ServiceRequest> {
        std::mem::take(&mut self.requests)
    }

    /// Notes that a part of the server took something, and wants to know when that is all.
    #[inline]
    pub fn note_sink(&mut self, sink: &Arc<dyn Sink>) {
        let noted = self
            .sinks
            .iter()
            .rev()
            .any(|noted| Arc::ptr_eq(noted, sink));
        if !noted {
            self.sinks.push(Arc::clone(sink));
        }
    }

    pub fn settle_sinks(&mut self) {
        for sink in self.sinks.drain(..) {
            sink.finish_read();
        }
    }

    pub fn is_empty(&self) -> bool {
        self.used == 0 && self.requests.is_empty() && self.sinks.is_empty()
    }

    /// Whether what is staged must be handed over before the next read: it points into the read buffer, or it is much already.
    pub fn is_due(&self) -> bool {
        self.references
            || self.used > DIRECT_WRITES_MAX
            || self.sinks.len() >= SINKS_NOTED_MAX
            || self.entries[..self.used]
                .iter()
                .any(|entry| entry.bytes.len() >= HAND_OVER_BYTES)
    }

    /// Hands everything over. `buffer` is the read buffer the entries point into. What needs the owner's care goes to `followups`.
    ///
    /// Receivers of other workers come first: a client that sees its PONG may rely on everybody's outbox holding what it published
    /// before. Receivers of this worker cannot get ahead of that, since their next words are read after this.
    pub fn flush(&mut self, buffer: &[u8], now_ms: u64, followups: &mut Vec<Followup>) {
        self.flush_entries(buffer, now_ms, followups, |owner, worker| owner != worker);
        self.flush_entries(buffer, now_ms, followups, |owner, worker| owner == worker);
        self.used = 0;
        self.references = false;
        self.full = false;
    }

    fn flush_entries(
        &mut self,
        buffer: &[u8],
        now_ms: u64,
        followups: &mut Vec<Followup>,
        wanted: impl Fn(usize, usize) -> bool,
    ) {
        let direct = self.used <= DIRECT_WRITES_MAX;
        for entry in &mut self.entries[..self.used] {
            let Some(connection) = entry
                .connection
                .take_if(|connection| wanted(connection.worker, self.worker))
            else {
                continue;
            };
            self.entry_of_slot[connection.slot] = NOT_STAGED;
            if entry.messages > 0 {
                connection
                    .traffic
                    .add_out(entry.messages, entry.message_bytes);
                connection.note_delivery(now_ms);
            }
            let flushed = if direct {
                deliver(entry, &connection, buffer, now_ms)
            } else {
                match connection.outbox.queue_for_owner(collect(entry, buffer)) {
                    Flushed::Settled => Flushed::HandOver,
                    other => other,
                }
            };
            let publisher = entry.publisher;
            let message_bytes = entry.message_bytes;
            entry.reset();
            if flushed != Flushed::Settled || connection.outbox.is_behind() {
                followups.push(Followup {
                    connection,
                    flushed,
                    publisher,
                    message_bytes,
                });
            }
        }
    }
}

fn deliver(
    entry: &StagedDeliveries,
    connection: &Connection,
    buffer: &[u8],
    now_ms: u64,
) -> Flushed {
    if entry.pieces.is_empty() {
        return connection
            .outbox
            .deliver(&[IoSlice::new(&entry.bytes)], now_ms);
    }
    let mut slices = Vec::with_capacity(entry.pieces.len() + 1);
    for piece in &entry.pieces {
        slices.push(match piece {
            StagedPiece::Staged(range) => IoSlice::new(&entry.bytes[range.clone()]),
            StagedPiece::Read(range) => IoSlice::new(&buffer[range.clone()]),
        });
    }
    if entry.covered < entry.bytes.len() {
        slices.push(IoSlice::new(&entry.bytes[entry.covered..]));
    }
    connection.outbox.deliver(&slices, now_ms)
}

fn collect(entry: &mut StagedDeliveries, buffer: &[u8]) -> Vec<u8> {
    if entry.pieces.is_empty() {
        return std::mem::take(&mut entry.bytes);
    }
    let mut bytes = Vec::new();
    for piece in &entry.pieces {
        match piece {
            StagedPiece::Staged(range) => bytes.extend_from_slice(&entry.bytes[range.clone()]),
            StagedPiece::Read(range) => bytes.extend_from_slice(&buffer[range.clone()]),
        }
    }
    bytes.extend_from_slice(&entry.bytes[entry.covered..]);
    bytes
}

#[cfg(test)]
#[path = "staging_tests.rs"]
mod tests;
