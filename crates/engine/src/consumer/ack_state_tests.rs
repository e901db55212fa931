//! The state of acknowledgements against a twin that is too simple to be wrong: sorted maps, plain loops, nothing kept that can be counted.
//!
//! Invariant of the tests: after every step each number that can be asked for is the same in both.

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;

use super::*;

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

#[derive(Debug, Clone, Copy)]
enum Step {
    /// The next message is delivered; so many before it are none of this consumer's.
    Deliver {
        skipped: u64,
    },
    PassOver {
        count: u64,
    },
    /// Of any sequence: pending, settled, given up, or never delivered.
    Acknowledge {
        choice: u64,
    },
    /// Of anything that was delivered, by the number of its last delivery.
    AcknowledgeAll {
        choice: usize,
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
    /// The first that is to be delivered again is, or is given up.
    Again,
    /// The same, but nobody hears it.
    AgainUnheard,
    /// Time passes, and what has waited too long is looked for.
    Expire {
        passed_ns: i64,
    },
    /// Messages leave the stream: those whose sequence gives this rest.
    Remove {
        divisor: u64,
        rest: u64,
    },
    /// Everything below a sequence leaves the stream, delivered or not.
    Purge {
        choice: u64,
    },
    /// The stream ends earlier than it did, as after a crash.
    Cut {
        choice: u64,
    },
    Reset {
        choice: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0u64..3).prop_map(|skipped| Step::Deliver { skipped }),
        1 => (1u64..4).prop_map(|count| Step::PassOver { count }),
        6 => any::<u64>().prop_map(|choice| Step::Acknowledge { choice }),
        2 => any::<usize>().prop_map(|choice| Step::AcknowledgeAll { choice }),
        3 => any::<u64>().prop_map(|choice| Step::Refuse { choice }),
        1 => (any::<u64>(), 0i64..300).prop_map(|(choice, delay_ns)| Step::RefuseForNow { choice, delay_ns }),
        1 => any::<u64>().prop_map(|choice| Step::Progress { choice }),
        5 => Just(Step::Again),
        1 => Just(Step::AgainUnheard),
        2 => (0i64..150).prop_map(|passed_ns| Step::Expire { passed_ns }),
        1 => (3u64..9, 0u64..9).prop_map(|(divisor, rest)| Step::Remove { divisor, rest }),
        1 => any::<u64>().prop_map(|choice| Step::Purge { choice }),
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
}

#[derive(Debug, Clone)]
struct Twin {
    policy: AckPolicy,
    next_stream: u64,
    next_consumer: u64,
    delivered_stream: u64,
    floor: (u64, u64),
    pending: BTreeMap<u64, Waits>,
    queue: VecDeque<u64>,
    given_up: BTreeMap<u64, u32>,
}

impl Twin {
    fn new(policy: AckPolicy, first: u64) -> Self {
        Self {
            policy,
            next_stream: first,
            next_consumer: 1,
            delivered_stream: first - 1,
            floor: (0, first - 1),
            pending: BTreeMap::new(),
            queue: VecDeque::new(),
            given_up: BTreeMap::new(),
        }
    }

    fn deliver(&mut self, sequence: u64, now_ns: i64) {
        let number = self.next_consumer;
        self.next_consumer += 1;
        self.next_stream = sequence + 1;
        self.delivered_stream = sequence;
        if self.policy == AckPolicy::None {
            self.floor = (number, sequence);
            return;
        }
        let waits = Waits {
            first_delivery: number,
            since_ns: now_ns,
            deliveries: 1,
        };
        self.pending.insert(sequence, waits);
    }

    /// The floor moves only when a pending message is acknowledged: to what was delivered last when nothing is left, else to just below the next pending
    /// one, if the message was the first that stood behind the floor.
    fn acknowledge(&mut self, sequence: u64) {
        self.given_up.remove(&sequence);
        self.queue.retain(|queued| *queued != sequence);
        let Some(waits) = self.pending.remove(&sequence) else {
            return;
        };
        if self.pending.is_empty() {
            self.floor = (self.next_consumer - 1, self.delivered_stream);
        } else if waits.first_delivery == self.floor.0 + 1 {
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
        self.floor = (number, sequence);
        self.pending.retain(|other, _| *other > sequence);
        self.given_up.retain(|other, _| *other > sequence);
        self.queue.retain(|other| *other > sequence);
    }

    fn queue(&mut self, sequence: u64) {
        if self.pending.contains_key(&sequence) && !self.queue.contains(&sequence) {
            self.queue.push_back(sequence);
        }
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

/// Both, and the clock they share.
struct Pair {
    state: AckState,
    twin: Twin,
    now_ns: i64,
    deliveries_max: Option<u64>,
    /// Sequence and number of every delivery.
    history: Vec<(u64, u64)>,
}

impl Pair {
    fn new(policy: AckPolicy, first: u64, deliveries_max: Option<u64>) -> Self {
        Self {
            state: AckState::new(policy, first),
            twin: Twin::new(policy, first),
            now_ns: 1_000,
            deliveries_max,
            history: Vec::new(),
        }
    }

    /// Any sequence there is, and two that were never delivered.
    fn any(&self, choice: u64) -> u64 {
        choice % (self.twin.next_stream + 2)
    }

    fn take(&mut self, step: Step) -> Result<(), TestCaseError> {
        self.now_ns += 1;
        let now_ns = self.now_ns;
        match step {
            Step::Deliver { skipped } => {
                let sequence = self.twin.next_stream + skipped;
                let number = self.state.deliver(sequence, now_ns);
                prop_assert_eq!(number, self.twin.next_consumer);
                self.twin.deliver(sequence, now_ns);
                self.history.push((sequence, number));
            }
            Step::PassOver { count } => {
                let next = self.twin.next_stream + count;
                self.state.pass_over(next);
                self.twin.next_stream = next;
            }
            Step::Acknowledge { choice } => {
                let sequence = self.any(choice);
                if self.twin.policy == AckPolicy::Explicit {
                    self.state.acknowledge(sequence);
                    self.twin.acknowledge(sequence);
                }
            }
            Step::AcknowledgeAll { choice } => {
                if self.twin.policy == AckPolicy::All && !self.history.is_empty() {
                    let (sequence, number) = self.history[choice % self.history.len()];
                    self.state.acknowledge_all(sequence, number);
                    self.twin.acknowledge_all(sequence, number);
                }
            }
            Step::Refuse { choice } => {
                let sequence = self.any(choice);
                self.state.requeue(sequence);
                self.twin.queue(sequence);
            }
            Step::RefuseForNow { choice, delay_ns } => {
                let sequence = self.any(choice);
                let since_ns = now_ns - WAIT_NS + delay_ns;
                self.state.unqueue(sequence);
                self.state.touch(sequence, since_ns);
                self.twin.queue.retain(|queued| *queued != sequence);
                self.wait_since(sequence, since_ns);
            }
            Step::Progress { choice } => {
                let sequence = self.any(choice);
                self.state.touch(sequence, now_ns);
                self.wait_since(sequence, now_ns);
            }
            Step::Again => self.deliver_again(false)?,
            Step::AgainUnheard => self.deliver_again(true)?,
            Step::Expire { passed_ns } => self.expire(passed_ns)?,
            Step::Remove { divisor, rest } => self.remove(divisor, rest),
            Step::Purge { choice } => {
                let first = self.any(choice).max(1);
                self.purge(first);
            }
            Step::Cut { choice } => {
                let last = self.any(choice);
                self.cut(last)?;
            }
            Step::Reset { choice } => {
                let sequence = self.any(choice).max(1);
                self.state.reset(sequence);
                self.twin = Twin::new(self.twin.policy, sequence);
                self.history.clear();
            }
        }
        Ok(())
    }

    fn wait_since(&mut self, sequence: u64, since_ns: i64) {
        if let Some(waits) = self.twin.pending.get_mut(&sequence) {
            waits.since_ns = since_ns;
        }
    }

    fn deliver_again(&mut self, is_unheard: bool) -> Result<(), TestCaseError> {
        let again = self.state.next_again(self.deliveries_max);
        let first = self.twin.queue.front().copied();
        let Some(sequence) = first else {
            prop_assert_eq!(again, None);
            return Ok(());
        };
        let deliveries = self.twin.pending[&sequence].deliveries;
        if self
            .deliveries_max
            .is_some_and(|most| u64::from(deliveries) >= most)
        {
            prop_assert_eq!(
                again,
                Some(Again::Exceeded {
                    sequence,
                    deliveries
                })
            );
            self.twin.give_up(sequence);
            return Ok(());
        }
        prop_assert_eq!(again, Some(Again::Deliver { sequence }));
        let redelivered = self.state.redeliver(sequence, self.now_ns);
        let number = self.twin.next_consumer;
        prop_assert_eq!(redelivered, (number, deliveries + 1));
        self.twin.queue.pop_front();
        self.twin.next_consumer += 1;
        let waits = self.twin.pending.get_mut(&sequence).expect("it waits");
        waits.deliveries += 1;
        waits.since_ns = self.now_ns;
        if is_unheard {
            // It is first again, and as if it had not been delivered.
            waits.deliveries -= 1;
            self.twin.queue.push_front(sequence);
            self.state.undo(sequence);
        } else {
            self.history.push((sequence, number));
        }
        Ok(())
    }

    fn expire(&mut self, passed_ns: i64) -> Result<(), TestCaseError> {
        self.now_ns += passed_ns;
        let mut lasts = Vec::new();
        let last = |sequence, deliveries| lasts.push((sequence, deliveries));
        let next_due = self
            .state
            .expire(self.now_ns, |_| WAIT_NS, self.deliveries_max, last);

        let mut twin_next_due = None;
        let mut twin_lasts = Vec::new();
        for (sequence, waits) in self.twin.pending.clone() {
            if self.twin.queue.contains(&sequence) {
                continue;
            }
            let due_ns = waits.since_ns + WAIT_NS;
            if due_ns > self.now_ns {
                twin_next_due = Some(twin_next_due.map_or(due_ns, |next: i64| next.min(due_ns)));
            } else if self.deliveries_max == Some(1) {
                twin_lasts.push((sequence, waits.deliveries));
                self.twin.give_up(sequence);
            } else {
                self.twin.queue(sequence);
            }
        }
        prop_assert_eq!(next_due, twin_next_due);
        prop_assert_eq!(lasts, twin_lasts);
        Ok(())
    }

    /// What is pending and gone counts as acknowledged.
    fn remove(&mut self, divisor: u64, rest: u64) {
        let is_there = |sequence: u64| sequence % divisor != rest;
        self.state.drop_missing(is_there);
        let pending = self.twin.pending.keys();
        let known: Vec<u64> = pending.chain(self.twin.given_up.keys()).copied().collect();
        for sequence in known {
            if !is_there(sequence) {
                self.twin.acknowledge(sequence);
            }
        }
    }

    /// Nothing below is waited for, and the floor is not below it.
    fn purge(&mut self, first: u64) {
        self.state.pass_over(first);
        self.state.drop_missing(|sequence| sequence >= first);
        self.state.settle_below(first);
        self.twin.next_stream = self.twin.next_stream.max(first);
        let pending = self.twin.pending.keys();
        let known: Vec<u64> = pending.chain(self.twin.given_up.keys()).copied().collect();
        for sequence in known.into_iter().filter(|sequence| *sequence < first) {
            self.twin.acknowledge(sequence);
        }
        if self.twin.pending.is_empty() {
            self.twin.delivered_stream = self.twin.delivered_stream.max(first - 1);
            self.twin.floor = (self.twin.next_consumer - 1, self.twin.delivered_stream);
        } else {
            self.twin.floor.1 = self.twin.floor.1.max(first - 1);
        }
    }

    /// What lay beyond the end is as if it had never been, but for the count of deliveries. How much of that the floor covers is left open.
    fn cut(&mut self, last: u64) -> Result<(), TestCaseError> {
        let before = self.state.floor;
        self.state.cut(last);
        let twin = &mut self.twin;
        if twin.next_consumer == 1 || twin.next_stream <= last + 1 {
            prop_assert_eq!(self.state.floor, before);
            return Ok(());
        }
        twin.pending.retain(|sequence, _| *sequence <= last);
        twin.given_up.retain(|sequence, _| *sequence <= last);
        twin.queue.retain(|sequence| *sequence <= last);
        twin.next_stream = last + 1;
        twin.delivered_stream = twin.delivered_stream.min(last);
        let floor = self.state.floor;
        prop_assert!(floor.stream <= last && floor.consumer < twin.next_consumer);
        twin.floor = (floor.consumer, floor.stream);
        self.history.retain(|(sequence, _)| *sequence <= last);
        Ok(())
    }

    fn compare(&self) -> Result<(), TestCaseError> {
        let (state, twin) = (&self.state, &self.twin);
        prop_assert_eq!(state.next_stream, twin.next_stream);
        let delivered = state.delivered();
        prop_assert_eq!(delivered.consumer, twin.next_consumer - 1);
        prop_assert_eq!(delivered.stream, twin.delivered_stream);
        prop_assert_eq!((state.floor.consumer, state.floor.stream), twin.floor);
        prop_assert_eq!(state.pending_count(), twin.pending.len());
        prop_assert_eq!(state.queued_count(), twin.queue.len());
        let twice = twin.pending.values().filter(|waits| waits.deliveries > 1);
        let redelivered = twice.count() + twin.given_up.len();
        prop_assert_eq!(state.redelivered_count(), redelivered);
        for sequence in 0..twin.next_stream + 2 {
            let waits = state.entry(sequence).map(|entry| Waits {
                first_delivery: entry.consumer_sequence,
                since_ns: entry.time_ns,
                deliveries: entry.deliveries,
            });
            prop_assert_eq!(waits.as_ref(), twin.pending.get(&sequence));
            prop_assert_eq!(state.needs(sequence), twin.needs(sequence), "{}", sequence);
        }
        Ok(())
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
        first in 1u64..20,
        deliveries_max in proptest::option::of(1u64..4),
        steps in proptest::collection::vec(step(), 1..200),
    ) {
        let mut pair = Pair::new(policy, first, deliveries_max);
        pair.compare()?;
        for step in steps {
            pair.take(step)?;
            pair.compare()?;
        }
    }
}
