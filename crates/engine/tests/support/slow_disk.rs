//! A file system whose syncs take their time, and are counted.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use jetlake_engine::storage::disk::file_system::{File, FileSystem, OpenMode};
use jetlake_engine::storage::disk::simulated::SimulatedDisk;

#[derive(Clone)]
pub struct SlowDisk {
    pub disk: SimulatedDisk,
    pub sync_takes: Duration,
    /// Syncs of files that have begun, and that have ended.
    pub begun: Arc<AtomicU64>,
    pub ended: Arc<AtomicU64>,
}

impl SlowDisk {
    pub fn new(disk: SimulatedDisk, sync_takes: Duration) -> Self {
        Self {
            disk,
            sync_takes,
            begun: Arc::default(),
            ended: Arc::default(),
        }
    }
}

impl FileSystem for SlowDisk {
    fn open(&self, path: &Path, access: OpenMode) -> io::Result<Arc<dyn File>> {
        let file = self.disk.open(path, access)?;
        let disk = self.clone();
        Ok(Arc::new(SlowFile { file, disk }))
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
        self.disk.sync_folder(folder)
    }
}

struct SlowFile {
    file: Arc<dyn File>,
    disk: SlowDisk,
}

impl File for SlowFile {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset)
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.begun.fetch_add(1, Ordering::SeqCst);
        thread::sleep(self.disk.sync_takes);
        let synced = self.file.sync();
        self.disk.ended.fetch_add(1, Ordering::SeqCst);
        synced
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
