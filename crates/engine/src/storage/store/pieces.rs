//! Where a range of messages lies on disk, for a reader on the same host that opens the files itself.
//!
//! Such a reader sees bytes, not the index, so it is given all that the bytes do not say: how far to read, and which
//! messages that still lie there are gone. Invariant: what lies between `from` and `to` of a piece and is not in `gone`
//! are exactly `rows` messages, as of when it was looked.

use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::committed::CommittedMessages;
use crate::storage::index::messages::Segment;
use crate::storage::message::{StoreError, StoreResult};

/// Ranges of messages that are gone, in one answer: with more, it would be larger than what it spares.
const GONE_MAX: usize = 20_000;

/// Neighbouring messages in one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FilePiece {
    pub path: PathBuf,
    /// The random identity of the file: a reader that finds it in the file has the right one.
    pub identity: u64,
    pub from: u64,
    /// After the last record.
    pub to: u64,
    pub first_sequence: u64,
    pub last_sequence: u64,
    pub rows: u64,
    /// First and last sequences of what is gone between the first and the last.
    pub gone: Vec<(u64, u64)>,
}

/// Where the messages of a range lie, `end` not included.
pub fn pieces(messages: &CommittedMessages, start: u64, end: u64) -> StoreResult<Vec<FilePiece>> {
    let mut pieces: Vec<FilePiece> = Vec::new();
    let mut gone_count = 0;
    let mut from = start;
    loop {
        let index = messages.index();
        let at = index
            .segments
            .partition_point(|segment| segment.index.last_sequence < from);
        let Some(segment) = index.segments.get(at) else {
            return Ok(pieces);
        };
        if segment.index.base_sequence >= end {
            return Ok(pieces);
        }
        if segment.file.header.encrypted {
            return Err(refused("its messages are encrypted"));
        }
        if let Some(piece) = piece_of(segment, from, end) {
            gone_count += piece.gone.len();
            if gone_count > GONE_MAX {
                return Err(refused("too many of its messages are gone"));
            }
            pieces.push(piece);
        }
        from = segment.index.last_sequence + 1;
    }
}

fn refused(reason: &str) -> StoreError {
    let text = format!("the files cannot be read by others: {reason}; read over the connection");
    StoreError::Read(std::sync::Arc::new(io::Error::other(text)))
}

/// The messages of one segment that belong to the range; `None` if there are none.
fn piece_of(segment: &Segment, start: u64, end: u64) -> Option<FilePiece> {
    let index = &segment.index;
    let rank_end = index.rank_from(end.max(start));
    let mut next = segment.next_live(index.rank_from(start));
    let first_rank = next.filter(|rank| *rank < rank_end)?;
    let first = index.extent(first_rank)?;
    let mut last_rank = first_rank;
    let mut rows = 0;
    let mut gone = Vec::new();
    if index.sequences.is_none() && segment.live_count == index.rank_count() as u64 {
        // All are there, so nobody has to be looked at.
        last_rank = rank_end - 1;
        rows = (rank_end - first_rank) as u64;
        next = None;
    }
    while let Some(rank) = next.filter(|rank| *rank < rank_end) {
        let sequence = index.sequence(rank);
        let expected = index.sequence(last_rank) + 1;
        if rows > 0 && sequence > expected {
            gone.push((expected, sequence - 1));
        }
        rows += 1;
        last_rank = rank;
        next = segment.next_live(rank + 1);
    }
    let last = index.extent(last_rank)?;
    Some(FilePiece {
        path: std::path::absolute(&segment.file.path).ok()?,
        identity: segment.file.header.identity,
        from: first.position,
        to: last.position + last.length as u64,
        first_sequence: index.sequence(first_rank),
        last_sequence: index.sequence(last_rank),
        rows,
        gone,
    })
}
