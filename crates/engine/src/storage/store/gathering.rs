//! Finding the segments of a stream among the files of its folder: which are ours, and which have the wrong name.

use std::io;
use std::path::{Path, PathBuf};

use super::opening::Opening;
use super::reading::read_error;
use crate::storage::finding::Finding;
use crate::storage::format::anchor;
use crate::storage::format::anchor::StoredAnchor;
use crate::storage::message::{StoreError, StoreResult};
use crate::storage::segment::loading;
use crate::storage::segment::loading::{LoadedSegment, Loading};
use crate::storage::segment::segment_file;

/// Of a segment on its way to its right name.
const MOVED_SUFFIX: &str = ".moved";

impl Opening<'_> {
    /// All segments of this stream, in the order of their numbers.
    pub fn load_segments(
        &mut self,
        kept: Option<&StoredAnchor>,
    ) -> StoreResult<Vec<LoadedSegment>> {
        let mut names = self.file_system.list(self.folder).map_err(read_error)?;
        names.sort();
        let mut loaded: Vec<LoadedSegment> = Vec::new();
        let is_segment =
            |name: &&String| segment_file::number(name).is_some() || name.ends_with(MOVED_SUFFIX);
        let segments: Vec<&String> = names.iter().filter(is_segment).collect();
        for name in &names {
            if name.ends_with(".new") {
                // An interrupted change, which was never confirmed.
                let path = self.folder.join(name);
                self.file_system.remove_file(&path).map_err(read_error)?;
            }
        }
        for name in &segments {
            let path = self.folder.join(name);
            let stream_key = self.stream_key.as_ref();
            let in_use = Some(name) == segments.last()
                && kept.is_none_or(|kept| kept.anchor.closed.is_none());
            let loading = loading::load(self.file_system, &path, true, in_use, stream_key);
            match loading.map_err(read_error)? {
                Loading::Locked => return Err(StoreError::Key),
                Loading::Segment(segment) => loaded.push(*segment),
                Loading::TooNew(version) => return Err(StoreError::TooNew { version }),
                Loading::HeaderLost => {
                    self.put_aside(&path, "its header is damaged")
                        .map_err(read_error)?;
                }
            }
        }
        if self.anchor_missing && !loaded.is_empty() {
            let path = self.folder.join(anchor::NAME);
            self.findings.push(Finding::AnchorLost { path });
        }
        let mut stream = kept.map(|kept| kept.anchor.stream);
        let known = |one: &LoadedSegment| Some(one.file.header.stream) == stream;
        if stream.is_some() && !loaded.is_empty() && !loaded.iter().any(known) {
            // All segments speak against it.
            self.anchor_foreign = true;
            let path = self.folder.join(anchor::NAME);
            let what = "it belongs to another stream";
            self.findings.push(Finding::Foreign { path, what });
        }
        if stream.is_none() || self.anchor_foreign {
            stream = loaded.first().map(|one| one.file.header.stream);
        }
        let mut own = Vec::new();
        for one in loaded {
            if Some(one.file.header.stream) == stream {
                own.push(one);
            } else {
                self.put_aside(&one.file.path, "it belongs to another stream")
                    .map_err(read_error)?;
            }
        }
        self.check_names(&mut own).map_err(read_error)?;
        Ok(own)
    }

    /// Reports segments that have the name of another, and gives them their own.
    fn check_names(&mut self, loaded: &mut Vec<LoadedSegment>) -> io::Result<()> {
        let own_path =
            |one: &LoadedSegment| segment_file::path(self.folder, one.file.header.number);
        // Of two with the same number, the one that has the name for it counts.
        loaded.sort_by_key(|one| (one.file.header.number, one.file.path != own_path(one)));
        let mut copies = Vec::new();
        let mut number = None;
        loaded.retain(|one| {
            let first = number != Some(one.file.header.number);
            number = Some(one.file.header.number);
            if !first {
                copies.push(one.file.path.clone());
            }
            first
        });
        for path in copies {
            self.put_aside(&path, "it is a copy of another segment")?;
        }
        let mut misnamed = Vec::new();
        for (at, one) in loaded.iter().enumerate() {
            let number = one.file.header.number;
            if one.header_healed {
                let path = one.file.path.clone();
                let what = "a copy of the header";
                self.findings.push(Finding::Healed { path, what });
            }
            if one.file.path != segment_file::path(self.folder, number) {
                let path = one.file.path.clone();
                self.findings.push(Finding::Misnamed { path, number });
                misnamed.push(at);
            }
        }
        // First out of each other's way, then to where they belong.
        for at in &misnamed {
            let path = &mut loaded[*at].file.path;
            let mut between = path.as_os_str().to_owned();
            between.push(MOVED_SUFFIX);
            let between = PathBuf::from(between);
            self.file_system.rename(path, &between)?;
            *path = between;
        }
        for at in &misnamed {
            let one = &mut loaded[*at].file;
            let target = segment_file::path(self.folder, one.header.number);
            self.file_system.rename(&one.path, &target)?;
            one.path = target;
        }
        if !misnamed.is_empty() {
            self.file_system.sync_folder(self.folder)?;
        }
        Ok(())
    }

    fn put_aside(&mut self, path: &Path, what: &'static str) -> io::Result<()> {
        let mut aside = path.as_os_str().to_owned();
        aside.push(".aside");
        self.file_system.rename(path, &PathBuf::from(aside))?;
        self.file_system.sync_folder(self.folder)?;
        let name = path.file_name().and_then(|name| name.to_str());
        let number = name.and_then(segment_file::number).unwrap_or(0);
        self.aside_number = self.aside_number.max(number);
        let path = path.to_owned();
        self.findings.push(Finding::Foreign { path, what });
        Ok(())
    }
}
