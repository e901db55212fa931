//! When a scheduled message is due: once, at an interval, or by a cron pattern.
//!
//! | `Nats-Schedule`                            | due                                                |
//! |--------------------------------------------|----------------------------------------------------|
//! | `@at 2030-01-01T00:00:00Z`                 | once, at that time, at once if it is over          |
//! | `@every 1h30m`                             | that long after the whole second nearest to the last time |
//! | `0 30 9 * * mon-fri`, `@hourly`, `@daily`… | when the clocks of `Nats-Schedule-Time-Zone` match |
//!
//! The rules of time zones are those of the machine, which its keeper updates, or those built in where it has none.
//! Invariant: reading is the same as on nats-server, which understands a little more than its documents say.

use jiff::tz::TimeZone;
use jiff::{civil, Timestamp};

use super::cron::Cron;
use crate::stream::publish::acknowledgement::Refusal;
use crate::stream::publish::time_to_live::duration_ns;

const SECOND_NS: i64 = 1_000_000_000;
const DAY_SECONDS: i64 = 86_400;

/// The beginning of the year 1; a schedule at this time counts as none, as on nats-server.
const NO_TIME_SECOND: i64 = -62_135_596_800;

/// Why a message is not scheduled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScheduleError {
    /// The stream does not schedule.
    Disabled,
    /// It is not a pattern, it is never due, or its kind takes no time zone.
    PatternInvalid,
    /// The target is not a literal subject of the stream, or it is the schedule's own.
    TargetInvalid,
    TimeToLiveInvalid,
    /// The stream does not let messages say how long they live.
    TimeToLiveDisabled,
    /// Only the older messages of a subject can be rolled up.
    RollupInvalid,
    /// The source is not a literal subject of the stream, or it is the schedule's own or the target.
    SourceInvalid,
    /// A header that only the server writes, or a schedule that is not one.
    SchedulerInvalid,
    TimeZoneInvalid,
}

impl ScheduleError {
    pub fn refusal(self) -> Refusal {
        let (error_code, description) = match self {
            Self::Disabled => (10188, "message schedules is disabled"),
            Self::PatternInvalid => (10189, "message schedules pattern is invalid"),
            Self::TargetInvalid => (10190, "message schedules target is invalid"),
            Self::TimeToLiveInvalid => (10191, "message schedules invalid per-message TTL"),
            Self::TimeToLiveDisabled => (10166, "per-message TTL is disabled"),
            Self::RollupInvalid => (10192, "message schedules invalid rollup"),
            Self::SourceInvalid => (10203, "message schedules source is invalid"),
            Self::SchedulerInvalid => (10212, "message schedules invalid scheduler"),
            Self::TimeZoneInvalid => (10223, "message schedules time zone is invalid"),
        };
        Refusal {
            code: 400,
            error_code,
            description: description.to_owned(),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Schedule {
    At { time_ns: i64 },
    Every { length_ns: i64 },
    Cron { cron: Cron, zone: TimeZone },
}

impl Schedule {
    /// Reads the two headers; a zone must be right even where there is no schedule.
    pub fn read(
        pattern: Option<&[u8]>,
        zone: Option<&[u8]>,
    ) -> Result<Option<Self>, ScheduleError> {
        let zone = match zone {
            None => None,
            Some(name) => Some(find_zone(name).ok_or(ScheduleError::TimeZoneInvalid)?),
        };
        let pattern = pattern.unwrap_or_default();
        if pattern.is_empty() {
            return Ok(None);
        }
        let pattern = std::str::from_utf8(pattern).map_err(|_| ScheduleError::PatternInvalid)?;
        let schedule = if let Some(time) = pattern.strip_prefix("@at ") {
            let time = read_time(time).filter(|_| zone.is_none());
            if time == Some((NO_TIME_SECOND, 0)) {
                return Ok(None);
            }
            time.map(|(second, nanosecond)| Self::At {
                time_ns: nanoseconds(second, nanosecond),
            })
        } else if let Some(length) = pattern.strip_prefix("@every ") {
            duration_ns(length)
                .and_then(|length_ns| i64::try_from(length_ns).ok())
                .filter(|length_ns| *length_ns >= SECOND_NS && zone.is_none())
                .map(|length_ns| Self::Every { length_ns })
        } else {
            Cron::read(predefined(pattern)).map(|cron| Self::Cron {
                cron,
                zone: zone.unwrap_or(TimeZone::UTC),
            })
        };
        schedule.map(Some).ok_or(ScheduleError::PatternInvalid)
    }

    pub fn is_repeating(&self) -> bool {
        !matches!(self, Self::At { .. })
    }

    /// When it is due if it was published, or due last, at this time; none if that is never. A time that is fixed may be over.
    pub fn next_after(&self, now_ns: i64) -> Option<i64> {
        match self {
            Self::At { time_ns } => Some(*time_ns),
            Self::Every { length_ns } => Some(nearest_second_ns(now_ns).saturating_add(*length_ns)),
            Self::Cron { cron, zone } => {
                let second = cron.next_after(zone, now_ns.div_euclid(SECOND_NS))?;
                Some(nanoseconds(second, 0))
            }
        }
    }

    /// When it is due again if it was due at one time and it is now another: times that were missed are not made up for.
    pub fn next_after_missed(&self, due_ns: i64, now_ns: i64) -> Option<i64> {
        match self.next_after(due_ns)? {
            missed if missed < now_ns && self.is_repeating() => {
                self.next_after(nearest_second_ns(now_ns))
            }
            next => Some(next),
        }
    }

    /// Appends a time of this schedule as `Nats-Schedule-Next` has it, by the clocks of its zone.
    pub fn put_time(&self, time_ns: i64, out: &mut Vec<u8>) {
        let timestamp = Timestamp::from_nanosecond(i128::from(time_ns)).unwrap_or_default();
        let zone = match self {
            Self::Cron { zone, .. } => zone,
            _ => &TimeZone::UTC,
        };
        let offset = zone.to_offset(timestamp);
        let text = match offset.seconds() {
            0 => timestamp.to_string(),
            _ => timestamp.display_with_offset(offset).to_string(),
        };
        out.extend_from_slice(text.as_bytes());
    }
}

fn predefined(pattern: &str) -> &str {
    match pattern {
        "@yearly" | "@annually" => "0 0 0 1 1 *",
        "@monthly" => "0 0 0 1 * *",
        "@weekly" => "0 0 0 * * 0",
        "@daily" | "@midnight" => "0 0 0 * * *",
        "@hourly" => "0 0 * * * *",
        other => other,
    }
}

/// A half is rounded up.
fn nearest_second_ns(time_ns: i64) -> i64 {
    let past_ns = time_ns.rem_euclid(SECOND_NS);
    let begin_ns = time_ns.saturating_sub(past_ns);
    if past_ns * 2 < SECOND_NS {
        begin_ns
    } else {
        begin_ns.saturating_add(SECOND_NS)
    }
}

/// A time too far away for the number of nanoseconds is as far away as can be.
fn nanoseconds(second: i64, nanosecond: i64) -> i64 {
    let whole_ns = second.saturating_mul(SECOND_NS);
    whole_ns.saturating_add(nanosecond)
}

/// A zone by its exact name; `Local` is that of this machine.
fn find_zone(name: &[u8]) -> Option<TimeZone> {
    let name = std::str::from_utf8(name).ok()?;
    if name == "Local" {
        return Some(TimeZone::try_system().unwrap_or(TimeZone::UTC));
    }
    let zone = jiff::tz::db().get(name).ok()?;
    // Names are found whatever their case, which nats-server does not do.
    (zone.iana_name() == Some(name) && !zone.is_unknown()).then_some(zone)
}

/// Reads a time such as `2030-01-01T09:30:00.5+02:00`: seconds since 1970 and nanoseconds.
///
/// As on nats-server an hour may have one digit, a comma may stand for the point, digits after the ninth are not looked at, and an offset
/// may have 24 hours and 60 minutes.
pub fn read_time(text: &str) -> Option<(i64, i64)> {
    let mut rest = text.as_bytes();
    let year = take_number(&mut rest, 4)?;
    let month = take_after(&mut rest, b'-')?;
    let day = take_after(&mut rest, b'-')?;
    skip_byte(&mut rest, b'T')?;
    let hour_digits = if rest.get(1).is_some_and(u8::is_ascii_digit) {
        2
    } else {
        1
    };
    let hour = take_number(&mut rest, hour_digits)?;
    let minute = take_after(&mut rest, b':')?;
    let second = take_after(&mut rest, b':')?;
    let nanosecond = take_fraction(&mut rest);
    let offset_seconds = match rest {
        b"Z" => 0,
        [sign @ (b'+' | b'-'), offset @ ..] => {
            let mut rest = offset;
            let hours = take_number(&mut rest, 2)?;
            let minutes = take_after(&mut rest, b':')?;
            if !rest.is_empty() || hours > 24 || minutes > 60 {
                return None;
            }
            let seconds = (hours * 60 + minutes) * 60;
            if *sign == b'-' {
                -seconds
            } else {
                seconds
            }
        }
        _ => return None,
    };
    let part = |number: i64| i8::try_from(number).ok();
    let date = civil::Date::new(i16::try_from(year).ok()?, part(month)?, part(day)?).ok()?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let days = i64::from((date - civil::date(1970, 1, 1)).get_days());
    let second_of_day = hour * 3_600 + minute * 60 + second;
    Some((
        days * DAY_SECONDS + second_of_day - offset_seconds,
        nanosecond,
    ))
}

fn skip_byte(rest: &mut &[u8], byte: u8) -> Option<()> {
    *rest = rest.strip_prefix(&[byte])?;
    Some(())
}

fn take_number(rest: &mut &[u8], digits: usize) -> Option<i64> {
    let (number, behind) = rest.split_at_checked(digits)?;
    *rest = behind;
    number.iter().try_fold(0, |total, byte| {
        byte.is_ascii_digit()
            .then(|| total * 10 + i64::from(byte - b'0'))
    })
}

/// A number of two digits that follows a mark.
fn take_after(rest: &mut &[u8], mark: u8) -> Option<i64> {
    skip_byte(rest, mark)?;
    take_number(rest, 2)
}

/// Nanoseconds after a point or comma; none if no digit follows it.
fn take_fraction(rest: &mut &[u8]) -> i64 {
    let [b'.' | b',', digits @ ..] = rest else {
        return 0;
    };
    let count = digits
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    if count == 0 {
        return 0;
    }
    let (fraction, behind) = digits.split_at(count);
    *rest = behind;
    let padded = fraction.iter().chain(std::iter::repeat(&b'0')).take(9);
    padded.fold(0, |total, byte| total * 10 + i64::from(byte - b'0'))
}

#[cfg(test)]
#[path = "schedule_tests.rs"]
mod tests;
