//! An archive of a stream. No input may stop the reader, make it store what it must not, or take more memory than its limits say.

#![no_main]

use std::io::{Read, Write};

use jetlake_engine::stream::archive::format::{ArchiveReader, MESSAGE_BYTES_MAX, SEQUENCE_MAX};
use jetlake_engine::wire::s2_frames::{decompress, S2FrameReader, BLOCK_BYTES_MAX};
use libfuzzer_sys::fuzz_target;

/// What an input may decompress to before it is not read any further: fuzzing is about lengths, not about patience.
const PLAIN_BYTES_MAX: u64 = 32 * 1024 * 1024;

fn read_entries(input: impl Read) {
    let mut archive = ArchiveReader::new(input);
    if archive.state().is_err() {
        return;
    }
    let mut last_sequence = 0;
    while let Ok(Some(message)) = archive.message() {
        assert!(message.sequence > last_sequence && message.sequence <= SEQUENCE_MAX);
        assert!(message.headers.len() + message.payload.len() <= MESSAGE_BYTES_MAX);
        assert!(!message.subject.is_empty());
        last_sequence = message.sequence;
    }
}

fuzz_target!(|input: &[u8]| {
    // As an archive that was decompressed, …
    read_entries(input);
    // … as one that was not, …
    let mut frames = S2FrameReader::new(input).take(PLAIN_BYTES_MAX);
    let _ = frames.read_exact(&mut [0; 8]);
    read_entries(frames);
    // … as a single block, …
    let mut block = Vec::new();
    if decompress(input, &mut block).is_ok() {
        assert!(block.len() <= BLOCK_BYTES_MAX);
    }
    // … and as anything at all, which must come back as it was.
    let mut encoder = snap::write::FrameEncoder::new(Vec::new());
    encoder.write_all(input).expect("memory takes everything");
    let compressed = encoder.into_inner().expect("memory takes everything");
    let mut plain = Vec::new();
    S2FrameReader::new(&compressed[..])
        .read_to_end(&mut plain)
        .expect("what was compressed can be decompressed");
    assert_eq!(plain, input);
});
