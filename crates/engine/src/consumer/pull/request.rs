//! What a client asks for when it pulls: nothing said, a number of messages, or a JSON object.
//!
//! | body                | meaning                                            |
//! |---------------------|----------------------------------------------------|
//! | empty               | one message, however long it takes                 |
//! | `5`, `+5`           | this many messages                                 |
//! | `{…}`               | as its fields say, the unknown ones passed over    |
//! | anything else       | as empty                                           |
//!
//! Numbers are kept as they came, also negative ones: nats-server counts down from them and reports in a status what is
//! left. Only a text with escapes and an error message allocate. A consumer's own limits are not checked here; only
//! what no consumer accepts is refused.

use std::borrow::Cow;

use crate::common::json_text::{Object, Problem};
use crate::common::white_space::trim;

const HEARTBEAT_TOO_LARGE: &str = "heartbeat value too large";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullRequest<'a> {
    /// How many messages; zero and less are served like one.
    pub batch: i64,
    /// Until when, from now on; zero is for ever, less is over already.
    pub expires_ns: i64,
    pub no_wait: bool,
    /// How many bytes at most; zero and negative values mean no limit.
    pub max_bytes: i64,
    /// Zero and negative values mean none.
    pub idle_heartbeat_ns: i64,
    pub group: Cow<'a, str>,
    pub min_pending: i64,
    pub min_ack_pending: i64,
    pub id: Cow<'a, str>,
    pub priority: i64,
    /// It was JSON: only then the priority group is looked at, and must be there for a consumer that has groups.
    pub is_object: bool,
}

impl Default for PullRequest<'_> {
    fn default() -> Self {
        Self {
            batch: 1,
            expires_ns: 0,
            no_wait: false,
            max_bytes: 0,
            idle_heartbeat_ns: 0,
            group: Cow::Borrowed(""),
            min_pending: 0,
            min_ack_pending: 0,
            id: Cow::Borrowed(""),
            priority: 0,
            is_object: false,
        }
    }
}

/// What follows `400 Bad Request - `.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRequest {
    pub reason: Cow<'static, str>,
}

impl From<Problem> for BadRequest {
    fn from(problem: Problem) -> Self {
        Self { reason: problem.0 }
    }
}

#[inline]
pub fn read(body: &[u8]) -> Result<PullRequest<'_>, BadRequest> {
    let body = trim(body);
    if body.first() == Some(&b'{') {
        return read_object(body);
    }
    // A number that does not fit is treated like any other text.
    let batch = std::str::from_utf8(body)
        .ok()
        .and_then(|text| text.parse().ok());
    Ok(PullRequest {
        batch: batch.unwrap_or(1),
        ..PullRequest::default()
    })
}

fn read_object(body: &[u8]) -> Result<PullRequest<'_>, BadRequest> {
    let mut request = PullRequest {
        batch: 0,
        is_object: true,
        ..PullRequest::default()
    };
    for member in Object::read(body)?.members() {
        let (field, type_name) = match () {
            _ if member.is("batch") => (&mut request.batch, "int"),
            _ if member.is("expires") => (&mut request.expires_ns, "time.Duration"),
            _ if member.is("max_bytes") => (&mut request.max_bytes, "int"),
            _ if member.is("idle_heartbeat") => (&mut request.idle_heartbeat_ns, "time.Duration"),
            _ if member.is("min_pending") => (&mut request.min_pending, "int64"),
            _ if member.is("min_ack_pending") => (&mut request.min_ack_pending, "int64"),
            _ if member.is("priority") => (&mut request.priority, "int"),
            _ if member.is("no_wait") => {
                request.no_wait = member.flag()?.unwrap_or(request.no_wait);
                continue;
            }
            _ if member.is("group") => {
                request.group = member.text()?.unwrap_or(request.group);
                continue;
            }
            _ if member.is("id") => {
                request.id = member.text()?.unwrap_or(request.id);
                continue;
            }
            _ => continue,
        };
        *field = member.integer(type_name)?.unwrap_or(*field);
    }
    // Twice a very long time is a short one on nats-server, which nobody is kept from asking for.
    if request.idle_heartbeat_ns > 0
        && request.idle_heartbeat_ns.wrapping_mul(2) > request.expires_ns
    {
        return Err(BadRequest {
            reason: HEARTBEAT_TOO_LARGE.into(),
        });
    }
    Ok(request)
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
