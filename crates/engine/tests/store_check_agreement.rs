//! The check and opening agree: where no loss is reported opening loses nothing, and what a store goes through by itself is never a loss.

use std::path::PathBuf;

use jetlake_engine::common::random::Random;
use jetlake_engine::storage::disk::simulated::{Fault, FaultPlan, SimulatedDisk, Survival};
use jetlake_engine::storage::format::encryption::MasterKey;
use jetlake_engine::storage::message::Purge;
use jetlake_engine::storage::store::StoreOptions;
use small_store::{
    append, append_group, checked, messages, open, open_with, options, small_store, SUBJECTS,
};

#[path = "support/small_store.rs"]
#[allow(dead_code)]
mod small_store;

/// One bit of every byte that is not blank, and the first of each blank stretch.
#[test]
fn where_no_loss_is_reported_opening_loses_nothing() {
    for close in [true, false] {
        let disk = small_store(close);
        let whole = messages(&open(&disk.copy()));
        for (path, bytes) in disk.files() {
            for at in 0..bytes.len() {
                if at > 0 && bytes[at] == 0 && bytes[at - 1] == 0 {
                    continue;
                }
                let damaged = disk.copy();
                damaged.tamper(&path, |all| all[at] ^= 1 << (at % 8));
                let report = checked(&damaged);
                let found = messages(&open(&damaged));

                let name = path.display();
                let torn = report.findings.iter().any(|one| one.kind == "tail_cut");
                if report.severities.loss == 0 && !torn {
                    assert_eq!(found, whole, "{name} byte {at} closed {close}: {report:?}");
                } else if report.severities.loss > 0 {
                    assert_ne!(found, whole, "{name} byte {at} closed {close}: {report:?}");
                }
                // A store that was closed in good order has no doubtful end.
                assert!(!(close && torn && found != whole && report.severities.loss == 0));
            }
        }
    }
}

/// Sectors blanked, exchanged or filled with noise, files cut off or replaced by others: whatever a bad disk or a careless hand does.
fn ruin(disk: &SimulatedDisk, kinds: usize, random: &mut Random) {
    let files = disk.files();
    let (path, bytes) = &files[random.below(files.len())];
    let sector = |random: &mut Random| random.below(bytes.len().div_ceil(512)) * 512;
    let (one, other) = (sector(random), sector(random));
    let end = |start: usize| (start + 512).min(bytes.len());
    match random.below(kinds) {
        0 => disk.tamper(path, |all| all[one..end(one)].fill(0)),
        1 => disk.tamper(path, |all| {
            for byte in &mut all[one..end(one)] {
                *byte = random.below(256) as u8;
            }
        }),
        2 => disk.tamper(path, |all| {
            let taken = all[one..end(one)].to_vec();
            let count = taken.len().min(end(other) - other);
            all[other..other + count].copy_from_slice(&taken[..count]);
        }),
        3 => disk.tamper(path, |all| all.truncate(random.below(bytes.len()))),
        _ => {
            let (_, replacement) = &files[random.below(files.len())];
            disk.tamper(path, |all| all.clone_from(replacement));
        }
    }
}

/// All files without the zeros at their ends, of which some may be missing.
fn written(disk: &SimulatedDisk) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = disk.files();
    for (_, bytes) in &mut files {
        let used = bytes
            .iter()
            .rposition(|byte| *byte != 0)
            .map_or(0, |last| last + 1);
        bytes.truncate(used);
    }
    files
}

#[test]
fn whatever_is_ruined_is_found_and_what_is_not_called_a_loss_is_none() {
    for seed in 0..2000 {
        let mut random = Random::seeded(seed);
        let close = seed % 2 == 0;
        let disk = small_store(close);
        let whole = messages(&open(&disk.copy()));
        let before = written(&disk);
        let count = 1 + random.below(2);
        // Several files that stand in for each other can hide that one is missing.
        let kinds = if count == 1 { 5 } else { 4 };
        for _ in 0..count {
            ruin(&disk, kinds, &mut random);
        }

        let report = checked(&disk);
        let after = written(&disk);
        let changed = after != before;
        let is_last = |(path, _): &(PathBuf, Vec<u8>)| path.ends_with("0000000003.segment");
        let last = before.iter().position(is_last).unwrap();
        let end_is_blank = after[last].1.len() < before[last].1.len();
        let found = messages(&open(&disk));

        // The end of a store in use is doubtful: what is blank there, or torn, may never have been confirmed.
        let torn = report.findings.iter().any(|one| one.kind == "tail_cut");
        let doubtful = !close && (torn || end_is_blank);
        assert!(
            !changed || !report.findings.is_empty() || doubtful,
            "seed {seed}: {report:?}"
        );
        // What was removed may come back where both records of its removal and the footer are gone.
        if report.severities.loss == 0 && !doubtful {
            for (sequence, content) in &whole {
                let found = found.get(sequence);
                assert_eq!(found, Some(content), "seed {seed}: {report:?}");
            }
        }
    }
}

/// Appends, removals, purges, maintenance with compaction, closing and being killed, as chance has it: all of it leaves whole stores.
#[test]
fn whatever_a_store_goes_through_the_check_agrees_with_it() {
    for seed in 0..40 {
        let mut random = Random::seeded(seed);
        let disk = SimulatedDisk::default();
        let options = StoreOptions {
            chained: seed % 2 == 1,
            key: (seed % 4 >= 2).then(|| MasterKey::new(b"secret")),
            ..options()
        };
        let mut store = open_with(&disk, options.clone());
        let mut number = 0;
        for step in 0..150 {
            match random.below(12) {
                0..=4 => {
                    number += 1;
                    append(&store, number);
                }
                5 => {
                    let count = 1 + random.below(5) as u64;
                    append_group(&store, number + 1, count);
                    number += count;
                }
                6 => {
                    let erase = random.below(2) == 0;
                    store
                        .remove(random.below(number as usize + 1) as u64, erase)
                        .unwrap();
                }
                7 => {
                    let purge = Purge {
                        filter: Some(SUBJECTS[random.below(3)].into()),
                        below_sequence: None,
                        keep: random.below(4) as u64,
                    };
                    store.purge(&purge).unwrap();
                }
                8 => {
                    store.maintain().unwrap();
                }
                9 => {
                    if random.below(4) == 0 {
                        store.close().unwrap();
                    }
                    store = open_with(&disk, options.clone());
                    number = store.messages().state().last_sequence;
                }
                _ => {
                    store.commit().unwrap();
                }
            }
            let report = checked(&disk);
            assert_eq!(report.findings, [], "seed {seed} step {step}");
            let state = store.messages().state();
            assert!(
                report.counts.messages >= state.messages,
                "seed {seed} step {step}"
            );
        }
    }
}

/// The power goes at any call, and any part of what was not synced is gone: that is not a loss, and after opening no
/// finding is left.
#[test]
fn a_power_cut_is_no_loss_and_opening_leaves_a_whole_store() {
    for seed in 0..300 {
        let mut random = Random::seeded(seed);
        let disk = SimulatedDisk::default();
        let store = open(&disk);
        disk.plan(Some(FaultPlan {
            at_call: disk.calls() + random.below(400) as u64,
            fault: Fault::PowerCut,
            lasting: true,
        }));
        for number in 1..=80 {
            match random.below(4) {
                0 => append_group(&store, number, 1 + random.below(6) as u64),
                _ => append(&store, number),
            }
            let removed = random.below(number as usize) as u64;
            let erase = random.below(2) == 0;
            let failed = (random.below(4) == 0 && store.remove(removed, erase).is_err())
                || (random.below(3) == 0 && store.commit().is_err())
                || (random.below(8) == 0 && store.maintain().is_err());
            if failed {
                break;
            }
        }
        let after = disk.after_power_cut(Survival::Random { seed });

        let found = checked(&after);
        drop(open(&after));
        let opened = checked(&after);

        assert_eq!(found.severities.loss, 0, "seed {seed}: {found:?}");
        assert_eq!(opened.findings, [], "seed {seed}, before: {found:?}");
        assert!(!opened.opening_changes, "seed {seed}: {opened:?}");
    }
}
