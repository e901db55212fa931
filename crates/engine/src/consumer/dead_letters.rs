//! Messages that a consumer has given up and that wait for their dead letters to be stored.
//!
//! There is no queue to lose: what waits is what was terminated (`terminated`) and what has used up its deliveries
//! (`AckState::exceeded`). A terminated message stays pending until its letter is stored, and its acknowledgement
//! unconfirmed; so it is delivered again after a restart, and not before. Invariant: a message leaves here when its
//! letter is durable, when the message is gone, or when its stream wants no letters any more.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::consumer::Consumer;
use super::settings::AckPolicy;
use crate::common::events::Level;
use crate::storage::receipts::Receipt;

/// Letters that one look at the state hands over at most.
const LETTERS_AT_ONCE_MAX: usize = 128;

/// Letters that wait for their commit at most; the next ones are handed over when these are stored.
const LETTERS_UNDER_WAY_MAX: usize = 1024;

/// After this many refusals the others wait for the next try: a full stream refuses all of them, and each costs a read.
const REFUSALS_AT_ONCE_MAX: usize = 64;

/// A letter that was refused is tried again after this long.
const RETRY: Duration = Duration::from_secs(1);

/// The same reason is logged again after this long.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// A client may give a reason; more of it than this is cut off, because the letter's headers have a limit.
const REASON_BYTES_MAX: usize = 1024;

const MAX_DELIVER: &str = "max_deliver";
const TERMINATED: &str = "terminated";

/// A message that nobody is given any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    pub sequence: u64,
    pub deliveries: u32,
    pub reason: String,
}

/// What has become of a letter that was handed over.
pub enum HandedOver {
    /// Its receipt will say.
    UnderWay,
    /// The stream wants no dead letters.
    Unwanted,
    /// The message is not there any more.
    Gone,
    Refused(String),
}

/// A message that a client has terminated.
struct Termination {
    consumer_sequence: u64,
    deliveries: u32,
    reason: String,
    /// Who waits for the confirmation.
    replies: Vec<Box<[u8]>>,
}

/// How far a cumulative acknowledgement goes that covers terminated messages, and who waits for its confirmation.
#[derive(Default)]
pub struct HeldAcknowledgement {
    pub sequence: u64,
    pub consumer_sequence: u64,
    pub replies: Vec<Box<[u8]>>,
}

impl HeldAcknowledgement {
    fn reach(&mut self, sequence: u64, consumer_sequence: u64) {
        self.sequence = self.sequence.max(sequence);
        self.consumer_sequence = self.consumer_sequence.max(consumer_sequence);
    }
}

/// What it means that the letter of a message is stored, or that none is needed.
pub enum SettledLetter {
    /// The message is settled, and these are confirmed.
    Alone(Vec<Box<[u8]>>),
    /// Everything is settled that a cumulative acknowledgement covers.
    UpTo(HeldAcknowledgement),
    /// The acknowledgement covers others whose letters are not stored yet.
    WaitsForOthers,
    /// No client has terminated it.
    NotTerminated,
}

/// One run through what waits: on from where the last one has ended, and then once from the beginning, unless it began there.
#[derive(Default)]
pub struct LetterRun {
    is_from_beginning: bool,
}

/// What waits for its dead letter.
pub struct PendingDeadLetters {
    terminated: BTreeMap<u64, Termination>,
    held: HeldAcknowledgement,
    /// Confirmations that wait, of all of them.
    confirmation_count: usize,
    /// Handed over, and not stored or refused yet.
    under_way: BTreeSet<u64>,
    /// Where the next look begins, so that letters that are refused hold up no others.
    cursor: u64,
    /// When to try again; `i64::MAX` is never.
    due_ns: i64,
    logged: Option<(String, i64)>,
}

impl Default for PendingDeadLetters {
    fn default() -> Self {
        Self {
            terminated: BTreeMap::new(),
            held: HeldAcknowledgement::default(),
            confirmation_count: 0,
            under_way: BTreeSet::new(),
            cursor: 0,
            due_ns: i64::MAX,
            logged: None,
        }
    }
}

impl PendingDeadLetters {
    /// Whether a client has terminated a message that is still there.
    pub fn is_terminated(&self, sequence: u64) -> bool {
        self.terminated.contains_key(&sequence)
    }

    pub fn terminated(&self) -> impl Iterator<Item = u64> + '_ {
        self.terminated.keys().copied()
    }

    pub fn has_terminated(&self) -> bool {
        !self.terminated.is_empty()
    }

    /// Forgets everything: the consumer restarts.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Notes that a client has terminated a message, which is settled when its letter is stored.
    pub fn hold(&mut self, sequence: u64, consumer_sequence: u64, deliveries: u32, reason: &[u8]) {
        let reason = match reason {
            b"" => TERMINATED.to_owned(),
            reason => {
                let most = reason.len().min(REASON_BYTES_MAX);
                String::from_utf8_lossy(&reason[..most]).into_owned()
            }
        };
        self.terminated.insert(
            sequence,
            Termination {
                consumer_sequence,
                deliveries,
                reason,
                replies: Vec::new(),
            },
        );
    }

    /// Holds an acknowledgement back that concerns a terminated message; false if it concerns none. Who gave a reply subject must pass it to
    /// `hold_confirmation`.
    pub fn hold_acknowledgement(
        &mut self,
        policy: AckPolicy,
        sequence: u64,
        consumer_sequence: u64,
    ) -> bool {
        match policy {
            AckPolicy::Explicit => self.is_terminated(sequence),
            AckPolicy::All => {
                let first = self.terminated.keys().next();
                let covers = first.is_some_and(|first| *first <= sequence);
                if covers {
                    self.held.reach(sequence, consumer_sequence);
                }
                covers
            }
            AckPolicy::None | AckPolicy::FlowControl => false,
        }
    }

    /// Remembers whom to answer when what was held back is settled.
    pub fn hold_confirmation(&mut self, sequence: u64, reply: &[u8]) {
        self.confirmation_count += 1;
        match self.terminated.get_mut(&sequence) {
            Some(termination) => termination.replies.push(reply.into()),
            None => self.held.replies.push(reply.into()),
        }
    }

    /// Confirmations that wait for letters.
    pub fn held_confirmations(&self) -> usize {
        self.confirmation_count
    }

    /// The next messages of a run to write letters of, of those that were terminated and those that were delivered too often; they count as under way
    /// from now on.
    pub fn next(&mut self, run: &mut LetterRun, exceeded: &BTreeMap<u64, u32>) -> Vec<DeadLetter> {
        run.is_from_beginning |= self.cursor == 0;
        let found = self.next_behind_cursor(exceeded);
        if !found.is_empty() || run.is_from_beginning {
            return found;
        }
        // Those that were refused before lie in front of where it began.
        run.is_from_beginning = true;
        self.next_behind_cursor(exceeded)
    }

    fn next_behind_cursor(&mut self, exceeded: &BTreeMap<u64, u32>) -> Vec<DeadLetter> {
        let room = LETTERS_UNDER_WAY_MAX.saturating_sub(self.under_way.len());
        let most = room.min(LETTERS_AT_ONCE_MAX);
        let from = self.cursor;
        let terminated = self.terminated.range(from..);
        let terminated = terminated.map(|(sequence, termination)| DeadLetter {
            sequence: *sequence,
            deliveries: termination.deliveries,
            reason: termination.reason.clone(),
        });
        let exceeded = exceeded.range(from..);
        let exceeded = exceeded.filter(|(sequence, _)| !self.is_terminated(**sequence));
        let exceeded = exceeded.map(|(sequence, deliveries)| DeadLetter {
            sequence: *sequence,
            deliveries: *deliveries,
            reason: MAX_DELIVER.to_owned(),
        });
        let is_waiting = |letter: &DeadLetter| !self.under_way.contains(&letter.sequence);
        let mut found: Vec<DeadLetter> = terminated.filter(is_waiting).take(most).collect();
        found.extend(exceeded.filter(is_waiting).take(most));
        found.sort_by_key(|letter| letter.sequence);
        found.truncate(most);
        for letter in &found {
            self.under_way.insert(letter.sequence);
        }
        debug_assert!(self.under_way.len() <= LETTERS_UNDER_WAY_MAX);
        self.cursor = match found.last() {
            Some(last) => last.sequence + 1,
            None => 0,
        };
        found
    }

    /// A letter was not handed over after all, and is the next to be.
    fn hand_back(&mut self, sequence: u64) {
        self.under_way.remove(&sequence);
        self.cursor = self.cursor.min(sequence);
    }

    /// Nobody wants the letter of a message; true if a client has terminated that.
    fn withdraw(&mut self, sequence: u64) -> bool {
        self.under_way.remove(&sequence);
        self.is_terminated(sequence)
    }

    /// A letter was refused; true if the reason should be logged.
    fn refuse(&mut self, sequence: u64, reason: &str, now_ns: i64) -> bool {
        self.under_way.remove(&sequence);
        self.retry_after(RETRY, now_ns);
        self.is_news(reason, now_ns)
    }

    /// A letter is stored, or none is needed.
    pub fn resolve(&mut self, sequence: u64, policy: AckPolicy) -> SettledLetter {
        self.under_way.remove(&sequence);
        let Some(termination) = self.terminated.remove(&sequence) else {
            return SettledLetter::NotTerminated;
        };
        if policy != AckPolicy::All {
            self.confirmation_count -= termination.replies.len();
            return SettledLetter::Alone(termination.replies);
        }
        self.held.reach(sequence, termination.consumer_sequence);
        self.held.replies.extend(termination.replies);
        let first = self.terminated.keys().next();
        if first.is_some_and(|first| *first <= self.held.sequence) {
            return SettledLetter::WaitsForOthers;
        }
        let held = std::mem::take(&mut self.held);
        self.confirmation_count -= held.replies.len();
        SettledLetter::UpTo(held)
    }

    /// When to try again; `i64::MAX` is never.
    pub fn due_ns(&self) -> i64 {
        self.due_ns
    }

    /// Whether it is time to try again; then it is not until something is refused.
    pub fn take_due(&mut self, now_ns: i64) -> bool {
        let is_due = self.due_ns <= now_ns;
        if is_due {
            self.due_ns = i64::MAX;
        }
        is_due
    }

    /// Whether nothing is handed over, and nothing will be by itself.
    fn is_idle(&self) -> bool {
        self.under_way.is_empty() && self.due_ns == i64::MAX
    }

    fn retry_after(&mut self, wait: Duration, now_ns: i64) {
        let due_ns = now_ns.saturating_add(wait.as_nanos() as i64);
        self.due_ns = self.due_ns.min(due_ns);
    }

    /// Whether to log a reason now: it is another one, or was logged long ago.
    fn is_news(&mut self, reason: &str, now_ns: i64) -> bool {
        let since_ns = now_ns.saturating_sub(LOG_INTERVAL.as_nanos() as i64);
        let is_known = self
            .logged
            .as_ref()
            .is_some_and(|(logged, at_ns)| logged == reason && *at_ns > since_ns);
        if !is_known {
            self.logged = Some((reason.to_owned(), now_ns));
        }
        !is_known
    }
}

impl Consumer {
    /// Writes letters of what was given up. Reads messages from the disk, and waits for no sync.
    pub(super) fn hand_over_dead_letters(&self) {
        let mut refusals = 0;
        let mut run = LetterRun::default();
        loop {
            let letters =
                self.with_core(|core, _, _| core.deliveries().next_dead_letters(&mut run));
            if letters.is_empty() {
                break;
            }
            let mut settled = Vec::new();
            for letter in letters {
                let sequence = letter.sequence;
                if refusals >= REFUSALS_AT_ONCE_MAX {
                    self.with_core(|core, _, _| core.deliveries().letters().hand_back(sequence));
                    continue;
                }
                let receipt = Arc::new(LetterReceipt {
                    consumer: self.own.clone(),
                    sequence,
                });
                let stream = &self.context.host;
                match stream.hand_over_dead_letter(self, &letter, receipt) {
                    HandedOver::UnderWay => {}
                    HandedOver::Gone => settled.push(sequence),
                    HandedOver::Unwanted => {
                        // One that was delivered too often stays where it is, as if there had never been a stream for its letter.
                        let was_terminated = self
                            .with_core(|core, _, _| core.deliveries().letters().withdraw(sequence));
                        settled.extend(was_terminated.then_some(sequence));
                    }
                    HandedOver::Refused(reason) => {
                        refusals += 1;
                        self.note_refused_letter(sequence, &reason);
                    }
                }
            }
            if !settled.is_empty() {
                self.settle_dead_letters(&settled);
            }
            if refusals >= REFUSALS_AT_ONCE_MAX {
                break;
            }
        }
    }

    fn settle_dead_letters(&self, sequences: &[u64]) {
        self.with_core(|core, _, _| {
            let policy = core.settings().ack_policy;
            for sequence in sequences {
                core.deliveries().settle_dead_letter(*sequence, policy);
            }
        });
        self.touch();
    }

    /// A letter was not stored: its message stays, and is tried again.
    fn note_refused_letter(&self, sequence: u64, reason: &str) {
        let is_news = self.with_core(|core, _, now_ns| {
            let letters = core.deliveries().letters();
            letters.refuse(sequence, reason, now_ns)
        });
        if is_news {
            let stream = &self.context.stream;
            let text = format!(
                "consumer {:?} of stream {stream:?}: the dead letter of message {sequence} is not stored: {reason}; the message stays in {stream:?} and \
                 its letter is tried again",
                self.name
            );
            self.context.shared.events.log(Level::Warning, text);
        }
        self.schedule();
    }

    /// Schedules the job that hands over its dead letters.
    pub(super) fn ask_for_dead_letters(&self) {
        let job = self.letters_job.get_or_init(|| {
            let own = self.own.clone();
            self.context.threads.reading(move || {
                if let Some(consumer) = own.upgrade() {
                    consumer.hand_over_dead_letters();
                }
            })
        });
        job.schedule();
    }

    /// What was given up before the server stopped is looked at when the other streams are there.
    pub(super) fn look_for_dead_letters(&self) {
        self.with_core(|core, _, now_ns| {
            let deliveries = core.deliveries();
            if deliveries.is_waiting_for_letters() {
                deliveries.letters().retry_after(RETRY, now_ns);
            }
        });
    }
}

struct LetterReceipt {
    consumer: Weak<Consumer>,
    sequence: u64,
}

impl Receipt for LetterReceipt {
    fn complete(&self, outcome: Result<(), &str>) {
        let Some(consumer) = self.consumer.upgrade() else {
            return;
        };
        match outcome {
            Ok(()) => {
                consumer.settle_dead_letters(&[self.sequence]);
                let is_next = consumer.with_core(|core, _, _| {
                    let deliveries = core.deliveries();
                    deliveries.letters().is_idle() && deliveries.is_waiting_for_letters()
                });
                if is_next {
                    consumer.ask_for_dead_letters();
                }
            }
            Err(reason) => consumer.note_refused_letter(self.sequence, reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Letters of this many messages, and a run through them that ends when so many were refused as one run tries.
    fn after_a_run_of_refusals(count: u64) -> PendingDeadLetters {
        let mut letters = PendingDeadLetters::default();
        for sequence in 1..=count {
            letters.hold(sequence, sequence, 1, b"");
        }
        run(&mut letters);
        letters
    }

    /// Refuses the letters of a run as `hand_over_dead_letters` does; returns their sequences.
    fn run(letters: &mut PendingDeadLetters) -> Vec<u64> {
        let mut run = LetterRun::default();
        let mut refused = Vec::new();
        loop {
            let found = letters.next(&mut run, &BTreeMap::new());
            if found.is_empty() {
                return refused;
            }
            for letter in found {
                if refused.len() < REFUSALS_AT_ONCE_MAX {
                    letters.refuse(letter.sequence, "full", 0);
                    refused.push(letter.sequence);
                } else {
                    letters.hand_back(letter.sequence);
                }
            }
            if refused.len() == REFUSALS_AT_ONCE_MAX {
                return refused;
            }
        }
    }

    #[test]
    fn a_run_goes_on_where_the_last_one_has_ended() {
        let mut letters = after_a_run_of_refusals(100);

        let next = run(&mut letters);

        assert_eq!(next[..36], (65..=100).collect::<Vec<u64>>());
        assert_eq!(next[36..], (1..=28).collect::<Vec<u64>>());
    }

    #[test]
    fn a_run_behind_the_last_letter_begins_again() {
        let first: Vec<u64> = (1..=64).collect();
        let mut letters = after_a_run_of_refusals(64);

        assert_eq!(run(&mut letters), first);
        assert_eq!(run(&mut letters), first);
    }

    #[test]
    fn a_run_from_the_beginning_tries_each_letter_once() {
        let mut letters = after_a_run_of_refusals(3);

        assert_eq!(run(&mut letters), [1, 2, 3]);
    }
}
