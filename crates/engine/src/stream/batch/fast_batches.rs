//! Fast batches that are open: messages that are stored as they come and acknowledged now and then, by a protocol in their reply subjects.
//!
//! ```text
//! <inbox>.<batch id>.<flow>.<gap: ok|fail>.<number in the batch>.<operation>.$FI
//! ```
//! Invariant: at most as many batches are open as the limits say, and none longer idle than they say.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use ahash::AHashMap;

use super::atomic_batches::ID_BYTES_MAX;

/// How a reply subject ends that belongs to a fast batch.
pub const SUFFIX: &[u8] = b".$FI";

/// Messages between two acknowledgements at most, of all batches of a stream together.
const FLOW_GRANTED_MAX: u64 = 500;

const FLOW_DEFAULT: u64 = 10;
const FLOW_MAX: u64 = 65_535;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FastOperation {
    Start,
    Append,
    Commit,
    /// Ends the batch; the message itself is not stored.
    End,
    Ping,
}

/// What a reply subject says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pattern<'a> {
    pub id: &'a [u8],
    pub flow: u64,
    pub gap_allowed: bool,
    pub number: u64,
    pub operation: FastOperation,
}

/// Why a reply subject says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatternError {
    Invalid,
    IdTooLong,
}

impl<'a> Pattern<'a> {
    pub fn read(reply: &'a [u8]) -> Result<Self, PatternError> {
        let body = reply.strip_suffix(SUFFIX).ok_or(PatternError::Invalid)?;
        let mut tokens = body.rsplitn(6, |byte| *byte == b'.');
        let mut next = || tokens.next().ok_or(PatternError::Invalid);
        let (operation, number, gap, flow, id) = (next()?, next()?, next()?, next()?, next()?);
        // What is left is the inbox.
        next()?;
        let operation = match operation {
            b"0" => FastOperation::Start,
            b"1" => FastOperation::Append,
            b"2" => FastOperation::Commit,
            b"3" => FastOperation::End,
            b"4" => FastOperation::Ping,
            _ => return Err(PatternError::Invalid),
        };
        let number = read_number(number).ok_or(PatternError::Invalid)?;
        let fits = match operation {
            FastOperation::Start => number == 1,
            FastOperation::Append | FastOperation::End => number >= 2,
            FastOperation::Commit | FastOperation::Ping => number >= 1,
        };
        let gap_allowed = match gap {
            b"ok" => true,
            b"fail" => false,
            _ => return Err(PatternError::Invalid),
        };
        if !fits {
            return Err(PatternError::Invalid);
        }
        if id.is_empty() || id.len() > ID_BYTES_MAX {
            return Err(PatternError::IdTooLong);
        }
        let flow = read_number(flow).filter(|flow| *flow > 0);
        Ok(Self {
            id,
            flow: flow.unwrap_or(FLOW_DEFAULT).min(FLOW_MAX),
            gap_allowed,
            number,
            operation,
        })
    }
}

fn read_number(text: &[u8]) -> Option<u64> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// One batch.
#[derive(Debug, Clone)]
pub struct FastBatch {
    /// What the client wants at most between two acknowledgements.
    flow: u64,
    /// What it was granted.
    pub granted: u64,
    /// The number of the next message.
    pub next: u64,
    /// The number acknowledged last.
    pub acknowledged: u64,
    /// The sequence of the last message that was stored; 0 if none was.
    pub last_sequence: u64,
    pub gap_allowed: bool,
    touched_ns: i64,
}

impl FastBatch {
    /// Whether an acknowledgement is due, with everything up to `number`; then what is granted next is nearer to what is wanted.
    pub fn acknowledge(&mut self, number: u64, open: usize) -> bool {
        if number.saturating_sub(self.acknowledged) < self.granted {
            return false;
        }
        self.acknowledged = number;
        let wanted = (FLOW_GRANTED_MAX / open.max(1) as u64).clamp(1, self.flow);
        self.granted = if self.granted < wanted {
            (2 * self.granted).min(wanted)
        } else {
            (self.granted / 2).max(wanted)
        };
        true
    }
}

/// How many fast batches may be open, and for how long.
#[derive(Debug, Clone, Copy)]
pub struct FastLimits {
    pub open_per_stream_max: usize,
    pub open_max: usize,
    pub idle_ns_max: i64,
}

impl Default for FastLimits {
    fn default() -> Self {
        Self {
            open_per_stream_max: 1000,
            open_max: 50_000,
            idle_ns_max: 10_000_000_000,
        }
    }
}

pub struct FastBatches {
    open: AHashMap<Box<[u8]>, FastBatch>,
    limits: FastLimits,
    /// Of all streams.
    open_of_server: Arc<AtomicUsize>,
}

impl FastBatches {
    pub fn new(limits: FastLimits, open_of_server: Arc<AtomicUsize>) -> Self {
        Self {
            open: AHashMap::new(),
            limits,
            open_of_server,
        }
    }

    /// Begins a batch; false if there are too many.
    pub fn begin(&mut self, pattern: &Pattern<'_>, now_ns: i64) -> bool {
        if self.open.len() >= self.limits.open_per_stream_max {
            return false;
        }
        if self.open_of_server.fetch_add(1, Ordering::Relaxed) >= self.limits.open_max {
            self.open_of_server.fetch_sub(1, Ordering::Relaxed);
            return false;
        }
        let alone = self.open.is_empty();
        let batch = FastBatch {
            flow: pattern.flow,
            granted: if alone {
                pattern.flow.min(FLOW_GRANTED_MAX)
            } else {
                1
            },
            next: 1,
            acknowledged: 0,
            last_sequence: 0,
            gap_allowed: pattern.gap_allowed,
            touched_ns: now_ns,
        };
        self.open.insert(pattern.id.into(), batch);
        true
    }

    pub fn has(&self, id: &[u8]) -> bool {
        self.open.contains_key(id)
    }

    pub fn len(&self) -> usize {
        self.open.len()
    }

    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub fn get_mut(&mut self, id: &[u8]) -> Option<&mut FastBatch> {
        self.open.get_mut(id)
    }

    /// An open batch, which is in use now.
    pub fn touch(&mut self, id: &[u8], now_ns: i64) -> Option<&mut FastBatch> {
        let batch = self.open.get_mut(id)?;
        batch.touched_ns = now_ns;
        Some(batch)
    }

    pub fn end(&mut self, id: &[u8]) -> Option<FastBatch> {
        let batch = self.open.remove(id)?;
        self.open_of_server.fetch_sub(1, Ordering::Relaxed);
        Some(batch)
    }

    /// Forgets batches that have been idle for too long.
    pub fn expire(&mut self, now_ns: i64) {
        let before = self.open.len();
        let idle_ns_max = self.limits.idle_ns_max;
        self.open
            .retain(|_, batch| now_ns.saturating_sub(batch.touched_ns) < idle_ns_max);
        self.open_of_server
            .fetch_sub(before - self.open.len(), Ordering::Relaxed);
    }

    pub fn clear(&mut self) {
        self.open_of_server
            .fetch_sub(self.open.len(), Ordering::Relaxed);
        self.open.clear();
    }
}

impl Drop for FastBatches {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_reply_subject_says_what_a_message_does() {
        let pattern = Pattern::read(b"_INBOX.a.b.u1.20.ok.3.1.$FI").unwrap();

        assert_eq!(
            pattern,
            Pattern {
                id: b"u1",
                flow: 20,
                gap_allowed: true,
                number: 3,
                operation: FastOperation::Append,
            }
        );
        for wrong in [
            &b"a.$FI"[..],
            b"u1.20.ok.3.1.$FI",
            b"p.u1.20.maybe.3.1.$FI",
            b"p.u1.20.ok.1.1.$FI",
            b"p.u1.20.ok.2.0.$FI",
            b"p.u1.20.ok.x.1.$FI",
            b"p.u1.20.ok.1.9.$FI",
        ] {
            assert_eq!(Pattern::read(wrong), Err(PatternError::Invalid));
        }
    }

    #[test]
    fn what_is_granted_comes_nearer_to_what_is_wanted() {
        let mut batches = FastBatches::new(FastLimits::default(), Arc::default());
        let pattern = Pattern::read(b"p.one.4.ok.1.0.$FI").unwrap();
        batches.begin(&pattern, 0);
        batches.begin(
            &Pattern {
                id: b"two",
                ..pattern
            },
            0,
        );
        let batch = batches.touch(b"two", 0).unwrap();

        assert_eq!(batch.granted, 1);
        assert!(batch.acknowledge(1, 2));
        assert_eq!(batch.granted, 2);
        assert!(!batch.acknowledge(2, 2));
        assert!(batch.acknowledge(3, 2));
        assert_eq!(batch.granted, 4);
    }

    proptest! {
        #[test]
        fn any_reply_is_read(reply in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = Pattern::read(&reply);
        }
    }
}
