//! Everything a consumer has delivered and what became of it: the state of acknowledgements, the keys of messages under
//! way, what waits for its dead letter, and the side effects for others.
//!
//! Invariants: a settled message has left its key, and is among `released` if a client acknowledged it; an
//! acknowledgement is confirmed only when the state, or the message's dead letter, is on disk, and what it released was handed
//! over before; `due_ns` is never later than the time when a pending message has waited too long.

use super::pending_list::PendingMessage;
use super::state::{AckState, Again};
use crate::consumer::dead_letters::{DeadLetter, LetterRun, PendingDeadLetters, SettledLetter};
use crate::consumer::delivery::keys::Keys;
use crate::consumer::delivery::outbound::Undelivered;
use crate::consumer::settings::{AckPolicy, ConsumerSettings};
use crate::storage::store::committed::CommittedMessages;
use crate::storage::store::slices::SLICE_MESSAGES;

/// Acknowledgements of one consumer that wait for the disk to be confirmed, at most; those beyond are recorded and not answered, as their senders find by
/// their time-out.
pub(super) const CONFIRMATIONS_MAX: usize = 100_000;

/// What a delivery counts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryKind {
    New,
    Parked,
    Again,
}

/// What a change of the state means for others.
pub struct SideEffects {
    /// Settled messages, from the first to the last, for streams that keep only what is needed.
    pub released: Vec<(u64, u64)>,
    /// Something was given up.
    pub has_dead_letters: bool,
    pub is_changed: bool,
    /// To acknowledgements that are confirmed when the state is on disk, for `expect_confirmations` once everything here is seen to.
    pub replies: Vec<Box<[u8]>>,
    /// A client waits for the state to be on disk.
    pub is_awaited: bool,
}

pub struct DeliveredMessages {
    pub(super) acks: AckState,
    pub(super) keys: Option<Keys>,
    pub(super) letters: PendingDeadLetters,
    /// A message was given up since the last `take_effects`.
    has_dead_letters: bool,
    released: Vec<(u64, u64)>,
    /// Replies to acknowledgements since the last `take_effects`.
    replies: Vec<Box<[u8]>>,
    /// Those whose side effects are seen to: they are given when the state is on disk.
    confirmations: Vec<Box<[u8]>>,
    pub(super) due_ns: i64,
}

impl DeliveredMessages {
    pub fn new(acks: AckState, keys: Option<Keys>, now_ns: i64) -> Self {
        let mut acks = acks;
        acks.out_of_order = keys.is_some();
        Self {
            acks,
            keys,
            letters: PendingDeadLetters::default(),
            has_dead_letters: false,
            released: Vec::new(),
            replies: Vec::new(),
            confirmations: Vec::new(),
            due_ns: now_ns,
        }
    }

    pub fn acks(&self) -> &AckState {
        &self.acks
    }

    /// For the writer of the state, which notes there what it has written.
    pub fn acks_to_write(&mut self) -> &mut AckState {
        &mut self.acks
    }

    /// When something pending may have waited too long; `i64::MAX` is never.
    pub fn due_ns(&self) -> i64 {
        self.due_ns
    }

    /// Something pending is due then, or later.
    pub(super) fn expect_by(&mut self, due_ns: i64) {
        self.due_ns = self.due_ns.min(due_ns);
    }

    /// Deadlines may come earlier from now on.
    pub fn look_soon(&mut self, now_ns: i64) {
        self.due_ns = now_ns;
    }

    /// Restarts at a sequence.
    pub fn reset(&mut self, sequence: u64) {
        self.acks.reset(sequence);
        self.letters.clear();
        if let Some(keys) = &mut self.keys {
            keys.clear();
        }
    }

    pub fn requeue_all(&mut self) {
        self.acks.requeue_all();
    }

    pub fn forget_settled(&mut self) {
        self.acks.forget_settled();
    }

    /// What must be delivered again, if anything.
    pub fn next_again(&mut self, deliveries_max: Option<u64>) -> Option<Again> {
        self.acks.next_again(deliveries_max)
    }

    /// A message that was to be delivered again and may not be, wherever it stands: it is given up.
    pub fn next_exceeded(&mut self, deliveries_max: Option<u64>) -> Option<(u64, u32)> {
        self.acks.next_exceeded(deliveries_max)
    }

    /// Messages up to here do not belong to this consumer.
    pub fn pass_over(&mut self, next_stream: u64) {
        self.acks.pass_over(next_stream);
    }

    /// Everything below is settled: it was purged.
    pub fn settle_below(&mut self, next_stream: u64) {
        self.acks.settle_below(next_stream);
    }

    /// The parked message whose turn it is.
    pub fn next_ready(&mut self) -> Option<u64> {
        self.keys.as_mut()?.next_ready(&self.acks)
    }

    /// Parks a new message if it has to wait for another of its key; false if it may be delivered.
    pub fn park(&mut self, sequence: u64, subject: &[u8], headers: &[u8]) -> bool {
        let Some(keys) = &mut self.keys else {
            return false;
        };
        let Some(key) = keys.of(subject, headers) else {
            return false;
        };
        if keys.enter(&key, sequence) {
            return false;
        }
        self.acks.park(sequence);
        true
    }

    /// A new message was not delivered after all.
    pub fn leave_key(&mut self, sequence: u64) {
        if let Some(keys) = &mut self.keys {
            keys.leave(sequence);
        }
    }

    /// Remembers who has a message, where its key is held until that one is done.
    pub fn note_receiver(&mut self, sequence: u64, connection_id: impl FnOnce() -> u64) {
        if let Some(keys) = &mut self.keys {
            keys.received(sequence, connection_id());
        }
    }

    /// A message is under way.
    pub fn note_delivered(
        &mut self,
        sequence: u64,
        kind: DeliveryKind,
        settings: &ConsumerSettings,
        now_ns: i64,
    ) {
        let deliveries = match kind {
            DeliveryKind::New => {
                self.acks.deliver(sequence, now_ns);
                1
            }
            DeliveryKind::Parked => {
                self.acks.deliver_parked(sequence, now_ns);
                if let Some(keys) = &mut self.keys {
                    keys.take_ready();
                }
                1
            }
            DeliveryKind::Again => self.acks.redeliver(sequence, now_ns).1,
        };
        if settings.ack_policy == AckPolicy::None {
            self.released.push((sequence, sequence));
        } else {
            self.expect_by(now_ns.saturating_add(settings.wait_ns(deliveries)));
        }
    }

    /// Messages reached nobody. Where no acknowledgements are waited for, they counted as settled when they were sent; those that were sent after all that
    /// reached somebody do not now, and the first of them is returned. That is so only if nothing `is_beside` the order of the stream.
    pub fn take_back(
        &mut self,
        undelivered: &Undelivered,
        policy: AckPolicy,
        is_beside: bool,
    ) -> Option<u64> {
        if policy != AckPolicy::None {
            for sequence in undelivered.sequences.iter().rev() {
                self.acks.undo(*sequence);
            }
            return None;
        }
        let last_in_a_row = undelivered.last_in_a_row();
        let (first, last) = (*last_in_a_row.first()?, *last_in_a_row.last()?);
        if self.acks.floor.stream != last || is_beside {
            return None;
        }
        self.acks.undo_last(first, last_in_a_row.len() as u64);
        Some(first)
    }

    /// Hands on what clients have that have left; true if there is something.
    pub fn hand_over(&mut self, is_connected: impl Fn(u64) -> bool) -> bool {
        let Some(keys) = &mut self.keys else {
            return false;
        };
        let left = keys.left(is_connected);
        for sequence in &left {
            self.acks.requeue(*sequence);
            keys.received(*sequence, 0);
        }
        !left.is_empty()
    }

    /// A message was acknowledged.
    pub(super) fn release(&mut self, sequence: u64) {
        self.release_missing(sequence);
        self.released.push((sequence, sequence));
    }

    /// Everything up to a message was acknowledged.
    pub fn release_through(&mut self, sequence: u64, consumer_sequence: u64) {
        let floor = self.acks.floor.stream;
        if self.acks.acknowledge_all(sequence, consumer_sequence) {
            debug_assert!(floor < sequence);
            self.released.push((floor + 1, sequence));
        }
    }

    /// A message that was to be delivered is not there any more.
    pub fn release_missing(&mut self, sequence: u64) {
        self.acks.acknowledge(sequence);
        if let Some(keys) = &mut self.keys {
            keys.settled(sequence, &mut self.acks);
        }
    }

    /// The same if it is pending.
    pub fn settle_pending(&mut self, sequence: u64) {
        if self.acks.is_pending(sequence) {
            self.release_missing(sequence);
        }
    }

    /// A message that has used up its deliveries is not delivered any more: the next one of its key may come, and it
    /// waits for its dead letter.
    pub fn give_up(&mut self, sequence: u64) {
        self.has_dead_letters = true;
        if let Some(keys) = &mut self.keys {
            keys.settled(sequence, &mut self.acks);
        }
    }

    /// Queues messages that have waited too long; calls `give_up` with those that have used up their deliveries, and
    /// their number.
    pub fn expire(
        &mut self,
        settings: &ConsumerSettings,
        now_ns: i64,
        give_up: impl FnMut(u64, u32),
    ) {
        self.due_ns = i64::MAX;
        if !matches!(settings.ack_policy, AckPolicy::Explicit | AckPolicy::All) {
            return;
        }
        for sequence in self.letters.terminated() {
            self.acks.touch(sequence, now_ns);
        }
        let wait_ns = |deliveries| settings.wait_ns(deliveries);
        let next = self
            .acks
            .expire(now_ns, wait_ns, settings.max_deliver, give_up);
        self.due_ns = next.unwrap_or(i64::MAX);
    }

    /// Settles what is pending and gone, and returns it. Many are looked through in slices, before: see `Consumer::drop_missing`.
    pub fn drop_missing(&mut self, messages: &CommittedMessages) -> Vec<PendingMessage> {
        let is_there = |sequence| messages.contains(sequence);
        if self.acks.pending_count() > SLICE_MESSAGES {
            let given_up = self.acks.exceeded.keys().copied();
            let missing: Vec<u64> = given_up.filter(|sequence| !is_there(*sequence)).collect();
            for sequence in missing {
                self.acks.acknowledge(sequence);
            }
            return Vec::new();
        }
        let dropped = self.acks.drop_missing(is_there);
        if let Some(keys) = &mut self.keys {
            for entry in &dropped {
                keys.settled(entry.stream_sequence, &mut self.acks);
            }
        }
        dropped
    }

    /// Whether a message only waits for its dead letter; then it is not delivered again.
    pub fn unqueue_terminated(&mut self, sequence: u64) -> bool {
        let is_terminated = self.letters.is_terminated(sequence);
        if is_terminated {
            self.acks.unqueue(sequence);
        }
        is_terminated
    }

    /// Notes that a client has terminated a message, which is settled when its letter is stored.
    pub(super) fn hold_terminated(
        &mut self,
        sequence: u64,
        consumer_sequence: u64,
        deliveries: u32,
        reason: &[u8],
    ) {
        self.acks.unqueue(sequence);
        self.letters
            .hold(sequence, consumer_sequence, deliveries, reason);
        self.has_dead_letters = true;
    }

    pub fn letters(&mut self) -> &mut PendingDeadLetters {
        &mut self.letters
    }

    pub fn letters_due_ns(&self) -> i64 {
        self.letters.due_ns()
    }

    /// The next messages of a run to write letters of; they count as under way from now on.
    pub fn next_dead_letters(&mut self, run: &mut LetterRun) -> Vec<DeadLetter> {
        self.letters.next(run, &self.acks.exceeded)
    }

    pub fn is_waiting_for_letters(&self) -> bool {
        self.letters.has_terminated() || !self.acks.exceeded.is_empty()
    }

    /// The letter of a message is stored, or none is needed: the message is settled.
    pub fn settle_dead_letter(&mut self, sequence: u64, policy: AckPolicy) {
        match self.letters.resolve(sequence, policy) {
            SettledLetter::Alone(replies) => {
                self.release(sequence);
                self.replies.extend(replies);
            }
            SettledLetter::UpTo(held) => {
                self.release_through(held.sequence, held.consumer_sequence);
                self.replies.extend(held.replies);
            }
            SettledLetter::WaitsForOthers => {}
            SettledLetter::NotTerminated => {
                if self.acks.exceeded.contains_key(&sequence) {
                    self.release(sequence);
                }
            }
        }
    }

    /// Notes that an acknowledgement is to be confirmed, unless too many are.
    pub(super) fn await_confirmation(&mut self, reply: &[u8]) {
        if self.replies.len() + self.confirmations.len() < CONFIRMATIONS_MAX {
            self.replies.push(reply.into());
        }
    }

    /// Side effects of these are seen to, or their confirmation could not be given: they wait for the state to be on disk.
    pub fn expect_confirmations(&mut self, replies: Vec<Box<[u8]>>) {
        self.confirmations.extend(replies);
    }

    /// Replies to acknowledgements whose effect is on disk once the state is that is written now.
    pub fn take_confirmations(&mut self) -> Vec<Box<[u8]>> {
        std::mem::take(&mut self.confirmations)
    }

    pub fn take_effects(&mut self) -> SideEffects {
        SideEffects {
            released: std::mem::take(&mut self.released),
            has_dead_letters: std::mem::take(&mut self.has_dead_letters),
            is_changed: self.acks.is_changed(),
            is_awaited: !self.replies.is_empty() || !self.confirmations.is_empty(),
            replies: std::mem::take(&mut self.replies),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consumer::settings::Key;

    const SECOND_NS: i64 = 1_000_000_000;

    fn settings() -> ConsumerSettings {
        ConsumerSettings {
            ack_policy: AckPolicy::Explicit,
            ack_wait_ns: 30 * SECOND_NS,
            ..ConsumerSettings::default()
        }
    }

    fn nothing_delivered(keys: Option<Keys>) -> DeliveredMessages {
        DeliveredMessages::new(AckState::new(AckPolicy::Explicit, 1), keys, 0)
    }

    #[test]
    fn a_settled_message_is_released_and_lets_the_next_of_its_key_come() {
        let mut delivered = nothing_delivered(Some(Keys::new(Key::SubjectToken(1))));
        assert!(!delivered.park(1, b"a.x", b""));
        delivered.note_delivered(1, DeliveryKind::New, &settings(), 0);
        assert!(delivered.park(2, b"a.y", b""));
        assert_eq!(delivered.next_ready(), None);

        delivered.release(1);

        assert_eq!(delivered.next_ready(), Some(2));
        assert_eq!(delivered.take_effects().released, [(1, 1)]);
    }

    #[test]
    fn the_message_that_has_waited_longest_is_due_first() {
        let mut delivered = nothing_delivered(None);
        delivered.expire(&settings(), 0, |_, _| {});
        assert_eq!(delivered.due_ns(), i64::MAX);

        delivered.note_delivered(1, DeliveryKind::New, &settings(), 5 * SECOND_NS);
        delivered.note_delivered(2, DeliveryKind::New, &settings(), 9 * SECOND_NS);

        assert_eq!(delivered.due_ns(), 35 * SECOND_NS);
    }

    #[test]
    fn the_end_of_a_terminated_message_is_confirmed_when_its_letter_is_stored() {
        let mut delivered = nothing_delivered(None);
        delivered.note_delivered(1, DeliveryKind::New, &settings(), 0);
        delivered.hold_terminated(1, 1, 1, b"");
        delivered.letters().hold_confirmation(1, b"reply");
        assert!(delivered.take_confirmations().is_empty());
        assert!(delivered.acks().is_pending(1));

        delivered.settle_dead_letter(1, AckPolicy::Explicit);

        assert!(
            delivered.take_confirmations().is_empty(),
            "its message is not removed yet"
        );
        let effects = delivered.take_effects();
        assert_eq!(effects.released, [(1, 1)]);
        assert!(effects.is_awaited);
        delivered.expect_confirmations(effects.replies);
        assert_eq!(delivered.take_confirmations(), [(*b"reply").into()]);
        assert!(!delivered.acks().is_pending(1));
    }

    /// A consumer that waits for no acknowledgements has sent messages, some of them to nobody.
    fn sent_to_nobody(sent: u64, undelivered: &[u64]) -> (DeliveredMessages, Option<u64>) {
        let settings = ConsumerSettings {
            ack_policy: AckPolicy::None,
            ..settings()
        };
        let acks = AckState::new(AckPolicy::None, 1);
        let mut delivered = DeliveredMessages::new(acks, None, 0);
        let mut noted = Undelivered::default();
        for sequence in 1..=sent {
            delivered.note_delivered(sequence, DeliveryKind::New, &settings, 0);
            noted.note(sequence, !undelivered.contains(&sequence));
        }
        let next = delivered.take_back(&noted, AckPolicy::None, false);
        (delivered, next)
    }

    #[test]
    fn what_reached_nobody_is_sent_again_from_behind_the_last_message_that_arrived() {
        let (delivered, next) = sent_to_nobody(5, &[2, 4, 5]);

        assert_eq!(next, Some(4));
        assert_eq!(delivered.acks().next_stream, 4);
        assert_eq!(delivered.acks().next_consumer, 4);
    }

    #[test]
    fn what_arrived_last_is_not_sent_again_with_what_reached_nobody_before_it() {
        let (delivered, next) = sent_to_nobody(4, &[1, 3]);

        assert_eq!(next, None);
        assert_eq!(delivered.acks().next_stream, 5);
    }
}
