//! The rules of permissions, each on its own. The whole of them is compared with an oracle in `tests/permission_oracle.rs`.

use super::*;

fn permissions(json: &str) -> Permissions {
    Permissions::new(&serde_json::from_str(json).unwrap())
}

#[test]
fn deny_beats_allow() {
    let permissions = permissions(
        r#"{"publish":{"allow":["a.>"],"deny":["a.secret"]},"subscribe":{"allow":null,"deny":[]},"responses":null}"#,
    );

    assert!(permissions.allows_publish(b"a.b"));
    assert!(!permissions.allows_publish(b"a.secret"));
    assert!(!permissions.allows_publish(b"b"));
}

#[test]
fn a_subscription_must_lie_inside_what_is_allowed() {
    let permissions = permissions(
        r#"{"publish":{"allow":null,"deny":[]},"subscribe":{"allow":["foo.*"],"deny":[]},"responses":null}"#,
    );

    assert_eq!(
        permissions.subscribe(b"foo.bar", None),
        SubscribeVerdict::Allowed
    );
    assert_eq!(
        permissions.subscribe(b"foo.>", None),
        SubscribeVerdict::Denied
    );
}

#[test]
fn a_denied_part_is_kept_back_and_a_denied_whole_refused() {
    let permissions = permissions(
        r#"{"publish":{"allow":null,"deny":[]},"subscribe":{"allow":null,"deny":["x.secret"]},"responses":null}"#,
    );

    assert_eq!(
        permissions.subscribe(b"x.>", None),
        SubscribeVerdict::Filtered(vec![b"x.secret"[..].into()])
    );
    assert_eq!(
        permissions.subscribe(b"x.secret", Some(b"q")),
        SubscribeVerdict::Denied
    );
}

#[test]
fn named_groups_are_the_only_ones_on_their_subject() {
    let permissions = permissions(
        r#"{"publish":{"allow":null,"deny":[]},"subscribe":{"allow":["foo v1","bar","bar v1.*"],"deny":["bar v1.x"]},"responses":null}"#,
    );

    assert_eq!(
        permissions.subscribe(b"foo", None),
        SubscribeVerdict::Denied
    );
    assert_eq!(
        permissions.subscribe(b"foo", Some(b"v1")),
        SubscribeVerdict::Allowed
    );
    assert_eq!(
        permissions.subscribe(b"foo", Some(b"v2")),
        SubscribeVerdict::Denied
    );
    assert_eq!(
        permissions.subscribe(b"bar", None),
        SubscribeVerdict::Allowed
    );
    assert_eq!(
        permissions.subscribe(b"bar", Some(b"other")),
        SubscribeVerdict::Denied
    );
    assert_eq!(
        permissions.subscribe(b"bar", Some(b"v1.a")),
        SubscribeVerdict::Allowed
    );
    assert_eq!(
        permissions.subscribe(b"bar", Some(b"v1.x")),
        SubscribeVerdict::Denied
    );
}

#[test]
fn who_may_answer_may_publish_nothing_else() {
    let permissions = permissions(
        r#"{"publish":{"allow":null,"deny":[]},"subscribe":{"allow":null,"deny":[]},"responses":{"count_max":1,"expires_ms":1000}}"#,
    );

    assert!(!permissions.allows_publish(b"a"));
    assert!(permissions.responses().is_some());
}

#[test]
fn a_pattern_is_covered_when_all_of_it_is_allowed_and_none_of_it_denied() {
    for (allow, deny, pattern, expected) in [
        ("null", "[]", ">", true),
        ("null", r#"["a.b"]"#, "a.*", false),
        ("null", r#"["a.b queue"]"#, "a.b", false),
        (r#"["a.>"]"#, "[]", "a.*", true),
        (r#"["a.*"]"#, "[]", "a.>", false),
        (r#"["a.* queue"]"#, "[]", "a.b", false),
        ("[]", "[]", "a", false),
    ] {
        let lists = format!(r#"{{"allow":{allow},"deny":{deny}}}"#);
        let both = format!(r#"{{"publish":{lists},"subscribe":{lists},"responses":null}}"#);
        let permissions = permissions(&both);

        assert_eq!(
            permissions.covers_publish(pattern.as_bytes()),
            expected,
            "{both} {pattern}"
        );
        assert_eq!(
            permissions.covers_subscribe(pattern.as_bytes()),
            expected,
            "{both} {pattern}"
        );
    }
}
