//! What a stream's configuration means for each message, decided once when the configuration is set.

use crate::storage::message::Limits;

/// What happens when the limits of a stream are reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Discard {
    /// The oldest messages make room.
    #[default]
    Old,
    /// The new message is refused.
    New,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    pub name: String,
    pub domain: Option<String>,
    pub limits: Limits,
    /// Headers and payload together.
    pub message_bytes_max: Option<u64>,
    pub discard: Discard,
    /// With `Discard::New`: a subject that has reached its own limit takes nothing more either.
    pub discard_new_per_subject: bool,
    /// How long message ids are remembered; not at all if zero.
    pub duplicate_window_ns: i64,
    pub sealed: bool,
    pub deny_purge: bool,
    pub allow_rollup: bool,
    pub allow_time_to_live: bool,
    /// Nothing is answered, not even refusals.
    pub no_acknowledgement: bool,
}
