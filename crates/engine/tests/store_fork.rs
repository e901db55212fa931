//! Forks: a store made of another one that holds what that one held up to some message, and shares its files.
//!
//! Whatever either of the two does afterwards, the other one does not notice, through power cuts at every call. `JETLAKE_FORK_STATES` sets how many states
//! of the disk there are for each power cut, by adding more subsets by chance, and all but one of the pending writes; more kinds of streams too.

#[allow(dead_code)]
#[path = "support/random.rs"]
mod random;
#[allow(dead_code)]
#[path = "support/store_history.rs"]
mod store_history;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jetlake_engine::storage::check::check;
use jetlake_engine::storage::disk::file_system::{FileSystem, RealFileSystem};
use jetlake_engine::storage::disk::simulated::{Fault, FaultPlan, SimulatedDisk, Survival};
use jetlake_engine::storage::finding::Finding;
use jetlake_engine::storage::format::encryption::MasterKey;
use jetlake_engine::storage::message::{Counting, Limits, NewMessage, Purge, StoreError};
use jetlake_engine::storage::store::{Store, StoreOptions};
use random::Random;
use store_history::{contents, open_in, options, History, Step, FOLDER};

const FORK: &str = "/fork";
const SEGMENT_BYTES: u64 = 4096 + 1200;

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

fn remove(nth: usize, erase: bool) -> Step {
    Step::Remove { nth, erase }
}

fn purge(filter: &str, keep: u64) -> Step {
    Step::Purge(Purge {
        filter: Some(filter.as_bytes().to_vec()),
        below_sequence: None,
        keep,
    })
}

/// Every kind a stream can be of.
fn kinds() -> Vec<StoreOptions> {
    let kind = |number: usize| StoreOptions {
        chained: number & 1 != 0,
        key: (number & 2 != 0).then(|| MasterKey::new(b"key")),
        compressed: number & 4 != 0,
        ..options(SEGMENT_BYTES)
    };
    (0..8).map(kind).collect()
}

/// A store with segments of every kind: sealed, rewritten, closed and open; with messages removed before and after their segment was sealed.
fn grown(disk: SimulatedDisk, options: &StoreOptions) -> History {
    let mut history = History::new(disk, options.clone());
    let steps = [
        append(12, 150),
        remove(3, true),
        Step::Maintenance,
        append(9, 200),
        remove(1, false),
        purge("c", 1),
        Step::Maintenance,
        append(14, 120),
        group(4, 90),
        Step::Maintenance,
        remove(9, false),
        remove(12, true),
        append(7, 100),
        Step::Commit,
        append(13, 150),
        remove(22, false),
        Step::Commit,
    ];
    history.run(&steps).expect("nothing fails here");
    history
}

/// Files of one folder.
fn files(disk: &SimulatedDisk, folder: &str) -> BTreeMap<PathBuf, Vec<u8>> {
    let all = disk.files().into_iter();
    all.filter(|(path, _)| path.starts_with(folder)).collect()
}

fn findings(disk: &SimulatedDisk, folder: &str) -> Vec<Finding> {
    let report = check(disk, Path::new(folder), &mut |_, _| Ok(())).unwrap();
    let found = report.findings.into_iter();
    found.map(|found| found.finding).collect()
}

fn fork(history: &History, last_sequence: u64) -> History {
    let forked = history.store().fork(Path::new(FORK), last_sequence);
    forked.unwrap_or_else(|error| panic!("{last_sequence}: {error}"));
    history.forked(FORK, last_sequence)
}

#[test]
fn a_fork_holds_what_the_store_held_up_to_any_message_and_goes_on_behind_it() {
    for (number, options) in kinds().iter().enumerate() {
        let whole = grown(SimulatedDisk::default(), options);
        let last = whole.promise.last_acknowledged;
        // Each of them for some kind, and for every kind in a long run.
        let step = if is_long() { 1 } else { 4 };
        for last_sequence in (number as u64 % step..last + 3).step_by(step as usize) {
            let name = format!("kind {number} up to {last_sequence}");
            let history = grown(SimulatedDisk::default(), options);
            let before = contents(history.store());
            let mut forked = fork(&history, last_sequence);

            assert_eq!(findings(&history.disk, FORK), [], "{name}");
            forked.reopen().unwrap();
            let store = forked.store();

            assert_eq!(store.take_findings(), [], "{name}");
            assert_eq!(contents(store), forked.promise.kept, "{name}");
            let counts = store.messages().counts();
            assert_eq!(counts.messages, forked.promise.kept.len() as u64, "{name}");
            assert_eq!(counts.last_sequence, last_sequence, "{name}");
            let bytes = forked.promise.kept.values().map(|kept| {
                let headers = kept.headers.len() + if kept.headers.is_empty() { 0 } else { 4 };
                (30 + kept.subject.len() + headers + kept.payload.len()) as u64
            });
            assert_eq!(counts.bytes, bytes.sum::<u64>(), "{name}");
            assert_eq!(contents(history.store()), before, "{name}");
            forked
                .run(&[append(1, 30), group(2, 50), Step::Commit])
                .unwrap();
            let given = forked.promise.kept.range(last_sequence + 1..);
            let given: Vec<u64> = given.map(|(sequence, _)| *sequence).collect();
            assert_eq!(given, [1, 2, 3].map(|one| last_sequence + one), "{name}");
            forked
                .run(&[Step::Maintenance, Step::Close, Step::Kill])
                .unwrap();
            assert_eq!(forked.store().take_findings(), [], "{name}");
            assert_eq!(contents(forked.store()), forked.promise.kept, "{name}");
            if options.chained {
                assert_eq!(forked.store().verify().unwrap().broken, None, "{name}");
                assert_eq!(history.store().verify().unwrap().broken, None, "{name}");
            }
            if options.key.is_none() {
                assert_eq!(findings(&history.disk, FORK), [], "{name}");
                assert_eq!(findings(&history.disk, FOLDER), [], "{name}");
            }
        }
    }
}

/// Times are searched by, so those of messages the fork does not have must not matter in it.
#[test]
fn a_fork_knows_only_the_times_of_its_own_messages() {
    let history = grown(SimulatedDisk::default(), &options(SEGMENT_BYTES));
    let forked = fork(&history, 20);
    let store = open_in(&history.disk, FORK, &options(SEGMENT_BYTES)).unwrap();
    let message = NewMessage {
        subject: b"x",
        time_ns: 21,
        ..NewMessage::default()
    };

    store.append(&message).unwrap();
    store.commit().unwrap();

    let last = forked.promise.kept.values().next_back().unwrap().time_ns;
    assert!(last <= 20);
    assert_eq!(store.messages().read(21).unwrap().unwrap().time_ns, 21);
    assert_eq!(store.messages().sequence_at(21).unwrap(), 21);
}

#[test]
fn sealed_segments_are_shared_and_nothing_else_is() {
    let history = grown(SimulatedDisk::default(), &options(SEGMENT_BYTES));
    let before = files(&history.disk, FOLDER);

    fork(&history, history.promise.last_acknowledged);

    let forked = files(&history.disk, FORK);
    let is_sealed = |bytes: &[u8]| bytes.len() % 4096 != 0;
    let mut shared = 0;
    for (path, bytes) in &before {
        let name = path.file_name().unwrap();
        let other = forked.get(&Path::new(FORK).join(name));
        let links = history
            .disk
            .open(
                path,
                jetlake_engine::storage::disk::file_system::OpenMode::Read,
            )
            .unwrap()
            .links()
            .unwrap();
        if path.extension().is_some_and(|end| end == "segment") && is_sealed(bytes) {
            assert_eq!((other, links), (Some(bytes), 2), "{}", path.display());
            shared += 1;
        } else {
            assert_eq!(links, 1, "{}", path.display());
            assert_ne!(other, Some(bytes), "{}", path.display());
        }
    }
    assert!(shared >= 2);
}

/// What one of the two does to messages that both have.
fn rough() -> Vec<Step> {
    vec![
        remove(0, true),
        remove(4, true),
        Step::Maintenance,
        remove(7, true),
        Step::Close,
        append(9, 130),
        remove(2, false),
        Step::Maintenance,
        remove(5, true),
        Step::Kill,
        purge("a.*", 1),
        Step::Maintenance,
        remove(1, true),
        append(3, 300),
        Step::Maintenance,
        Step::Close,
    ]
}

#[test]
fn whatever_one_of_the_two_does_the_files_of_the_other_stay_as_they_are() {
    for (number, options) in kinds().iter().enumerate() {
        for original in [true, false] {
            let mut history = grown(SimulatedDisk::default(), options);
            let mut forked = fork(&history, 40);
            forked.reopen().unwrap();
            let other = if original { FORK } else { FOLDER };
            let before = files(&history.disk, other);
            let acting = if original { &mut history } else { &mut forked };

            for step in rough() {
                acting.run(std::slice::from_ref(&step)).unwrap();
                let now = files(&acting.disk, other);
                assert_eq!(now, before, "kind {number} {original} {step:?}");
            }

            if !options.compressed {
                // A dictionary may have learned from a message before it was erased.
                acting.promise.check_erased(&acting.disk).unwrap();
            }
            for one in [&history, &forked] {
                let checked = one.promise.check(&one.disk, options);
                let found = checked.unwrap_or_else(|what| panic!("kind {number}: {what}"));
                assert_eq!(found, [], "kind {number} {original}");
            }
        }
    }
}

#[test]
fn what_is_damaged_in_a_shared_file_is_healed_in_a_copy() {
    // Both copies of the header, and the footer.
    for position in [Some(8), Some(2056), None] {
        let history = grown(SimulatedDisk::default(), &options(SEGMENT_BYTES));
        let forked = fork(&history, 40);
        let path = Path::new(FOLDER).join("0000000001.segment");
        history.disk.tamper(&path, |bytes| {
            let at = position.unwrap_or(bytes.len() - 50);
            bytes[at] ^= 1;
        });
        let before = files(&history.disk, FOLDER);

        let store = open_in(&history.disk, FORK, &history.options).unwrap();

        assert_eq!(store.take_findings().len(), 1);
        assert_eq!(contents(&store), forked.promise.kept);
        assert_eq!(files(&history.disk, FOLDER), before);
        assert_eq!(findings(&history.disk, FORK), []);
        drop(store);
        let store = open_in(&history.disk, FOLDER, &history.options).unwrap();
        assert_eq!(store.take_findings().len(), 1);
        assert_eq!(contents(&store), history.promise.kept);
    }
}

#[test]
fn a_fork_of_a_fork_shares_with_both_and_disturbs_neither() {
    let mut history = grown(SimulatedDisk::default(), &options(SEGMENT_BYTES));
    let mut forked = fork(&history, 45);
    forked
        .run(&[append(20, 100), remove(3, true), Step::Maintenance])
        .unwrap();
    forked.run(&[Step::Commit]).unwrap();
    let store = forked.store();
    store.fork(Path::new("/third"), 50).unwrap();
    let mut third = forked.forked("/third", 50);

    history.run(&rough()).unwrap();
    third.run(&rough()).unwrap();
    forked.run(&rough()).unwrap();

    for one in [&history, &forked, &third] {
        one.promise.check_erased(&one.disk).unwrap();
        let checked = one.promise.check(&one.disk, &one.options);
        assert_eq!(checked.unwrap(), []);
    }
}

#[test]
fn a_folder_that_has_a_store_is_refused_and_left_alone() {
    let history = grown(SimulatedDisk::default(), &options(SEGMENT_BYTES));
    fork(&history, 30);
    let before = history.disk.files();

    for folder in [FORK, FOLDER] {
        let refused = history.store().fork(Path::new(folder), 40);
        assert!(
            matches!(refused, Err(StoreError::NotForked(_))),
            "{refused:?}"
        );
    }

    assert_eq!(history.disk.files(), before);
    let far = history.store().fork(Path::new("/other"), u64::MAX);
    assert!(matches!(far, Err(StoreError::NotForked(_))));
}

#[test]
fn a_disk_without_room_makes_no_fork_and_costs_the_store_nothing() {
    let whole = grown(SimulatedDisk::default(), &options(SEGMENT_BYTES));
    let first = whole.disk.calls();
    fork(&whole, 30);
    for at_call in first..whole.disk.calls() {
        let mut history = grown(SimulatedDisk::default(), &options(SEGMENT_BYTES));
        history.disk.plan(Some(FaultPlan {
            at_call,
            fault: Fault::NoSpace,
            lasting: false,
        }));

        let refused = history.store().fork(Path::new(FORK), 30);

        history.disk.plan(None);
        assert!(
            matches!(refused, Err(StoreError::Full)),
            "{at_call}: {refused:?}"
        );
        assert_eq!(files(&history.disk, FORK).len(), 0, "{at_call}");
        history
            .run(&[append(2, 10), remove(1, true), Step::Maintenance])
            .unwrap();
        let forked = fork(&history, 30);
        for one in [&history, &forked] {
            let checked = one.promise.check(&one.disk, &one.options);
            assert_eq!(checked.unwrap(), [], "{at_call}");
        }
    }
}

#[test]
fn a_store_in_memory_is_forked_too() {
    let memory = jetlake_engine::storage::disk::memory::MemoryFileSystem::default();
    let memory: Arc<dyn FileSystem> = Arc::new(memory);
    let options = StoreOptions {
        counting: Counting::File,
        ..options(SEGMENT_BYTES)
    };
    let open = |folder: &str| Store::open(Arc::clone(&memory), Path::new(folder), options.clone());
    let store = open("/m").unwrap();
    for number in 0..40 {
        let message = NewMessage {
            subject: b"a",
            payload: &[number; 100],
            ..NewMessage::default()
        };
        store.append(&message).unwrap();
    }
    store.commit().unwrap();
    store.maintain().unwrap();

    store.fork(Path::new("/f"), 25).unwrap();
    store.remove(3, true).unwrap();
    store.commit().unwrap();

    let forked = open("/f").unwrap();
    assert_eq!(forked.messages().counts().messages, 25);
    assert_eq!(
        forked.messages().read(3).unwrap().unwrap().payload(),
        [2; 100]
    );
    assert_eq!(store.messages().read(3).unwrap(), None);
}

#[path = "support/fork_power_cuts.rs"]
mod fork_power_cuts;

use fork_power_cuts::is_long;
