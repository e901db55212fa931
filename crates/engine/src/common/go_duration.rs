//! Lengths of time as texts, read and written the way Go does it, because clients and nats-server are mostly written in it.
//!
//! Invariant: reading never fails on what writing has written, and gives the same length.

/// The largest length as a number without its sign.
const LENGTH_MAX: u64 = 1 << 63;

const SECOND_NS: u64 = 1_000_000_000;

/// Reads a length such as `1h30m`, `-1.5s` or `200ms`: numbers, each with its unit, after an optional sign. A lone `0` needs no unit.
pub fn parse(text: &[u8]) -> Option<i64> {
    let (is_negative, mut rest) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    if rest == b"0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total = 0u64;
    while !rest.is_empty() {
        // Two halves of the whole range add up to nothing on nats-server as well.
        total = total.wrapping_add(take_part(&mut rest)?);
        if total > LENGTH_MAX {
            return None;
        }
    }
    if is_negative {
        return Some(0i64.wrapping_sub_unsigned(total));
    }
    i64::try_from(total).ok()
}

/// One number with its unit.
fn take_part(rest: &mut &[u8]) -> Option<u64> {
    let (whole, has_whole) = take_whole(rest)?;
    let (fraction, scale, has_fraction) = take_fraction(rest);
    if !has_whole && !has_fraction {
        return None;
    }
    let unit_end = rest
        .iter()
        .position(|byte| *byte == b'.' || byte.is_ascii_digit())
        .unwrap_or(rest.len());
    let (unit, behind) = rest.split_at(unit_end);
    *rest = behind;
    let unit_ns = unit_ns(unit)?;
    if whole > LENGTH_MAX / unit_ns {
        return None;
    }
    let mut part = whole * unit_ns;
    if fraction > 0 {
        // In floating point, so that the last digit comes out as it does on nats-server.
        part += (fraction as f64 * (unit_ns as f64 / scale)) as u64;
    }
    (part <= LENGTH_MAX).then_some(part)
}

/// Digits before the point, and whether there were any.
fn take_whole(rest: &mut &[u8]) -> Option<(u64, bool)> {
    let mut whole = 0u64;
    let mut has_digit = false;
    while let [digit @ b'0'..=b'9', behind @ ..] = rest {
        whole = whole
            .checked_mul(10)?
            .checked_add(u64::from(digit - b'0'))
            .filter(|whole| *whole <= LENGTH_MAX)?;
        *rest = behind;
        has_digit = true;
    }
    Some((whole, has_digit))
}

/// Digits after the point, what to divide them by, and whether there were any. Digits that do not fit are not looked at.
fn take_fraction(rest: &mut &[u8]) -> (u64, f64, bool) {
    let (mut fraction, mut scale, mut has_digit) = (0u64, 1f64, false);
    let [b'.', behind @ ..] = rest else {
        return (fraction, scale, has_digit);
    };
    *rest = behind;
    let mut fits = true;
    while let [digit @ b'0'..=b'9', behind @ ..] = rest {
        *rest = behind;
        has_digit = true;
        fits = fits && fraction <= (LENGTH_MAX - 1) / 10;
        if fits {
            let longer = fraction * 10 + u64::from(digit - b'0');
            fits = longer <= LENGTH_MAX;
            if fits {
                fraction = longer;
                scale *= 10.0;
            }
        }
    }
    (fraction, scale, has_digit)
}

fn unit_ns(unit: &[u8]) -> Option<u64> {
    // Two letters look like a small m of micro: the sign for it, and the Greek letter.
    const MICRO_SIGN: &[u8] = "µs".as_bytes();
    const GREEK_MU: &[u8] = "μs".as_bytes();
    Some(match unit {
        b"ns" => 1,
        b"us" | MICRO_SIGN | GREEK_MU => 1_000,
        b"ms" => 1_000_000,
        b"s" => SECOND_NS,
        b"m" => 60 * SECOND_NS,
        b"h" => 3_600 * SECOND_NS,
        _ => return None,
    })
}

/// Appends a length: `1m0s`, `1.5s`, `250ms`, `0s`.
pub fn write(out: &mut Vec<u8>, length_ns: i64) {
    let all_ns = length_ns.unsigned_abs();
    if length_ns < 0 {
        out.push(b'-');
    }
    match all_ns {
        0 => out.extend_from_slice(b"0s"),
        1..1_000 => put_number(out, all_ns, 0, "ns"),
        1_000..1_000_000 => put_number(out, all_ns, 3, "µs"),
        1_000_000..SECOND_NS => put_number(out, all_ns, 6, "ms"),
        _ => {
            let minutes = all_ns / (60 * SECOND_NS);
            let hours = minutes / 60;
            if hours > 0 {
                put_number(out, hours, 0, "h");
            }
            if minutes > 0 {
                put_number(out, minutes % 60, 0, "m");
            }
            put_number(out, all_ns % (60 * SECOND_NS), 9, "s");
        }
    }
}

/// A number of which the last digits are a fraction, without zeros at its end, and its unit.
fn put_number(out: &mut Vec<u8>, value: u64, fraction_digits: u32, unit: &str) {
    let divisor = 10u64.pow(fraction_digits);
    let (whole, mut fraction) = (value / divisor, value % divisor);
    out.extend_from_slice(itoa::Buffer::new().format(whole).as_bytes());
    if fraction > 0 {
        out.push(b'.');
        let mut place = divisor / 10;
        while fraction > 0 {
            out.push(b'0' + (fraction / place) as u8);
            fraction %= place;
            place /= 10;
        }
    }
    out.extend_from_slice(unit.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(length_ns: i64) -> String {
        let mut out = Vec::new();
        write(&mut out, length_ns);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn lengths_are_written_as_go_writes_them() {
        for (length_ns, text) in [
            (0, "0s"),
            (1, "1ns"),
            (1_100, "1.1µs"),
            (2_200_000, "2.2ms"),
            (1_000_001, "1.000001ms"),
            (3_300_000_000, "3.3s"),
            (60_000_000_000, "1m0s"),
            (245_000_000_000, "4m5s"),
            (245_001_000_000, "4m5.001s"),
            (18_367_001_000_000, "5h6m7.001s"),
            (480_000_000_001, "8m0.000000001s"),
            (3_600_000_000_000, "1h0m0s"),
            (i64::MAX, "2562047h47m16.854775807s"),
            (i64::MIN, "-2562047h47m16.854775808s"),
        ] {
            assert_eq!(written(length_ns), text);
            assert_eq!(parse(text.as_bytes()), Some(length_ns), "{text}");
        }
    }

    #[test]
    fn lengths_are_read_as_go_reads_them() {
        for (text, length_ns) in [
            ("0", 0),
            ("-0", 0),
            ("+0", 0),
            ("5s", 5_000_000_000),
            ("+5s", 5_000_000_000),
            ("-5s", -5_000_000_000),
            ("5.0s", 5_000_000_000),
            ("5.s", 5_000_000_000),
            (".5s", 500_000_000),
            ("1.0040s", 1_004_000_000),
            ("100.00100s", 100_001_000_000),
            ("10ns", 10),
            ("11us", 11_000),
            ("12µs", 12_000),
            ("12μs10ns", 12_010),
            ("3h30m", 12_600_000_000_000),
            ("10.5s4m", 250_500_000_000),
            ("-2m3.4s", -123_400_000_000),
            ("1s1s", 2_000_000_000),
            ("52763797000ns", 52_763_797_000),
            ("0.3333333333333333333h", 1_200_000_000_000),
            ("9007199254740993ns", 9_007_199_254_740_993),
            ("9223372036854775807ns", i64::MAX),
            ("9223372036854775.807us", i64::MAX),
            ("-9223372036854775808ns", i64::MIN),
            ("-9223372036854.775808ms", i64::MIN),
            ("0.100000000000000000000h", 360_000_000_000),
            ("0.830103483285477580700h", 2_988_372_539_827),
            ("9223372036854775808ns9223372036854775808ns", 0),
        ] {
            assert_eq!(parse(text.as_bytes()), Some(length_ns), "{text}");
        }
    }

    #[test]
    fn what_go_refuses_is_refused() {
        for text in [
            "",
            "3",
            "-",
            "+",
            "s",
            ".",
            "-.",
            ".s",
            "+.s",
            "1d",
            "1 s",
            " 1s",
            "1S",
            "1s ",
            "1.2.3s",
            "1e3s",
            "--1s",
            "1s-1s",
            "3000000h",
            "9223372036854775808ns",
            "9223372036854775.808us",
            "9223372036854ms775us808ns",
            "-9223372036854775809ns",
            "18446744073709551616ns",
            "\u{85}1s",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
        assert_eq!(parse(b"1\xffs"), None);
    }

    proptest! {
        #[test]
        fn what_is_written_can_be_read(length_ns: i64) {
            // Fractions go through floating point, which knows fewer digits than a minute has nanoseconds, but enough of them.
            prop_assert_eq!(parse(written(length_ns).as_bytes()), Some(length_ns));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[-+]?([0-9.]{0,22}[a-zµ]{0,3}){0,4}") {
            let _ = parse(text.as_bytes());
        }
    }
}
