//! Consumers on disk: `journal` writes definitions and states, `state_record` is a state as bytes, `archived_state` the same in backups.

pub mod archived_state;
#[allow(clippy::module_inception, reason = "one noun, one module")]
pub mod journal;
pub mod state_record;
