//! What takes messages inside the server: a stream, or an endpoint of the API that the engine answers itself.

use super::router::Publisher;
use super::staging::Staging;
use crate::wire::Publish;

/// Who wants to know when subscriptions to a subject come and go.
pub trait Watcher: Send + Sync {
    fn notice(&self);
}

pub trait Sink: Send + Sync {
    /// Takes one message; false if it takes none any more. Must not wait for a disk: the thread serves a thousand connections.
    fn accept(
        &self,
        publisher: &Publisher<'_>,
        publish: &Publish<'_>,
        staging: &mut Staging,
    ) -> bool;

    /// Everything that was read together has been taken.
    fn finish_read(&self);

    /// Keeps what it takes, as a stream does.
    fn stores(&self) -> bool {
        false
    }

    /// Is there only for messages that nobody stores.
    fn wants_unstored(&self) -> bool {
        false
    }
}
