//! What clients send to consumers, and what is kept of them: pulls, acknowledgements, definitions, states. No input may stop a reader.

#![no_main]

use jetlake_engine::wire::ack_subject::AckSubject;
use jetlake_engine::consumer::settings::AckPolicy;
use jetlake_engine::consumer::journal::state_record::Replayed;
use jetlake_engine::consumer::acknowledgement::body;
use jetlake_engine::wire::ack_subject;
use jetlake_engine::consumer::definition;
use jetlake_engine::consumer::pull::request;
use libfuzzer_sys::fuzz_target;

/// The records of one state are told apart by their first byte: its length.
fn records(mut input: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (length, rest) = input.split_first()?;
        let (record, rest) = rest.split_at((*length as usize).min(rest.len()));
        input = rest;
        Some(record)
    })
}

fuzz_target!(|input: &[u8]| {
    if let Ok(pull) = request::read(input) {
        let again = request::read(input);
        assert!(again.is_ok_and(|again| again.batch == pull.batch && again.expires_ns == pull.expires_ns));
    }
    let _ = body::read(input);
    let read: Option<AckSubject> = ack_subject::read(input);
    assert_eq!(read.is_some(), ack_subject::read(input).is_some());
    let _ = definition::read(input);
    for policy in [AckPolicy::None, AckPolicy::All, AckPolicy::Explicit] {
        let mut replayed = Replayed::default();
        for record in records(input) {
            replayed.apply(record);
        }
        let _ = replayed.finish(policy);
    }
});
