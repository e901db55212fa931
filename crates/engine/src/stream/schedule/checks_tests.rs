//! Tests of the headers of schedules; what they expect was seen on nats-server 2.15.

use super::*;
use proptest::prelude::*;

const ALL: Allowed = Allowed {
    schedules: true,
    time_to_live: true,
};

const NOTHING: Allowed = Allowed {
    schedules: false,
    time_to_live: false,
};

fn block(headers: &str) -> Vec<u8> {
    let mut block = b"NATS/1.0\r\n".to_vec();
    for header in headers.split_terminator('|') {
        block.extend_from_slice(format!("Nats-{header}\r\n").as_bytes());
    }
    block.extend_from_slice(b"\r\n");
    block
}

/// Checks a publish to `s.plan` of a stream that has `s.*`.
fn check(headers: &str, allowed: Allowed) -> Result<Option<PlannedMessage>, ScheduleError> {
    let block = block(headers);
    let is_of_stream = |subject: &[u8]| crate::common::subject::matches(b"s.*", subject);
    check_schedule(
        &PublishHeaders::read(&block),
        b"s.plan",
        allowed,
        is_of_stream,
        0,
    )
}

#[test]
fn a_schedule_is_planned() {
    let planned = check("Schedule: @every 5s|Schedule-Target: s.out", ALL);

    let planned = planned.unwrap().unwrap();
    assert_eq!(planned.next_ns, 5_000_000_000);
    assert!(planned.lacks_rollup);
    let all = "Schedule: @hourly|Schedule-Time-Zone: UTC|Schedule-Target: s.out|Schedule-Source: s.in|Schedule-TTL: 5m|Schedule-Rollup: sub|Rollup: SUB";
    assert!(!check(all, ALL).unwrap().unwrap().lacks_rollup);
    assert_eq!(check("Schedule:|Schedule-Target: >", NOTHING), Ok(None));
}

#[test]
fn the_first_failure_is_that_of_nats_server() {
    use ScheduleError::*;
    for (headers, error) in [
        ("Schedule-Time-Zone: x", TimeZoneInvalid),
        ("Schedule: x|Schedule-TTL: x", PatternInvalid),
        ("Schedule: 0 0 0 31 2 *", PatternInvalid),
        (
            "Schedule: @daily|Schedule-TTL: x|Schedule-Rollup: x",
            TimeToLiveInvalid,
        ),
        ("Schedule: @daily|Schedule-Rollup: all", RollupInvalid),
        ("Schedule: @daily|Schedule-Rollup: SUB", RollupInvalid),
        ("Schedule: @daily", TargetInvalid),
        ("Schedule: @daily|Schedule-Target: s.*", TargetInvalid),
        ("Schedule: @daily|Schedule-Target: s.a b", TargetInvalid),
        ("Schedule: @daily|Schedule-Target: s.plan", TargetInvalid),
        ("Schedule: @daily|Schedule-Target: other", TargetInvalid),
        (
            "Schedule: @daily|Schedule-Target: other|Schedule-Source: s.>",
            SourceInvalid,
        ),
        (
            "Schedule: @daily|Schedule-Target: s.a|Schedule-Source: s.a",
            SourceInvalid,
        ),
        (
            "Schedule: @daily|Schedule-Target: s.a|Schedule-Source: s.plan",
            SourceInvalid,
        ),
        (
            "Schedule: @daily|Schedule-Target: s.a|Schedule-Source: other",
            SourceInvalid,
        ),
        (
            "Schedule: @daily|Schedule-Target: s.a|Rollup: all",
            RollupInvalid,
        ),
    ] {
        assert_eq!(check(headers, ALL), Err(error), "{headers}");
        assert_eq!(check(headers, NOTHING), Err(Disabled), "{headers}");
    }
    let no_time_to_live = Allowed {
        time_to_live: false,
        ..ALL
    };
    let headers = "Schedule: @daily|Schedule-TTL: 5m";
    assert_eq!(check(headers, no_time_to_live), Err(TimeToLiveDisabled));
}

#[test]
fn a_client_ends_a_schedule_and_nothing_else() {
    let check = |headers: &str, allowed, has_schedule| {
        let block = block(headers);
        check_end_of_schedule(&PublishHeaders::read(&block), b"s.out", allowed, |_| {
            has_schedule
        })
        .map(|subject| subject.map(<[u8]>::to_vec))
    };
    let invalid = Err(ScheduleError::SchedulerInvalid);
    let end = "Schedule-Next: purge|Scheduler: s.plan";

    assert_eq!(check(end, ALL, Some(true)), Ok(Some(b"s.plan".to_vec())));
    assert_eq!(check(end, ALL, None), Ok(Some(b"s.plan".to_vec())));
    assert_eq!(check(end, ALL, Some(false)), invalid);
    assert_eq!(check(end, NOTHING, None), Err(ScheduleError::Disabled));
    assert_eq!(check("Schedule-Next:|Scheduler:", ALL, None), Ok(None));
    for headers in [
        "Scheduler: s.plan",
        "Schedule-Next: purge",
        "Schedule-Next: PURGE|Scheduler: s.plan",
        "Schedule-Next: 2030-01-01T00:00:00Z|Scheduler: s.plan",
        "Schedule-Next: purge|Scheduler: s.out",
        "Schedule-Next: purge|Scheduler: s.*",
    ] {
        assert_eq!(check(headers, ALL, None), invalid, "{headers}");
        assert_eq!(check(headers, NOTHING, None), invalid, "{headers}");
    }
}

#[test]
fn a_message_that_is_due_gets_headers_of_its_own() {
    let mut block = block("Schedule: @daily|Schedule-Target: s.out|Msg-Id: 1|TTL: 1|Rollup: sub|Expected-Stream: S|TTLs: kept");
    block.splice(block.len() - 2.., *b"Mine: 1\r\n\r\n");
    let due = DueHeaders {
        scheduler: b"s.plan",
        next: Some(b"2030-01-01T00:00:00Z"),
        time_to_live: b"5m",
        rollup: b"sub",
    };
    let mut out = Vec::new();

    due.put_headers(&block, &mut out);

    let expected = "NATS/1.0\r\nNats-TTLs: kept\r\nMine: 1\r\nNats-Scheduler: s.plan\r\nNats-Schedule-Next: 2030-01-01T00:00:00Z\r\n\
        Nats-TTL: 5m\r\nNats-Rollup: sub\r\n\r\n";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
    let last = DueHeaders {
        next: None,
        time_to_live: b"",
        rollup: b"",
        ..due
    };
    let mut out = Vec::new();
    last.put_headers(b"", &mut out);
    let expected = "NATS/1.0\r\nNats-Scheduler: s.plan\r\nNats-Schedule-Next: purge\r\n\r\n";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

proptest! {
    #[test]
    fn any_headers_are_checked(headers in "(Schedule(-Target|-Source|-TTL|-Rollup|-Next|r)?: \\PC{0,12}\\|){0,6}", now_ns in any::<i64>()) {
        let block = block(&headers);
        let headers = PublishHeaders::read(&block);

        let _ = check_schedule(&headers, b"s.plan", ALL, |_| true, now_ns);
        let _ = check_end_of_schedule(&headers, b"s.plan", ALL, |_| None);
        let due = DueHeaders { scheduler: b"s", next: None, time_to_live: b"", rollup: b"" };
        due.put_headers(&block, &mut Vec::new());
        due.put_headers(block.strip_suffix(b"\r\n\r\n").unwrap_or(&block), &mut Vec::new());
    }
}
