//! Where a stream has begun to take the messages of an origin: a work queue keeps what comes before, as nobody has taken it.
//!
//! A source has it in its configuration, and remembers it with its position: the configuration may say something else
//! by now. A mirror has the sequences of its origin, and no other sign of which stream it has them from.
//! Invariant: what lies between the beginning and the next message to be taken was taken from this very stream.

use super::origin::Origin;
use super::positions::SourcePosition;
use crate::storage::message::StoreResult;
use crate::storage::store::Store;

/// The first sequence of an origin that is, or was, taken into `store`, which takes `next_sequence` next. `known` is
/// how far a source has come, if it has taken something.
pub fn begun(
    origin: &Origin,
    known: Option<&SourcePosition>,
    store: &Store,
    from: &Store,
    next_sequence: u64,
) -> StoreResult<u64> {
    // A follower that is ahead of a stream has come so far with another one of its name.
    if next_sequence > from.messages().counts().last_sequence + 1 {
        return Ok(next_sequence);
    }
    let configured = match origin.start_time_ns {
        Some(time_ns) if origin.start_sequence == 0 => from.messages().sequence_at(time_ns)?,
        _ => origin.start_sequence.max(1),
    };
    if origin.is_mirror {
        let is_mirrored = is_mirrored(origin, store, from, configured, next_sequence);
        return Ok(if is_mirrored {
            configured
        } else {
            next_sequence
        });
    }
    Ok(match known {
        Some(known) if known.sequence + 1 != next_sequence => next_sequence,
        Some(known) if known.first > 0 => known.first,
        Some(_) => configured,
        None => next_sequence,
    })
}

/// Whether a mirror has the oldest message that is left of what it would have taken, and not another one with its
/// sequence.
fn is_mirrored(origin: &Origin, store: &Store, from: &Store, first: u64, next: u64) -> bool {
    let filters = origin.filters.iter();
    let matching = filters.filter_map(|filter| {
        let filter = filter.subject.as_bytes();
        from.messages().next_match(filter, first)
    });
    let Some(oldest) = matching.min().filter(|oldest| *oldest < next) else {
        return true;
    };
    let time_in = |store: &Store| {
        let found = store.messages().read(oldest).ok().flatten();
        found.map(|message| message.time_ns)
    };
    time_in(store).is_some_and(|time_ns| time_in(from) == Some(time_ns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::sync::Arc;

    use crate::storage::disk::memory::MemoryFileSystem;
    use crate::storage::message::NewMessage;
    use crate::storage::store::StoreOptions;
    use crate::stream::replication::origin::Parts;

    fn origin(is_mirror: bool, start_sequence: u64, start_time_ns: Option<i64>) -> Origin {
        let parts = Parts {
            name: "O",
            external: None,
            consumer: None,
            is_mirror,
            filter: "",
            transforms: Vec::new(),
            start_sequence,
            start_time_ns,
        };
        Origin::new(parts).unwrap()
    }

    /// A store with messages of these times, from sequence 1 on.
    fn stored(times_ns: &[i64]) -> Store {
        let file_system = Arc::new(MemoryFileSystem::default());
        let options = StoreOptions::default();
        let store = Store::open(file_system, Path::new("/messages"), options).unwrap();
        for time_ns in times_ns {
            let message = NewMessage {
                subject: b"a",
                time_ns: *time_ns,
                ..NewMessage::default()
            };
            store.append(&message).unwrap();
        }
        store.commit().unwrap();
        store
    }

    fn position(sequence: u64, first: u64) -> SourcePosition {
        SourcePosition {
            sequence,
            identity: "id".to_owned(),
            stored_as: 1,
            first,
        }
    }

    #[test]
    fn a_source_begins_where_it_has_begun_and_not_where_it_would_begin_now() {
        let (from, store) = (stored(&[10, 20, 30, 40, 50]), stored(&[]));
        let of = |origin: &Origin, known: Option<SourcePosition>, next| {
            begun(origin, known.as_ref(), &store, &from, next).unwrap()
        };
        let (everything, third) = (origin(false, 0, None), origin(false, 3, None));
        let since = origin(false, 0, Some(40));

        assert_eq!(of(&everything, None, 1), 1);
        assert_eq!(of(&third, None, 3), 3);
        assert_eq!(of(&since, None, 4), 4);
        assert_eq!(of(&everything, Some(position(5, 3)), 6), 3);
        // Where only the messages say how far it is, it is where it would begin now.
        assert_eq!(of(&third, Some(position(5, 0)), 6), 3);
        assert_eq!(of(&since, Some(position(5, 0)), 6), 4);
        // Its position is that of another stream.
        assert_eq!(of(&everything, Some(position(5, 3)), 1), 1);
        assert_eq!(of(&everything, Some(position(9, 3)), 10), 10);
    }

    #[test]
    fn a_mirror_has_begun_where_it_has_the_messages_that_are_left() {
        let from = stored(&[10, 20, 30]);
        let (all, behind) = (origin(true, 0, None), origin(true, 3, None));
        let of = |origin: &Origin, mirrored: &[i64], next| {
            begun(origin, None, &stored(mirrored), &from, next).unwrap()
        };

        assert_eq!(of(&all, &[], 1), 1);
        assert_eq!(of(&all, &[10, 20], 3), 1);
        // These are of another stream, which had the name before.
        assert_eq!(of(&all, &[11, 21], 3), 3);
        assert_eq!(of(&behind, &[11, 21], 3), 3);
        assert_eq!(of(&all, &[10, 20, 30, 40], 5), 5);
        from.remove(1, false).unwrap();
        from.commit().unwrap();
        assert_eq!(of(&all, &[11, 20], 3), 1);
    }
}
