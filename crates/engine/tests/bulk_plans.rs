//! Plans of ranges: what they promise is what a reader finds, whatever was removed, and never more than was wanted.

use std::path::Path;
use std::sync::Arc;

use jetlake_engine::common::subject;
use jetlake_engine::storage::disk::memory::MemoryFileSystem;
use jetlake_engine::storage::message::NewMessage;
use jetlake_engine::storage::store::planning::{Cell, Span};
use jetlake_engine::storage::store::{Store, StoreOptions};
use proptest::prelude::*;

const SUBJECTS: [&str; 3] = ["a.x", "a.y", "b"];

fn filled(count: u64, removed: &[u64]) -> Store {
    let options = StoreOptions {
        segment_bytes: 4096 + 40_000,
        sync_commits: false,
        fill_ahead: false,
        ..StoreOptions::default()
    };
    let disk = Arc::new(MemoryFileSystem::default());
    let store = Store::open(disk, Path::new("/stream"), options).unwrap();
    for number in 1..=count {
        let message = NewMessage {
            subject: SUBJECTS[number as usize % 3].as_bytes(),
            payload: &[b'x'; 40][..number as usize % 40],
            time_ns: number as i64,
            ..NewMessage::default()
        };
        store.append(&message).unwrap();
    }
    store.commit().unwrap();
    for sequence in removed {
        store.remove(*sequence, false).unwrap();
    }
    store.commit().unwrap();
    store
}

/// The sequences that a span asks for, without its bounds.
fn wanted(store: &Store, span: &Span) -> Vec<u64> {
    let mut found = Vec::new();
    let scanned = store.messages().scan(span.start, |record| {
        let matches = |pattern: &Vec<u8>| subject::matches(pattern, record.subject);
        let is_wanted = span.patterns.is_empty() || span.patterns.iter().any(matches);
        if record.sequence < span.end && is_wanted {
            found.push(record.sequence);
        }
        true
    });
    scanned.unwrap();
    found
}

fn check(cells: &[Cell], wanted: &[u64]) {
    let rows: u64 = cells.iter().map(|cell| cell.rows).sum();
    assert_eq!(rows, wanted.len() as u64);
    assert!(cells
        .windows(2)
        .all(|pair| pair[0].last_sequence < pair[1].first_sequence));
    for cell in cells {
        let within = (cell.first_sequence..=cell.last_sequence).into_inner();
        let count = wanted
            .iter()
            .filter(|sequence| (within.0..=within.1).contains(*sequence))
            .count();
        assert_eq!(count as u64, cell.rows);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_plan_promises_what_there_is(
        removed in proptest::collection::vec(1u64..3000, 0..60),
        start in 1u64..3100, length in 0u64..3100, rows_max in prop_oneof![Just(u64::MAX), 1u64..3000],
        pattern in prop_oneof![Just(None), Just(Some("a.*")), Just(Some("b")), Just(Some("nobody"))],
    ) {
        let store = filled(3000, &removed);
        let span = Span {
            patterns: pattern.iter().map(|pattern| pattern.as_bytes().to_vec()).collect(),
            start,
            end: start + length,
            rows_max,
            bytes_max: u64::MAX,
        };

        let (cells, is_cut) = span.cells(store.messages());

        let mut all = wanted(&store, &span);
        prop_assert_eq!(is_cut, all.len() as u64 > rows_max);
        all.truncate(rows_max.min(3000) as usize);
        check(&cells, &all);
        prop_assert_eq!(cells.last().map(|cell| cell.last_sequence), all.last().copied());
    }
}

#[test]
fn bytes_are_bounded_but_one_message_always_fits() {
    let store = filled(500, &[]);
    let span = |bytes_max| Span {
        patterns: Vec::new(),
        start: 1,
        end: u64::MAX,
        rows_max: u64::MAX,
        bytes_max,
    };

    let (one, one_is_cut) = span(1).cells(store.messages());
    let (some, some_are_cut) = span(5000).cells(store.messages());

    assert_eq!((one[0].rows, one.len(), one_is_cut), (1, 1, true));
    let bytes: u64 = some.iter().map(|cell| cell.bytes).sum();
    assert!(some_are_cut && bytes > 4800 && bytes <= 5000, "{bytes}");
}
