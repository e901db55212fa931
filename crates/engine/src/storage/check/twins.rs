//! The small files of a folder that are kept twice: the anchor, definitions, states, keys.

use std::collections::BTreeSet;
use std::io;

use super::{at, too_new, Check};
use crate::storage::disk::twin_file;
use crate::storage::disk::twin_file::TwinCopy;
use crate::storage::finding::Finding;
use crate::storage::format::anchor;

impl Check<'_> {
    /// Looks at every pair `NAME.1` and `NAME.2`.
    pub(super) fn check_twins(&mut self, names: &[String]) -> io::Result<()> {
        let stem = |name: &String| {
            let stem = name.strip_suffix(".1").or(name.strip_suffix(".2"))?;
            Some(stem.to_owned())
        };
        let stems: BTreeSet<String> = names.iter().filter_map(stem).collect();
        for stem in stems {
            self.check_pair(&stem)?;
        }
        Ok(())
    }

    fn check_pair(&mut self, stem: &str) -> io::Result<()> {
        let path = self.folder.join(stem);
        let mut copies = Vec::new();
        for copy in 0..2 {
            let copy_path = twin_file::path(self.folder, stem, copy);
            match twin_file::read_copy(self.file_system, &copy_path) {
                Ok(TwinCopy::TooNew(version)) => return Err(too_new(&copy_path, version)),
                Ok(found) => copies.push((copy_path, found)),
                // A folder whose name only looks like it.
                Err(error) if error.kind() == io::ErrorKind::IsADirectory => return Ok(()),
                Err(error) => return Err(at(&copy_path, &error)),
            }
        }
        self.report.counts.small_files += 1;
        let is_good = |copy: &TwinCopy| matches!(copy, TwinCopy::Good(_));
        match (is_good(&copies[0].1), is_good(&copies[1].1)) {
            (true, true) => {
                let (TwinCopy::Good(one), TwinCopy::Good(other)) = (&copies[0].1, &copies[1].1)
                else {
                    return Ok(());
                };
                if one != other {
                    self.report.push(Finding::Interrupted { path });
                }
            }
            // The anchor is judged by what the segments say.
            (false, false) if stem == anchor::NAME => {}
            (false, false) => self.report.push(Finding::BothLost { path }),
            (first_is_good, _) => {
                let (path, bad) = copies.swap_remove(usize::from(first_is_good));
                let what = match bad {
                    TwinCopy::Missing => "this copy is missing",
                    _ => "this copy",
                };
                self.report.push(Finding::Healed { path, what });
            }
        }
        Ok(())
    }
}
