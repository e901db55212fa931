//! What a subject becomes: a source with wildcards, and a destination whose tokens may be functions of what the wildcards matched.
//!
//! | destination token                            | becomes                                                     |
//! |----------------------------------------------|-------------------------------------------------------------|
//! | `{{wildcard(2)}}`, `$2`                      | what the second `*` matched                                 |
//! | `{{partition(10,1,2)}}`, `{{partition(10)}}` | a number below 10, by those tokens, or by the whole subject |
//! | `{{split(1,-)}}`                             | a token for each part between dashes                        |
//! | `{{splitFromLeft(1,3)}}`, `…FromRight`       | two tokens, the first (or the last) of three bytes          |
//! | `{{sliceFromLeft(1,3)}}`, `…FromRight`       | tokens of three bytes, a shorter one last (or first)        |
//! | `{{left(1,3)}}`, `{{right(1,3)}}`            | the first (or the last) three bytes                         |
//! | `{{random(10)}}`                             | a random number below 10                                    |
//!
//! A wildcard number below one means the first token of the subject, as on nats-server. Lengths are of bytes, because subjects are.
//! Which transforms a stream may have is decided, with the texts of the errors, where streams are made; this agrees with it.
//! Invariant: a transform that exists maps every literal subject its source matches, without allocating.

use std::fmt;

use crate::common::random::Random;
use crate::common::subject::{is_literal, is_valid_subscription, matches, tokens};

const EVERYTHING: &str = ">";

/// Why a source and a destination make no transform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransformError {
    /// One of the two is not a valid subject, the destination has a `*`, or only one of them ends in `>`.
    InvalidSubject,
    UnknownFunction,
    NotEnoughArguments,
    TooManyArguments,
    InvalidArgument,
    /// The source has no such wildcard.
    WildcardOutOfRange,
}

impl fmt::Display for TransformError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::InvalidSubject => "invalid subject",
            Self::UnknownFunction => "invalid mapping destination: unknown function",
            Self::NotEnoughArguments => {
                "invalid mapping destination: not enough arguments passed to the function"
            }
            Self::TooManyArguments => {
                "invalid mapping destination: too many arguments passed to the function"
            }
            Self::InvalidArgument => {
                "invalid mapping destination: function argument is invalid or in the wrong format"
            }
            Self::WildcardOutOfRange => "invalid mapping destination: wildcard index out of range",
        })
    }
}

impl std::error::Error for TransformError {}

/// A destination token. While it is read, an index is the number of a wildcard; afterwards it is that of a token of the subject.
#[derive(Debug, Clone, PartialEq, Eq)]
enum DestinationToken {
    Literal(Box<[u8]>),
    /// What the `>` of the source matched.
    Rest,
    Wildcard(i64),
    /// Without indexes it is the whole subject that counts.
    Partition {
        count: u32,
        indexes: Vec<i64>,
    },
    Split {
        index: i64,
        delimiter: Box<[u8]>,
    },
    Cut {
        how: Cut,
        index: i64,
        length: i32,
    },
    Random(u32),
}

/// The functions that take a token and a length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    SplitFromLeft,
    SplitFromRight,
    SliceFromLeft,
    SliceFromRight,
    Left,
    Right,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubjectTransform {
    source: Box<[u8]>,
    /// Of the source.
    token_count: usize,
    /// None leaves subjects as they are: the source is a filter, or everything becomes everything.
    parts: Option<Vec<DestinationToken>>,
}

impl SubjectTransform {
    /// An empty source is everything; an empty destination changes nothing, and the source is a filter.
    pub fn new(source: &str, destination: &str) -> Result<Self, TransformError> {
        let source = if source.is_empty() {
            EVERYTHING
        } else {
            source
        };
        if !is_valid_subscription(source.as_bytes()) {
            return Err(TransformError::InvalidSubject);
        }
        let changes =
            !(destination.is_empty() || source == EVERYTHING && destination == EVERYTHING);
        Ok(Self {
            source: source.as_bytes().into(),
            token_count: tokens(source.as_bytes()).count(),
            parts: changes
                .then(|| read_destination(source, destination))
                .transpose()?,
        })
    }

    /// Whether a subject is for this transform. Only literal ones are changed.
    pub fn takes(&self, subject: &[u8]) -> bool {
        (self.parts.is_none() || is_literal(subject)) && matches(&self.source, subject)
    }

    /// Appends what the subject becomes; false, and nothing appended, if it is not for this transform.
    pub fn apply(&self, subject: &[u8], random: &mut Random, out: &mut Vec<u8>) -> bool {
        if !self.takes(subject) {
            return false;
        }
        let Some(parts) = &self.parts else {
            out.extend_from_slice(subject);
            return true;
        };
        for (position, part) in parts.iter().enumerate() {
            if position > 0 {
                out.push(b'.');
            }
            self.put(part, subject, random, out);
        }
        true
    }

    fn put(&self, part: &DestinationToken, subject: &[u8], random: &mut Random, out: &mut Vec<u8>) {
        match part {
            DestinationToken::Literal(text) => out.extend_from_slice(text),
            DestinationToken::Rest => {
                let rest = tokens(subject).skip(self.token_count - 1);
                for (position, token) in rest.enumerate() {
                    if position > 0 {
                        out.push(b'.');
                    }
                    out.extend_from_slice(token);
                }
            }
            DestinationToken::Wildcard(index) => out.extend_from_slice(token_at(subject, *index)),
            DestinationToken::Partition { count, indexes } => {
                let hash = match indexes.as_slice() {
                    [] => fnv1a(FNV_BASIS, subject),
                    indexes => indexes.iter().fold(FNV_BASIS, |hash, index| {
                        fnv1a(hash, token_at(subject, *index))
                    }),
                };
                put_number(out, hash.checked_rem(*count).unwrap_or(0));
            }
            DestinationToken::Split { index, delimiter } => {
                put_split(out, token_at(subject, *index), delimiter);
            }
            DestinationToken::Cut { how, index, length } => {
                put_cut(out, token_at(subject, *index), *how, *length);
            }
            DestinationToken::Random(bound) => {
                put_number(out, random.below(*bound as usize) as u32)
            }
        }
    }
}

const FNV_BASIS: u32 = 2_166_136_261;
const FNV_PRIME: u32 = 16_777_619;

fn fnv1a(basis: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(basis, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(FNV_PRIME)
    })
}

fn put_number(out: &mut Vec<u8>, number: u32) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// The source matched, so a token its wildcard stands at is there.
fn token_at(subject: &[u8], index: i64) -> &[u8] {
    let token = usize::try_from(index).ok();
    token
        .and_then(|index| tokens(subject).nth(index))
        .unwrap_or_default()
}

/// A token for each part that is not empty, except that two delimiters at the very beginning leave one empty token, as on nats-server.
fn put_split(out: &mut Vec<u8>, token: &[u8], delimiter: &[u8]) {
    let (mut position, mut is_previous_empty_first) = (0, false);
    let mut put = |part: &[u8]| {
        if position > 0 && !part.is_empty() && !is_previous_empty_first {
            out.push(b'.');
        }
        out.extend_from_slice(part);
        is_previous_empty_first = position == 0 && part.is_empty();
        position += 1;
    };
    if delimiter.is_empty() {
        // Every character is a part; bytes that are not UTF-8 are a part each.
        for chunk in token.utf8_chunks() {
            for character in chunk.valid().chars() {
                put(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
            chunk.invalid().chunks(1).for_each(&mut put);
        }
        return;
    }
    let mut start = 0;
    for place in memchr::memmem::find_iter(token, delimiter) {
        put(&token[start..place]);
        start = place + delimiter.len();
    }
    put(&token[start..]);
}

/// A length that is not inside the token cuts nothing.
fn put_cut(out: &mut Vec<u8>, token: &[u8], how: Cut, length: i32) {
    let count = token.len();
    let length = match usize::try_from(length) {
        Ok(length) if 0 < length && length < count => length,
        _ => return out.extend_from_slice(token),
    };
    let mut put_two = |place: usize| {
        out.extend_from_slice(&token[..place]);
        out.push(b'.');
        out.extend_from_slice(&token[place..]);
    };
    match how {
        Cut::SplitFromLeft => put_two(length),
        Cut::SplitFromRight => put_two(count - length),
        Cut::SliceFromLeft => put_slices(out, token, length, length),
        Cut::SliceFromRight => match count % length {
            0 => put_slices(out, token, length, length),
            first => put_slices(out, token, first, length),
        },
        Cut::Left => out.extend_from_slice(&token[..length]),
        Cut::Right => out.extend_from_slice(&token[count - length..]),
    }
}

fn put_slices(out: &mut Vec<u8>, token: &[u8], first: usize, length: usize) {
    let (head, rest) = token.split_at(first);
    out.extend_from_slice(head);
    for slice in rest.chunks(length) {
        out.push(b'.');
        out.extend_from_slice(slice);
    }
}

fn read_destination(
    source: &str,
    destination: &str,
) -> Result<Vec<DestinationToken>, TransformError> {
    let takes_rest = |subject: &str| subject.split('.').next_back() == Some(EVERYTHING);
    if !is_valid_subscription(destination.as_bytes())
        || destination.split('.').any(|token| token == "*")
        || takes_rest(source) != takes_rest(destination)
    {
        return Err(TransformError::InvalidSubject);
    }
    let wildcards: Vec<i64> = (0..)
        .zip(source.split('.'))
        .filter(|(_, token)| *token == "*")
        .map(|(index, _)| index)
        .collect();
    let has_wildcards = !wildcards.is_empty() || takes_rest(source);
    destination
        .split('.')
        .map(|token| {
            let mut part = read_part(token)?;
            match &mut part {
                DestinationToken::Literal(_)
                | DestinationToken::Rest
                | DestinationToken::Random(_) => {}
                // Without wildcards there is nothing to choose from: the numbers are allowed and not looked at.
                DestinationToken::Partition { indexes, .. } if !has_wildcards => indexes.clear(),
                _ if !has_wildcards => return Err(TransformError::WildcardOutOfRange),
                DestinationToken::Partition { indexes, .. } => {
                    for index in indexes {
                        *index = token_of_wildcard(&wildcards, *index)?;
                    }
                }
                DestinationToken::Wildcard(index)
                | DestinationToken::Split { index, .. }
                | DestinationToken::Cut { index, .. } => {
                    *index = token_of_wildcard(&wildcards, *index)?;
                }
            }
            Ok(part)
        })
        .collect()
}

fn token_of_wildcard(wildcards: &[i64], number: i64) -> Result<i64, TransformError> {
    match usize::try_from(number) {
        Err(_) | Ok(0) => Ok(0),
        Ok(number) => wildcards
            .get(number - 1)
            .copied()
            .ok_or(TransformError::WildcardOutOfRange),
    }
}

fn read_part(token: &str) -> Result<DestinationToken, TransformError> {
    if token == EVERYTHING {
        return Ok(DestinationToken::Rest);
    }
    if let Some(number) = token.strip_prefix('$') {
        if let Ok(index) = number.parse() {
            return Ok(DestinationToken::Wildcard(index));
        }
    }
    if token.len() <= 4 || !token.starts_with("{{") || !token.ends_with("}}") {
        return Ok(DestinationToken::Literal(token.as_bytes().into()));
    }
    let (function, arguments) = find_call(token).ok_or(TransformError::UnknownFunction)?;
    let arguments: Vec<&str> = arguments
        .split(',')
        .enumerate()
        .map(|(position, argument)| match position {
            0 => argument,
            _ => argument.trim_start_matches(is_blank),
        })
        .collect();
    read_arguments(function, &arguments)
}

fn read_arguments(
    function: Function,
    arguments: &[&str],
) -> Result<DestinationToken, TransformError> {
    match (function, arguments) {
        (Function::Wildcard, [""]) => Err(TransformError::NotEnoughArguments),
        (Function::Wildcard, [index]) => Ok(DestinationToken::Wildcard(number(index)?)),
        (Function::Partition, [count, indexes @ ..]) => Ok(DestinationToken::Partition {
            // A negative number is taken for the large one with the same bits.
            count: number_below_2_to_31(count)? as u32,
            indexes: indexes
                .iter()
                .map(|index| number(index))
                .collect::<Result<_, _>>()?,
        }),
        (Function::Random, [bound]) => Ok(DestinationToken::Random(
            number_below_2_to_31(bound)?.unsigned_abs(),
        )),
        // nats-server says it the wrong way round, and this is its answer.
        (Function::Random, _) => Err(TransformError::NotEnoughArguments),
        (Function::Split, [index, delimiter]) => {
            let index = number(index)?;
            if delimiter.contains(' ') {
                return Err(TransformError::InvalidArgument);
            }
            let delimiter = delimiter.as_bytes().into();
            Ok(DestinationToken::Split { index, delimiter })
        }
        (Function::Cut(how), [index, length]) => Ok(DestinationToken::Cut {
            how,
            index: number(index)?,
            length: i32::try_from(number(length)?).map_err(|_| TransformError::InvalidArgument)?,
        }),
        (Function::Split | Function::Cut(_), [_] | []) => Err(TransformError::NotEnoughArguments),
        _ => Err(TransformError::TooManyArguments),
    }
}

fn number(argument: &str) -> Result<i64, TransformError> {
    argument
        .trim_matches(' ')
        .parse()
        .map_err(|_| TransformError::InvalidArgument)
}

/// Of a number far below zero the lowest 32 bits are taken, as on nats-server.
fn number_below_2_to_31(argument: &str) -> Result<i32, TransformError> {
    let number = number(argument)?;
    if number > i64::from(i32::MAX) {
        return Err(TransformError::InvalidArgument);
    }
    Ok(number as i32)
}

#[derive(Debug, Clone, Copy)]
enum Function {
    Wildcard,
    Partition,
    Split,
    Random,
    Cut(Cut),
}

/// The functions in the order in which a token is tried. The letters that are capital here may be small and the other way round.
const FUNCTIONS: [(&[u8], Function); 10] = [
    (b"Wildcard", Function::Wildcard),
    (b"Partition", Function::Partition),
    (b"SplitFromLeft", Function::Cut(Cut::SplitFromLeft)),
    (b"SplitFromRight", Function::Cut(Cut::SplitFromRight)),
    (b"SliceFromLeft", Function::Cut(Cut::SliceFromLeft)),
    (b"SliceFromRight", Function::Cut(Cut::SliceFromRight)),
    (b"Right", Function::Cut(Cut::Right)),
    (b"Left", Function::Cut(Cut::Left)),
    (b"Split", Function::Split),
    (b"Random", Function::Random),
];

fn is_blank(character: char) -> bool {
    matches!(character, '\t' | '\n' | '\x0c' | '\r' | ' ')
}

/// The first function that is called anywhere in the token, and what stands between its brackets.
///
/// The arguments end at the last closing bracket on the line they begin on.
fn find_call(token: &str) -> Option<(Function, &str)> {
    let bytes = token.as_bytes();
    let closings: Vec<usize> = memchr::memchr_iter(b')', bytes)
        .filter(|place| {
            token[place + 1..]
                .trim_start_matches(is_blank)
                .starts_with("}}")
        })
        .collect();
    for (name, function) in FUNCTIONS {
        let mut line_end = 0;
        for opened in (0..bytes.len()).filter_map(|place| opening_end(token, place, name)) {
            // Looked for once a line, so that a token of a megabyte takes no longer than it should.
            if line_end < opened {
                line_end = memchr::memchr(b'\n', &bytes[opened..])
                    .map_or(bytes.len(), |length| opened + length);
            }
            let before = closings.partition_point(|place| *place < line_end);
            if let Some(closing) = closings[..before].last().filter(|place| **place >= opened) {
                return Some((function, &token[opened..*closing]));
            }
        }
    }
    None
}

/// Where the arguments begin if a function of this name is called at this place.
fn opening_end(token: &str, place: usize, name: &[u8]) -> Option<usize> {
    let rest = token.as_bytes()[place..].strip_prefix(b"{{")?;
    let rest = trim_blanks(rest);
    let is_name = rest.len() >= name.len()
        && name.iter().zip(rest).all(|(wanted, byte)| {
            byte == wanted || (wanted.is_ascii_uppercase() && *byte == wanted.to_ascii_lowercase())
        });
    if !is_name {
        return None;
    }
    let rest = trim_blanks(&rest[name.len()..]).strip_prefix(b"(")?;
    Some(token.len() - rest.len())
}

fn trim_blanks(bytes: &[u8]) -> &[u8] {
    let blanks = bytes.iter().take_while(|byte| is_blank(**byte as char));
    &bytes[blanks.count()..]
}

#[cfg(test)]
#[path = "subject_transform_tests.rs"]
mod tests;
