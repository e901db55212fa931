//! Proving that a chained stream is what was published: every link is made again from what is on disk.

use std::io;

use crate::storage::format::chain;
use crate::storage::format::chain::{ChainLink, Verification, Verifier};
use crate::storage::format::record;
use crate::storage::format::record::{Record, RecordKind};
use crate::storage::segment::scan::scan;
use crate::storage::segment::segment_file::{Remains, SegmentFile};

/// Follows the chain through segments, each up to its end.
pub fn verify<'a>(
    files: impl Iterator<Item = (&'a SegmentFile, u64)>,
    stream: u64,
    origin_sequence: u64,
    last_sequence: u64,
) -> io::Result<Verification> {
    let mut verifier = Verifier::new(stream, origin_sequence);
    for (file, end) in files {
        let mut expected = None;
        links(file, end, |sequence, found| {
            if sequence > last_sequence {
                return;
            }
            // Within a segment every sequence has something left of it.
            if let Some(expected) = expected.filter(|expected| *expected < sequence) {
                verifier.interrupt(expected);
            }
            expected = Some(sequence + 1);
            match found {
                Some(remains) => {
                    verifier.follow(sequence, &remains.link, remains.digest.as_ref());
                }
                None => verifier.interrupt(sequence),
            }
        })?;
    }
    Ok(verifier.finish())
}

/// Calls `found` with every message of a segment and what it contributes to the chain: nothing, if it has no link or cannot be decrypted.
pub fn links(
    file: &SegmentFile,
    end: u64,
    mut found: impl FnMut(u64, Option<Remains>),
) -> io::Result<()> {
    let binding = file.header.binding();
    let (mut plain, mut body) = (Vec::new(), Vec::new());
    let mut visit = |record: Record<'_>, position: u64, bytes: &[u8]| {
        let contents = |record: &Record<'_>| {
            record.link.map(|link| Remains {
                link: *link,
                digest: Some(chain::digest(record)),
            })
        };
        match (record.kind, &file.key) {
            (RecordKind::Removed | RecordKind::Dictionary | RecordKind::Group, _) => {}
            (RecordKind::Erased, _) => found(record.sequence, Remains::of(&record)),
            (RecordKind::Message | RecordKind::Compressed, Some(key)) if record.encrypted => {
                plain.clear();
                plain.extend_from_slice(bytes);
                let opened = record::open(&mut plain, binding, position, key);
                let whole = opened.and_then(|record| file.expand(record, &mut body));
                found(record.sequence, whole.as_ref().and_then(contents));
            }
            (RecordKind::Message | RecordKind::Compressed, _) => {
                let whole = file.expand(record, &mut body);
                found(record.sequence, whole.as_ref().and_then(contents));
            }
        }
    };
    scan(&*file.file, binding, end, &mut visit)?;
    Ok(())
}

/// The link of the last message of some segments, the newest first; that before the first message if there is none.
pub fn last_link<'a>(
    files: impl Iterator<Item = (&'a SegmentFile, u64)>,
    stream: u64,
) -> io::Result<ChainLink> {
    for (file, end) in files {
        let mut last = None;
        links(file, end, |_, remains| {
            last = remains.map(|remains| remains.link).or(last);
        })?;
        if let Some(last) = last {
            return Ok(last);
        }
    }
    Ok(chain::origin(stream))
}
