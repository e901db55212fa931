//! What follows the records of a sealed segment, so that opening a stream reads footers and no messages.
//!
//! ```text
//! footer    what the segment holds: sequences, places, subjects, removals, expiries; then its checksum
//! trailer   the last 32 bytes of the file: a mark, where the footer begins, its length, a checksum of these
//! ```
//! The footer can be rebuilt from the records. Invariant: `read` returns only what `write` wrote, or nothing.

use std::io;

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::bytes::{ByteReader, Put};
use super::encryption::SegmentKey;
use super::removal;
use super::segment_header::SegmentHeader;
use crate::storage::disk::file_system::File;
use crate::storage::index::segments::SegmentIndex;

const FOOTER_MARK: &[u8; 8] = b"JETLAKEF";
const TRAILER_MARK: &[u8; 8] = b"JETLAKEE";
pub const TRAILER_BYTES: usize = 32;

/// A subject in a footer; its number is its place in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FooterSubject {
    pub name: Box<[u8]>,
    pub count: u32,
    pub first: u64,
    pub last: u64,
}

/// A segment as its footer describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Footer {
    /// Its `subject_ids` are places in `subjects`.
    pub index: SegmentIndex,
    pub subjects: Vec<FooterSubject>,
    /// Messages, and what they count for in the size of the stream.
    pub count: u64,
    pub bytes: u64,
}

/// The bytes to put at `position`, up to the end of the file.
pub fn encode(
    footer: &Footer,
    header: &SegmentHeader,
    position: u64,
    key: Option<&SegmentKey>,
) -> Vec<u8> {
    let index = &footer.index;
    let mut out = Vec::with_capacity(index.memory_bytes() + 1024);
    out.extend_from_slice(FOOTER_MARK);
    out.put_u64(index.base_sequence);
    out.put_u64(index.last_sequence);
    out.put_u64(index.end);
    out.put_u64(index.first_time_ns as u64);
    out.put_u64(index.last_time_ns as u64);
    out.put_u64(footer.count);
    out.put_u64(footer.bytes);
    out.put_u32(index.places.len() as u32);
    let sparse = u32::from(index.sequences.is_some());
    let sized = u32::from(index.sizes.is_some());
    out.put_u32(sparse | sized << 1);
    if let Some(sequences) = &index.sequences {
        put_all(&mut out, sequences);
    }
    put_all(&mut out, &index.places);
    if let Some(sizes) = &index.sizes {
        put_all(&mut out, sizes);
    }
    out.put_u32(footer.subjects.len() as u32);
    for subject in &footer.subjects {
        out.put_u16(subject.name.len() as u16);
        out.extend_from_slice(&subject.name);
        out.put_u32(subject.count);
        out.put_u32((subject.first - index.base_sequence) as u32);
        out.put_u32((subject.last - index.base_sequence) as u32);
    }
    match id_bytes(footer.subjects.len()) {
        0 => {}
        1 => out.extend(index.subject_ids.iter().map(|id| *id as u8)),
        2 => {
            for id in &index.subject_ids {
                out.put_u16(*id as u16);
            }
        }
        _ => put_all(&mut out, &index.subject_ids),
    }
    out.put_u32(index.others.len() as u32);
    put_all(&mut out, &index.others);
    removal::encode(&index.removals, &mut out);
    removal::encode(&index.lost, &mut out);
    out.put_u32(index.expiries.len() as u32);
    for (delta, expires_ns) in &index.expiries {
        out.put_u32(*delta);
        out.put_u64(*expires_ns as u64);
    }
    if let Some(key) = key {
        key.seal_footer(position, &mut out);
    }
    let checksum = xxh3_64_with_seed(&out, header.identity);
    out.put_u64(checksum);

    let length = out.len() as u64;
    let trailer_start = out.len();
    out.extend_from_slice(TRAILER_MARK);
    out.put_u64(position);
    out.put_u64(length);
    let checksum = xxh3_64(&out[trailer_start..]) ^ header.identity;
    out.put_u64(checksum);
    out
}

/// The footer at the end of a file, if there is a good one.
pub fn read(
    file: &dyn File,
    header: &SegmentHeader,
    key: Option<&SegmentKey>,
) -> io::Result<Option<Footer>> {
    let Some((start, mut bytes)) = read_bytes(file, header)? else {
        return Ok(None);
    };
    if let Some(key) = key {
        if key.open_footer(start, &mut bytes).is_none() {
            return Ok(None);
        }
    }
    Ok(decode(&bytes).filter(|footer| footer.index.base_sequence == header.base_sequence))
}

/// Whether a footer that is damaged begins here. One wrong bit leaves the mark at its front, where it is not encrypted,
/// or one of two places in the trailer that say so.
pub fn begins_at(file: &dyn File, position: u64) -> io::Result<bool> {
    let trailer_start = file.len()?.saturating_sub(TRAILER_BYTES as u64);
    if trailer_start < position + FOOTER_MARK.len() as u64 {
        return Ok(false);
    }
    let mut mark = [0; FOOTER_MARK.len()];
    file.read_exact_at(&mut mark, position)?;
    let mut trailer = [0; TRAILER_BYTES];
    file.read_exact_at(&mut trailer, trailer_start)?;
    let mut reader = ByteReader::new(&trailer[TRAILER_MARK.len()..]);
    let (start, length) = (reader.u64(), reader.u64());
    Ok(mark == *FOOTER_MARK || start == Some(position) || length == Some(trailer_start - position))
}

/// Where the footer begins, and its bytes, encrypted if they are, if they are as they were written.
pub fn read_bytes(file: &dyn File, header: &SegmentHeader) -> io::Result<Option<(u64, Vec<u8>)>> {
    let file_len = file.len()?;
    let Some(trailer_start) = file_len.checked_sub(TRAILER_BYTES as u64) else {
        return Ok(None);
    };
    let mut trailer = [0; TRAILER_BYTES];
    file.read_exact_at(&mut trailer, trailer_start)?;
    let (body, checksum) = trailer.split_at(TRAILER_BYTES - 8);
    if (xxh3_64(body) ^ header.identity).to_le_bytes() != *checksum || body[..8] != *TRAILER_MARK {
        return Ok(None);
    }
    let mut reader = ByteReader::new(&body[8..]);
    let (Some(start), Some(length)) = (reader.u64(), reader.u64()) else {
        return Ok(None);
    };
    if length < 8 || start.checked_add(length) != Some(trailer_start) {
        return Ok(None);
    }
    let mut bytes = vec![0; length as usize];
    file.read_exact_at(&mut bytes, start)?;
    let (body, checksum) = bytes.split_at(bytes.len() - 8);
    if xxh3_64_with_seed(body, header.identity).to_le_bytes() != *checksum {
        return Ok(None);
    }
    bytes.truncate(bytes.len() - 8);
    Ok(Some((start, bytes)))
}

fn decode(bytes: &[u8]) -> Option<Footer> {
    let mut reader = ByteReader::new(bytes);
    if reader.bytes(8)? != FOOTER_MARK {
        return None;
    }
    let mut index = SegmentIndex {
        base_sequence: reader.u64()?,
        last_sequence: reader.u64()?,
        end: reader.u64()?,
        first_time_ns: reader.u64()? as i64,
        last_time_ns: reader.u64()? as i64,
        ..SegmentIndex::default()
    };
    let (count, bytes) = (reader.u64()?, reader.u64()?);
    let ranks = reader.u32()? as usize;
    let flags = reader.u32()?;
    if flags & 1 != 0 {
        index.sequences = Some(take_all(&mut reader, ranks)?);
    }
    index.places = take_all(&mut reader, ranks)?;
    if flags & 2 != 0 {
        index.sizes = Some(take_all(&mut reader, ranks)?);
    }
    let subject_count = reader.u32()? as usize;
    let mut subjects = Vec::with_capacity(subject_count.min(1 << 20));
    for _ in 0..subject_count {
        let length = usize::from(reader.u16()?);
        subjects.push(FooterSubject {
            name: reader.bytes(length)?.into(),
            count: reader.u32()?,
            first: index.base_sequence + u64::from(reader.u32()?),
            last: index.base_sequence + u64::from(reader.u32()?),
        });
    }
    index.subject_ids = match id_bytes(subject_count) {
        0 => vec![0; ranks],
        1 => reader
            .bytes(ranks)?
            .iter()
            .map(|id| u32::from(*id))
            .collect(),
        2 => reader
            .bytes(ranks * 2)?
            .chunks_exact(2)
            .map(|pair| u32::from(u16::from_le_bytes([pair[0], pair[1]])))
            .collect(),
        _ => take_all(&mut reader, ranks)?,
    };
    let others = reader.u32()? as usize;
    index.others = take_all(&mut reader, others)?;
    index.removals = removal::decode(&mut reader)?;
    index.lost = removal::decode(&mut reader)?;
    for _ in 0..reader.u32()? {
        let delta = reader.u32()?;
        index.expiries.push((delta, reader.u64()? as i64));
    }
    reader.is_empty().then_some(Footer {
        index,
        subjects,
        count,
        bytes,
    })
}

/// Bytes the number of a subject takes: none where there is only one.
fn id_bytes(subject_count: usize) -> usize {
    match subject_count {
        0 | 1 => 0,
        2..=0x100 => 1,
        0x101..=0x1_0000 => 2,
        _ => 4,
    }
}

fn put_all(out: &mut Vec<u8>, numbers: &[u32]) {
    out.reserve(numbers.len() * 4);
    for number in numbers {
        out.put_u32(*number);
    }
}

fn take_all(reader: &mut ByteReader<'_>, count: usize) -> Option<Vec<u32>> {
    let bytes = reader.bytes(count.checked_mul(4)?)?;
    let number = |four: &[u8]| u32::from_le_bytes([four[0], four[1], four[2], four[3]]);
    Some(bytes.chunks_exact(4).map(number).collect())
}
