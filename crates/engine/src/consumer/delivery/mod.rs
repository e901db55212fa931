//! Which message goes to whom next, and how it gets there.
//!
//! - `delivering` finds the next receiver and the next message: one that comes again, or a new one. `keys` says which messages must wait for
//!   others; `upcoming` is what is to come and `pending_count` how much that is; `read_ahead` reads from the disk without the lock.
//! - `outbound` is what has been decided and is sent when the lock is released, to receivers whose `interest` is known; `status` is what is sent instead of a message.
//! - `push` sends without being asked, at most as fast as its `rate_limit`.

pub mod delivering;
pub mod interest;
pub mod keys;
pub mod outbound;
pub mod pending_count;
pub mod push;
pub mod rate_limit;
pub mod read_ahead;
pub mod status;
pub mod upcoming;
