//! The check of a store: no damage escapes it, it changes nothing, and it says of each kind of damage what it means.

use std::ops::Range;
use std::path::Path;

use jetlake_engine::storage::check::{check, Severity};
use jetlake_engine::storage::disk::simulated::{Fault, FaultPlan, SimulatedDisk, Survival};
use jetlake_engine::storage::format::encryption::MasterKey;
use jetlake_engine::storage::message::NewMessage;
use jetlake_engine::storage::store::StoreOptions;
use small_store::{
    append, checked, open, open_with, options, small_store, small_store_with, FOLDER, SUBJECTS,
};

#[path = "support/small_store.rs"]
#[allow(dead_code)]
mod small_store;

#[test]
fn a_whole_store_has_no_findings_and_is_counted() {
    for close in [true, false] {
        let disk = small_store(close);

        let report = checked(&disk);

        assert_eq!(report.findings, [], "closed: {close}");
        assert!(!report.opening_changes);
        assert_eq!(report.counts.segments, 3);
        let segments = disk.files().into_iter().take(3);
        let sealed = segments.map(|(_, bytes)| bytes.ends_with(&[0; 64]));
        assert!(sealed.eq([false, true, true]), "one has a footer");
        let state = open(&disk).messages().state();
        assert_eq!(report.counts.messages, state.messages);
        assert_eq!(report.counts.bytes, state.bytes);
        assert_eq!(report.counts.subjects, Some(state.subjects));
        assert_eq!(report.counts.small_files, 2);
    }
}

#[test]
fn the_check_changes_nothing_even_where_there_is_much_to_heal() {
    let disk = small_store(false);
    for (path, bytes) in disk.files() {
        disk.tamper(&path, |all| all[bytes.len() / 2] ^= 1);
        disk.tamper(&path, |all| all[9] ^= 1);
    }
    let (calls, files) = (disk.calls(), disk.files());

    let report = checked(&disk);

    assert!(!report.findings.is_empty());
    assert_eq!(disk.calls(), calls);
    assert_eq!(disk.files(), files);
}

/// Removes most of the zeros after the last record, because each of their bits costs a check.
fn shorten(disk: &SimulatedDisk) {
    for (path, bytes) in disk.files() {
        let used = bytes.iter().rposition(|byte| *byte != 0).unwrap_or(0) + 1;
        let kept = (used + 128).next_multiple_of(4096);
        disk.tamper(&path, |all| all.truncate(kept));
    }
    assert_eq!(checked(disk).findings, []);
}

/// Flips the bits of every byte of every file that `bits` names, one at a time.
fn flip(disk: &SimulatedDisk, bits: impl Fn(usize) -> Range<usize> + Sync) {
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    let bits = &bits;
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let disk = disk.copy();
            scope.spawn(move || {
                for (path, bytes) in disk.files() {
                    for at in (thread..bytes.len()).step_by(threads) {
                        for bit in bits(at) {
                            disk.tamper(&path, |all| all[at] ^= 1 << bit);
                            let report = checked(&disk);
                            assert!(!report.findings.is_empty(), "{path:?} {at} bit {bit}");
                            disk.tamper(&path, |all| all[at] ^= 1 << bit);
                        }
                    }
                }
            });
        }
    });
}

#[test]
fn every_flipped_bit_leads_to_a_finding() {
    let disk = small_store(false);
    shorten(&disk);
    flip(&disk, |_| 0..8);
}

#[test]
fn a_flipped_bit_in_any_byte_of_an_encrypted_chain_leads_to_a_finding_without_its_key() {
    let options = StoreOptions {
        key: Some(MasterKey::new(b"secret")),
        chained: true,
        ..options()
    };
    let disk = small_store_with(true, options);
    shorten(&disk);
    flip(&disk, |at| at % 8..at % 8 + 1);
}

#[test]
fn a_flipped_bit_far_behind_the_last_record_leads_to_a_finding() {
    let disk = small_store(false);
    for (path, bytes) in disk.files() {
        let used = bytes.iter().rposition(|byte| *byte != 0).unwrap_or(0) + 1;
        for at in (used..bytes.len()).step_by(37) {
            let damaged = disk.copy();
            damaged.tamper(&path, |all| all[at] ^= 1 << (at % 8));
            assert!(!checked(&damaged).findings.is_empty(), "{path:?} byte {at}");
        }
    }
}

#[test]
fn a_missing_segment_is_a_loss_and_a_missing_copy_is_not() {
    let disk = small_store(true);
    for (path, _) in disk.files() {
        let without = disk.copy();
        without.lose(&path);

        let report = checked(&without);

        let is_segment = path.extension().is_some_and(|end| end == "segment");
        assert_eq!(
            report.severities.loss > 0,
            is_segment,
            "{path:?}: {report:?}"
        );
        assert!(!report.findings.is_empty());
    }
}

#[test]
fn both_copies_of_a_small_file_are_a_loss_but_for_the_anchor() {
    let disk = small_store(true);
    for (name, kind, severity) in [
        ("definition", "both_lost", Severity::Loss),
        ("anchor", "anchor_lost", Severity::Healed),
    ] {
        let damaged = disk.copy();
        for copy in 1..=2 {
            let path = format!("{FOLDER}/{name}.{copy}");
            damaged.tamper(Path::new(&path), |all| all[0] ^= 1);
        }

        let report = checked(&damaged);

        assert_eq!(report.findings.len(), 1);
        assert_eq!(report.findings[0].kind, kind);
        assert_eq!(report.findings[0].severity, severity);
    }
}

#[test]
fn a_message_that_was_to_be_erased_and_is_not_is_named_until_the_store_is_opened() {
    let disk = small_store(false);
    let store = open(&disk);
    store.remove(30, true).unwrap();
    // The removal is written and synced; the next write would be the erasure.
    let at_call = disk.calls() + 2;
    disk.plan(Some(FaultPlan {
        at_call,
        fault: Fault::PowerCut,
        lasting: true,
    }));
    store.commit().unwrap_err();
    let after = disk.after_power_cut(Survival::Nothing);

    let report = checked(&after);

    let found = &report.findings[0];
    assert_eq!((found.kind, found.first_sequence), ("unerased", Some(30)));
    assert_eq!(found.severity, Severity::Healed);
    drop(open(&after));
    assert_eq!(checked(&after).findings, []);
}

#[test]
fn what_an_interrupted_write_leaves_is_no_loss() {
    let disk = small_store(false);
    let store = open(&disk);
    append(&store, 35);
    let at_call = disk.calls() + 1;
    disk.plan(Some(FaultPlan {
        at_call,
        fault: Fault::PowerCut,
        lasting: true,
    }));
    store.commit().unwrap_err();
    for bytes in 1..60 {
        let after = disk.after_power_cut(Survival::Torn { whole: 0, bytes });

        let report = checked(&after);

        assert_eq!(report.severities.loss, 0, "{bytes}: {report:?}");
    }
}

#[test]
fn a_later_format_is_refused_with_its_number() {
    let disk = small_store(true);
    let path = Path::new("/stream/0000000001.segment");
    disk.tamper(path, |all| {
        for copy in [0, 2048] {
            all[copy + 8] = 9;
            let sum = xxhash_rust::xxh3::xxh3_64(&all[copy..copy + 56]);
            all[copy + 56..copy + 64].copy_from_slice(&sum.to_le_bytes());
        }
    });

    let error = check(&disk, Path::new(FOLDER), &mut |_, _| Ok(())).unwrap_err();

    assert!(error.to_string().contains("format 9"), "{error}");
}

/// Messages that look alike, and enough of them to be compressed.
fn compressed_store(key: Option<MasterKey>) -> SimulatedDisk {
    let disk = SimulatedDisk::default();
    let options = StoreOptions {
        segment_bytes: 600 * 1024,
        compressed: true,
        key,
        ..options()
    };
    let store = open_with(&disk, options);
    for number in 0..9000 {
        let payload = format!("{{\"order\": {number}, \"customer\": \"c{}\", \"state\": \"new\", \"currency\": \"EUR\"}}", number % 7);
        let message = NewMessage {
            subject: SUBJECTS[number % 3].as_bytes(),
            payload: payload.as_bytes(),
            time_ns: number as i64,
            ..NewMessage::default()
        };
        store.append(&message).unwrap();
    }
    store.commit().unwrap();
    while store.maintain().unwrap() {}
    store.close().unwrap();
    disk
}

#[test]
fn a_damaged_dictionary_is_harmless_and_both_copies_are_a_loss_of_all_that_need_them() {
    for key in [None, Some(MasterKey::new(b"secret"))] {
        let disk = compressed_store(key);
        assert_eq!(checked(&disk).findings, []);
        let path = Path::new("/stream/0000000001.segment");
        let bytes = disk
            .files()
            .into_iter()
            .find(|(name, _)| name == path)
            .unwrap()
            .1;
        let length = u32::from_le_bytes(bytes[4096..4100].try_into().unwrap()) as usize;
        let second = 4096 + length.next_multiple_of(4);
        assert_eq!(bytes[4096 + 12] & 0x0f, 5, "a dictionary stands in front");

        disk.tamper(path, |all| all[4096 + 50] ^= 1);
        let one = checked(&disk);
        disk.tamper(path, |all| all[second + 50] ^= 1);
        let both = checked(&disk);

        assert_eq!((one.findings.len(), one.findings[0].kind), (1, "damaged"));
        assert_eq!(one.severities.harmless, 1);
        assert!(both.severities.loss > 0);
    }
}

#[test]
fn a_message_that_somebody_changed_with_its_checksum_breaks_the_chain() {
    let options = StoreOptions {
        chained: true,
        ..options()
    };
    let disk = small_store_with(true, options);
    assert_eq!(checked(&disk).findings, []);

    let path = Path::new("/stream/0000000001.segment");
    disk.tamper(path, |all| forge(all));

    let report = checked(&disk);

    assert_eq!(report.findings[0].kind, "chain_broken");
    assert_eq!(report.findings[0].first_sequence, Some(1));
}

/// Changes the last byte of the first record, and its checksum with it.
fn forge(file: &mut [u8]) {
    const POSITION: usize = 4096;
    let number = |from: usize| u64::from_le_bytes(file[from..from + 8].try_into().unwrap());
    let (identity, base_sequence) = (number(16), number(40));
    let length = u32::from_le_bytes(file[POSITION..POSITION + 4].try_into().unwrap()) as usize;
    let seed = (identity ^ base_sequence.wrapping_mul(0x9e37_79b9_7f4a_7c15))
        .wrapping_add((POSITION as u64).wrapping_mul(0xc2b2_ae3d_27d4_eb4f))
        ^ (length as u64).rotate_left(32);
    file[POSITION + length - 1] ^= 1;
    let checked = &file[POSITION + 12..POSITION + length];
    let checksum = xxhash_rust::xxh3::xxh3_64_with_seed(checked, seed);
    file[POSITION + 4..POSITION + 12].copy_from_slice(&checksum.to_le_bytes());
}
