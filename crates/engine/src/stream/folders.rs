//! Where the streams of a server are on disk, and how they come and go.
//!
//! ```text
//! <folder>/<account>/streams/<stream>/definition.a and .b    the definition, twice
//!                                     messages/…             the store
//!                                     consumers/…            another store: the consumers and their states
//!                                     sources.1 and .2       how far its sources are, twice; can be made anew from the messages, unless they are gone
//! ```
//! A stream is there when its definition is. It comes last when a stream is made, and says that it is deleted before anything is removed, so a crash
//! at any moment leaves the stream whole, or none. Invariant: what `create` and `delete` have returned survives a power cut.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ahash::AHashSet;
use parking_lot::Mutex;

use crate::storage::file_system::FileSystem;
use crate::storage::twin_file::{self, TwinFile, Twins};

const DEFINITION: &str = "definition";
const MESSAGES: &str = "messages";
const CONSUMERS: &str = "consumers";
const STREAMS: &str = "streams";

/// What a definition says while its stream is being removed.
const DELETED: &[u8] = b"{\"deleted\":true}";

/// Names of folders are as those of streams up to this length, if they have nothing but letters, digits, - and _.
const PLAIN_NAME_BYTES_MAX: usize = 100;

/// Folders within folders that are removed, at most.
const DEPTH_MAX: usize = 4;

pub struct Folders {
    pub file_system: Arc<dyn FileSystem>,
    root: PathBuf,
    /// Folders that were synced once, with all above them.
    synced: Mutex<AHashSet<PathBuf>>,
}

/// A definition that was found.
pub struct Found {
    pub folder: PathBuf,
    pub definition: Vec<u8>,
}

/// What was found in all folders.
#[derive(Default)]
pub struct Inventory {
    pub streams: Vec<Found>,
    /// What is wrong, one line each.
    pub findings: Vec<String>,
}

impl Folders {
    pub fn new(file_system: Arc<dyn FileSystem>, root: &Path) -> Self {
        Self {
            file_system,
            root: root.to_owned(),
            synced: Mutex::default(),
        }
    }

    pub fn of_stream(&self, account: &str, name: &str) -> PathBuf {
        let account = self.root.join(folder_name(account));
        account.join(STREAMS).join(folder_name(name))
    }

    /// Where the archive of a stream that is being restored waits; without a definition, so that a start removes it.
    pub fn of_restore(&self, account: &str, id: &str) -> PathBuf {
        let streams = self.root.join(folder_name(account)).join(STREAMS);
        streams.join(format!("~restore-{}", folder_name(id)))
    }

    pub fn messages(folder: &Path) -> PathBuf {
        folder.join(MESSAGES)
    }

    pub fn consumers(folder: &Path) -> PathBuf {
        folder.join(CONSUMERS)
    }

    /// Finds all definitions, finishes what was interrupted.
    pub fn inventory(&self) -> io::Result<Inventory> {
        let mut inventory = Inventory::default();
        for account in self.list(&self.root)? {
            let streams = self.root.join(&account).join(STREAMS);
            for name in self.list(&streams)? {
                self.look(&streams.join(&name), &mut inventory)?;
            }
        }
        Ok(inventory)
    }

    fn look(&self, folder: &Path, inventory: &mut Inventory) -> io::Result<()> {
        let shown = folder.display();
        let found = match twin_file::read(&*self.file_system, folder, DEFINITION, true)? {
            Twins::Missing => {
                // It was never acknowledged.
                self.remove_all(folder, 0)?;
                inventory
                    .findings
                    .push(format!("{shown}: removed, its creation had not finished"));
                return Ok(());
            }
            Twins::Good(twin) | Twins::Behind(twin) => twin,
            Twins::Healed(twin) => {
                let line = format!("{shown}: one copy of the definition was damaged and is healed");
                inventory.findings.push(line);
                twin
            }
            other => {
                let line = format!(
                    "{shown}: the stream cannot be served, both copies of its definition are damaged ({other:?}); its messages are untouched, \
                     put a good copy of the definition back from a backup"
                );
                inventory.findings.push(line);
                return Ok(());
            }
        };
        if found.body == DELETED {
            return self.remove(folder);
        }
        inventory.streams.push(Found {
            folder: folder.to_owned(),
            definition: found.body,
        });
        Ok(())
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<String>> {
        match self.file_system.list(folder) {
            Ok(mut names) => {
                names.sort();
                Ok(names)
            }
            Err(error) if is_missing(&error) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// Whether a folder may be used for a new stream: nothing is there, or only what an interrupted creation or removal has left.
    pub fn is_free(&self, folder: &Path) -> io::Result<bool> {
        let found = twin_file::read(&*self.file_system, folder, DEFINITION, false)?;
        Ok(match found {
            Twins::Missing => true,
            Twins::Good(twin) | Twins::Behind(twin) | Twins::Healed(twin) => twin.body == DELETED,
            Twins::TooNew(_) | Twins::Lost => false,
        })
    }

    /// Makes the folders of a stream, durably but for what is in its own, which is synced with the definition.
    pub fn prepare(&self, folder: &Path) -> io::Result<()> {
        self.file_system.create_folder(&Self::messages(folder))?;
        let mut above = folder.parent();
        let mut synced = self.synced.lock();
        while let Some(one) = above {
            self.file_system.sync_folder(one)?;
            // Nothing has come into what lies above since that was synced.
            if one == self.root || !synced.insert(one.to_owned()) {
                break;
            }
            above = one.parent();
        }
        Ok(())
    }

    /// Writes the definition, for the first time or in place of the one before.
    pub fn define(&self, folder: &Path, definition: &[u8]) -> io::Result<()> {
        let generation = match twin_file::read(&*self.file_system, folder, DEFINITION, false)? {
            Twins::Good(twin) | Twins::Behind(twin) | Twins::Healed(twin) => twin.generation + 1,
            _ => 1,
        };
        let twin = TwinFile {
            generation,
            body: definition.to_vec(),
        };
        twin_file::write(&*self.file_system, folder, DEFINITION, &twin)
    }

    /// Lets a stream be gone, durably. Its files are still there.
    pub fn delete(&self, folder: &Path) -> io::Result<()> {
        match self.define(folder, DELETED) {
            Err(error) if is_full(&error) => {
                // Deleting makes room, so it must not need any: one copy of the definition goes for what the other one becomes.
                let copy = folder.join(format!("{DEFINITION}.2"));
                self.file_system.remove_file(&copy)?;
                self.file_system.sync_folder(folder)?;
                self.define(folder, DELETED)
            }
            defined => defined,
        }
    }

    /// Removes the files of a stream that is gone; what this leaves is removed at the next start.
    pub fn remove(&self, folder: &Path) -> io::Result<()> {
        self.remove_all(&Self::messages(folder), 0)?;
        self.file_system.sync_folder(folder)?;
        self.remove_all(folder, 0)
    }

    /// Removes a folder with everything in it; nothing is wrong if it is not there.
    pub fn remove_all(&self, folder: &Path, depth: usize) -> io::Result<()> {
        for name in self.list(folder)? {
            let path = folder.join(&name);
            match self.file_system.remove_file(&path) {
                Ok(()) => {}
                Err(error) if is_missing(&error) => {}
                Err(_) if depth < DEPTH_MAX => self.remove_all(&path, depth + 1)?,
                Err(error) => return Err(error),
            }
        }
        match self.file_system.remove_folder(folder) {
            Err(error) if !is_missing(&error) => Err(error),
            _ => Ok(()),
        }
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT))
}

fn is_missing(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

/// The name of a folder for any name of an account or a stream.
fn folder_name(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'$');
    if !name.is_empty() && name.len() <= PLAIN_NAME_BYTES_MAX && name.bytes().all(plain) {
        return name.to_owned();
    }
    let digest = ring::digest::digest(&ring::digest::SHA256, name.as_bytes());
    let mut text = String::from("~");
    for byte in digest.as_ref() {
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

#[cfg(test)]
#[path = "folders_tests.rs"]
mod tests;
