//! Each caller learns what became of its own work, whichever thread committed it: on disks that fill up and break while
//! several threads commit.
//!
//! Invariant of the tests: what was reported to a caller is what the next process finds when it opens the store after a
//! power cut.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;

use jetlake_engine::storage::disk::simulated::{Fault, FaultPlan, SimulatedDisk, Survival};
use jetlake_engine::storage::message::{NewMessage, StoreError, StoreResult};
use jetlake_engine::storage::store::staged_work::{Change, StagedWork};
use jetlake_engine::storage::store::{Store, StoreOptions};

const FOLDER: &str = "/stream";

/// Several segments come and go.
const SEGMENT_BYTES: u64 = 16 * 1024;

const THREADS: usize = 4;
const ROUNDS: usize = 300;

fn open(disk: &SimulatedDisk) -> Store {
    let options = StoreOptions {
        segment_bytes: SEGMENT_BYTES,
        fill_ahead: false,
        ..StoreOptions::default()
    };
    Store::open(Arc::new(disk.clone()), Path::new(FOLDER), options).unwrap()
}

fn stage_message(store: &Store, payload: &str) -> StoreResult<StagedWork> {
    let message = NewMessage {
        subject: b"a",
        payload: payload.as_bytes(),
        ..NewMessage::default()
    };
    store.stage(&Change {
        append: &[message],
        ..Change::default()
    })
}

fn stage_removal(store: &Store, sequence: u64, erase: bool) -> StoreResult<StagedWork> {
    store.stage(&Change {
        remove: &[sequence],
        erase,
        ..Change::default()
    })
}

fn fail_next_call(disk: &SimulatedDisk, fault: Fault) {
    disk.plan(Some(FaultPlan {
        at_call: disk.calls(),
        fault,
        lasting: false,
    }));
}

fn payloads(store: &Store) -> BTreeSet<String> {
    let mut payloads = BTreeSet::new();
    store
        .messages()
        .scan(0, |record| {
            payloads.insert(String::from_utf8(record.payload.to_vec()).unwrap());
            true
        })
        .unwrap();
    payloads
}

fn after_power_cut(disk: &SimulatedDisk) -> BTreeSet<String> {
    payloads(&open(&disk.after_power_cut(Survival::Nothing)))
}

#[test]
fn work_that_anothers_failed_commit_discarded_is_not_said_to_be_stored() {
    let disk = SimulatedDisk::default();
    let store = open(&disk);
    let own = stage_message(&store, "own").unwrap();
    let others = stage_message(&store, "others").unwrap();
    fail_next_call(&disk, Fault::NoSpace);
    assert!(matches!(
        store.commit_through(&others),
        Err(StoreError::Full)
    ));

    let outcome = store.commit_through(&own);

    assert!(matches!(outcome, Err(StoreError::Full)), "{outcome:?}");
    assert_eq!(after_power_cut(&disk), BTreeSet::new());
}

#[test]
fn a_removal_that_anothers_failed_commit_discarded_is_not_said_to_be_done() {
    let disk = SimulatedDisk::default();
    let store = open(&disk);
    let stored = stage_message(&store, "stored").unwrap();
    store.commit_through(&stored).unwrap();
    let removal = stage_removal(&store, stored.sequences[0], false).unwrap();
    let others = stage_message(&store, "others").unwrap();
    fail_next_call(&disk, Fault::NoSpace);
    store.commit_through(&others).unwrap_err();

    let outcome = store.commit_through(&removal);

    assert!(matches!(outcome, Err(StoreError::Full)), "{outcome:?}");
    assert_eq!(
        after_power_cut(&disk),
        BTreeSet::from(["stored".to_owned()])
    );
}

#[test]
fn removals_are_committed_whoever_staged_them_and_nothing_else_is_for_their_sake() {
    let disk = SimulatedDisk::default();
    let store = open(&disk);
    let stored: Vec<StagedWork> = ["one", "two"]
        .map(|payload| stage_message(&store, payload).unwrap())
        .into();
    store.commit_through(&stored[1]).unwrap();
    let waiting = stage_message(&store, "waits").unwrap();

    store.commit_removals().unwrap();
    assert!(!store.is_removing());
    assert_eq!(store.staged_messages(), 1);

    assert!(store.remove(stored[0].sequences[0], false).unwrap());
    assert!(store.is_removing());
    store.commit_removals().unwrap();
    assert!(!store.is_removing());
    let found = BTreeSet::from(["two".to_owned(), "waits".to_owned()]);
    assert_eq!(after_power_cut(&disk), found);
    assert_eq!(waiting.sequences, [3]);
}

#[test]
fn removals_that_anothers_failed_commit_discarded_are_waited_for_no_more() {
    let disk = SimulatedDisk::default();
    let store = open(&disk);
    let stored = stage_message(&store, "stored").unwrap();
    store.commit_through(&stored).unwrap();
    assert!(store.remove(stored.sequences[0], false).unwrap());
    fail_next_call(&disk, Fault::NoSpace);

    assert!(matches!(store.commit_removals(), Err(StoreError::Full)));

    assert!(!store.is_removing());
    store.commit_removals().unwrap();
    assert_eq!(
        after_power_cut(&disk),
        BTreeSet::from(["stored".to_owned()])
    );
}

#[test]
fn work_that_another_has_committed_is_stored_whatever_fails_later() {
    let disk = SimulatedDisk::default();
    let store = open(&disk);
    let own = stage_message(&store, "own").unwrap();
    let others = stage_message(&store, "others").unwrap();
    store.commit_through(&others).unwrap();
    let later = stage_message(&store, "later").unwrap();
    fail_next_call(&disk, Fault::NoSpace);
    store.commit_through(&later).unwrap_err();
    let calls = disk.calls();

    let outcome = store.commit_through(&own);

    assert!(outcome.is_ok(), "{outcome:?}");
    assert_eq!(disk.calls(), calls, "it was committed already");
    let expected = BTreeSet::from(["own".to_owned(), "others".to_owned()]);
    assert_eq!(after_power_cut(&disk), expected);
}

#[test]
fn work_staged_after_a_failure_is_stored_although_it_has_the_sequence_of_what_was_refused() {
    let disk = SimulatedDisk::default();
    let store = open(&disk);
    let refused = stage_message(&store, "refused").unwrap();
    fail_next_call(&disk, Fault::NoSpace);
    store.commit_through(&refused).unwrap_err();
    thread::sleep(std::time::Duration::from_millis(110));
    let own = stage_message(&store, "own").unwrap();
    store.commit().unwrap();

    assert_eq!(own.sequences, refused.sequences);
    assert!(store.commit_through(&own).is_ok());
    assert!(matches!(
        store.commit_through(&refused),
        Err(StoreError::Full)
    ));
    assert_eq!(after_power_cut(&disk), BTreeSet::from(["own".to_owned()]));
}

#[test]
fn work_that_was_staged_when_the_disk_broke_is_not_said_to_be_stored() {
    let disk = SimulatedDisk::default();
    let store = open(&disk);
    let own = stage_message(&store, "own").unwrap();
    fail_next_call(&disk, Fault::Broken);
    store.commit().unwrap_err();
    store.retire();

    let outcome = store.commit_through(&own);

    assert!(
        matches!(outcome, Err(StoreError::ReadOnly(_))),
        "{outcome:?}"
    );
    assert_eq!(after_power_cut(&disk), BTreeSet::new());
}

#[test]
fn an_erasure_that_another_has_committed_is_carried_out_when_its_own_commit_returns() {
    let disk = SimulatedDisk::default();
    let store = open(&disk);
    let secret = stage_message(&store, "a secret text").unwrap();
    store.commit_through(&secret).unwrap();
    let erasure = stage_removal(&store, secret.sequences[0], true).unwrap();
    let others = stage_message(&store, "others").unwrap();
    store.commit_through(&others).unwrap();

    store.commit_through(&erasure).unwrap();

    let found = disk.after_power_cut(Survival::Nothing);
    let holds_secret =
        |(_, bytes): (_, Vec<u8>)| bytes.windows(13).any(|some| some == b"a secret text");
    assert!(!found.files().into_iter().any(holds_secret));
}

#[test]
fn a_change_that_replaces_is_done_as_a_whole_or_not_at_all() {
    let disk = SimulatedDisk::default();
    let store = open(&disk);
    let old = stage_message(&store, "old").unwrap();
    store.commit_through(&old).unwrap();
    let message = NewMessage {
        subject: b"a",
        payload: b"new",
        ..NewMessage::default()
    };
    let change = Change {
        append: &[message],
        remove: &old.sequences,
        ..Change::default()
    };
    let refused = store.stage(&change).unwrap();
    fail_next_call(&disk, Fault::NoSpace);
    store.commit_through(&refused).unwrap_err();
    assert_eq!(after_power_cut(&disk), BTreeSet::from(["old".to_owned()]));
    thread::sleep(std::time::Duration::from_millis(110));

    let replacement = store.stage(&change).unwrap();
    store.commit_through(&replacement).unwrap();

    assert_eq!(after_power_cut(&disk), BTreeSet::from(["new".to_owned()]));
}

/// What was reported to one thread.
#[derive(Default)]
struct Told {
    stored: BTreeSet<String>,
    refused: BTreeSet<String>,
    removed: BTreeSet<String>,
    refused_removals: usize,
    /// What a store that accepts nothing any more reported to it.
    read_only: Vec<String>,
}

impl Told {
    fn note(&mut self, error: &StoreError) {
        if matches!(error, StoreError::ReadOnly(_)) {
            self.read_only.push(error.to_string());
        }
    }
}

/// Stores and removes, and notes what is reported to it.
fn work(store: &Store, number: usize) -> Told {
    let mut told = Told::default();
    let mut own: Vec<(u64, String)> = Vec::new();
    for round in 0..ROUNDS {
        let payload = format!("{number}/{round}/{}", "x".repeat(round % 700));
        match stage_message(store, &payload) {
            Ok(staged) => {
                thread::yield_now();
                match store.commit_through(&staged) {
                    Ok(_) => {
                        own.push((staged.sequences[0], payload.clone()));
                        told.stored.insert(payload);
                    }
                    Err(error) => {
                        told.note(&error);
                        told.refused.insert(payload);
                    }
                }
            }
            Err(error) => told.note(&error),
        }
        if round % 3 == 2 && !own.is_empty() {
            let (sequence, payload) = own.swap_remove(round % own.len());
            // Removals are taken however full the disk is.
            let staged = stage_removal(store, sequence, false).unwrap();
            assert_eq!(staged.removed, 1);
            thread::yield_now();
            match store.commit_through(&staged) {
                Ok(_) => {
                    told.stored.remove(&payload);
                    told.removed.insert(payload);
                }
                Err(error) => {
                    told.note(&error);
                    told.refused_removals += 1;
                }
            }
        }
    }
    told
}

#[test]
fn threads_that_commit_at_once_on_a_disk_that_fills_up_are_told_the_truth() {
    tells_the_truth_and_goes_on(Fault::NoSpace);
}

#[test]
fn threads_that_commit_at_once_in_a_process_without_descriptors_are_told_the_truth() {
    tells_the_truth_and_goes_on(Fault::NoDescriptors);
}

fn tells_the_truth_and_goes_on(fault: Fault) {
    let disk = SimulatedDisk::default();
    let store = open(&disk);
    let used: usize = disk.files().iter().map(|(_, bytes)| bytes.len()).sum();
    let done = AtomicBool::new(false);

    let told: Vec<Told> = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|number| {
                let store = &store;
                scope.spawn(move || work(store, number))
            })
            .collect();
        // Room comes and goes, and so do single calls; maintenance commits on its own behalf.
        let trouble = scope.spawn(|| {
            let mut round = 0_u64;
            while !done.load(Ordering::Acquire) {
                round += 1;
                let room = (round % 3 != 0).then_some(used as u64 + 1_000 * (round % 50));
                disk.set_capacity(room);
                disk.plan(Some(FaultPlan {
                    at_call: disk.calls() + round % 7,
                    fault,
                    // Now and then undoing a batch meets it as well.
                    lasting: round % 11 == 0,
                }));
                let _ = store.maintain();
                thread::sleep(std::time::Duration::from_millis(1));
            }
        });
        let told: Vec<_> = threads.into_iter().map(|one| one.join()).collect();
        done.store(true, Ordering::Release);
        trouble.join().unwrap();
        told.into_iter().map(|told| told.unwrap()).collect()
    });

    let read_only: Vec<_> = told.iter().flat_map(|told| &told.read_only).collect();
    assert!(read_only.is_empty(), "{read_only:?}");
    // There is room again: the store goes on, and what it refused meanwhile is gone.
    disk.plan(None);
    disk.set_capacity(None);
    store.maintain().unwrap();
    thread::sleep(std::time::Duration::from_millis(110));
    let staged = stage_message(&store, "afterwards").unwrap();
    store.commit_through(&staged).unwrap();
    let found = after_power_cut(&disk);
    assert!(found.contains("afterwards"));
    let count = |of: fn(&Told) -> usize| told.iter().map(of).sum::<usize>();
    println!(
        "{} stored, {} refused, {} removed, {} removals refused",
        count(|told| told.stored.len()),
        count(|told| told.refused.len()),
        count(|told| told.removed.len()),
        count(|told| told.refused_removals),
    );
    assert!(
        count(|told| told.refused.len()) > 0,
        "the disk never failed"
    );
    for told in &told {
        let lost: Vec<_> = told.stored.difference(&found).collect();
        assert!(lost.is_empty(), "said to be stored: {lost:?}");
        let back: Vec<_> = told.removed.intersection(&found).collect();
        assert!(back.is_empty(), "said to be removed: {back:?}");
        let false_refusals: Vec<_> = told.refused.intersection(&found).collect();
        assert!(
            false_refusals.is_empty(),
            "said to be refused: {false_refusals:?}"
        );
    }
}

#[test]
fn whatever_call_finds_no_room_or_no_descriptor_a_store_is_never_read_only() {
    for fault in [Fault::NoSpace, Fault::NoDescriptors] {
        // Each call of a whole life in turn, and all calls after it until the batch is given up.
        for at in 0..400 {
            for lasting in [false, true] {
                let disk = SimulatedDisk::default();
                let store = open(&disk);
                let begun = disk.calls();
                disk.plan(Some(FaultPlan {
                    at_call: begun + at,
                    fault,
                    lasting,
                }));
                let mut stored = BTreeSet::new();
                for number in 0..14 {
                    let payload = format!("{number}/{}", "x".repeat(2_000));
                    let staged = match stage_message(&store, &payload) {
                        Ok(staged) => staged,
                        Err(StoreError::Full | StoreError::Temporary(_)) => continue,
                        Err(error) => panic!("call {at}: {error}"),
                    };
                    match store.commit_through(&staged) {
                        Ok(_) => drop(stored.insert(payload)),
                        Err(StoreError::Full | StoreError::Temporary(_)) => {}
                        Err(error) => panic!("call {at}: {error}"),
                    }
                    let removal = stage_removal(&store, 1 + number / 2, number % 3 == 0).unwrap();
                    match store.commit_through(&removal) {
                        Ok(_) if removal.removed > 0 => {
                            stored.retain(|payload| payloads(&store).contains(payload));
                        }
                        Ok(_) | Err(StoreError::Full | StoreError::Temporary(_)) => {}
                        Err(error) => panic!("call {at}: {error}"),
                    }
                    match store.maintain() {
                        Ok(_) | Err(StoreError::Full | StoreError::Temporary(_)) => {}
                        Err(error) => panic!("call {at}: {error}"),
                    }
                    stored.retain(|payload| payloads(&store).contains(payload));
                }
                disk.plan(None);
                store.maintain().unwrap();
                store.commit().unwrap();
                let known = payloads(&store);
                assert!(stored.is_subset(&known), "call {at}, {lasting}");
                let found = after_power_cut(&disk);
                assert_eq!(found, known, "call {at}, {lasting}");
                assert!(store
                    .hindrance()
                    .is_none_or(|error| !matches!(error, StoreError::ReadOnly(_))));
            }
        }
    }
}

#[test]
fn a_store_whose_sequences_have_run_out_refuses_and_counts_on() {
    let disk = SimulatedDisk::default();
    let options = StoreOptions {
        first_sequence: u64::MAX - 2,
        ..StoreOptions::default()
    };
    let open = |disk: &SimulatedDisk| {
        Store::open(Arc::new(disk.clone()), Path::new(FOLDER), options.clone()).unwrap()
    };
    let store = open(&disk);
    let message = NewMessage {
        subject: b"a",
        ..NewMessage::default()
    };
    assert!(matches!(
        store.append_all(&[message; 3]),
        Err(StoreError::Exhausted)
    ));
    for _ in 0..2 {
        store.append(&message).unwrap();
    }

    let beyond = store.append(&message);

    assert!(matches!(beyond, Err(StoreError::Exhausted)), "{beyond:?}");
    store.commit().unwrap();
    let shown = |store: &Store| {
        let state = store.messages().state();
        (state.messages, state.first_sequence, state.last_sequence)
    };
    assert_eq!(shown(&store), (2, u64::MAX - 2, u64::MAX - 1));
    drop(store);
    let store = open(&disk.after_power_cut(Survival::Nothing));
    assert_eq!(shown(&store), (2, u64::MAX - 2, u64::MAX - 1));
    assert!(matches!(store.append(&message), Err(StoreError::Exhausted)));
    assert_eq!(store.messages().gaps(10), Vec::<u64>::new());
}

#[test]
fn a_store_that_begins_at_the_last_sequence_is_empty_and_stays_so() {
    let disk = SimulatedDisk::default();
    let options = StoreOptions {
        first_sequence: u64::MAX,
        ..StoreOptions::default()
    };
    let store = Store::open(Arc::new(disk), Path::new(FOLDER), options).unwrap();

    let refused = store.append(&NewMessage::default());

    assert!(matches!(refused, Err(StoreError::Exhausted)), "{refused:?}");
    let state = store.messages().state();
    assert_eq!(
        (state.messages, state.first_sequence, state.last_sequence),
        (0, u64::MAX, u64::MAX - 1)
    );
}
