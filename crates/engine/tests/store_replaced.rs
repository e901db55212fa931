//! A message that is replaced between being found and being read: the one that replaced it is the answer.

use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;

use jetlake_engine::storage::disk::file_system::RealFileSystem;
use jetlake_engine::storage::message::NewMessage;
use jetlake_engine::storage::store::{Store, StoreOptions};

fn put(store: &Store, payload: &[u8]) {
    let message = NewMessage {
        subject: b"key",
        payload,
        ..NewMessage::default()
    };
    store.append(&message).unwrap();
    store.commit().unwrap();
}

fn take_out(store: &Store, sequence: u64) {
    store.remove(sequence, false).unwrap();
    store.commit().unwrap();
}

fn open(name: &str) -> Store {
    let folder =
        std::env::temp_dir().join(format!("jetlake-replaced-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    Store::open(
        Arc::new(RealFileSystem),
        Path::new(&folder),
        StoreOptions::default(),
    )
    .unwrap()
}

#[test]
fn the_message_that_replaced_another_is_read() {
    let store = open("once");
    put(&store, b"0");
    let replacements = Cell::new(3);

    let message = store
        .messages()
        .read_found(|| {
            let found = store.messages().last_match(b"key");
            if let (Some(sequence), left @ 1..) = (found, replacements.get()) {
                replacements.set(left - 1);
                put(&store, format!("{left}").as_bytes());
                take_out(&store, sequence);
            }
            found
        })
        .unwrap();

    assert_eq!(message.unwrap().payload(), b"1");
}

#[test]
fn a_message_that_is_removed_meanwhile_is_not_found() {
    let store = open("gone");
    put(&store, b"only");

    let message = store
        .messages()
        .read_found(|| {
            let found = store.messages().last_match(b"key");
            if let Some(sequence) = found {
                take_out(&store, sequence);
            }
            found
        })
        .unwrap();

    assert!(message.is_none());
}
