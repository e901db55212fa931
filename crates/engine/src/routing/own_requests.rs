//! What clients may send to the engine itself below `$JS.`, with what it needs besides the right to its own subject, and where the engine sends because of it.
//!
//! Python answers everything else, and has a list of its own. Both together are the table in `docs/reference/api_rights.md`, which a test compares with this, and with every subject
//! in the source. Invariant: what the engine listens to is covered by one of these.

use serde::Serialize;

use super::targets::Target;

#[derive(Debug, Serialize)]
pub struct OwnRequest {
    /// `*` are names.
    pub pattern: &'static str,
    /// Subjects that the sender must also be allowed to publish to; `{}` are the names in their order.
    pub needs: &'static [&'static str],
    /// Further needs that no subject can express.
    pub condition: &'static str,
    /// Names of `Target`.
    pub targets: &'static [&'static str],
}

const fn plain(pattern: &'static str, targets: &'static [&'static str]) -> OwnRequest {
    OwnRequest {
        pattern,
        needs: &[],
        condition: "",
        targets,
    }
}

const REPLY: &[&str] = &["reply subject"];

/// All of them.
pub const OWN_REQUESTS: &[OwnRequest] = &[
    plain("$JS.API.STREAM.MSG.GET.*", REPLY),
    plain("$JS.API.DIRECT.GET.*", REPLY),
    plain("$JS.API.DIRECT.GET.*.>", REPLY),
    plain("$JS.API.CONSUMER.MSG.NEXT.*.*", REPLY),
    OwnRequest {
        needs: &["$JS.API.CONSUMER.MSG.NEXT.{}.{}"],
        ..plain("$JS.RN.*.*", REPLY)
    },
    OwnRequest {
        needs: &["$JS.API.CONSUMER.MSG.NEXT.{}.{}"],
        ..plain("$JS.STREAM.*.CONSUMER.*.NEXT", REPLY)
    },
    OwnRequest {
        condition: "the subject of every message that is uploaded",
        ..plain("$JS.API.STREAM.UPLOAD.COMMIT.*", REPLY)
    },
    OwnRequest {
        condition: "the subject of every message that is uploaded",
        ..plain("$JS.API.STREAM.UPLOAD.ABORT.*", REPLY)
    },
    plain("$JS.ACK.>", REPLY),
    OwnRequest {
        condition: "the same below `$JS.ACK.`",
        ..plain("$JS.A.>", REPLY)
    },
    plain("$JS.FC.>", &[]),
    plain("$JS.SNAPSHOT.ACK.>", &[]),
    plain("$JS.SNAPSHOT.RESTORE.*.*", REPLY),
];

/// As JSON, for Python.
pub fn as_json() -> Vec<u8> {
    serde_json::to_vec(OWN_REQUESTS).expect("it has nothing that JSON has not")
}

/// Whether the answer to a message on this subject comes from the server: its sender says where to, and has no receiver to ask.
pub fn is_answered_by_server(subject: &[u8]) -> bool {
    subject.starts_with(b"$JS.") || subject.starts_with(b"$SYS.")
}

/// Whether the server may answer to `reply` for a client with these permissions.
pub fn allows_reply(
    permissions: Option<&crate::common::permissions::Permissions>,
    reply: &[u8],
) -> bool {
    crate::routing::targets::allows(permissions, Target::Reply, reply)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_is_one() {
        for request in OWN_REQUESTS {
            let known = |name: &&str| Target::named(name).is_some();
            assert!(request.targets.iter().all(known), "{request:?}");
            assert!(is_answered_by_server(request.pattern.as_bytes()));
        }
    }
}
