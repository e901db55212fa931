//! The state of acknowledgements against a twin that is too simple to be wrong: sorted maps, plain loops, nothing kept that can be counted.
//!
//! Invariant of the tests: after every step each number that can be asked for is the same in both.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proptest::prelude::*;

use super::*;

#[path = "state_pair.rs"]
mod pair;

use pair::Pair;

/// How long a message waits for its acknowledgement.
const WAIT_NS: i64 = 100;

#[test]
fn the_first_that_wait_are_listed_with_how_often_they_were_delivered() {
    let mut state = AckState::new(AckPolicy::Explicit, 1);
    for sequence in 1..=3 {
        state.deliver(sequence, 10 * sequence as i64);
    }
    state.acknowledge(2);

    assert_eq!(state.first_delivered(9), [(1, 10, 1), (3, 30, 1)]);
    assert_eq!(state.first_delivered(1), [(1, 10, 1)]);
}

#[test]
fn a_first_delivery_that_reached_nobody_is_no_message_that_was_held_back() {
    let mut state = AckState::new(AckPolicy::Explicit, 1);
    for sequence in 1..=3 {
        state.deliver(sequence, 10);
    }
    state.undo(3);
    state.undo(2);

    assert_eq!((state.pending_count(), state.parked_count()), (3, 0));
    assert_eq!(state.next_again(None), Some(Again::Deliver { sequence: 2 }));
    state.drop_missing(|sequence| sequence != 2);
    assert_eq!((state.pending_count(), state.parked_count()), (2, 0));
    assert_eq!(state.next_again(None), Some(Again::Deliver { sequence: 3 }));
    assert_eq!(state.redeliver(3, 20), (4, 1));
    assert_eq!(state.redelivered_count(), 0);
}

#[test]
fn what_may_not_be_delivered_again_is_given_up_wherever_it_stands() {
    let mut state = AckState::new(AckPolicy::Explicit, 1);
    for sequence in 1..=4 {
        state.deliver(sequence, 10);
    }
    for sequence in [2, 4] {
        state.requeue(sequence);
        state.redeliver(sequence, 20);
    }
    for sequence in [1, 2, 3, 4] {
        state.requeue(sequence);
    }

    assert_eq!(state.next_exceeded(None), None);
    assert_eq!(state.next_exceeded(Some(2)), Some((2, 2)));
    assert_eq!(state.next_exceeded(Some(2)), Some((4, 2)));
    assert_eq!(state.next_exceeded(Some(2)), None);
    assert_eq!(
        state.next_again(Some(2)),
        Some(Again::Deliver { sequence: 1 })
    );
    // The limit is lowered.
    assert_eq!(state.next_exceeded(Some(1)), Some((1, 1)));
    assert_eq!(state.next_exceeded(Some(1)), Some((3, 1)));
    assert_eq!(state.next_again(Some(1)), None);
}

#[test]
fn the_floor_stays_below_what_waits_when_a_later_message_is_removed() {
    let mut state = AckState::new(AckPolicy::All, 1);
    for sequence in 1..=4 {
        state.deliver(sequence, 10);
    }
    // The first one again is delivery 5; with it the floor is at 5 deliveries, though 2 to 4 were counted as less.
    state.requeue(1);
    assert_eq!(state.next_again(None), Some(Again::Deliver { sequence: 1 }));
    assert_eq!(state.redeliver(1, 20), (5, 2));
    state.acknowledge_all(1, 5);
    assert_eq!(state.deliver(5, 30), 6);
    assert_eq!(state.deliver(6, 30), 7);

    state.drop_missing(|sequence| sequence != 5);

    assert_eq!(state.floor.stream, 1);
    assert!((2..=4).all(|sequence| state.needs(sequence)));
}

#[test]
fn an_acknowledgement_of_a_delivery_that_never_was_keeps_no_later_one_from_counting() {
    for number in [5, 1_000, u64::MAX] {
        let mut state = AckState::new(AckPolicy::All, 1);
        for sequence in 1..=4 {
            state.deliver(sequence, 10);
        }

        assert!(state.acknowledge_all(2, number));
        assert_eq!((state.floor.consumer, state.floor.stream), (2, 2));

        assert!(state.acknowledge_all(4, 4));
        assert_eq!(state.floor, state.delivered());
        state.deliver(5, 20);
        assert!(state.acknowledge_all(5, 5));
        assert_eq!(state.pending_count(), 0);
    }
}

#[test]
fn an_acknowledgement_from_before_a_reset_settles_what_it_names() {
    let mut state = AckState::new(AckPolicy::All, 1);
    for sequence in 1..=5 {
        state.deliver(sequence, 10);
    }
    state.reset(4);
    state.deliver(4, 20);
    state.deliver(5, 20);

    // It was the fourth delivery then, and is the first now.
    assert!(state.acknowledge_all(4, 4));

    assert_eq!((state.floor.consumer, state.floor.stream), (1, 4));
    assert!(state.acknowledge_all(5, 2));
    assert_eq!(state.pending_count(), 0);
}

#[derive(Debug, Clone, Copy)]
enum Step {
    /// The next message is delivered; `skipped` messages before it do not belong to this consumer.
    Deliver {
        skipped: u64,
    },
    /// The same, but the delivery reaches nobody.
    DeliverToNobody {
        skipped: u64,
    },
    /// The next message is held back, where messages of one key wait for each other.
    Park,
    /// The first that is held back is delivered, or its delivery reaches nobody.
    Unpark {
        is_undelivered: bool,
    },
    /// Other filters are set.
    Filter,
    /// The state is written down whole and read again, as by a restart.
    Restart,
    PassOver {
        count: u64,
    },
    /// Of any sequence: pending, settled, given up, or never delivered.
    Acknowledge {
        choice: u64,
    },
    /// Of anything that was delivered, before a reset, too, by the number of one of its deliveries or by one that is made up.
    AcknowledgeAll {
        choice: usize,
        made_up: Option<u64>,
    },
    Refuse {
        choice: u64,
    },
    RefuseForNow {
        choice: u64,
        delay_ns: i64,
    },
    Progress {
        choice: u64,
    },
    /// The first that is due again is delivered, or is given up.
    Again,
    /// The same, but the delivery reaches nobody.
    AgainToNobody,
    /// What may not be delivered again is given up.
    GiveUp,
    /// Time passes, and what has waited too long is looked for.
    Expire {
        passed_ns: i64,
    },
    /// Messages leave the stream: those whose sequence gives this rest.
    Remove {
        divisor: u64,
        rest: u64,
    },
    /// Everything below a sequence leaves the stream, delivered or not; but for what is open, if that was delivered under an earlier filter.
    Purge {
        choice: u64,
        keeps_open: bool,
    },
    /// The stream ends earlier than it did, as after a crash.
    Cut {
        choice: u64,
    },
    Reset {
        choice: u64,
    },
}

fn made_up() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![
        6 => Just(None),
        1 => (1u64..50).prop_map(Some),
        1 => Just(Some(u64::MAX)),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0u64..3).prop_map(|skipped| Step::Deliver { skipped }),
        2 => (0u64..3).prop_map(|skipped| Step::DeliverToNobody { skipped }),
        2 => Just(Step::Park),
        2 => any::<bool>().prop_map(|is_undelivered| Step::Unpark { is_undelivered }),
        1 => Just(Step::Filter),
        1 => Just(Step::Restart),
        1 => (1u64..4).prop_map(|count| Step::PassOver { count }),
        6 => any::<u64>().prop_map(|choice| Step::Acknowledge { choice }),
        2 => (any::<usize>(), made_up()).prop_map(|(choice, made_up)| Step::AcknowledgeAll { choice, made_up }),
        3 => any::<u64>().prop_map(|choice| Step::Refuse { choice }),
        1 => (any::<u64>(), 0i64..300).prop_map(|(choice, delay_ns)| Step::RefuseForNow { choice, delay_ns }),
        1 => any::<u64>().prop_map(|choice| Step::Progress { choice }),
        5 => Just(Step::Again),
        1 => Just(Step::AgainToNobody),
        1 => Just(Step::GiveUp),
        2 => (0i64..150).prop_map(|passed_ns| Step::Expire { passed_ns }),
        1 => (3u64..9, 0u64..9).prop_map(|(divisor, rest)| Step::Remove { divisor, rest }),
        1 => any::<(u64, bool)>().prop_map(|(choice, keeps_open)| Step::Purge { choice, keeps_open }),
        1 => any::<u64>().prop_map(|choice| Step::Cut { choice }),
        1 => any::<u64>().prop_map(|choice| Step::Reset { choice }),
    ]
}

/// A message that waits, as the twin knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Waits {
    first_delivery: u64,
    since_ns: i64,
    deliveries: u32,
    is_parked: bool,
}

#[derive(Debug, Clone)]
struct Twin {
    policy: AckPolicy,
    /// Messages of one key wait for each other, and are not delivered in the order of the stream.
    is_keyed: bool,
    next_stream: u64,
    next_consumer: u64,
    delivered_stream: u64,
    floor: (u64, u64),
    pending: BTreeMap<u64, Waits>,
    queue: VecDeque<u64>,
    given_up: BTreeMap<u64, u32>,
    /// Delivered and acknowledged since the last start, reset, or change of filters.
    acknowledged: BTreeSet<u64>,
    /// Where that was.
    known_from: u64,
    /// Not taken by the filters there are now.
    skipped: BTreeSet<u64>,
    /// Passed over by a start, a reset, or the filters there were before: nobody has read them, so far as is known.
    unread: BTreeSet<u64>,
}

impl Twin {
    fn new(policy: AckPolicy, is_keyed: bool, first: u64) -> Self {
        Self {
            policy,
            is_keyed,
            next_stream: first,
            next_consumer: 1,
            delivered_stream: first - 1,
            floor: (0, first - 1),
            pending: BTreeMap::new(),
            queue: VecDeque::new(),
            given_up: BTreeMap::new(),
            acknowledged: BTreeSet::new(),
            known_from: first,
            skipped: BTreeSet::new(),
            unread: (0..first).collect(),
        }
    }

    fn pass_over(&mut self, next: u64) {
        self.skipped.extend(self.next_stream..next);
        self.next_stream = self.next_stream.max(next);
    }

    fn park(&mut self, sequence: u64) {
        self.next_stream = sequence + 1;
        let waits = Waits {
            first_delivery: 0,
            since_ns: 0,
            deliveries: 0,
            is_parked: true,
        };
        self.pending.insert(sequence, waits);
    }

    fn first_parked(&self) -> Option<u64> {
        let mut parked = self.pending.iter().filter(|(_, waits)| waits.is_parked);
        parked.next().map(|(sequence, _)| *sequence)
    }

    fn parked_count(&self) -> usize {
        self.pending
            .values()
            .filter(|waits| waits.is_parked)
            .count()
    }

    /// The delivery of a message reached nobody, and it is the first to be delivered now.
    fn undo(&mut self, sequence: u64) {
        let waits = self.pending.get_mut(&sequence).expect("it waits");
        waits.deliveries -= 1;
        self.queue.push_front(sequence);
    }

    fn deliver(&mut self, sequence: u64, now_ns: i64) {
        let number = self.next_consumer;
        self.next_consumer += 1;
        self.pass_over(sequence);
        self.next_stream = sequence + 1;
        self.delivered_stream = self.delivered_stream.max(sequence);
        if self.policy == AckPolicy::None {
            self.floor = (number, sequence);
            return;
        }
        let waits = Waits {
            first_delivery: number,
            since_ns: now_ns,
            deliveries: 1,
            is_parked: false,
        };
        self.pending.insert(sequence, waits);
    }

    /// The floor moves only when a pending message is acknowledged: to what was delivered last when nothing is left, else to just below the next pending
    /// one, if the message was the first after the floor.
    fn acknowledge(&mut self, sequence: u64) {
        self.given_up.remove(&sequence);
        self.queue.retain(|queued| *queued != sequence);
        let Some(waits) = self.pending.remove(&sequence) else {
            return;
        };
        if self.policy == AckPolicy::Explicit {
            self.acknowledged.insert(sequence);
        }
        if self.pending.is_empty() {
            self.floor = (self.next_consumer - 1, self.delivered_stream);
        } else if self.is_keyed {
            let under_way = self.pending.len() - self.parked_count();
            let first = self.pending.keys().next().expect("something waits");
            self.floor = (self.next_consumer - 1 - under_way as u64, first - 1);
        } else if waits.first_delivery == self.floor.0 + 1
            && self.pending.range(..sequence).next().is_none()
        {
            let mut above = self.pending.range(sequence..);
            self.floor = match above.next() {
                Some((next, waits)) => (waits.first_delivery - 1, next - 1),
                None => (waits.first_delivery, sequence),
            };
        }
    }

    fn acknowledge_all(&mut self, sequence: u64, number: u64) {
        if number <= self.floor.0 || sequence <= self.floor.1 {
            return;
        }
        let settled = self.pending.range(..=sequence).map(|(each, _)| *each);
        self.acknowledged.extend(settled);
        self.pending.retain(|other, _| *other > sequence);
        // A number that no delivery has says nothing: the floor is just below what is pending.
        let below = self
            .pending
            .values()
            .next()
            .map(|waits| waits.first_delivery - 1);
        let deliveries = self.next_consumer - 1;
        let number = match number > deliveries {
            true => below.unwrap_or(deliveries).max(self.floor.0),
            false => number,
        };
        self.floor = (number, sequence);
        self.given_up.retain(|other, _| *other > sequence);
        self.queue.retain(|other| *other > sequence);
    }

    fn queue(&mut self, sequence: u64) {
        let waits = self.pending.get(&sequence);
        let is_delivered = waits.is_some_and(|waits| !waits.is_parked);
        if is_delivered && !self.queue.contains(&sequence) {
            self.queue.push_back(sequence);
        }
    }

    fn set_other_filters(&mut self) {
        self.unread.append(&mut self.skipped);
        self.acknowledged.clear();
        self.known_from = self.next_stream;
    }

    fn give_up(&mut self, sequence: u64) {
        let waits = self.pending.remove(&sequence).expect("it waits");
        self.queue.retain(|queued| *queued != sequence);
        self.given_up.insert(sequence, waits.deliveries);
    }

    fn needs(&self, sequence: u64) -> bool {
        if self.given_up.contains_key(&sequence) {
            return true;
        }
        let is_open = match self.policy {
            AckPolicy::Explicit => {
                sequence >= self.next_stream || self.pending.contains_key(&sequence)
            }
            _ => true,
        };
        is_open && sequence > self.floor.1
    }
}

fn policy() -> impl Strategy<Value = AckPolicy> {
    prop_oneof![
        6 => Just(AckPolicy::Explicit),
        3 => Just(AckPolicy::All),
        1 => Just(AckPolicy::None),
    ]
}

proptest! {
    #[test]
    fn it_is_what_a_simple_twin_is_after_every_step(
        policy in policy(),
        is_keyed in any::<bool>(),
        first in 1u64..20,
        deliveries_max in proptest::option::of(1u64..4),
        steps in proptest::collection::vec(step(), 1..200),
    ) {
        let mut pair = Pair::new(policy, is_keyed, first, deliveries_max);
        pair.compare()?;
        for step in steps {
            pair.apply(step)?;
            pair.compare()?;
        }
    }
}
