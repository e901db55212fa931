//! Timestamps as text, as the API writes them: RFC 3339 in UTC with as many digits as are needed.
//!
//! Written once per message of a direct get, so it allocates nothing.

const DAY_S: i64 = 86_400;
const SECOND_NS: i64 = 1_000_000_000;

/// Appends a timestamp, in nanoseconds since 1970.
pub fn write(out: &mut Vec<u8>, time_ns: i64) {
    let (seconds, nanoseconds) = (time_ns.div_euclid(SECOND_NS), time_ns.rem_euclid(SECOND_NS));
    let (days, of_day) = (seconds.div_euclid(DAY_S), seconds.rem_euclid(DAY_S));
    let (year, month, day) = civil(days);
    digits(out, year, 4);
    out.push(b'-');
    digits(out, month, 2);
    out.push(b'-');
    digits(out, day, 2);
    out.push(b'T');
    digits(out, of_day / 3600, 2);
    out.push(b':');
    digits(out, of_day / 60 % 60, 2);
    out.push(b':');
    digits(out, of_day % 60, 2);
    if nanoseconds > 0 {
        out.push(b'.');
        digits(out, nanoseconds, 9);
        while out.last() == Some(&b'0') {
            out.pop();
        }
    }
    out.push(b'Z');
}

/// Returns a timestamp as text.
pub fn text(time_ns: i64) -> String {
    let mut out = Vec::new();
    write(&mut out, time_ns);
    String::from_utf8_lossy(&out).into_owned()
}

fn digits(out: &mut Vec<u8>, value: i64, count: usize) {
    let start = out.len();
    out.resize(start + count, b'0');
    let mut rest = value;
    for place in out[start..].iter_mut().rev() {
        *place = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
}

/// Year, month and day of a day since 1970.
fn civil(days: i64) -> (i64, i64, i64) {
    // Counted from a first of March, so that the day a leap year adds comes last.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

/// The day since 1970 of a date.
fn day_of(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let shifted_month = if month > 2 { month - 3 } else { month + 9 };
    let of_year = (153 * shifted_month + 2) / 5 + day - 1;
    let day_of_era = of_era * 365 + of_era / 4 - of_era / 100 + of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Reads a timestamp; what lies outside of 64 bits of nanoseconds is the nearest that lies within.
pub fn read(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let number = |range: std::ops::Range<usize>| -> Option<i64> {
        let part = bytes.get(range)?;
        let valid = part.iter().all(u8::is_ascii_digit);
        valid.then(|| {
            part.iter()
                .fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'))
        })
    };
    let separators = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if separators
        .iter()
        .any(|(place, separator)| bytes.get(*place) != Some(separator))
    {
        return None;
    }
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    let last_day = match month {
        4 | 6 | 9 | 11 => 30,
        2 if (year % 4 == 0 && year % 100 != 0) || year % 400 == 0 => 29,
        2 => 28,
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=last_day).contains(&day) || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let mut rest = &bytes[19..];
    let mut nanoseconds = 0;
    if let Some(fraction) = rest.strip_prefix(b".") {
        let length = fraction
            .iter()
            .take_while(|digit| digit.is_ascii_digit())
            .count();
        if length == 0 {
            return None;
        }
        for place in 0..9 {
            let digit = fraction[..length]
                .get(place)
                .map_or(0, |digit| digit - b'0');
            nanoseconds = nanoseconds * 10 + i128::from(digit);
        }
        rest = &fraction[length..];
    }
    let offset_s = match rest {
        b"Z" => 0,
        [sign @ (b'+' | b'-'), hours_tens, hours_ones, b':', minutes_tens, minutes_ones] => {
            let digits = [hours_tens, hours_ones, minutes_tens, minutes_ones];
            if digits.iter().any(|digit| !digit.is_ascii_digit()) {
                return None;
            }
            let two = |tens: &u8, ones: &u8| i64::from(tens - b'0') * 10 + i64::from(ones - b'0');
            let (hours, minutes) = (two(hours_tens, hours_ones), two(minutes_tens, minutes_ones));
            if minutes > 59 {
                return None;
            }
            let offset = hours * 3600 + minutes * 60;
            if *sign == b'-' {
                -offset
            } else {
                offset
            }
        }
        _ => return None,
    };
    let seconds = day_of(year, month, day) * DAY_S + hour * 3600 + minute * 60 + second - offset_s;
    let all = i128::from(seconds) * i128::from(SECOND_NS) + nanoseconds;
    Some(i64::try_from(all).unwrap_or(if all < 0 { i64::MIN } else { i64::MAX }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(time_ns: i64) -> String {
        let mut out = Vec::new();
        write(&mut out, time_ns);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn timestamps_are_written_with_the_digits_they_need() {
        assert_eq!(written(0), "1970-01-01T00:00:00Z");
        assert_eq!(
            written(1_794_767_419_443_475_064),
            "2026-11-15T18:30:19.443475064Z"
        );
        assert_eq!(written(1_709_210_096_500_000_000), "2024-02-29T12:34:56.5Z");
        assert_eq!(written(-1), "1969-12-31T23:59:59.999999999Z");
    }

    #[test]
    fn zones_and_fractions_are_read() {
        assert_eq!(read("1970-01-01T01:30:00+01:30"), Some(0));
        assert_eq!(read("1970-01-01T00:00:00.0000000019Z"), Some(1));
        assert_eq!(read("0001-01-01T00:00:00Z"), Some(i64::MIN));
        for wrong in [
            "",
            "1970-01-01",
            "1970-13-01T00:00:00Z",
            "1970-02-29T00:00:00Z",
            "1970-01-01T24:00:00Z",
            "1970-01-01T00:00:00",
            "1970-01-01T00:00:00.Z",
            "1970-01-01T00:00:00+1:00",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_can_be_read(time_ns in any::<i64>()) {
            prop_assert_eq!(read(&written(time_ns)), Some(time_ns));
        }

        #[test]
        fn any_text_is_read(text in "\\PC{0,40}") {
            read(&text);
        }
    }
}
