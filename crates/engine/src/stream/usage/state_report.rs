//! What is stored in a stream, in numbers, for Python.

use serde::{Deserialize, Serialize};

use crate::stream::replication::replicator::OriginState;
use crate::stream::stream::Stream;

/// Most gaps that a report lists.
const GAPS_MAX: usize = 1_000_000;

/// What a report about a stream should contain.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct StateQuery {
    deleted: bool,
    subjects: Option<String>,
    subjects_max: usize,
}

#[derive(Serialize)]
struct StreamState {
    messages: u64,
    bytes: u64,
    first_sequence: u64,
    first_time_ns: i64,
    last_sequence: u64,
    last_time_ns: i64,
    subjects: u64,
    deleted_count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    deleted: Option<Vec<u64>>,
    lost: Vec<(u64, u64)>,
    lost_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject_counts: Option<Vec<(String, u64)>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject_counts_total: Option<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    origins: Vec<OriginState>,
}

/// Answers a query.
pub fn write(stream: &Stream, query: &[u8]) -> Result<Vec<u8>, serde_json::Error> {
    let query: StateQuery = serde_json::from_slice(query)?;
    let store = stream.store();
    let state = store.messages().state();
    let span = match state.messages {
        0 => 0,
        _ => state.last_sequence - state.first_sequence + 1,
    };
    let mut subject_counts = None;
    let mut subject_counts_total = None;
    if let Some(filter) = &query.subjects {
        let mut counts = store.messages().subject_counts(filter.as_bytes());
        subject_counts_total = Some(counts.len());
        counts.sort_unstable();
        counts.truncate(query.subjects_max);
        let texts = counts
            .into_iter()
            .map(|(subject, count)| (String::from_utf8_lossy(&subject).into_owned(), count));
        subject_counts = Some(texts.collect());
    }
    let lost = state.lost.iter().map(|lost| (lost.first, lost.last));
    serde_json::to_vec(&StreamState {
        messages: state.messages,
        bytes: state.bytes,
        first_sequence: state.first_sequence,
        first_time_ns: state.first_time_ns,
        last_sequence: state.last_sequence,
        last_time_ns: state.last_time_ns,
        subjects: state.subjects,
        deleted_count: span - state.messages,
        deleted: query.deleted.then(|| store.messages().gaps(GAPS_MAX)),
        lost: lost.collect(),
        lost_bytes: 0,
        subject_counts,
        subject_counts_total,
        origins: stream.origin_states(),
    })
}
