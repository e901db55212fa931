//! What a stream says about a message that is traced: whether it would store it, and if not, why, in the words of nats-server.
//!
//! The checks are made once for the trace and once more for the message itself, under the same lock: so they agree.

use std::sync::Arc;

use super::acknowledgement::Refusal;
use super::checks;
use super::checks::{CheckOutcome, Publication};
use super::headers::PublishHeaders;
use super::ingest::Ingest;
use crate::routing::message_trace::MessageTrace;
use crate::storage::store::Store;
use crate::stream::batch::fast_batches;
use crate::wire::stored_headers;
use crate::wire::trusted_headers::{TRACE_DESTINATION, TRACE_DISABLED};

const DUPLICATE: &str = "msgid is duplicate";

/// What the checks of a stream said.
enum Note {
    /// It would be stored. `is_wanted` is false if no consumer wants it and it would not be kept.
    Storable {
        is_wanted: bool,
    },
    /// It belongs to something larger that is checked as a whole.
    Part,
    Duplicate {
        sequence: u64,
    },
    Refused {
        refusal: Refusal,
        text: String,
    },
}

impl Note {
    fn add_to(&self, trace: &MessageTrace, stream: &str, subject: &[u8]) {
        match self {
            Self::Storable { is_wanted } => trace.store(stream, subject, *is_wanted, ""),
            Self::Part => trace.store(stream, subject, true, ""),
            Self::Duplicate { .. } => trace.store(stream, b"", true, DUPLICATE),
            Self::Refused { text, .. } => trace.store(stream, b"", true, text),
        }
    }
}

/// Checks a message and changes nothing.
fn examine(
    ingest: &mut Ingest,
    store: &Store,
    publication: &Publication<'_>,
    headers: &PublishHeaders<'_>,
    reply: &[u8],
) -> Note {
    let is_part = reply.ends_with(fast_batches::SUFFIX)
        || headers.upload.is_some()
        || headers.batch_id.is_some_and(|id| !id.is_empty());
    if is_part {
        return Note::Part;
    }
    ingest.prepare(headers, publication.now_ns);
    let settings = Arc::clone(ingest.settings());
    match checks::check(&settings, &ingest.view(store), publication, headers) {
        Ok(CheckOutcome::Store(_)) => Note::Storable {
            is_wanted: ingest.is_kept(publication.subject),
        },
        Ok(CheckOutcome::Duplicate { sequence }) => Note::Duplicate { sequence },
        Err(refusal) => Note::Refused {
            text: text_of(&refusal, headers),
            refusal,
        },
    }
}

/// Notes what becomes of a message that is traced; true if that is all, because it is only traced.
pub(in crate::stream) fn trace(
    ingest: &mut Ingest,
    trace: &MessageTrace,
    store: &Store,
    publication: &Publication<'_>,
    headers: &PublishHeaders<'_>,
    reply: &[u8],
) -> bool {
    let note = examine(ingest, store, publication, headers, reply);
    note.add_to(trace, &ingest.settings().name, publication.subject);
    if trace.only {
        answer_only_traced(ingest, note, reply);
    }
    trace.only
}

/// A message that is only traced is answered if it would not be stored, and not otherwise.
fn answer_only_traced(ingest: &mut Ingest, note: Note, reply: &[u8]) {
    match note {
        Note::Storable { .. } | Note::Part => {}
        Note::Duplicate { sequence } => ingest.answer_duplicate(sequence, reply),
        Note::Refused { refusal, .. } => ingest.refuse(&refusal, b"", reply),
    }
}

/// The headers of a message that is traced because of its trace context: stored, it says that it was.
pub(in crate::stream) fn marked_headers(
    trace: Option<&MessageTrace>,
    headers: &[u8],
) -> Option<Vec<u8>> {
    if trace?.only || stored_headers::value(headers, TRACE_DESTINATION).is_some() {
        return None;
    }
    let mut block = Vec::with_capacity(headers.len() + 64);
    stored_headers::put_with(headers, TRACE_DESTINATION, TRACE_DISABLED, &mut block);
    Some(block)
}

/// Notes a refusal that comes before any check.
pub(in crate::stream) fn note_refusal(
    trace: Option<&MessageTrace>,
    stream: &str,
    refusal: &Refusal,
) {
    if let Some(trace) = trace {
        let text = text_of(refusal, &PublishHeaders::default());
        trace.store(stream, b"", true, &text);
    }
}

/// A refusal as nats-server words it in traces, where that is not the text of its answer.
fn text_of(refusal: &Refusal, headers: &PublishHeaders<'_>) -> String {
    let found = || refusal.description.rsplit(": ").next().unwrap_or_default();
    let asked = |value: Option<&[u8]>| {
        value.map_or(String::new(), |value| {
            String::from_utf8_lossy(value).into_owned()
        })
    };
    match refusal.error_code {
        10_054 | 10_097 => "maximum payload exceeded".to_owned(),
        10_060 => "expected stream does not match".to_owned(),
        10_166 => "message TTL disabled".to_owned(),
        10_071 => {
            let by_subject = asked(headers.expected_last_subject_sequence);
            if by_subject.is_empty() || by_subject == found() {
                let sequence = asked(headers.expected_last_sequence);
                format!("last sequence mismatch: {sequence} vs {}", found())
            } else {
                format!(
                    "last sequence by subject mismatch: {by_subject} vs {}",
                    found()
                )
            }
        }
        10_070 => {
            let wanted = asked(headers.expected_last_message_id);
            format!("last msgid mismatch: {wanted:?} vs {:?}", found())
        }
        10_077 => refusal.description.clone(),
        code => format!("{} ({code})", refusal.description),
    }
}
