//! Messages at rest under a key.

/// What encryption adds to every record.
pub const TAG_BYTES: usize = 16;
