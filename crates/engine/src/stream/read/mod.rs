//! Reading a stream without a consumer.
//!
//! - `reads` answers `direct_get` and, through the API, `message_get`; `get_request` is what they are asked.
//! - `scan` sends a range as Arrow, as far as its reader's `credits` go; `scans` has those under way and plans them.

pub mod credits;
pub mod direct_get;
pub mod get_request;
pub mod message_get;
pub mod reads;
pub mod scan;
pub mod scans;
