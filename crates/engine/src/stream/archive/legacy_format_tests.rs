//! Tests of old archives, with two that were made by older servers.

use super::*;
use crate::wire::s2_frames::S2FrameReader;
use proptest::prelude::*;

/// Made by nats-server 2.14.6 and 2.11.11; what is in them stands beside them.
const ARCHIVES: [&[u8]; 2] = [
    include_bytes!("../../../../../tests/fixtures/archives/nats_server_2_14_6.s2"),
    include_bytes!("../../../../../tests/fixtures/archives/nats_server_2_11_11.s2"),
];
const NAME: &str = "ORDERS";

fn plain(archive: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    S2FrameReader::new(archive).read_to_end(&mut plain).unwrap();
    plain
}

fn read(plain: &[u8], name: &str) -> ArchiveResult<(Survey, Vec<u64>)> {
    let found = survey(plain, name)?;
    let mut sequences = Vec::new();
    for_each_message(plain, name, &found, 1, |message| {
        assert!(message.sequence <= SEQUENCE_MAX);
        sequences.push(message.sequence);
        Ok::<(), ArchiveError>(())
    })?;
    Ok((found, sequences))
}

#[test]
fn archives_of_older_servers_are_read() {
    for archive in ARCHIVES {
        let (survey, sequences) = read(&plain(archive), NAME).unwrap();

        assert_eq!(
            sequences,
            [101, 103, 104, 107, 108, 109, 111, 112, 113, 115, 116, 117]
        );
        assert_eq!((survey.consumers, survey.last_sequence), (1, 119));
        assert!(survey.created.starts_with("20"));
    }
}

#[test]
fn an_archive_of_another_stream_is_refused() {
    let error = read(&plain(ARCHIVES[0]), "OTHER").unwrap_err();

    assert_eq!(error.to_string(), "stream names do not match");
}

#[test]
fn an_archive_that_is_cut_off_anywhere_is_refused() {
    let plain = plain(ARCHIVES[0]);

    // The end are two blocks of zeros, of which one is enough.
    for cut in (0..plain.len() - 1024).step_by(7) {
        assert!(read(&plain[..cut], NAME).is_err(), "{cut}");
    }
}

#[test]
fn a_damaged_record_is_refused() {
    let good = plain(ARCHIVES[0]);
    let at = good
        .windows(7)
        .position(|bytes| bytes == b"order 7")
        .unwrap();
    for distance in 0..7 {
        let mut bytes = good.clone();
        bytes[at + distance] ^= 1;

        let error = read(&bytes, NAME).unwrap_err();
        assert_eq!(
            error.to_string(),
            "a block of messages has a wrong checksum"
        );
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        let _ = read(&bytes, NAME);
        let _ = extended(&bytes);
    }

    #[test]
    fn changed_bytes_are_read_or_refused(
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..8)
    ) {
        let mut bytes = plain(ARCHIVES[1]);
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let _ = read(&bytes, NAME);
    }
}
