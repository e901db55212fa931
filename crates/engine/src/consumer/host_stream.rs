//! The stream, as its consumers see it, and the order in which the locks of both are taken.
//!
//! A publish asks its stream's consumers whether they want it while the stream is locked, so a consumer that is locked
//! must not ask for its stream. A thread that holds one of these locks takes only later ones:
//!
//! 1. what one thread works on at a time: a pass of a consumer (`ConsumerDelivery`), a write of the journal (`JournalWork`), a commit (the turn of
//!    `CommitScheduler`, then `Stream::drained`), a removal of many messages (`Releases::turn`), the begin and the end of a consumer (its `subscriptions`);
//! 2. a stream: `Stream::ingest`, of one stream only;
//! 3. a consumer: `Core`, of one consumer only;
//! 4. the others, each group among themselves: the lists of `Consumers`, what `Journal` has noted, a `Store`, an `Account`, `ConsumerTimers`.
//!
//! A thread that serves connections takes one of the first kind only if it is free. Invariant: no method of `HostStream` is called while a `Core` is
//! locked, but for `wants_dead_letters`, which takes no lock.

use std::sync::Arc;

use super::consumer::Consumer;
use super::dead_letters::{DeadLetter, HandedOver};
use crate::storage::receipts::Receipt;

/// What a consumer asks of its stream.
pub trait HostStream: Send + Sync {
    /// Messages are settled, from the first to the last of each pair.
    fn released(&self, consumer: &Consumer, released: &[(u64, u64)]);

    /// What consumers have released is out of the stream when this returns. Waits for the disk: must not be called on a
    /// thread that serves connections.
    fn commit_released(&self);

    /// The same on such a thread; false if it would have to wait.
    fn try_commit_released(&self) -> bool;

    /// Whether what is given up is stored elsewhere. Takes no lock, because it is asked for a consumer that is locked.
    fn wants_dead_letters(&self) -> bool;

    /// Writes the dead letter of a message; `receipt` is completed when it is stored, if it is under way. Reads from the
    /// disk, and waits for no sync.
    fn hand_over_dead_letter(
        &self,
        consumer: &Consumer,
        letter: &DeadLetter,
        receipt: Arc<dyn Receipt>,
    ) -> HandedOver;
}
