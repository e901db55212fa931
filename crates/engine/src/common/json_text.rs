//! JSON in the body of a request, read where it stands: where its members are, and what is wrong with a text that is not
//! JSON.
//!
//! Nothing is built unless it is asked for, and nothing is allocated unless a text has escapes or a mistake. The error
//! texts are nats-server's own, because they are what it sends in a `400 Bad Request` and what people search for. Keys
//! are compared without regard to case, `null` is nothing.
//!
//! Invariant: `Object::read` returns or complains for any bytes, in time linear in their number and without recursion; the members are only asked for after it
//! has passed them.

use std::borrow::Cow;
use std::fmt::Write;

/// As deep as nats-server follows brackets.
const DEPTH_MAX: usize = 10_000;

/// The text that is reported to the sender of the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem(pub Cow<'static, str>);

const END_OF_TEXT: Problem = Problem(Cow::Borrowed("unexpected end of JSON input"));
const TOO_DEEP: Problem = Problem(Cow::Borrowed("exceeded max depth"));

/// A JSON object that is known to be one.
#[derive(Debug, Clone, Copy)]
pub struct Object<'a> {
    text: &'a [u8],
}

impl<'a> Object<'a> {
    /// Checks a text that begins with `{`. Mistakes of syntax come before all others.
    pub fn read(text: &'a [u8]) -> Result<Self, Problem> {
        let end = end_of_value(text, 0)?;
        let after = skip_spaces(text, end);
        if after < text.len() {
            return Err(character_problem(text, after, "after top-level value"));
        }
        Ok(Self { text })
    }

    /// Every member in its order, also those that stand twice.
    pub fn members(self) -> impl Iterator<Item = JsonMember<'a>> {
        let text = self.text;
        let mut position = skip_spaces(text, 0) + 1;
        std::iter::from_fn(move || {
            position = skip_spaces(text, position);
            if text.get(position) == Some(&b',') {
                position = skip_spaces(text, position + 1);
            }
            if text.get(position) != Some(&b'"') {
                return None;
            }
            let key_end = end_of_string(text, position).ok()?;
            let key = string_text(text.get(position..key_end)?);
            let colon = skip_spaces(text, key_end);
            let start = skip_spaces(text, colon + 1);
            let end = end_of_value(text, start).ok()?;
            position = end;
            let value = text.get(start..end)?;
            Some(JsonMember { key, value })
        })
    }
}

/// A key and the text of its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonMember<'a> {
    pub key: Cow<'a, str>,
    value: &'a [u8],
}

impl<'a> JsonMember<'a> {
    /// Whether it has this key, which is in small letters.
    pub fn is(&self, key: &str) -> bool {
        self.key == key || self.key.chars().map(folded).eq(key.chars())
    }

    /// A whole number; `1.0` and `1e2` are none. The type is the name it has in complaints.
    pub fn integer(&self, type_name: &str) -> Result<Option<i64>, Problem> {
        match self.value.first() {
            Some(b'n') => Ok(None),
            Some(b'-' | b'0'..=b'9') => {
                // A number is ASCII.
                let digits = std::str::from_utf8(self.value).unwrap_or_default();
                let number = digits.parse().ok();
                match number {
                    Some(number) => Ok(Some(number)),
                    None => Err(self.mismatch(&format!("number {digits}"), type_name)),
                }
            }
            _ => Err(self.mismatch(self.kind(), type_name)),
        }
    }

    pub fn flag(&self) -> Result<Option<bool>, Problem> {
        match self.value {
            b"null" => Ok(None),
            b"true" => Ok(Some(true)),
            b"false" => Ok(Some(false)),
            _ => Err(self.mismatch(self.kind(), "bool")),
        }
    }

    pub fn text(&self) -> Result<Option<Cow<'a, str>>, Problem> {
        match self.value.first() {
            Some(b'n') => Ok(None),
            Some(b'"') => Ok(Some(string_text(self.value))),
            _ => Err(self.mismatch(self.kind(), "string")),
        }
    }

    fn kind(&self) -> &'static str {
        match self.value.first() {
            Some(b'"') => "string",
            Some(b'{') => "object",
            Some(b'[') => "array",
            Some(b't' | b'f') => "bool",
            Some(b'n') => "null",
            _ => "number",
        }
    }

    fn mismatch(&self, kind: &str, type_name: &str) -> Problem {
        // nats-server reads into something without a name, so there is nothing before the point.
        let key = &self.key;
        let text = format!(
            "json: cannot unmarshal {kind} into Go struct field .{key} of type {type_name}"
        );
        Problem(text.into())
    }
}

/// Small letters; two letters outside of ASCII are the same as one inside, apart from case: the long s, and the Kelvin sign.
fn folded(character: char) -> char {
    match character {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        other => other.to_ascii_lowercase(),
    }
}

/// Which brackets are open, one bit each: set for an object.
struct Brackets {
    depth: usize,
    objects: [u64; DEPTH_MAX.div_ceil(64)],
}

impl Brackets {
    fn open(&mut self, is_object: bool) -> Result<(), Problem> {
        if self.depth >= DEPTH_MAX {
            return Err(TOO_DEEP);
        }
        let bit = 1 << (self.depth % 64);
        if is_object {
            self.objects[self.depth / 64] |= bit;
        } else {
            self.objects[self.depth / 64] &= !bit;
        }
        self.depth += 1;
        Ok(())
    }

    fn innermost_is_object(&self) -> Option<bool> {
        let place = self.depth.checked_sub(1)?;
        Some(self.objects[place / 64] >> (place % 64) & 1 == 1)
    }
}

/// Where the value that starts here ends.
fn end_of_value(text: &[u8], start: usize) -> Result<usize, Problem> {
    let mut position = skip_spaces(text, start);
    // What most values are needs no brackets.
    if !matches!(text.get(position), Some(b'{' | b'[')) {
        return end_of_scalar(text, position);
    }
    let mut brackets = Brackets {
        depth: 0,
        objects: [0; DEPTH_MAX.div_ceil(64)],
    };
    loop {
        position = skip_spaces(text, position);
        match text.get(position) {
            Some(opening @ (b'{' | b'[')) => {
                let is_object = *opening == b'{';
                brackets.open(is_object)?;
                position = skip_spaces(text, position + 1);
                let closing = if is_object { b'}' } else { b']' };
                if text.get(position) != Some(&closing) {
                    if is_object {
                        position = after_key(text, position)?;
                    }
                    continue;
                }
            }
            _ => position = end_of_scalar(text, position)?,
        }
        position = close(text, position, &mut brackets)?;
        if brackets.depth == 0 {
            return Ok(position);
        }
    }
}

/// Closes every bracket that ends here; returns where the next value of the innermost open one starts.
fn close(text: &[u8], start: usize, brackets: &mut Brackets) -> Result<usize, Problem> {
    let mut position = start;
    while let Some(is_object) = brackets.innermost_is_object() {
        position = skip_spaces(text, position);
        match (text.get(position), is_object) {
            (Some(b'}'), true) | (Some(b']'), false) => {
                brackets.depth -= 1;
                position += 1;
            }
            (Some(b','), true) => return after_key(text, skip_spaces(text, position + 1)),
            (Some(b','), false) => return Ok(position + 1),
            (_, true) => {
                return Err(character_problem(
                    text,
                    position,
                    "after object key:value pair",
                ))
            }
            (_, false) => return Err(character_problem(text, position, "after array element")),
        }
    }
    Ok(position)
}

/// Past a key and its colon.
fn after_key(text: &[u8], position: usize) -> Result<usize, Problem> {
    if text.get(position) != Some(&b'"') {
        let context = "looking for beginning of object key string";
        return Err(character_problem(text, position, context));
    }
    let colon = skip_spaces(text, end_of_string(text, position)?);
    if text.get(colon) != Some(&b':') {
        return Err(character_problem(text, colon, "after object key"));
    }
    Ok(colon + 1)
}

fn end_of_scalar(text: &[u8], position: usize) -> Result<usize, Problem> {
    let literal: &[u8] = match text.get(position) {
        Some(b'"') => return end_of_string(text, position),
        Some(b'-' | b'0'..=b'9') => return end_of_number(text, position),
        Some(b't') => b"true",
        Some(b'f') => b"false",
        Some(b'n') => b"null",
        _ => {
            let context = "looking for beginning of value";
            return Err(character_problem(text, position, context));
        }
    };
    for (offset, expected) in literal.iter().enumerate() {
        if text.get(position + offset) != Some(expected) {
            let literal = String::from_utf8_lossy(literal);
            let context = format!("in literal {literal} (expecting '{}')", *expected as char);
            return Err(character_problem(text, position + offset, &context));
        }
    }
    Ok(position + literal.len())
}

fn end_of_number(text: &[u8], start: usize) -> Result<usize, Problem> {
    let mut position = start;
    if text.get(position) == Some(&b'-') {
        position += 1;
    }
    position = match text.get(position) {
        Some(b'0') => position + 1,
        _ => after_digits(text, position)?,
    };
    if text.get(position) == Some(&b'.') {
        position = after_digits(text, position + 1)?;
    }
    if let Some(b'e' | b'E') = text.get(position) {
        position += 1;
        if let Some(b'+' | b'-') = text.get(position) {
            position += 1;
        }
        position = after_digits(text, position)?;
    }
    Ok(position)
}

fn after_digits(text: &[u8], start: usize) -> Result<usize, Problem> {
    let digits = text.get(start..).unwrap_or_default().iter();
    match digits.take_while(|byte| byte.is_ascii_digit()).count() {
        0 => Err(character_problem(text, start, "in numeric literal")),
        count => Ok(start + count),
    }
}

fn end_of_string(text: &[u8], start: usize) -> Result<usize, Problem> {
    let mut position = start + 1;
    loop {
        match text.get(position) {
            None => return Err(END_OF_TEXT),
            Some(b'"') => return Ok(position + 1),
            Some(b'\\') => position = after_escape(text, position)?,
            Some(0..0x20) => return Err(character_problem(text, position, "in string")),
            Some(_) => position += 1,
        }
    }
}

fn after_escape(text: &[u8], position: usize) -> Result<usize, Problem> {
    const UNICODE_LENGTH: usize = 6;
    let rest = text.get(position..).unwrap_or_default();
    let sequence = match rest.get(1) {
        None => return Err(END_OF_TEXT),
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => return Ok(position + 2),
        Some(b'u') => {
            let sequence = &rest[..rest.len().min(UNICODE_LENGTH)];
            if sequence[2..].iter().all(u8::is_ascii_hexdigit) {
                return match sequence.len() {
                    UNICODE_LENGTH => Ok(position + UNICODE_LENGTH),
                    _ => Err(END_OF_TEXT),
                };
            }
            sequence
        }
        Some(_) => &rest[..2],
    };
    let shown = match std::str::from_utf8(sequence) {
        Ok(plain) if plain.chars().all(is_plain) => format!("`{plain}`"),
        _ => quoted(sequence),
    };
    let text = format!("invalid escape sequence {shown} in string");
    Err(Problem(text.into()))
}

/// Whether a character can be shown between backticks.
fn is_plain(character: char) -> bool {
    is_printable(character) && !matches!(character, ' ' | '`' | '\u{fffd}')
}

/// Go prints what Rust does not escape, save that Rust escapes what belongs to the letter before it unless there is one.
fn is_printable(character: char) -> bool {
    match character {
        '"' | '\'' | '\\' => true,
        other => {
            let behind_a_letter: String = ['a', other].iter().collect();
            behind_a_letter.escape_debug().count() == 2
        }
    }
}

/// The complaint about the character at this position, or about the end of the text.
fn character_problem(text: &[u8], position: usize, context: &str) -> Problem {
    let Some(first) = text.get(position) else {
        return END_OF_TEXT;
    };
    let mut shown = String::new();
    match first_character(&text[position..]) {
        Some('\'') => shown.push_str("\\'"),
        Some('"') => shown.push('"'),
        Some(character) => put_escaped(&mut shown, character),
        None => put_byte(&mut shown, *first),
    }
    Problem(format!("invalid character '{shown}' {context}").into())
}

fn first_character(text: &[u8]) -> Option<char> {
    let few = &text[..text.len().min(4)];
    few.utf8_chunks().next()?.valid().chars().next()
}

/// Bytes in double quotes, with what cannot be read escaped byte by byte.
fn quoted(bytes: &[u8]) -> String {
    let mut shown = String::from("\"");
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '"' => shown.push_str("\\\""),
                other => put_escaped(&mut shown, other),
            }
        }
        for byte in chunk.invalid() {
            put_byte(&mut shown, *byte);
        }
    }
    shown.push('"');
    shown
}

fn put_escaped(shown: &mut String, character: char) {
    let _ = match character {
        '\\' => shown.write_str("\\\\"),
        '\u{07}' => shown.write_str("\\a"),
        '\u{08}' => shown.write_str("\\b"),
        '\u{0b}' => shown.write_str("\\v"),
        '\u{0c}' => shown.write_str("\\f"),
        '\n' => shown.write_str("\\n"),
        '\r' => shown.write_str("\\r"),
        '\t' => shown.write_str("\\t"),
        printable if is_printable(printable) => shown.write_char(printable),
        '\0'..'\u{80}' => write!(shown, "\\x{:02x}", character as u32),
        '\u{80}'..'\u{10000}' => write!(shown, "\\u{:04x}", character as u32),
        _ => write!(shown, "\\U{:08x}", character as u32),
    };
}

fn put_byte(shown: &mut String, byte: u8) {
    let _ = write!(shown, "\\x{byte:02x}");
}

fn skip_spaces(text: &[u8], start: usize) -> usize {
    let mut position = start;
    while let Some(b' ' | b'\t' | b'\r' | b'\n') = text.get(position) {
        position += 1;
    }
    position
}

/// The text of a string with its quotes; bytes that are not Unicode become U+FFFD, one for each byte.
fn string_text(quoted: &[u8]) -> Cow<'_, str> {
    let inner = quoted
        .get(1..quoted.len().saturating_sub(1))
        .unwrap_or_default();
    match std::str::from_utf8(inner) {
        Ok(plain) if !plain.contains('\\') => Cow::Borrowed(plain),
        _ => Cow::Owned(unescaped(inner)),
    }
}

fn unescaped(inner: &[u8]) -> String {
    let mut text = String::with_capacity(inner.len());
    for chunk in inner.utf8_chunks() {
        let mut rest = chunk.valid();
        while let Some((before, escape)) = rest.split_once('\\') {
            text.push_str(before);
            let mut characters = escape.chars();
            match characters.next() {
                Some('u') => {
                    let (character, length) = unicode_escape(&escape[1..]);
                    text.push(character);
                    rest = escape.get(1 + length..).unwrap_or_default();
                    continue;
                }
                Some('b') => text.push('\u{08}'),
                Some('f') => text.push('\u{0c}'),
                Some('n') => text.push('\n'),
                Some('r') => text.push('\r'),
                Some('t') => text.push('\t'),
                other => text.extend(other),
            }
            rest = characters.as_str();
        }
        text.push_str(rest);
        for _ in chunk.invalid() {
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
    text
}

/// The character of the digits after `\u`, and how many bytes they have: four, or ten where two of them make one character.
fn unicode_escape(digits: &str) -> (char, usize) {
    let unit = |start: usize| {
        let digits = digits.get(start..start + 4)?;
        u16::from_str_radix(digits, 16).ok()
    };
    let high = unit(0).unwrap_or(0xfffd);
    if let Some(low) = digits
        .get(4..6)
        .filter(|between| *between == "\\u")
        .and_then(|_| unit(6))
    {
        if let Some(Ok(character)) = char::decode_utf16([high, low]).next() {
            if character.len_utf16() == 2 {
                return (character, 10);
            }
        }
    }
    let alone = char::from_u32(u32::from(high));
    (alone.unwrap_or(char::REPLACEMENT_CHARACTER), 4)
}

#[cfg(test)]
#[path = "json_text_tests.rs"]
mod tests;
