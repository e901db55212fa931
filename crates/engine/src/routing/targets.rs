//! Every subject that the server sends to because a user has named it, and whether the user may do that: the one
//! function that decides, for the engine and for Python.
//!
//! Messages sent for others (`republish`, dead letters, schedules, traces) need the right to publish there. Messages
//! sent for the client that asks (an answer, the deliveries of a consumer, the chunks of a snapshot or a scan) may also
//! go where it may subscribe, because that is what an inbox is: to `_INBOX.>`, or to subjects that its list of allowed
//! subscriptions names and that it is not denied to publish to. A user with unrestricted subscriptions could otherwise
//! have the server publish to anything the user may not publish to.
//! Invariant: a subject that is not known to be allowed is refused.

use crate::common::permissions::Permissions;

const INBOX: &[u8] = b"_INBOX.";

/// Why the server sends to a subject that a user has named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// The answer to a request, or the messages that it asks for.
    Reply,
    Deliver,
    Snapshot,
    Scan,
    Republish,
    DeadLetter,
    Schedule,
    Trace,
}

impl Target {
    pub const ALL: [Self; 8] = [
        Self::Reply,
        Self::Deliver,
        Self::Snapshot,
        Self::Scan,
        Self::Republish,
        Self::DeadLetter,
        Self::Schedule,
        Self::Trace,
    ];

    /// The same words as in Python and in refusals.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reply => "reply subject",
            Self::Deliver => "deliver subject",
            Self::Snapshot => "snapshot deliver subject",
            Self::Scan => "scan deliver subject",
            Self::Republish => "republish destination",
            Self::DeadLetter => "dead letters",
            Self::Schedule => "schedule target",
            Self::Trace => "trace destination",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|target| target.name() == name)
    }

    /// The messages are sent for the client that asks.
    fn is_for_sender(self) -> bool {
        matches!(
            self,
            Self::Reply | Self::Deliver | Self::Snapshot | Self::Scan
        )
    }
}

/// Whether the server may send to every subject of `pattern` for a user with these permissions; `None` may do everything.
pub fn allows(permissions: Option<&Permissions>, target: Target, pattern: &[u8]) -> bool {
    let Some(permissions) = permissions else {
        return true;
    };
    permissions.covers_publish(pattern)
        || target.is_for_sender()
            && permissions.covers_subscribe(pattern)
            && (pattern.starts_with(INBOX)
                || permissions.lists_subscriptions() && !permissions.denies_publish(pattern))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permissions(publish: &str, subscribe: &str) -> Permissions {
        let json = format!(r#"{{"publish":{publish},"subscribe":{subscribe},"responses":null}}"#);
        Permissions::new(&serde_json::from_str(&json).unwrap())
    }

    fn allowed(permissions: &Permissions, pattern: &str) -> (bool, bool) {
        let of = |target| allows(Some(permissions), target, pattern.as_bytes());
        (of(Target::Deliver), of(Target::Republish))
    }

    #[test]
    fn an_inbox_needs_the_right_to_listen_and_everything_else_a_list() {
        let unlisted = permissions(
            r#"{"allow":["orders.>"],"deny":[]}"#,
            r#"{"allow":null,"deny":[]}"#,
        );
        let listed = permissions(
            r#"{"allow":["orders.>"],"deny":["own.not"]}"#,
            r#"{"allow":["own.>","_INBOX.>"],"deny":[]}"#,
        );

        assert_eq!(allowed(&unlisted, "orders.a"), (true, true));
        assert_eq!(allowed(&unlisted, "_INBOX.x"), (true, false));
        assert_eq!(allowed(&unlisted, "own.a"), (false, false));
        assert_eq!(allowed(&listed, "own.a"), (true, false));
        assert_eq!(allowed(&listed, "own.not"), (false, false));
        assert_eq!(allowed(&listed, "own.>"), (false, false));
        assert_eq!(allowed(&listed, "_INBOX.x"), (true, false));
    }

    #[test]
    fn every_target_is_found_by_its_name_and_nothing_else_is() {
        for target in Target::ALL {
            assert_eq!(Target::named(target.name()), Some(target));
            assert!(allows(None, target, b"anything"));
        }
        assert_eq!(Target::named("anything"), None);
    }
}
