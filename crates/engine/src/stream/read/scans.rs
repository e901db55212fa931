//! Scans under way, and the plans that are made for them.
//!
//! Each scan is a job on a pool of its account's scans, so that readers that take their time hold nobody else up. Invariant: no account has more under way than its share.

use std::sync::Arc;

use ahash::AHashMap;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::scan::{ScanRequest, StreamScan};
use crate::common::error::EngineError;
use crate::common::events::Events;
use crate::common::subject;
use crate::storage::commit::work_pool::{Job, WorkPool};
use crate::storage::store::pieces;
use crate::storage::store::planning::{Cell, Span};
use crate::stream::registry::Streams;
use crate::stream::settings::Storage;
use crate::stream::usage::shares::HeldShare;

/// Readers that a range can be divided among.
const PARTS_MAX: usize = 4096;

/// What a message costs a reader beyond its bytes, in bytes: small messages are not free.
const ROW_WEIGHT_BYTES: u64 = 64;

pub struct Scans {
    events: Arc<Events>,
    /// By account: one whose readers wait keeps its own threads and nobody else's.
    pools: Mutex<AHashMap<String, WorkPool>>,
    running: Mutex<AHashMap<String, Arc<StreamScan>>>,
}

impl Scans {
    pub fn new(events: &Arc<Events>) -> Self {
        Self {
            events: Arc::clone(events),
            pools: Mutex::default(),
            running: Mutex::default(),
        }
    }

    fn job(&self, account: &str, work: impl Fn() + Send + Sync + 'static) -> Arc<Job> {
        let mut pools = self.pools.lock();
        if !pools.contains_key(account) {
            pools.insert(account.to_owned(), WorkPool::new(&self.events));
        }
        pools[account].job(work)
    }

    /// Ends what is under way.
    pub fn stop(&self) {
        for (_, scan) in self.running.lock().drain() {
            scan.stop();
        }
    }
}

/// What to plan; zeros mean no bound.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanRequest {
    #[serde(default)]
    start: u64,
    #[serde(default)]
    end: u64,
    #[serde(default)]
    max_rows: u64,
    #[serde(default)]
    max_bytes: u64,
    #[serde(default)]
    subjects: Vec<String>,
    #[serde(default)]
    parts: usize,
}

/// What to find on disk.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FilesRequest {
    start: u64,
    /// Not included.
    end: u64,
}

#[derive(Debug, Serialize, PartialEq, Eq)]
struct ScanPlan {
    first: u64,
    last: u64,
    /// Where to go on, not included.
    end: u64,
    rows: u64,
    bytes: u64,
    ranges: Vec<Range>,
}

#[derive(Debug, Serialize, PartialEq, Eq)]
struct Range {
    start: u64,
    end: u64,
    rows: u64,
    bytes: u64,
}

impl Streams {
    /// Says how a range can be divided, as JSON.
    pub fn plan_scan(
        &self,
        account: &str,
        name: &str,
        request: &[u8],
    ) -> Result<Vec<u8>, EngineError> {
        let request: PlanRequest = read(request)?;
        let stream = self.stream(account, name)?;
        let store = stream.store();
        let marks = store.messages().marks();
        let bound = |value: u64| if value == 0 { u64::MAX } else { value };
        let start = request.start.max(1);
        let end = bound(request.end).min(marks.last_sequence + 1).max(start);
        let span = Span {
            patterns: patterns(&request.subjects)?,
            start,
            end,
            rows_max: bound(request.max_rows),
            bytes_max: bound(request.max_bytes),
        };
        let (cells, is_cut) = span.cells(store.messages());
        let end = match (is_cut, cells.last()) {
            (true, Some(last)) => last.last_sequence + 1,
            (true, None) => start,
            (false, _) => end,
        };
        let plan = ScanPlan {
            first: marks.first_sequence,
            last: marks.last_sequence,
            end,
            rows: cells.iter().map(|cell| cell.rows).sum(),
            bytes: cells.iter().map(|cell| cell.bytes).sum(),
            ranges: divide(&cells, request.parts.clamp(1, PARTS_MAX), start, end),
        };
        Ok(serde_json::to_vec(&plan).expect("numbers can be written"))
    }

    /// Says where a range lies on disk, as JSON, for a reader on the same host.
    pub fn scan_files(
        &self,
        account: &str,
        name: &str,
        request: &[u8],
    ) -> Result<Vec<u8>, EngineError> {
        let request: FilesRequest = read(request)?;
        let stream = self.stream(account, name)?;
        if stream.settings().storage != Storage::File {
            return Err(EngineError::Store(
                "the stream is in memory: read over the connection".to_owned(),
            ));
        }
        let messages = stream.store().messages();
        let pieces = pieces::pieces(messages, request.start.max(1), request.end)
            .map_err(|error| EngineError::Store(error.to_string()))?;
        let answer = serde_json::json!({ "pieces": pieces });
        Ok(serde_json::to_vec(&answer).expect("numbers and paths can be written"))
    }

    /// Begins to send a range of a stream; its reader is sent how it ended.
    pub fn start_scan(
        self: &Arc<Self>,
        account: &str,
        name: &str,
        request: &[u8],
    ) -> Result<(), EngineError> {
        let request: ScanRequest = read(request)?;
        if request.columns.is_empty() {
            return Err(EngineError::Options(
                "columns must name at least one".to_owned(),
            ));
        }
        patterns(&request.subjects)?;
        let id = request.id.clone();
        let stream = self.stream(account, name)?;
        let place =
            HeldShare::reserve(&self.usage(account).scans, "scans").map_err(EngineError::Store)?;
        let scan = StreamScan::new(request, stream, Arc::clone(&self.senders));
        let running = &self.scans.running;
        running.lock().insert(id.clone(), Arc::clone(&scan));
        let streams = Arc::downgrade(self);
        let place = Mutex::new(Some(place));
        let job = self.scans.job(account, move || {
            scan.run();
            drop(place.lock().take());
            if let Some(streams) = streams.upgrade() {
                streams.scans.running.lock().remove(&id);
            }
        });
        job.schedule();
        Ok(())
    }
}

/// Cuts between cells, so that all ranges weigh about the same; the first begins and the last ends where the whole does.
fn divide(cells: &[Cell], parts: usize, start: u64, end: u64) -> Vec<Range> {
    let weight = |cell: &Cell| cell.bytes + cell.rows * ROW_WEIGHT_BYTES;
    let total: u64 = cells.iter().map(weight).sum();
    let share = total.div_ceil(parts as u64).max(1);
    let mut ranges: Vec<Range> = Vec::new();
    let mut weighed = 0;
    for cell in cells {
        let is_due = ranges.len() < parts && weighed >= share * ranges.len() as u64;
        weighed += weight(cell);
        match ranges.last_mut() {
            Some(last) if !is_due => {
                last.rows += cell.rows;
                last.bytes += cell.bytes;
                continue;
            }
            Some(last) => last.end = cell.first_sequence,
            None => {}
        }
        ranges.push(Range {
            start: match ranges.is_empty() {
                true => start,
                false => cell.first_sequence,
            },
            end,
            rows: cell.rows,
            bytes: cell.bytes,
        });
    }
    ranges
}

fn patterns(subjects: &[String]) -> Result<Vec<Vec<u8>>, EngineError> {
    subjects
        .iter()
        .map(|filter| {
            let bytes = filter.as_bytes();
            match subject::is_valid_subscription(bytes) {
                true => Ok(bytes.to_vec()),
                false => Err(EngineError::Options(format!("{filter:?} is not a valid subject: use tokens that are not empty, and '>' only as the last one"))),
            }
        })
        .collect()
}

fn read<'a, T: Deserialize<'a>>(request: &'a [u8]) -> Result<T, EngineError> {
    serde_json::from_slice(request).map_err(|error| EngineError::Options(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cells(sizes: &[(u64, u64, u64)]) -> Vec<Cell> {
        let mut next = 1;
        let mut made = Vec::new();
        for (gap, rows, bytes) in sizes {
            let first_sequence = next + gap;
            next = first_sequence + rows;
            made.push(Cell {
                first_sequence,
                last_sequence: next - 1,
                rows: *rows,
                bytes: *bytes,
            });
        }
        made
    }

    #[test]
    fn equal_cells_are_divided_equally() {
        let ranges = divide(&cells(&[(0, 100, 1000); 8]), 4, 1, 1000);

        let rows: Vec<u64> = ranges.iter().map(|range| range.rows).collect();
        assert_eq!(rows, [200; 4]);
        assert_eq!((ranges[0].start, ranges[3].end), (1, 1000));
    }

    proptest! {
        #[test]
        fn ranges_cover_everything_once(
            sizes in proptest::collection::vec((0u64..50, 1u64..2000, 0u64..1_000_000), 0..60), parts in 1usize..20
        ) {
            let cells = cells(&sizes);
            let end = cells.last().map_or(1, |cell| cell.last_sequence + 10);

            let ranges = divide(&cells, parts, 1, end);

            prop_assert!(ranges.len() <= parts);
            prop_assert_eq!(ranges.is_empty(), cells.is_empty());
            prop_assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start && pair[0].start < pair[0].end));
            if let (Some(first), Some(last)) = (ranges.first(), ranges.last()) {
                prop_assert_eq!((first.start, last.end), (1, end));
            }
            for range in &ranges {
                let within = cells.iter().filter(|cell| (range.start..range.end).contains(&cell.first_sequence));
                prop_assert_eq!(range.rows, within.map(|cell| cell.rows).sum::<u64>());
            }
        }
    }
}
