//! An encrypted segment without its key: what its records say by their places, lengths and sequences alone.

use std::io;
use std::path::Path;

use crate::storage::disk::file_system::{FileSystem, OpenMode};
use crate::storage::format::footer;
use crate::storage::format::segment_header::{HeaderState, SegmentHeader};
use crate::storage::segment::loading::{is_cut, read_finished, LoadedSegment};
use crate::storage::segment::segment_file::SegmentFile;

/// Looks at a segment whose footer cannot be understood, only verified. `None` if it has no header.
pub fn load(
    file_system: &dyn FileSystem,
    path: &Path,
    in_use: bool,
) -> io::Result<Option<LoadedSegment>> {
    let file = file_system.open(path, OpenMode::Read)?;
    let file_bytes = file.len()?;
    let (header, header_healed) = match SegmentHeader::read(&*file, false)? {
        HeaderState::Good(header) => (header, false),
        HeaderState::Healed(header) => (header, true),
        HeaderState::TooNew(_) | HeaderState::Lost => return Ok(None),
    };
    let sealed_at = footer::read_bytes(&*file, &header)?.map(|(start, _)| start);
    let file = SegmentFile::new(header, path.to_owned(), file, None);
    let until = sealed_at.unwrap_or(file_bytes);
    let (mut contents, scan) = read_finished(&file, until, in_use && sealed_at.is_none())?;
    // What follows the last record up to the footer is damage too.
    if let Some(start) = sealed_at {
        contents.index.end = start;
    }
    let is_cut = sealed_at.is_none() && is_cut(&file, &scan)?;
    Ok(Some(LoadedSegment {
        is_cut,
        file,
        footer: contents,
        file_bytes,
        header_healed,
        scan: sealed_at.is_none().then_some(scan),
    }))
}

/// Lets locked segments answer for everything up to the next one, as their footers do, unless a file is missing between the two.
pub fn join(loaded: &mut [LoadedSegment]) {
    for at in 1..loaded.len() {
        let next = loaded[at].file.header;
        let one = &mut loaded[at - 1];
        let header = one.file.header;
        let is_next = next.number == header.number + 1 || header.rewritten;
        let is_locked = header.encrypted && one.file.key.is_none();
        if is_locked && one.scan.is_none() && is_next {
            let last_sequence = one.footer.index.last_sequence;
            one.footer.index.last_sequence = last_sequence.max(next.base_sequence - 1);
        }
    }
}
