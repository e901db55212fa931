//! What became of everything that was staged: reported exactly, whichever thread committed it, and also when the disk
//! failed meanwhile.

#[allow(dead_code)]
#[path = "support/store_history.rs"]
mod store_history;

use std::collections::BTreeMap;

use jetlake_engine::storage::disk::simulated::{Fault, FaultPlan, SimulatedDisk};
use jetlake_engine::storage::message::{Committed, NewMessage, Purge, StoreError, Ticket};
use jetlake_engine::storage::store::{Store, StoreOptions};
use store_history::{open, options};

/// Small enough that maintenance always finds something to seal, to join or to free.
fn small() -> StoreOptions {
    options(4096 + 500)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Unknown,
    Stored,
    Refused,
}

/// A store with the fate of every message that was ever staged.
struct Publisher {
    store: Store,
    disk: SimulatedDisk,
    fates: BTreeMap<Ticket, (u64, Fate)>,
    made: u64,
    committed: Committed,
}

impl Publisher {
    fn new() -> Self {
        let disk = SimulatedDisk::default();
        Self {
            store: open(&disk, &small()).unwrap(),
            disk,
            fates: BTreeMap::new(),
            made: 0,
            committed: Committed::default(),
        }
    }

    /// Stages `count` messages, each with a number of its own as its payload.
    fn append(&mut self, count: u64) {
        let numbers: Vec<u64> = (self.made + 1..=self.made + count).collect();
        let payloads: Vec<Vec<u8>> = numbers.iter().map(|one| payload(*one)).collect();
        let messages: Vec<NewMessage<'_>> = payloads
            .iter()
            .map(|payload| NewMessage {
                subject: b"a",
                payload,
                ..NewMessage::default()
            })
            .collect();
        self.made += count;
        // A disk that has failed takes nothing.
        let Ok(appended) = self.store.append_all(&messages) else {
            return;
        };
        for (one, number) in appended.iter().zip(numbers) {
            let known = self.fates.insert(one.ticket, (number, Fate::Unknown));
            assert_eq!(known, None, "a ticket was given twice");
        }
    }

    /// Reads what became of what was staged.
    fn hear(&mut self, name: &str) {
        let last_ticket = self.fates.keys().next_back().copied().unwrap_or_default();
        let progress = self.store.take_progress();
        for refused in &progress.refused {
            assert!(refused.after >= self.committed.ticket, "{name}");
            assert!(refused.after <= refused.through, "{name}");
            assert!(refused.through >= last_ticket, "{name}: a part is refused");
            for (ticket, (_, fate)) in &mut self.fates {
                if refused.after < *ticket && *ticket <= refused.through {
                    assert_eq!(*fate, Fate::Unknown, "{name}: {ticket:?} was told before");
                    *fate = Fate::Refused;
                }
            }
        }
        assert!(progress.committed.ticket >= self.committed.ticket, "{name}");
        self.committed = progress.committed;
        for (ticket, (_, fate)) in &mut self.fates {
            if *fate == Fate::Unknown && *ticket <= self.committed.ticket {
                *fate = Fate::Stored;
            }
        }
    }

    /// What is stored is seen, what is refused is not, and what is unknown is only staged.
    fn check(&self, name: &str) {
        let mut seen = Vec::new();
        let read = self.store.messages().scan(0, |record| {
            seen.push(record.payload.to_vec());
            true
        });
        read.unwrap();
        let removed_below = self.made.saturating_sub(12);
        for (ticket, (number, fate)) in &self.fates {
            let there = seen.contains(&payload(*number));
            match fate {
                Fate::Stored => {
                    assert!(
                        there || *number <= removed_below,
                        "{name}: {ticket:?} is gone"
                    );
                }
                Fate::Refused | Fate::Unknown => assert!(!there, "{name}: {ticket:?}"),
            }
        }
    }

    fn fates(&self) -> [usize; 3] {
        let count = |wanted: Fate| self.fates.values().filter(|one| one.1 == wanted).count();
        [Fate::Stored, Fate::Refused, Fate::Unknown].map(count)
    }
}

fn payload(number: u64) -> Vec<u8> {
    format!("message {number:06} {}", "x".repeat(60)).into_bytes()
}

/// Appends and commits of all kinds; `maintenance` commits what others have staged, to remember removals.
fn run(publisher: &mut Publisher, name: &str) {
    for round in 0..12 {
        publisher.append(1 + round % 4);
        let _ = publisher.store.commit();
        publisher.hear(name);
        publisher.append(3);
        let keep = Purge {
            keep: 6,
            ..Purge::default()
        };
        if round % 3 == 1 {
            let _ = publisher.store.purge(&keep);
        }
        publisher.append(2);
        let _ = publisher.store.maintain();
        publisher.append(1);
        publisher.hear(name);
        publisher.check(name);
        let _ = publisher.store.commit();
        publisher.hear(name);
        publisher.check(name);
        assert_eq!(publisher.fates()[2], 0, "{name}: something was never told");
    }
}

#[test]
fn a_failed_commit_refuses_exactly_what_was_staged_behind_the_last_one() {
    let mut whole = Publisher::new();
    let opened = whole.disk.calls();
    run(&mut whole, "whole");
    assert_eq!(whole.fates()[1], 0);
    let mut refusals = 0;
    for at_call in opened..whole.disk.calls() {
        for (fault, lasting) in [
            (Fault::NoSpace, false),
            (Fault::NoSpace, true),
            (Fault::Broken, false),
        ] {
            let name = format!("{fault:?} at {at_call}, lasting {lasting}");
            let mut publisher = Publisher::new();
            publisher.disk.plan(Some(FaultPlan {
                at_call,
                fault,
                lasting,
            }));
            run(&mut publisher, &name);
            refusals += u64::from(publisher.fates()[1] > 0);
        }
    }
    println!("{refusals} runs with refusals");
    assert!(refusals > 100);
}

#[test]
fn what_upkeep_could_not_commit_is_refused_to_those_who_staged_it() {
    for fault in [Fault::NoSpace, Fault::Broken] {
        let mut publisher = Publisher::new();
        for _ in 0..30 {
            publisher.append(1);
        }
        publisher.store.commit().unwrap();
        publisher.store.purge(&Purge::default()).unwrap();
        publisher.store.commit().unwrap();
        publisher.hear("before");
        let committed = publisher.committed;
        publisher.append(2);
        publisher.disk.plan(Some(FaultPlan {
            at_call: publisher.disk.calls(),
            fault,
            lasting: false,
        }));

        let failed = publisher.store.maintain().unwrap_err();

        let progress = publisher.store.take_progress();
        assert_eq!(progress.committed, committed);
        let [refused] = &progress.refused[..] else {
            panic!("{:?}", progress.refused);
        };
        assert_eq!(refused.after, committed.ticket);
        // The two messages, and what maintenance had to remember.
        assert_eq!(refused.through, Ticket(committed.ticket.0 + 3));
        match fault {
            Fault::NoSpace => assert!(matches!(failed, StoreError::Full)),
            _ => assert!(matches!(refused.error, StoreError::ReadOnly(_))),
        }
        assert!(publisher.store.take_progress().refused.is_empty());
        assert_eq!(publisher.store.messages().counts().messages, 0);
    }
}

/// All messages gone, and the segment that is written to has none yet: there is nothing to free but what is before it.
#[test]
fn the_segment_that_is_written_to_is_not_freed_while_it_is_empty() {
    let disk = SimulatedDisk::default();
    let store = open(&disk, &small()).unwrap();
    let message = NewMessage {
        subject: b"a",
        ..NewMessage::default()
    };
    for _ in 0..5 {
        store.append(&message).unwrap();
    }
    store.commit().unwrap();
    store.purge(&Purge::default()).unwrap();
    store.close().unwrap();
    drop(store);
    // Another kind of stream goes on in a new segment.
    let chained = StoreOptions {
        chained: true,
        ..small()
    };
    let store = open(&disk, &chained).unwrap();

    assert!(store.maintain().unwrap());

    assert_eq!(store.append(&message).unwrap().sequence, 6);
    store.commit().unwrap();
    drop(store);
    let store = open(&disk, &chained).unwrap();
    assert_eq!(store.take_findings(), []);
    assert!(store.messages().read(6).unwrap().is_some());
}
