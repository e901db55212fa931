//! Where the streams of a server are on disk, and how they come and go.
//!
//! ```text
//! <folder>/<account>/streams/<stream>/definition.a and .b    the definition, twice
//!                                     messages/…             the store
//!                                     consumers/…            another store: the consumers and their states
//!                                     schedules.1 and .2     when its repeating schedules are due next, twice
//!                                     sources.1 and .2       how far its sources are, twice; rebuilt from the messages, if those are still there
//! ```
//! A stream exists when its definition does. The definition is written last when a stream is created, and is marked as
//! deleted before anything is removed, so a crash at any moment leaves the whole stream or none. A definition of
//! generation 0 says that nothing in `messages` counts yet: the creator of a stream need not wait until its store is
//! durable, and whatever a crash leaves of that store is thrown away. Invariant: what `create` and `delete` have
//! returned survives a power cut.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ahash::AHashSet;
use parking_lot::Mutex;

use crate::storage::disk::failure::DiskFailure;
use crate::storage::disk::file_system::FileSystem;
use crate::storage::disk::twin_file;
use crate::storage::disk::twin_file::{TwinFile, Twins};

const DEFINITION: &str = "definition";
const MESSAGES: &str = "messages";
const CONSUMERS: &str = "consumers";
const STREAMS: &str = "streams";

/// What a definition says while its stream is being removed.
const DELETED: &[u8] = b"{\"deleted\":true}";

/// The generation of a definition while the store of its stream is not durable.
const BEGINNING: u64 = 0;

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
pub struct FoundDefinition {
    pub folder: PathBuf,
    pub definition: Vec<u8>,
}

/// What was found in all folders.
#[derive(Default)]
pub struct Inventory {
    pub streams: Vec<FoundDefinition>,
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
            let account = self.root.join(&account);
            let streams = account.join(STREAMS);
            if self.is_link(&account, &mut inventory) || self.is_link(&streams, &mut inventory) {
                continue;
            }
            for name in self.list(&streams)? {
                let folder = streams.join(&name);
                if !self.is_link(&folder, &mut inventory) {
                    self.look(&folder, &mut inventory)?;
                }
            }
        }
        Ok(inventory)
    }

    /// Whether this is a symbolic link: it may lead anywhere, and nothing must be removed through it.
    fn is_link(&self, path: &Path, inventory: &mut Inventory) -> bool {
        let is_link = self.file_system.is_link(path);
        if is_link {
            inventory.findings.push(format!(
                "{}: left alone, symbolic links are not followed; move the folder here, or mount its disk",
                path.display()
            ));
        }
        is_link
    }

    fn look(&self, folder: &Path, inventory: &mut Inventory) -> io::Result<()> {
        let shown = folder.display();
        let found = twin_file::read(&*self.file_system, folder, DEFINITION, true);
        if matches!(&found, Err(error) if is_no_folder(error)) {
            let line = format!("{shown}: left alone, it is not a folder");
            inventory.findings.push(line);
            return Ok(());
        }
        let found = match found? {
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
        if found.generation == BEGINNING {
            // Nothing in it was ever acknowledged.
            self.remove_all(&Self::messages(folder), 0)?;
        }
        inventory.streams.push(FoundDefinition {
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
            // A file next to the folders of accounts has no streams.
            Err(error) if is_missing(&error) || is_no_folder(&error) => Ok(Vec::new()),
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

    /// Writes the definition of a stream whose store is not durable yet; returns when it is durable itself.
    pub fn begin(&self, folder: &Path, definition: &[u8]) -> io::Result<()> {
        let twin = TwinFile {
            generation: BEGINNING,
            body: definition.to_vec(),
        };
        twin_file::write_first(&*self.file_system, folder, DEFINITION, &twin)
    }

    /// What to do when the store of a stream that was begun is durable: from then on what is in it counts.
    pub fn finish_beginning(
        &self,
        folder: &Path,
        definition: &[u8],
    ) -> impl Fn() -> io::Result<()> + Send + 'static {
        let file_system = Arc::clone(&self.file_system);
        let folder = folder.to_owned();
        let twin = TwinFile {
            generation: BEGINNING + 1,
            body: definition.to_vec(),
        };
        move || twin_file::write(&*file_system, &folder, DEFINITION, &twin)
    }

    /// The same for a stream that was found as it had begun, and whose store is durable now.
    pub fn finish_found(&self, folder: &Path) -> io::Result<()> {
        match twin_file::read(&*self.file_system, folder, DEFINITION, false)? {
            Twins::Good(twin) | Twins::Behind(twin) | Twins::Healed(twin)
                if twin.generation == BEGINNING =>
            {
                self.finish_beginning(folder, &twin.body)()
            }
            _ => Ok(()),
        }
    }

    /// Lets a stream be gone, durably. Its files are still there.
    pub fn delete(&self, folder: &Path) -> io::Result<()> {
        match self.define(folder, DELETED) {
            Err(error) if DiskFailure::of(&error) == DiskFailure::Full => {
                // Deleting makes room, so it must not need any: one copy of the definition goes for what the other one becomes.
                let copy = folder.join(format!("{DEFINITION}.2"));
                match self.file_system.remove_file(&copy) {
                    Err(error) if !is_missing(&error) => return Err(error),
                    _ => {}
                }
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
        if self.file_system.is_link(folder) {
            // What it leads to stays.
            return self.file_system.remove_file(folder);
        }
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

fn is_no_folder(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotADirectory
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
