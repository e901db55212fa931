//! Each check by itself, and which comes first.

use std::collections::BTreeMap;

use super::*;
use crate::common::subject;
use crate::storage::message::Limits;

#[derive(Default)]
struct Fake {
    /// Sequence, subject and size.
    messages: Vec<(u64, &'static str, u64)>,
    ids: BTreeMap<&'static str, u64>,
    last_id: &'static str,
}

impl View for Fake {
    fn is_kept(&self, _subject: &[u8]) -> bool {
        true
    }

    fn last_sequence(&self) -> u64 {
        self.messages.last().map_or(0, |(sequence, ..)| *sequence)
    }

    fn last_sequence_of(&self, filter: &[u8]) -> u64 {
        let mut newest = self.messages.iter().rev();
        let found = newest.find(|(_, name, _)| subject::matches(filter, name.as_bytes()));
        found.map_or(0, |(sequence, ..)| *sequence)
    }

    fn messages(&self) -> u64 {
        self.messages.len() as u64
    }

    fn bytes(&self) -> u64 {
        self.messages.iter().map(|(_, _, size)| size).sum()
    }

    fn count_of(&self, subject: &[u8]) -> u64 {
        let of = self.messages.iter();
        of.filter(|(_, name, _)| name.as_bytes() == subject).count() as u64
    }

    fn oldest_bytes_of(&self, subject: &[u8]) -> u64 {
        let mut oldest = self.messages.iter();
        let found = oldest.find(|(_, name, _)| name.as_bytes() == subject);
        found.map_or(0, |(_, _, size)| *size)
    }

    fn find_message_id(&self, id: &[u8]) -> Option<u64> {
        self.ids.get(std::str::from_utf8(id).unwrap()).copied()
    }

    fn last_message_id(&self) -> &[u8] {
        self.last_id.as_bytes()
    }

    fn is_server_full(&self) -> bool {
        false
    }

    fn account_has_room(&self, _bytes: u64) -> bool {
        true
    }

    fn has_schedule(&self, _subject: &[u8]) -> Option<bool> {
        None
    }

    fn counter_of(&self, _subject: &[u8]) -> Result<Counter, CounterError> {
        Ok(Counter::default())
    }
}

fn settings() -> StreamSettings {
    StreamSettings {
        name: "S".to_owned(),
        duplicate_window_ns: 1,
        ..StreamSettings::default()
    }
}

fn three_messages() -> Fake {
    Fake {
        messages: vec![(4, "a.x", 40), (5, "a.y", 40), (6, "a.x", 40)],
        ids: BTreeMap::from([("seen", 5)]),
        last_id: "last",
    }
}

fn code(settings: &StreamSettings, headers: &str) -> Result<CheckOutcome, (u16, String)> {
    let block = format!("NATS/1.0\r\n{headers}\r\n\r\n");
    let publication = Publication {
        subject: b"a.x",
        headers: block.as_bytes(),
        payload: b"payload",
        now_ns: 0,
    };
    let read = PublishHeaders::read(publication.headers);
    check(settings, &three_messages(), &publication, &read)
        .map_err(|refusal| (refusal.error_code, refusal.description))
}

const STORED: Result<CheckOutcome, (u16, String)> = Ok(CheckOutcome::Store(PassedChecks {
    time_to_live: None,
    rollup: None,
    counter: None,
    planned: None,
    ended_schedule: None,
}));

#[test]
fn expectations_hold_or_name_what_is() {
    let wrong = |number| Err((10071, format!("wrong last sequence: {number}")));
    for (headers, outcome) in [
        ("Nats-Expected-Stream: S", STORED),
        ("Nats-Expected-Last-Sequence: 6", STORED),
        ("Nats-Expected-Last-Sequence: 5", wrong(6)),
        ("Nats-Expected-Last-Sequence: six", wrong(6)),
        ("Nats-Expected-Last-Subject-Sequence: 6", STORED),
        ("Nats-Expected-Last-Subject-Sequence: 0", wrong(6)),
        (
            "Nats-Expected-Last-Subject-Sequence: 5\r\nNats-Expected-Last-Subject-Sequence-Subject: *.y",
            STORED,
        ),
        (
            "Nats-Expected-Last-Subject-Sequence: 1\r\nNats-Expected-Last-Subject-Sequence-Subject: none",
            wrong(0),
        ),
        ("Nats-Expected-Last-Msg-Id: last", STORED),
        (
            "Nats-Expected-Last-Msg-Id: other",
            Err((10070, "wrong last msg ID: last".to_owned())),
        ),
    ] {
        assert_eq!(code(&settings(), headers), outcome, "{headers}");
    }
    let other = code(&settings(), "Nats-Expected-Stream: T").unwrap_err();
    assert_eq!(other.0, 10060);
    let alone = "Nats-Expected-Last-Subject-Sequence-Subject: a.x";
    assert_eq!(code(&settings(), alone).unwrap_err().0, 10193);
}

#[test]
fn a_wrong_sequence_is_told_before_a_duplicate_and_a_duplicate_before_a_wrong_id() {
    let duplicate = Ok(CheckOutcome::Duplicate { sequence: 5 });

    let both = "Nats-Msg-Id: seen\r\nNats-Expected-Last-Sequence: 1";
    assert_eq!(code(&settings(), both).unwrap_err().0, 10071);
    let id = "Nats-Msg-Id: seen\r\nNats-Expected-Last-Msg-Id: other";
    assert_eq!(code(&settings(), id), duplicate);
}

#[test]
fn rollups_and_times_to_live_need_permission() {
    let generous = StreamSettings {
        allow_rollup: true,
        allow_time_to_live: true,
        ..settings()
    };
    let stored = |time_to_live, rollup| {
        Ok(CheckOutcome::Store(PassedChecks {
            time_to_live,
            rollup,
            counter: None,
            planned: None,
            ended_schedule: None,
        }))
    };

    assert_eq!(
        code(&settings(), "Nats-Rollup: sub").unwrap_err().1,
        "rollup not permitted"
    );
    assert_eq!(
        code(&generous, "Nats-Rollup: SUB"),
        stored(None, Some(Rollup::Subject))
    );
    assert_eq!(
        code(&generous, "Nats-Rollup: all"),
        stored(None, Some(Rollup::All))
    );
    let invalid = code(&generous, "Nats-Rollup: xx").unwrap_err();
    assert_eq!(invalid, (10111, "rollup value invalid: \"xx\"".to_owned()));
    assert_eq!(code(&settings(), "Nats-TTL: 5").unwrap_err().0, 10166);
    assert_eq!(
        code(&settings(), "Nats-TTL: nonsense").unwrap_err().0,
        10165
    );
    let lives = stored(Some(TimeToLive::Seconds(5)), None);
    assert_eq!(code(&generous, "Nats-TTL: 5s"), lives);
}

#[test]
fn a_full_stream_refuses_what_replaces_nothing() {
    let full = |limits, discard_new_per_subject| StreamSettings {
        limits,
        discard: Discard::New,
        discard_new_per_subject,
        ..settings()
    };
    let messages = Limits {
        messages_max: Some(3),
        ..Limits::default()
    };
    let per_subject = Limits {
        per_subject_max: Some(2),
        ..messages
    };
    let bytes = Limits {
        bytes_max: Some(150),
        ..Limits::default()
    };

    let refused = |settings: &StreamSettings| code(settings, "A: b").unwrap_err().1;
    assert_eq!(refused(&full(messages, false)), "maximum messages exceeded");
    assert_eq!(code(&full(per_subject, false), "A: b"), STORED);
    let text = "maximum messages per subject exceeded";
    assert_eq!(refused(&full(per_subject, true)), text);
    assert_eq!(refused(&full(bytes, false)), "maximum bytes exceeded");
    let old = StreamSettings {
        discard: Discard::Old,
        ..full(messages, false)
    };
    assert_eq!(code(&old, "A: b"), STORED);
}

#[test]
fn sizes_and_seals_are_respected() {
    let small = StreamSettings {
        message_bytes_max: Some(10),
        ..settings()
    };
    let sealed = StreamSettings {
        sealed: true,
        ..settings()
    };

    assert_eq!(code(&small, "A: b").unwrap_err().0, 10054);
    assert_eq!(code(&sealed, "A: b").unwrap_err().0, 10109);
    let long = format!("A: {}", "x".repeat(70_000));
    assert_eq!(code(&settings(), &long).unwrap_err().0, 10097);
}

#[test]
fn only_ids_of_dead_letters_are_refused() {
    assert!(check_message_id(None).is_ok() && check_message_id(Some(b"dead/1")).is_ok());
    assert_eq!(
        check_message_id(Some(b"$dead/x")).unwrap_err().error_code,
        10077
    );
}
