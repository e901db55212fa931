//! Whether a message may be stored: every check of a plain publish, in nats-server's order, so that the first failure is the same.
//!
//! The checks see the stream as it will be when everything staged is committed, because that is what the message comes after.
//! Invariant: nothing is changed here.

use super::acknowledgement::Refusal;
use super::counter;
use super::counter::{Counter, CounterError, Number};
use super::headers::PublishHeaders;
use super::time_to_live::TimeToLive;
use crate::common::subject;
use crate::stream::schedule::checks::{
    check_end_of_schedule, check_schedule, Allowed, PlannedMessage,
};
use crate::stream::schedule::schedule::ScheduleError;
use crate::stream::settings::{Discard, StreamSettings};
use crate::wire::trusted_headers::DEAD_LETTER_ID;

/// A record larger than this is refused, as on nats-server.
pub const RECORD_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// A header block larger than this is refused.
pub const HEADER_BYTES_MAX: usize = 65_535;

/// A message on its way into a stream.
#[derive(Debug, Clone, Copy)]
pub struct Publication<'a> {
    pub subject: &'a [u8],
    pub headers: &'a [u8],
    pub payload: &'a [u8],
    pub now_ns: i64,
}

/// The stream as the checks need to see it, staged messages included.
pub trait View {
    fn last_sequence(&self) -> u64;
    /// The last message whose subject matches; 0 if there is none.
    fn last_sequence_of(&self, filter: &[u8]) -> u64;
    fn messages(&self) -> u64;
    fn bytes(&self) -> u64;
    fn count_of(&self, subject: &[u8]) -> u64;
    /// What the oldest message of a subject counts for.
    fn oldest_bytes_of(&self, subject: &[u8]) -> u64;
    /// The sequence of the message that had this id.
    fn find_message_id(&self, id: &[u8]) -> Option<u64>;
    /// The id of the last message; empty if it had none.
    fn last_message_id(&self) -> &[u8];
    /// Whether a message of this subject stays: where nobody wants it, only its sequence is used.
    fn is_kept(&self, subject: &[u8]) -> bool;
    /// Whether all streams of the server together take up more than they may.
    fn is_server_full(&self) -> bool;
    /// Whether the account may store this many bytes more.
    fn account_has_room(&self, bytes: u64) -> bool;
    /// Whether the last message of a subject is a schedule; nothing if there is no message.
    fn has_schedule(&self, subject: &[u8]) -> Option<bool>;
    /// The counter of a subject.
    fn counter_of(&self, subject: &[u8]) -> Result<Counter, CounterError>;
}

/// What a message replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rollup {
    Subject,
    All,
}

/// What the checks found out about a message that may be stored.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PassedChecks {
    pub time_to_live: Option<TimeToLive>,
    pub rollup: Option<Rollup>,
    /// The counter with this message added; its total is what is stored.
    pub counter: Option<Counter>,
    /// It is a schedule.
    pub planned: Option<PlannedMessage>,
    /// It ends the schedule of this subject.
    pub ended_schedule: Option<Box<[u8]>>,
}

/// What to do with a message.
#[derive(Debug, Clone, PartialEq)]
pub enum CheckOutcome {
    Store(PassedChecks),
    /// It was stored before, with this sequence.
    Duplicate {
        sequence: u64,
    },
}

/// Goes through all checks.
pub fn check(
    settings: &StreamSettings,
    view: &impl View,
    publication: &Publication<'_>,
    headers: &PublishHeaders<'_>,
) -> Result<CheckOutcome, Refusal> {
    let size = settings.counting.bytes(
        publication.subject.len(),
        publication.headers.len(),
        publication.payload.len(),
    );
    if size > RECORD_BYTES_MAX {
        return Err(store_failed("message too large"));
    }
    if settings.sealed {
        return Err(refusal(400, 10109, "invalid operation on sealed stream"));
    }
    check_size(
        settings,
        publication.headers.len(),
        publication.payload.len(),
    )?;
    let increment = counter::check_increment(headers, publication.payload, settings.allow_counter)
        .map_err(CounterError::refusal)?;
    check_expected_stream(settings, headers)?;
    let time_to_live = headers.time_to_live.map(TimeToLive::read);
    if matches!(time_to_live, Some(Ok(Some(_)))) && !settings.allow_time_to_live {
        return Err(refusal(400, 10166, "per-message TTL is disabled"));
    }
    check_expected_sequences(view, publication, headers)?;
    let allowed = Allowed {
        schedules: settings.allow_schedules,
        time_to_live: settings.allow_time_to_live,
    };
    let is_of_stream = |subject: &[u8]| {
        let mut subjects = settings.subjects.iter();
        subjects.any(|pattern| subject::matches(pattern.as_bytes(), subject))
    };
    let own = publication.subject;
    let planned = check_schedule(headers, own, allowed, is_of_stream, publication.now_ns)
        .map_err(ScheduleError::refusal)?;
    let has_schedule = |subject: &[u8]| view.has_schedule(subject);
    let ended_schedule = check_end_of_schedule(headers, own, allowed, has_schedule)
        .map_err(ScheduleError::refusal)?;
    if headers
        .stream_source
        .is_some_and(|source| !source.is_empty())
    {
        let text = "message stream source header is not allowed";
        return Err(refusal(400, 10227, text));
    }
    if let Some(id) = headers.message_id.filter(|id| !id.is_empty()) {
        if let Some(sequence) = view.find_message_id(id) {
            return Ok(CheckOutcome::Duplicate { sequence });
        }
    }
    check_expected_message_id(view, headers)?;
    let rollup = check_rollup(settings, headers)?;
    let counter = count(settings, view, publication, increment)?;
    let payload_bytes = match &counter {
        Some(counter) => counter.payload_bytes(),
        None => publication.payload.len(),
    };
    if counter.is_some() {
        check_size(settings, publication.headers.len(), payload_bytes)?;
    }
    if view.is_server_full() {
        return Err(refusal(503, 10023, "insufficient resources"));
    }
    if !view.account_has_room(size) {
        let text = "resource limits exceeded for account";
        return Err(refusal(400, 10002, text));
    }
    let time_to_live = match time_to_live {
        None => None,
        Some(Ok(time_to_live)) => time_to_live,
        Some(Err(_)) => return Err(refusal(400, 10165, "invalid per-message TTL")),
    };
    check_room(settings, view, publication.subject, size, rollup)?;
    Ok(CheckOutcome::Store(PassedChecks {
        time_to_live,
        rollup,
        counter,
        planned,
        ended_schedule: ended_schedule.map(Into::into),
    }))
}

pub fn check_size(
    settings: &StreamSettings,
    headers_bytes: usize,
    payload_bytes: usize,
) -> Result<(), Refusal> {
    let length = (headers_bytes + payload_bytes) as u64;
    if settings.message_bytes_max.is_some_and(|most| length > most) {
        return Err(refusal(400, 10054, "message size exceeds maximum allowed"));
    }
    if headers_bytes > HEADER_BYTES_MAX {
        let text = "header size exceeds maximum allowed of 64k";
        return Err(refusal(400, 10097, text));
    }
    Ok(())
}

/// The counter with this message added, in a stream that counts.
fn count(
    settings: &StreamSettings,
    view: &impl View,
    publication: &Publication<'_>,
    increment: Option<Number>,
) -> Result<Option<Counter>, Refusal> {
    if !settings.allow_counter {
        return Ok(None);
    }
    let counted = increment
        .ok_or(CounterError::IncrementMissing)
        .and_then(|increment| {
            let mut counter = view.counter_of(publication.subject)?;
            counter.add(&increment);
            counter::check_size(
                publication.headers.len(),
                counter.payload_bytes(),
                settings.payload_bytes_max,
            )?;
            Ok(counter)
        });
    counted.map(Some).map_err(CounterError::refusal)
}

fn check_expected_stream(
    settings: &StreamSettings,
    headers: &PublishHeaders<'_>,
) -> Result<(), Refusal> {
    match headers.expected_stream.filter(|name| !name.is_empty()) {
        Some(name) if name != settings.name.as_bytes() => {
            Err(refusal(400, 10060, "expected stream does not match"))
        }
        _ => Ok(()),
    }
}

fn check_expected_sequences(
    view: &impl View,
    publication: &Publication<'_>,
    headers: &PublishHeaders<'_>,
) -> Result<(), Refusal> {
    let subject = headers.expected_last_subject_sequence_subject;
    let subject = subject.filter(|subject| !subject.is_empty());
    let expected_of_subject = headers.expected_last_subject_sequence;
    match expected_of_subject.filter(|expected| !expected.is_empty()) {
        Some(expected) => {
            let last = view.last_sequence_of(subject.unwrap_or(publication.subject));
            if number(expected) != Some(last) {
                return Err(wrong_last_sequence(last));
            }
        }
        None if subject.is_some() => {
            let text = "missing sequence for expected last sequence per subject";
            return Err(refusal(400, 10193, text));
        }
        None => {}
    }
    let expected = headers.expected_last_sequence;
    if let Some(expected) = expected.filter(|expected| !expected.is_empty()) {
        let last = view.last_sequence();
        if number(expected) != Some(last) {
            return Err(wrong_last_sequence(last));
        }
    }
    Ok(())
}

fn check_expected_message_id(
    view: &impl View,
    headers: &PublishHeaders<'_>,
) -> Result<(), Refusal> {
    let expected = headers.expected_last_message_id;
    match expected.filter(|expected| !expected.is_empty()) {
        Some(expected) if expected != view.last_message_id() => {
            let last = String::from_utf8_lossy(view.last_message_id()).into_owned();
            Err(refusal(400, 10070, &format!("wrong last msg ID: {last}")))
        }
        _ => Ok(()),
    }
}

fn check_rollup(
    settings: &StreamSettings,
    headers: &PublishHeaders<'_>,
) -> Result<Option<Rollup>, Refusal> {
    let Some(value) = headers.rollup.filter(|value| !value.is_empty()) else {
        return Ok(None);
    };
    if !settings.allow_rollup || settings.deny_purge {
        return Err(refusal(500, 10111, "rollup not permitted"));
    }
    let value = value.to_ascii_lowercase();
    match value.as_slice() {
        b"sub" => Ok(Some(Rollup::Subject)),
        b"all" => Ok(Some(Rollup::All)),
        other => {
            let text = format!("rollup value invalid: {:?}", String::from_utf8_lossy(other));
            Err(refusal(500, 10111, &text))
        }
    }
}

/// With `Discard::New` a message that does not fit is refused, unless it takes the place of another.
pub fn check_room(
    settings: &StreamSettings,
    view: &impl View,
    subject: &[u8],
    size: u64,
    rollup: Option<Rollup>,
) -> Result<(), Refusal> {
    if settings.discard == Discard::Old || !view.is_kept(subject) {
        return Ok(());
    }
    let limits = &settings.limits;
    let subject_full = limits
        .per_subject_max
        .is_some_and(|most| view.count_of(subject) >= most);
    if subject_full && settings.discard_new_per_subject && rollup.is_none() {
        return Err(store_failed("maximum messages per subject exceeded"));
    }
    let replaces = subject_full;
    if limits
        .messages_max
        .is_some_and(|most| view.messages() >= most)
        && !replaces
    {
        return Err(store_failed("maximum messages exceeded"));
    }
    if limits
        .bytes_max
        .is_some_and(|most| view.bytes() + size > most)
    {
        let fits = replaces && view.oldest_bytes_of(subject) >= size;
        if !fits {
            return Err(store_failed("maximum bytes exceeded"));
        }
    }
    Ok(())
}

/// A sequence in a header; a value that is not a number equals nothing.
fn number(text: &[u8]) -> Option<u64> {
    if !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn wrong_last_sequence(last: u64) -> Refusal {
    refusal(400, 10071, &format!("wrong last sequence: {last}"))
}

fn store_failed(text: &str) -> Refusal {
    refusal(503, 10077, text)
}

pub fn refusal(code: u16, error_code: u16, description: &str) -> Refusal {
    Refusal {
        code,
        error_code,
        description: description.to_owned(),
    }
}

/// Refuses an id that only the server gives.
pub fn check_message_id(id: Option<&[u8]>) -> Result<(), Refusal> {
    match id {
        Some(id) if id.starts_with(DEAD_LETTER_ID) => {
            let text =
                "message ids that begin with $dead/ are those of dead letters: choose another";
            Err(refusal(400, 10077, text))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
#[path = "checks_tests.rs"]
mod tests;
