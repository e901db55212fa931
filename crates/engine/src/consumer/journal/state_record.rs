//! A consumer's state as the journal keeps it: the whole of it, or what has changed since the record before.
//!
//! Every record says how far the consumer is; of single messages a whole record lists all that are pending, any other one those that changed. Records of
//! one consumer are numbered, so that a missing one is noticed: then only the floor of the last good one is certain, and everything above it is
//! delivered again. A large state is written in slices (`SlicedRecord`), so that nobody waits for all of it. Invariant: applying the records since the last whole one, in order, gives the state they were made of.

use crate::consumer::acknowledgement::pending_list::{PendingMessage, Standing};
use crate::consumer::acknowledgement::state::{AckState, Reached};
use crate::consumer::settings::AckPolicy;
use crate::storage::format::bytes::ByteReader;
use crate::storage::format::removal::{put_varint, varint};

const VERSION: u8 = 2;

/// Without the sequence from which on everything was acknowledged, and with no byte of its own for what is parked.
const VERSION_FIRST: u8 = 1;

const GONE: u8 = 0;
const DELIVERED: u8 = 1;
const QUEUED: u8 = 2;
const EXCEEDED: u8 = 3;
const PARKED: u8 = 4;

/// What is kept beside the state of acknowledgements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Aside {
    /// Up to here only the last message of each subject is delivered; 0 if that is not so, or over.
    pub lasts_until: u64,
}

/// Appends a record with this number and takes note that everything up to now is written. Says whether it is a whole one.
pub fn encode(
    state: &mut AckState,
    aside: Aside,
    number: u64,
    wholly: bool,
    out: &mut Vec<u8>,
) -> bool {
    let changes = state.take_changes(wholly);
    let whole = changes.is_none();
    put_head(state, aside, number, whole, out);
    let mut list = List { out, previous: 0 };
    match changes {
        None => {
            list.put_known(state, usize::MAX);
        }
        Some(changes) => {
            for sequence in changes {
                if let Some(entry) = state.pending.get(sequence) {
                    list.put_entry(entry);
                } else if let Some(deliveries) = state.exceeded.get(&sequence) {
                    list.put_exceeded(sequence, *deliveries);
                } else if sequence > state.floor.stream {
                    // Below, the floor says so.
                    list.put(sequence, GONE);
                }
            }
        }
    }
    whole
}

fn put_head(state: &AckState, aside: Aside, number: u64, whole: bool, out: &mut Vec<u8>) {
    out.push(VERSION);
    out.push(u8::from(whole));
    put_varint(out, number);
    put_varint(out, state.next_stream);
    put_varint(out, state.next_consumer);
    put_varint(out, state.delivered_stream);
    put_varint(out, state.floor.consumer);
    put_varint(out, state.floor.stream);
    put_varint(out, aside.lasts_until);
    put_varint(out, state.settled_from);
}

/// A whole record that is written in slices while its state goes on changing. What changes meanwhile is noted, and the next record must say it: only
/// both together are the state.
pub struct SlicedRecord {
    pub record: Vec<u8>,
    previous: u64,
}

impl SlicedRecord {
    /// Begins a record with this number, and takes note that everything up to now will be in it.
    pub fn begin(state: &mut AckState, aside: Aside, number: u64) -> Self {
        state.take_changes(true);
        let mut record = Vec::new();
        put_head(state, aside, number, true, &mut record);
        Self {
            record,
            previous: 0,
        }
    }

    /// Adds up to this many messages; false when there are no more.
    pub fn add(&mut self, state: &AckState, most: usize) -> bool {
        let mut list = List {
            out: &mut self.record,
            previous: self.previous,
        };
        let count = list.put_known(state, most);
        self.previous = list.previous;
        count == most
    }
}

/// Single messages in a record, in the order of their sequences.
struct List<'a> {
    out: &'a mut Vec<u8>,
    previous: u64,
}

impl List<'_> {
    fn put(&mut self, sequence: u64, kind: u8) {
        put_varint(self.out, sequence - self.previous);
        self.out.push(kind);
        self.previous = sequence;
    }

    fn put_entry(&mut self, entry: &PendingMessage) {
        self.put(entry.stream_sequence, kind_of(entry));
        put_varint(self.out, entry.consumer_sequence);
        put_varint(self.out, entry.time_ns.max(0) as u64);
        put_varint(self.out, u64::from(entry.deliveries));
    }

    fn put_exceeded(&mut self, sequence: u64, deliveries: u32) {
        self.put(sequence, EXCEEDED);
        put_varint(self.out, u64::from(deliveries));
    }

    /// Appends the state of up to this many messages, and returns how many there were.
    fn put_known(&mut self, state: &AckState, most: usize) -> usize {
        let mut pending = state.pending.iter_behind(self.previous).peekable();
        let mut given_up = state.exceeded.range(self.previous + 1..).peekable();
        for count in 0..most {
            let is_given_up = match (pending.peek(), given_up.peek()) {
                (None, None) => return count,
                (Some(entry), Some((sequence, _))) => **sequence < entry.stream_sequence,
                (None, Some(_)) => true,
                (Some(_), None) => false,
            };
            if is_given_up {
                if let Some((sequence, deliveries)) = given_up.next() {
                    self.put_exceeded(*sequence, *deliveries);
                }
            } else if let Some(entry) = pending.next() {
                self.put_entry(entry);
            }
        }
        most
    }
}

fn kind_of(entry: &PendingMessage) -> u8 {
    match entry.standing {
        Standing::Parked => PARKED,
        Standing::Delivered => DELIVERED,
        Standing::Queued => QUEUED,
    }
}

fn standing_of(kind: u8, version: u8, deliveries: u32) -> Standing {
    match kind {
        QUEUED => Standing::Queued,
        PARKED => Standing::Parked,
        _ if version == VERSION_FIRST && deliveries == 0 => Standing::Parked,
        _ => Standing::Delivered,
    }
}

/// What the records of one consumer say, read one after the other.
#[derive(Debug, Default)]
pub struct Replayed {
    state: Option<AckState>,
    aside: Aside,
    number: u64,
    /// A record is missing since the last whole one.
    broken: bool,
}

impl Replayed {
    /// The number of the last record.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Takes the next record; one that makes no sense counts as missing.
    pub fn apply(&mut self, record: &[u8]) {
        if self.read(record).is_none() {
            self.broken = true;
        }
    }

    fn read(&mut self, record: &[u8]) -> Option<()> {
        let [version, whole, rest @ ..] = record else {
            return None;
        };
        if !(VERSION_FIRST..=VERSION).contains(version) {
            return None;
        }
        let mut reader = ByteReader::new(rest);
        let number = varint(&mut reader)?;
        let next_stream = varint(&mut reader)?;
        let next_consumer = varint(&mut reader)?.max(1);
        let delivered_stream = varint(&mut reader)?;
        let floor = Reached {
            consumer: varint(&mut reader)?,
            stream: varint(&mut reader)?,
        };
        let lasts_until = varint(&mut reader)?;
        let settled_from = match *version {
            // Nothing is known to be acknowledged.
            VERSION_FIRST => next_stream,
            _ => varint(&mut reader)?,
        };
        if *whole == 1 {
            self.state = Some(AckState::new(AckPolicy::Explicit, 1));
            self.broken = false;
        } else if self.number.checked_add(1) != Some(number) {
            self.broken = true;
        }
        self.number = number;
        if self.state.is_none() {
            // The whole one is missing; how far this one is, is certain all the same.
            self.broken = true;
        }
        let state = self
            .state
            .get_or_insert_with(|| AckState::new(AckPolicy::Explicit, 1));
        state.next_stream = next_stream.max(1);
        state.next_consumer = next_consumer;
        state.delivered_stream = delivered_stream;
        state.floor = floor;
        state.settled_from = settled_from;
        self.aside = Aside { lasts_until };
        let mut sequence = 0u64;
        while !reader.is_empty() {
            sequence = sequence.checked_add(varint(&mut reader)?)?;
            match reader.bytes(1)?[0] {
                GONE => state.restore_gone(sequence),
                EXCEEDED => {
                    let deliveries = varint(&mut reader)?;
                    state.restore_exceeded(sequence, u32::try_from(deliveries).ok()?);
                }
                kind @ (DELIVERED | QUEUED | PARKED) => {
                    let consumer_sequence = varint(&mut reader)?;
                    let time_ns = i64::try_from(varint(&mut reader)?).ok()?;
                    let deliveries = u32::try_from(varint(&mut reader)?).ok()?;
                    let standing = standing_of(kind, *version, deliveries);
                    state.restore(PendingMessage::new(
                        sequence,
                        consumer_sequence,
                        time_ns,
                        deliveries,
                        standing,
                    ));
                }
                _ => return None,
            }
        }
        Some(())
    }

    /// The state and the number of its last record; `None` if there was no whole one.
    pub fn finish(self, policy: AckPolicy) -> Option<(AckState, Aside, u64)> {
        let mut state = self.state?;
        state.policy = policy;
        state.restore_floor();
        if self.broken {
            // Whatever was delivered above the floor may be unacknowledged.
            state.rewind();
            return Some((state, Aside::default(), self.number));
        }
        Some((state, self.aside, self.number))
    }
}

#[cfg(test)]
#[path = "state_record_tests.rs"]
mod tests;
