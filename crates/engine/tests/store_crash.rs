//! Power cuts at every call of scripted histories of a store, with every kind of survival of what was not synced.
//!
//! Each script runs once to count its changing calls, then once for each of them with the power cut there. The disk is then opened as it could
//! be found: nothing unsynced survived, everything, all but one write or name, a write torn at every 512 bytes (4 KB steps are among
//! them), and subsets by chance. Some of those openings are cut as well. Every time what was promised must hold (`support/store_history.rs`).
//!
//! `JETLAKE_CRASH_STATES` sets how many states there are at least, by adding more subsets by chance.

#[allow(dead_code)]
#[path = "support/random.rs"]
mod random;
#[allow(dead_code)]
#[path = "support/store_history.rs"]
mod store_history;

use std::collections::BTreeMap;

use jetlake_engine::storage::disk::simulated::{
    Fault, FaultPlan, SimulatedDisk, Survival, SECTOR_BYTES,
};
use jetlake_engine::storage::finding::Finding;
use jetlake_engine::storage::message::{Limits, Purge};
use jetlake_engine::storage::store::StoreOptions;
use random::Random;
use store_history::{contents, open, options, History, Promise, Step};

const STATES_DEFAULT: u64 = 9_000;

/// Seven scripts by hand and four by chance share the number.
const SCRIPTS: u64 = 11;

/// One state in this many is opened with a power cut at each call of that opening.
const CUT_AGAIN_EVERY: u64 = 50;

/// Small enough that a few messages fill it.
const SEGMENT_BYTES: u64 = 4096 + 1200;

fn states_min() -> u64 {
    let text = std::env::var("JETLAKE_CRASH_STATES").ok();
    text.and_then(|text| text.parse().ok())
        .unwrap_or(STATES_DEFAULT)
}

/// What was seen over all states of a script.
#[derive(Default)]
struct Tally {
    cuts: u64,
    states: u64,
    cut_again: u64,
    findings: BTreeMap<&'static str, u64>,
}

struct Script {
    name: &'static str,
    options: StoreOptions,
    steps: Vec<Step>,
}

impl Script {
    /// The history up to a power cut at this call, or all of it.
    fn until(&self, at_call: Option<u64>) -> History {
        let disk = SimulatedDisk::default();
        disk.plan(at_call.map(|at_call| FaultPlan {
            at_call,
            fault: Fault::PowerCut,
            lasting: true,
        }));
        let mut history = History::new(disk, self.options.clone());
        let done = history.run(&self.steps);
        assert_eq!(done.is_err(), at_call.is_some(), "{}: {done:?}", self.name);
        history
    }

    /// Cuts the power at every call.
    fn cut_everywhere(&self, states_min: u64) -> Tally {
        let calls = self.until(None).disk.calls();
        let chances = states_min / calls + 1;
        let mut tally = Tally::default();
        for at_call in 0..calls {
            let history = self.until(Some(at_call));
            tally.cuts += 1;
            self.kill(&history, at_call)
                .unwrap_or_else(|what| panic!("{}, killed at {at_call}: {what}", self.name));
            for survival in survivals(&history.disk, chances, at_call) {
                let name = || format!("{}, call {at_call}, {survival:?}", self.name);
                self.check(&history, survival, &mut tally)
                    .unwrap_or_else(|what| panic!("{}: {what}", name()));
            }
        }
        println!(
            "{}: {} power cuts, {} states, {} of them cut again; findings {:?}",
            self.name, tally.cuts, tally.states, tally.cut_again, tally.findings
        );
        tally
    }

    fn check(
        &self,
        history: &History,
        survival: Survival,
        tally: &mut Tally,
    ) -> Result<(), String> {
        let promise = &history.promise;
        if (tally.states - tally.cut_again) % CUT_AGAIN_EVERY == 0 {
            let found = history.disk.after_power_cut(survival);
            self.cut_opening(&found, promise, tally)?;
        }
        let found = history.disk.after_power_cut(survival);
        let findings = promise.check(&found, &self.options)?;
        if matches!(survival, Survival::Nothing | Survival::Everything) {
            promise.check_erased(&found)?;
        }
        tally.states += 1;
        for finding in &findings {
            expected_after_power_cut(finding)?;
            *tally.findings.entry(finding.kind()).or_default() += 1;
        }
        Ok(())
    }

    /// Only the process ends; the power goes later. What was shown in between must still be there then.
    fn kill(&self, history: &History, at_call: u64) -> Result<(), String> {
        let disk = history.disk.fork();
        let options = StoreOptions {
            limits: history.promise.limits,
            ..self.options.clone()
        };
        let store = open(&disk, &options).map_err(|error| format!("does not open: {error}"))?;
        let shown = contents(&store);
        history.promise.holds(&shown)?;
        let survivals = (0..3).map(|chance| Survival::Random {
            seed: at_call * 7 + chance,
        });
        for survival in survivals.chain([Survival::Nothing]) {
            let found = disk.after_power_cut(survival);
            let store = open(&found, &options).map_err(|error| format!("only once: {error}"))?;
            if contents(&store) != shown {
                return Err(format!("what was shown is gone after {survival:?}"));
            }
        }
        Ok(())
    }

    /// Cuts the power at every call that opening makes, too.
    fn cut_opening(
        &self,
        found: &SimulatedDisk,
        promise: &Promise,
        tally: &mut Tally,
    ) -> Result<(), String> {
        let whole = found.copy();
        drop(open(&whole, &self.options).map_err(|error| error.to_string())?);
        for at_call in 0..whole.calls() {
            let disk = found.copy();
            disk.plan(Some(FaultPlan {
                at_call,
                fault: Fault::PowerCut,
                lasting: true,
            }));
            if open(&disk, &self.options).is_ok() {
                return Err(format!("opens although call {at_call} of opening failed"));
            }
            for seed in 0..3 {
                let again = disk.after_power_cut(Survival::Random { seed });
                promise
                    .check(&again, &self.options)
                    .map_err(|what| format!("cut again at call {at_call}, {seed}: {what}"))?;
                tally.states += 1;
                tally.cut_again += 1;
            }
        }
        Ok(())
    }
}

/// A power cut leaves traces of what was under way; it must never look like damage.
fn expected_after_power_cut(finding: &Finding) -> Result<(), String> {
    match finding {
        Finding::TailCut { .. } | Finding::GroupCut { .. } | Finding::FooterRebuilt { .. } => {
            Ok(())
        }
        other => Err(format!("a power cut looks like damage: {other}")),
    }
}

/// Every way in which what is pending may survive.
fn survivals(disk: &SimulatedDisk, chances: u64, at_call: u64) -> Vec<Survival> {
    let pending = disk.pending_writes();
    let mut survivals = vec![Survival::Nothing];
    if pending.is_empty() {
        return survivals;
    }
    survivals.push(Survival::Everything);
    for (number, write) in pending.iter().enumerate() {
        survivals.push(Survival::AllBut(number));
        let Some((offset, length)) = write else {
            continue;
        };
        let first = SECTOR_BYTES - offset % SECTOR_BYTES;
        for bytes in (first..*length).step_by(SECTOR_BYTES) {
            survivals.push(Survival::Torn {
                whole: number,
                bytes,
            });
        }
    }
    let seeds = (0..chances).map(|chance| at_call * 100_000 + chance);
    survivals.extend(seeds.map(|seed| Survival::Random { seed }));
    survivals
}

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

fn expire(age: i64, spare_last: bool) -> Step {
    Step::Expire { age, spare_last }
}

fn remove(nth: usize, erase: bool) -> Step {
    Step::Remove { nth, erase }
}

fn purge(filter: Option<&str>, below_sequence: Option<u64>, keep: u64) -> Step {
    Step::Purge(Purge {
        filter: filter.map(|filter| filter.as_bytes().to_vec()),
        below_sequence,
        keep,
    })
}

fn limit(messages_max: Option<u64>, per_subject_max: Option<u64>) -> Limits {
    Limits {
        messages_max,
        per_subject_max,
        ..Limits::default()
    }
}

fn script(name: &'static str, steps: Vec<Step>) -> Script {
    Script {
        name,
        options: options(SEGMENT_BYTES),
        steps,
    }
}

fn cut(script: &Script) {
    let tally = script.cut_everywhere(states_min() / SCRIPTS);
    assert!(
        tally.states >= states_min() / SCRIPTS,
        "only {}",
        tally.states
    );
}

#[test]
fn appends_in_batches_over_several_segments_survive_a_power_cut_anywhere() {
    let mut steps = Vec::new();
    for batch in 0..12 {
        steps.extend([append(1 + batch % 5, 30 + 90 * batch), Step::Commit]);
    }
    // One batch that begins several segments, large messages, and a segment for each of them.
    steps.extend([append(20, 200), Step::Commit]);
    steps.extend([append(2, 5_000), append(3, 10), append(1, 20_000)]);
    steps.extend([Step::Commit, append(4, 700), Step::Commit, append(1, 1)]);
    cut(&script("appends", steps));
}

#[test]
fn groups_are_whole_or_absent_after_a_power_cut_anywhere() {
    let mut steps = vec![group(2, 20), Step::Commit, group(3, 100), append(1, 30)];
    // Several in one batch, over several segments, larger than a segment, and with sectors of zeros in them.
    steps.extend([group(2, 300), Step::Commit, append(2, 50), group(6, 180)]);
    steps.extend([group(5, 150), append(1, 10), group(2, 600), Step::Commit]);
    steps.extend([group(7, 1_100), Step::Commit, remove(6, true), group(3, 90)]);
    steps.extend([
        Step::Maintenance,
        group(4, 700),
        Step::Kill,
        group(2, 1_600),
    ]);
    steps.extend([Step::Close, group(9, 40), Step::Commit, group(3, 2_500)]);
    steps.extend([
        Step::Maintenance,
        group(2, 10),
        remove(9, true),
        group(2, 10),
    ]);
    steps.extend([Step::Commit, append(1, 1)]);
    let script = script("groups", steps);
    let tally = script.cut_everywhere(states_min() / SCRIPTS);
    assert!(tally.findings.contains_key("group_cut"));
}

#[test]
fn roll_ups_and_advances_survive_a_power_cut_anywhere() {
    let roll_up = |payload_bytes| Step::RollUp { payload_bytes };
    let advance = |by| Step::Advance { by };
    let mut steps = vec![append(7, 100), Step::Commit, roll_up(30), Step::Commit];
    steps.extend([append(4, 200), roll_up(90), append(3, 20), roll_up(10)]);
    steps.extend([
        Step::Commit,
        expire(-5, true),
        append(2, 60),
        Step::Maintenance,
    ]);
    steps.extend([advance(10), Step::Commit, append(3, 80), Step::Commit]);
    steps.extend([
        advance(500),
        append(4, 90),
        group(3, 300),
        Step::Maintenance,
    ]);
    steps.extend([Step::RollUpAll { payload_bytes: 70 }, append(2, 150)]);
    steps.extend([Step::Commit, expire(-30, true), group(5, 220), roll_up(5)]);
    steps.extend([
        Step::Maintenance,
        advance(1 << 33),
        append(1, 40),
        Step::Close,
    ]);
    steps.extend([append(9, 200), Step::Maintenance, advance(7), Step::Kill]);
    steps.extend([append(3, 10), advance(3), append(2, 10), Step::Close]);
    steps.extend([expire(-40, false), Step::Maintenance, append(1, 1)]);
    cut(&script("roll-ups and advances", steps));
}

#[test]
fn removals_survive_a_power_cut_anywhere() {
    let mut steps = Vec::new();
    for round in 0..4 {
        steps.extend([append(9, 120), remove(3, false), remove(5, true)]);
        steps.extend([append(2, 600), remove(round, true), Step::Commit]);
        steps.push(purge(Some("a.*"), None, 1));
        steps.extend([
            append(1, 50),
            Step::Commit,
            remove(2, true),
            Step::Maintenance,
        ]);
    }
    steps.extend([purge(None, Some(20), 0), append(3, 100), Step::Maintenance]);
    steps.extend([purge(None, None, 3), Step::Maintenance, append(5, 300)]);
    steps.extend([purge(None, None, 0), append(2, 20), Step::Maintenance]);
    steps.extend([purge(Some("c"), None, 0), Step::Maintenance, append(1, 1)]);
    cut(&script("removals", steps));
}

#[test]
fn limits_survive_a_power_cut_anywhere() {
    let mut steps = vec![append(10, 100), Step::Commit];
    steps.push(Step::Limit(limit(None, Some(4))));
    for _ in 0..6 {
        steps.extend([
            append(7, 150),
            Step::Commit,
            append(1, 400),
            Step::Maintenance,
        ]);
    }
    steps.push(Step::Limit(limit(Some(9), Some(2))));
    for _ in 0..4 {
        steps.extend([append(6, 220), Step::Maintenance, expire(5, false)]);
    }
    steps.extend([Step::Close, append(12, 80), Step::Maintenance, Step::Kill]);
    steps.extend([append(2, 80), Step::Maintenance, append(1, 1)]);
    cut(&script("limits", steps));
}

#[test]
fn closing_and_opening_and_definitions_survive_a_power_cut_anywhere() {
    let mut steps = vec![Step::Define];
    for round in 0..5 {
        steps.extend([append(3 + round, 250), Step::Define, Step::Close]);
        steps.extend([append(2, 90), Step::Kill, remove(round, round % 2 == 0)]);
        steps.extend([
            Step::Maintenance,
            Step::Close,
            Step::Kill,
            Step::Maintenance,
        ]);
    }
    steps.extend([
        purge(None, None, 0),
        Step::Close,
        Step::Maintenance,
        Step::Close,
    ]);
    steps.extend([append(1, 10), Step::Close, Step::Define, append(1, 1)]);
    cut(&script("lifecycle", steps));
}

#[test]
fn zeros_written_ahead_survive_a_power_cut_anywhere() {
    let mut steps = vec![append(3, 60), Step::Commit, append(30, 900), Step::Commit];
    steps.extend([remove(4, true), append(5, 4_000), Step::Maintenance]);
    steps.extend([append(1, 90_000), Step::Commit, append(2, 40), Step::Close]);
    steps.extend([append(40, 700), Step::Commit, append(1, 1)]);
    let options = StoreOptions {
        fill_ahead: true,
        ..options(64 * 1024)
    };
    let name = "filled ahead";
    cut(&Script {
        name,
        options,
        steps,
    });
}

/// Steps by chance: two hundred in a long run.
fn steps_by_chance(seed: u64) -> Vec<Step> {
    let count = if states_min() > STATES_DEFAULT {
        200
    } else {
        50
    };
    let mut random = Random::seeded(seed);
    let mut steps = Vec::new();
    while steps.len() < count {
        let nth = random.below(30);
        steps.push(match random.below(100) {
            0..30 => append(random.between(1, 6), random.between(1, 500)),
            30..40 => group(random.between(2, 7), random.between(1, 500)),
            40..42 => Step::RollUp { payload_bytes: nth },
            42 => Step::RollUpAll { payload_bytes: nth },
            43 => Step::Advance {
                by: random.below(300) as u64,
            },
            44..49 => append(random.between(1, 2), random.between(2_000, 9_000)),
            49..67 => Step::Commit,
            67..77 => remove(nth, random.percent(40)),
            77..80 => {
                let filter = random.pick(&["a.*", "b.>", "c", "*.one"]);
                purge(Some(filter), None, random.below(3) as u64)
            }
            80..82 => purge(None, None, random.below(12) as u64),
            82..85 => expire(nth as i64, random.percent(50)),
            85..94 => Step::Maintenance,
            94..96 => Step::Define,
            96..98 => Step::Close,
            _ => Step::Kill,
        });
    }
    steps
}

#[test]
fn histories_by_chance_survive_a_power_cut_anywhere() {
    for seed in 1..=3 {
        cut(&script("by chance", steps_by_chance(seed)));
    }
    let limits = limit(Some(25), Some(6));
    cut(&Script {
        options: StoreOptions {
            limits,
            ..options(SEGMENT_BYTES)
        },
        ..script("by chance, with limits", steps_by_chance(4))
    });
}
