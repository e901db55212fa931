//! A disk that hangs: nothing that a worker asks a store waits for it.
//!
//! Workers read sockets, so they must never wait for a lock that is held while a disk is waited for. Each test lets one thread hang in a call to the disk, and
//! then makes every call that workers make.

#[allow(dead_code, reason = "each test uses its part of it")]
#[path = "support/watched_disk.rs"]
mod watched_disk;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{mpsc, Arc};
use std::thread;
use std::time::{Duration, Instant};

use jetlake_engine::storage::message::{NewMessage, Purge, StoreResult};
use jetlake_engine::storage::segment::segment_file::Buffers;
use jetlake_engine::storage::store::staged_work::Change;
use jetlake_engine::storage::store::{Store, StoreOptions};
use watched_disk::WatchedDisk;

/// What does not wait for the disk is done by then; ample, on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Lets calls hang, and counts how many do.
#[derive(Default)]
struct Gate {
    is_shut: AtomicBool,
    waiting: AtomicUsize,
}

impl Gate {
    fn pass(&self) {
        if !self.is_shut.load(Ordering::Acquire) {
            return;
        }
        self.waiting.fetch_add(1, Ordering::AcqRel);
        while self.is_shut.load(Ordering::Acquire) {
            thread::sleep(Duration::from_millis(1));
        }
        self.waiting.fetch_sub(1, Ordering::AcqRel);
    }

    fn wait_for_one(&self) {
        let begun = Instant::now();
        while self.waiting.load(Ordering::Acquire) == 0 {
            assert!(begun.elapsed() < TIMEOUT, "nothing waits for the disk");
            thread::sleep(Duration::from_millis(1));
        }
    }
}

fn message(payload: &[u8]) -> NewMessage<'_> {
    NewMessage {
        subject: b"a.b",
        payload,
        ..NewMessage::default()
    }
}

/// A store of some messages on a disk on which syncs, and reads, can be made to hang.
fn open() -> (Arc<Store>, Arc<Gate>, Arc<Gate>) {
    let (syncs, reads) = (Arc::<Gate>::default(), Arc::<Gate>::default());
    let (on_sync, on_read) = (Arc::clone(&syncs), Arc::clone(&reads));
    let mut disk = WatchedDisk::new(move |_| on_sync.pass());
    disk.on_read = Arc::new(move |_| on_read.pass());
    let options = StoreOptions {
        segment_bytes: 64 * 1024,
        ..StoreOptions::default()
    };
    let store = Store::open(Arc::new(disk), Path::new("/s"), options).unwrap();
    for number in 1..=100 {
        let timed = NewMessage {
            time_ns: number,
            ..message(&[7; 2000])
        };
        store.append(&timed).unwrap();
    }
    store.commit().unwrap();
    (Arc::new(store), syncs, reads)
}

/// Everything a worker asks of a store.
fn work(store: &Store) -> StoreResult<()> {
    store.append(&message(b"one"))?;
    store.append_all(&[message(b"two"), message(b"three")])?;
    store.append_following(&message(b"four"), None, store.resets())?;
    store.remove(5, false)?;
    let _staged = store.stage(&Change {
        append: &[message(b"five")],
        remove: &[6],
        erase: false,
    })?;
    store.purge(&Purge {
        below_sequence: Some(3),
        ..Purge::default()
    })?;
    store.roll_up(b"a.c", &[], 9)?;
    store
        .messages()
        .read_cached(20, &mut Buffers::default(), |_| {});
    store.messages().counts();
    store.messages().marks();
    store.hindrance();
    store.staged_messages();
    store.is_removing();
    store.last_given_sequence();
    store.take_progress();
    store.take_findings();
    store.messages().subject_of(7);
    store.messages().contains(7);
    store.messages().is_recent(7);
    store.messages().next_match(b"a.*", 1);
    store.messages().last_match(b"a.b");
    store.messages().subject_count(b"a.b");
    store.messages().count_matching(&[b"a.*".to_vec()], 1);
    Ok(())
}

/// Makes a call that hangs at a gate, and everything a worker asks meanwhile.
fn while_hanging(store: &Arc<Store>, gate: &Gate, call: impl FnOnce(&Store) + Send + 'static) {
    gate.is_shut.store(true, Ordering::Release);
    let hanging = {
        let store = Arc::clone(store);
        thread::spawn(move || call(&store))
    };
    gate.wait_for_one();
    let (done, is_done) = mpsc::channel();
    let working = {
        let store = Arc::clone(store);
        thread::spawn(move || done.send(work(&store)))
    };

    let outcome = is_done.recv_timeout(TIMEOUT);

    let still_hangs = !hanging.is_finished();
    gate.is_shut.store(false, Ordering::Release);
    hanging.join().unwrap();
    working.join().unwrap().ok();
    outcome.expect("a worker waits for the disk").unwrap();
    assert!(still_hangs, "the disk did not hang");
}

#[test]
fn no_worker_waits_while_a_commit_is_synced() {
    let (store, syncs, _) = open();
    store.append(&message(b"more")).unwrap();

    while_hanging(&store, &syncs, |store| drop(store.commit()));
}

#[test]
fn no_worker_waits_while_segments_are_sealed_and_rewritten() {
    let (store, syncs, reads) = open();
    for sequence in 1..=40 {
        store.remove(sequence, false).unwrap();
    }
    store.commit().unwrap();

    while_hanging(&store, &syncs, |store| drop(store.maintain()));
    while_hanging(&store, &reads, |store| {
        while store.maintain().is_ok_and(|more| more) {}
        drop(store.messages().read(60));
    });
}

#[test]
fn no_worker_waits_while_messages_are_read() {
    let (store, _, reads) = open();

    while_hanging(&store, &reads, |store| drop(store.messages().read(50)));
    while_hanging(&store, &reads, |store| {
        drop(store.messages().scan(1, |_| true))
    });
    while_hanging(&store, &reads, |store| {
        drop(store.messages().sequence_at(50))
    });
}

#[test]
fn no_worker_waits_while_something_is_erased() {
    let (store, syncs, _) = open();
    let erasure = store
        .stage(&Change {
            remove: &[50],
            erase: true,
            ..Change::default()
        })
        .unwrap();
    store.commit().unwrap();
    store.append(&message(b"more")).unwrap();

    while_hanging(&store, &syncs, move |store| {
        store.append(&message(b"again")).unwrap();
        store.commit_through(&erasure).unwrap();
        store.commit().unwrap();
    });
}

#[test]
fn no_worker_waits_while_a_store_is_settled() {
    let syncs = Arc::<Gate>::default();
    let on_sync = Arc::clone(&syncs);
    let options = StoreOptions {
        settles_later: true,
        ..StoreOptions::default()
    };
    let disk = WatchedDisk::new(move |_| on_sync.pass());
    let store = Store::open(Arc::new(disk), Path::new("/s"), options).unwrap();
    assert!(store.is_unsettled());

    while_hanging(&Arc::new(store), &syncs, |store| {
        store.make_durable().unwrap()
    });
}
