//! Forks on a disk that loses its power, while they are made and while both are used.

use super::*;

const CHANCES_DEFAULT: u64 = 3;

fn chances() -> u64 {
    let text = std::env::var("JETLAKE_FORK_STATES").ok();
    text.and_then(|text| text.parse().ok())
        .unwrap_or(CHANCES_DEFAULT)
}

pub fn is_long() -> bool {
    chances() > CHANCES_DEFAULT
}

/// How what is pending may survive a power cut at some call.
fn survivals(disk: &SimulatedDisk, at_call: u64) -> Vec<Survival> {
    let mut survivals = vec![Survival::Nothing, Survival::Everything];
    if is_long() {
        survivals.extend((0..disk.pending_count()).map(Survival::AllBut));
    }
    let seeds = (0..chances()).map(|chance| at_call * 10_000 + chance);
    survivals.extend(seeds.map(|seed| Survival::Random { seed }));
    survivals
}

fn cut_at(disk: &SimulatedDisk, at_call: u64) {
    disk.plan(Some(FaultPlan {
        at_call,
        fault: Fault::PowerCut,
        lasting: true,
    }));
}

/// A power cut leaves nothing but traces of what was under way.
fn check_both(disk: &SimulatedDisk, both: [&History; 2], name: &str) {
    for one in both {
        let checked = one.promise.check(disk, &one.options);
        let found =
            checked.unwrap_or_else(|what| panic!("{name}, {}: {what}", one.promise.folder()));
        let expected = |finding: &Finding| {
            let tail = matches!(finding, Finding::TailCut { .. } | Finding::GroupCut { .. });
            tail || matches!(finding, Finding::FooterRebuilt { .. })
        };
        assert!(found.iter().all(expected), "{name}: {found:?}");
    }
}

#[test]
fn a_power_cut_anywhere_while_forking_leaves_a_whole_fork_or_none() {
    let kinds = kinds();
    let (mut states, mut whole_forks) = (0, 0);
    // Plain, and with everything at once; what is wanted ends in a sealed segment, or reaches beyond the last message.
    for (options, last_sequence) in [(&kinds[0], 30), (&kinds[7], 30), (&kinds[0], 200)] {
        let whole = grown(SimulatedDisk::default(), options);
        let first = whole.disk.calls();
        fork(&whole, last_sequence);
        for at_call in first..whole.disk.calls() {
            let history = grown(SimulatedDisk::default(), options);
            let expected = history.forked(FORK, last_sequence);
            cut_at(&history.disk, at_call);
            history
                .store()
                .fork(Path::new(FORK), last_sequence)
                .unwrap_err();
            for survival in survivals(&history.disk, at_call) {
                let name = format!("up to {last_sequence}, call {at_call}, {survival:?}");
                let disk = history.disk.after_power_cut(survival);
                let names = files(&disk, FORK).into_keys();
                let is_anchor = |path: &Path| {
                    let name = path.file_name().and_then(|name| name.to_str());
                    matches!(name, Some("anchor.1" | "anchor.2"))
                };
                let is_whole = names.into_iter().any(|path| is_anchor(&path));
                if !is_whole {
                    let store = open_in(&disk, FOLDER, options).unwrap();
                    let again = store.fork(Path::new(FORK), last_sequence);
                    again.unwrap_or_else(|error| panic!("{name}: {error}"));
                }
                check_both(&disk, [&history, &expected], &name);
                states += 1;
                whole_forks += u64::from(is_whole);
            }
        }
    }
    println!("{states} states, {whole_forks} with a whole fork");
    assert!(whole_forks > 0);
}

/// Steps by chance, for one of the two or the other.
fn steps_by_chance(seed: u64) -> Vec<(usize, Step)> {
    let mut random = Random::seeded(seed);
    let mut step = || {
        let nth = random.below(40);
        let step = match random.below(14) {
            0..3 => append(random.between(1, 5), random.between(1, 300)),
            3 => group(random.between(2, 4), random.between(1, 300)),
            4..8 => remove(nth, random.percent(70)),
            8 => purge(random.pick(&["a.*", "b.>", "c"]), random.below(4) as u64),
            9..12 => Step::Maintenance,
            12 => Step::Close,
            _ => Step::Kill,
        };
        (random.below(2), step)
    };
    (0..30).map(|_| step()).collect()
}

#[test]
fn a_power_cut_anywhere_while_both_are_used_breaks_the_word_of_neither() {
    let kinds = kinds();
    let limited = StoreOptions {
        limits: Limits {
            per_subject_max: Some(9),
            ..Limits::default()
        },
        ..kinds[0].clone()
    };
    let (mut cuts, mut states) = (0, 0);
    for (seed, options) in [&kinds[0], &kinds[3], &limited, &kinds[6]]
        .into_iter()
        .take(if is_long() { 4 } else { 2 })
        .enumerate()
    {
        let mut steps: Vec<(usize, Step)> = rough().into_iter().map(|step| (0, step)).collect();
        if seed > 0 {
            steps = steps_by_chance(seed as u64);
        }
        let both = |at_call: Option<u64>| {
            let history = grown(SimulatedDisk::default(), options);
            let mut forked = fork(&history, 40);
            forked.reopen().unwrap();
            let mut both = [history, forked];
            let first = both[0].disk.calls();
            if let Some(at_call) = at_call {
                cut_at(&both[0].disk, at_call);
            }
            let done = steps
                .iter()
                .try_for_each(|(who, step)| both[*who].run(std::slice::from_ref(step)));
            assert_eq!(done.is_err(), at_call.is_some(), "{done:?}");
            (both, first)
        };
        let (whole, first) = both(None);
        for at_call in first..whole[0].disk.calls() {
            let (both, _) = both(Some(at_call));
            cuts += 1;
            for survival in survivals(&both[0].disk, at_call) {
                let name = format!("seed {seed}, call {at_call}, {survival:?}");
                let disk = both[0].disk.after_power_cut(survival);
                check_both(&disk, [&both[0], &both[1]], &name);
                let certain = matches!(survival, Survival::Nothing | Survival::Everything);
                if certain && !options.compressed {
                    for one in &both {
                        one.promise.check_erased(&disk).unwrap();
                    }
                }
                states += 1;
            }
        }
    }
    println!("{cuts} power cuts, {states} states");
}

#[test]
fn a_fork_on_a_real_disk_shares_its_files_and_lives_on_without_the_store() {
    use std::os::unix::fs::MetadataExt;

    let folder =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("fork-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    let (one, other) = (folder.join("one"), folder.join("other"));
    let options = StoreOptions {
        segment_bytes: 64 * 1024,
        key: Some(MasterKey::new(b"key")),
        chained: true,
        ..StoreOptions::default()
    };
    let open =
        |folder: &Path| Store::open(Arc::new(RealFileSystem), folder, options.clone()).unwrap();
    let store = open(&one);
    let message = |number: u64| format!("message {number} {}", "x".repeat(200)).into_bytes();
    for number in 1..=2000 {
        let new = NewMessage {
            subject: b"a",
            payload: &message(number),
            ..NewMessage::default()
        };
        store.append(&new).unwrap();
    }
    store.commit().unwrap();
    while store.maintain().unwrap() {}
    store.remove(10, true).unwrap();
    store.commit().unwrap();

    store.fork(&other, 1500).unwrap();

    let links = |folder: &Path| -> Vec<u64> {
        let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
        let segments =
            entries.filter(|entry| entry.path().extension().is_some_and(|end| end == "segment"));
        segments
            .map(|entry| entry.metadata().unwrap().nlink())
            .collect()
    };
    let shared = links(&other).iter().filter(|links| **links == 2).count();
    assert!(
        shared >= 5 && links(&other).len() == shared + 2,
        "{:?}",
        links(&other)
    );
    let forked = open(&other);
    assert_eq!(forked.take_findings(), []);
    assert_eq!(forked.messages().counts().messages, 1499);
    store.remove(20, true).unwrap();
    store.commit().unwrap();
    forked.remove(30, true).unwrap();
    forked.commit().unwrap();
    assert_eq!(
        forked
            .append(&NewMessage {
                subject: b"b",
                ..NewMessage::default()
            })
            .unwrap()
            .sequence,
        1501
    );
    forked.commit().unwrap();
    drop(store);
    let store = open(&one);
    assert_eq!(store.messages().read(20).unwrap(), None);
    assert_eq!(
        store.messages().read(30).unwrap().unwrap().payload(),
        message(30)
    );
    assert_eq!(store.verify().unwrap().broken, None);
    drop(store);
    std::fs::remove_dir_all(&one).unwrap();
    drop(forked);
    let forked = open(&other);
    assert_eq!(forked.take_findings(), []);
    for number in 1..=1500 {
        let found = forked.messages().read(number).unwrap();
        match number {
            10 | 30 => assert_eq!(found, None),
            _ => assert_eq!(found.unwrap().payload(), message(number)),
        }
    }
    assert_eq!(forked.verify().unwrap().broken, None);
    assert_eq!(forked.messages().counts().last_sequence, 1501);
    drop(forked);
    std::fs::remove_dir_all(&folder).unwrap();
}
