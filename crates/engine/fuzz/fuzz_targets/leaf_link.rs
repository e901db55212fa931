//! A link to another server: operations mean the same however they are cut into reads, and compressed or not; nothing is consumed that is not there.

#![no_main]

use std::io::IoSlice;

use jetlake_engine::config::leaf::LeafCompression;
use jetlake_engine::transport::s2_link::{S2Framing, S2Unframing};
use jetlake_engine::wire::leaf_information::{LeafConnect, LeafInformation};
use jetlake_engine::wire::leaf_parser::{parse_leaf, LeafOperation, LeafStep};
use jetlake_engine::wire::ParserLimits;
use libfuzzer_sys::fuzz_target;

const LIMITS: ParserLimits = ParserLimits {
    control_line_bytes_max: 512,
    payload_bytes_max: 4096,
    headers: true,
};

fuzz_target!(|input: &[u8]| {
    let Some((&choices, bytes)) = input.split_first() else {
        return;
    };
    let piece_bytes = usize::from(choices >> 1) + 1;
    let compression = match choices & 1 {
        0 => LeafCompression::S2Fast,
        _ => LeafCompression::S2Uncompressed,
    };

    let whole = operations(bytes);
    let mut chunks = Vec::new();
    S2Framing::new(compression).frame(&[IoSlice::new(bytes)], |pieces| {
        for piece in pieces {
            chunks.extend_from_slice(piece);
        }
    });
    assert_eq!(unframed(&chunks, piece_bytes).as_deref(), Some(bytes));
    // Bytes that are not an S2 stream must be refused without a panic.
    let _ = unframed(bytes, piece_bytes);

    let mut kept = Vec::new();
    let mut pieces = Vec::new();
    for piece in bytes.chunks(piece_bytes) {
        kept.extend_from_slice(piece);
        loop {
            match parse_leaf(&kept, &LIMITS) {
                LeafStep::Operation {
                    operation,
                    consumed,
                } => {
                    pieces.push(format!("{operation:?}"));
                    kept.drain(..consumed);
                }
                LeafStep::Incomplete { bytes_needed } => {
                    assert!(bytes_needed > kept.len());
                    break;
                }
                LeafStep::Refused(_) => {
                    assert!(whole.starts_with(&pieces) || pieces.starts_with(&whole));
                    return;
                }
            }
        }
    }
    assert_eq!(whole, pieces);
});

/// The operations at the front of `bytes`, up to what is refused.
fn operations(mut bytes: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    while let LeafStep::Operation {
        operation,
        consumed,
    } = parse_leaf(bytes, &LIMITS)
    {
        assert!(consumed > 0 && consumed <= bytes.len());
        match operation {
            LeafOperation::Connect(json) => drop(LeafConnect::read(json)),
            LeafOperation::Information(json) => drop(LeafInformation::read(json)),
            _ => {}
        }
        found.push(format!("{operation:?}"));
        bytes = &bytes[consumed..];
    }
    found
}

fn unframed(chunks: &[u8], piece_bytes: usize) -> Option<Vec<u8>> {
    let mut unframing = S2Unframing::default();
    let mut found = Vec::new();
    let mut room = [0; 333];
    for piece in chunks.chunks(piece_bytes) {
        unframing.add(piece);
        loop {
            match unframing.read_into(&mut room).ok()? {
                0 => break,
                count => found.extend_from_slice(&room[..count]),
            }
        }
    }
    Some(found)
}
