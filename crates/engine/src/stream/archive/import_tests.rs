//! Tests of imports: what comes out of archives, and what does not get in.

use std::io::Write;
use std::path::Path;

use super::*;
use crate::storage::disk::memory::MemoryFileSystem;
use crate::storage::store::StoreOptions;
use crate::stream::archive::format::{ArchiveWriter, NewEntry, STATE_NAME};
use crate::stream::settings::Storage;
use proptest::prelude::*;

const NOW_NS: i64 = 1_800_000_000_000_000_000;

fn settings() -> StreamSettings {
    StreamSettings {
        name: "S".to_owned(),
        storage: Storage::Memory,
        first_sequence: 1,
        payload_bytes_max: 1024 * 1024,
        allow_time_to_live: true,
        ..StreamSettings::default()
    }
}

fn compressed(plain: &[u8]) -> Vec<u8> {
    let mut encoder = snap::write::FrameEncoder::new(Vec::new());
    encoder.write_all(plain).unwrap();
    encoder.into_inner().unwrap()
}

fn plain(state: &str, entries: &[NewEntry<'_>]) -> Vec<u8> {
    let mut writer = ArchiveWriter::new(Vec::new()).unwrap();
    let state = NewEntry {
        name: STATE_NAME,
        payload: state.as_bytes(),
        ..NewEntry::default()
    };
    writer.write(&state).unwrap();
    for entry in entries {
        writer.write(entry).unwrap();
    }
    writer.finish().unwrap()
}

fn message(sequence: u64, headers: &'static [u8]) -> NewEntry<'static> {
    NewEntry {
        name: b"a.b",
        time_ns: NOW_NS - 1_000_000_000 + sequence as i64,
        sequence,
        headers,
        payload: b"payload",
    }
}

fn import_with(
    archive: &[u8],
    settings: &StreamSettings,
    stored_bytes_max: u64,
) -> Result<Imported, ImportError> {
    let stopped = AtomicBool::new(false);
    let terms = Terms {
        settings,
        stored_bytes_max,
        first_sequence: 0,
        last_sequence: 0,
        now_ns: NOW_NS,
        stopped: &stopped,
    };
    import(
        || archive,
        &terms,
        |first_sequence| {
            let options = StoreOptions {
                first_sequence,
                limits: settings.removing_limits(),
                ..StoreOptions::default()
            };
            let disk = Arc::new(MemoryFileSystem::default());
            Ok(Arc::new(
                Store::open(disk, Path::new("/s"), options).unwrap(),
            ))
        },
    )
}

fn imported(state: &str, entries: &[NewEntry<'_>]) -> Result<Arc<Store>, String> {
    let archive = compressed(&plain(state, entries));
    match import_with(&archive, &settings(), u64::MAX) {
        Ok(imported) => Ok(imported.store),
        Err(error) => Err(error.to_string()),
    }
}

fn sequences(store: &Store) -> Vec<u64> {
    let mut sequences = Vec::new();
    store
        .messages()
        .scan(0, |record| {
            sequences.push(record.sequence);
            true
        })
        .unwrap();
    sequences
}

#[test]
fn sequences_gaps_and_times_are_kept() {
    let entries = [message(7, b""), message(8, b""), message(12, b"")];

    let store = imported(r#"{"first_seq":5,"last_seq":20}"#, &entries).unwrap();

    assert_eq!(sequences(&store), [7, 8, 12]);
    assert_eq!(store.messages().counts().last_sequence, 20);
    let read = store.messages().read(12).unwrap().unwrap();
    assert_eq!(read.time_ns, entries[2].time_ns);
    assert_eq!(
        (read.subject(), read.payload()),
        (&b"a.b"[..], &b"payload"[..])
    );
    let next = store.append(&NewMessage {
        subject: b"x",
        ..NewMessage::default()
    });
    assert_eq!(next.unwrap().sequence, 21);
}

#[test]
fn gaps_of_any_size_are_passed_over() {
    let far = 1 << 61;
    let entries = [message(1, b""), message(1 << 40, b""), message(far, b"")];

    let store = imported(&format!(r#"{{"first_seq":1,"last_seq":{far}}}"#), &entries).unwrap();

    assert_eq!(sequences(&store), [1, 1 << 40, far]);
}

#[test]
fn empty_streams_keep_their_place() {
    for (state, last_sequence) in [
        ("{}", 0),
        (r#"{"first_seq":1000,"last_seq":999}"#, 999),
        (r#"{"first_seq":6,"last_seq":5}"#, 5),
        (r#"{"first_seq":1,"last_seq":50}"#, 50),
    ] {
        let store = imported(state, &[]).unwrap();

        assert_eq!(
            store.messages().counts().last_sequence,
            last_sequence,
            "{state}"
        );
        assert_eq!(store.messages().counts().messages, 0);
    }
}

#[test]
fn times_to_live_are_read_and_what_is_over_is_passed_over() {
    let entries = [
        message(1, b"NATS/1.0\r\nNats-TTL: 1h\r\n\r\n"),
        // Stored a second ago.
        message(2, b"NATS/1.0\r\nNats-TTL: 1\r\n\r\n"),
        message(3, b"NATS/1.0\r\nNats-TTL: never\r\n\r\n"),
    ];
    let old = NewEntry {
        time_ns: NOW_NS - 2_000_000_000,
        ..entries[1]
    };

    let store = imported(r#"{"first_seq":1}"#, &[entries[0], old, entries[2]]).unwrap();

    assert_eq!(sequences(&store), [1, 3]);
    let expires = |sequence| store.messages().read(sequence).unwrap().unwrap().expires_ns;
    assert_eq!(expires(1), Some(entries[0].time_ns + 3_600_000_000_000));
    assert_eq!(expires(3), Some(i64::MAX));
}

#[test]
fn consumers_are_returned_if_their_form_is_right() {
    let consumer = |name: &'static [u8], payload: &'static [u8]| NewEntry {
        name,
        payload,
        ..NewEntry::default()
    };
    let good = consumer(b"consumers/C", br#"{"config":{"a":[1]},"state":{}}"#);
    let state = r#"{"first_seq":1,"consumer_count":1}"#;

    let archive = compressed(&plain(state, &[good, message(1, b"")]));
    let result = import_with(&archive, &settings(), u64::MAX).unwrap();

    let expected = ArchivedConsumer {
        name: "C".to_owned(),
        config: r#"{"a":[1]}"#.to_owned(),
        state: "{}".to_owned(),
    };
    assert_eq!(result.consumers, [expected]);
    assert_eq!(sequences(&result.store), [1]);
    for (entry, reason) in [
        (
            consumer(b"consumers/C", b"{"),
            "failed to decode consumer \"C\"",
        ),
        (
            consumer(b"consumers/C", b"{\"config\":7}"),
            "failed to decode",
        ),
        (
            consumer(b"consumers/C", b"{}"),
            "consumer \"C\" is missing config",
        ),
        (
            consumer(b"consumers/C", b"{\"config\":{}}"),
            "consumer \"C\" is missing state",
        ),
        (
            consumer(b"consumers/../x", b"{}"),
            "no consumer can be named",
        ),
        (consumer(b"a.b", b"{}"), "expected consumer, found \"a.b\""),
    ] {
        let refusal = imported(state, &[entry]).map(|_| ()).unwrap_err();
        assert!(refusal.starts_with(reason), "{refusal}");
    }
}

#[test]
fn nothing_beyond_the_limits_is_stored() {
    let entries: Vec<_> = (1..=100).map(|sequence| message(sequence, b"")).collect();
    let archive = compressed(&plain(r#"{"first_seq":1}"#, &entries));
    let bomb = compressed(&plain(r#"{"first_seq":1,"bytes":5000}"#, &[]));
    let small = StreamSettings {
        message_bytes_max: Some(6),
        ..settings()
    };
    let own = StreamSettings {
        payload_bytes_max: 6,
        ..settings()
    };
    let error = |archive: &[u8], settings: &StreamSettings, most| {
        let result = import_with(archive, settings, most);
        result.map(|_| ()).unwrap_err()
    };

    assert!(matches!(
        error(&archive, &settings(), 1000),
        ImportError::Exceeded
    ));
    assert!(matches!(
        error(&bomb, &settings(), 4999),
        ImportError::Exceeded
    ));
    let texts = [
        error(&archive, &small, 1 << 20),
        error(&archive, &own, 1 << 20),
    ];
    assert_eq!(
        texts.map(|text| text.to_string()),
        [
            "message sequence 1 exceeds maximum message size",
            "message sequence 1 exceeds maximum payload size"
        ]
    );
}

#[test]
fn limits_of_the_stream_hold_from_the_first_message_on() {
    let mut few = settings();
    few.limits.messages_max = Some(3);
    let entries: Vec<_> = (1..=100).map(|sequence| message(sequence, b"")).collect();
    let archive = compressed(&plain(r#"{"first_seq":1}"#, &entries));

    let result = import_with(&archive, &few, u64::MAX).unwrap();

    assert_eq!(sequences(&result.store), [98, 99, 100]);
}

#[test]
fn a_stopped_server_reads_no_further() {
    let archive = compressed(&plain(r#"{"first_seq":1}"#, &[message(1, b"")]));
    let stopped = AtomicBool::new(true);
    let settings = settings();
    let terms = Terms {
        settings: &settings,
        stored_bytes_max: u64::MAX,
        first_sequence: 0,
        last_sequence: 0,
        now_ns: NOW_NS,
        stopped: &stopped,
    };

    let result = import(
        || &archive[..],
        &terms,
        |first_sequence| {
            let options = StoreOptions {
                first_sequence,
                ..StoreOptions::default()
            };
            let disk = Arc::new(MemoryFileSystem::default());
            Ok(Arc::new(
                Store::open(disk, Path::new("/s"), options).unwrap(),
            ))
        },
    );

    assert!(matches!(result.map(|_| ()), Err(ImportError::Stopped)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_archive_is_imported_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let state = plain(r#"{"first_seq":1,"last_seq":9}"#, &[]);
        let behind_state = [&state[..state.len() - 5], &bytes].concat();
        for archive in [&bytes[..], &compressed(&bytes), &compressed(&behind_state)] {
            let _ = import_with(archive, &settings(), 1 << 20);
        }
    }

    #[test]
    fn a_flipped_bit_before_compression_is_imported_or_refused(
        at in any::<proptest::sample::Index>(), bit in 0..8
    ) {
        let mut bytes = plain(r#"{"first_seq":1,"last_seq":9}"#, &[message(1, b"NATS/1.0\r\nNats-TTL: 5\r\n\r\n"), message(7, b"")]);
        let at = at.index(bytes.len());
        bytes[at] ^= 1_u8 << bit;
        let _ = import_with(&compressed(&bytes), &settings(), 1 << 20);
    }

    #[test]
    fn a_flipped_bit_after_compression_is_always_refused(at in 10_usize..200, bit in 0..8) {
        let good = plain(r#"{"first_seq":1,"last_seq":9}"#, &[message(1, b""), message(7, b"")]);
        let mut bytes = compressed(&good);
        let at = at % bytes.len();
        bytes[at] ^= 1_u8 << bit;
        // Even where a block became one that is passed over: then the archive is not complete.
        let refused = import_with(&bytes, &settings(), 1 << 20).is_err();
        prop_assert!(refused);
    }
}
