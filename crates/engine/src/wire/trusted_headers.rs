//! The headers that the server, or a tool of ours, believes: who may set each, and what becomes of one that a publisher sets. The one list of them.
//!
//! What is believed must not be for anybody to say. So a publisher's own is taken out before a message is looked at (`stored_headers`), or the message is refused, or the
//! header means what it says and nothing more. Invariant: no message that a publisher sent is stored with a header for which `is_owned` is true.

/// Says which batch of a query a message belongs to.
pub const BATCH: &[u8] = b"Jetlake-Batch";

/// Says which upload a message belongs to, and where in it.
pub const UPLOAD: &[u8] = b"Jetlake-Upload";

/// Where a message of a stream with sources comes from.
pub const STREAM_SOURCE: &[u8] = b"Nats-Stream-Source";

/// What a counter has added of each of its sources.
pub const COUNTER_SOURCES: &[u8] = b"Nats-Counter-Sources";

/// What every header begins with that is Jetlake's own.
const JETLAKE: &[u8] = b"Jetlake-";

/// What every header of a dead letter begins with.
pub const DEAD_LETTER: &[u8] = b"Jetlake-Dead-";

/// Says who asked, and is made by servers only.
pub const REQUEST_INFORMATION: &[u8] = b"Nats-Request-Info";

/// Where a publisher wants the trace of its message.
pub const TRACE_DESTINATION_NAME: &str = "Nats-Trace-Dest";
pub const TRACE_DESTINATION: &[u8] = TRACE_DESTINATION_NAME.as_bytes();

/// Stands where a trace was asked for that ends here: the message was traced, or must not be. No subject looks like this.
pub const TRACE_DISABLED: &[u8] = b"trace disabled";

/// The ids of dead letters begin so. A stream that knows an id stores nothing, so nobody else may have one of these.
pub const DEAD_LETTER_ID: &[u8] = b"$dead/";

/// What becomes of a header that a publisher sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Treatment {
    /// The message is stored without it.
    Removed,
    /// The message is refused, with this error code.
    Refused(u16),
    /// The message is not stored: it goes where the header says, with the publisher's own rights.
    Staged,
    /// It is stored with a value that asks for nothing.
    Disabled,
    /// It is stored and believed, as at nats-server: it says nothing that its publisher could not do anyway.
    Kept,
}

pub struct TrustedHeader {
    pub name: &'static [u8],
    /// Whether all names are meant that begin so.
    pub is_prefix: bool,
    pub set_by: &'static str,
    pub believed_by: &'static str,
    pub of_publishers: Treatment,
}

/// Headers that a reader believes when they are in a stored message, or in one that is published.
pub const TRUSTED: [TrustedHeader; 10] = [
    TrustedHeader {
        name: BATCH,
        is_prefix: false,
        set_by: "a commit of uploads",
        believed_by:
            "the next commit of the query after a crash: whether the batch is there already",
        of_publishers: Treatment::Removed,
    },
    TrustedHeader {
        name: DEAD_LETTER,
        is_prefix: true,
        set_by: "a consumer that gives a message up",
        believed_by: "`jetlake dead`: what the message was, and where it goes back to",
        of_publishers: Treatment::Removed,
    },
    TrustedHeader {
        name: UPLOAD,
        is_prefix: false,
        set_by: "whoever uploads rows",
        believed_by: "the stream: the message waits for a commit",
        of_publishers: Treatment::Staged,
    },
    TrustedHeader {
        name: STREAM_SOURCE,
        is_prefix: false,
        set_by: "a stream with sources",
        believed_by: "the same stream: how far it has come with its origin",
        of_publishers: Treatment::Refused(10227),
    },
    TrustedHeader {
        name: COUNTER_SOURCES,
        is_prefix: false,
        set_by: "a counter with sources",
        believed_by: "the same counter: what it has added of each origin",
        of_publishers: Treatment::Removed,
    },
    TrustedHeader {
        name: REQUEST_INFORMATION,
        is_prefix: false,
        set_by: "a server, for a service of another account",
        believed_by: "services: who asks",
        of_publishers: Treatment::Removed,
    },
    TrustedHeader {
        name: TRACE_DESTINATION,
        is_prefix: false,
        set_by: "a publisher, for this one publish",
        believed_by: "servers on the way: where to report",
        of_publishers: Treatment::Disabled,
    },
    TrustedHeader {
        name: b"Nats-Scheduler",
        is_prefix: false,
        set_by: "a schedule, on what it publishes",
        believed_by: "the same schedule after a start: when it is due next",
        of_publishers: Treatment::Refused(10212),
    },
    TrustedHeader {
        name: b"Nats-Schedule-Next",
        is_prefix: false,
        set_by: "a schedule, on what it publishes",
        believed_by: "the same schedule after a start: when it is due next",
        of_publishers: Treatment::Refused(10212),
    },
    TrustedHeader {
        name: b"Nats-Marker-Reason",
        is_prefix: false,
        set_by: "a stream, in the place of what has expired",
        believed_by: "the stream and key-value clients: the subject is deleted",
        of_publishers: Treatment::Kept,
    },
];

/// Whether a publisher's header of this name is taken out.
pub fn is_owned(name: &[u8]) -> bool {
    if name.starts_with(JETLAKE) {
        return name == BATCH || name.starts_with(DEAD_LETTER);
    }
    name == COUNTER_SOURCES || name == REQUEST_INFORMATION
}

/// Whether a line begins with a name that `is_owned` or is disabled, or may do so: a glance that costs little where nothing does.
pub fn may_be_owned(line: &[u8]) -> bool {
    match line {
        [b'J', ..] => line.starts_with(JETLAKE) && !line.starts_with(UPLOAD),
        [b'N', b'a', b't', b's', b'-', b'C' | b'R' | b'T', ..] => {
            line.starts_with(COUNTER_SOURCES)
                || line.starts_with(REQUEST_INFORMATION)
                || line.starts_with(TRACE_DESTINATION)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_those_that_are_removed_are_owned() {
        for header in &TRUSTED {
            let removed = header.of_publishers == Treatment::Removed;
            let name = match header.is_prefix {
                true => [header.name, b"Anything"].concat(),
                false => header.name.to_vec(),
            };

            assert_eq!(is_owned(&name), removed, "{}", name.escape_ascii());
            let changes = removed || header.of_publishers == Treatment::Disabled;
            let line = [&name, b": x".as_slice()].concat();
            assert_eq!(may_be_owned(&line), changes, "{}", name.escape_ascii());
        }
        assert!(!is_owned(b"Jetlake-Adapter") && !is_owned(b"Nats-Msg-Id") && !is_owned(b""));
    }
}
