//! Reading what is committed from the files: one message, many in order, and searches by time.
//!
//! Places are looked up under the index's lock, bytes are read without it. A message that turns out to be damaged is taken out of the index and
//! reported, once.

use std::io;
use std::sync::Arc;

use super::committed::CommittedMessages;
use crate::storage::finding::Finding;
use crate::storage::format::encryption::TAG_BYTES;
use crate::storage::format::record::Record;
use crate::storage::format::removal::Removal;
use crate::storage::index::segments::Extent;
use crate::storage::message::{Message, StoreError, StoreResult, StoreState, EXPIRES_NEVER_NS};
use crate::storage::segment::segment_file::{Buffers, FoundRecord, SegmentFile};

/// Read at once when messages are read in order.
const CHUNK_BYTES: u64 = 512 * 1024;

/// Messages looked up at once when they are read in order.
const CHUNK_MESSAGES: usize = 8192;

/// Neighbouring messages in one segment.
struct SegmentRun {
    file: Arc<SegmentFile>,
    messages: Vec<(u64, Extent)>,
}

/// How often a message is searched for at most. Between being found and being read it may be replaced by another, as
/// the value of a key is: then that one is searched for, so that a subject that always has a message is never reported
/// as empty. Each retry means that another write has just happened.
pub const FINDS_MAX: usize = 1_000;

/// What reading without the disk led to.
#[derive(Debug, PartialEq, Eq)]
pub enum Cached {
    Visited,
    NoMessage,
    /// The disk may have to be waited for, or what is in memory is not as it should be: `read` decides.
    Unknown,
}

impl CommittedMessages {
    /// Calls `visit` with the message of a sequence if it can be read without waiting for the disk.
    pub fn read_cached(
        &self,
        sequence: u64,
        buffers: &mut Buffers,
        visit: impl FnOnce(&Record<'_>),
    ) -> Cached {
        let Some((file, extent)) = self.place_of(sequence) else {
            return Cached::NoMessage;
        };
        match file.read_cached(sequence, extent, buffers) {
            Some(FoundRecord::Message(record)) => {
                visit(&record);
                Cached::Visited
            }
            Some(FoundRecord::Erased | FoundRecord::Damaged) | None => Cached::Unknown,
        }
    }

    /// Has the bytes of a message in the cache of the operating system, so that reading it soon does not wait for the disk. Whether they are right is seen then.
    pub fn prefetch(&self, sequence: u64) {
        if let Some((file, extent)) = self.place_of(sequence) {
            let _ = file
                .file
                .read_exact_at(&mut vec![0; extent.length], extent.position);
        }
    }

    /// The message of a sequence; `None` if there is none, or if it turns out to be damaged, which is reported.
    pub fn read_undamaged(&self, sequence: u64) -> StoreResult<Option<Message>> {
        match self.read(sequence) {
            Err(StoreError::Damaged { .. }) => Ok(None),
            read => read,
        }
    }

    /// The message that `find` names, undamaged; `None` if it names none. One that is replaced while it is read is looked for again.
    pub fn read_found(&self, find: impl Fn() -> Option<u64>) -> StoreResult<Option<Message>> {
        let mut found = find();
        for _ in 0..FINDS_MAX {
            let Some(sequence) = found else {
                return Ok(None);
            };
            let message = self.read_undamaged(sequence)?;
            if message.is_some() {
                return Ok(message);
            }
            found = find();
            if found == Some(sequence) {
                // It is there, and damaged.
                break;
            }
        }
        Ok(None)
    }

    /// The message of a sequence; `None` if there is none.
    pub fn read(&self, sequence: u64) -> StoreResult<Option<Message>> {
        let Some((file, extent)) = self.place_of(sequence) else {
            return Ok(None);
        };
        let mut buffers = Buffers::default();
        match file
            .read(sequence, extent, &mut buffers)
            .map_err(read_error)?
        {
            FoundRecord::Message(record) => {
                let mut message = Message {
                    sequence,
                    time_ns: record.time_ns,
                    expires_ns: record.expires_ns,
                    subject_start: 0,
                    subject_len: record.subject.len(),
                    headers_len: record.headers.len(),
                    bytes: Vec::new(),
                };
                if file.header.compressed {
                    message.bytes = [record.subject, record.headers, record.payload].concat();
                } else {
                    let body = record.subject.len() + record.headers.len() + record.payload.len();
                    let tag = if record.encrypted { TAG_BYTES } else { 0 };
                    let end = extent.length - tag;
                    message.subject_start = end - body;
                    message.bytes = buffers.stored;
                    message.bytes.truncate(end);
                }
                Ok(Some(message))
            }
            FoundRecord::Erased => {
                match self.place_of(sequence) {
                    // Another store that shared the file erased the record there, after this store had replaced the file
                    // by its own.
                    Some((now, _)) if !Arc::ptr_eq(&now, &file) => self.read(sequence),
                    // Only what is removed is overwritten: it is the memory of its removal that was lost.
                    Some(_) => {
                        self.forget_erased(sequence);
                        Ok(None)
                    }
                    None => Ok(None),
                }
            }
            FoundRecord::Damaged => self.report_damaged(sequence, &file, extent),
        }
    }

    fn report_damaged<T>(
        &self,
        sequence: u64,
        file: &SegmentFile,
        extent: Extent,
    ) -> StoreResult<Option<T>> {
        // It may have been erased, or its segment rewritten, since its place was looked up.
        let same = self
            .place_of(sequence)
            .is_some_and(|(now, place)| now.path == file.path && place == extent);
        if !same || !self.lose(sequence) {
            return Ok(None);
        }
        self.report(Finding::Damaged {
            path: file.path.clone(),
            position: extent.position,
            bytes: extent.length as u64,
        });
        let range = Removal {
            first: sequence,
            last: sequence,
            erase: false,
        };
        self.report(Finding::Lost { range });
        Err(StoreError::Damaged { sequence })
    }

    /// Calls `visit` with the messages from `sequence` on, in order, until it returns false or there are no more. Damaged ones are passed over.
    pub fn scan(
        &self,
        sequence: u64,
        mut visit: impl FnMut(&Record<'_>) -> bool,
    ) -> StoreResult<()> {
        let mut next = sequence;
        let mut buffer = Vec::new();
        let mut body = Vec::new();
        'chunks: while let Some(chunk) = self.chunk(next) {
            let first = chunk.messages[0].1.position;
            let (last_sequence, last) = chunk.messages[chunk.messages.len() - 1];
            buffer.resize((last.position - first) as usize + last.length, 0);
            chunk
                .file
                .read_neighbours(&chunk.messages, first, &mut buffer)
                .map_err(read_error)?;
            for (sequence, extent) in &chunk.messages {
                let start = (extent.position - first) as usize;
                let bytes = &mut buffer[start..start + extent.length];
                let found = chunk
                    .file
                    .decode(*sequence, extent.position, bytes, &mut body);
                match found {
                    FoundRecord::Message(record) => {
                        if !visit(&record) {
                            return Ok(());
                        }
                    }
                    // Read once more by itself, which says what has become of it.
                    FoundRecord::Erased | FoundRecord::Damaged => match self.read(*sequence) {
                        Ok(None) | Err(StoreError::Damaged { .. }) => {}
                        // Its segment has another file by now.
                        Ok(Some(_)) => {
                            next = *sequence;
                            continue 'chunks;
                        }
                        Err(error) => return Err(error),
                    },
                }
            }
            next = last_sequence + 1;
        }
        Ok(())
    }

    /// The next messages that can be read with one call.
    fn chunk(&self, sequence: u64) -> Option<SegmentRun> {
        let index = self.index();
        let first = index.next_live(sequence)?;
        let (at, rank) = index.locate(first)?;
        let segment = &index.segments[at];
        let start = segment.index.extent(rank)?.position;
        let mut messages = Vec::new();
        let mut next = Some(rank);
        while let Some(rank) = next.filter(|_| messages.len() < CHUNK_MESSAGES) {
            let extent = segment.index.extent(rank)?;
            let bytes = extent.position + extent.length as u64 - start;
            if bytes > CHUNK_BYTES && !messages.is_empty() {
                break;
            }
            messages.push((segment.index.sequence(rank), extent));
            next = segment.next_live(rank + 1);
        }
        Some(SegmentRun {
            file: Arc::clone(&segment.file),
            messages,
        })
    }

    /// The first message not older than this; one above the last sequence if all are.
    pub fn sequence_at(&self, time_ns: i64) -> StoreResult<u64> {
        let (mut low, mut high) = {
            let index = self.index();
            let newer = index
                .segments
                .partition_point(|segment| segment.index.last_time_ns < time_ns);
            let Some(segment) = index.segments.get(newer) else {
                return Ok(index.last_sequence + 1);
            };
            // The first one not older is in here or, if it was removed, further on.
            (segment.index.base_sequence, index.last_sequence + 1)
        };
        while low < high {
            let middle = low + (high - low) / 2;
            let live = self.index().next_live(middle);
            let Some(live) = live.filter(|live| *live < high) else {
                high = middle;
                continue;
            };
            match self.time_of(live)? {
                Some(time) if time < time_ns => low = live + 1,
                Some(_) => high = middle,
                // It was removed in the meantime.
                None => {}
            }
        }
        let index = self.index();
        Ok(index.next_live(low).unwrap_or(index.last_sequence + 1))
    }

    /// What there is, in numbers and times.
    pub fn state(&self) -> StoreState {
        let mut state = {
            let index = self.index();
            StoreState {
                messages: index.messages,
                bytes: index.bytes,
                first_sequence: index.first_sequence,
                first_time_ns: 0,
                last_sequence: index.last_sequence,
                last_time_ns: index.last_time_ns,
                subjects: index.subjects.len() as u64,
                lost: index.lost.clone(),
            }
        };
        if state.messages > 0 {
            let first_time_ns = self.time_of(state.first_sequence);
            state.first_time_ns = first_time_ns.ok().flatten().unwrap_or(0);
        }
        state
    }

    /// When `expire` has something to do next.
    pub fn next_expiry_ns(&self) -> StoreResult<Option<i64>> {
        let own = self
            .index()
            .expiries
            .first()
            .map(|(expires_ns, _)| *expires_ns);
        let own = own.filter(|own| *own < EXPIRES_NEVER_NS);
        let aged = match self.limits().age_ns_max {
            Some(age_ns_max) => self
                .oldest_aging_ns()?
                .map(|time_ns| time_ns.saturating_add(age_ns_max)),
            None => None,
        };
        Ok([own, aged].into_iter().flatten().min())
    }

    /// When the oldest message was stored that may become too old. One that cannot be read any more is skipped: those after it expire all the same.
    fn oldest_aging_ns(&self) -> StoreResult<Option<i64>> {
        let mut next = 0;
        loop {
            let first = {
                let index = self.index();
                let mut first = index.next_live(next.max(index.first_sequence));
                while let Some(sequence) = first.filter(|first| index.stays_for_ever(*first)) {
                    first = index.next_live(sequence + 1);
                }
                first
            };
            let Some(first) = first else {
                return Ok(None);
            };
            if let Some(time_ns) = self.time_of(first)? {
                return Ok(Some(time_ns));
            }
            next = first + 1;
        }
    }

    /// When a message was stored; `None` if there is none.
    fn time_of(&self, sequence: u64) -> StoreResult<Option<i64>> {
        match self.read(sequence) {
            Ok(message) => Ok(message.map(|message| message.time_ns)),
            Err(StoreError::Damaged { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

pub(super) fn read_error(error: io::Error) -> StoreError {
    StoreError::Read(Arc::new(error))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::storage::disk::file_system::FileSystem;
    use crate::storage::disk::memory::MemoryFileSystem;
    use crate::storage::disk::simulated::SimulatedDisk;
    use crate::storage::message::NewMessage;
    use crate::storage::store::{Store, StoreOptions};

    fn store_with_one(file_system: Arc<dyn FileSystem>) -> Store {
        let store = Store::open(file_system, Path::new("/s"), StoreOptions::default()).unwrap();
        let message = NewMessage {
            subject: b"a",
            headers: b"NATS/1.0\r\n\r\n",
            payload: b"payload",
            ..NewMessage::default()
        };
        store.append(&message).unwrap();
        store.commit().unwrap();
        store
    }

    fn read_cached(store: &Store, sequence: u64) -> (Cached, Vec<u8>) {
        let mut payload = Vec::new();
        let cached = store
            .messages()
            .read_cached(sequence, &mut Buffers::default(), |record| {
                payload.extend_from_slice(record.payload);
            });
        (cached, payload)
    }

    #[test]
    fn a_message_in_memory_is_read_without_the_disk() {
        let store = store_with_one(Arc::new(MemoryFileSystem::default()));

        assert_eq!(
            read_cached(&store, 1),
            (Cached::Visited, b"payload".to_vec())
        );
        assert_eq!(read_cached(&store, 2), (Cached::NoMessage, Vec::new()));
    }

    #[test]
    fn a_message_that_may_be_on_the_disk_only_is_left_to_a_caller_that_may_wait() {
        let store = store_with_one(Arc::new(SimulatedDisk::default()));

        assert_eq!(read_cached(&store, 1), (Cached::Unknown, Vec::new()));
        assert_eq!(read_cached(&store, 2), (Cached::NoMessage, Vec::new()));
    }
}
