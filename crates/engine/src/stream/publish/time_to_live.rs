//! How long a message lives, as its header says: seconds, a duration, or for ever.

use std::fmt;

use crate::storage::message::EXPIRES_NEVER_NS;

const SECOND_NS: i128 = 1_000_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeToLive {
    /// Not even the age limit of the stream ends it.
    Never,
    Seconds(i64),
}

/// The text is not a time to live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Invalid;

impl TimeToLive {
    /// Reads the value of a header; an empty one says nothing.
    pub fn read(text: &[u8]) -> Result<Option<Self>, Invalid> {
        if text.is_empty() {
            return Ok(None);
        }
        if text.eq_ignore_ascii_case(b"never") {
            return Ok(Some(Self::Never));
        }
        let text = std::str::from_utf8(text).map_err(|_| Invalid)?;
        // A sign goes with a duration only.
        let is_number = !text.starts_with('+');
        let seconds = match text.parse::<i64>() {
            Ok(seconds) if is_number => seconds,
            _ => {
                let nanoseconds = duration_ns(text).ok_or(Invalid)?;
                i64::try_from(nanoseconds / SECOND_NS).map_err(|_| Invalid)?
            }
        };
        if seconds < 1 {
            return Err(Invalid);
        }
        Ok(Some(Self::Seconds(seconds)))
    }

    /// When a message stored now expires.
    pub fn expiry_ns(self, now_ns: i64) -> Option<i64> {
        match self {
            Self::Never => Some(EXPIRES_NEVER_NS),
            Self::Seconds(seconds) => {
                let length_ns = seconds.saturating_mul(SECOND_NS as i64);
                Some(now_ns.saturating_add(length_ns))
            }
        }
    }
}

impl fmt::Display for TimeToLive {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Never => formatter.write_str("never"),
            Self::Seconds(seconds) => write!(formatter, "{seconds}"),
        }
    }
}

/// A duration as nats-server writes it: `1h30m0s`, `1.5s`, `250ms`.
pub fn duration_text(duration_ns: i64) -> String {
    let sign = if duration_ns < 0 { "-" } else { "" };
    let all_ns = duration_ns.unsigned_abs();
    if all_ns == 0 {
        return "0s".to_owned();
    }
    let with_fraction = |unit_ns: u64, value_ns: u64| {
        let (whole, rest) = (value_ns / unit_ns, value_ns % unit_ns);
        if rest == 0 {
            return whole.to_string();
        }
        let digits = unit_ns.ilog10() as usize;
        let fraction = format!("{rest:0digits$}");
        format!("{whole}.{}", fraction.trim_end_matches('0'))
    };
    let text = match all_ns {
        1..1_000 => format!("{all_ns}ns"),
        1_000..1_000_000 => format!("{}µs", with_fraction(1_000, all_ns)),
        1_000_000..1_000_000_000 => format!("{}ms", with_fraction(1_000_000, all_ns)),
        _ => {
            let minutes = all_ns / 60_000_000_000;
            let seconds = with_fraction(1_000_000_000, all_ns % 60_000_000_000);
            match (minutes / 60, minutes % 60) {
                (0, 0) => format!("{seconds}s"),
                (0, minutes) => format!("{minutes}m{seconds}s"),
                (hours, minutes) => format!("{hours}h{minutes}m{seconds}s"),
            }
        }
    };
    format!("{sign}{text}")
}

/// A duration such as `1h30m` or `1.5s`: numbers, each with its unit, after an optional sign.
pub fn duration_ns(text: &str) -> Option<i128> {
    let (negative, mut rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total = 0i128;
    while !rest.is_empty() {
        let number_end = rest
            .find(|character: char| !character.is_ascii_digit() && character != '.')
            .unwrap_or(rest.len());
        let (number, behind) = rest.split_at(number_end);
        let unit_end = behind
            .find(|character: char| character.is_ascii_digit() || character == '.')
            .unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(unit_end);
        total = total.checked_add(scaled(number, unit_ns(unit)?)?)?;
        rest = behind;
    }
    let total = if negative { -total } else { total };
    // A value that does not fit into 64 bits is not a duration on nats-server either.
    i64::try_from(total).ok().map(i128::from)
}

fn unit_ns(unit: &str) -> Option<i128> {
    Some(match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => SECOND_NS,
        "m" => 60 * SECOND_NS,
        "h" => 3_600 * SECOND_NS,
        _ => return None,
    })
}

/// A decimal number of units.
fn scaled(number: &str, unit_ns: i128) -> Option<i128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let mut total = match whole {
        "" => 0,
        digits => digits.parse::<i64>().ok().map(i128::from)? * unit_ns,
    };
    let mut part_ns = unit_ns;
    for digit in fraction.bytes() {
        part_ns /= 10;
        total += i128::from(digit - b'0') * part_ns;
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations_are_written_as_nats_server_writes_them() {
        for (duration_ns, text) in [
            (0, "0s"),
            (1, "1ns"),
            (1_500, "1.5µs"),
            (250_000_000, "250ms"),
            (2_000_000_000, "2s"),
            (90_000_000_000, "1m30s"),
            (3_600_000_000_000, "1h0m0s"),
            (-5_400_500_000_000, "-1h30m0.5s"),
        ] {
            assert_eq!(duration_text(duration_ns), text);
            assert_eq!(super::duration_ns(text), Some(i128::from(duration_ns)));
        }
    }

    #[test]
    fn seconds_durations_and_never_are_understood() {
        for (text, seconds) in [
            ("1", 1),
            ("90", 90),
            ("1s", 1),
            ("1h30m", 5400),
            ("1.9s", 1),
            ("2500ms", 2),
        ] {
            let read = TimeToLive::read(text.as_bytes());
            assert_eq!(read, Ok(Some(TimeToLive::Seconds(seconds))), "{text}");
        }
        assert_eq!(TimeToLive::read(b"NEVER"), Ok(Some(TimeToLive::Never)));
        assert_eq!(TimeToLive::read(b""), Ok(None));
    }

    #[test]
    fn what_is_shorter_than_a_second_or_no_time_is_refused() {
        for text in [
            "0",
            "-1",
            "999ms",
            "-5s",
            "1x",
            "s",
            "1",
            "1.2.3s",
            "forever",
            "9999999999999999999s",
            ".",
        ] {
            if text != "1" {
                assert_eq!(TimeToLive::read(text.as_bytes()), Err(Invalid), "{text}");
            }
        }
        assert_eq!(TimeToLive::read(&[0xff]), Err(Invalid));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,12}") {
            let _ = TimeToLive::read(text.as_bytes());
        }
    }
}
