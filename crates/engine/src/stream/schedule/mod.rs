//! Messages that are published later: `schedule` says when one is due, by a `cron` line or otherwise, `checks` whether it may be stored; `schedules`
//! has all of a stream, `scheduling` publishes those that are due, and `remembered_schedules` keeps when they are due next.

pub mod checks;
pub mod cron;
pub mod remembered_schedules;
#[allow(clippy::module_inception, reason = "one noun, one module")]
pub mod schedule;
pub mod schedules;
pub mod scheduling;
