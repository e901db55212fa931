//! Examining a store without opening it: every file of its folder, every record, and what opening would do about what is wrong.
//!
//! - `segment` walks the records of one file; `comparing` compares them with the footer; `zeros` looks at what must be
//!   blank; `locked` is for files whose key is not here.
//! - `twins` looks at the small files that are kept twice.
//! - `ending` judges where the store ends; `report` is what comes out, in words and as data; `meter` reports progress.
//!
//! What is missing is found by the same code that opening uses, so the two agree. Nothing here needs a key: checksums are over the bytes as they
//! stand in the file. Invariant: nothing is ever written; every file is opened for reading only.

mod comparing;
mod ending;
mod locked;
mod meter;
mod report;
mod segment;
mod twins;
mod zeros;

use std::io;
use std::path::{Path, PathBuf};

use crate::storage::disk::file_system::{FileSystem, OpenMode};
use crate::storage::finding::Finding;
use crate::storage::format::anchor;
use crate::storage::format::anchor::Anchor;
use crate::storage::format::removal;
use crate::storage::format::removal::Removal;
use crate::storage::index::messages::Segment;
use crate::storage::segment::loading;
use crate::storage::segment::loading::{LoadedSegment, Loading};
use crate::storage::segment::segment_file;
use crate::storage::segment::segment_file::SegmentFile;
use crate::storage::store::assembling::{assemble, Assembly};
use crate::storage::store::verifying::verify;
pub use meter::CheckProgress;
use meter::Meter;
pub use report::{CheckCounts, Report, ReportedFinding, Severity};
use segment::{examine, Examined};

/// Examines the store in one folder.
pub fn check(
    file_system: &dyn FileSystem,
    folder: &Path,
    progress: CheckProgress<'_>,
) -> io::Result<Report> {
    let mut names = file_system
        .list(folder)
        .map_err(|error| at(folder, &error))?;
    names.sort();
    let mut check = Check {
        file_system,
        folder,
        report: Report::new(folder),
        meter: Meter::new(progress),
        anchor_foreign: false,
        aside_number: 0,
    };
    check.run(&names)?;
    Ok(check.report)
}

/// Says which file an error is about.
fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

fn too_new(path: &Path, version: u32) -> io::Error {
    io::Error::new(
        io::ErrorKind::Unsupported,
        format!(
            "{}: has format {version}, made by a later version: check it with that one",
            path.display()
        ),
    )
}

struct Check<'a> {
    file_system: &'a dyn FileSystem,
    folder: &'a Path,
    report: Report,
    meter: Meter<'a>,
    /// The anchor is of another stream than all segments.
    anchor_foreign: bool,
    /// The highest number in the name of a segment that opening would put aside.
    aside_number: u64,
}

impl Check<'_> {
    fn run(&mut self, names: &[String]) -> io::Result<()> {
        let with_end = |end: &str| -> Vec<String> {
            let some = names.iter().filter(|name| name.ends_with(end));
            some.cloned().collect()
        };
        self.report.unfinished = with_end(".new");
        self.report.aside = with_end(".aside");
        self.check_twins(names)?;
        let is_segment =
            |name: &&String| segment_file::number(name).is_some() || name.ends_with(".moved");
        let segments: Vec<PathBuf> = names
            .iter()
            .filter(is_segment)
            .map(|name| self.folder.join(name))
            .collect();
        let anchor = self.check_anchor(!segments.is_empty())?;
        for path in &segments {
            let file = self.file_system.open(path, OpenMode::Read);
            let length = file.and_then(|file| file.len());
            self.meter.total_bytes += length.map_err(|error| at(path, &error))?;
        }
        let loaded = self.load(&segments, anchor.as_ref())?;
        let anchor = anchor.filter(|_| !self.anchor_foreign);
        let examined = self.examine(&loaded)?;
        let assembly = self.assemble(loaded, anchor.as_ref(), &examined);
        self.check_chain(&assembly, anchor.as_ref())?;
        self.report.finish();
        Ok(())
    }

    fn check_anchor(&mut self, has_segments: bool) -> io::Result<Option<Anchor>> {
        let path = self.folder.join(anchor::NAME);
        let found = anchor::read(self.file_system, self.folder, false);
        let lost = match found.map_err(|error| at(&path, &error))? {
            anchor::FoundAnchor::Good(kept) | anchor::FoundAnchor::Healed(kept) => {
                return Ok(Some(kept.anchor))
            }
            anchor::FoundAnchor::TooNew(version) => return Err(too_new(&path, version)),
            anchor::FoundAnchor::Lost => true,
            anchor::FoundAnchor::Missing => has_segments,
        };
        if lost {
            // Without segments nothing is left to make it from.
            let severity = if has_segments {
                Severity::Healed
            } else {
                Severity::Loss
            };
            self.report.push_as(Finding::AnchorLost { path }, severity);
        }
        Ok(None)
    }

    /// The segments of this stream, in the order of their numbers, as opening would take them.
    fn load(
        &mut self,
        segments: &[PathBuf],
        anchor: Option<&Anchor>,
    ) -> io::Result<Vec<LoadedSegment>> {
        let mut loaded = Vec::new();
        for (place, path) in segments.iter().enumerate() {
            let in_use =
                place + 1 == segments.len() && anchor.is_none_or(|anchor| anchor.closed.is_none());
            let path = path.clone();
            let found = loading::load(self.file_system, &path, false, in_use, None);
            match found.map_err(|error| at(&path, &error))? {
                Loading::Segment(segment) => loaded.push(*segment),
                Loading::TooNew(version) => return Err(too_new(&path, version)),
                Loading::Locked => {
                    let found = locked::load(self.file_system, &path, in_use);
                    loaded.extend(found.map_err(|error| at(&path, &error))?);
                }
                Loading::HeaderLost => {
                    // Whatever messages it has, nobody will read them.
                    let what = "both copies of its header are damaged";
                    self.foreign(path, what, Severity::Loss);
                }
            }
        }
        let mut stream = anchor.map(|anchor| anchor.stream);
        let known = |one: &LoadedSegment| Some(one.file.header.stream) == stream;
        if stream.is_some() && !loaded.is_empty() && !loaded.iter().any(known) {
            self.anchor_foreign = true;
            let path = self.folder.join(anchor::NAME);
            let what = "it belongs to another stream than all segments";
            self.foreign(path, what, Severity::Healed);
        }
        if stream.is_none() || self.anchor_foreign {
            stream = loaded.first().map(|one| one.file.header.stream);
        }
        // Without an anchor it is unknown whether it replaces a segment that is missing.
        let severity = match anchor.filter(|_| !self.anchor_foreign) {
            Some(_) => Severity::Healed,
            None => Severity::Loss,
        };
        let (mut own, others): (Vec<LoadedSegment>, Vec<LoadedSegment>) = loaded
            .into_iter()
            .partition(|one| Some(one.file.header.stream) == stream);
        for one in others {
            self.foreign(
                one.file.path,
                "it belongs to another stream",
                Severity::Healed,
            );
        }
        self.check_names(&mut own, severity);
        locked::join(&mut own);
        Ok(own)
    }

    /// A file that opening would put aside.
    fn foreign(&mut self, path: PathBuf, what: &'static str, severity: Severity) {
        let name = path.file_name().and_then(|name| name.to_str());
        let number = name.and_then(segment_file::number).unwrap_or(0);
        self.aside_number = self.aside_number.max(number);
        self.report
            .push_as(Finding::Foreign { path, what }, severity);
    }

    /// Puts segments into their order; of two with the same number, the one that has the name for it counts.
    fn check_names(&mut self, own: &mut Vec<LoadedSegment>, severity: Severity) {
        let own_path =
            |one: &LoadedSegment| segment_file::path(self.folder, one.file.header.number);
        own.sort_by_key(|one| (one.file.header.number, one.file.path != own_path(one)));
        let mut copies = Vec::new();
        own.dedup_by(|one, before| {
            let same = one.file.header.number == before.file.header.number;
            if same {
                copies.push(one.file.path.clone());
            }
            same
        });
        for path in copies {
            self.foreign(path, "it is a copy of another segment", severity);
        }
        for one in own {
            self.check_name(one);
        }
    }

    fn check_name(&mut self, one: &LoadedSegment) {
        let path = one.file.path.clone();
        let number = one.file.header.number;
        if one.header_healed {
            let path = path.clone();
            let what = "a copy of the header";
            self.report.push(Finding::Healed { path, what });
        }
        if path != segment_file::path(self.folder, number) {
            self.report.push(Finding::Misnamed { path, number });
        }
    }

    fn examine(&mut self, loaded: &[LoadedSegment]) -> io::Result<Vec<Examined>> {
        let mut erasures: Vec<Removal> = loaded
            .iter()
            .flat_map(|one| &one.footer.index.removals)
            .filter(|removal| removal.erase)
            .copied()
            .collect();
        erasures.sort_unstable();
        let mut all = Vec::new();
        for one in loaded {
            let examined = examine(one, &erasures, &mut self.meter);
            let examined = examined.map_err(|error| at(&one.file.path, &error))?;
            self.meter.file_done(one.file_bytes)?;
            self.report.counts.segments += 1;
            self.report.counts.records += examined.records;
            self.report.counts.file_bytes += one.file_bytes;
            self.report.encrypted |= one.file.header.encrypted;
            all.push(examined);
        }
        Ok(all)
    }

    /// Puts everything together, to see what is missing and what of the damage is a loss.
    fn assemble(
        &mut self,
        loaded: Vec<LoadedSegment>,
        anchor: Option<&Anchor>,
        examined: &[Examined],
    ) -> Assembly {
        let origin = anchor.map_or(1, |anchor| anchor.origin_sequence);
        let unsealed: Vec<Removal> = loaded
            .iter()
            .filter(|one| one.scan.is_some())
            .flat_map(|one| one.footer.index.removals.iter().copied())
            .collect();
        let holes: Vec<Finding> = loaded.iter().flat_map(holes).collect();
        let mut removals: Vec<Removal> = loaded
            .iter()
            .flat_map(|one| one.footer.index.removals.iter().copied())
            .collect();
        removals.sort_unstable();
        let mut findings = Vec::new();
        let assembly = assemble(loaded, origin, &mut findings);
        for hole in holes {
            if !findings.contains(&hole) {
                // Opening says nothing of messages that were being erased, and finishes them.
                self.report.push_as(hole, Severity::Healed);
            }
        }
        for finding in findings {
            self.report.push(finding);
        }
        for one in examined {
            if assembly.leftovers.contains(&one.path) {
                let path = one.path.clone();
                let what = "another segment has its messages";
                self.report.push(Finding::Leftover { path, what });
                continue;
            }
            for finding in &one.findings {
                self.report.push(finding.clone());
            }
            self.report_lost(&assembly, &removals, one);
            for sequence in &one.unerased {
                let listed = unsealed
                    .iter()
                    .any(|removal| removal.erase && removal.contains(*sequence));
                let severity = if listed && is_indexed(&assembly, *sequence) {
                    Severity::Healed
                } else {
                    Severity::Harmless
                };
                let sequence = *sequence;
                let finding = Finding::Unerased { sequence };
                self.report.push_as(finding, severity);
            }
        }
        for finding in ending::judge(&assembly, anchor, self.aside_number, origin) {
            self.report.push(finding);
        }
        let index = &assembly.index;
        self.report.counts.messages = index.messages;
        self.report.counts.bytes = index.bytes;
        if !self.report.encrypted {
            self.report.counts.subjects = Some(index.subjects.len() as u64);
        }
        assembly
    }

    /// Follows the chain, if every segment is part of it and can be read.
    fn check_chain(&mut self, assembly: &Assembly, anchor: Option<&Anchor>) -> io::Result<()> {
        let index = &assembly.index;
        let readable = |file: &SegmentFile| file.key.is_some() || !file.header.encrypted;
        let chained = |segment: &Segment| segment.file.header.chained && readable(&segment.file);
        let Some(anchor) = anchor.filter(|_| index.segments.iter().all(chained)) else {
            return Ok(());
        };
        let files = index
            .segments
            .iter()
            .map(|segment| (&*segment.file, segment.index.end));
        let (stream, origin) = (anchor.stream, anchor.origin_sequence);
        let verified = verify(files, stream, origin, index.last_sequence);
        let verified = verified.map_err(|error| at(self.folder, &error))?;
        if let Some(sequence) = verified.broken {
            self.report.push(Finding::ChainBroken { sequence });
        }
        Ok(())
    }

    /// Messages of a sealed segment that its footer still counts on, and those it says were lost before.
    fn report_lost(&mut self, assembly: &Assembly, removals: &[Removal], examined: &Examined) {
        let mut lost = examined.known_lost.clone();
        for sequence in &examined.unreadable {
            // Without a key it is only known that a message should be there, not that it is still counted on.
            let counts = match examined.locked {
                true => !segment::is_listed(removals, *sequence),
                false => assembly.index.locate(*sequence).is_some(),
            };
            if counts {
                let range = Removal {
                    first: *sequence,
                    last: *sequence,
                    erase: false,
                };
                removal::push(&mut lost, range);
            }
        }
        for range in lost {
            self.report.push(Finding::Lost { range });
        }
    }
}

/// The stretches of a segment without a footer that cannot be read.
fn holes(loaded: &LoadedSegment) -> Vec<Finding> {
    let scanned = loaded.scan.iter().flat_map(|scan| &scan.holes);
    scanned
        .map(|hole| Finding::Damaged {
            path: loaded.file.path.clone(),
            position: hole.start,
            bytes: hole.end - hole.start,
        })
        .collect()
}

/// Whether opening finds the place of a message, removed or not.
fn is_indexed(assembly: &Assembly, sequence: u64) -> bool {
    let index = &assembly.index;
    index.segment_of(sequence).is_some_and(|at| {
        let segment = &index.segments[at].index;
        let rank = segment.rank(sequence);
        rank.and_then(|rank| segment.extent(rank)).is_some()
    })
}
