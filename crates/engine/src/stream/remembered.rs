//! What a stream remembers besides its messages, in a small file kept twice.
//!
//! The messages themselves tell it, too, as long as they are there: the file says up to which sequence it counts, so that only what came later is looked
//! through. It is written after the messages it speaks of are durable; after a crash it may be behind, and never ahead.
//! Invariant: `saved` is what the file says, or would say if there were one.

use std::path::PathBuf;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::Serialize;

use crate::storage::disk::failure;
use crate::storage::disk::file_system::FileSystem;
use crate::storage::disk::twin_file;
use crate::storage::disk::twin_file::{TwinFile, Twins};
use crate::storage::message::{StoreError, StoreResult};
use crate::storage::store::Store;

/// Where the file is.
#[derive(Clone)]
pub struct FileLocation {
    pub file_system: Arc<dyn FileSystem>,
    pub folder: PathBuf,
}

pub struct Remembered<T> {
    /// None for a stream in memory, which does not survive its server.
    place: Option<FileLocation>,
    name: &'static str,
    /// Of the file; None before it was looked for.
    generation: Option<u64>,
    is_missing: bool,
    saved: T,
}

impl<T: Default + Serialize + DeserializeOwned> Remembered<T> {
    pub fn new(place: Option<FileLocation>, name: &'static str) -> Self {
        Self {
            place,
            name,
            generation: None,
            is_missing: false,
            saved: T::default(),
        }
    }

    pub fn saved(&self) -> &T {
        &self.saved
    }

    /// Whether there was no file when it was looked for, and none has been written since.
    pub fn is_missing(&self) -> bool {
        self.is_missing
    }

    /// Reads the file, unless that was done. What cannot be read is found again in the messages.
    pub fn load(&mut self) -> StoreResult<()> {
        if self.generation.is_some() {
            return Ok(());
        }
        let found = match &self.place {
            Some(place) => twin_file::read(&*place.file_system, &place.folder, self.name, true)
                .map_err(|error| StoreError::Read(Arc::new(error)))?,
            None => Twins::Missing,
        };
        self.generation = Some(0);
        self.is_missing = found == Twins::Missing;
        if let Twins::Good(twin) | Twins::Behind(twin) | Twins::Healed(twin) = found {
            self.generation = Some(twin.generation);
            self.saved = serde_json::from_slice(&twin.body).unwrap_or_default();
        }
        Ok(())
    }

    /// Writes the file; everything it speaks of is committed.
    pub fn save(&mut self, store: &Store, value: T) -> StoreResult<()> {
        if let Some(place) = &self.place {
            store.sync()?;
            let generation = self.generation.unwrap_or(0) + 1;
            let twin = TwinFile {
                generation,
                body: serde_json::to_vec(&value).expect("it has nothing that JSON has not"),
            };
            twin_file::write(&*place.file_system, &place.folder, self.name, &twin).map_err(
                |error| {
                    failure::refusal(&error)
                        .unwrap_or_else(|| StoreError::ReadOnly(Arc::new(error)))
                },
            )?;
            self.generation = Some(generation);
        }
        self.is_missing = false;
        self.saved = value;
        Ok(())
    }
}
