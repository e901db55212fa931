//! Messages with the sequences of another stream: gaps of all sizes, power cuts at every call, and what is staged after a
//! refusal.
//!
//! Invariant that is tested: what is found after a power cut is a beginning of what was written, all that was committed is in it, and sequences that
//! were passed over are never taken for a loss.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jetlake_engine::storage::disk::file_system::FileSystem;
use jetlake_engine::storage::disk::simulated::{Fault, FaultPlan, SimulatedDisk, Survival};
use jetlake_engine::storage::finding::Finding;
use jetlake_engine::storage::message::{NewMessage, StoreError};
use jetlake_engine::storage::store::{Store, StoreOptions};

/// Neighbours, short gaps, gaps that make the index list its sequences, and gaps that no segment spans.
const SEQUENCES: [u64; 14] = [
    3,
    4,
    6,
    7,
    70,
    71,
    500,
    501,
    502,
    100_000,
    100_003,
    9_000_000_000,
    9_000_000_001,
    30_000_000_000,
];

/// Small enough that a few messages fill it.
const SEGMENT_BYTES: u64 = 4096 + 700;

fn try_open(disk: &SimulatedDisk) -> Result<Store, StoreError> {
    let options = StoreOptions {
        segment_bytes: SEGMENT_BYTES,
        follows: true,
        ..StoreOptions::default()
    };
    let disk: Arc<dyn FileSystem> = Arc::new(disk.clone());
    Store::open(disk, Path::new("/s"), options)
}

fn open(disk: &SimulatedDisk) -> Store {
    try_open(disk).expect("it opens")
}

fn payload(sequence: u64) -> Vec<u8> {
    format!("message {sequence} ").repeat(3).into_bytes()
}

fn append(store: &Store, sequence: u64, resets: u64) -> Result<Option<u64>, StoreError> {
    let message = NewMessage {
        subject: b"a.b",
        payload: &payload(sequence),
        // The times of the origin, long ago.
        time_ns: 1_000_000
            + SEQUENCES
                .iter()
                .position(|one| *one == sequence)
                .unwrap_or(99) as i64,
        ..NewMessage::default()
    };
    let appended = store.append_following(&message, Some(sequence), resets)?;
    Ok(appended.map(|appended| appended.sequence))
}

/// Writes from a sequence on, and commits after every third message; returns the last that was committed.
fn write(store: &Store, from: u64) -> (u64, Result<(), StoreError>) {
    let mut committed = 0;
    let resets = store.resets();
    let mut write = || {
        let ahead = SEQUENCES.into_iter().filter(|sequence| *sequence >= from);
        for (number, sequence) in ahead.enumerate() {
            assert_eq!(append(store, sequence, resets)?, Some(sequence));
            if number % 3 == 2 {
                committed = store.commit()?.last_sequence;
            }
        }
        committed = store.commit()?.last_sequence;
        while store.maintain()? {}
        Ok(())
    };
    let result = write();
    (committed, result)
}

fn contents(store: &Store) -> Vec<u64> {
    let mut found = Vec::new();
    store
        .messages()
        .scan(0, |record| {
            assert_eq!(record.payload, payload(record.sequence));
            let at = SEQUENCES.iter().position(|one| *one == record.sequence);
            assert_eq!(record.time_ns, 1_000_000 + at.unwrap_or(99) as i64);
            found.push(record.sequence);
            true
        })
        .expect("it can be read");
    for sequence in &found {
        assert!(store
            .messages()
            .read(*sequence)
            .expect("it can be read")
            .is_some());
    }
    found
}

fn losses(findings: &[Finding]) -> Vec<&Finding> {
    let is_loss = |finding: &&Finding| {
        matches!(
            finding,
            Finding::Lost { .. } | Finding::SegmentMissing { .. } | Finding::Damaged { .. }
        )
    };
    findings.iter().filter(is_loss).collect()
}

#[test]
fn sequences_and_times_are_those_that_were_given() {
    let disk = SimulatedDisk::default();
    let store = open(&disk);
    let (committed, written) = write(&store, 0);
    written.unwrap();

    for store in [store, open(&disk)] {
        assert_eq!(contents(&store), SEQUENCES);
        assert_eq!(committed, 30_000_000_000);
        let state = store.messages().state();
        assert_eq!((state.messages, state.first_sequence), (14, 3));
        assert_eq!(state.last_sequence, 30_000_000_000);
        assert!(state.lost.is_empty());
        assert_eq!(store.messages().read(5).unwrap(), None);
        assert_eq!(store.messages().next_match(b"a.*", 72), Some(500));
        assert_eq!(store.messages().sequence_at(1_000_006).unwrap(), 500);
    }
}

#[test]
fn a_power_cut_at_any_call_leaves_a_beginning_and_no_losses() {
    let calls = {
        let disk = SimulatedDisk::default();
        write(&open(&disk), 0).1.unwrap();
        disk.calls()
    };
    let mut states = 0;
    for at_call in 0..calls {
        let disk = SimulatedDisk::default();
        disk.plan(Some(FaultPlan {
            at_call,
            fault: Fault::PowerCut,
            lasting: true,
        }));
        let committed = match try_open(&disk) {
            Ok(store) => write(&store, 0).0,
            Err(_) => 0,
        };
        let survivals = [Survival::Nothing, Survival::Everything];
        let by_chance = (0..8).map(|seed| Survival::Random { seed });
        for survival in survivals.into_iter().chain(by_chance) {
            let after = disk.after_power_cut(survival);
            let store = open(&after);
            let found = contents(&store);
            assert_eq!(found, SEQUENCES[..found.len()]);
            assert!(found.len() >= SEQUENCES.iter().filter(|one| **one <= committed).count());
            let findings = store.take_findings();
            assert!(losses(&findings).is_empty(), "call {at_call}: {findings:?}");
            assert!(store.messages().state().lost.is_empty());

            // It goes on where it is, and then has everything.
            let next = store.last_given_sequence() + 1;
            write(&store, next).1.unwrap();
            assert_eq!(contents(&store), SEQUENCES);
            assert_eq!(contents(&open(&after)), SEQUENCES);
            states += 1;
        }
    }
    println!("{calls} calls, {states} states");
}

#[test]
fn nothing_follows_what_was_refused() {
    let disk = SimulatedDisk::default();
    let store = open(&disk);
    let resets = store.resets();
    append(&store, 3, resets).unwrap();
    store.commit().unwrap();
    append(&store, 4, resets).unwrap();
    disk.plan(Some(FaultPlan {
        at_call: disk.calls(),
        fault: Fault::NoSpace,
        lasting: false,
    }));
    assert!(matches!(store.commit(), Err(StoreError::Full)));
    // Whether the disk is still full is tried now and then.
    let wait = || std::thread::sleep(Duration::from_millis(150));
    wait();

    assert_eq!(append(&store, 6, resets).unwrap(), None);

    wait();
    let resets = store.resets();
    assert_eq!(append(&store, 4, resets).unwrap(), Some(4));
    store.commit().unwrap();
    assert_eq!(append(&store, 6, resets).unwrap(), Some(6));
    store.commit().unwrap();
    assert_eq!(contents(&store), [3, 4, 6]);
    // Nothing is accepted that is not after what is there.
    assert_eq!(append(&store, 5, resets).unwrap(), None);
}

#[test]
fn a_jump_over_more_than_half_of_all_sequences_is_no_loss() {
    const FAR: u64 = (1 << 63) + 100;
    for is_maintained in [false, true] {
        let disk = SimulatedDisk::default();
        let store = open(&disk);
        append(&store, 3, store.resets()).unwrap();
        store.commit().unwrap();
        let jumped = store.advance(FAR).unwrap();
        store.commit_through(&jumped).unwrap();
        append(&store, FAR, store.resets()).unwrap();
        store.commit().unwrap();
        while is_maintained && store.maintain().unwrap() {}
        drop(store);

        let store = open(&disk);

        assert_eq!(store.take_findings(), vec![], "maintained: {is_maintained}");
        assert!(store.messages().state().lost.is_empty());
        assert_eq!(contents(&store), [FAR]);
    }
}
