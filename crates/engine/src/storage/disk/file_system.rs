//! Every call the storage makes to a disk, as one small interface, so that tests can put a disk that fails behind it.
//!
//! What is promised is what a file system promises and no more: bytes are durable after `sync` of their file, names after `sync_folder` of
//! their folder. Everything else may be lost, in any combination, by a power cut.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

#[cfg(target_os = "linux")]
use rustix::io::{preadv2, ReadWriteFlags};

use super::open_files::OpenFiles;

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    Read,
    /// Read and write a file that must be there.
    Write,
    /// Read and write a file that must not be there yet.
    Create,
}

pub trait FileSystem: Send + Sync {
    fn open(&self, path: &Path, access: OpenMode) -> io::Result<Arc<dyn File>>;
    /// The names in a folder, in any order.
    fn list(&self, folder: &Path) -> io::Result<Vec<String>>;
    /// Whether this is a symbolic link. Its target may belong to another program.
    fn is_link(&self, _path: &Path) -> bool {
        false
    }
    /// Makes a folder and those above it.
    fn create_folder(&self, folder: &Path) -> io::Result<()>;
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Removes an empty folder.
    fn remove_folder(&self, folder: &Path) -> io::Result<()>;
    /// Gives a file another name in the same folder, in place of what had that name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// A second name for the same bytes.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Makes the names in a folder durable.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;
    /// Whether there is a disk that a call may have to wait for.
    fn has_disk(&self) -> bool {
        true
    }
}

pub trait File: Send + Sync {
    /// Fills the buffer from `offset`; an end before that is an error of kind `UnexpectedEof`.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
    /// Fills the buffer from `offset` if that needs no disk; false if it may, or if nobody knows.
    fn read_cached_at(&self, _buffer: &mut [u8], _offset: u64) -> bool {
        false
    }
    /// Writes all of the bytes at `offset`.
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Makes all bytes written so far durable.
    fn sync(&self) -> io::Result<()>;
    fn len(&self) -> io::Result<u64>;
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
    fn set_len(&self, length: u64) -> io::Result<()>;
    /// How many names the file has: with more than one, another reader may see what is written into it.
    fn links(&self) -> io::Result<u64>;
}

/// Messages are for the server's user alone, whatever its umask: as at nats-server.
const PRIVATE_FILE_MODE: u32 = 0o600;
const PRIVATE_FOLDER_MODE: u32 = 0o700;

/// The disk of this machine. Its files are among the `OpenFiles` of this process.
#[derive(Debug, Default, Clone, Copy)]
pub struct RealFileSystem;

impl FileSystem for RealFileSystem {
    fn open(&self, path: &Path, access: OpenMode) -> io::Result<Arc<dyn File>> {
        let mut options = fs::OpenOptions::new();
        options.read(true);
        options.mode(PRIVATE_FILE_MODE);
        match access {
            OpenMode::Read => {}
            OpenMode::Write => {
                options.write(true);
            }
            OpenMode::Create => {
                options.write(true).create_new(true);
            }
        }
        let is_writable = access != OpenMode::Read;
        Ok(OpenFiles::of_process().open(path, &options, is_writable)?)
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in OpenFiles::of_process().with_relief(|| fs::read_dir(folder))? {
            // A name that is not text was not made by us.
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn is_link(&self, path: &Path) -> bool {
        fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_symlink())
    }

    fn create_folder(&self, folder: &Path) -> io::Result<()> {
        let mut builder = fs::DirBuilder::new();
        builder
            .mode(PRIVATE_FOLDER_MODE)
            .recursive(true)
            .create(folder)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        OpenFiles::of_process().remove(path)
    }

    fn remove_folder(&self, folder: &Path) -> io::Result<()> {
        fs::remove_dir(folder)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        OpenFiles::of_process().rename(from, to)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        let folder = OpenFiles::of_process().with_relief(|| fs::File::open(folder))?;
        folder.sync_all()
    }
}

impl File for fs::File {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        FileExt::read_exact_at(self, buffer, offset)
    }

    #[cfg(target_os = "linux")]
    fn read_cached_at(&self, buffer: &mut [u8], offset: u64) -> bool {
        let wanted = buffer.len();
        let read = preadv2(
            self,
            &mut [io::IoSliceMut::new(buffer)],
            offset,
            ReadWriteFlags::NOWAIT,
        );
        // If only its beginning is in memory, a thread that may wait reads it as a whole.
        read == Ok(wanted)
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        FileExt::write_all_at(self, bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        fs::File::set_len(self, length)
    }

    fn links(&self) -> io::Result<u64> {
        Ok(self.metadata()?.nlink())
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn what_was_just_written_is_read_from_memory_and_nothing_behind_the_end() {
        let name = format!("jetlake-cached-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let file = RealFileSystem.open(&path, OpenMode::Create).unwrap();
        file.write_all_at(b"0123456789", 0).unwrap();

        let mut whole = [0; 4];
        let is_cached = file.read_cached_at(&mut whole, 3);
        let is_cached_behind = file.read_cached_at(&mut [0; 4], 8);

        fs::remove_file(path).unwrap();
        // A file system that cannot tell says that it is not; what it says that it is, is right.
        assert!(!is_cached || whole == *b"3456");
        assert!(!is_cached_behind);
    }
}
