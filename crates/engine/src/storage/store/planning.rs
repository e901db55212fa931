//! How a range of messages is divided among several readers: how many there are, how large they are, and where to cut.
//!
//! The index is held for one segment at a time, so that a plan of many millions keeps nobody waiting. Invariant: cells are in order, do not overlap,
//! and have at least one message each; what they say of rows is exact as of when they were looked at.

use super::committed::CommittedMessages;
use crate::storage::index::lookup::Matching;
use crate::storage::index::messages::Segment;

/// Messages, or places of messages, that are looked at as one: ranges are cut between cells.
const CELL_RANKS: usize = 1024;

/// Neighbouring messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    pub first_sequence: u64,
    pub last_sequence: u64,
    pub rows: u64,
    pub bytes: u64,
}

/// What is planned for.
#[derive(Debug, Clone)]
pub struct Span {
    pub patterns: Vec<Vec<u8>>,
    pub start: u64,
    /// Not included.
    pub end: u64,
    pub rows_max: u64,
    /// One message is planned for, however large it is.
    pub bytes_max: u64,
}

impl Span {
    /// Its cells, and whether it was cut short by what is wanted at most.
    pub fn cells(&self, messages: &CommittedMessages) -> (Vec<Cell>, bool) {
        let mut cells = Vec::new();
        let mut room = Room {
            rows: self.rows_max,
            bytes: self.bytes_max,
            is_empty: true,
        };
        let mut from = self.start;
        loop {
            let index = messages.index();
            let at = index
                .segments
                .partition_point(|segment| segment.index.last_sequence < from);
            let Some(segment) = index.segments.get(at) else {
                return (cells, false);
            };
            if segment.index.base_sequence >= self.end {
                return (cells, false);
            }
            let matching = index.matching_any(&self.patterns);
            let ranks = segment.index.rank_from(from)..segment.index.rank_from(self.end.max(from));
            if !put_cells(segment, &matching, ranks, &mut room, &mut cells) {
                return (cells, true);
            }
            from = segment.index.last_sequence + 1;
        }
    }
}

/// What may still be planned for.
struct Room {
    rows: u64,
    bytes: u64,
    is_empty: bool,
}

impl Room {
    fn takes(&self, rows: u64, bytes: u64) -> bool {
        rows <= self.rows && bytes <= self.bytes
    }

    fn charge(&mut self, rows: u64, bytes: u64) {
        self.rows -= rows.min(self.rows);
        self.bytes -= bytes.min(self.bytes);
        self.is_empty = false;
    }
}

/// Adds the cells of a segment; false if there is no room for all.
fn put_cells(
    segment: &Segment,
    matching: &Matching,
    ranks: std::ops::Range<usize>,
    room: &mut Room,
    cells: &mut Vec<Cell>,
) -> bool {
    if !matching.touches(segment) {
        return true;
    }
    let rank_count = segment.index.rank_count();
    let is_whole =
        matches!(matching, Matching::Everything) && segment.live_count == rank_count as u64;
    let mut from = ranks.start;
    while from < ranks.end {
        let to = (from + CELL_RANKS).min(ranks.end);
        let cell = match is_whole {
            // All are there, so nobody has to be looked at, and their mean size is good enough.
            true => Some(Cell {
                first_sequence: segment.index.sequence(from),
                last_sequence: segment.index.sequence(to - 1),
                rows: (to - from) as u64,
                bytes: segment.live_bytes * (to - from) as u64 / rank_count as u64,
            }),
            false => counted(segment, matching, from..to, None),
        };
        from = to;
        let Some(cell) = cell else {
            continue;
        };
        if room.takes(cell.rows, cell.bytes) {
            room.charge(cell.rows, cell.bytes);
            cells.push(cell);
            continue;
        }
        let ranks = segment.index.rank_from(cell.first_sequence)..to;
        cells.extend(counted(segment, matching, ranks, Some(room)));
        return false;
    }
    true
}

/// The messages at these places, as many as there is room for.
fn counted(
    segment: &Segment,
    matching: &Matching,
    ranks: std::ops::Range<usize>,
    room: Option<&mut Room>,
) -> Option<Cell> {
    let mut cell: Option<Cell> = None;
    let mut next = segment.next_live(ranks.start);
    while let Some(rank) = next.filter(|rank| *rank < ranks.end) {
        next = segment.next_live(rank + 1);
        if !matching.contains(segment.index.subject_ids[rank]) {
            continue;
        }
        let sequence = segment.index.sequence(rank);
        let bytes = segment.counted_bytes(rank);
        let (rows_before, bytes_before) = cell.map_or((0, 0), |cell| (cell.rows, cell.bytes));
        if let Some(room) = &room {
            let is_first = room.is_empty && cell.is_none() && room.rows > 0;
            if !is_first && !room.takes(rows_before + 1, bytes_before + bytes) {
                break;
            }
        }
        cell = Some(Cell {
            first_sequence: cell.map_or(sequence, |cell| cell.first_sequence),
            last_sequence: sequence,
            rows: rows_before + 1,
            bytes: bytes_before + bytes,
        });
    }
    if let (Some(room), Some(cell)) = (room, cell) {
        room.charge(cell.rows, cell.bytes);
    }
    cell
}
