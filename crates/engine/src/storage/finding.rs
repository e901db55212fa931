//! What opening, reading or checking a store has found, in words for people and as data.

use std::fmt;
use std::path::PathBuf;

use parking_lot::Mutex;

use super::format::removal::Removal;

/// Findings kept until they are drained; the oldest are dropped first.
const FINDINGS_MAX: usize = 1000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// A copy of a small file was bad and has been made again from the other.
    Healed { path: PathBuf, what: &'static str },
    /// The copies of a small file differ: a change was interrupted between the two.
    Interrupted { path: PathBuf },
    /// Both copies of a small file are bad, and nothing else says what was in it.
    BothLost { path: PathBuf },
    /// Both copies of the anchor are gone; it has been made again from the segments.
    AnchorLost { path: PathBuf },
    /// The footer of a sealed segment was bad and has been made again from its records.
    FooterRebuilt { path: PathBuf },
    /// The footer of a sealed segment is whole, and does not match the records.
    FooterWrong { path: PathBuf, what: &'static str },
    /// The end of the last segment was torn or cut off: what a crash leaves of a write that was never confirmed, or damage.
    TailCut {
        path: PathBuf,
        position: u64,
        bytes: u64,
        next_sequence: u64,
    },
    /// Messages that were to be stored together had not all arrived when the power went, or the process: none of them is there, and nobody was told
    /// that they were.
    GroupCut {
        path: PathBuf,
        first: u64,
        last: u64,
    },
    /// Records in the middle of a segment cannot be read.
    Damaged {
        path: PathBuf,
        position: u64,
        bytes: u64,
    },
    /// Messages that were stored and cannot be read any more.
    Lost { range: Removal },
    /// A segment that must be there is not.
    SegmentMissing { first: u64, last: u64 },
    /// A file that does not belong where it is; it has been put aside.
    Foreign { path: PathBuf, what: &'static str },
    /// A file that is not needed any more and was not removed, because a change was interrupted.
    Leftover { path: PathBuf, what: &'static str },
    /// A file had the name of another and was read under its own.
    Misnamed { path: PathBuf, number: u64 },
    /// Bytes that should be zero are not; no message is touched.
    Stray { path: PathBuf, position: u64 },
    /// A message that was removed for good is back.
    Unerased { sequence: u64 },
    /// A message does not follow from the one before it.
    ChainBroken { sequence: u64 },
}

impl Finding {
    /// A stable name for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Healed { .. } => "healed",
            Self::Interrupted { .. } => "interrupted",
            Self::BothLost { .. } => "both_lost",
            Self::AnchorLost { .. } => "anchor_lost",
            Self::FooterRebuilt { .. } => "footer_rebuilt",
            Self::FooterWrong { .. } => "footer_wrong",
            Self::TailCut { .. } => "tail_cut",
            Self::GroupCut { .. } => "group_cut",
            Self::Damaged { .. } => "damaged",
            Self::Lost { .. } => "lost",
            Self::SegmentMissing { .. } => "segment_missing",
            Self::Foreign { .. } => "foreign",
            Self::Leftover { .. } => "leftover",
            Self::Misnamed { .. } => "misnamed",
            Self::Stray { .. } => "stray",
            Self::Unerased { .. } => "unerased",
            Self::ChainBroken { .. } => "chain_broken",
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Healed { path, what } => {
                write!(formatter, "{}: {what} was damaged and has been restored from its second copy", path.display())
            }
            Self::Interrupted { path } => {
                write!(formatter, "{}: one copy was older than the other and has been written again", path.display())
            }
            Self::BothLost { path } => {
                write!(formatter, "{}: both copies are damaged: put one back from a backup", path.display())
            }
            Self::AnchorLost { path } => {
                write!(formatter, "{}: both copies are gone; it has been made again from the segments", path.display())
            }
            Self::FooterRebuilt { path } => {
                write!(formatter, "{}: the footer was torn or damaged and has been made again from the records", path.display())
            }
            Self::FooterWrong { path, what } => {
                write!(formatter, "{}: the footer does not agree with the records: {what}", path.display())
            }
            Self::TailCut { path, position, bytes, next_sequence } => write!(
                formatter,
                "{}: the end was torn at byte {position} ({bytes} bytes put aside); the next message gets sequence {next_sequence}",
                path.display()
            ),
            Self::GroupCut { path, first, last } => write!(
                formatter,
                "{}: messages {first} to {last} were to be stored together and had not all arrived: none of them is there, and none was acknowledged",
                path.display()
            ),
            Self::Damaged { path, position, bytes } => {
                write!(formatter, "{}: {bytes} bytes from {position} on cannot be read", path.display())
            }
            Self::Lost { range } if range.first == range.last => {
                write!(formatter, "message {} is lost", range.first)
            }
            Self::Lost { range } => {
                write!(formatter, "messages {} to {} are lost", range.first, range.last)
            }
            Self::SegmentMissing { first, last } => {
                write!(formatter, "the segment with messages {first} to {last} is missing: put it back from a backup")
            }
            Self::Foreign { path, what } => {
                write!(formatter, "{}: {what}; it has been put aside", path.display())
            }
            Self::Leftover { path, what } => {
                write!(formatter, "{}: {what}; it has been removed", path.display())
            }
            Self::Misnamed { path, number } => {
                write!(formatter, "{}: is segment {number} by its own word, and was read as that", path.display())
            }
            Self::Stray { path, position } => {
                write!(formatter, "{}: byte {position} should be zero; no message is touched", path.display())
            }
            Self::Unerased { sequence } => {
                write!(formatter, "message {sequence} was erased and is there again")
            }
            Self::ChainBroken { sequence } => {
                write!(formatter, "message {sequence} does not follow from the one before it")
            }
        }
    }
}

/// What has been found and nobody has asked for yet. Invariant: no report makes it longer than `FINDINGS_MAX`.
pub struct Findings(Mutex<Vec<Finding>>);

impl Findings {
    pub fn new(findings: Vec<Finding>) -> Self {
        Self(Mutex::new(findings))
    }

    pub fn report(&self, finding: Finding) {
        let mut findings = self.0.lock();
        if findings.len() >= FINDINGS_MAX {
            findings.remove(0);
        }
        findings.push(finding);
    }

    /// The findings since the last call.
    pub fn drain(&self) -> Vec<Finding> {
        std::mem::take(&mut self.0.lock())
    }
}
