//! Putting the segments of a stream together, and seeing what is missing between them.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::writing::BLOCK_BYTES;
use crate::storage::disk::file_system::FileSystem;
use crate::storage::finding::Finding;
use crate::storage::format::encryption::StreamKey;
use crate::storage::format::group::Group;
use crate::storage::format::record::Record;
use crate::storage::format::removal;
use crate::storage::format::removal::Removal;
use crate::storage::format::round::Round;
use crate::storage::format::segment_header::RECORDS_START;
use crate::storage::index::messages::{MessageIndex, Segment};
use crate::storage::index::segments::{RecordLocation, SegmentIndex};
use crate::storage::index::subjects::SubjectId;
use crate::storage::message::Counting;
use crate::storage::segment::loading::LoadedSegment;
use crate::storage::segment::scan::{Hole, Tail};
use crate::storage::segment::segment_file::{Buffers, FoundRecord, SegmentFile};

/// How the last segment ends, if it has no footer.
pub struct LastTail {
    pub kind: Tail,
    pub end: u64,
    pub dirty_end: u64,
    pub beyond: bool,
    pub round: Round,
    pub file_bytes: u64,
    /// The group at its end that was never finished.
    pub unfinished_group: Option<Group>,
}

impl LastTail {
    /// The finding about a group that was never finished.
    pub fn group_cut(&self, path: &Path) -> Option<Finding> {
        let group = self.unfinished_group.as_ref()?;
        Some(Finding::GroupCut {
            path: path.to_owned(),
            first: group.first_sequence,
            last: group.last_sequence,
        })
    }
}

pub struct Assembly {
    pub index: MessageIndex,
    pub tail: Option<LastTail>,
    /// Files whose messages another one answers for.
    pub leftovers: Vec<PathBuf>,
    /// Removals that may not have been carried out.
    erasures: Vec<Removal>,
    /// Stretches without a record, by the place of their segment.
    holes: Vec<(usize, Hole)>,
    /// Segments of which something may be missing at the end.
    cut_ends: Vec<usize>,
    /// Segments whose footer has to be made again.
    pub torn_footers: Vec<usize>,
}

impl Assembly {
    /// A new segment follows.
    pub fn begin(&mut self, file: Arc<SegmentFile>, counting: Counting) {
        if let Some(previous) = self.index.segments.last_mut() {
            previous.closed = true;
        }
        let base_sequence = file.header.base_sequence;
        let mut open = SegmentIndex::new(base_sequence, RECORDS_START, self.index.last_time_ns);
        open.count_by(counting);
        self.index.segments.push(Segment::new(file, open, false));
    }

    /// The subjects of a segment.
    pub fn names(&self, at: usize) -> Vec<(SubjectId, Box<[u8]>)> {
        let segment = &self.index.segments[at];
        let name = |id: usize| {
            let id = id as SubjectId;
            (id, self.index.subjects.name(id).into())
        };
        segment.subjects.ones().map(name).collect()
    }

    /// The message a hole was, if it is one that was being overwritten.
    fn half_erased(&self, at: usize, hole: &Hole) -> Option<u64> {
        let segment = &self.index.segments[at];
        let before = (0..segment.index.rank_count())
            .rev()
            .find(|rank| {
                let place = segment.index.place(*rank);
                place != RecordLocation::NONE && place.position() < hole.start
            })
            .map_or(segment.index.base_sequence, |rank| {
                segment.index.sequence(rank) + 1
            });
        let mut erasures = self.erasures.iter();
        let erased = erasures.any(|removal| removal.contains(before));
        let rank = segment.index.rank(before);
        let there = rank.is_some_and(|rank| segment.index.place(rank) != RecordLocation::NONE);
        (erased && !there).then_some(before)
    }
}

/// Puts loaded segments together, in the order of their numbers.
pub fn assemble(loaded: Vec<LoadedSegment>, origin: u64, findings: &mut Vec<Finding>) -> Assembly {
    let mut assembly = Assembly {
        index: MessageIndex::default(),
        tail: None,
        leftovers: Vec::new(),
        erasures: Vec::new(),
        holes: Vec::new(),
        cut_ends: Vec::new(),
        torn_footers: Vec::new(),
    };
    assembly.index.last_sequence = origin - 1;
    let mut removals: Vec<Removal> = Vec::new();
    let bases: Vec<u64> = loaded
        .iter()
        .map(|one| one.file.header.base_sequence)
        .collect();
    let count = loaded.len();
    for (at, one) in loaded.into_iter().enumerate() {
        let next_base = bases.get(at + 1).copied();
        removals.extend_from_slice(&one.footer.index.removals);
        add_segment(&mut assembly, one, next_base, at + 1 == count, findings);
    }
    removals.sort_unstable();
    if let Some(last) = removals.iter().map(|removal| removal.last).max() {
        // A removal that reaches beyond the last message has passed over sequences, and they are never given.
        assembly.index.last_sequence = assembly.index.last_sequence.max(last);
    }
    find_missing(&mut assembly, origin, &removals, findings);
    for removal in &removals {
        assembly.index.remove_range(*removal);
    }
    find_lost(&mut assembly, &removals, findings);
    find_damage(&mut assembly, findings);
    assembly
}

fn add_segment(
    assembly: &mut Assembly,
    loaded: LoadedSegment,
    next_base: Option<u64>,
    is_last: bool,
    findings: &mut Vec<Finding>,
) {
    let LoadedSegment {
        file,
        footer,
        file_bytes,
        scan,
        is_cut,
        ..
    } = loaded;
    let mut contents = footer.index;
    let covered = assembly
        .index
        .segments
        .last()
        .is_some_and(|previous| contents.base_sequence <= previous.index.last_sequence);
    if covered {
        assembly.leftovers.push(file.path);
        return;
    }
    let sealed = scan.is_none();
    if let Some(scan) = scan {
        let at = assembly.index.segments.len();
        let holes = scan.holes.iter().map(|hole| (at, *hole));
        assembly.holes.extend(holes);
        assembly.cut_ends.extend(is_cut.then_some(at));
        let erasures = contents.removals.iter().filter(|removal| removal.erase);
        assembly.erasures.extend(erasures);
        if is_last {
            assembly.tail = Some(LastTail {
                kind: scan.tail,
                end: scan.end,
                dirty_end: scan.dirty_end,
                beyond: scan.beyond,
                round: scan.round,
                file_bytes,
                unfinished_group: scan.unfinished_group,
            });
        } else {
            // Without a footer a file ends with a block; only a footer makes it shorter.
            if scan.tail == Tail::Torn || file_bytes % BLOCK_BYTES != 0 {
                let path = file.path.clone();
                findings.push(Finding::FooterRebuilt { path });
                assembly.torn_footers.push(at);
            }
            // The next one begins only when everything before it is durable.
            contents.last_sequence = next_base.map_or(contents.last_sequence, |base| base - 1);
        }
    }
    let index = &mut assembly.index;
    let ids: Vec<SubjectId> = footer
        .subjects
        .iter()
        .map(|subject| {
            let id = index.subjects.intern(&subject.name);
            let count = u64::from(subject.count);
            index.subjects.add(id, count, subject.first, subject.last);
            id
        })
        .collect();
    for (rank, id) in contents.subject_ids.iter_mut().enumerate() {
        if contents.places[rank] != RecordLocation::NONE.0 {
            *id = ids[*id as usize];
        }
    }
    for (delta, expires_ns) in &contents.expiries {
        let sequence = contents.base_sequence + u64::from(*delta);
        index.expiries.insert((*expires_ns, sequence));
    }
    index.lost.extend_from_slice(&contents.lost);
    index.messages += footer.count;
    index.bytes += footer.bytes;
    index.last_sequence = index.last_sequence.max(contents.last_sequence);
    if footer.count > 0 {
        index.last_time_ns = contents.last_time_ns;
    } else {
        // Times must not go back from one segment to the next: they are searched.
        contents.first_time_ns = index.last_time_ns;
        contents.last_time_ns = index.last_time_ns;
    }
    let mut segment = Segment::new(Arc::new(file), contents, sealed);
    segment.closed = !is_last || sealed;
    segment.live_count = footer.count;
    segment.live_bytes = footer.bytes;
    for id in ids {
        segment.subjects.set(id as usize);
    }
    index.segments.push(segment);
    if let Some(first) = index.next_live(0) {
        index.first_sequence = first;
    }
}

/// Reports sequences that no segment answers for.
fn find_missing(
    assembly: &mut Assembly,
    origin: u64,
    removals: &[Removal],
    findings: &mut Vec<Finding>,
) {
    let index = &mut assembly.index;
    let mut expected = match index.segments.first() {
        None => return,
        Some(first) => {
            let base = first.index.base_sequence;
            let removed = removals.iter().any(|removal| removal.contains(base - 1));
            if removed || base <= origin {
                base
            } else {
                let before = removals.iter().filter(|removal| removal.last < base);
                before
                    .map(|removal| removal.last + 1)
                    .max()
                    .unwrap_or(origin)
                    .max(origin)
            }
        }
    };
    let mut missing = Vec::new();
    for segment in &index.segments {
        if segment.index.base_sequence > expected {
            let gap = Removal {
                first: expected,
                last: segment.index.base_sequence - 1,
                erase: false,
            };
            // Files are removed without a word to the folder, so any of those that were may be back.
            missing.extend(not_removed(gap, removals));
        }
        expected = segment.index.last_sequence + 1;
    }
    for range in missing {
        findings.push(Finding::SegmentMissing {
            first: range.first,
            last: range.last,
        });
        index.lost.push(range);
    }
}

/// Reports messages that should be in a segment without a footer and are not.
fn find_lost(assembly: &mut Assembly, removals: &[Removal], findings: &mut Vec<Finding>) {
    for (at, segment) in assembly.index.segments.iter_mut().enumerate() {
        if segment.sealed {
            continue;
        }
        let contents = &segment.index;
        let rewritten = segment.file.header.rewritten;
        let is_damaged = |from: u64, to: u64| {
            let mut holes = assembly.holes.iter();
            holes.any(|(of, hole)| *of == at && from <= hole.start && hole.start < to)
                || to == u64::MAX && assembly.cut_ends.contains(&at)
        };
        let mut lost: Vec<Removal> = Vec::new();
        let mut expected = contents.base_sequence;
        let mut previous = RECORDS_START;
        let there = (0..contents.rank_count())
            .filter(|rank| contents.place(*rank) != RecordLocation::NONE)
            .map(|rank| (contents.sequence(rank), contents.place(rank).position()));
        for (sequence, position) in there.chain([(contents.last_sequence + 1, u64::MAX)]) {
            // They may be very many, where sequences were passed over. In a rewritten segment they were left out, unless something between cannot be read.
            if sequence > expected && (!rewritten || is_damaged(previous, position)) {
                let gap = Removal {
                    first: expected,
                    last: sequence - 1,
                    erase: false,
                };
                for range in not_removed(gap, removals) {
                    removal::push(&mut lost, range);
                }
            }
            previous = position;
            expected = sequence.saturating_add(1);
        }
        let open = Arc::get_mut(&mut segment.index).expect("nobody else has it yet");
        open.lost.extend_from_slice(&lost);
        for range in lost {
            findings.push(Finding::Lost { range });
            assembly.index.lost.push(range);
        }
    }
}

/// Reports stretches that cannot be read, but not messages whose erasure was interrupted.
fn find_damage(assembly: &mut Assembly, findings: &mut Vec<Finding>) {
    for (at, hole) in std::mem::take(&mut assembly.holes) {
        if assembly.half_erased(at, &hole).is_some() {
            assembly.holes.push((at, hole));
            continue;
        }
        findings.push(Finding::Damaged {
            path: assembly.index.segments[at].file.path.clone(),
            position: hole.start,
            bytes: hole.end - hole.start,
        });
    }
}

/// The parts of a range that were not removed.
pub fn not_removed(range: Removal, removals: &[Removal]) -> Vec<Removal> {
    let mut left = Vec::new();
    if is_removed(removals, range) {
        return left;
    }
    let mut next = range.first;
    for removal in removals
        .iter()
        .filter(|removal| removal.last >= range.first)
    {
        if next > range.last || removal.first > range.last {
            break;
        }
        if removal.first > next {
            left.push(Removal {
                first: next,
                last: removal.first - 1,
                erase: false,
            });
        }
        next = next.max(removal.last + 1);
    }
    if next <= range.last {
        left.push(Removal {
            first: next,
            ..range
        });
    }
    left
}

/// Whether one removal has taken the whole range.
fn is_removed(removals: &[Removal], range: Removal) -> bool {
    // Sorted by their firsts, but they may overlap: look back from the last that could hold it.
    let end = removals.partition_point(|removal| removal.first <= range.first);
    removals[..end]
        .iter()
        .rev()
        .any(|removal| removal.contains(range.last))
}

/// Overwrites messages whose removal was written down and perhaps not carried out; returns those that were still whole.
pub fn finish_erasures(
    assembly: &mut Assembly,
    file_system: &dyn FileSystem,
    stream_key: Option<&StreamKey>,
) -> io::Result<Vec<u64>> {
    let mut finished = Vec::new();
    let mut buffers = Buffers::default();
    for removal in std::mem::take(&mut assembly.erasures) {
        for sequence in removal.first..=removal.last {
            let Some(at) = assembly.index.segment_of(sequence) else {
                continue;
            };
            let segment = &mut assembly.index.segments[at];
            let extent = segment
                .index
                .rank(sequence)
                .and_then(|rank| segment.index.extent(rank));
            let Some(extent) = extent else {
                continue;
            };
            if !matches!(
                segment.file.read(sequence, extent, &mut buffers)?,
                FoundRecord::Erased
            ) {
                own_file(segment, file_system, stream_key)?;
                segment.file.erase(sequence, extent)?;
                segment.file.file.sync()?;
                finished.push(sequence);
            }
        }
    }
    for (at, hole) in std::mem::take(&mut assembly.holes) {
        if let Some(sequence) = assembly.half_erased(at, &hole) {
            let segment = &mut assembly.index.segments[at];
            own_file(segment, file_system, stream_key)?;
            wipe(&segment.file, sequence, &hole)?;
        }
    }
    Ok(finished)
}

/// Ensures that the file of a segment can be written into.
pub fn own_file(
    segment: &mut Segment,
    file_system: &dyn FileSystem,
    stream_key: Option<&StreamKey>,
) -> io::Result<()> {
    if segment.file.is_shared() {
        segment.file = Arc::new(segment.file.own(file_system, stream_key)?);
    }
    Ok(())
}

/// Fills a hole with one erased record.
fn wipe(file: &SegmentFile, sequence: u64, hole: &Hole) -> io::Result<()> {
    let length = (hole.end - hole.start) as usize;
    let Some(blank) = length.checked_sub(crate::storage::format::record::HEAD_BYTES) else {
        return Ok(());
    };
    let mut bytes = Vec::with_capacity(length);
    let blank = vec![0; blank];
    Record::erased(sequence, &blank).encode(&mut bytes, file.header.binding(), hole.start, None);
    file.file.write_all_at(&bytes, hole.start)?;
    file.file.sync()
}
