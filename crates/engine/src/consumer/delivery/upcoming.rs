//! What a consumer has still to deliver for the first time: how much that is, and in which order and at what times it comes where that is not simply the order of the stream.
//!
//! Invariant: the last messages of each subject (`Lasts`) come before everything that was stored after they were found; a replay keeps the pauses between messages up to where the stream
//! ended when it began.

use std::collections::VecDeque;

use super::pending_count::PendingCount;
use crate::consumer::acknowledgement::delivered::DeliveredMessages;
use crate::consumer::acknowledgement::state::AckState;
use crate::consumer::journal::state_record::Aside;
use crate::consumer::settings::{ConsumerSettings, DeliverPolicy, ReplayPolicy};
use crate::storage::message::StoreResult;
use crate::storage::store::committed::CommittedMessages;

/// Pauses up to so long are not kept when messages are replayed with theirs.
const PAUSE_MIN_NS: i64 = 1_000_000;

/// The last message of each subject as of a moment, which are delivered before everything that came after it.
struct Lasts {
    sequences: VecDeque<u64>,
    until: u64,
}

/// Delivering with the pauses there were when the messages came.
struct Replay {
    /// Up to here.
    until: u64,
    /// When the message before was stored.
    previous_time_ns: i64,
    /// The next one is delivered then.
    due_ns: i64,
}

pub struct Upcoming {
    count: PendingCount,
    lasts: Option<Lasts>,
    replay: Option<Replay>,
}

impl Upcoming {
    fn new(
        settings: &ConsumerSettings,
        messages: &CommittedMessages,
        lasts: Option<Lasts>,
    ) -> Self {
        let replay = match settings.replay_policy {
            ReplayPolicy::Original => Some(Replay {
                until: messages.marks().last_sequence,
                previous_time_ns: 0,
                due_ns: 0,
            }),
            ReplayPolicy::Instant => None,
        };
        Self {
            count: PendingCount::outdated(),
            lasts,
            replay,
        }
    }

    /// Where a new consumer begins.
    pub fn begin(
        settings: &ConsumerSettings,
        messages: &CommittedMessages,
    ) -> StoreResult<(AckState, Self)> {
        let marks = messages.marks();
        let first = marks.first_sequence.max(1);
        let end = marks.last_sequence + 1;
        let mut lasts = None;
        let start = match settings.deliver_policy {
            DeliverPolicy::All => first,
            DeliverPolicy::New => end,
            DeliverPolicy::Last if settings.filters.is_empty() => marks.last_sequence,
            DeliverPolicy::Last => {
                let last = settings
                    .filters
                    .iter()
                    .filter_map(|filter| messages.last_match(filter));
                last.max().unwrap_or(first)
            }
            DeliverPolicy::StartSequence(sequence) => sequence.max(first),
            DeliverPolicy::StartTime(time_ns) => {
                let start = messages.sequence_at(time_ns)?;
                match settings.filters.as_slice() {
                    [filter] => messages.next_match(filter, start).unwrap_or(start),
                    _ => start,
                }
            }
            DeliverPolicy::LastPerSubject => {
                let found = last_of_each(settings, messages, marks.last_sequence);
                let start = found.front().copied().unwrap_or(marks.last_sequence);
                lasts = Some(Lasts {
                    sequences: found,
                    until: marks.last_sequence,
                });
                start
            }
        };
        let start = match settings.deliver_policy {
            DeliverPolicy::StartSequence(_) => start,
            _ => start.min(end),
        };
        let state = AckState::new(settings.ack_policy, start.max(first));
        let lasts = lasts.filter(|lasts| !lasts.sequences.is_empty());
        Ok((state, Self::new(settings, messages, lasts)))
    }

    /// Where one goes on whose state was on disk.
    pub fn resume(
        settings: &ConsumerSettings,
        messages: &CommittedMessages,
        acks: &AckState,
        aside: Aside,
    ) -> Self {
        let lasts = (aside.lasts_until > 0).then(|| {
            let mut sequences = last_of_each(settings, messages, aside.lasts_until);
            sequences.retain(|sequence| *sequence >= acks.next_stream);
            Lasts {
                sequences,
                until: aside.lasts_until,
            }
        });
        Self::new(settings, messages, lasts)
    }

    /// What is written down beside the state of acknowledgements.
    pub fn aside(&self) -> Aside {
        Aside {
            lasts_until: self.lasts.as_ref().map_or(0, |lasts| lasts.until),
        }
    }

    /// Brings the number of messages to come up to date.
    pub fn recount(
        &mut self,
        messages: &CommittedMessages,
        filters: &[Vec<u8>],
        acks: &AckState,
        now_ns: i64,
        exactly: bool,
    ) {
        let parked = acks.parked_count() as u64;
        let (from, beside) = match &self.lasts {
            Some(lasts) => (
                (lasts.until + 1).max(acks.next_stream),
                parked + lasts.sequences.len() as u64,
            ),
            None => (acks.next_stream, parked),
        };
        self.count
            .count(messages, filters, from, beside, now_ns, exactly);
    }

    /// How many messages are to come, as of the last `recount`.
    pub fn count(&self) -> u64 {
        self.count.value()
    }

    /// The messages must be recounted.
    pub fn invalidate(&mut self) {
        self.count.invalidate();
    }

    /// One of them is delivered, or gone.
    pub fn take_one(&mut self) {
        self.count.take_one();
    }

    /// Whether something comes beside the order of the stream.
    pub fn has_lasts(&self) -> bool {
        self.lasts.is_some()
    }

    /// The next of the last messages of each subject, as long as there is one.
    pub fn next_last(&mut self, deliveries: &mut DeliveredMessages) -> Option<u64> {
        let lasts = self.lasts.as_mut()?;
        let next = lasts.sequences.front().copied();
        if next.is_none() {
            deliveries.pass_over(lasts.until + 1);
            self.lasts = None;
        }
        next
    }

    /// It is being delivered, or is gone.
    pub fn take_last(&mut self) {
        if let Some(lasts) = &mut self.lasts {
            lasts.sequences.pop_front();
        }
    }

    /// It was not delivered after all.
    pub fn put_back_last(&mut self, sequence: u64) {
        if let Some(lasts) = &mut self.lasts {
            debug_assert!(lasts.sequences.front().is_none_or(|next| sequence < *next));
            lasts.sequences.push_front(sequence);
        }
    }

    /// Forgets those of the last messages of each subject that are not there any more.
    pub fn retain_lasts(&mut self, is_there: impl Fn(u64) -> bool) {
        if let Some(lasts) = &mut self.lasts {
            lasts.sequences.retain(|sequence| is_there(*sequence));
        }
    }

    /// The consumer restarts, in the order of the stream.
    pub fn reset(&mut self) {
        self.lasts = None;
        self.invalidate();
    }

    /// When the next message is due, if messages are replayed with their pauses.
    pub fn replay_due_ns(&self) -> Option<i64> {
        self.replay.as_ref().map(|replay| replay.due_ns)
    }

    /// Whether the next message, which was stored then, is due.
    pub fn is_time(&mut self, sequence: u64, time_ns: i64, now_ns: i64) -> bool {
        let Some(replay) = &mut self.replay else {
            return true;
        };
        if sequence > replay.until {
            self.replay = None;
            return true;
        }
        let pause_ns = match replay.previous_time_ns {
            0 => 0,
            previous => time_ns.saturating_sub(previous),
        };
        let was_awaited = replay.due_ns > 0;
        if pause_ns > PAUSE_MIN_NS && !was_awaited {
            replay.due_ns = now_ns.saturating_add(pause_ns);
            return false;
        }
        replay.due_ns = 0;
        replay.previous_time_ns = time_ns;
        true
    }
}

fn last_of_each(
    settings: &ConsumerSettings,
    messages: &CommittedMessages,
    until: u64,
) -> VecDeque<u64> {
    let everything = [b">".to_vec()];
    let filters = match settings.filters.as_slice() {
        [] => &everything[..],
        filters => filters,
    };
    let mut sequences: Vec<u64> = Vec::new();
    for filter in filters {
        sequences.extend(messages.last_of_each_up_to(filter, until, usize::MAX));
    }
    sequences.sort_unstable();
    sequences.dedup();
    sequences.into()
}
