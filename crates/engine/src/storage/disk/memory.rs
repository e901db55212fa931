//! A disk in memory, for streams that are forgotten with the server. Nothing here fails, and nothing needs a sync.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use super::file_system::{File, FileSystem, OpenMode};

/// What a segment of a memory stream holds: small, because memory comes back by whole segments.
pub const MEMORY_SEGMENT_BYTES: u64 = 8 * 1024 * 1024;

#[derive(Default)]
pub struct MemoryFileSystem {
    state: Mutex<MemoryState>,
}

#[derive(Default)]
struct MemoryState {
    files: BTreeMap<PathBuf, Arc<MemoryFile>>,
    folders: BTreeSet<PathBuf>,
}

#[derive(Default)]
struct MemoryFile {
    bytes: RwLock<Vec<u8>>,
    links: AtomicU64,
}

impl MemoryState {
    /// Gives a file a name, in place of what had it.
    fn name(&mut self, path: &Path, file: Arc<MemoryFile>) {
        file.links.fetch_add(1, Ordering::AcqRel);
        if let Some(replaced) = self.files.insert(path.to_owned(), file) {
            replaced.links.fetch_sub(1, Ordering::AcqRel);
        }
    }

    fn unname(&mut self, path: &Path) -> io::Result<Arc<MemoryFile>> {
        let file = self.files.remove(path).ok_or_else(not_found)?;
        file.links.fetch_sub(1, Ordering::AcqRel);
        Ok(file)
    }
}

fn not_found() -> io::Error {
    io::ErrorKind::NotFound.into()
}

impl FileSystem for MemoryFileSystem {
    fn open(&self, path: &Path, access: OpenMode) -> io::Result<Arc<dyn File>> {
        let mut state = self.state.lock();
        match (state.files.get(path), access) {
            (Some(file), OpenMode::Read | OpenMode::Write) => Ok(Arc::clone(file) as Arc<dyn File>),
            (None, OpenMode::Read | OpenMode::Write) => Err(not_found()),
            (Some(_), OpenMode::Create) => Err(io::ErrorKind::AlreadyExists.into()),
            (None, OpenMode::Create) => {
                let file = Arc::new(MemoryFile::default());
                state.name(path, Arc::clone(&file));
                Ok(file)
            }
        }
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<String>> {
        let state = self.state.lock();
        if !state.folders.contains(folder) {
            return Err(not_found());
        }
        let all = state.files.keys().chain(&state.folders);
        let here = all.filter(|path| path.parent() == Some(folder));
        let names = here.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()));
        Ok(names.collect())
    }

    fn create_folder(&self, folder: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        state.folders.extend(folder.ancestors().map(Path::to_owned));
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.state.lock().unname(path).map(|_| ())
    }

    fn remove_folder(&self, folder: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        if state.files.keys().any(|path| path.parent() == Some(folder)) {
            return Err(io::Error::from_raw_os_error(libc::ENOTEMPTY));
        }
        state.folders.remove(folder);
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        let file = state.unname(from)?;
        state.name(to, file);
        Ok(())
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        let file = state.files.get(from).cloned().ok_or_else(not_found)?;
        state.name(to, file);
        Ok(())
    }

    fn sync_folder(&self, _folder: &Path) -> io::Result<()> {
        Ok(())
    }

    fn has_disk(&self) -> bool {
        false
    }
}

impl File for MemoryFile {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let bytes = self.bytes.read();
        let start = offset as usize;
        let end = start.checked_add(buffer.len());
        match end.and_then(|end| bytes.get(start..end)) {
            Some(found) => {
                buffer.copy_from_slice(found);
                Ok(())
            }
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    fn read_cached_at(&self, buffer: &mut [u8], offset: u64) -> bool {
        self.read_exact_at(buffer, offset).is_ok()
    }

    fn write_all_at(&self, written: &[u8], offset: u64) -> io::Result<()> {
        let mut bytes = self.bytes.write();
        let start = offset as usize;
        let end = start + written.len();
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        bytes[start..end].copy_from_slice(written);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes.read().len() as u64)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let mut bytes = self.bytes.write();
        bytes.resize(length as usize, 0);
        bytes.shrink_to_fit();
        Ok(())
    }

    fn links(&self) -> io::Result<u64> {
        Ok(self.links.load(Ordering::Acquire))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::message::NewMessage;
    use crate::storage::store::{Store, StoreOptions};

    #[test]
    fn a_memory_stream_gives_memory_back() {
        let memory = Arc::new(MemoryFileSystem::default());
        let options = StoreOptions {
            segment_bytes: 64 * 1024,
            fill_ahead: false,
            limits: crate::storage::message::Limits {
                messages_max: Some(100),
                ..Default::default()
            },
            ..StoreOptions::default()
        };
        let store = Store::open(memory.clone(), Path::new("/m"), options).unwrap();

        for number in 0..10_000 {
            let message = NewMessage {
                subject: b"a",
                payload: &[b'x'; 500],
                time_ns: number,
                ..NewMessage::default()
            };
            store.append(&message).unwrap();
            if number % 50 == 0 {
                store.commit().unwrap();
                store.maintain().unwrap();
            }
        }
        store.commit().unwrap();
        store.maintain().unwrap();

        assert_eq!(store.messages().state().messages, 100);
        assert_eq!(
            store.messages().read(10_000).unwrap().unwrap().payload(),
            [b'x'; 500]
        );
        let state = memory.state.lock();
        let held: u64 = state.files.values().map(|file| file.len().unwrap()).sum();
        assert!(held < 400 * 1024, "{held}");
    }
}
