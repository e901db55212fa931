//! Disks that are full, broken or slow, at every call of a scripted history.
//!
//! A call that fails makes the commit fail, and nothing of it is ever seen. A full disk is left alone until there is room; after any other error
//! the store is read and no longer written, until it is opened again. What was promised before holds throughout, and after a power
//! cut on top of it.

#[allow(dead_code)]
#[path = "support/slow_disk.rs"]
mod slow_disk;
#[allow(dead_code)]
#[path = "support/store_history.rs"]
mod store_history;

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use jetlake_engine::storage::disk::simulated::{Fault, FaultPlan, SimulatedDisk, Survival};
use jetlake_engine::storage::message::{NewMessage, Purge, StoreError};
use jetlake_engine::storage::store::{Store, StoreOptions};
use slow_disk::SlowDisk;
use store_history::{contents, open, options, History, Step};

const SEGMENT_BYTES: u64 = 4096 + 1200;

/// A refusal comes at once.
const REFUSAL_MAX: Duration = Duration::from_millis(100);

/// Only what hangs takes so long, on a busy machine.
const SCRIPT_MAX: Duration = Duration::from_secs(30);

fn append(count: usize, payload_bytes: usize) -> Step {
    Step::Append {
        count,
        payload_bytes,
    }
}

fn group(count: usize, payload_bytes: usize) -> Step {
    Step::Group {
        count,
        payload_bytes,
    }
}

fn purge(keep: u64) -> Step {
    Step::Purge(Purge {
        keep,
        ..Purge::default()
    })
}

fn script() -> Vec<Step> {
    let remove = |nth, erase| Step::Remove { nth, erase };
    let mut steps = vec![append(3, 40), Step::Commit];
    for round in 0..3 {
        steps.extend([append(8, 200), remove(1, false), append(2, 900)]);
        steps.extend([remove(round, true), Step::Maintenance, append(1, 6_000)]);
        steps.extend([Step::Commit, append(4, 100), Step::Maintenance]);
        steps.extend([group(3, 300), append(1, 20), Step::Commit]);
        steps.extend([Step::GiveBackSpace, append(2, 300), Step::Commit]);
    }
    steps.extend([purge(2), append(5, 300), Step::Maintenance, append(1, 10)]);
    steps.extend([Step::Commit, append(2, 10), Step::Commit]);
    steps
}

/// A history whose store is open, and whose next calls are those of the script.
fn opened() -> History {
    let mut history = History::new(SimulatedDisk::default(), options(SEGMENT_BYTES));
    history.run(&[]).expect("nothing fails yet");
    history
}

/// The calls of the script, the first and the one after the last.
fn calls() -> std::ops::Range<u64> {
    let mut history = opened();
    let first = history.disk.calls();
    history.run(&script()).expect("nothing fails here");
    first..history.disk.calls()
}

/// Runs the script until the planned fault strikes; `None` if a fault struck where it costs nothing.
fn strike(plan: FaultPlan) -> Option<(History, StoreError)> {
    let mut history = opened();
    history.disk.plan(Some(plan));
    let begun = Instant::now();
    let refused = history.run(&script()).err()?;
    assert!(begun.elapsed() < SCRIPT_MAX, "{plan:?} took too long");
    Some((history, refused))
}

/// Nothing of what was refused is seen. Where an erasure could not be carried out, its removal holds all the same.
fn check_nothing_seen(history: &History, name: &str) {
    let shown = contents(history.store());
    let mut refused = history.promise.clone();
    refused.forget();
    let mut done = history.promise.clone();
    let erasing = done.is_erasing();
    done.acknowledge();
    let held = refused.holds(&shown);
    let held = held.or_else(|what| match erasing {
        true => done.holds(&shown),
        false => Err(what),
    });
    held.unwrap_or_else(|what| panic!("{name}: {what}"));
    assert!(history.store().messages().state().lost.is_empty(), "{name}");
}

fn check_after_power_cuts(history: &History, name: &str) {
    let by_chance = (0..6).map(|seed| Survival::Random { seed });
    for survival in by_chance.chain([Survival::Nothing, Survival::Everything]) {
        let found = history.disk.after_power_cut(survival);
        let checked = history.promise.check(&found, &history.options);
        checked.unwrap_or_else(|what| panic!("{name}, {survival:?}: {what}"));
    }
}

/// More room: writing goes on without opening the store again.
fn go_on(history: &mut History, name: &str) {
    history.disk.plan(None);
    // Where an erasure was what failed, its removal is done (`check_nothing_seen`).
    let mut refused = history.promise.clone();
    refused.forget();
    match refused.holds(&contents(history.store())) {
        Ok(()) => history.promise.forget(),
        Err(_) => history.promise.acknowledge(),
    }
    if let Some(first) = contents(history.store()).keys().next().copied() {
        // A removal that succeeds shows that there is room, so nobody waits for the next try.
        assert!(history.store().remove(first, false).unwrap(), "{name}");
        history.promise.leaving.insert(first);
        let removed = history.step(&Step::Commit);
        removed.unwrap_or_else(|error| panic!("{name}: {error}"));
    } else {
        thread::sleep(REFUSAL_MAX + Duration::from_millis(10));
    }
    // One is let through to see whether there is room.
    let rest = [
        append(1, 5),
        Step::Commit,
        append(3, 500),
        Step::Commit,
        Step::Maintenance,
        append(2, 50),
        Step::Commit,
    ];
    let done = history.run(&rest);
    done.unwrap_or_else(|error| panic!("{name}: does not go on: {error}"));
}

#[test]
fn a_full_disk_at_any_call_refuses_and_goes_on_when_there_is_room() {
    let mut count = 0;
    for at_call in calls() {
        for lasting in [false, true] {
            let fault = Fault::NoSpace;
            let plan = FaultPlan {
                at_call,
                fault,
                lasting,
            };
            let name = format!("{plan:?}");
            let Some((mut history, refused)) = strike(plan) else {
                continue;
            };
            count += 1;
            check_nothing_seen(&history, &name);
            check_after_power_cuts(&history, &name);
            match refused {
                StoreError::Full => go_on(&mut history, &name),
                other => panic!("{name}: {other}"),
            }
            check_after_power_cuts(&history, &name);
        }
    }
    println!("{count} faults, each with 8 or 16 power cuts");
    assert!(count > 300);
}

#[test]
fn a_broken_disk_at_any_call_leaves_a_store_that_can_only_be_read() {
    let mut count = 0;
    for at_call in calls() {
        for lasting in [false, true] {
            let fault = Fault::Broken;
            let plan = FaultPlan {
                at_call,
                fault,
                lasting,
            };
            let name = format!("{plan:?}");
            let (history, refused) = strike(plan).expect("no error is passed over");
            count += 1;

            assert!(
                matches!(refused, StoreError::ReadOnly(_)),
                "{name}: {refused}"
            );
            check_nothing_seen(&history, &name);
            let store = history.store();
            let more = NewMessage::default();
            assert!(
                matches!(store.append(&more), Err(StoreError::ReadOnly(_))),
                "{name}"
            );
            assert!(
                matches!(store.remove(1, false), Err(StoreError::ReadOnly(_))),
                "{name}"
            );
            assert!(
                matches!(store.purge(&Purge::default()), Err(StoreError::ReadOnly(_))),
                "{name}"
            );
            check_nothing_seen(&history, &name);
            check_after_power_cuts(&history, &name);
            history.disk.plan(None);
            // A store whose end nobody knows must not look as if it had been closed in good order.
            assert!(
                matches!(history.store().close(), Err(StoreError::ReadOnly(_))),
                "{name}"
            );
            check_after_power_cuts(&history, &name);
            history
                .promise
                .check(&history.disk, &history.options)
                .unwrap_or_else(|what| panic!("{name}: {what}"));
        }
    }
    println!("{count} faults, each with 16 power cuts");
}

#[test]
fn what_was_staged_when_the_disk_broke_is_never_acknowledged() {
    let mut history = opened();
    history.run(&[append(30, 200), Step::Commit]).unwrap();
    let store = history.store();
    let more = NewMessage {
        subject: b"a",
        ..NewMessage::default()
    };
    store.append(&more).unwrap();
    history.disk.plan(Some(FaultPlan {
        at_call: history.disk.calls(),
        fault: Fault::Broken,
        lasting: false,
    }));

    store.maintain().unwrap_err();

    assert!(matches!(store.commit(), Err(StoreError::ReadOnly(_))));
}

#[test]
fn a_disk_that_fills_up_takes_removals_and_goes_on_when_they_have_freed_it() {
    let mut history = opened();
    let used: usize = history
        .disk
        .files()
        .iter()
        .map(|(_, bytes)| bytes.len())
        .sum();
    history.disk.set_capacity(Some(used as u64 + 150_000));
    let mut refusals = 0;
    for _ in 0..5 {
        let refused = loop {
            if let Err(error) = history.run(&[append(2, 700), Step::Commit]) {
                break error;
            }
        };
        assert!(matches!(refused, StoreError::Full), "{refused}");
        history.promise.forget();
        refusals += 1;
        let begun = Instant::now();
        assert!(matches!(
            history.store().append(&NewMessage::default()),
            Err(StoreError::Full)
        ));
        assert!(begun.elapsed() < REFUSAL_MAX);
        check_nothing_seen(&history, "full");

        let remove = Step::Remove {
            nth: 3,
            erase: true,
        };
        history
            .run(&[remove, Step::Commit, purge(4), Step::Commit])
            .unwrap();
        history
            .run(&[Step::Maintenance, append(3, 700), Step::Commit])
            .unwrap();
        check_after_power_cuts(&history, "freed");
    }
    assert_eq!(refusals, 5);
}

#[test]
fn a_full_disk_is_tried_again_after_a_while() {
    let mut history = opened();
    history.run(&[append(3, 100), Step::Commit]).unwrap();
    history.disk.set_capacity(Some(0));
    history.run(&[append(30, 1_000), Step::Commit]).unwrap_err();
    history.promise.forget();
    history.disk.set_capacity(None);

    assert!(matches!(
        history.store().append(&NewMessage::default()),
        Err(StoreError::Full)
    ));
    thread::sleep(REFUSAL_MAX + Duration::from_millis(10));
    history.run(&[append(1, 100), Step::Commit]).unwrap();
    history.run(&[append(3, 100), Step::Commit]).unwrap();

    check_after_power_cuts(&history, "tried again");
}

#[test]
fn a_read_that_fails_once_is_not_taken_for_damage() {
    let mut history = opened();
    history.run(&script()).unwrap();
    let expected = contents(history.store());
    let before = history.disk.reads();
    drop(open(&history.disk, &history.options).unwrap());
    let opening = history.disk.reads() - before;
    for read in 0..opening {
        let disk = history.disk.copy();
        disk.plan_reads(Some(FaultPlan {
            at_call: read,
            fault: Fault::Broken,
            lasting: false,
        }));
        assert!(
            matches!(open(&disk, &history.options), Err(StoreError::Read(_))),
            "read {read} of {opening}"
        );
        let store = open(&disk, &history.options).unwrap();
        assert_eq!(contents(&store), expected, "read {read}");
        assert_eq!(store.take_findings(), vec![]);
    }
    for sequence in expected.keys() {
        history.disk.plan_reads(Some(FaultPlan {
            at_call: history.disk.reads(),
            fault: Fault::Broken,
            lasting: false,
        }));
        // It is tried again at once.
        assert!(history
            .store()
            .messages()
            .read(*sequence)
            .unwrap()
            .is_some());
    }
    assert!(history.store().messages().state().lost.is_empty());
}

fn small() -> NewMessage<'static> {
    NewMessage {
        subject: b"a",
        payload: b"payload",
        ..NewMessage::default()
    }
}

#[test]
fn a_slow_sync_delays_neither_other_stores_nor_appends_and_is_shared() {
    // Long enough for what must happen during one sync, on a busy machine as well.
    let sync_takes = Duration::from_millis(600);
    let disk = SlowDisk::new(SimulatedDisk::default(), sync_takes);
    let slow = Store::open(Arc::new(disk.clone()), Path::new("/slow"), options(1 << 20)).unwrap();
    let fast = Store::open(
        Arc::new(SimulatedDisk::default()),
        Path::new("/fast"),
        options(1 << 20),
    )
    .unwrap();
    slow.append(&small()).unwrap();
    slow.commit().unwrap();
    let before = disk.begun.load(Ordering::SeqCst);

    thread::scope(|scope| {
        slow.append(&small()).unwrap();
        let first = scope.spawn(|| slow.commit().unwrap());
        while disk.begun.load(Ordering::SeqCst) == before {
            thread::yield_now();
        }
        // The sync is under way.
        for _ in 0..200 {
            slow.append(&small()).unwrap();
        }
        for _ in 0..20 {
            fast.append(&small()).unwrap();
            fast.commit().unwrap();
        }
        assert_eq!(
            disk.ended.load(Ordering::SeqCst),
            before,
            "the sync had ended too early to tell"
        );
        assert_eq!(
            slow.messages().state().messages,
            1,
            "nothing is shown before it is durable"
        );
        // Threads that wait share the next one.
        let waiting: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| slow.commit().unwrap()))
            .collect();
        assert_eq!(first.join().unwrap().last_sequence, 2);
        for one in waiting {
            assert_eq!(one.join().unwrap().last_sequence, 202);
        }
    });

    assert_eq!(disk.begun.load(Ordering::SeqCst) - before, 2);
    assert_eq!(fast.messages().state().messages, 20);
}

#[test]
fn a_store_that_was_retired_writes_nothing_any_more() {
    let disk = SimulatedDisk::default();
    let store = Store::open(
        Arc::new(disk.clone()),
        Path::new("/retired"),
        StoreOptions::default(),
    )
    .unwrap();
    let message = NewMessage {
        subject: b"a",
        ..NewMessage::default()
    };
    store.append(&message).unwrap();
    store.commit().unwrap();
    store.append(&message).unwrap();

    store.retire();

    let calls = disk.calls();
    assert!(matches!(store.commit(), Err(StoreError::ReadOnly(_))));
    assert!(matches!(
        store.append(&message),
        Err(StoreError::ReadOnly(_))
    ));
    assert!(store.maintain().is_err());
    assert_eq!(disk.calls(), calls);
    assert!(store.messages().read(1).unwrap().is_some());
}
