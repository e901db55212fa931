//! Tests of archives: there and back, and everything that is not one.

use super::*;
use proptest::prelude::*;

fn message(sequence: u64, subject: &'static [u8]) -> NewEntry<'static> {
    NewEntry {
        name: subject,
        time_ns: -7,
        sequence,
        headers: b"NATS/1.0\r\n\r\n",
        payload: b"payload",
    }
}

fn state() -> NewEntry<'static> {
    NewEntry {
        name: STATE_NAME,
        time_ns: 5,
        payload: b"{}",
        ..NewEntry::default()
    }
}

/// An archive without its magic.
fn archive(entries: &[NewEntry<'_>]) -> Vec<u8> {
    let mut writer = ArchiveWriter::new(Vec::new()).unwrap();
    for entry in entries {
        writer.write(entry).unwrap();
    }
    writer.finish().unwrap().split_off(MAGIC.len())
}

/// Sequences of the messages after a state without consumers.
fn sequences(bytes: &[u8]) -> ArchiveResult<Vec<u64>> {
    let mut reader = ArchiveReader::new(bytes);
    reader.state()?;
    let mut sequences = Vec::new();
    while let Some(message) = reader.message()? {
        assert!(message.headers.len() + message.payload.len() <= MESSAGE_BYTES_MAX);
        sequences.push(message.sequence);
    }
    Ok(sequences)
}

fn refusal(entries: &[NewEntry<'_>]) -> String {
    sequences(&archive(entries)).unwrap_err().to_string()
}

#[test]
fn what_is_written_is_read() {
    let consumer = NewEntry {
        name: b"consumers/C",
        payload: b"{\"config\":{}}",
        ..NewEntry::default()
    };
    let bytes = archive(&[state(), consumer, message(3, b"a.b"), message(9, b"a")]);

    let mut reader = ArchiveReader::new(&bytes[..]);

    assert_eq!(reader.state().unwrap(), b"{}");
    let (name, body) = reader.consumer().unwrap();
    assert_eq!((name, body), (&b"C"[..], &b"{\"config\":{}}"[..]));
    let expected = ArchivedMessage {
        subject: b"a.b",
        time_ns: -7,
        sequence: 3,
        headers: b"NATS/1.0\r\n\r\n",
        payload: b"payload",
    };
    assert_eq!(reader.message().unwrap(), Some(expected));
    assert_eq!(reader.message().unwrap().unwrap().sequence, 9);
    assert_eq!(reader.message().unwrap(), None);
}

#[test]
fn entries_in_a_wrong_order_are_refused() {
    assert_eq!(refusal(&[message(1, b"a")]), "expected state.json first");
    let back = [state(), message(2, b"a"), message(2, b"a")];
    assert_eq!(refusal(&back), "message sequence 2 out of order");
    let none = [state(), message(0, b"a")];
    assert_eq!(refusal(&none), "expected message sequence");
    let beyond = [state(), message(u64::MAX, b"a")];
    assert!(refusal(&beyond).ends_with("is beyond all sequences"));
}

#[test]
fn names_that_are_no_subjects_are_refused() {
    for name in [
        &b""[..],
        b"a..b",
        b"a.*",
        b">",
        b"a b",
        b"a\r\nPUB x",
        b".a",
        b"a\0b",
    ] {
        let entry = NewEntry {
            name,
            ..message(1, b"")
        };

        assert!(
            refusal(&[state(), entry]).contains("has no valid subject"),
            "{name:?}"
        );
    }
}

#[test]
fn an_archive_that_is_cut_off_anywhere_is_refused() {
    let bytes = archive(&[state(), message(1, b"a"), message(2, b"a")]);

    for cut in 0..bytes.len() {
        let error = sequences(&bytes[..cut]).unwrap_err();
        assert!(matches!(error, ArchiveError::Truncated), "{cut}: {error}");
    }
    let longer = [&bytes[..], b"x"].concat();
    assert!(sequences(&longer).is_err());
    assert_eq!(sequences(&bytes).unwrap(), [1, 2]);
}

#[test]
fn lengths_beyond_all_limits_are_refused_before_any_room_is_made() {
    let reader = |head: &[u64]| {
        let mut bytes = archive(&[state()]);
        bytes.truncate(bytes.len() - 5);
        for number in head {
            put_varint(&mut bytes, *number);
        }
        bytes.push(b'a');
        sequences(&bytes).unwrap_err().to_string()
    };

    assert!(reader(&[1, 0, 1, u64::MAX, 1]).contains("says it has more than"));
    assert!(reader(&[1, 0, 1, u64::MAX, u64::MAX]).contains("says it has more than"));
    assert!(reader(&[1, 0, 1, 0, MESSAGE_BYTES_MAX as u64 + 1]).contains("says it has more than"));
    assert!(reader(&[1 << 20, 0, 1, 0, 0]).contains("has a name of"));
    assert_eq!(
        reader(&[1, 0, 1, 0, MESSAGE_BYTES_MAX as u64]),
        "the archive is not complete"
    );
    let mut long = archive(&[state()]);
    long.truncate(long.len() - 5);
    long.extend_from_slice(&[0xff; 11]);
    assert!(sequences(&long)
        .unwrap_err()
        .to_string()
        .contains("64 bits"));
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = sequences(&bytes);
        let state = archive(&[state()]);
        let _ = sequences(&[&state[..state.len() - 5], &bytes].concat());
        let _ = ArchiveReader::new(&bytes[..]).consumer();
    }

    #[test]
    fn a_flipped_bit_is_read_or_refused(at in any::<proptest::sample::Index>(), bit in 0..8) {
        let mut bytes = archive(&[state(), message(1, b"a"), message(1 << 40, b"b.c")]);
        let at = at.index(bytes.len());
        bytes[at] ^= 1_u8 << bit;
        let _ = sequences(&bytes);
    }

    #[test]
    fn numbers_are_read_as_they_are_written(number in any::<u64>(), time_ns in any::<i64>()) {
        let mut bytes = Vec::new();
        put_varint(&mut bytes, number);
        prop_assert_eq!(ArchiveReader::new(&bytes[..]).varint().unwrap(), number);
        prop_assert_eq!(unzigzag(zigzag(time_ns)), time_ns);
    }
}
