//! Cron patterns of six fields, `second minute hour day-of-month month day-of-week`, and when they are due next.
//!
//! A field is a list of numbers, names of months and days, ranges and steps; `*` and `?` are everything. If both days are restricted, either may
//! match. Where clocks change, the steps and their order are those of nats-server, so that the same times come out: an hour that is left out
//! in spring may move a time, or skip a day.
//! Invariant: a pattern that exists has at least one second, minute, hour and month; the search ends after `STEPS_MAX` steps.

use jiff::civil;
use jiff::tz::{Offset, TimeZone};
use jiff::Timestamp;

/// A time that does not come within this many years never comes.
const YEARS_MAX: i16 = 5;

/// In five years at most some 2,200 days, 72 months and the hours, minutes and seconds of a few days are tried.
const STEPS_MAX: u32 = 10_000;

/// Set in a field of days that does not restrict them.
const EVERY_DAY: u64 = 1 << 63;

const DAY_SECONDS: i64 = 86_400;
const HOUR_SECONDS: i64 = 3_600;
const MINUTE_SECONDS: i64 = 60;

const MONTHS: &[&str] = &[
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const DAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// A bit for each number that matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cron {
    seconds: u64,
    minutes: u64,
    hours: u64,
    days_of_month: u64,
    months: u64,
    days_of_week: u64,
}

impl Cron {
    pub fn read(text: &str) -> Option<Self> {
        let mut fields = text.split_whitespace();
        let mut field = |first, last, names| read_field(fields.next()?, first, last, names);
        let cron = Self {
            seconds: field(0, 59, &[])?,
            minutes: field(0, 59, &[])?,
            hours: field(0, 23, &[])?,
            days_of_month: field(1, 31, &[])?,
            months: field(1, 12, MONTHS)?,
            days_of_week: field(0, 6, DAYS)?,
        };
        // A list of nothing but commas is empty, and a search would find nothing.
        let has_all = [cron.seconds, cron.minutes, cron.hours, cron.months]
            .iter()
            .all(|bits| *bits != 0);
        (fields.next().is_none() && has_all).then_some(cron)
    }

    /// The first second after this one that matches.
    pub fn next_after(&self, zone: &TimeZone, second: i64) -> Option<i64> {
        let mut steps = 0..STEPS_MAX;
        let mut next = ZoneClock::at(zone, second.checked_add(1)?)?;
        let last_year = next.civil.year() + YEARS_MAX;
        // Whether everything below the field that was moved first is at its beginning.
        let mut is_truncated = false;
        'again: while next.civil.year() <= last_year {
            while !has(self.months, next.civil.month()) {
                steps.next()?;
                let begin = if is_truncated {
                    next
                } else {
                    next.month_begin()?
                };
                is_truncated = true;
                next = begin.next_month()?;
                if next.civil.month() == 1 {
                    continue 'again;
                }
            }
            while !self.matches_day(next.civil.date()) {
                steps.next()?;
                let begin = if is_truncated {
                    next
                } else {
                    next.day_begin()?
                };
                is_truncated = true;
                next = begin.next_day()?;
                if next.civil.day() == 1 {
                    continue 'again;
                }
            }
            while !has(self.hours, next.civil.hour()) {
                steps.next()?;
                let begin = if is_truncated {
                    next
                } else {
                    next.hour_begin()?
                };
                is_truncated = true;
                next = begin.later(HOUR_SECONDS)?;
                if next.civil.hour() == 0 {
                    continue 'again;
                }
            }
            while !has(self.minutes, next.civil.minute()) {
                steps.next()?;
                let begin = if is_truncated {
                    next
                } else {
                    next.minute_begin()?
                };
                is_truncated = true;
                next = begin.later(MINUTE_SECONDS)?;
                if next.civil.minute() == 0 {
                    continue 'again;
                }
            }
            while !has(self.seconds, next.civil.second()) {
                steps.next()?;
                is_truncated = true;
                next = next.later(1)?;
                if next.civil.second() == 0 {
                    continue 'again;
                }
            }
            return Some(next.second);
        }
        None
    }

    fn matches_day(&self, date: civil::Date) -> bool {
        let in_month = has(self.days_of_month, date.day());
        let in_week = has(self.days_of_week, date.weekday().to_sunday_zero_offset());
        if (self.days_of_month | self.days_of_week) & EVERY_DAY != 0 {
            in_month && in_week
        } else {
            in_month || in_week
        }
    }
}

fn has(bits: u64, number: i8) -> bool {
    bits >> number & 1 == 1
}

fn read_field(text: &str, first: u64, last: u64, names: &[&str]) -> Option<u64> {
    text.split(',')
        .filter(|part| !part.is_empty())
        .try_fold(0, |bits, part| {
            Some(bits | read_range(part, first, last, names)?)
        })
}

/// Reads `number`, `number-number` or `*`, each with an optional `/step`.
fn read_range(text: &str, first: u64, last: u64, names: &[&str]) -> Option<u64> {
    let (range, step) = match text.split_once('/') {
        Some((range, step)) => (range, Some(read_number(step)?)),
        None => (text, None),
    };
    let (low, high) = match range.split_once('-') {
        Some((low, high)) => (low, Some(high)),
        None => (range, None),
    };
    // What follows a star is not looked at, on nats-server neither.
    let is_everything = low == "*" || low == "?";
    let start = if is_everything {
        first
    } else {
        read_name(low, names, first)?
    };
    let end = match high {
        _ if is_everything => last,
        Some(high) => read_name(high, names, first)?,
        // A number with a step goes on to the end.
        None if step.is_some() => last,
        None => start,
    };
    let step = step.unwrap_or(1);
    if start < first || end > last || start > end || step == 0 {
        return None;
    }
    let numbers = (start..=end).step_by(usize::try_from(step).ok()?);
    let unrestricted = if is_everything && step == 1 {
        EVERY_DAY
    } else {
        0
    };
    Some(numbers.fold(unrestricted, |bits, number| bits | 1 << number))
}

/// A number, or the name of one; names are counted from the first number of the field.
fn read_name(text: &str, names: &[&str], first: u64) -> Option<u64> {
    let name = (first..).zip(names);
    name.filter(|(_, name)| name.eq_ignore_ascii_case(text))
        .map(|(number, _)| number)
        .next()
        .or_else(|| read_number(text))
}

fn read_number(text: &str) -> Option<u64> {
    u64::try_from(text.parse::<i64>().ok()?).ok()
}

/// A second, and what clocks of a zone show then.
#[derive(Clone, Copy)]
struct ZoneClock<'a> {
    zone: &'a TimeZone,
    second: i64,
    civil: civil::DateTime,
}

impl<'a> ZoneClock<'a> {
    fn at(zone: &'a TimeZone, second: i64) -> Option<Self> {
        let timestamp = Timestamp::from_second(second).ok()?;
        let civil = zone.to_offset(timestamp).to_datetime(timestamp);
        Some(Self {
            zone,
            second,
            civil,
        })
    }

    /// The second at which clocks show this. Where they show it twice or never, it is one nearby.
    fn showing(&self, date: civil::Date, second_of_day: i64) -> Option<Self> {
        let midnight = Offset::UTC.to_timestamp(date.at(0, 0, 0, 0)).ok()?;
        let shown = midnight.as_second() + second_of_day;
        let offset_at = |second| {
            let timestamp = Timestamp::from_second(second).ok()?;
            Some(i64::from(self.zone.to_offset(timestamp).seconds()))
        };
        // The offset is taken from nearby, and then, unless it is zero, from where that leads.
        let offset = match offset_at(shown)? {
            0 => 0,
            nearby => offset_at(shown - nearby)?,
        };
        Self::at(self.zone, shown - offset)
    }

    fn second_of_day(&self) -> i64 {
        i64::from(self.civil.hour()) * HOUR_SECONDS
            + i64::from(self.civil.minute()) * MINUTE_SECONDS
            + i64::from(self.civil.second())
    }

    fn later(&self, seconds: i64) -> Option<Self> {
        Self::at(self.zone, self.second + seconds)
    }

    fn month_begin(&self) -> Option<Self> {
        self.showing(self.civil.date().first_of_month(), 0)
    }

    fn day_begin(&self) -> Option<Self> {
        self.showing(self.civil.date(), 0)
    }

    fn hour_begin(&self) -> Option<Self> {
        let hour = i64::from(self.civil.hour());
        self.showing(self.civil.date(), hour * HOUR_SECONDS)
    }

    fn minute_begin(&self) -> Option<Self> {
        self.later(-self.second.rem_euclid(MINUTE_SECONDS))
    }

    /// The same day and time of the next month; a day that is not there is counted on from its end.
    fn next_month(&self) -> Option<Self> {
        let date = self.civil.date();
        let next = date.last_of_month().tomorrow().ok()?;
        let days = i64::from(date.day()) - 1;
        self.showing(next, days * DAY_SECONDS + self.second_of_day())
    }

    fn next_day(&self) -> Option<Self> {
        self.showing(self.civil.date().tomorrow().ok()?, self.second_of_day())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn next(pattern: &str, zone: &str, after: &str) -> Option<String> {
        let zone = TimeZone::get(zone).unwrap();
        let after: Timestamp = after.parse().unwrap();
        let second = Cron::read(pattern)?.next_after(&zone, after.as_second())?;
        Some(Timestamp::from_second(second).unwrap().to_string())
    }

    #[test]
    fn the_next_time_is_the_first_that_matches() {
        let after = "2026-11-15T18:34:20Z";
        for (pattern, expected) in [
            ("* * * * * *", "2026-11-15T18:34:21Z"),
            ("*/15 * * * * *", "2026-11-15T18:34:30Z"),
            ("20 34 18 * * *", "2026-11-16T18:34:20Z"),
            ("0 0 0 1 1 *", "2027-01-01T00:00:00Z"),
            ("0 0 0 29 feb ?", "2028-02-29T00:00:00Z"),
            ("0 0 12 13 * FRI", "2026-11-20T12:00:00Z"),
            ("0 0 12 13 * *", "2026-12-13T12:00:00Z"),
            ("0 0 12 13 * */2", "2026-11-17T12:00:00Z"),
            ("0 5/20 3-4,7 * * mon-wed", "2026-11-16T03:05:00Z"),
            ("*-x/30 ,0, * * * *", "2026-11-15T19:00:00Z"),
        ] {
            assert_eq!(
                next(pattern, "UTC", after).as_deref(),
                Some(expected),
                "{pattern}"
            );
        }
    }

    #[test]
    fn zones_and_their_changes_are_followed() {
        let berlin = |pattern, after| next(pattern, "Europe/Berlin", after).unwrap();

        assert_eq!(
            berlin("0 0 9 * * *", "2026-07-01T12:00:00Z"),
            "2026-07-02T07:00:00Z"
        );
        // Half past two is left out on the last Sunday of March, and comes twice on that of October.
        assert_eq!(
            berlin("0 30 2 * * *", "2027-03-27T12:00:00Z"),
            "2027-03-29T00:30:00Z"
        );
        assert_eq!(
            berlin("0 30 2 * * *", "2026-10-24T12:00:00Z"),
            "2026-10-25T00:30:00Z"
        );
        assert_eq!(
            berlin("0 30 2 * * *", "2026-10-25T00:30:00Z"),
            "2026-10-25T01:30:00Z"
        );
    }

    #[test]
    fn what_never_comes_has_no_next_time() {
        for pattern in [
            "0 0 0 31 2 *",
            "0 0 0 30 feb ?",
            "0 0 0 , * ,",
            "0 0 0 , * *",
        ] {
            assert!(Cron::read(pattern).is_some(), "{pattern}");
            assert_eq!(
                next(pattern, "UTC", "2026-11-15T18:34:20Z"),
                None,
                "{pattern}"
            );
        }
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for pattern in [
            "",
            "* * * * *",
            "* * * * * * *",
            "60 * * * * *",
            "* 60 * * * *",
            "* * 24 * * *",
            "* * * 0 * *",
            "* * * 32 * *",
            "* * * * 13 *",
            "* * * * * 7",
            "* * * * * sunday",
            "5-3 * * * * *",
            "1-2-3 * * * * *",
            "*/0 * * * * *",
            "*/-1 * * * * *",
            "1/2/3 * * * * *",
            ", * * * * *",
            "jan * * * * *",
            "-1 * * * * *",
            "1- * * * * *",
        ] {
            assert_eq!(Cron::read(pattern), None, "{pattern}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in prop_oneof!["\\PC{0,30}", "([0-9*?/,a-z-]{1,5} ){6}"], second in any::<i64>()) {
            if let Some(cron) = Cron::read(&text) {
                let _ = cron.next_after(&TimeZone::UTC, second);
            }
        }

        #[test]
        fn the_next_time_matches_and_is_later(
            fields in ("(\\*|[0-5]?[0-9])", "(\\*|\\*/7|[0-5]?[0-9])", "(\\*|1?[0-9])", "(\\*|[12]?[1-9])", "(\\*|[1-9])", "(\\*|[0-6])"),
            second in 0i64..4_000_000_000,
            zone in prop::sample::select(&["UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu"][..]),
        ) {
            let text = format!("{} {} {} {} {} {}", fields.0, fields.1, fields.2, fields.3, fields.4, fields.5);
            let cron = Cron::read(&text).unwrap();
            let zone = TimeZone::get(zone).unwrap();
            if let Some(next) = cron.next_after(&zone, second) {
                let civil = ZoneClock::at(&zone, next).unwrap().civil;
                prop_assert!(next > second);
                prop_assert!(has(cron.seconds, civil.second()) && has(cron.minutes, civil.minute()) && has(cron.hours, civil.hour()));
            }
        }
    }
}
