//! Tests of schedules; what they expect was seen on nats-server 2.15.

use super::*;
use proptest::prelude::*;

/// 2026-11-15T18:34:20.6Z.
const NOW_NS: i64 = 1_794_767_660_600_000_000;

fn read(pattern: &str, zone: Option<&str>) -> Result<Option<Schedule>, ScheduleError> {
    Schedule::read(Some(pattern.as_bytes()), zone.map(str::as_bytes))
}

fn next(pattern: &str, zone: Option<&str>) -> String {
    let schedule = read(pattern, zone).unwrap().unwrap();
    let mut out = Vec::new();
    schedule.put_time(schedule.next_after(NOW_NS).unwrap(), &mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn each_kind_says_when_it_is_due() {
    for (pattern, zone, expected) in [
        ("@at 2020-01-01T00:00:00Z", None, "2020-01-01T00:00:00Z"),
        (
            "@at 2030-01-01T9:30:00,25+02:00",
            None,
            "2030-01-01T07:30:00.25Z",
        ),
        ("@every 1s", None, "2026-11-15T18:34:22Z"),
        ("@every 1h1.5s", None, "2026-11-15T19:34:22.5Z"),
        ("*/5 * * * * *", None, "2026-11-15T18:34:25Z"),
        ("@hourly", None, "2026-11-15T19:00:00Z"),
        ("@midnight", None, "2026-11-16T00:00:00Z"),
        ("@weekly", None, "2026-11-22T00:00:00Z"),
        ("@monthly", None, "2026-12-01T00:00:00Z"),
        ("@annually", None, "2027-01-01T00:00:00Z"),
        ("@daily", Some("Europe/Berlin"), "2026-11-16T00:00:00+01:00"),
        (
            "0 0 9 * 7 *",
            Some("America/St_Johns"),
            "2027-07-01T09:00:00-02:30",
        ),
        ("@daily", Some("Europe/London"), "2026-11-16T00:00:00Z"),
    ] {
        assert_eq!(next(pattern, zone), expected, "{pattern}");
    }
}

#[test]
fn missed_times_are_not_made_up_for() {
    let second = |count: i64| NOW_NS + count * SECOND_NS;
    let every = read("@every 10s", None).unwrap().unwrap();
    let cron = read("0 * * * * *", None).unwrap().unwrap();
    let once = read("@at 2020-01-01T00:00:00Z", None).unwrap().unwrap();

    assert!(every.is_repeating() && cron.is_repeating() && !once.is_repeating());
    let due_ns = nearest_second_ns(NOW_NS);
    let on_time = every.next_after_missed(due_ns, second(1));
    assert_eq!(on_time, Some(due_ns + 10 * SECOND_NS));
    let late = every.next_after_missed(due_ns, second(100));
    assert_eq!(late, Some(due_ns + 110 * SECOND_NS));
    let late = cron.next_after_missed(due_ns, second(100));
    assert_eq!(late, cron.next_after(second(100)));
    let over = once.next_after_missed(due_ns, second(100));
    assert_eq!(over, once.next_after(0));
}

#[test]
fn zones_go_with_clocks_only_and_are_known_by_their_exact_names() {
    let invalid = Err(ScheduleError::TimeZoneInvalid);

    for name in [
        "",
        "utc",
        "europe/berlin",
        "Europe",
        "Mars/Base",
        "../UTC",
        "Etc/Unknown",
    ] {
        assert_eq!(read("@daily", Some(name)), invalid, "{name}");
    }
    assert_eq!(Schedule::read(None, Some(b"Mars/Base")), invalid);
    assert_eq!(Schedule::read(None, Some(b"Local")), Ok(None));
    let invalid = Err(ScheduleError::PatternInvalid);
    assert_eq!(read("@every 1s", Some("UTC")), invalid);
    assert_eq!(read("@at 2030-01-01T00:00:00Z", Some("UTC")), invalid);
}

#[test]
fn no_pattern_and_the_time_before_all_are_no_schedule() {
    assert_eq!(Schedule::read(None, None), Ok(None));
    assert_eq!(read("", None), Ok(None));
    assert_eq!(read("@at 0001-01-01T01:00:00+01:00", None), Ok(None));
}

#[test]
fn what_is_no_time_is_refused() {
    for text in [
        "",
        "now",
        "2030-01-01",
        "2030-01-01 00:00:00Z",
        "2030-01-01t00:00:00Z",
        "2030-01-01T00:00:00z",
        "2030-01-01T00:00:00",
        "2030-01-01T00:00:00.Z",
        "2030-01-01T00:00:00Z ",
        "2030-1-01T00:00:00Z",
        "2030-02-29T00:00:00Z",
        "2030-01-01T24:00:00Z",
        "2030-01-01T00:00:60Z",
        "2030-01-01T00:00:00+2:00",
        "2030-01-01T00:00:00+0200",
        "2030-01-01T00:00:00+25:00",
        "2030-01-01T00:00:00+00:61",
        "02030-01-01T00:00:00Z",
    ] {
        assert_eq!(read_time(text), None, "{text}");
    }
    for (text, expected) in [
        ("1970-01-01T00:00:00Z", (0, 0)),
        ("1970-01-02T00:00:00+24:00", (0, 0)),
        ("1969-12-31T23:00:00-00:60", (0, 0)),
        ("1970-01-01T00:00:01.1234567899Z", (1, 123_456_789)),
    ] {
        assert_eq!(read_time(text), Some(expected), "{text}");
    }
    for pattern in [
        "@at",
        "@at  2030-01-01T00:00:00Z",
        "@every",
        "@every 999ms",
        "@every -1s",
        "@every 5",
        "@Daily",
        "@daily ",
        "@reboot",
    ] {
        let invalid = Err(ScheduleError::PatternInvalid);
        assert_eq!(read(pattern, None), invalid, "{pattern}");
    }
}

#[test]
fn times_far_away_stay_far_away() {
    let far = read("@at 9999-12-31T23:59:59Z", None).unwrap().unwrap();
    let past = read("@at 0000-01-01T00:00:00Z", None).unwrap().unwrap();

    assert_eq!(far.next_after(NOW_NS), Some(i64::MAX));
    assert_eq!(past.next_after(NOW_NS), Some(i64::MIN));
}

proptest! {
    #[test]
    fn any_headers_are_read_or_refused(
        pattern in prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..30),
            "@(at|every) \\PC{0,20}".prop_map(String::into_bytes),
            "@at [0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2]?[0-9]:[0-5][0-9]:[0-6][0-9][.,]?[0-9]{0,11}(Z|[+-][0-9]{2}:[0-9]{2})".prop_map(String::into_bytes),
            "@every [0-9]{1,20}(ns|s|m|h)".prop_map(String::into_bytes),
        ],
        zone in proptest::option::of(prop_oneof!["\\PC{0,12}", "(Asia|America)/(Tokyo|Santiago|Havana)"]),
        now_ns in any::<i64>(),
        later_ns in any::<i64>(),
    ) {
        if let Ok(Some(schedule)) = Schedule::read(Some(&pattern), zone.as_deref().map(str::as_bytes)) {
            if let Some(next_ns) = schedule.next_after(now_ns) {
                schedule.put_time(next_ns, &mut Vec::new());
            }
            let _ = schedule.next_after_missed(now_ns, later_ns);
        }
    }
}
