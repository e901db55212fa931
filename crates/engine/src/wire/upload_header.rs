//! The header of an upload: what its parts may be.

/// An id, and the name of a query or a run, has no more bytes.
const NAME_BYTES_MAX: usize = 64;

/// Can stand between the slashes of the header, and in a stored one.
pub fn is_name(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_allowed)
}
