//! Key-shared groups: messages of one key in order, one under way at a time, many keys at once.
//!
//! A key is a token of the subject or the value of a header; messages without one are delivered as if there were no keys. A message whose key is under way is
//! parked, and delivered when the one before it is settled. Invariant: of each key at most one message is delivered and not settled; parked ones of a key
//! are in the order of the stream.

use std::collections::VecDeque;

use ahash::AHashMap;

use crate::consumer::acknowledgement::pending_list::{PendingMessage, Standing};
use crate::consumer::acknowledgement::state::AckState;
use crate::consumer::settings::Key;
use crate::storage::store::committed::CommittedMessages;
use crate::wire::stored_headers;

/// Messages that are passed over at most while others of their keys are under way.
pub const PARKED_MAX: usize = 64 * 1024;

/// A key with a message under way.
#[derive(Default)]
struct Busy {
    parked: VecDeque<u64>,
}

struct UnderWay {
    key: Box<[u8]>,
    /// 0 if that is not known.
    connection_id: u64,
}

impl UnderWay {
    fn new(key: &[u8]) -> Self {
        Self {
            key: key.into(),
            connection_id: 0,
        }
    }
}

pub struct Keys {
    key: Key,
    busy: AHashMap<Box<[u8]>, Busy>,
    /// Messages under way: their keys, and who has them.
    under_way: AHashMap<u64, UnderWay>,
    /// Parked messages whose turn it is.
    ready: VecDeque<u64>,
}

impl Keys {
    pub fn new(key: Key) -> Self {
        Self {
            key,
            busy: AHashMap::new(),
            under_way: AHashMap::new(),
            ready: VecDeque::new(),
        }
    }

    /// Those of messages that are pending.
    pub fn restore(key: Key, acks: &AckState, messages: &CommittedMessages) -> Self {
        let mut keys = Self::new(key);
        let (parked, delivered): (Vec<&PendingMessage>, Vec<&PendingMessage>) =
            (acks.pending.iter()).partition(|entry| entry.standing == Standing::Parked);
        for entry in delivered.into_iter().chain(parked) {
            // What cannot be read is settled when its turn comes.
            let Ok(Some(message)) = messages.read(entry.stream_sequence) else {
                continue;
            };
            let Some(key) = keys.of(message.subject(), message.headers()) else {
                continue;
            };
            if !keys.enter(&key, entry.stream_sequence) {
                continue;
            }
            if entry.standing == Standing::Parked {
                keys.ready.push_back(entry.stream_sequence);
            }
        }
        keys
    }

    /// The key of a message, if it has one.
    pub fn of(&self, subject: &[u8], block: &[u8]) -> Option<Box<[u8]>> {
        match &self.key {
            Key::SubjectToken(number) => subject
                .split(|byte| *byte == b'.')
                .nth(number.checked_sub(1)?)
                .map(Into::into),
            Key::Header(name) => stored_headers::value(block, name.as_bytes()).map(Into::into),
        }
    }

    /// A message of this key comes: true if it may be delivered now, false if it must be parked.
    pub fn enter(&mut self, key: &[u8], sequence: u64) -> bool {
        if let Some(busy) = self.busy.get_mut(key) {
            busy.parked.push_back(sequence);
            return false;
        }
        self.busy.insert(key.into(), Busy::default());
        self.under_way.insert(sequence, UnderWay::new(key));
        true
    }

    /// A message that had entered was not delivered after all.
    pub fn leave(&mut self, sequence: u64) {
        if let Some(under_way) = self.under_way.remove(&sequence) {
            self.busy.remove(&under_way.key);
        }
    }

    /// A message is settled: the next one of its key is ready.
    pub fn settled(&mut self, sequence: u64, acks: &mut AckState) {
        let Some(UnderWay { key, .. }) = self.under_way.remove(&sequence) else {
            return;
        };
        let Some(busy) = self.busy.get_mut(&key) else {
            return;
        };
        while let Some(next) = busy.parked.pop_front() {
            if acks.is_pending(next) {
                self.under_way.insert(next, UnderWay::new(&key));
                self.ready.push_back(next);
                return;
            }
        }
        self.busy.remove(&key);
    }

    /// A client has got a message.
    pub fn received(&mut self, sequence: u64, connection_id: u64) {
        if let Some(under_way) = self.under_way.get_mut(&sequence) {
            under_way.connection_id = connection_id;
        }
    }

    /// Messages whose receivers have left.
    pub fn left(&self, is_connected: impl Fn(u64) -> bool) -> Vec<u64> {
        let with = self.under_way.iter().filter(|(_, under_way)| {
            under_way.connection_id > 0 && !is_connected(under_way.connection_id)
        });
        with.map(|(sequence, _)| *sequence).collect()
    }

    /// The parked message whose turn it is.
    pub fn next_ready(&mut self, acks: &AckState) -> Option<u64> {
        while let Some(sequence) = self.ready.front().copied() {
            if acks.is_pending(sequence) {
                return Some(sequence);
            }
            self.ready.pop_front();
        }
        None
    }

    /// It was delivered, or is gone.
    pub fn take_ready(&mut self) {
        self.ready.pop_front();
    }

    pub fn clear(&mut self) {
        self.busy.clear();
        self.under_way.clear();
        self.ready.clear();
    }
}
