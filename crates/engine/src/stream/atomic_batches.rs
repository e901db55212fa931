//! Atomic batches that are open: messages that wait until the last one of their batch has come, and are stored all together or not at all.
//!
//! Nothing of an open batch is in the store. Invariant: at most as many batches are open, and as many messages wait in one, as the limits say.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use ahash::AHashMap;

use super::acknowledgement::Refusal;
use super::held_messages::{Held, HeldMessages};
use super::publish_checks::{refusal, Publication};
use super::publish_headers::PublishHeaders;
use super::stored_headers;
use crate::config::API_LEVEL;

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
pub struct Batch {
    pub messages: HeldMessages,
    touched_ns: i64,
}

/// What became of a message.
#[derive(Debug)]
pub enum Step {
    Held,
    /// The batch is complete.
    Complete(Batch),
    Refused {
        refusal: Refusal,
        /// An open batch has ended with it, for this reason.
        abandoned: Option<&'static str>,
    },
}

pub struct AtomicBatches {
    open: AHashMap<Box<[u8]>, Batch>,
    limits: BatchLimits,
    /// Of all streams.
    open_of_server: Arc<AtomicUsize>,
}

impl AtomicBatches {
    pub fn new(limits: BatchLimits, open_of_server: Arc<AtomicUsize>) -> Self {
        Self {
            open: AHashMap::new(),
            limits,
            open_of_server,
        }
    }

    /// Takes a message that names a batch.
    pub fn take(&mut self, publication: &Publication<'_>, headers: &PublishHeaders<'_>) -> Step {
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
            None => Commit::None,
            Some(b"1") => Commit::WithMessage,
            Some(b"eob") => Commit::WithoutMessage,
            Some(_) => {
                let text = "atomic publish batch commit is invalid";
                return self.end(id, refusal(400, 10200, text), "incomplete");
            }
        };
        let incomplete = || refusal(400, 10176, "atomic publish batch is incomplete");
        let held = match self.open.get(id) {
            Some(batch) => batch.messages.len(),
            None if sequence != 1 || commit == Commit::WithoutMessage => {
                return Step::Refused {
                    refusal: incomplete(),
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
        if commit != Commit::WithoutMessage && held >= self.limits.messages_max {
            let text = format!(
                "atomic publish batch is too large: {}",
                self.limits.messages_max
            );
            return self.end(id, refusal(400, 10199, &text), "large");
        }
        let Some(batch) = self.open.get_mut(id) else {
            return self.end(id, incomplete(), "incomplete");
        };
        batch.touched_ns = publication.now_ns;
        if commit == Commit::WithoutMessage {
            // The message before it is the last one.
            batch.messages.change_last_headers(|headers| {
                stored_headers::add(headers, 0, b"Nats-Batch-Commit", b"1");
            });
        } else {
            hold(publication, headers, &mut batch.messages);
        }
        if commit == Commit::None {
            return Step::Held;
        }
        self.remove(id).map_or(Step::Held, Step::Complete)
    }

    /// Begins a batch, unless there are too many.
    fn open(&mut self, id: &[u8]) -> Option<Step> {
        let too_many = self.open.len() >= self.limits.open_per_stream_max
            || self.open_of_server.fetch_add(1, Ordering::Relaxed) >= self.limits.open_max;
        if too_many {
            if self.open.len() < self.limits.open_per_stream_max {
                self.open_of_server.fetch_sub(1, Ordering::Relaxed);
            }
            return Some(Step::Refused {
                refusal: refusal(429, 10210, "atomic publish too many inflight"),
                abandoned: None,
            });
        }
        self.open.insert(id.into(), Batch::default());
        None
    }

    fn remove(&mut self, id: &[u8]) -> Option<Batch> {
        let batch = self.open.remove(id)?;
        self.open_of_server.fetch_sub(1, Ordering::Relaxed);
        Some(batch)
    }

    fn end(&mut self, id: &[u8], refusal: Refusal, reason: &'static str) -> Step {
        Step::Refused {
            refusal,
            abandoned: self.remove(id).map(|_| reason),
        }
    }

    /// Gives up batches that nothing was added to for too long; returns their ids.
    pub fn expire(&mut self, now_ns: i64) -> Vec<Box<[u8]>> {
        let idle_ns_max = self.limits.idle_ns_max;
        let idle = |batch: &Batch| now_ns.saturating_sub(batch.touched_ns) >= idle_ns_max;
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
        self.open.clear();
    }
}

impl Drop for AtomicBatches {
    fn drop(&mut self) {
        self.clear();
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Commit {
    None,
    WithMessage,
    WithoutMessage,
}

fn refused(error_code: u16, text: &str) -> Step {
    Step::Refused {
        refusal: refusal(400, error_code, text),
        abandoned: None,
    }
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
    messages.push(Held {
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

    fn take(batches: &mut AtomicBatches, lines: &str, now_ns: i64) -> String {
        let block = format!("NATS/1.0\r\n{lines}\r\n\r\n");
        let publication = Publication {
            subject: b"a",
            headers: block.as_bytes(),
            payload: b"p",
            now_ns,
        };
        let headers = PublishHeaders::read(block.as_bytes());
        match batches.take(&publication, &headers) {
            Step::Held => "held".to_owned(),
            Step::Complete(batch) => format!("complete {}", batch.messages.len()),
            Step::Refused { refusal, abandoned } => {
                format!("{} {}", refusal.error_code, abandoned.unwrap_or("-"))
            }
        }
    }

    fn batches(limits: BatchLimits) -> AtomicBatches {
        AtomicBatches::new(limits, Arc::default())
    }

    #[test]
    fn a_batch_is_complete_with_its_last_message() {
        let mut batches = batches(BatchLimits::default());

        assert_eq!(
            take(
                &mut batches,
                "Nats-Batch-Id: x\r\nNats-Batch-Sequence: 1",
                0
            ),
            "held"
        );
        assert_eq!(
            take(
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
        take(
            &mut batches,
            "Nats-Batch-Id: x\r\nNats-Batch-Sequence: 1",
            0,
        );

        assert_eq!(
            take(
                &mut batches,
                "Nats-Batch-Id: x\r\nNats-Batch-Sequence: 3",
                0
            ),
            "10176 incomplete"
        );
        assert_eq!(
            take(
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
        take(
            &mut batches,
            "Nats-Batch-Id: x\r\nNats-Batch-Sequence: 1",
            0,
        );

        assert_eq!(
            take(
                &mut batches,
                "Nats-Batch-Id: y\r\nNats-Batch-Sequence: 1",
                5
            ),
            "10210 -"
        );
        assert!(batches.expire(9).is_empty());
        assert_eq!(batches.expire(10), [Box::from(b"x".as_slice())]);
        assert_eq!(
            take(
                &mut batches,
                "Nats-Batch-Id: y\r\nNats-Batch-Sequence: 1",
                11
            ),
            "held"
        );
        assert_eq!(batches.open_of_server.load(Ordering::Relaxed), 1);
    }
}
