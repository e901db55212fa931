//! What may happen to a store in a history, by chance.

use super::*;

pub fn step() -> impl Strategy<Value = Step> {
    let subject = 0..SUBJECTS.len();
    prop_oneof![
        12 => (0..SUBJECTS.len(), any::<bool>(), 0..200usize)
            .prop_map(|(subject, headers, payload)| Step::Append { subject, headers, payload }),
        3 => (subject.clone(), proptest::collection::vec(0..200usize, 2..7))
            .prop_map(|(subject, payloads)| Step::Group { subject, payloads }),
        1 => subject.clone().prop_map(|subject| Step::RollUp { subject }),
        1 => prop_oneof![
            subject.prop_map(|subject| Step::RollUpAll { subject }),
            (0..40u64).prop_map(|by| Step::Advance { by }),
        ],
        3 => (0..50usize, any::<bool>()).prop_map(|(pick, erase)| Step::Remove { pick, erase }),
        1 => (0..FILTERS.len() + 2, proptest::option::of(0..60usize), 0..4u64)
            .prop_map(|(filter, below, keep)| Step::Purge { filter, below, keep }),
        1 => (0..300i64, any::<bool>())
            .prop_map(|(after_ns, spare_last)| Step::Expire { after_ns, spare_last }),
        4 => Just(Step::Commit),
        2 => Just(Step::Maintenance),
        1 => Just(Step::Close),
        1 => Just(Step::Kill),
        1 => any::<u64>().prop_map(|seed| Step::PowerCut { seed }),
    ]
}

pub fn limits() -> impl Strategy<Value = Limits> {
    (
        proptest::option::of(5..40u64),
        proptest::option::of(1..4u64),
        proptest::option::of(200..900i64),
    )
        .prop_map(|(messages_max, per_subject_max, age_ns_max)| Limits {
            messages_max,
            bytes_max: None,
            age_ns_max,
            per_subject_max,
        })
}
