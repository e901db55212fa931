//! The state of a consumer as archives have it: JSON in the form of nats-server, which knows nothing of what only the journal keeps.
//!
//! What is read comes from clients that have not logged in: numbers that contradict each other are cut to what the messages allow, so that at worst something is delivered
//! again. Invariant: a state that was read delivers nothing beyond the stream, and its floor is not above what was delivered.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::consumer::acknowledgement::pending_list::{PendingMessage, Standing};
use crate::consumer::acknowledgement::state::{AckState, Reached};
use crate::consumer::settings::AckPolicy;

/// Deliveries to a consumer are never more, so that no sum of them overflows.
const DELIVERIES_MAX: u64 = 1 << 62;

#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(default)]
struct SequencePair {
    consumer_seq: u64,
    stream_seq: u64,
}

#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(default)]
struct ArchivedPending {
    #[serde(rename = "Sequence")]
    sequence: u64,
    #[serde(rename = "Timestamp")]
    timestamp: i64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct ArchivedState {
    delivered: SequencePair,
    ack_floor: SequencePair,
    #[serde(skip_serializing_if = "Option::is_none")]
    pending: Option<BTreeMap<u64, ArchivedPending>>,
    /// How often beyond the first time.
    #[serde(skip_serializing_if = "Option::is_none")]
    redelivered: Option<BTreeMap<u64, u64>>,
}

/// The state as it was when the stream ended with this sequence.
pub fn write(state: &AckState, last_sequence: u64) -> serde_json::Result<String> {
    let delivered = state.delivered();
    let waiting = || {
        let entries = state.pending.iter();
        entries.filter(|entry| entry.was_delivered() && entry.stream_sequence <= last_sequence)
    };
    let again = |deliveries: u32| u64::from(deliveries.saturating_sub(1));
    let pending = waiting().map(|entry| {
        let kept = ArchivedPending {
            sequence: entry.consumer_sequence,
            timestamp: entry.time_ns,
        };
        (entry.stream_sequence, kept)
    });
    let pending: BTreeMap<_, _> = pending.collect();
    let mut redelivered: BTreeMap<u64, u64> = waiting()
        .filter(|entry| entry.deliveries > 1)
        .map(|entry| (entry.stream_sequence, again(entry.deliveries)))
        .collect();
    let given_up = state.exceeded.iter();
    redelivered.extend(given_up.map(|(sequence, deliveries)| (*sequence, again(*deliveries))));
    serde_json::to_string(&ArchivedState {
        delivered: SequencePair {
            consumer_seq: delivered.consumer,
            stream_seq: delivered.stream.min(last_sequence),
        },
        ack_floor: SequencePair {
            consumer_seq: state.floor.consumer,
            stream_seq: state.floor.stream.min(last_sequence),
        },
        pending: (!pending.is_empty()).then_some(pending),
        redelivered: (!redelivered.is_empty()).then_some(redelivered),
    })
}

/// Reads a state, for a stream that ends with this sequence.
pub fn read(
    text: &[u8],
    policy: AckPolicy,
    last_sequence: u64,
) -> Result<AckState, serde_json::Error> {
    let read: ArchivedState = serde_json::from_slice(text)?;
    let delivered = Reached {
        consumer: read.delivered.consumer_seq.min(DELIVERIES_MAX),
        stream: read.delivered.stream_seq.min(last_sequence),
    };
    let mut state = AckState::new(policy, delivered.stream + 1);
    state.next_consumer = delivered.consumer + 1;
    state.floor = Reached {
        consumer: read.ack_floor.consumer_seq.min(delivered.consumer),
        stream: read.ack_floor.stream_seq.min(delivered.stream),
    };
    let redelivered = read.redelivered.unwrap_or_default();
    let pending = read.pending.unwrap_or_default();
    let again = |sequence: &u64| {
        let count = redelivered.get(sequence).copied().unwrap_or(0);
        u32::try_from(count)
            .unwrap_or(u32::MAX - 1)
            .min(u32::MAX - 1)
    };
    let is_open = |sequence: &u64| (state.floor.stream + 1..=delivered.stream).contains(sequence);
    let open: Vec<u64> = pending.keys().copied().filter(is_open).collect();
    let given_up = redelivered.keys().copied().filter(is_open);
    let given_up: Vec<u64> = given_up
        .filter(|each| !pending.contains_key(each))
        .collect();
    for sequence in open {
        let waiting = pending[&sequence];
        let counted = waiting.sequence.clamp(1, delivered.consumer.max(1));
        let deliveries = again(&sequence) + 1;
        state.restore(PendingMessage::new(
            sequence,
            counted,
            waiting.timestamp.max(0),
            deliveries,
            Standing::Delivered,
        ));
    }
    for sequence in given_up {
        state.restore_exceeded(sequence, again(&sequence) + 1);
    }
    Ok(state)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn worked_with() -> AckState {
        let mut state = AckState::new(AckPolicy::Explicit, 1);
        for sequence in 1..=6 {
            state.deliver(sequence, 1_000 + sequence as i64);
        }
        state.redeliver(3, 2_000);
        state.acknowledge(1);
        state.acknowledge(4);
        state
    }

    #[test]
    fn a_state_is_written_as_nats_server_writes_it() {
        let text = write(&worked_with(), 100).unwrap();

        assert_eq!(
            text,
            r#"{"delivered":{"consumer_seq":7,"stream_seq":6},"ack_floor":{"consumer_seq":1,"stream_seq":1},"pending":{"2":{"Sequence":2,"Timestamp":1002},"3":{"Sequence":3,"Timestamp":2000},"5":{"Sequence":5,"Timestamp":1005},"6":{"Sequence":6,"Timestamp":1006}},"redelivered":{"3":1}}"#
        );
    }

    #[test]
    fn what_was_written_is_read_as_it_was() {
        let state = worked_with();
        let text = write(&state, 100).unwrap();

        let read = read(text.as_bytes(), AckPolicy::Explicit, 100).unwrap();

        assert_eq!(read.delivered(), state.delivered());
        assert_eq!(read.floor, state.floor);
        assert_eq!(write(&read, 100).unwrap(), text);
        for sequence in 1..10 {
            assert_eq!(read.needs(sequence), state.needs(sequence), "{sequence}");
        }
    }

    #[test]
    fn what_lies_beyond_the_end_of_the_stream_is_delivered_again() {
        let text = write(&worked_with(), 4).unwrap();

        let read = read(text.as_bytes(), AckPolicy::Explicit, 4).unwrap();

        assert_eq!((read.delivered().stream, read.next_stream), (4, 5));
        assert!(read.needs(5));
    }

    #[test]
    fn an_empty_state_has_delivered_nothing() {
        for text in ["{}", r#"{"pending":null,"redelivered":null,"other":1}"#] {
            let read = read(text.as_bytes(), AckPolicy::Explicit, 9).unwrap();
            assert_eq!(
                (read.next_stream, read.next_consumer, read.floor.stream),
                (1, 1, 0)
            );
        }
    }

    proptest! {
        #[test]
        fn no_numbers_make_a_state_that_contradicts_itself(
            numbers in prop::array::uniform4(prop_oneof![0u64..20, Just(u64::MAX), Just(1 << 63)]),
            pending in prop::collection::btree_map(prop_oneof![0u64..20, Just(u64::MAX)], (any::<u64>(), any::<i64>()), 0..6),
            redelivered in prop::collection::btree_map(0u64..20, any::<u64>(), 0..6),
            last in 0u64..20,
        ) {
            let pending: BTreeMap<_, _> = pending.into_iter().map(|(sequence, (counted, time))| {
                (sequence, ArchivedPending { sequence: counted, timestamp: time })
            }).collect();
            let text = serde_json::to_vec(&ArchivedState {
                delivered: SequencePair { consumer_seq: numbers[0], stream_seq: numbers[1] },
                ack_floor: SequencePair { consumer_seq: numbers[2], stream_seq: numbers[3] },
                pending: Some(pending),
                redelivered: Some(redelivered),
            }).unwrap();
            let mut state = read(&text, AckPolicy::Explicit, last).unwrap();
            prop_assert!(state.delivered().stream <= last && state.floor.stream <= state.delivered().stream);
            prop_assert!(state.pending_count() as u64 <= last);
            for sequence in 1..=last {
                state.acknowledge(sequence);
            }
            prop_assert_eq!(state.pending_count(), 0);
            state.deliver(last + 1, 0);
        }
    }
}
