//! A state of acknowledgements and its simple twin, taken through the same steps and compared after each.

use super::*;
use crate::consumer::journal::state_record;
use crate::consumer::journal::state_record::{Aside, Replayed};

/// Both, and the clock they share.
pub struct Pair {
    state: AckState,
    twin: Twin,
    now_ns: i64,
    deliveries_max: Option<u64>,
    /// Sequence and number of every delivery.
    history: Vec<(u64, u64)>,
}

impl Pair {
    pub fn new(policy: AckPolicy, is_keyed: bool, first: u64, deliveries_max: Option<u64>) -> Self {
        let is_keyed = is_keyed && policy == AckPolicy::Explicit;
        let mut state = AckState::new(policy, first);
        state.out_of_order = is_keyed;
        Self {
            state,
            twin: Twin::new(policy, is_keyed, first),
            now_ns: 1_000,
            deliveries_max,
            history: Vec::new(),
        }
    }

    /// Any sequence there is, and two that were never delivered.
    fn any(&self, choice: u64) -> u64 {
        choice % (self.twin.next_stream + 2)
    }

    pub fn apply(&mut self, step: Step) -> Result<(), TestCaseError> {
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
            Step::DeliverToNobody { skipped } => {
                let sequence = self.twin.next_stream + skipped;
                self.state.deliver(sequence, now_ns);
                self.twin.deliver(sequence, now_ns);
                if self.twin.policy == AckPolicy::None {
                    self.state.undo_last(sequence, 1);
                    self.undo_last(sequence);
                } else {
                    self.state.undo(sequence);
                    self.twin.undo(sequence);
                }
            }
            Step::Park => {
                if self.twin.is_keyed {
                    let sequence = self.twin.next_stream;
                    self.state.park(sequence);
                    self.twin.park(sequence);
                }
            }
            Step::Unpark { is_undelivered } => self.deliver_parked(is_undelivered)?,
            Step::Filter => {
                self.state.forget_settled();
                self.twin.set_other_filters();
            }
            Step::Restart => self.restart()?,
            Step::PassOver { count } => {
                let next = self.twin.next_stream + count;
                self.state.pass_over(next);
                self.twin.pass_over(next);
            }
            Step::Acknowledge { choice } => {
                let sequence = self.any(choice);
                if self.twin.policy == AckPolicy::Explicit {
                    self.state.acknowledge(sequence);
                    self.twin.acknowledge(sequence);
                }
            }
            Step::AcknowledgeAll { choice, made_up } => {
                if self.twin.policy == AckPolicy::All && !self.history.is_empty() {
                    let (sequence, number) = self.history[choice % self.history.len()];
                    let number = made_up.unwrap_or(number);
                    // Nothing that lies ahead is acknowledged: see `DeliveredMessages::concerns`.
                    if sequence < self.twin.next_stream {
                        self.state.acknowledge_all(sequence, number);
                        self.twin.acknowledge_all(sequence, number);
                    }
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
                let waits = self.twin.pending.get(&sequence);
                if waits.is_some_and(|waits| waits.deliveries > 0) {
                    self.twin.queue.retain(|queued| *queued != sequence);
                }
                self.wait_since(sequence, since_ns);
            }
            Step::Progress { choice } => {
                let sequence = self.any(choice);
                self.state.touch(sequence, now_ns);
                self.wait_since(sequence, now_ns);
            }
            Step::Again => self.deliver_again(false)?,
            Step::AgainToNobody => self.deliver_again(true)?,
            Step::GiveUp => self.give_up()?,
            Step::Expire { passed_ns } => self.expire(passed_ns)?,
            Step::Remove { divisor, rest } => self.remove(divisor, rest),
            Step::Purge { choice, keeps_open } => {
                let first = self.any(choice).max(1);
                self.purge(first, keeps_open);
            }
            Step::Cut { choice } => {
                let last = self.any(choice);
                self.cut(last)?;
            }
            Step::Reset { choice } => {
                let sequence = self.any(choice).max(1);
                self.state.reset(sequence);
                self.twin = Twin::new(self.twin.policy, self.twin.is_keyed, sequence);
            }
        }
        Ok(())
    }

    /// A consumer that waits for no acknowledgements takes its last delivery back as a whole.
    fn undo_last(&mut self, sequence: u64) {
        let twin = &mut self.twin;
        twin.next_consumer -= 1;
        twin.next_stream = sequence;
        twin.delivered_stream = sequence - 1;
        twin.floor = (twin.next_consumer - 1, sequence - 1);
    }

    fn deliver_parked(&mut self, is_undelivered: bool) -> Result<(), TestCaseError> {
        let Some(sequence) = self.twin.first_parked() else {
            return Ok(());
        };
        let number = self.state.deliver_parked(sequence, self.now_ns);
        let twin = &mut self.twin;
        prop_assert_eq!(number, twin.next_consumer);
        twin.next_consumer += 1;
        twin.delivered_stream = twin.delivered_stream.max(sequence);
        let waits = Waits {
            first_delivery: number,
            since_ns: self.now_ns,
            deliveries: 1,
            is_parked: false,
        };
        twin.pending.insert(sequence, waits);
        if is_undelivered {
            self.state.undo(sequence);
            twin.undo(sequence);
        } else {
            self.history.push((sequence, number));
        }
        Ok(())
    }

    /// Everything is as it was, but for the order in which messages are delivered again.
    fn restart(&mut self) -> Result<(), TestCaseError> {
        let mut record = Vec::new();
        state_record::encode(&mut self.state, Aside::default(), 1, true, &mut record);
        let mut replayed = Replayed::default();
        replayed.apply(&record);
        let finished = replayed.finish(self.twin.policy);
        let (state, _, _) = finished.expect("a whole record");
        self.state = state;
        self.state.out_of_order = self.twin.is_keyed;
        self.twin.queue.make_contiguous().sort_unstable();
        Ok(())
    }

    fn wait_since(&mut self, sequence: u64, since_ns: i64) {
        if let Some(waits) = self.twin.pending.get_mut(&sequence) {
            waits.since_ns = since_ns;
        }
    }

    fn deliver_again(&mut self, is_undelivered: bool) -> Result<(), TestCaseError> {
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
        if is_undelivered {
            // It is first again, and as if it had not been delivered.
            waits.deliveries -= 1;
            self.twin.queue.push_front(sequence);
            self.state.undo(sequence);
        } else {
            self.history.push((sequence, number));
        }
        Ok(())
    }

    fn give_up(&mut self) -> Result<(), TestCaseError> {
        let exceeded = self.state.next_exceeded(self.deliveries_max);
        let most = self.deliveries_max.unwrap_or(u64::MAX);
        let twin = &mut self.twin;
        let queue = twin.queue.iter();
        let mut queued = queue.map(|sequence| (*sequence, twin.pending[sequence].deliveries));
        let first = queued.find(|(_, deliveries)| u64::from(*deliveries) >= most);
        prop_assert_eq!(exceeded, first);
        if let Some((sequence, _)) = first {
            twin.give_up(sequence);
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
            if waits.is_parked || self.twin.queue.contains(&sequence) {
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

    /// Nothing below is waited for, unless it is still there, and the floor is not below that.
    fn purge(&mut self, first: u64, keeps_open: bool) {
        self.state.pass_over(first);
        self.state
            .drop_missing(|sequence| keeps_open || sequence >= first);
        self.state.settle_below(first);
        self.twin.next_stream = self.twin.next_stream.max(first);
        let pending = self.twin.pending.keys();
        let known: Vec<u64> = pending.chain(self.twin.given_up.keys()).copied().collect();
        for sequence in known.into_iter().filter(|sequence| *sequence < first) {
            if !keeps_open {
                self.twin.acknowledge(sequence);
            }
        }
        if self.twin.pending.is_empty() {
            self.twin.delivered_stream = self.twin.delivered_stream.max(first - 1);
            self.twin.floor = (self.twin.next_consumer - 1, self.twin.delivered_stream);
        } else if let Some(open) = self.twin.pending.keys().next() {
            self.twin.floor.1 = self.twin.floor.1.max(first.min(*open) - 1);
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
        twin.acknowledged.retain(|sequence| *sequence <= last);
        twin.skipped.retain(|sequence| *sequence <= last);
        twin.unread.retain(|sequence| *sequence <= last);
        twin.next_stream = last + 1;
        twin.delivered_stream = twin.delivered_stream.min(last);
        let floor = self.state.floor;
        prop_assert!(floor.stream <= last && floor.consumer < twin.next_consumer);
        twin.floor = (floor.consumer, floor.stream);
        self.history.retain(|(sequence, _)| *sequence <= last);
        Ok(())
    }

    pub fn compare(&self) -> Result<(), TestCaseError> {
        let (state, twin) = (&self.state, &self.twin);
        prop_assert_eq!(state.next_stream, twin.next_stream);
        let delivered = state.delivered();
        prop_assert_eq!(delivered.consumer, twin.next_consumer - 1);
        prop_assert_eq!(delivered.stream, twin.delivered_stream);
        prop_assert_eq!((state.floor.consumer, state.floor.stream), twin.floor);
        let first = twin.pending.keys().next();
        prop_assert!(first.is_none_or(|first| *first > twin.floor.1));
        prop_assert_eq!(state.parked_count(), twin.parked_count());
        prop_assert_eq!(
            state.pending_count(),
            twin.pending.len() - twin.parked_count()
        );
        prop_assert_eq!(state.queued_count(), twin.queue.len());
        let twice = twin.pending.values().filter(|waits| waits.deliveries > 1);
        let redelivered = twice.count() + twin.given_up.len();
        prop_assert_eq!(state.redelivered_count(), redelivered);
        for sequence in 0..twin.next_stream + 2 {
            let waits = state.entry(sequence).map(|entry| Waits {
                first_delivery: entry.consumer_sequence,
                since_ns: entry.time_ns,
                deliveries: entry.deliveries,
                is_parked: entry.standing == Standing::Parked,
            });
            prop_assert_eq!(waits.as_ref(), twin.pending.get(&sequence));
            prop_assert_eq!(state.needs(sequence), twin.needs(sequence), "{}", sequence);
            let has_settled = state.has_settled(sequence);
            prop_assert!(
                !has_settled || !twin.unread.contains(&sequence),
                "{}",
                sequence
            );
            let is_known = sequence >= twin.known_from && twin.acknowledged.contains(&sequence);
            prop_assert!(has_settled || !is_known, "{}", sequence);
        }
        Ok(())
    }
}
