//! A file system that holds up reads or syncs of some files until the gate is opened.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jetlake_engine::storage::disk::file_system::{File, FileSystem, OpenMode};
use jetlake_engine::storage::disk::simulated::SimulatedDisk;
use parking_lot::{Condvar, Mutex};

/// A call must come to a closed gate within this time, on a busy machine.
const ARRIVED_MAX: Duration = Duration::from_secs(20);

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Call {
    Read,
    Sync,
}

#[derive(Default)]
struct Gate {
    closed: Mutex<Option<(Call, String)>>,
    changed: Condvar,
    waiting: AtomicUsize,
}

#[derive(Clone, Default)]
pub struct GatedDisk {
    disk: SimulatedDisk,
    gate: Arc<Gate>,
}

impl GatedDisk {
    /// Holds up these calls for files whose path contains a text.
    pub fn close(&self, call: Call, path_part: &str) {
        *self.gate.closed.lock() = Some((call, path_part.to_owned()));
    }

    pub fn open_gate(&self) {
        *self.gate.closed.lock() = None;
        self.gate.changed.notify_all();
    }

    /// Waits until a call is held up.
    pub fn wait_for_arrival(&self) {
        let deadline = Instant::now() + ARRIVED_MAX;
        while self.gate.waiting.load(Ordering::SeqCst) == 0 {
            assert!(Instant::now() < deadline, "nobody comes to the gate");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Gate {
    fn pass(&self, call: Call, path: &Path) {
        let path = path.to_string_lossy();
        let mut closed = self.closed.lock();
        let is_held = |closed: &Option<(Call, String)>| {
            let gate = closed.as_ref();
            gate.is_some_and(|(held, part)| *held == call && path.contains(part.as_str()))
        };
        while is_held(&closed) {
            self.waiting.fetch_add(1, Ordering::SeqCst);
            self.changed.wait(&mut closed);
            self.waiting.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

impl FileSystem for GatedDisk {
    fn open(&self, path: &Path, access: OpenMode) -> io::Result<Arc<dyn File>> {
        let file = self.disk.open(path, access)?;
        Ok(Arc::new(GatedFile {
            file,
            path: path.to_owned(),
            gate: Arc::clone(&self.gate),
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
        self.disk.sync_folder(folder)
    }
}

struct GatedFile {
    file: Arc<dyn File>,
    path: PathBuf,
    gate: Arc<Gate>,
}

impl File for GatedFile {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.gate.pass(Call::Read, &self.path);
        self.file.read_exact_at(buffer, offset)
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.gate.pass(Call::Sync, &self.path);
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
