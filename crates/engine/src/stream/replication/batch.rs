//! Messages on their way from one stream to another, a few at a time: as they will be stored, one after the other in one
//! buffer.
//!
//! They are read without any lock of a stream, and staged under one. Invariant: a batch never has more than `MESSAGES_MAX` messages, and more than
//! `BYTES_MAX` bytes only if it has one.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use super::arrivals::Arrival;
use super::origin::{stays_behind, Origin};
use super::remote::delivery::RemoteDelivery;
use crate::common::random::Random;
use crate::storage::message::StoreResult;
use crate::storage::store::Store;
use crate::stream::settings::StreamSettings;
use crate::wire::stored_headers;
use crate::wire::trusted_headers;

const MESSAGES_MAX: usize = 512;
const BYTES_MAX: usize = 512 * 1024;

/// Messages that are not taken, one after the other, after which the next one is looked up instead of read.
const MISSES_MAX: u32 = 256;

struct OriginEntry {
    subject: Range<usize>,
    headers: Range<usize>,
    payload: Range<usize>,
    stream_source: Range<usize>,
    sequence: u64,
    time_ns: i64,
}

/// A message of an origin.
struct OriginMessage<'a> {
    subject: &'a [u8],
    headers: &'a [u8],
    payload: &'a [u8],
    sequence: u64,
    time_ns: i64,
}

/// What to read.
pub struct WantedMessages<'a> {
    pub origin: &'a Arc<Origin>,
    /// That of the stream it is now.
    pub identity: &'a str,
    /// Of the stream that gets the messages.
    pub settings: &'a StreamSettings,
    pub first_sequence: u64,
    pub now_ns: i64,
}

#[derive(Default)]
pub struct OriginBatch {
    entries: Vec<OriginEntry>,
    bytes: Vec<u8>,
    subject: Vec<u8>,
}

impl OriginBatch {
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The sequences of the messages at the origin.
    pub fn sequences(&self) -> impl Iterator<Item = u64> + '_ {
        self.entries.iter().map(|entry| entry.sequence)
    }

    pub fn arrivals(&self, is_mirror: bool) -> impl Iterator<Item = Arrival<'_>> {
        let of = |range: &Range<usize>| &self.bytes[range.clone()];
        self.entries.iter().map(move |entry| Arrival {
            subject: of(&entry.subject),
            headers: of(&entry.headers),
            payload: of(&entry.payload),
            time_ns: entry.time_ns,
            sequence: is_mirror.then_some(entry.sequence),
            stream_source: of(&entry.stream_source),
        })
    }

    /// Reads the next messages; returns the last sequence that was looked at, and whether that was all there is.
    pub fn fill(
        &mut self,
        store: &Store,
        wanted: &WantedMessages<'_>,
        random: &mut Random,
    ) -> StoreResult<(u64, bool)> {
        self.entries.clear();
        self.bytes.clear();
        // What is committed later may be there or not.
        let last_sequence = store.messages().counts().last_sequence;
        let mut next = wanted.first_sequence;
        while !self.is_full() {
            if !wanted.origin.takes_everything() {
                let filters = wanted.origin.filters.iter();
                let found = filters
                    .filter_map(|filter| {
                        store.messages().next_match(filter.subject.as_bytes(), next)
                    })
                    .min();
                match found {
                    Some(sequence) => next = sequence,
                    None => return Ok((last_sequence.max(next - 1), true)),
                }
            }
            let mut misses = 0;
            let mut looked_at = next - 1;
            let mut is_stopped = false;
            store.messages().scan(next, |record| {
                looked_at = record.sequence;
                misses += 1;
                let found = OriginMessage {
                    subject: record.subject,
                    headers: record.headers,
                    payload: record.payload,
                    sequence: record.sequence,
                    time_ns: record.time_ns,
                };
                if self.push(&found, wanted, random) {
                    misses = 0;
                }
                is_stopped = self.is_full() || misses == MISSES_MAX;
                !is_stopped
            })?;
            if !is_stopped {
                return Ok((last_sequence.max(looked_at), true));
            }
            next = looked_at + 1;
        }
        Ok((next - 1, false))
    }

    /// Takes what came from another server; returns the last sequence that was looked at.
    pub fn fill_from(
        &mut self,
        held: &VecDeque<RemoteDelivery>,
        wanted: &WantedMessages<'_>,
        random: &mut Random,
    ) -> u64 {
        self.entries.clear();
        self.bytes.clear();
        let mut looked_at = wanted.first_sequence - 1;
        for delivery in held {
            if self.is_full() {
                break;
            }
            looked_at = delivery.sequence;
            let found = OriginMessage {
                subject: delivery.subject(),
                headers: delivery.headers(),
                payload: delivery.payload(),
                sequence: delivery.sequence,
                time_ns: delivery.time_ns,
            };
            self.push(&found, wanted, random);
        }
        looked_at
    }

    fn is_full(&self) -> bool {
        self.entries.len() == MESSAGES_MAX || self.bytes.len() >= BYTES_MAX
    }

    /// Takes a message, if it is wanted.
    fn push(
        &mut self,
        record: &OriginMessage<'_>,
        wanted: &WantedMessages<'_>,
        random: &mut Random,
    ) -> bool {
        let WantedMessages {
            origin,
            identity,
            settings,
            ..
        } = wanted;
        self.subject.clear();
        if !origin.transform(record.subject, random, &mut self.subject) {
            return false;
        }
        let subject_start = self.bytes.len();
        let transformed = settings
            .subject_transform
            .as_ref()
            .is_some_and(|transform| transform.apply(&self.subject, random, &mut self.bytes));
        if !transformed {
            self.bytes.extend_from_slice(&self.subject);
        }
        let source_start = self.bytes.len();
        if !origin.is_mirror {
            let bytes = &mut self.bytes;
            origin.put_stream_source(record.sequence, record.subject, identity, bytes);
        }
        let headers_start = self.bytes.len();
        self.put_headers(
            record.headers,
            origin.is_mirror,
            source_start..headers_start,
        );
        let payload_start = self.bytes.len();
        self.bytes.extend_from_slice(record.payload);
        self.entries.push(OriginEntry {
            subject: subject_start..source_start,
            stream_source: source_start..headers_start,
            headers: headers_start..payload_start,
            payload: payload_start..self.bytes.len(),
            sequence: record.sequence,
            time_ns: match origin.is_mirror {
                true => record.time_ns,
                false => wanted.now_ns,
            },
        });
        true
    }

    fn put_headers(&mut self, headers: &[u8], is_mirror: bool, stream_source: Range<usize>) {
        let start = self.bytes.len();
        let drops = |name: &[u8]| stays_behind(name, is_mirror);
        if stored_headers::names(headers).any(drops) {
            stored_headers::copy_without(headers, drops, &mut self.bytes);
        } else {
            self.bytes.extend_from_slice(headers);
        }
        if !is_mirror {
            let value = self.bytes[stream_source].to_vec();
            stored_headers::add(
                &mut self.bytes,
                start,
                trusted_headers::STREAM_SOURCE,
                &value,
            );
        }
    }
}
