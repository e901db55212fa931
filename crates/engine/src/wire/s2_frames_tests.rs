//! Tests of S2: blocks by hand, streams of the crate `snap`, and bytes that are neither.

use std::io::Write;

use super::*;
use proptest::prelude::*;

/// A stream of these chunks, each with its kind.
fn stream(chunks: &[(u8, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (kind, body) in chunks {
        bytes.push(*kind);
        bytes.extend_from_slice(&(body.len() as u32).to_le_bytes()[..3]);
        bytes.extend_from_slice(body);
    }
    bytes
}

fn checked(block: &[u8], decompressed: &[u8]) -> Vec<u8> {
    [&masked_checksum(decompressed).to_le_bytes()[..], block].concat()
}

fn read(bytes: &[u8]) -> Result<Vec<u8>, Option<FrameError>> {
    let mut out = Vec::new();
    match S2FrameReader::new(bytes).read_to_end(&mut out) {
        Ok(_) => Ok(out),
        Err(error) => Err(error
            .get_ref()
            .and_then(|inner| inner.downcast_ref())
            .copied()),
    }
}

fn decompressed(block: &[u8]) -> Result<Vec<u8>, FrameError> {
    let mut out = Vec::new();
    decompress(block, &mut out).map(|()| out)
}

#[test]
fn a_repeat_copies_from_the_distance_before() {
    // "ab", a copy of three from two back, a literal, then four from two back again.
    let plain = decompressed(&[10, 0b100, b'a', b'b', 0b1010, 2, 0, 0, b'c', 0b01, 0]).unwrap();
    let of_eight = decompressed(&[10, 0b100, b'a', b'b', 0b10101, 0, 0]);
    let long = [&[0xb4, 0x06, 0, b'x', 2, 1, 0, 0b1_1001, 0, 0x2e, 0x02][..]].concat();

    assert_eq!(plain, b"ababacacac");
    // Nothing was copied yet, so there is no distance.
    assert_eq!(of_eight, Err(FrameError::Damaged));
    assert_eq!(decompressed(&long).unwrap(), vec![b'x'; 820]);
}

#[test]
fn lengths_of_repeats_have_one_two_or_three_bytes() {
    for (block, length) in [
        (vec![0b1_0101, 0, 7], 15),
        (vec![0b1_1001, 0, 1, 1], 257 + 256 + 4),
        (vec![0b1_1101, 0, 2, 0, 1], 65_538 + 65_536 + 4),
    ] {
        let whole = 2 + length;
        let mut bytes = Vec::new();
        let mut rest = whole;
        while rest >= 0x80 {
            bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        bytes.push(rest as u8);
        bytes.extend_from_slice(&[0, b'x', 0b10, 1, 0]);
        bytes.extend_from_slice(&block);

        assert_eq!(decompressed(&bytes).unwrap(), vec![b'x'; whole], "{length}");
    }
}

#[test]
fn streams_of_both_names_are_read_and_padding_is_passed_over() {
    let plain = checked(b"plain", b"plain");
    let packed = checked(&[4, 0, b'x', 0b1010, 1, 0], b"xxxx");
    for name in [S2_NAME, SNAPPY_NAME] {
        let bytes = stream(&[
            (0xff, name),
            (0x01, &plain),
            (0xfe, &[0; 100]),
            (0x99, b"index"),
            (0xff, name),
            (0x00, &packed),
        ]);

        assert_eq!(read(&bytes), Ok(b"plainxxxx".to_vec()));
    }
}

#[test]
fn what_is_no_stream_is_refused_by_name() {
    let good = stream(&[(0xff, S2_NAME), (0x01, &checked(b"plain", b"plain"))]);
    let wrong_sum = stream(&[(0xff, S2_NAME), (0x01, &checked(b"plain", b"other"))]);
    let unknown = stream(&[(0xff, S2_NAME), (0x02, b"?")]);
    let huge = [&stream(&[(0xff, S2_NAME)])[..], &[0x00, 0xff, 0xff, 0xff]].concat();

    assert_eq!(read(b""), Ok(Vec::new()));
    assert_eq!(read(&good[10..]), Err(Some(FrameError::NotS2)));
    assert_eq!(
        read(&stream(&[(0xff, b"MinLz1")])),
        Err(Some(FrameError::NotS2))
    );
    assert_eq!(read(&wrong_sum), Err(Some(FrameError::Checksum)));
    assert_eq!(read(&unknown), Err(Some(FrameError::UnknownChunk)));
    assert_eq!(read(&huge), Err(Some(FrameError::ChunkTooLarge)));
    for cut in 1..good.len() {
        if cut != 10 {
            assert_eq!(
                read(&good[..cut]),
                Err(Some(FrameError::Truncated)),
                "{cut}"
            );
        }
    }
}

#[test]
fn a_block_that_promises_more_than_any_may_hold_is_refused() {
    // 4 MiB and one byte, of which one is there.
    let bomb = [
        0x81, 0x80, 0x80, 0x02, 0, b'x', 0b1_1101, 0, 0xff, 0xff, 0xff,
    ];

    assert_eq!(decompressed(&bomb), Err(FrameError::Damaged));
}

proptest! {
    #[test]
    fn any_block_is_decompressed_or_refused(block in proptest::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(out) = decompressed(&block) {
            prop_assert!(out.len() <= BLOCK_BYTES_MAX);
        }
    }

    #[test]
    fn any_stream_is_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = read(&[&stream(&[(0xff, S2_NAME)])[..], &bytes].concat());
    }

    #[test]
    fn what_snap_writes_is_read(pieces in proptest::collection::vec((any::<u8>(), 1..5000_usize), 0..60)) {
        let plain: Vec<u8> = pieces.iter().flat_map(|(byte, count)| vec![*byte; *count]).collect();
        let mut encoder = snap::write::FrameEncoder::new(Vec::new());
        encoder.write_all(&plain).unwrap();

        let bytes = encoder.into_inner().unwrap();

        prop_assert_eq!(read(&bytes), Ok(plain));
    }
}
