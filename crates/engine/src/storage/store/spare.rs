//! The file of the next segment: made when it is needed, or filled with zeros ahead, because writing over blocks that are there is faster than adding some.
//!
//! Invariant: a file gets the name of a segment only when its header is durable, so a segment without a header is damage.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::folder::StoreFolder;
use super::writing::{remove_if_there, write_zeros, BLOCK_BYTES, SLACK_BYTES};
use crate::storage::disk::file_system::{File, FileSystem, OpenMode};
use crate::storage::format::segment_header::{SegmentHeader, RECORDS_START};
use crate::storage::segment::segment_file;

/// Zeros written between two syncs.
const SPARE_PIECE_BYTES: u64 = 8 * 1024 * 1024;

/// Removed on opening, like everything that is not finished.
const SPARE_NAME: &str = "spare.new";

/// A file of zeros that becomes a segment.
pub struct Spare {
    file: Arc<dyn File>,
    path: PathBuf,
    filled: u64,
}

impl Spare {
    /// A file as long as a segment may become.
    pub fn fill(folder: &StoreFolder) -> io::Result<Self> {
        let file_system = &*folder.file_system;
        let path = folder.path.join(SPARE_NAME);
        remove_if_there(file_system, &path)?;
        let file = file_system.open(&path, OpenMode::Create)?;
        let filled = (folder.options.segment_bytes + SLACK_BYTES).next_multiple_of(BLOCK_BYTES);
        let mut from = 0;
        while from < filled {
            // In pieces, so that commits of others do not wait for it long.
            let to = (from + SPARE_PIECE_BYTES).min(filled);
            if let Err(error) = write_zeros(&*file, from, to).and_then(|()| file.sync()) {
                // It only helps; where there is no room for it, messages need what it has taken.
                remove_if_there(file_system, &path)?;
                return Err(error);
            }
            from = to;
        }
        Ok(Self { file, path, filled })
    }

    /// The length of the file: zeros up to here.
    pub fn filled(&self) -> u64 {
        self.filled
    }

    /// It is not needed after all.
    pub fn remove(self, file_system: &dyn FileSystem) -> io::Result<()> {
        file_system.remove_file(&self.path)
    }

    /// Makes it the file of a new segment.
    pub fn become_segment(
        self,
        file_system: &dyn FileSystem,
        folder: &Path,
        header: &SegmentHeader,
        is_synced: bool,
    ) -> io::Result<(PathBuf, Arc<dyn File>)> {
        let path = segment_file::path(folder, header.number);
        let sync = |sync: &dyn Fn() -> io::Result<()>| if is_synced { sync() } else { Ok(()) };
        let made = header
            .write(&*self.file)
            .and_then(|()| sync(&|| self.file.sync()))
            .and_then(|()| file_system.rename(&self.path, &path))
            .and_then(|()| sync(&|| file_system.sync_folder(folder)));
        if let Err(error) = made {
            // Neither may be there when the number is used again.
            remove_if_there(file_system, &self.path)?;
            remove_if_there(file_system, &path)?;
            return Err(error);
        }
        Ok((path, self.file))
    }
}

/// Makes the file of a new segment.
pub fn create(
    file_system: &dyn FileSystem,
    folder: &Path,
    header: &SegmentHeader,
    is_synced: bool,
) -> io::Result<(PathBuf, Arc<dyn File>)> {
    let path = segment_file::path(folder, header.number).with_extension("segment.new");
    remove_if_there(file_system, &path)?;
    let file = file_system.open(&path, OpenMode::Create)?;
    let filled = RECORDS_START + SLACK_BYTES;
    if let Err(error) = write_zeros(&*file, RECORDS_START, filled) {
        file_system.remove_file(&path)?;
        return Err(error);
    }
    let spare = Spare { file, path, filled };
    spare.become_segment(file_system, folder, header, is_synced)
}
