//! Where a store ends, and whether it should end there: what opening would find after the last record.

use crate::storage::finding::Finding;
use crate::storage::format::anchor::Anchor;
use crate::storage::format::record::HEAD_BYTES;
use crate::storage::format::removal::Removal;
use crate::storage::segment::scan::Tail;
use crate::storage::store::assembling::Assembly;
use crate::storage::store::writing::SLACK_BYTES_MIN;

/// What is wrong with the end of the last segment, or with there being no later one.
pub fn judge(
    assembly: &Assembly,
    anchor: Option<&Anchor>,
    aside_number: u64,
    origin: u64,
) -> Vec<Finding> {
    let closed = anchor.and_then(|anchor| anchor.closed);
    let next_sequence = assembly.index.last_sequence + 1;
    let last_number = anchor.map_or(0, |anchor| anchor.last_number.max(aside_number));
    let reserved = anchor.map_or(0, |anchor| anchor.reserved_sequence);
    // The last sequence that may have been given, as far as the anchor knows.
    let last_known = closed.map_or(reserved.saturating_sub(1), |closed| closed.last_sequence);

    let Some(segment) = assembly.index.segments.last() else {
        let missing = Finding::SegmentMissing {
            first: origin,
            last: last_known,
        };
        return if last_number > 0 {
            vec![missing]
        } else {
            Vec::new()
        };
    };
    let number = segment.file.header.number;
    if last_number > number {
        return vec![Finding::SegmentMissing {
            first: next_sequence,
            last: last_known,
        }];
    }
    let Some(tail) = &assembly.tail else {
        return Vec::new();
    };
    let closed = closed.filter(|closed| closed.number == number);
    let short =
        closed.filter(|closed| closed.last_sequence >= next_sequence || closed.end > tail.end);
    let dirty_end = tail.dirty_end.max(tail.end);
    let cut_off = tail.beyond || tail.file_bytes < dirty_end + SLACK_BYTES_MIN;
    if !cut_off && tail.kind == Tail::Blank && short.is_none() {
        return Vec::new();
    }
    let torn_bytes = tail.dirty_end.saturating_sub(tail.end);
    let going_on = match closed {
        Some(closed) => closed.last_sequence + 1,
        None if cut_off => reserved,
        None => next_sequence.saturating_add(torn_bytes / HEAD_BYTES as u64 + 1),
    };
    let mut findings = vec![Finding::TailCut {
        path: segment.file.path.clone(),
        position: tail.end,
        bytes: torn_bytes,
        next_sequence: going_on.max(next_sequence),
    }];
    findings.extend(tail.group_cut(&segment.file.path));
    // The store was closed in good order, so what is not there any more was there.
    if let Some(closed) = short.filter(|closed| closed.last_sequence >= next_sequence) {
        findings.push(Finding::Lost {
            range: Removal {
                first: next_sequence,
                last: closed.last_sequence,
                erase: false,
            },
        });
    }
    findings
}
