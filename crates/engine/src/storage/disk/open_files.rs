//! The files of all stores of this process. When too many are open, those unused for the longest are closed, and opened
//! again when they are needed.
//!
//! A holder of a file does not notice: the file is found again under its current name, and only the same file counts.
//! What cannot be opened again stays open: a file that has lost its name, and one with unsynced bytes, because a later
//! write error is reported only to those who have it open. On the path of a message this costs one uncontended lock
//! around a call to the disk. Invariant: files beyond the limit are in use, or cannot be closed.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use ahash::AHashMap;
use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::file_system::File;
use crate::common::descriptors::Descriptors;

/// Closed at once when the process has no descriptors left, so that not every call has to.
const RELIEF_FILES: usize = 16;

/// How often a call is tried that found no descriptor: another thread may have taken the one that was made free.
const RELIEF_TRIES: usize = 4;

/// Files beyond the limit that may be opened because they are about to lose their name: as many as are rewritten into one at a time.
const NAMELESS_MAX: usize = 64;

/// Places of files that are gone are cleared away when there are as many as this, and as files that are open.
const STALE_MIN: usize = 64;

pub struct OpenFiles {
    files_max: usize,
    open: AtomicUsize,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    /// Files that have a holder, by their current name.
    named: AHashMap<PathBuf, Vec<Weak<StoreFile>>>,
    /// Those that are open, in the order in which they are looked at when one must be closed.
    turns: VecDeque<Weak<StoreFile>>,
}

/// A file of a store, open or not.
pub struct StoreFile {
    own: Weak<StoreFile>,
    files: Arc<OpenFiles>,
    /// Which file it is, whatever its name.
    identity: (u64, u64),
    is_writable: bool,
    /// None when the name is gone, or another file has it. Changes only while the file is open and held so.
    path: Mutex<Option<PathBuf>>,
    descriptor: RwLock<Option<fs::File>>,
    /// Since it was looked at last.
    is_used: AtomicBool,
    /// Writes that were begun, and those among them that are synced.
    written: AtomicU64,
    synced: AtomicU64,
}

type Descriptor<'a> = RwLockReadGuard<'a, Option<fs::File>>;

impl OpenFiles {
    pub fn new(files_max: usize) -> Arc<Self> {
        Arc::new(Self {
            files_max,
            open: AtomicUsize::new(0),
            table: Mutex::default(),
        })
    }

    /// Those of this process.
    pub fn of_process() -> &'static Arc<Self> {
        static FILES: OnceLock<Arc<OpenFiles>> = OnceLock::new();
        FILES.get_or_init(|| Self::new(Descriptors::of_process().files_max))
    }

    /// How many are open.
    pub fn open_count(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Opens a file, for as long as it is held.
    pub fn open(
        self: &Arc<Self>,
        path: &Path,
        options: &fs::OpenOptions,
        is_writable: bool,
    ) -> io::Result<Arc<StoreFile>> {
        self.make_room();
        let descriptor = self.with_relief(|| options.open(path))?;
        let metadata = descriptor.metadata()?;
        let file = Arc::new_cyclic(|own| StoreFile {
            own: own.clone(),
            files: Arc::clone(self),
            identity: (metadata.dev(), metadata.ino()),
            is_writable,
            path: Mutex::new(Some(path.to_owned())),
            descriptor: RwLock::new(Some(descriptor)),
            is_used: AtomicBool::new(true),
            written: AtomicU64::new(0),
            synced: AtomicU64::new(0),
        });
        self.open.fetch_add(1, Ordering::Relaxed);
        let mut table = self.table.lock();
        let named = table.named.entry(path.to_owned()).or_default();
        named.push(Arc::downgrade(&file));
        self.take_turn(&mut table, &file.own);
        Ok(file)
    }

    /// Does what needs a descriptor; if there is none, closes files that nobody uses and tries again.
    pub fn with_relief<T>(&self, call: impl Fn() -> io::Result<T>) -> io::Result<T> {
        for _ in 1..RELIEF_TRIES {
            match call() {
                Err(error) if is_exhausted(&error) && self.close_some(RELIEF_FILES) > 0 => {}
                other => return other,
            }
        }
        call()
    }

    /// Renames a file; its holders find it under the new name. A file that had that name stays open while it is held.
    pub fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (moved, replaced) = (self.held_under(from), self.held_under(to));
        let kept: io::Result<Vec<_>> = moved.iter().map(|file| file.held_open()).collect();
        let _kept = kept?;
        let _replaced = self.keep_readable(&replaced);
        fs::rename(from, to)?;
        self.take_name(&replaced, to);
        self.take_name(&moved, from);
        let mut table = self.table.lock();
        for file in &moved {
            *file.path.lock() = Some(to.to_owned());
            let named = table.named.entry(to.to_owned()).or_default();
            named.push(file.own.clone());
        }
        Ok(())
    }

    /// Removes a name; holders of the file can still read it.
    pub fn remove(&self, path: &Path) -> io::Result<()> {
        let files = self.held_under(path);
        let _kept = self.keep_readable(&files);
        fs::remove_file(path)?;
        self.take_name(&files, path);
        Ok(())
    }

    /// Keeps files open that are about to lose their name, so that their readers can continue. If many more are open
    /// already, closed ones stay closed: their readers get an error that is not reported as damage. A stream with many
    /// segments is deleted at once, and most of them have no reader.
    fn keep_readable<'a>(&self, files: &'a [Arc<StoreFile>]) -> Vec<Descriptor<'a>> {
        let kept = files.iter().filter_map(|file| {
            let descriptor = file.descriptor.read();
            if descriptor.is_some() {
                return Some(descriptor);
            }
            drop(descriptor);
            let has_room = self.open_count() < self.files_max + NAMELESS_MAX;
            has_room.then(|| file.held_open().ok()).flatten()
        });
        kept.collect()
    }

    fn held_under(&self, path: &Path) -> Vec<Arc<StoreFile>> {
        let table = self.table.lock();
        let named = table.named.get(path);
        named.map_or(Vec::new(), |files| {
            files.iter().filter_map(Weak::upgrade).collect()
        })
    }

    fn take_name(&self, files: &[Arc<StoreFile>], path: &Path) {
        for file in files {
            *file.path.lock() = None;
        }
        if !files.is_empty() {
            self.table.lock().named.remove(path);
        }
    }

    fn take_turn(&self, table: &mut Table, file: &Weak<StoreFile>) {
        if table.turns.len() > STALE_MIN.max(2 * self.open_count()) {
            table.turns.retain(|file| file.strong_count() > 0);
        }
        table.turns.push_back(file.clone());
    }

    /// Closes what nobody uses until another file may be opened.
    fn make_room(&self) {
        let excess = (self.open_count() + 1).saturating_sub(self.files_max);
        if excess > 0 {
            self.close_some(excess);
        }
    }

    /// Closes up to `wanted` files that were not used since they were last checked; returns how many.
    fn close_some(&self, wanted: usize) -> usize {
        // Dropped when the table is free again: the last one who holds a file needs it.
        let mut looked_at = Vec::new();
        let mut closed = Vec::new();
        let mut table = self.table.lock();
        // Everyone has a second chance.
        for _ in 0..2 * table.turns.len() {
            if closed.len() >= wanted {
                break;
            }
            let Some(next) = table.turns.pop_front() else {
                break;
            };
            let Some(file) = next.upgrade() else {
                continue;
            };
            match file.is_used.swap(false, Ordering::Relaxed) {
                true => table.turns.push_back(next),
                false => match file.close() {
                    Closing::Closed(descriptor) => closed.push(descriptor),
                    Closing::Stays => table.turns.push_back(next),
                    Closing::WasClosed => {}
                },
            }
            looked_at.push(file);
        }
        drop(table);
        self.open.fetch_sub(closed.len(), Ordering::Relaxed);
        closed.len()
    }
}

enum Closing {
    Closed(fs::File),
    WasClosed,
    /// It is in use, or it could not be opened again.
    Stays,
}

impl StoreFile {
    /// The descriptor, which stays open as long as it is held so.
    fn held_open(&self) -> io::Result<Descriptor<'_>> {
        let descriptor = self.descriptor.read();
        if descriptor.is_some() {
            if !self.is_used.load(Ordering::Relaxed) {
                self.is_used.store(true, Ordering::Relaxed);
            }
            return Ok(descriptor);
        }
        drop(descriptor);
        self.open_again()
    }

    #[cold]
    fn open_again(&self) -> io::Result<Descriptor<'_>> {
        let mut descriptor = self.descriptor.write();
        if descriptor.is_none() {
            let path = self.path.lock().clone();
            let path = path.ok_or(io::ErrorKind::NotFound)?;
            self.files.make_room();
            let mut options = fs::OpenOptions::new();
            options.read(true).write(self.is_writable);
            let opened = self.files.with_relief(|| options.open(&path))?;
            let metadata = opened.metadata()?;
            if (metadata.dev(), metadata.ino()) != self.identity {
                return Err(io::Error::other(format!(
                    "{} was replaced by another file from outside",
                    path.display()
                )));
            }
            *descriptor = Some(opened);
            self.is_used.store(true, Ordering::Relaxed);
            self.files.open.fetch_add(1, Ordering::Relaxed);
            let mut table = self.files.table.lock();
            self.files.take_turn(&mut table, &self.own);
        }
        Ok(RwLockWriteGuard::downgrade(descriptor))
    }

    /// Takes the descriptor away, if nobody uses it and it can be opened again.
    fn close(&self) -> Closing {
        let Some(mut descriptor) = self.descriptor.try_write() else {
            return Closing::Stays;
        };
        let is_synced = self.written.load(Ordering::Relaxed) == self.synced.load(Ordering::Relaxed);
        if descriptor.is_some() && !(is_synced && self.path.lock().is_some()) {
            return Closing::Stays;
        }
        match descriptor.take() {
            Some(descriptor) => Closing::Closed(descriptor),
            None => Closing::WasClosed,
        }
    }

    fn with<T>(&self, call: impl FnOnce(&fs::File) -> io::Result<T>) -> io::Result<T> {
        let descriptor = self.held_open()?;
        match &*descriptor {
            Some(file) => call(file),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    #[cfg(test)]
    fn is_open(&self) -> bool {
        self.descriptor.read().is_some()
    }
}

impl Drop for StoreFile {
    fn drop(&mut self) {
        if self.descriptor.get_mut().is_some() {
            self.files.open.fetch_sub(1, Ordering::Relaxed);
        }
        let Some(path) = self.path.get_mut().take() else {
            return;
        };
        let mut table = self.files.table.lock();
        if let Some(named) = table.named.get_mut(&path) {
            named.retain(|file| file.strong_count() > 0);
            if named.is_empty() {
                table.named.remove(&path);
            }
        }
    }
}

impl File for StoreFile {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.with(|file| File::read_exact_at(file, buffer, offset))
    }

    fn read_cached_at(&self, buffer: &mut [u8], offset: u64) -> bool {
        // A thread that must not wait does not open the file either.
        let descriptor = self.descriptor.try_read();
        let Some(file) = descriptor.as_ref().and_then(|file| file.as_ref()) else {
            return false;
        };
        if !self.is_used.load(Ordering::Relaxed) {
            self.is_used.store(true, Ordering::Relaxed);
        }
        file.read_cached_at(buffer, offset)
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.with(|file| {
            self.written.fetch_add(1, Ordering::Relaxed);
            File::write_all_at(file, bytes, offset)
        })
    }

    fn sync(&self) -> io::Result<()> {
        self.with(|file| {
            let written = self.written.load(Ordering::Relaxed);
            file.sync()?;
            self.synced.fetch_max(written, Ordering::Relaxed);
            Ok(())
        })
    }

    fn len(&self) -> io::Result<u64> {
        self.with(File::len)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.with(|file| {
            self.written.fetch_add(1, Ordering::Relaxed);
            File::set_len(file, length)
        })
    }

    fn links(&self) -> io::Result<u64> {
        self.with(File::links)
    }
}

/// Whether a call failed because the process, or the whole system, has no descriptor left.
fn is_exhausted(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

#[cfg(test)]
#[path = "open_files_tests.rs"]
mod tests;
