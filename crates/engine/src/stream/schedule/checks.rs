//! The headers of schedules: whether a publish may carry them, and which a scheduled message gets when it is due.
//!
//! The checks are in nats-server's order, so that the first failure is the same. They are not for messages that come from another stream,
//! where they were made already.
//! Invariant: nothing is changed here.

use super::schedule::{Schedule, ScheduleError};
use crate::common::subject::is_literal;
use crate::stream::publish::headers::PublishHeaders;
use crate::stream::publish::time_to_live::TimeToLive;
use crate::wire::stored_headers;

/// What the stream allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowed {
    pub schedules: bool,
    pub time_to_live: bool,
}

/// A message that may be scheduled.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedMessage {
    pub schedule: Schedule,
    pub next_ns: i64,
    /// The message must be stored with `Nats-Rollup: sub`, which it lacks: a subject has one schedule.
    pub lacks_rollup: bool,
}

/// Checks a publish to `subject`; `is_of_stream` says whether the stream accepts a subject. None if it is not a schedule.
pub fn check_schedule(
    headers: &PublishHeaders<'_>,
    subject: &[u8],
    allowed: Allowed,
    is_of_stream: impl Fn(&[u8]) -> bool,
    now_ns: i64,
) -> Result<Option<PlannedMessage>, ScheduleError> {
    let disabled = |error| {
        if allowed.schedules {
            error
        } else {
            ScheduleError::Disabled
        }
    };
    let schedule = Schedule::read(headers.schedule, headers.schedule_time_zone);
    let Some(schedule) = schedule.map_err(disabled)? else {
        return Ok(None);
    };
    // A pattern that is never due is invalid.
    let next_ns = schedule
        .next_after(now_ns)
        .ok_or_else(|| disabled(ScheduleError::PatternInvalid))?;
    if !allowed.schedules {
        return Err(ScheduleError::Disabled);
    }
    check_time_to_live_and_rollup(headers, allowed)?;
    let target = headers.schedule_target.unwrap_or_default();
    if !is_publishable(target) || target == subject {
        return Err(ScheduleError::TargetInvalid);
    }
    let source = headers.schedule_source.filter(|source| !source.is_empty());
    if source.is_some_and(|source| source == target || source == subject || !is_publishable(source))
    {
        return Err(ScheduleError::SourceInvalid);
    }
    if !is_of_stream(target) {
        return Err(ScheduleError::TargetInvalid);
    }
    if source.is_some_and(|source| !is_of_stream(source)) {
        return Err(ScheduleError::SourceInvalid);
    }
    let rollup = headers.rollup.unwrap_or_default();
    if !rollup.is_empty() && !rollup.eq_ignore_ascii_case(b"sub") {
        return Err(ScheduleError::RollupInvalid);
    }
    Ok(Some(PlannedMessage {
        schedule,
        next_ns,
        lacks_rollup: rollup.is_empty(),
    }))
}

fn check_time_to_live_and_rollup(
    headers: &PublishHeaders<'_>,
    allowed: Allowed,
) -> Result<(), ScheduleError> {
    let time_to_live = headers.schedule_time_to_live.unwrap_or_default();
    TimeToLive::read(time_to_live).map_err(|_| ScheduleError::TimeToLiveInvalid)?;
    let rollup = headers.schedule_rollup.unwrap_or_default();
    if !rollup.is_empty() && rollup != b"sub" {
        return Err(ScheduleError::RollupInvalid);
    }
    if !time_to_live.is_empty() && !allowed.time_to_live {
        return Err(ScheduleError::TimeToLiveDisabled);
    }
    Ok(())
}

/// Checks the headers with which a client ends a schedule, and returns the subject of that schedule.
///
/// `has_schedule` says whether the last message of a subject is a schedule, and nothing if there is no message.
pub fn check_end_of_schedule<'a>(
    headers: &PublishHeaders<'a>,
    subject: &[u8],
    allowed: Allowed,
    has_schedule: impl FnOnce(&[u8]) -> Option<bool>,
) -> Result<Option<&'a [u8]>, ScheduleError> {
    let scheduler = headers.scheduler.unwrap_or_default();
    match headers.schedule_next.unwrap_or_default() {
        b"" if scheduler.is_empty() => return Ok(None),
        b"purge" if is_publishable(scheduler) && scheduler != subject => {}
        _ => return Err(ScheduleError::SchedulerInvalid),
    }
    if !allowed.schedules {
        return Err(ScheduleError::Disabled);
    }
    match has_schedule(scheduler) {
        Some(false) => Err(ScheduleError::SchedulerInvalid),
        Some(true) | None => Ok(Some(scheduler)),
    }
}

/// Whether a message can be published to this: no wildcards, no empty tokens, no blanks.
fn is_publishable(subject: &[u8]) -> bool {
    let is_blank = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\x0c' | b'\r' | b' ');
    is_literal(subject) && !subject.iter().any(is_blank)
}

/// What a message that is due gets besides the headers it had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DueHeaders<'a> {
    /// The subject of the schedule.
    pub scheduler: &'a [u8],
    /// When it is due again, as text; none ends the schedule.
    pub next: Option<&'a [u8]>,
    pub time_to_live: &'a [u8],
    pub rollup: &'a [u8],
}

/// The headers a scheduled message does not keep: those of schedules, and those that could keep it from being stored.
const PREFIXES_REMOVED: [&[u8]; 2] = [b"Nats-Schedule", b"Nats-Expected-"];
const NAMES_REMOVED: [&[u8]; 3] = [b"Nats-Msg-Id", b"Nats-TTL", b"Nats-Rollup"];

impl DueHeaders<'_> {
    /// Appends the headers of the message that is published, made of those of the schedule or of its source.
    pub fn put_headers(&self, block: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        stored_headers::copy_without(block, is_removed, out);
        let next = self.next.unwrap_or(b"purge");
        stored_headers::add(out, start, b"Nats-Scheduler", self.scheduler);
        stored_headers::add(out, start, b"Nats-Schedule-Next", next);
        if !self.time_to_live.is_empty() {
            stored_headers::add(out, start, b"Nats-TTL", self.time_to_live);
        }
        if !self.rollup.is_empty() {
            stored_headers::add(out, start, b"Nats-Rollup", self.rollup);
        }
    }
}

fn is_removed(name: &[u8]) -> bool {
    let begins = |prefix: &&[u8]| name.starts_with(prefix);
    PREFIXES_REMOVED.iter().any(begins) || NAMES_REMOVED.contains(&name)
}

#[cfg(test)]
#[path = "checks_tests.rs"]
mod tests;
