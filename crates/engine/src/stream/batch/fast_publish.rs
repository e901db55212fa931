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
use crate::stream::settings::StreamSettings;
use crate::wire::stored_headers;

const REQUIRED_API_LEVEL: &[u8] = b"Nats-Required-Api-Level";

/// Accepts a message whose reply subject belongs to a fast batch.
pub(in crate::stream) fn accept(
    ingest: &mut Ingest,
    store: &Store,
    publication: &Publication<'_>,
    headers: &PublishHeaders<'_>,
    reply: &[u8],
) {
    match begin(ingest, publication, headers, reply) {
        Err(refused) => ingest.refuse(&refused, b"", reply),
        Ok(pattern) => run(ingest, store, publication, headers, &pattern, reply),
    }
}

/// Finds or begins the batch.
fn begin<'a>(
    ingest: &mut Ingest,
    publication: &Publication<'_>,
    headers: &PublishHeaders<'_>,
    reply: &'a [u8],
) -> Result<Pattern<'a>, Refusal> {
    if !ingest.settings().allow_fast_batch {
        return Err(refusal(400, 10205, "batch publish is disabled"));
    }
    let pattern = Pattern::read(reply).map_err(|error| match error {
        PatternError::Invalid => refusal(400, 10206, "batch publish pattern is invalid"),
        PatternError::IdTooLong => refusal(400, 10207, "batch publish ID is invalid"),
    })?;
    if !is_level_served(headers) {
        return Err(refusal(412, 10185, "JetStream minimum api level required"));
    }
    if ingest.incomplete().fast_batches.has(pattern.id) {
        return Ok(pattern);
    }
    let begins = pattern.operation == FastOperation::Start
        || pattern.operation == FastOperation::Commit && pattern.number == 1;
    if !begins {
        return Err(refusal(400, 10208, "batch publish ID unknown"));
    }
    if !ingest
        .incomplete_mut()
        .fast_batches
        .begin(&pattern, publication.now_ns)
    {
        return Err(refusal(429, 10211, "batch publish too many inflight"));
    }
    if pattern.operation == FastOperation::Start {
        if let Some(batch) = ingest
            .incomplete_mut()
            .fast_batches
            .touch(pattern.id, publication.now_ns)
        {
            let granted = batch.granted;
            ingest.answer(reply, |out| put_acknowledgement(out, 0, granted));
        }
    }
    Ok(pattern)
}

fn run(
    ingest: &mut Ingest,
    store: &Store,
    publication: &Publication<'_>,
    headers: &PublishHeaders<'_>,
    pattern: &Pattern<'_>,
    reply: &[u8],
) {
    let Some(batch) = ingest
        .incomplete_mut()
        .fast_batches
        .touch(pattern.id, publication.now_ns)
    else {
        return;
    };
    let (expected, acknowledged, granted) = (batch.next, batch.acknowledged, batch.granted);
    let gap_allowed = batch.gap_allowed;
    if pattern.operation == FastOperation::Ping {
        if pattern.number < expected {
            let put = |out: &mut Vec<u8>| put_acknowledgement(out, acknowledged, granted);
            return ingest.answer(reply, put);
        }
        let found = pattern.number.saturating_add(1);
        ingest.answer(reply, |out| put_gap(out, expected, found));
        if !gap_allowed {
            end(ingest, pattern, reply);
        }
        return;
    }
    if pattern.number != expected {
        ingest.answer(reply, |out| put_gap(out, expected, pattern.number));
        if !gap_allowed || pattern.number < expected {
            return end(ingest, pattern, reply);
        }
    }
    if pattern.operation == FastOperation::End {
        return end(ingest, pattern, reply);
    }
    if let Some(batch) = ingest
        .incomplete_mut()
        .fast_batches
        .touch(pattern.id, publication.now_ns)
    {
        batch.next = pattern.number.saturating_add(1);
    }
    match store_one(ingest, store, publication, headers, pattern, reply) {
        Ok(()) => {}
        Err(refused) => refuse(ingest, &refused, pattern, reply),
    }
}

/// Checks and stages one message.
fn store_one(
    ingest: &mut Ingest,
    store: &Store,
    publication: &Publication<'_>,
    headers: &PublishHeaders<'_>,
    pattern: &Pattern<'_>,
    reply: &[u8],
) -> Result<(), Refusal> {
    let settings = Arc::clone(ingest.settings());
    let mut block = Vec::new();
    let mut publication = *publication;
    if headers.required_api_level.is_some() {
        let is_level = |name: &[u8]| name == REQUIRED_API_LEVEL;
        stored_headers::copy_without(publication.headers, is_level, &mut block);
        publication.headers = &block;
    }
    let headers = PublishHeaders::read(publication.headers);
    ingest.prepare(&headers, publication.now_ns);
    let view = ingest.view(store);
    let passed = match checks::check(&settings, &view, &publication, &headers)? {
        CheckOutcome::Store(passed) => passed,
        CheckOutcome::Duplicate { .. } => {
            if pattern.operation == FastOperation::Commit {
                end(ingest, pattern, reply);
            }
            return Ok(());
        }
    };
    let admitted = Admitted::new(&settings, &publication, &headers, passed);
    let previous_sequence = ingest.previous_sequence(store, admitted.subject);
    let appended = store
        .append(&admitted.message())
        .map_err(|error| store_refusal(&error))?;
    let is_commit = pattern.operation == FastOperation::Commit;
    let batches = &mut ingest.incomplete_mut().fast_batches;
    let open = batches.len();
    let mut granted = None;
    if let Some(batch) = batches.touch(pattern.id, publication.now_ns) {
        batch.last_sequence = appended.sequence;
        if !is_commit && batch.acknowledge(pattern.number, open) {
            granted = Some(batch.granted);
        }
    }
    let ended = match is_commit {
        true => batches.end(pattern.id),
        false => None,
    };
    let answered = match granted.is_some() || ended.is_some() {
        true => reply,
        false => b"",
    };
    let answer = ingest.answers().begin();
    if let Some(granted) = granted {
        put_acknowledgement(answer, pattern.number, granted);
    }
    if let Some(batch) = ended {
        put_final(answer, &settings, &batch, pattern.id);
    }
    ingest.note(store, admitted, appended, previous_sequence, answered);
    Ok(())
}

/// A message was refused: that is reported, and ends the batch unless gaps are allowed.
fn refuse(ingest: &mut Ingest, refused: &Refusal, pattern: &Pattern<'_>, reply: &[u8]) {
    let Some(batch) = ingest.incomplete_mut().fast_batches.get_mut(pattern.id) else {
        return;
    };
    let ends = !batch.gap_allowed || pattern.operation == FastOperation::Commit;
    if ends {
        // What was refused does not count.
        batch.next = pattern.number;
    }
    if !batch.gap_allowed && batch.last_sequence == 0 {
        ingest.incomplete_mut().fast_batches.end(pattern.id);
        return ingest.refuse(refused, b"", reply);
    }
    ingest.answer(reply, |out| put_error(out, pattern.number, refused));
    if ends {
        end(ingest, pattern, reply);
    }
}

/// Ends a batch, and acknowledges what was stored of it.
fn end(ingest: &mut Ingest, pattern: &Pattern<'_>, reply: &[u8]) {
    if let Some(batch) = ingest.incomplete_mut().fast_batches.end(pattern.id) {
        let settings = Arc::clone(ingest.settings());
        ingest.answer_final(reply, |out| put_final(out, &settings, &batch, pattern.id));
    }
}

fn put_final(out: &mut Vec<u8>, settings: &StreamSettings, batch: &FastBatch, id: &[u8]) {
    let id = String::from_utf8_lossy(id);
    let stored = StoredPublish {
        stream: &settings.name,
        domain: settings.domain.as_deref(),
        sequence: batch.last_sequence,
        batch: Some((&id, batch.next - 1)),
        ..StoredPublish::default()
    };
    stored.encode(out);
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
