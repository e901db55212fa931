//! States that are written and read again, also with records missing.

use super::*;
use proptest::prelude::*;

use crate::consumer::acknowledgement::state::Again;

/// One thing that happens to a consumer.
#[derive(Debug, Clone, Copy)]
enum Happening {
    Deliver { skipped: u64 },
    Acknowledge { nth: usize },
    AcknowledgeAll { nth: usize },
    Requeue { nth: usize },
    Again,
    Undo { nth: usize },
    Filter,
    Touch { nth: usize },
    Park,
    Write { wholly: bool },
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        4 => (0u64..3).prop_map(|skipped| Happening::Deliver { skipped }),
        3 => (0usize..8).prop_map(|nth| Happening::Acknowledge { nth }),
        1 => (0usize..8).prop_map(|nth| Happening::AcknowledgeAll { nth }),
        2 => (0usize..8).prop_map(|nth| Happening::Requeue { nth }),
        2 => Just(Happening::Again),
        2 => (0usize..8).prop_map(|nth| Happening::Undo { nth }),
        1 => Just(Happening::Filter),
        1 => (0usize..8).prop_map(|nth| Happening::Touch { nth }),
        1 => Just(Happening::Park),
        2 => any::<bool>().prop_map(|wholly| Happening::Write { wholly }),
    ]
}

fn nth_pending(state: &AckState, nth: usize) -> Option<PendingMessage> {
    let delivered: Vec<PendingMessage> = state
        .pending
        .iter()
        .filter(|entry| entry.was_delivered())
        .copied()
        .collect();
    (!delivered.is_empty()).then(|| delivered[nth % delivered.len()])
}

fn carry_out(state: &mut AckState, happening: Happening, now_ns: i64) {
    match happening {
        Happening::Deliver { skipped } => {
            state.deliver(state.next_stream + skipped, now_ns);
        }
        Happening::Acknowledge { nth } => {
            if let Some(entry) = nth_pending(state, nth) {
                state.acknowledge(entry.stream_sequence);
            }
        }
        Happening::AcknowledgeAll { nth } => {
            if let Some(entry) = nth_pending(state, nth).filter(|_| !state.out_of_order) {
                state.acknowledge_all(entry.stream_sequence, entry.consumer_sequence);
            }
        }
        Happening::Requeue { nth } => {
            if let Some(entry) = nth_pending(state, nth) {
                state.requeue(entry.stream_sequence);
            }
        }
        Happening::Again => {
            if let Some(Again::Deliver { sequence }) = state.next_again(Some(3)) {
                state.redeliver(sequence, now_ns);
            }
        }
        Happening::Undo { nth } => {
            if let Some(entry) = nth_pending(state, nth) {
                state.undo(entry.stream_sequence);
            }
        }
        Happening::Filter => state.forget_settled(),
        Happening::Touch { nth } => {
            if let Some(entry) = nth_pending(state, nth) {
                state.touch(entry.stream_sequence, now_ns);
            }
        }
        Happening::Park if state.out_of_order => state.park(state.next_stream),
        Happening::Park | Happening::Write { .. } => {}
    }
}

/// Everything that can be observed of a state.
fn told(state: &AckState) -> impl PartialEq + std::fmt::Debug {
    (
        state.next_stream,
        state.next_consumer,
        state.delivered_stream,
        state.floor,
        state.settled_from,
        state
            .pending
            .iter()
            .filter(|entry| entry.stream_sequence > state.floor.stream)
            .copied()
            .collect::<Vec<_>>(),
        state
            .exceeded
            .iter()
            .map(|(sequence, count)| (*sequence, *count))
            .collect::<Vec<_>>(),
        [
            state.pending_count(),
            state.parked_count(),
            state.redelivered_count(),
            state.queued_count(),
        ],
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]
    #[test]
    fn what_is_read_is_what_was_written(
        happenings in proptest::collection::vec(happening(), 1..120),
        out_of_order in any::<bool>(),
    ) {
        let mut state = AckState::new(AckPolicy::Explicit, 1);
        state.out_of_order = out_of_order;
        let mut replayed = Replayed::default();
        let mut number = 0;
        for (now_ns, happening) in happenings.iter().chain([&Happening::Write { wholly: false }]).enumerate() {
            carry_out(&mut state, *happening, now_ns as i64);
            if let Happening::Write { wholly } = happening {
                number += 1;
                let mut record = Vec::new();
                encode(&mut state, Aside { lasts_until: 7 }, number, *wholly, &mut record);
                replayed.apply(&record);
            }
        }

        let (read, aside, last) = replayed.finish(AckPolicy::Explicit).unwrap();

        prop_assert_eq!(told(&read), told(&state));
        prop_assert_eq!((aside.lasts_until, last), (7, number));
    }

    #[test]
    fn what_changes_while_a_record_is_written_in_slices_is_in_the_one_behind_it(
        before in proptest::collection::vec(happening(), 1..80),
        meanwhile in proptest::collection::vec(happening(), 0..40),
        out_of_order in any::<bool>(),
        slice in 1usize..6,
    ) {
        let mut state = AckState::new(AckPolicy::Explicit, 1);
        state.out_of_order = out_of_order;
        let aside = Aside { lasts_until: 7 };
        for (now_ns, happening) in before.iter().enumerate() {
            carry_out(&mut state, *happening, now_ns as i64);
        }
        let mut sliced = SlicedRecord::begin(&mut state, aside, 1);
        for (now_ns, happening) in meanwhile.iter().enumerate() {
            sliced.add(&state, slice);
            carry_out(&mut state, *happening, 100 + now_ns as i64);
        }
        while sliced.add(&state, slice) {}
        let mut behind = Vec::new();
        encode(&mut state, aside, 2, false, &mut behind);
        let mut replayed = Replayed::default();
        replayed.apply(&sliced.record);
        replayed.apply(&behind);

        let (read, _, last) = replayed.finish(AckPolicy::Explicit).unwrap();

        prop_assert_eq!(told(&read), told(&state));
        prop_assert_eq!(last, 2);
    }

    #[test]
    fn no_bytes_make_it_panic(record in proptest::collection::vec(any::<u8>(), 0..200), flip in any::<bool>()) {
        let mut replayed = Replayed::default();
        let mut whole = Vec::new();
        encode(&mut AckState::new(AckPolicy::Explicit, 1), Aside::default(), 1, true, &mut whole);
        replayed.apply(&whole);
        let mut record = record;
        if flip && record.len() > 1 {
            record[0] = VERSION;
            record[1] = 0;
        }
        replayed.apply(&record);
        prop_assert!(replayed.finish(AckPolicy::Explicit).is_some());
    }
}

#[test]
fn after_a_missing_record_everything_above_the_floor_is_delivered_again() {
    let mut state = AckState::new(AckPolicy::Explicit, 1);
    let mut records = Vec::new();
    for number in 1..=3 {
        state.deliver(number, 0);
        if number == 1 {
            state.acknowledge(1);
        }
        let mut record = Vec::new();
        encode(
            &mut state,
            Aside::default(),
            number,
            number == 1,
            &mut record,
        );
        records.push(record);
    }
    let mut replayed = Replayed::default();
    replayed.apply(&records[0]);
    replayed.apply(&records[2]);

    let (read, _, _) = replayed.finish(AckPolicy::Explicit).unwrap();

    assert_eq!(read.next_stream, 2);
    assert_eq!(read.pending_count(), 0);
    assert_eq!(read.next_consumer, 4);
}

#[test]
fn a_record_of_the_first_version_is_read_and_nothing_in_it_counts_as_acknowledged() {
    // Version, whole, number, next stream and consumer sequence, delivered, floor (two), lasts; then four messages.
    let record = [
        1, 1, 9, 8, 6, 7, 1, 2, 0, //
        3, 1, 2, 50, 1, // 3: delivered once
        1, 1, 0, 0, 0, // 4: held back
        1, 2, 4, 60, 2, // 5: delivered twice, to be delivered again
        2, 2, 5, 70, 0, // 7: delivered to nobody, to be delivered again
    ];
    let mut replayed = Replayed::default();
    replayed.apply(&record);

    let (mut read, _, number) = replayed.finish(AckPolicy::Explicit).unwrap();

    assert_eq!((number, read.next_stream, read.next_consumer), (9, 8, 6));
    let standings: Vec<_> = read.pending.iter().map(|entry| entry.standing).collect();
    use Standing::{Delivered, Parked, Queued};
    assert_eq!(standings, [Delivered, Parked, Queued, Queued]);
    assert_eq!((read.pending_count(), read.parked_count()), (3, 1));
    assert!((1..8).all(|sequence| !read.has_settled(sequence)));
    for sequence in 3..8 {
        read.acknowledge(sequence);
    }
    assert_eq!((read.pending_count(), read.parked_count()), (0, 0));
}

#[test]
fn a_record_with_the_highest_numbers_there_are_is_read_or_left_out() {
    const HIGHEST: [u8; 10] = [255, 255, 255, 255, 255, 255, 255, 255, 255, 1];
    // Version, whole; then number, next stream and consumer sequence, delivered, floor (two), lasts, settled from.
    let highest = |whole: u8| [&[VERSION, whole][..], &HIGHEST.repeat(8)].concat();
    for records in [vec![1], vec![1, 0], vec![0, 0]] {
        for policy in [AckPolicy::None, AckPolicy::All, AckPolicy::Explicit] {
            let mut replayed = Replayed::default();
            for whole in &records {
                replayed.apply(&highest(*whole));
            }

            let (read, _, number) = replayed.finish(policy).unwrap();

            assert_eq!(number, u64::MAX);
            assert_eq!(read.pending_count(), 0);
        }
    }
}
