//! Which batch of each query was stored last, so that a query that repeats one after a crash stores nothing twice, however long it was away.
//!
//! The last message of a batch has a header `Jetlake-Batch: <stream>/<query>/<batch>`; it is stored together with all others of the batch or not at all, so
//! the messages show which batches there are. The same is kept in a file, as messages may be removed. Only if a server dies
//! before that is written, and the message is gone by then, would a batch be forgotten. Copies of a message in other streams say nothing, by the name.
//! Invariant: the batch of a query only grows.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::storage::message::StoreResult;
use crate::storage::store::Store;
use crate::stream::remembered::{FileLocation, Remembered};
use crate::wire::stored_headers;
use crate::wire::trusted_headers;

const NAME: &str = "batches";

/// Queries that a stream remembers; beyond that the one that wrote longest ago is forgotten.
const QUERIES_MAX: usize = 1000;

/// The last batch of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommittedBatch {
    pub batch: u64,
    /// That of its last message.
    pub sequence: u64,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct SavedBatches {
    /// Everything up to this sequence is accounted for.
    through: u64,
    batches: BTreeMap<String, CommittedBatch>,
}

pub struct CommittedBatches {
    stream: String,
    file: Remembered<SavedBatches>,
    /// None before anybody asked.
    current: Option<BTreeMap<String, CommittedBatch>>,
    /// The file does not say all of it.
    is_unsaved: bool,
}

impl CommittedBatches {
    pub fn new(stream: &str, place: Option<FileLocation>) -> Self {
        Self {
            stream: stream.to_owned(),
            file: Remembered::new(place, NAME),
            current: None,
            is_unsaved: false,
        }
    }

    /// The last batch of a query; what is committed is looked through the first time.
    pub fn last(&mut self, store: &Store, query: &str) -> StoreResult<Option<CommittedBatch>> {
        if self.current.is_none() {
            self.load(store)?;
        }
        let known = self.current.as_ref();
        Ok(known.and_then(|known| known.get(query)).copied())
    }

    fn load(&mut self, store: &Store) -> StoreResult<()> {
        self.file.load()?;
        if self.file.is_missing() {
            // Nothing was committed here yet, so nothing need be looked through; from now on there is a file that says so.
            self.current = Some(BTreeMap::new());
            self.is_unsaved = true;
            return self.save(store).inspect_err(|_| self.current = None);
        }
        let saved = self.file.saved();
        let mut batches = saved.batches.clone();
        let prefix = format!("{}/", self.stream);
        store.messages().scan(saved.through + 1, |record| {
            let value = stored_headers::value(record.headers, trusted_headers::BATCH);
            if let Some((query, batch)) = value.and_then(|value| read(value, prefix.as_bytes())) {
                note(&mut batches, query, batch, record.sequence);
            }
            true
        })?;
        self.current = Some(batches);
        Ok(())
    }

    /// The value of the header that says which batch it is.
    pub fn mark(&self, query: &str, batch: u64) -> String {
        format!("{}/{query}/{batch}", self.stream)
    }

    /// A batch is durable: remembers it.
    pub fn add(&mut self, query: &str, batch: CommittedBatch) {
        let batches = self.current.get_or_insert_default();
        note(batches, query, batch.batch, batch.sequence);
        if batches.len() > QUERIES_MAX {
            let oldest = batches.iter().min_by_key(|(_, batch)| batch.sequence);
            if let Some(query) = oldest.map(|(query, _)| query.clone()) {
                batches.remove(&query);
            }
        }
        self.is_unsaved = true;
    }

    /// Whether something is still to be written.
    pub fn is_unsaved(&self) -> bool {
        self.is_unsaved
    }

    /// The store is closed: writes down how far it was looked through, so that this need not be done again.
    pub fn close(&mut self, store: &Store) -> StoreResult<()> {
        let is_behind = self.file.saved().through < store.messages().counts().last_sequence;
        self.is_unsaved |= self.current.is_some() && is_behind;
        self.save(store)
    }

    /// Writes the file, if it does not say everything. As long as that fails, the messages do.
    pub fn save(&mut self, store: &Store) -> StoreResult<()> {
        let Some(batches) = self.current.as_ref().filter(|_| self.is_unsaved) else {
            return Ok(());
        };
        let saved = SavedBatches {
            through: store.messages().counts().last_sequence,
            batches: batches.clone(),
        };
        self.file.save(store, saved)?;
        self.is_unsaved = false;
        Ok(())
    }
}

fn note(batches: &mut BTreeMap<String, CommittedBatch>, query: &str, batch: u64, sequence: u64) {
    let is_later = batches.get(query).is_none_or(|known| known.batch < batch);
    if is_later {
        batches.insert(query.to_owned(), CommittedBatch { batch, sequence });
    }
}

/// The query and the batch of a mark that begins with this stream.
fn read<'a>(value: &'a [u8], prefix: &[u8]) -> Option<(&'a str, u64)> {
    let rest = std::str::from_utf8(value.strip_prefix(prefix)?).ok()?;
    let (query, batch) = rest.split_once('/')?;
    Some((query, batch.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::sync::Arc;

    use crate::storage::disk::file_system::FileSystem;
    use crate::storage::disk::simulated::{SimulatedDisk, Survival};
    use crate::storage::message::{NewMessage, Purge};
    use crate::storage::store::StoreOptions;

    fn open(disk: &SimulatedDisk) -> (Store, CommittedBatches) {
        let file_system: Arc<dyn FileSystem> = Arc::new(disk.clone());
        let folder = Path::new("/s");
        file_system.create_folder(folder).unwrap();
        let messages = folder.join("messages");
        let store = Store::open(Arc::clone(&file_system), &messages, StoreOptions::default());
        let place = FileLocation {
            file_system,
            folder: folder.to_owned(),
        };
        (store.unwrap(), CommittedBatches::new("S", Some(place)))
    }

    fn append(store: &Store, mark: &str) {
        let headers = format!("NATS/1.0\r\nJetlake-Batch: {mark}\r\n\r\n");
        let message = NewMessage {
            subject: b"a",
            headers: headers.as_bytes(),
            ..NewMessage::default()
        };
        store.append(&message).unwrap();
        store.commit().unwrap();
    }

    fn last(store: &Store, batches: &mut CommittedBatches, query: &str) -> Option<u64> {
        let last = batches.last(store, query).unwrap();
        last.map(|last| last.batch)
    }

    #[test]
    fn the_messages_say_which_batches_there_are_but_not_copies_of_other_streams() {
        let disk = SimulatedDisk::default();
        let (store, mut batches) = open(&disk);
        assert_eq!(last(&store, &mut batches, "q"), None);
        append(&store, &batches.mark("q", 3));
        append(&store, "OTHER/q/9");
        append(&store, &batches.mark("p", 0));
        // A copy of an earlier one.
        append(&store, &batches.mark("q", 2));
        append(&store, "S/q");
        append(&store, "S/q/x");

        let (store, mut batches) = open(&disk.after_power_cut(Survival::Nothing));

        assert_eq!(last(&store, &mut batches, "q"), Some(3));
        assert_eq!(last(&store, &mut batches, "p"), Some(0));
        assert_eq!(last(&store, &mut batches, "r"), None);
    }

    #[test]
    fn only_what_came_since_is_looked_through() {
        let disk = SimulatedDisk::default();
        let (store, mut batches) = open(&disk);
        // Before the first batch that was committed here: of an archive, or of another life.
        append(&store, &batches.mark("q", 9));
        assert_eq!(last(&store, &mut batches, "q"), None);
        append(&store, &batches.mark("q", 1));
        batches.add(
            "q",
            CommittedBatch {
                batch: 1,
                sequence: 2,
            },
        );
        append(&store, "nothing");
        batches.close(&store).unwrap();

        let (_, mut batches) = open(&disk.after_power_cut(Survival::Nothing));

        batches.file.load().unwrap();
        assert_eq!(batches.file.saved().through, 3);
        assert!(!batches.file.is_missing());
    }

    #[test]
    fn what_was_added_outlasts_its_messages() {
        let disk = SimulatedDisk::default();
        let (store, mut batches) = open(&disk);
        assert_eq!(last(&store, &mut batches, "q"), None);
        let batch = CommittedBatch {
            batch: 4,
            sequence: 1,
        };
        append(&store, &batches.mark("q", 4));
        batches.add("q", batch);
        batches.save(&store).unwrap();
        store.purge(&Purge::default()).unwrap();
        append(&store, &batches.mark("p", 7));

        let (store, mut batches) = open(&disk.after_power_cut(Survival::Nothing));

        assert_eq!(last(&store, &mut batches, "q"), Some(4));
        assert_eq!(last(&store, &mut batches, "p"), Some(7));
    }

    #[test]
    fn beyond_the_limit_the_query_that_wrote_longest_ago_is_forgotten() {
        let disk = SimulatedDisk::default();
        let (store, _) = open(&disk);
        let mut batches = CommittedBatches::new("S", None);
        for sequence in 1..=QUERIES_MAX as u64 + 1 {
            let batch = CommittedBatch { batch: 1, sequence };
            batches.add(&format!("q{sequence}"), batch);
        }

        assert_eq!(last(&store, &mut batches, "q1"), None);
        assert_eq!(last(&store, &mut batches, "q2"), Some(1));
    }
}
