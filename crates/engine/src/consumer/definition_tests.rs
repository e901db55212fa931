//! Definitions as nats-server 2.15.1 writes them, and what they mean.

use super::*;
use proptest::prelude::*;

fn settings(config: &str) -> ConsumerSettings {
    try_settings(config).unwrap()
}

fn try_settings(config: &str) -> Result<ConsumerSettings, String> {
    read(format!(r#"{{"name":"C","config":{config}}}"#).as_bytes())
}

#[test]
fn a_pull_consumer_is_read() {
    let definition = br#"{"name":"E","created":"2026-11-16T08:20:24.38851327Z","config":{"durable_name":"E","name":"E",
        "deliver_policy":"by_start_time","opt_start_time":"1970-01-01T01:00:00.5+01:00","ack_policy":"explicit","ack_wait":1000000000,
        "max_deliver":4,"backoff":[1000000000,2000000000],"filter_subjects":["u.a","u.*.b"],"replay_policy":"original","sample_freq":"50%",
        "max_waiting":7,"max_ack_pending":1000,"headers_only":true,"max_batch":3,"max_expires":60000000000,"max_bytes":100,
        "inactive_threshold":5000000000,"num_replicas":0,"mem_storage":true,"description":"x",
        "metadata":{"_nats.level":"5","a":"b","jetlake.key":"subject.2","jetlake.nak_backoff":"true","jetlake.dialect":"2019"},"pause_until":"1970-01-01T00:00:02Z",
        "priority_groups":["a"],"priority_policy":"overflow"}}"#;

    let expected = ConsumerSettings {
        name: "E".to_owned(),
        durable: true,
        created_ns: 1_794_817_224_388_513_270,
        deliver_policy: DeliverPolicy::StartTime(500_000_000),
        ack_policy: AckPolicy::Explicit,
        replay_policy: ReplayPolicy::Original,
        ack_wait_ns: 1_000_000_000,
        back_off_ns: vec![1_000_000_000, 2_000_000_000],
        max_deliver: Some(4),
        filters: vec![b"u.a".to_vec(), b"u.*.b".to_vec()],
        sample_percent: Some(50),
        max_waiting: 7,
        max_ack_pending: Some(1000),
        headers_only: true,
        max_batch: 3,
        max_expires_ns: 60_000_000_000,
        max_bytes: 100,
        inactive_threshold_ns: 5_000_000_000,
        memory_storage: true,
        pause_until_ns: Some(2_000_000_000),
        priority_policy: PriorityPolicy::Overflow,
        priority_groups: vec!["a".to_owned()],
        key: Some(Key::SubjectToken(2)),
        nak_backoff: true,
        dialect: Some(Dialect::Of2019),
        ..ConsumerSettings::default()
    };
    assert_eq!(read(definition), Ok(expected));
}

#[test]
fn a_push_consumer_is_read() {
    let settings = settings(
        r#"{"name":"F","deliver_policy":"all","ack_policy":"none","max_deliver":-1,"filter_subject":"a.>","replay_policy":"instant",
            "rate_limit_bps":80,"flow_control":true,"deliver_subject":"d.9","deliver_group":"q","idle_heartbeat":5000000000,
            "inactive_threshold":5000000000,"num_replicas":0,"direct":true,"sourcing":true,"max_ack_pending":-1}"#,
    );

    assert!(settings.is_push() && settings.flow_control && settings.direct && settings.sourcing);
    assert!(!settings.durable);
    assert_eq!(settings.name, "C");
    assert_eq!(settings.filters, [b"a.>"]);
    assert_eq!(settings.rate_limit_bps, 80);
    assert_eq!(settings.deliver_group.as_deref(), Some("q"));
    assert_eq!(settings.idle_heartbeat_ns, 5_000_000_000);
    assert_eq!(
        (settings.max_deliver, settings.max_ack_pending),
        (None, None)
    );
}

#[test]
fn what_is_left_out_has_its_default() {
    let plain = settings("{}");

    let expected = ConsumerSettings {
        name: "C".to_owned(),
        max_waiting: 512,
        ..ConsumerSettings::default()
    };
    assert_eq!(plain, expected);
    assert_eq!(
        settings(r#"{"ack_policy":"all"}"#).ack_wait_ns,
        30_000_000_000
    );
    let backoff = settings(r#"{"ack_policy":"explicit","ack_wait":5,"backoff":[7,8]}"#);
    assert_eq!(backoff.ack_wait_ns, 7);
    let pinned = settings(r#"{"priority_policy":"pinned_client","priority_groups":["g"]}"#);
    assert_eq!(pinned.priority_timeout_ns, 120_000_000_000);
    assert_eq!(
        settings(r#"{"pause_until":"0001-01-01T00:00:00Z","metadata":null}"#),
        expected
    );
    assert!(settings(r#"{"ack_policy":"flow_control"}"#).flow_control);
}

#[test]
fn a_start_may_be_the_first_moment_of_the_year_one() {
    let settings =
        settings(r#"{"deliver_policy":"by_start_time","opt_start_time":"0001-01-01T00:00:00Z"}"#);

    assert_eq!(settings.deliver_policy, DeliverPolicy::StartTime(i64::MIN));
}

#[test]
fn a_start_may_be_a_sequence() {
    let settings =
        settings(r#"{"deliver_policy":"by_start_sequence","opt_start_seq":18446744073709551615}"#);

    assert_eq!(
        settings.deliver_policy,
        DeliverPolicy::StartSequence(u64::MAX)
    );
}

#[test]
fn a_key_is_a_token_or_a_header() {
    let key = |text: &str| {
        let config = format!(r#"{{"metadata":{{"jetlake.key":"{text}"}}}}"#);
        try_settings(&config).map(|settings| settings.key)
    };

    assert_eq!(key("subject.1"), Ok(Some(Key::SubjectToken(1))));
    assert_eq!(
        key("header.Customer.Id"),
        Ok(Some(Key::Header("Customer.Id".to_owned())))
    );
    for wrong in [
        "",
        "subject",
        "subject.",
        "subject.0",
        "subject.-1",
        "subject.x",
        "header.",
        "body.1",
    ] {
        assert!(key(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn samples_are_shares() {
    for (text, percent) in [
        ("", None),
        ("0", None),
        ("0%", None),
        ("7", Some(7)),
        ("99%", Some(99)),
        ("2147483648%", Some(100)),
    ] {
        assert_eq!(sample_percent(text), Ok(percent), "{text}");
    }
    for wrong in ["%", "x", "-1", "1.5", "5%%", "5 %"] {
        assert!(sample_percent(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn nonsense_is_refused() {
    for config in [
        r#"{"deliver_policy":"x"}"#,
        r#"{"deliver_policy":"by_start_time"}"#,
        r#"{"deliver_policy":"by_start_time","opt_start_time":"now"}"#,
        r#"{"ack_policy":"x"}"#,
        r#"{"replay_policy":"x"}"#,
        r#"{"priority_policy":"x"}"#,
        r#"{"ack_wait":-1}"#,
        r#"{"backoff":[-1]}"#,
        r#"{"filter_subject":"a..b"}"#,
        r#"{"filter_subjects":[""]}"#,
        r#"{"sample_freq":"x"}"#,
        r#"{"pause_until":"x"}"#,
        r#"{"max_deliver":"x"}"#,
        "5",
    ] {
        assert!(try_settings(config).is_err(), "{config}");
    }
    for definition in [
        "",
        "{}",
        r#"{"config":{}}"#,
        r#"{"name":"C","config":{},"created":"x"}"#,
    ] {
        assert!(read(definition.as_bytes()).is_err(), "{definition}");
    }
}

proptest! {
    #[test]
    fn any_number_is_read_or_refused(number: i64, field in "max_deliver|ack_wait|max_waiting|max_ack_pending|max_batch|max_expires|priority_timeout|idle_heartbeat") {
        let _ = try_settings(&format!(r#"{{"{field}":{number}}}"#));
    }
}
