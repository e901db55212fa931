//! A disk in memory that reports each sync, and each read, before it is made; the observer may count it, or let it hang.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jetlake_engine::storage::disk::file_system::{File, FileSystem, OpenMode};
use jetlake_engine::storage::disk::simulated::SimulatedDisk;

type Told = dyn Fn(&Path) + Send + Sync;

#[derive(Clone)]
pub struct WatchedDisk {
    pub disk: SimulatedDisk,
    pub on_sync: Arc<Told>,
    pub on_read: Arc<Told>,
}

impl WatchedDisk {
    pub fn new(on_sync: impl Fn(&Path) + Send + Sync + 'static) -> Self {
        Self {
            disk: SimulatedDisk::default(),
            on_sync: Arc::new(on_sync),
            on_read: Arc::new(|_| {}),
        }
    }
}

impl FileSystem for WatchedDisk {
    fn open(&self, path: &Path, access: OpenMode) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(WatchedFile {
            file: self.disk.open(path, access)?,
            path: path.to_owned(),
            on_sync: Arc::clone(&self.on_sync),
            on_read: Arc::clone(&self.on_read),
        }))
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<String>> {
        self.disk.list(folder)
    }

    fn create_folder(&self, folder: &Path) -> io::Result<()> {
        self.disk.create_folder(folder)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.disk.remove_file(path)
    }

    fn remove_folder(&self, folder: &Path) -> io::Result<()> {
        self.disk.remove_folder(folder)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.link(from, to)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        (self.on_sync)(folder);
        self.disk.sync_folder(folder)
    }
}

struct WatchedFile {
    file: Arc<dyn File>,
    path: PathBuf,
    on_sync: Arc<Told>,
    on_read: Arc<Told>,
}

impl File for WatchedFile {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        (self.on_read)(&self.path);
        self.file.read_exact_at(buffer, offset)
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        (self.on_sync)(&self.path);
        self.file.sync()
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.file.set_len(length)
    }

    fn links(&self) -> io::Result<u64> {
        self.file.links()
    }
}
