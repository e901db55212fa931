//! Damage to a store that is not in use: flipped bits, cut and exchanged blocks, files that are gone or in the wrong place.
//!
//! Whatever happens, the store must open and serve nothing but what was written. What is damaged must be noticed: by opening, by reading, or
//! by the checker. By default one bit of each byte is flipped, and all of them where it matters most; `JETLAKE_DAMAGE_ALL` flips all.

#[allow(dead_code)]
#[path = "support/random.rs"]
mod random;
#[allow(dead_code)]
#[path = "support/store_damage.rs"]
mod store_damage;
#[allow(dead_code)]
#[path = "support/store_history.rs"]
mod store_history;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jetlake_engine::storage::disk::simulated::SimulatedDisk;
use jetlake_engine::storage::finding::Finding;
use random::Random;
use store_damage::{gone, is_segment, Fixture, Seen, BLOCK_BYTES, RECORDS_START};
use store_history::Step;

fn everything() -> bool {
    std::env::var("JETLAKE_DAMAGE_ALL").is_ok()
}

/// How often something was done, and how often it was noticed.
#[derive(Default)]
struct Tally {
    done: u64,
    noticed: u64,
    noticed_in_use: u64,
    /// A message could not be served.
    cost: u64,
}

impl Tally {
    fn count(&mut self, seen: &Seen) {
        self.done += 1;
        self.noticed += u64::from(seen.noticed());
        self.noticed_in_use += u64::from(seen.noticed_in_use());
        self.cost += u64::from(!seen.missing.is_empty());
    }
}

fn fixtures() -> [Fixture; 2] {
    [Fixture::new(true), Fixture::new(false)]
}

/// Whether a byte of a file is of no meaning: between the copies of a header and after the last record there are only
/// zeros.
fn is_filling(path: &Path, bytes: &[u8], position: usize) -> bool {
    let header_copy = position < 64 || (2048..2112).contains(&position);
    let behind = bytes[position..].iter().all(|byte| *byte == 0);
    is_segment(path) && ((position < RECORDS_START && !header_copy) || behind)
}

#[test]
fn a_flipped_bit_is_noticed_and_costs_one_message_at_most() {
    let mut random = Random::seeded(11);
    for fixture in fixtures() {
        let mut tally = Tally::default();
        let mut unnoticed: BTreeMap<PathBuf, Vec<usize>> = BTreeMap::new();
        for (path, bytes) in fixture.files() {
            for position in 0..bytes.len() {
                let small = !is_segment(&path);
                let bits: Vec<usize> = match everything() || small || position < 64 {
                    true => (0..8).collect(),
                    false => vec![random.below(8)],
                };
                // Zeros after zeros after zeros are all alike.
                let filling = is_filling(&path, &bytes, position);
                if filling && !everything() && position % 64 != 0 {
                    continue;
                }
                for bit in bits {
                    let disk = fixture.disk.copy();
                    disk.tamper(&path, |bytes| bytes[position] ^= 1 << bit);
                    let name = || {
                        format!(
                            "{} {} byte {position} bit {bit}",
                            fixture.name(),
                            path.display()
                        )
                    };
                    let seen = fixture
                        .look(&disk)
                        .unwrap_or_else(|what| panic!("{}: {what}", name()));
                    tally.count(&seen);
                    assert!(
                        seen.missing.len() <= 1,
                        "{}: {:?} {:?}",
                        name(),
                        seen.missing,
                        seen.findings
                    );
                    assert!(seen.next_sequence > fixture.last_acknowledged, "{}", name());
                    assert!(seen.missing.is_empty() || seen.noticed(), "{}", name());
                    if !seen.noticed() {
                        unnoticed.entry(path.clone()).or_default().push(position);
                    }
                }
            }
        }
        report(&fixture, "flipped bits", &tally);
        for (path, positions) in &unnoticed {
            println!("  not noticed: {} {:?}", path.display(), ranges(positions));
        }
        assert!(unnoticed.is_empty(), "not everything was noticed");
    }
}

/// A group that was the last thing a killed store has written: it could be taken for one that was never finished.
#[test]
fn a_flipped_bit_in_the_last_group_costs_one_message_at_most() {
    let mut random = Random::seeded(12);
    // Among these are messages with whole sectors of zeros.
    for payload_bytes in [20, 700, 1900] {
        let group = Step::Group {
            count: 4,
            payload_bytes,
        };
        let fixture = Fixture::after(false, &[group, Step::Commit]);
        let mut tally = Tally::default();
        let (path, bytes) = fixture.segments().pop().expect("there is a last segment");
        let end = bytes.iter().rposition(|byte| *byte != 0);
        for position in RECORDS_START..=end.expect("it has records") {
            let bits = if everything() { 8 } else { 1 };
            for bit in 0..bits {
                let bit = if everything() { bit } else { random.below(8) };
                let disk = fixture.disk.copy();
                disk.tamper(&path, |bytes| bytes[position] ^= 1 << bit);
                let name = format!("{payload_bytes}: byte {position} bit {bit}");

                let seen = fixture.look(&disk);

                let seen = seen.unwrap_or_else(|what| panic!("{name}: {what}"));
                tally.count(&seen);
                assert!(seen.noticed(), "{name}");
                assert!(
                    seen.missing.len() <= 1 && seen.next_sequence > fixture.last_acknowledged,
                    "{name}: {:?} {:?}",
                    seen.missing,
                    seen.findings
                );
                let cut = |finding: &Finding| matches!(finding, Finding::GroupCut { .. });
                assert!(!seen.findings.iter().any(cut), "{name}");
                let again = fixture.opens_again(&disk, &seen);
                again.unwrap_or_else(|what| panic!("{name}: {what}; {:?}", seen.findings));
            }
        }
        report(&fixture, "flipped bits around the last group", &tally);
    }
}

/// Neighbouring positions as ranges.
fn ranges(positions: &[usize]) -> Vec<(usize, usize)> {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for position in positions {
        match ranges.last_mut() {
            Some(last) if *position <= last.1 + 64 => last.1 = *position,
            _ => ranges.push((*position, *position)),
        }
    }
    ranges
}

fn report(fixture: &Fixture, what: &str, tally: &Tally) {
    println!(
        "{}, {what}: {} done, {} noticed, {} of them by opening and reading; {} cost messages",
        fixture.name(),
        tally.done,
        tally.noticed,
        tally.noticed_in_use,
        tally.cost
    );
}

#[test]
fn a_tail_cut_anywhere_leaves_an_exact_beginning_and_is_reported_once() {
    for fixture in fixtures() {
        let mut tally = Tally::default();
        let (path, bytes) = fixture.segments().pop().expect("there is a last segment");
        let records_end = bytes
            .iter()
            .rposition(|byte| *byte != 0)
            .expect("it has records")
            + 1;
        for length in 0..bytes.len() {
            let disk = fixture.disk.copy();
            disk.tamper(&path, |bytes| bytes.truncate(length));
            let name = || format!("{} cut at {length}", fixture.name());

            let seen = fixture
                .look(&disk)
                .unwrap_or_else(|what| panic!("{}: {what}", name()));

            tally.count(&seen);
            let first_missing = seen.missing.first().copied();
            let behind = fixture.expected.range(first_missing.unwrap_or(u64::MAX)..);
            let behind: Vec<u64> = behind.map(|(sequence, _)| *sequence).collect();
            assert_eq!(seen.missing, behind, "{}: not a beginning", name());
            assert!(
                seen.next_sequence > fixture.last_acknowledged,
                "{}: {} {:?}",
                name(),
                seen.next_sequence,
                seen.findings
            );
            let cuts = seen
                .findings
                .iter()
                .filter(|finding| matches!(finding, Finding::TailCut { .. }));
            let cuts = cuts.count();
            assert!(cuts <= 1, "{}: {:?}", name(), seen.findings);
            if length >= 64 && length < records_end {
                assert_eq!(cuts, 1, "{}: {:?}", name(), seen.findings);
            }
            if length < records_end + 60 {
                assert!(seen.noticed(), "{}", name());
            }
            assert!(seen.missing.is_empty() || seen.noticed(), "{}", name());
            fixture
                .look_again(&disk, &seen)
                .unwrap_or_else(|what| panic!("{}: {what}; {:?}", name(), seen.findings));
        }
        report(&fixture, "cut tails", &tally);
    }
}

/// What must be noticed of some damage.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Must {
    /// That it is there.
    Notice,
    /// Nothing: the end of a segment that was in use is as it was before it was written.
    Nothing,
}

/// Damages a copy of the disk, opens it, and counts what came of it.
fn try_damage(
    fixture: &Fixture,
    tally: &mut Tally,
    name: &str,
    must: Must,
    damage: impl FnOnce(&SimulatedDisk),
) -> Seen {
    let name = format!("{} store, {name}", fixture.name());
    let disk = fixture.disk.copy();
    damage(&disk);
    let seen = fixture.look(&disk);
    let seen = seen.unwrap_or_else(|what| panic!("{name}: {what}"));
    tally.count(&seen);
    let excused = must == Must::Nothing;
    assert!(seen.noticed() || excused, "{name}: {:?}", seen.missing);
    if must != Must::Nothing {
        assert!(seen.next_sequence > fixture.last_acknowledged, "{name}");
    }
    let again = fixture.opens_again(&disk, &seen);
    again.unwrap_or_else(|what| panic!("{name}: {what}"));
    seen
}

/// Whether a block holds the last records of a segment in use, which may as well never have been written.
fn is_last_in_use(fixture: &Fixture, path: &Path, number: usize) -> bool {
    let (last, bytes) = fixture.segments().pop().expect("there is one in use");
    let end = bytes.iter().rposition(|byte| *byte != 0);
    let end = end.expect("it has records");
    !fixture.closed && path == last && number == end / BLOCK_BYTES
}

fn block(bytes: &[u8], number: usize) -> &[u8] {
    let end = (number + 1) * BLOCK_BYTES;
    &bytes[number * BLOCK_BYTES..end.min(bytes.len())]
}

fn put_block(bytes: &mut [u8], number: usize, block: &[u8]) {
    let start = number * BLOCK_BYTES;
    let end = (start + block.len()).min(bytes.len());
    bytes[start..end].copy_from_slice(&block[..end - start]);
}

/// Every block of every segment.
fn blocks(fixture: &Fixture) -> Vec<(PathBuf, usize, Vec<u8>)> {
    let mut all = Vec::new();
    for (path, bytes) in fixture.segments() {
        for number in 0..bytes.len().div_ceil(BLOCK_BYTES) {
            all.push((path.clone(), number, block(&bytes, number).to_vec()));
        }
    }
    all
}

#[test]
fn a_block_of_zeros_is_noticed() {
    for fixture in fixtures() {
        let mut tally = Tally::default();
        for (path, number, old) in blocks(&fixture) {
            if old.iter().all(|byte| *byte == 0) {
                continue;
            }
            let name = format!("{} block {number} zeroed", path.display());
            let must = match is_last_in_use(&fixture, &path, number) {
                true => Must::Nothing,
                false => Must::Notice,
            };
            let seen = try_damage(&fixture, &mut tally, &name, must, |disk| {
                disk.tamper(&path, |bytes| put_block(bytes, number, &vec![0; old.len()]));
            });
            let only = gone(&fixture, &path);
            assert!(seen.missing.iter().all(|one| only.contains(one)), "{name}");
        }
        report(&fixture, "blocks zeroed", &tally);
    }
}

#[test]
fn a_block_in_the_place_of_another_is_noticed() {
    for fixture in fixtures() {
        let mut duplicated = Tally::default();
        let mut swapped = Tally::default();
        let all = blocks(&fixture);
        for (path, number, old) in &all {
            for (other_path, other_number, other) in &all {
                let length = old.len().min(other.len());
                if old[..length] == other[..length] {
                    continue;
                }
                let name = format!(
                    "{} block {number} from {} block {other_number}",
                    path.display(),
                    other_path.display()
                );
                let unsure = is_last_in_use(&fixture, path, *number)
                    || is_last_in_use(&fixture, other_path, *other_number);
                let must = if unsure { Must::Nothing } else { Must::Notice };
                try_damage(&fixture, &mut duplicated, &name, must, |disk| {
                    disk.tamper(path, |bytes| put_block(bytes, *number, other));
                });
                try_damage(
                    &fixture,
                    &mut swapped,
                    &format!("{name} and back"),
                    must,
                    |disk| {
                        disk.tamper(path, |bytes| put_block(bytes, *number, other));
                        disk.tamper(other_path, |bytes| put_block(bytes, *other_number, old));
                    },
                );
            }
        }
        report(&fixture, "blocks duplicated", &duplicated);
        report(&fixture, "blocks swapped", &swapped);
    }
}

#[test]
fn a_block_put_back_to_an_older_state_is_noticed() {
    for fixture in fixtures() {
        let mut tally = Tally::default();
        for (path, number, now) in blocks(&fixture) {
            let mut tried: Vec<&[u8]> = Vec::new();
            for (moment, files) in fixture.before.iter().enumerate() {
                let Some(bytes) = files
                    .get(&path)
                    .filter(|bytes| bytes.len() > number * BLOCK_BYTES)
                else {
                    continue;
                };
                let old = block(bytes, number);
                let length = old.len().min(now.len());
                if old[..length] == now[..length] || tried.contains(&old) {
                    continue;
                }
                tried.push(old);
                let must = match is_last_in_use(&fixture, &path, number) {
                    true => Must::Nothing,
                    false => Must::Notice,
                };
                let name = format!("{} block {number} as after step {moment}", path.display());
                try_damage(&fixture, &mut tally, &name, must, |disk| {
                    disk.tamper(&path, |bytes| put_block(bytes, number, old));
                });
            }
        }
        report(&fixture, "blocks put back", &tally);
    }
}

#[test]
fn a_file_that_is_gone_is_named() {
    for fixture in fixtures() {
        let mut tally = Tally::default();
        for (path, _) in fixture.files() {
            let name = format!("{} gone", path.display());
            try_damage(&fixture, &mut tally, &name, Must::Notice, |disk| {
                disk.lose(&path)
            });
        }
        report(&fixture, "files gone", &tally);
    }
}

#[test]
fn swapped_and_foreign_files_are_named_and_the_rest_is_served() {
    for fixture in fixtures() {
        let mut tally = Tally::default();
        let segments = fixture.segments();
        for (path, bytes) in &segments {
            for (other_path, other) in &segments {
                if path >= other_path {
                    continue;
                }
                let disk = fixture.disk.copy();
                disk.tamper(path, |now| now.clone_from(other));
                disk.tamper(other_path, |now| now.clone_from(bytes));
                let seen = fixture.look(&disk).unwrap();
                tally.count(&seen);
                assert!(
                    seen.noticed() && seen.missing.is_empty(),
                    "{:?} {:?}",
                    seen.findings,
                    seen.missing
                );
            }
        }
        let stranger = Fixture::new(fixture.closed);
        for ((path, _), (_, bytes)) in segments.iter().zip(stranger.segments()) {
            let name = format!("{} of another stream", path.display());
            try_damage(&fixture, &mut tally, &name, Must::Notice, |disk| {
                disk.tamper(path, |now| *now = bytes.clone())
            });
        }
        report(&fixture, "files swapped or foreign", &tally);
    }
}

#[test]
fn the_anchor_of_another_stream_is_named_and_costs_no_message() {
    for fixture in fixtures() {
        let stranger = Fixture::new(fixture.closed);
        for copies in [&["anchor.1"][..], &["anchor.2"], &["anchor.1", "anchor.2"]] {
            let disk = fixture.disk.copy();
            for (path, bytes) in stranger.files() {
                if copies.iter().any(|copy| path.ends_with(copy)) {
                    disk.tamper(&path, |now| now.clone_from(&bytes));
                }
            }
            let seen = fixture.look(&disk).unwrap();
            assert!(
                seen.noticed() && seen.missing.is_empty(),
                "{copies:?} {:?} {:?}",
                seen.findings,
                seen.missing
            );
            fixture.look_again(&disk, &seen).unwrap();
        }
    }
}
