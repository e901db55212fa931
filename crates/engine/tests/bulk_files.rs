//! Reading next to a server: the rows are those the store has, whatever was removed, and a file that is not as it was is
//! noticed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use jetlake_engine::bulk::files::StoreReader;
use jetlake_engine::common::error::EngineError;
use jetlake_engine::storage::disk::file_system::RealFileSystem;
use jetlake_engine::storage::format::encryption::MasterKey;
use jetlake_engine::storage::message::NewMessage;
use jetlake_engine::storage::store::pieces;
use jetlake_engine::storage::store::pieces::FilePiece;
use jetlake_engine::storage::store::{Store, StoreOptions};

type Content = (i64, String, Vec<u8>);

/// A folder that is removed with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("jetlake-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn options() -> StoreOptions {
    StoreOptions {
        segment_bytes: 64 * 1024,
        sync_commits: false,
        fill_ahead: false,
        ..StoreOptions::default()
    }
}

fn filled(folder: &Path, options: StoreOptions, count: u64) -> Store {
    let store = Store::open(Arc::new(RealFileSystem), folder, options).unwrap();
    for number in 1..=count {
        let payload = format!("payload {number} {}", "x".repeat(number as usize % 300));
        store
            .append(&NewMessage {
                subject: format!("a.{}", number % 3).as_bytes(),
                headers: if number % 4 == 0 {
                    b"NATS/1.0\r\nA: 1\r\n\r\n"
                } else {
                    b""
                },
                payload: payload.as_bytes(),
                time_ns: number as i64,
                expires_ns: None,
            })
            .unwrap();
        if number % 100 == 0 {
            store.commit().unwrap();
        }
    }
    store.commit().unwrap();
    store
}

fn stored(store: &Store, start: u64, end: u64) -> Vec<Content> {
    let mut found = Vec::new();
    let scanned = store.messages().scan(start, |record| {
        if record.sequence < end {
            let subject = String::from_utf8(record.subject.to_vec()).unwrap();
            found.push((record.sequence as i64, subject, record.payload.to_vec()));
        }
        record.sequence < end
    });
    scanned.unwrap();
    found
}

fn read(pieces: &[FilePiece]) -> Result<Vec<Content>, EngineError> {
    let options = serde_json::json!({
        "stream": "S", "pieces": pieces, "columns": ["sequence", "subject", "data"], "batch_rows": 50,
    });
    let mut reader = StoreReader::new(options.to_string().as_bytes())?;
    let mut rows = Vec::new();
    loop {
        let batches = reader.read()?;
        if batches.is_empty() {
            assert_eq!(reader.batches().rows, rows.len() as u64);
            return Ok(rows);
        }
        for batch in batches {
            let sequences = batch.column(0).as_primitive::<Int64Type>();
            let subjects = batch.column(1).as_string::<i32>();
            let data = batch.column(2).as_binary::<i32>();
            for row in 0..batch.num_rows() {
                let subject = subjects.value(row).to_owned();
                rows.push((sequences.value(row), subject, data.value(row).to_vec()));
            }
        }
    }
}

#[test]
fn rows_are_those_of_the_store_in_every_kind_of_segment() {
    for (number, kind) in [
        options(),
        StoreOptions {
            chained: true,
            ..options()
        },
        StoreOptions {
            compressed: true,
            ..options()
        },
    ]
    .into_iter()
    .enumerate()
    {
        let folder = Folder::new(&format!("bulk-files-{number}"));
        let store = filled(&folder.0, kind, 1500);
        for sequence in [1, 2, 3, 700, 702, 1499] {
            store.remove(sequence, false).unwrap();
        }
        store.remove(900, true).unwrap();
        store.commit().unwrap();
        while store.maintain().unwrap() {}

        for (start, end) in [(1, u64::MAX), (1, 2), (600, 1000), (701, 702), (1400, 1501)] {
            let pieces = pieces::pieces(store.messages(), start, end).unwrap();

            assert_eq!(
                read(&pieces).unwrap(),
                stored(&store, start, end),
                "{number}: {start} to {end}"
            );
        }
    }
}

#[test]
fn a_message_erased_meanwhile_or_a_flipped_bit_is_noticed() {
    let folder = Folder::new("bulk-files-changed");
    let store = filled(&folder.0, options(), 200);
    let pieces = pieces::pieces(store.messages(), 1, u64::MAX).unwrap();
    store.remove(150, true).unwrap();
    store.commit().unwrap();

    let erased = read(&pieces).unwrap_err();
    let pieces = pieces::pieces(store.messages(), 1, u64::MAX).unwrap();
    let path = &pieces[0].path;
    let mut bytes = std::fs::read(path).unwrap();
    bytes[pieces[0].from as usize + 40] ^= 1;
    std::fs::write(path, bytes).unwrap();
    let flipped = read(&pieces).unwrap_err();

    assert_eq!((erased.kind(), flipped.kind()), ("lost", "lost"));
}

#[test]
fn another_file_or_none_is_noticed() {
    let folder = Folder::new("bulk-files-other");
    let store = filled(&folder.0, options(), 10);
    let pieces = pieces::pieces(store.messages(), 1, u64::MAX).unwrap();
    let mut other = pieces.clone();
    other[0].identity ^= 1;
    let mut missing = pieces.clone();
    missing[0].path = folder.0.join("nothing");
    let mut longer = pieces;
    longer[0].to += 1000;

    for wrong in [other, missing, longer] {
        assert_eq!(read(&wrong).unwrap_err().kind(), "lost");
    }
}

#[test]
fn encrypted_messages_are_not_for_others() {
    let folder = Folder::new("bulk-files-encrypted");
    let kind = StoreOptions {
        key: Some(MasterKey::new(b"key")),
        ..options()
    };
    let store = filled(&folder.0, kind, 10);

    let refused = pieces::pieces(store.messages(), 1, u64::MAX).unwrap_err();

    assert!(refused.to_string().contains("encrypted"), "{refused}");
}
