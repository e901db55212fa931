//! Publishing into a fast batch: each message is stored as it comes, and answered only when that is due.

use std::io::Write;
use std::sync::Arc;

use super::atomic_batches::is_level_served;
use super::fast_batches::{FastBatch, FastOperation, Pattern, PatternError};
use crate::storage::store::Store;
use crate::stream::publish::acknowledgement::{Refusal, StoredPublish};
use crate::stream::publish::admitted::Admitted;
use crate::stream::publish::checks;
use crate::stream::publish::checks::{refusal, CheckOutcome, Publication};
use crate::stream::publish::headers::PublishHeaders;
use crate::stream::publish::ingest::{store_refusal, Ingest};
use crate::wire::stored_headers;

const REQUIRED_API_LEVEL: &[u8] = b"Nats-Required-Api-Level";

impl Ingest {
    /// Takes a message whose reply subject belongs to a fast batch.
    pub(in crate::stream) fn take_fast(
        &mut self,
        store: &Store,
        publication: &Publication<'_>,
        headers: &PublishHeaders<'_>,
        reply: &[u8],
    ) {
        match self.begin_fast(publication, headers, reply) {
            Err(refused) => self.refuse(&refused, b"", reply),
            Ok(pattern) => self.run_fast(store, publication, headers, &pattern, reply),
        }
    }

    /// Finds or begins the batch.
    fn begin_fast<'a>(
        &mut self,
        publication: &Publication<'_>,
        headers: &PublishHeaders<'_>,
        reply: &'a [u8],
    ) -> Result<Pattern<'a>, Refusal> {
        if !self.settings.allow_fast_batch {
            return Err(refusal(400, 10205, "batch publish is disabled"));
        }
        let pattern = Pattern::read(reply).map_err(|error| match error {
            PatternError::Invalid => refusal(400, 10206, "batch publish pattern is invalid"),
            PatternError::IdTooLong => refusal(400, 10207, "batch publish ID is invalid"),
        })?;
        if !is_level_served(headers) {
            return Err(refusal(412, 10185, "JetStream minimum api level required"));
        }
        if self.fast_batches.has(pattern.id) {
            return Ok(pattern);
        }
        let begins = pattern.operation == FastOperation::Start
            || pattern.operation == FastOperation::Commit && pattern.number == 1;
        if !begins {
            return Err(refusal(400, 10208, "batch publish ID unknown"));
        }
        if !self.fast_batches.begin(&pattern, publication.now_ns) {
            return Err(refusal(429, 10211, "batch publish too many inflight"));
        }
        if pattern.operation == FastOperation::Start {
            if let Some(batch) = self.fast_batches.touch(pattern.id, publication.now_ns) {
                let granted = batch.granted;
                self.answer_fast(reply, |out| put_acknowledgement(out, 0, granted));
            }
        }
        Ok(pattern)
    }

    fn run_fast(
        &mut self,
        store: &Store,
        publication: &Publication<'_>,
        headers: &PublishHeaders<'_>,
        pattern: &Pattern<'_>,
        reply: &[u8],
    ) {
        let Some(batch) = self.fast_batches.touch(pattern.id, publication.now_ns) else {
            return;
        };
        let (expected, acknowledged, granted) = (batch.next, batch.acknowledged, batch.granted);
        let gap_allowed = batch.gap_allowed;
        if pattern.operation == FastOperation::Ping {
            if pattern.number < expected {
                let put = |out: &mut Vec<u8>| put_acknowledgement(out, acknowledged, granted);
                return self.answer_fast(reply, put);
            }
            let found = pattern.number.saturating_add(1);
            self.answer_fast(reply, |out| put_gap(out, expected, found));
            if !gap_allowed {
                self.end_fast(pattern, reply);
            }
            return;
        }
        if pattern.number != expected {
            self.answer_fast(reply, |out| put_gap(out, expected, pattern.number));
            if !gap_allowed || pattern.number < expected {
                return self.end_fast(pattern, reply);
            }
        }
        if pattern.operation == FastOperation::End {
            return self.end_fast(pattern, reply);
        }
        if let Some(batch) = self.fast_batches.touch(pattern.id, publication.now_ns) {
            batch.next = pattern.number.saturating_add(1);
        }
        match self.store_fast(store, publication, headers, pattern, reply) {
            Ok(()) => {}
            Err(refused) => self.refuse_fast(&refused, pattern, reply),
        }
    }

    /// Checks and stages one message.
    fn store_fast(
        &mut self,
        store: &Store,
        publication: &Publication<'_>,
        headers: &PublishHeaders<'_>,
        pattern: &Pattern<'_>,
        reply: &[u8],
    ) -> Result<(), Refusal> {
        let settings = Arc::clone(&self.settings);
        let mut block = Vec::new();
        let mut publication = *publication;
        if headers.required_api_level.is_some() {
            let is_level = |name: &[u8]| name == REQUIRED_API_LEVEL;
            stored_headers::copy_without(publication.headers, is_level, &mut block);
            publication.headers = &block;
        }
        let headers = PublishHeaders::read(publication.headers);
        self.prepare(&headers, publication.now_ns);
        let view = self.view(store);
        let passed = match checks::check(&settings, &view, &publication, &headers)? {
            CheckOutcome::Store(passed) => passed,
            CheckOutcome::Duplicate { .. } => {
                if pattern.operation == FastOperation::Commit {
                    self.end_fast(pattern, reply);
                }
                return Ok(());
            }
        };
        let admitted = Admitted::new(&settings, &publication, &headers, passed);
        let previous_sequence = self.previous_sequence(store, admitted.subject);
        let appended = store
            .append(&admitted.message())
            .map_err(|error| store_refusal(&error))?;
        let open = self.fast_batches.len();
        self.answer.clear();
        let mut answered: &[u8] = b"";
        if let Some(batch) = self.fast_batches.touch(pattern.id, publication.now_ns) {
            batch.last_sequence = appended.sequence;
            if pattern.operation == FastOperation::Commit {
                answered = reply;
            } else if batch.acknowledge(pattern.number, open) {
                answered = reply;
                let granted = batch.granted;
                put_acknowledgement(&mut self.answer, pattern.number, granted);
            }
        }
        if pattern.operation == FastOperation::Commit {
            if let Some(batch) = self.fast_batches.end(pattern.id) {
                self.write_final(&batch, pattern.id);
            }
        }
        self.note(store, admitted, appended, previous_sequence, answered);
        Ok(())
    }

    /// A message was refused: that is told, and ends the batch unless gaps are allowed.
    fn refuse_fast(&mut self, refused: &Refusal, pattern: &Pattern<'_>, reply: &[u8]) {
        let Some(batch) = self.fast_batches.get_mut(pattern.id) else {
            return;
        };
        let ends = !batch.gap_allowed || pattern.operation == FastOperation::Commit;
        if ends {
            // What was refused does not count.
            batch.next = pattern.number;
        }
        if !batch.gap_allowed && batch.last_sequence == 0 {
            self.fast_batches.end(pattern.id);
            return self.refuse(refused, b"", reply);
        }
        self.answer_fast(reply, |out| put_error(out, pattern.number, refused));
        if ends {
            self.end_fast(pattern, reply);
        }
    }

    /// Ends a batch, and acknowledges what was stored of it.
    fn end_fast(&mut self, pattern: &Pattern<'_>, reply: &[u8]) {
        if let Some(batch) = self.fast_batches.end(pattern.id) {
            self.answer.clear();
            self.write_final(&batch, pattern.id);
            self.push_final(reply);
        }
    }

    fn write_final(&mut self, batch: &FastBatch, id: &[u8]) {
        let id = String::from_utf8_lossy(id);
        let stored = StoredPublish {
            stream: &self.settings.name,
            domain: self.settings.domain.as_deref(),
            sequence: batch.last_sequence,
            batch: Some((&id, batch.next - 1)),
            ..StoredPublish::default()
        };
        stored.encode(&mut self.answer);
    }

    fn answer_fast(&mut self, reply: &[u8], write: impl FnOnce(&mut Vec<u8>)) {
        self.answer.clear();
        write(&mut self.answer);
        self.push_answer(b"", reply);
    }
}

// Writing to memory does not fail.

fn put_acknowledgement(out: &mut Vec<u8>, number: u64, granted: u64) {
    let _ = write!(
        out,
        "{{\"type\":\"ack\",\"seq\":{number},\"msgs\":{granted}}}"
    );
}

fn put_gap(out: &mut Vec<u8>, expected: u64, found: u64) {
    let _ = write!(
        out,
        "{{\"type\":\"gap\",\"last_seq\":{expected},\"seq\":{found}}}"
    );
}

fn put_error(out: &mut Vec<u8>, number: u64, refused: &Refusal) {
    let _ = write!(out, "{{\"type\":\"err\",\"seq\":{number},\"error\":");
    refused.encode_error(out);
    out.push(b'}');
}
