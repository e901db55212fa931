//! Bytes of a server, as a bulk reader takes them: in any two pieces the rows are the same.

#![no_main]

use jetlake_engine::bulk::rows::RowReader;
use libfuzzer_sys::fuzz_target;

const SOURCES: [&str; 3] = ["consumer", "direct_get", "scan"];

/// How many rows came, and whether it failed.
fn read(source: &str, pieces: &[&[u8]]) -> (u64, bool) {
    let options = format!(
        r#"{{"stream":"S","inbox":"_INBOX.a","source":"{source}","decompress":"zlib","bad_payload":"null"}}"#
    );
    let mut reader = RowReader::new(options.as_bytes()).expect("the options are right");
    let failed = pieces.iter().any(|piece| reader.feed(piece).is_err());
    (reader.batches().rows, failed)
}

fuzz_target!(|input: (u8, u16, &[u8])| {
    let (source, split, bytes) = input;
    let source = SOURCES[usize::from(source) % SOURCES.len()];
    let (front, back) = bytes.split_at(usize::from(split) % (bytes.len() + 1));

    assert_eq!(read(source, &[bytes]), read(source, &[front, back]));
});
