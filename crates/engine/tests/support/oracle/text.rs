//! Tokens, sizes and subjects, as the protocol describes them.

/// Whether the bytes begin with the name, or are the beginning of it.
pub fn begins(bytes: &[u8], name: &str) -> bool {
    let length = bytes.len().min(name.len());
    bytes[..length].eq_ignore_ascii_case(&name.as_bytes()[..length])
}

pub fn tokens(arguments: &[u8]) -> Vec<&[u8]> {
    arguments
        .split(|byte| matches!(byte, b' ' | b'\t'))
        .filter(|token| !token.is_empty())
        .collect()
}

/// One to nine digits.
pub fn size(token: &[u8]) -> Option<usize> {
    let digits = token.iter().all(u8::is_ascii_digit) && token.len() <= 9;
    digits
        .then(|| std::str::from_utf8(token).ok()?.parse().ok())
        .flatten()
}

pub fn is_literal(subject: &[u8]) -> bool {
    !subject
        .split(|byte| *byte == b'.')
        .any(|token| matches!(token, b"" | b"*" | b">"))
}

pub fn is_valid(subject: &[u8]) -> bool {
    let tokens: Vec<&[u8]> = subject.split(|byte| *byte == b'.').collect();
    !tokens.iter().any(|token| token.is_empty())
        && !tokens[..tokens.len() - 1]
            .iter()
            .any(|token| *token == b">")
}

pub fn is_reserved_reply(reply: &[u8]) -> bool {
    [&b"_R_."[..], b"$JS.ACK.", b"_GR_."]
        .iter()
        .any(|prefix| reply.starts_with(prefix))
}
