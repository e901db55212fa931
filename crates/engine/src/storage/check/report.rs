//! What a check found: counts, findings with what they mean, and whether opening would change anything.

use std::path::Path;

use serde::Serialize;

use crate::storage::finding::Finding;

/// Findings listed one by one; the rest are only counted, so that a ruined store does not fill the memory.
const FINDINGS_MAX: usize = 1000;

/// What a finding means for the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Nothing is lost, and nothing needs to be done.
    Harmless,
    /// Opening the store puts it right.
    Healed,
    /// Something that was stored is not there, or cannot be trusted.
    Loss,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CheckCounts {
    pub segments: u64,
    /// Good records of every kind, in all segments.
    pub records: u64,
    /// Messages that are not removed.
    pub messages: u64,
    /// What these messages count for in the size of the stream.
    pub bytes: u64,
    /// Unknown where the messages are encrypted.
    pub subjects: Option<u64>,
    /// Files that are kept twice.
    pub small_files: u64,
    /// Bytes of all segments.
    pub file_bytes: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Severities {
    pub harmless: u64,
    pub healed: u64,
    pub loss: u64,
}

/// One finding, in words and as data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReportedFinding {
    pub severity: Severity,
    /// A stable name for programs.
    pub kind: &'static str,
    /// What is wrong.
    pub what: String,
    /// What opening does about it, or what can be done.
    pub advice: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_sequence: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_sequence: Option<u64>,
    #[serde(skip)]
    pub finding: Finding,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    pub folder: String,
    pub encrypted: bool,
    pub counts: CheckCounts,
    /// Of all findings, listed or not.
    pub severities: Severities,
    /// The worst first.
    pub findings: Vec<ReportedFinding>,
    /// Files of interrupted changes that were never confirmed.
    pub unfinished: Vec<String>,
    /// Files that an earlier opening put aside.
    pub aside: Vec<String>,
    /// Opening the store would heal, rename, remove or put aside something.
    pub opening_changes: bool,
}

impl Report {
    pub(super) fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_string_lossy().into_owned(),
            encrypted: false,
            counts: CheckCounts::default(),
            severities: Severities::default(),
            findings: Vec::new(),
            unfinished: Vec::new(),
            aside: Vec::new(),
            opening_changes: false,
        }
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a report is plain data")
    }

    pub(super) fn push(&mut self, finding: Finding) {
        let severity = severity(&finding);
        self.push_as(finding, severity);
    }

    pub(super) fn push_as(&mut self, finding: Finding, severity: Severity) {
        match severity {
            Severity::Harmless => self.severities.harmless += 1,
            Severity::Healed => self.severities.healed += 1,
            Severity::Loss => self.severities.loss += 1,
        }
        let found = reported(finding, severity);
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(found);
            return;
        }
        // What is worse takes the place of what is not as bad.
        let lesser = |one: &ReportedFinding| one.severity < severity;
        if let Some(at) = self.findings.iter().rposition(lesser) {
            self.findings[at] = found;
        }
    }

    pub(super) fn finish(&mut self) {
        self.findings
            .sort_by_key(|found| std::cmp::Reverse(found.severity));
        self.opening_changes = self.severities.healed > 0 || !self.unfinished.is_empty();
    }
}

fn severity(finding: &Finding) -> Severity {
    match finding {
        Finding::Healed { .. }
        | Finding::Interrupted { .. }
        | Finding::AnchorLost { .. }
        | Finding::FooterRebuilt { .. }
        | Finding::TailCut { .. }
        | Finding::GroupCut { .. }
        | Finding::Foreign { .. }
        | Finding::Leftover { .. }
        | Finding::Misnamed { .. } => Severity::Healed,
        Finding::BothLost { .. }
        | Finding::FooterWrong { .. }
        | Finding::Lost { .. }
        | Finding::SegmentMissing { .. }
        | Finding::ChainBroken { .. } => Severity::Loss,
        // What it costs is said by a finding of its own.
        Finding::Damaged { .. } | Finding::Stray { .. } | Finding::Unerased { .. } => {
            Severity::Harmless
        }
    }
}

fn reported(finding: Finding, severity: Severity) -> ReportedFinding {
    let (what, advice) = words(&finding, severity);
    let (path, position) = match &finding {
        Finding::Healed { path, .. }
        | Finding::Interrupted { path }
        | Finding::BothLost { path }
        | Finding::AnchorLost { path }
        | Finding::FooterRebuilt { path }
        | Finding::FooterWrong { path, .. }
        | Finding::GroupCut { path, .. }
        | Finding::Foreign { path, .. }
        | Finding::Leftover { path, .. }
        | Finding::Misnamed { path, .. } => (Some(path), None),
        Finding::TailCut { path, position, .. }
        | Finding::Damaged { path, position, .. }
        | Finding::Stray { path, position } => (Some(path), Some(*position)),
        Finding::Lost { .. }
        | Finding::SegmentMissing { .. }
        | Finding::Unerased { .. }
        | Finding::ChainBroken { .. } => (None, None),
    };
    let sequences = match &finding {
        Finding::Lost { range } => Some((range.first, range.last)),
        Finding::SegmentMissing { first, last } | Finding::GroupCut { first, last, .. } => {
            Some((*first, *last))
        }
        Finding::Unerased { sequence } | Finding::ChainBroken { sequence } => {
            Some((*sequence, *sequence))
        }
        _ => None,
    };
    ReportedFinding {
        severity,
        kind: finding.kind(),
        what,
        advice,
        path: path.map(|path| path.to_string_lossy().into_owned()),
        position,
        first_sequence: sequences.map(|(first, _)| first),
        last_sequence: sequences.map(|(_, last)| last),
        finding,
    }
}

/// What a finding is while nothing has been done about it, and what to do.
fn words(finding: &Finding, severity: Severity) -> (String, &'static str) {
    let file = |path: &Path| {
        let name = path.file_name().unwrap_or(path.as_os_str());
        name.to_string_lossy().into_owned()
    };
    match finding {
        Finding::Healed { path, what } => {
            let verb = if what.ends_with("missing") { "" } else { " is damaged" };
            (format!("{}: {what}{verb}", file(path)), "opening the store restores it from the other copy")
        }
        Finding::Interrupted { path } => (
            format!("{}: one copy is older than the other, a change was interrupted", file(path)),
            "opening the store takes the newer one",
        ),
        Finding::BothLost { path } => {
            (format!("{}: both copies are damaged", file(path)), "put one of them back from a backup")
        }
        Finding::AnchorLost { path } if severity == Severity::Loss => (
            format!("{}: both copies are lost, and there are no segments", file(path)),
            "put the folder back from a backup",
        ),
        Finding::AnchorLost { path } => {
            (format!("{}: both copies are lost", file(path)), "opening the store makes it again from the segments")
        }
        Finding::FooterRebuilt { path } => {
            (format!("{}: the footer is damaged", file(path)), "opening the store makes it again from the records; a removal that can be read nowhere else is forgotten")
        }
        Finding::FooterWrong { path, what } => (
            format!("{}: the footer is whole, but {what}", file(path)),
            "keep a copy of the file, and report it; messages may not be found by their subjects",
        ),
        Finding::TailCut { path, position, bytes: 0, .. } => (
            format!("{}: the file is cut off behind byte {position}", file(path)),
            "opening the store goes on in a new segment; a crash leaves this of a write that was not confirmed, or somebody cut the file",
        ),
        Finding::TailCut { path, position, bytes, .. } => (
            format!("{}: {bytes} bytes from {position} on are not a whole record", file(path)),
            "opening the store puts them aside; a crash leaves them of a write that was not confirmed, or the last record is damaged",
        ),
        Finding::GroupCut { path, first, last } => (
            format!("{}: messages {first} to {last} were to be stored together, and not all of them are there", file(path)),
            "opening the store keeps none of them; a crash leaves this of a write that was not confirmed",
        ),
        Finding::Damaged { path, position, bytes } if severity == Severity::Healed => (
            format!("{}: {bytes} bytes from {position} on are of a message that was being erased", file(path)),
            "opening the store finishes that",
        ),
        Finding::Damaged { path, position, bytes } => (
            format!("{}: {bytes} bytes from {position} on cannot be read", file(path)),
            "copy the store to another disk; what of it counted as a message is listed as lost",
        ),
        Finding::Lost { range } if range.first == range.last => (
            format!("message {} is lost", range.first),
            "put the segment back from a backup, or publish the message again",
        ),
        Finding::Lost { range } => (
            format!("messages {} to {} are lost", range.first, range.last),
            "put the segment back from a backup, or publish the messages again",
        ),
        Finding::SegmentMissing { first, last } => (
            format!("the segments with messages {first} to {last} at most are missing"),
            "put them back from a backup before the store is opened",
        ),
        Finding::Foreign { path, what } if severity == Severity::Loss => (
            format!("{}: {what}", file(path)),
            "opening the store puts it aside with all its messages: put the file back from a backup",
        ),
        Finding::Foreign { path, what } => (
            format!("{}: {what}", file(path)),
            "opening the store puts it aside; put the right file back from a backup",
        ),
        Finding::Leftover { path, what } => (format!("{}: {what}", file(path)), "opening the store removes it"),
        Finding::Misnamed { path, number } => (
            format!("{}: is segment {number} by its own word", file(path)),
            "opening the store gives it its name back",
        ),
        Finding::Stray { path, position } => (
            format!("{}: byte {position} should be zero", file(path)),
            "no message is touched; copy the store to another disk if there is more of this",
        ),
        Finding::Unerased { sequence } if severity == Severity::Healed => (
            format!("message {sequence} is removed, but its bytes are still there"),
            "opening the store overwrites them",
        ),
        Finding::Unerased { sequence } => (
            format!("message {sequence} is removed, but its bytes are still there"),
            "nobody can read it through the server; purge the stream to get rid of the file",
        ),
        Finding::ChainBroken { sequence } => (
            format!("message {sequence} does not follow from the one before it"),
            "somebody changed the store: compare it with a backup",
        ),
    }
}
