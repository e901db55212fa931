//! Atomic batches that are open: messages that wait until the last one of their batch has come, and are stored all together or not at all.
//!
//! Nothing of an open batch is in the store. Invariant: at most as many batches are open, and as many messages and bytes wait in them, as the limits and the account's share say.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use ahash::AHashMap;

use crate::config::options::API_LEVEL;
use crate::stream::publish::acknowledgement::Refusal;
use crate::stream::publish::checks::{refusal, Publication};
use crate::stream::publish::headers::PublishHeaders;
use crate::stream::staged_commit::held_messages::{HeldMessage, HeldMessages};
use crate::stream::usage::account_usage::AccountUsage;
use crate::stream::usage::shares::Exceeded;
use crate::wire::stored_headers;

/// An id has no more bytes.
pub const ID_BYTES_MAX: usize = 64;

const REQUIRED_API_LEVEL: &[u8] = b"Nats-Required-Api-Level";

/// What batches may take up.
#[derive(Debug, Clone, Copy)]
pub struct BatchLimits {
    pub open_per_stream_max: usize,
    pub open_max: usize,
    pub messages_max: usize,
    /// A batch that nothing was added to for so long is given up.
    pub idle_ns_max: i64,
}

impl Default for BatchLimits {
    fn default() -> Self {
        Self {
            open_per_stream_max: 50,
            open_max: 1000,
            messages_max: 1000,
            idle_ns_max: 10_000_000_000,
        }
    }
}

/// A batch, with the messages that have come so far.
#[derive(Debug, Default)]
pub struct AtomicBatch {
    pub messages: HeldMessages,
    /// What they take up of the account's share.
    bytes: usize,
    touched_ns: i64,
}

/// What became of a message.
#[derive(Debug)]
pub enum BatchStep {
    Held,
    /// The batch is complete.
    Complete(AtomicBatch),
    Refused {
        refusal: Refusal,
        /// An open batch has ended with it, for this reason.
        abandoned: Option<&'static str>,
    },
}

pub struct AtomicBatches {
    open: AHashMap<Box<[u8]>, AtomicBatch>,
    limits: BatchLimits,
    /// Of all streams.
    open_of_server: Arc<AtomicUsize>,
    usage: Arc<AccountUsage>,
}

impl AtomicBatches {
    pub fn new(
        limits: BatchLimits,
        open_of_server: Arc<AtomicUsize>,
        usage: Arc<AccountUsage>,
    ) -> Self {
        Self {
            open: AHashMap::new(),
            limits,
            open_of_server,
            usage,
        }
    }

    /// Takes a message that names a batch.
    pub fn accept(
        &mut self,
        publication: &Publication<'_>,
        headers: &PublishHeaders<'_>,
    ) -> BatchStep {
        let id = headers.batch_id.unwrap_or_default();
        if id.len() > ID_BYTES_MAX {
            return refused(10179, "atomic publish batch ID is invalid");
        }
        let Some(sequence) = headers.batch_sequence.and_then(number) else {
            return refused(10175, "atomic publish sequence is missing");
        };
        if !is_level_served(headers) {
            let text = "JetStream minimum api level required";
            return self.end(id, refusal(412, 10185, text), "unsupported");
        }
        let commit = match headers.batch_commit {
            None => CommitKind::None,
            Some(b"1") => CommitKind::WithMessage,
            Some(b"eob") => CommitKind::WithoutMessage,
            Some(_) => {
                let text = "atomic publish batch commit is invalid";
                return self.end(id, refusal(400, 10200, text), "incomplete");
            }
        };
        let incomplete = || refusal(400, 10176, "atomic publish batch is incomplete");
        let held = match self.open.get(id) {
            Some(batch) => batch.messages.len(),
            None if sequence != 1 || commit == CommitKind::WithoutMessage => {
                // The end of a batch is not one of its messages.
                let messages =
                    sequence - u64::from(commit == CommitKind::WithoutMessage && sequence > 0);
                let is_large = messages > self.limits.messages_max as u64;
                return BatchStep::Refused {
                    refusal: if is_large {
                        self.too_large()
                    } else {
                        incomplete()
                    },
                    abandoned: None,
                };
            }
            None => {
                if let Some(step) = self.open(id) {
                    return step;
                }
                0
            }
        };
        if sequence != held as u64 + 1 {
            return self.end(id, incomplete(), "incomplete");
        }
        if commit != CommitKind::WithoutMessage && held >= self.limits.messages_max {
            return self.end(id, self.too_large(), "large");
        }
        let bytes = match commit {
            CommitKind::WithoutMessage => 0,
            CommitKind::None | CommitKind::WithMessage => bytes_of(publication),
        };
        if let Err(exceeded) = self.usage.batch_bytes.reserve(bytes) {
            return self.end(id, too_many_bytes(exceeded), "large");
        }
        let Some(batch) = self.open.get_mut(id) else {
            self.usage.batch_bytes.give_back(bytes);
            return self.end(id, incomplete(), "incomplete");
        };
        batch.bytes += bytes;
        batch.touched_ns = publication.now_ns;
        if commit == CommitKind::WithoutMessage {
            // The message before it is the last one.
            batch.messages.change_last_headers(|headers| {
                stored_headers::add(headers, 0, b"Nats-Batch-Commit", b"1");
            });
        } else {
            hold(publication, headers, &mut batch.messages);
        }
        if commit == CommitKind::None {
            return BatchStep::Held;
        }
        self.remove(id).map_or(BatchStep::Held, BatchStep::Complete)
    }

    /// The messages of an open batch.
    pub fn messages(&self, id: &[u8]) -> impl Iterator<Item = HeldMessage<'_>> {
        let batch = self.open.get(id);
        batch.into_iter().flat_map(|batch| batch.messages.iter())
    }

    fn too_large(&self) -> Refusal {
        let most = self.limits.messages_max;
        refusal(
            400,
            10199,
            &format!("atomic publish batch is too large: {most}"),
        )
    }

    /// Begins a batch, unless there are too many.
    fn open(&mut self, id: &[u8]) -> Option<BatchStep> {
        let too_many = self.open.len() >= self.limits.open_per_stream_max
            || self.open_of_server.fetch_add(1, Ordering::Relaxed) >= self.limits.open_max;
        if too_many {
            if self.open.len() < self.limits.open_per_stream_max {
                self.open_of_server.fetch_sub(1, Ordering::Relaxed);
            }
            return Some(BatchStep::Refused {
                refusal: refusal(429, 10210, "atomic publish too many inflight"),
                abandoned: None,
            });
        }
        self.open.insert(id.into(), AtomicBatch::default());
        None
    }

    fn remove(&mut self, id: &[u8]) -> Option<AtomicBatch> {
        let batch = self.open.remove(id)?;
        self.open_of_server.fetch_sub(1, Ordering::Relaxed);
        self.usage.batch_bytes.give_back(batch.bytes);
        Some(batch)
    }

    fn end(&mut self, id: &[u8], refusal: Refusal, reason: &'static str) -> BatchStep {
        BatchStep::Refused {
            refusal,
            abandoned: self.remove(id).map(|_| reason),
        }
    }

    /// Gives up batches that nothing was added to for too long; returns their ids.
    pub fn expire(&mut self, now_ns: i64) -> Vec<Box<[u8]>> {
        let idle_ns_max = self.limits.idle_ns_max;
        let idle = |batch: &AtomicBatch| now_ns.saturating_sub(batch.touched_ns) >= idle_ns_max;
        let ids: Vec<Box<[u8]>> = self
            .open
            .iter()
            .filter(|(_, batch)| idle(batch))
            .map(|(id, _)| id.clone())
            .collect();
        for id in &ids {
            self.remove(id);
        }
        ids
    }

    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Drops everything, without a word.
    pub fn clear(&mut self) {
        self.open_of_server
            .fetch_sub(self.open.len(), Ordering::Relaxed);
        for (_, batch) in self.open.drain() {
            self.usage.batch_bytes.give_back(batch.bytes);
        }
    }
}

impl Drop for AtomicBatches {
    fn drop(&mut self) {
        self.clear();
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CommitKind {
    None,
    WithMessage,
    WithoutMessage,
}

fn refused(error_code: u16, text: &str) -> BatchStep {
    BatchStep::Refused {
        refusal: refusal(400, error_code, text),
        abandoned: None,
    }
}

/// What a message takes up while its batch is open.
fn bytes_of(publication: &Publication<'_>) -> usize {
    HeldMessages::bytes_of(&HeldMessage {
        subject: publication.subject,
        headers: publication.headers,
        payload: publication.payload,
    })
}

/// As when there are too many batches: the publisher may try again when others are committed.
fn too_many_bytes(exceeded: Exceeded) -> Refusal {
    let (whose, most) = match exceeded {
        Exceeded::Account(most) => ("this account", most),
        Exceeded::Server(most) => ("this server", most),
    };
    let text = format!(
        "atomic publish too many inflight: the open batches of {whose} may have {most} bytes; commit others first, or publish smaller batches"
    );
    refusal(429, 10210, &text)
}

/// Keeps a message: everything of it but what was only said to this server.
fn hold(publication: &Publication<'_>, headers: &PublishHeaders<'_>, messages: &mut HeldMessages) {
    let mut block = Vec::new();
    let is_level = |name: &[u8]| name == REQUIRED_API_LEVEL;
    let kept = match headers.required_api_level {
        Some(_) => {
            stored_headers::copy_without(publication.headers, is_level, &mut block);
            block.as_slice()
        }
        None => publication.headers,
    };
    messages.push(HeldMessage {
        subject: publication.subject,
        headers: kept,
        payload: publication.payload,
    });
}

fn number(text: &[u8]) -> Option<u64> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Whether this server has the API level that a message asks for, if it asks.
pub fn is_level_served(headers: &PublishHeaders<'_>) -> bool {
    headers
        .required_api_level
        .is_none_or(|text| number(text).is_some_and(|level| level <= u64::from(API_LEVEL)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accept(batches: &mut AtomicBatches, lines: &str, now_ns: i64) -> String {
        let block = format!("NATS/1.0\r\n{lines}\r\n\r\n");
        let publication = Publication {
            subject: b"a",
            headers: block.as_bytes(),
            payload: b"p",
            now_ns,
        };
        let headers = PublishHeaders::read(block.as_bytes());
        match batches.accept(&publication, &headers) {
            BatchStep::Held => "held".to_owned(),
            BatchStep::Complete(batch) => format!("complete {}", batch.messages.len()),
            BatchStep::Refused { refusal, abandoned } => {
                format!("{} {}", refusal.error_code, abandoned.unwrap_or("-"))
            }
        }
    }

    fn batches(limits: BatchLimits) -> AtomicBatches {
        let usage = Arc::new(AccountUsage::new(Arc::default()));
        AtomicBatches::new(limits, Arc::default(), usage)
    }

    #[test]
    fn open_batches_hold_no_more_bytes_than_the_account_may_and_give_them_back() {
        let usage = Arc::new(AccountUsage::new(Arc::default()));
        let of_account =
            || AtomicBatches::new(BatchLimits::default(), Arc::default(), Arc::clone(&usage));
        let (mut one, mut other) = (of_account(), of_account());
        let payload = vec![0; 8 * 1024 * 1024];
        let publish = |batches: &mut AtomicBatches, id: &str, number: usize| {
            let block =
                format!("NATS/1.0\r\nNats-Batch-Id: {id}\r\nNats-Batch-Sequence: {number}\r\n\r\n");
            let publication = Publication {
                subject: b"a",
                headers: block.as_bytes(),
                payload: &payload,
                now_ns: 0,
            };
            match batches.accept(&publication, &PublishHeaders::read(block.as_bytes())) {
                BatchStep::Held => 0,
                BatchStep::Complete(_) => 1,
                BatchStep::Refused { refusal, .. } => refusal.error_code,
            }
        };

        let held = (1..=7).map(|number| publish(&mut one, "x", number));
        assert!(held.into_iter().all(|code| code == 0));
        assert_eq!(publish(&mut other, "y", 1), 10210);

        assert!(usage.batch_bytes.held() <= crate::stream::usage::shares::BATCH_BYTES.account_max);
        one.clear();
        assert_eq!(usage.batch_bytes.held(), 0);
        assert_eq!(publish(&mut other, "z", 1), 0);
        drop(other);
        assert_eq!(usage.batch_bytes.held(), 0);
    }

    #[test]
    fn a_batch_is_complete_with_its_last_message() {
        let mut batches = batches(BatchLimits::default());

        assert_eq!(
            accept(
                &mut batches,
                "Nats-Batch-Id: x\r\nNats-Batch-Sequence: 1",
                0
            ),
            "held"
        );
        assert_eq!(
            accept(
                &mut batches,
                "Nats-Batch-Id: x\r\nNats-Batch-Sequence: 2\r\nNats-Batch-Commit: 1",
                0
            ),
            "complete 2"
        );
        assert!(batches.is_empty());
        assert_eq!(batches.open_of_server.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_gap_ends_the_batch_and_says_so() {
        let mut batches = batches(BatchLimits::default());
        accept(
            &mut batches,
            "Nats-Batch-Id: x\r\nNats-Batch-Sequence: 1",
            0,
        );

        assert_eq!(
            accept(
                &mut batches,
                "Nats-Batch-Id: x\r\nNats-Batch-Sequence: 3",
                0
            ),
            "10176 incomplete"
        );
        assert_eq!(
            accept(
                &mut batches,
                "Nats-Batch-Id: x\r\nNats-Batch-Sequence: 2",
                0
            ),
            "10176 -"
        );
    }

    #[test]
    fn idle_batches_are_given_up_and_make_room() {
        let mut batches = batches(BatchLimits {
            open_per_stream_max: 1,
            idle_ns_max: 10,
            ..BatchLimits::default()
        });
        accept(
            &mut batches,
            "Nats-Batch-Id: x\r\nNats-Batch-Sequence: 1",
            0,
        );

        assert_eq!(
            accept(
                &mut batches,
                "Nats-Batch-Id: y\r\nNats-Batch-Sequence: 1",
                5
            ),
            "10210 -"
        );
        assert!(batches.expire(9).is_empty());
        assert_eq!(batches.expire(10), [Box::from(b"x".as_slice())]);
        assert_eq!(
            accept(
                &mut batches,
                "Nats-Batch-Id: y\r\nNats-Batch-Sequence: 1",
                11
            ),
            "held"
        );
        assert_eq!(batches.open_of_server.load(Ordering::Relaxed), 1);
    }
}
