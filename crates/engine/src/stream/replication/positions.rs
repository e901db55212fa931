//! How far a stream is with each of its sources.
//!
//! Every message that came from a source says which sequence it had there, so the messages themselves tell how far a stream is. That is kept in a small
//! file besides, with the sequence up to which it counts: so opening reads only what came later, and a purge does not make a stream start all over.
//! The file is written after the messages it speaks of are durable; after a crash it may be behind, and never ahead.
//! Invariant: what `saved` says holds for everything up to `saved.through`, and what comes later is in the messages.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::origin::Provenance;
use crate::storage::message::StoreResult;
use crate::storage::store::Store;
use crate::stream::remembered::{FileLocation, Remembered};
use crate::wire::stored_headers;
use crate::wire::trusted_headers;

const NAME: &str = "sources";

/// The last message that was taken of one source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourcePosition {
    pub sequence: u64,
    /// That of the origin it was taken of.
    pub identity: String,
    /// Its sequence here, or that of the last message before it if it was not stored.
    pub stored_as: u64,
    /// The first sequence there that was taken; 0 if only the messages here are known, which do not say it.
    #[serde(default)]
    pub first: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct SavedPositions {
    /// Everything up to this sequence is accounted for.
    through: u64,
    positions: BTreeMap<String, SourcePosition>,
}

pub struct OriginPositions {
    file: Remembered<SavedPositions>,
    current: BTreeMap<String, SourcePosition>,
    /// The last sequence that was given to a message from a source.
    last_staged: u64,
}

impl OriginPositions {
    pub fn new(place: Option<FileLocation>) -> Self {
        Self {
            file: Remembered::new(place, NAME),
            current: BTreeMap::new(),
            last_staged: 0,
        }
    }

    /// Finds out how far what is committed has come.
    pub fn load(&mut self, store: &Store) -> StoreResult<()> {
        self.file.load()?;
        let saved = self.file.saved();
        let mut current = saved.positions.clone();
        store.messages().scan(saved.through + 1, |record| {
            let value = stored_headers::value(record.headers, trusted_headers::STREAM_SOURCE);
            if let Some(provenance) = value.and_then(Provenance::read) {
                let name = provenance.index_name.join(" ");
                let before = current.get(&name);
                let same = before.filter(|before| before.identity == provenance.identity);
                let position = SourcePosition {
                    sequence: provenance.sequence,
                    identity: provenance.identity.to_owned(),
                    stored_as: record.sequence,
                    first: same.map_or(0, |before| before.first),
                };
                current.insert(name, position);
            }
            true
        })?;
        self.current = current;
        self.last_staged = 0;
        Ok(())
    }

    pub fn get(&self, index_name: &str) -> Option<&SourcePosition> {
        self.current.get(index_name)
    }

    pub fn set(&mut self, index_name: &str, position: SourcePosition) {
        self.last_staged = self.last_staged.max(position.stored_as);
        match self.current.get_mut(index_name) {
            Some(current) => *current = position,
            None => {
                self.current.insert(index_name.to_owned(), position);
            }
        }
    }

    pub fn is_saved(&self) -> bool {
        self.current == self.file.saved().positions
    }

    /// Whether the removal of everything up to a sequence could take a message away that only this file knows of otherwise, and it does not yet.
    pub fn needs_saving_before(&self, index_name: &str, sequence: u64) -> bool {
        let saved = &self.file.saved().positions;
        let mut others = self.current.iter().filter(|(name, _)| *name != index_name);
        others.any(|(name, position)| {
            position.stored_as <= sequence && saved.get(name) != Some(position)
        })
    }

    /// Writes the file, if everything it would describe is committed; returns whether it is complete now. All of it was
    /// staged since the store was reset `resets` times: otherwise some of it was discarded, and other messages have its
    /// sequences.
    pub fn save(&mut self, store: &Store, resets: u64) -> StoreResult<bool> {
        let through = store.messages().counts().last_sequence;
        if self.is_saved() {
            return Ok(true);
        }
        // In this order: what is committed now was staged before a reset that comes later.
        if through < self.last_staged || store.resets() != resets {
            return Ok(false);
        }
        let saved = SavedPositions {
            through,
            positions: self.current.clone(),
        };
        self.file.save(store, saved)?;
        Ok(true)
    }
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

    fn position(sequence: u64, stored_as: u64) -> SourcePosition {
        SourcePosition {
            sequence,
            identity: "id".to_owned(),
            stored_as,
            first: 0,
        }
    }

    fn open(disk: &SimulatedDisk) -> (Store, OriginPositions) {
        let file_system: Arc<dyn FileSystem> = Arc::new(disk.clone());
        let folder = Path::new("/s");
        file_system.create_folder(folder).unwrap();
        let store = Store::open(
            Arc::clone(&file_system),
            &folder.join("messages"),
            StoreOptions::default(),
        )
        .unwrap();
        let mut positions = OriginPositions::new(Some(FileLocation {
            file_system,
            folder: folder.to_owned(),
        }));
        positions.load(&store).unwrap();
        (store, positions)
    }

    fn append(store: &Store, value: &str) {
        let headers = format!("NATS/1.0\r\nNats-Stream-Source: {value}\r\n\r\n");
        let message = NewMessage {
            subject: b"a",
            headers: headers.as_bytes(),
            ..NewMessage::default()
        };
        store.append(&message).unwrap();
    }

    #[test]
    fn positions_are_in_the_messages() {
        let disk = SimulatedDisk::default();
        let (store, _) = open(&disk);
        append(&store, "O 3 > > a id");
        append(&store, "P 7 a.* b a id");
        append(&store, "O 5 > > a id");
        store.commit().unwrap();

        let (_, positions) = open(&disk.after_power_cut(Survival::Nothing));

        assert_eq!(positions.get("O > >"), Some(&position(5, 3)));
        assert_eq!(positions.get("P a.* b"), Some(&position(7, 2)));
        assert_eq!(positions.get("Q > >"), None);
    }

    #[test]
    fn what_was_saved_outlasts_its_messages() {
        let disk = SimulatedDisk::default();
        let (store, mut positions) = open(&disk);
        append(&store, "O 3 > > a id");
        append(&store, "P 7 > > a id");
        positions.set("O > >", position(3, 1));
        positions.set("P > >", position(7, 2));
        assert!(!positions.save(&store, 0).unwrap());
        store.commit().unwrap();
        assert!(positions.needs_saving_before("P > >", 1));
        assert!(!positions.needs_saving_before("O > >", 1));
        assert!(!positions.save(&store, 1).unwrap());
        assert!(positions.save(&store, 0).unwrap() && positions.is_saved());
        store.purge(&Purge::default()).unwrap();
        append(&store, "O 4 > > a id");
        store.commit().unwrap();

        let (_, positions) = open(&disk.after_power_cut(Survival::Nothing));

        assert_eq!(positions.get("O > >"), Some(&position(4, 3)));
        assert_eq!(positions.get("P > >"), Some(&position(7, 2)));
    }
}
