//! The messages of one stream, in a folder of segments.
//!
//! - `staging` takes messages and removals and gives them their places; nothing touches the disk there.
//! - `writing` makes what was staged durable: one write and one sync for all that gathered meanwhile; `staged_work` tells each caller what became of its own.
//! - `reading` and `removing` work on what is committed, `walking` reads on for whoever comes again, `slices` goes through many messages without holding others up, `planning` divides a range among readers, `pieces` says where it lies; `maintenance` seals, compacts and frees segments in the background.
//! - `forking` makes another store of what this one holds, and shares its sealed segments.
//! - `opening` finds out what there is, after whatever happened: `gathering` finds the files, `assembling` sees what is missing.
//!
//! A message is staged by `append`, and is there for readers when `commit` has returned; between the two nobody but its publisher knows of it.
//! Removals work the same way. A memory stream is the same store on a disk in memory.
//!
//! What is durable after which call: `commit` returns after the sync of every segment it wrote to, and after the sync of the folder where it began a
//! segment. A crash before that can leave any part of the batch; what of it is whole counts, the rest is cut. Invariant: what a reader was
//! shown once is not taken back by a crash.

pub(super) mod assembling;
mod copying;
mod forking;
mod gathering;
mod health;
mod maintenance;
mod opening;
pub mod pieces;
pub mod planning;
pub mod reading;
mod removing;
pub mod slices;
pub mod staged_work;
mod staging;
pub(super) mod verifying;
pub mod walking;
pub(super) mod writing;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard, RwLock};

use crate::storage::disk::file_system::FileSystem;
use crate::storage::disk::sync_times::SyncTimes;
use crate::storage::finding::Finding;
use crate::storage::format::encryption::{MasterKey, StreamKey};
use crate::storage::format::removal::Removal;
use crate::storage::index::messages::MessageIndex;
use crate::storage::message::{
    Appended, CommitProgress, Committed, Counting, Counts, Limits, NewMessage, StoreError,
    StoreResult, StoreState,
};
use health::Health;
use staging::AppendStaging;
use writing::Writer;

/// What a segment may hold before the next one begins.
pub const SEGMENT_BYTES_DEFAULT: u64 = 64 * 1024 * 1024;

#[derive(Clone)]
pub struct StoreOptions {
    pub segment_bytes: u64,
    pub limits: Limits,
    /// The sequence of the first message; counts when the store is new.
    pub first_sequence: u64,
    /// Whether sequences come from elsewhere, each always for the same message: then one that a crash took may be given again.
    pub follows: bool,
    /// Whether a new store is made durable only when something is committed, or `make_durable` is called. Its owner must know by then, and not before
    /// (`when_settled`), that what is in the folder counts.
    pub settles_later: bool,
    /// Whether a commit waits until the disk has everything. Without it, `sync` does, when it is called.
    pub sync_commits: bool,
    /// Whether each message is linked to the one before it.
    pub chained: bool,
    /// Whether sealed segments are compressed.
    pub compressed: bool,
    /// The server's key, if messages are to be encrypted.
    pub key: Option<MasterKey>,
    /// The server's key before that one: what it opens is put under the new one.
    pub previous_key: Option<MasterKey>,
    /// Whether the space of coming messages is filled with zeros ahead: overwriting is faster than growing on a disk, and useless in memory.
    pub fill_ahead: bool,
    pub counting: Counting,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            segment_bytes: SEGMENT_BYTES_DEFAULT,
            limits: Limits::default(),
            first_sequence: 1,
            follows: false,
            settles_later: false,
            sync_commits: true,
            chained: false,
            compressed: false,
            key: None,
            previous_key: None,
            fill_ahead: true,
            counting: Counting::default(),
        }
    }
}

/// Tells the owner of a store that what is in its folder counts from now on.
type OnSettled = Box<dyn Fn() -> std::io::Result<()> + Send>;

pub struct Store {
    file_system: Arc<dyn FileSystem>,
    folder: PathBuf,
    options: StoreOptions,
    /// The identity of the stream.
    stream: u64,
    origin_sequence: u64,
    stream_key: Option<StreamKey>,
    /// Taken for each message, never while something is written.
    staging: Mutex<AppendStaging>,
    /// Taken by one commit at a time, while it writes.
    writer: Mutex<Writer>,
    index: RwLock<MessageIndex>,
    limits: Mutex<Limits>,
    health: Health,
    /// Taken by whatever changes segments that no commit writes to.
    maintenance: Mutex<()>,
    /// Files whose messages are elsewhere or removed, and that could not be removed yet.
    leftovers: Mutex<Vec<PathBuf>>,
    /// What is removed, durably, and has still to be overwritten. Whoever takes it holds `maintenance` until it is done.
    erasures: Mutex<Vec<Removal>>,
    /// What the store began with is not durable yet. Changes while `writer` is held.
    is_unsettled: AtomicBool,
    /// Some segments may be those of another store as well, and must not be counted twice.
    has_shared: AtomicBool,
    on_settled: Mutex<OnSettled>,
    progress: Mutex<CommitProgress>,
    sync_times: SyncTimes,
}

impl Store {
    /// Stages a message behind all others.
    pub fn append(&self, message: &NewMessage<'_>) -> StoreResult<Appended> {
        self.health.check_writable()?;
        self.staging.lock().append(message, &self.options)
    }

    /// Stages messages with consecutive sequences that are there together or not at all, whatever happens before they are committed.
    pub fn append_all(&self, messages: &[NewMessage<'_>]) -> StoreResult<Vec<Appended>> {
        self.health.check_writable()?;
        self.staging.lock().append_all(messages, &self.options)
    }

    /// Stages a message that follows others: nothing, if something was refused since `resets` was asked for, because then they may be missing. With a
    /// sequence it gets that one, and those between are passed over; nothing is staged if it is behind.
    pub fn append_following(
        &self,
        message: &NewMessage<'_>,
        sequence: Option<u64>,
        resets: u64,
    ) -> StoreResult<Option<Appended>> {
        self.health.check_writable()?;
        let mut staging = self.staging.lock();
        let next_sequence = staging.next_sequence;
        let sequence = sequence.unwrap_or(next_sequence);
        if staging.resets != resets || sequence < next_sequence {
            return Ok(None);
        }
        let appended = staging.append_at(message, sequence, &self.options)?;
        Ok(Some(appended))
    }

    /// How often everything staged was refused and forgotten.
    pub fn resets(&self) -> u64 {
        self.staging.lock().resets
    }

    /// Makes everything durable and visible that is staged now. After an error nothing of it is, and it is forgotten.
    ///
    /// Success says nothing about what the caller staged earlier: a commit of another thread may have failed meanwhile, and taken that with it.
    /// Who must know commits through what was staged (`commit_through`), or hears of it by `take_progress`, as publishers do.
    pub fn commit(&self) -> StoreResult<Committed> {
        self.commit_staged(false)
    }

    fn commit_staged(&self, lazy: bool) -> StoreResult<Committed> {
        let committed = self.commit_batch(self.writer.lock(), lazy)?;
        if !self.erasures.lock().is_empty() {
            self.carry_out_erasures()?;
        }
        Ok(committed)
    }

    /// Overwrites everything whose removal is durable; when this returns, nobody else is still at it.
    fn carry_out_erasures(&self) -> StoreResult<()> {
        self.erase_removed().map_err(|error| self.postpone(error))
    }

    /// Commits what is staged; what must be overwritten, now that its removal is durable, is in `erasures`.
    fn commit_batch(
        &self,
        mut writer: MutexGuard<'_, Writer>,
        lazy: bool,
    ) -> StoreResult<Committed> {
        let read_only = self.health.read_only();
        let mut staging = self.staging.lock();
        let batch = staging.take_batch(writer.committed, lazy);
        if self.options.sync_commits {
            staging.begin_round();
        }
        drop(staging);
        let Some(batch) = batch else {
            if read_only.is_none() {
                let settled = writer
                    .finish_undoing(self)
                    .and_then(|()| writer.write_beginning(self));
                settled.map_err(|error| self.postpone(error))?;
            }
            return Ok(writer.committed);
        };
        if let Some(cause) = read_only {
            // Staged before the write that failed was known to have failed.
            let error = StoreError::ReadOnly(cause);
            let mut staging = self.staging.lock();
            self.note_refused(writer.committed.ticket, staging.last_ticket(), &error);
            staging.discard(writer.committed.ticket, &error);
            return Err(error);
        }
        let before = writer.active.clone();
        let written = writer
            .finish_undoing(self)
            .and_then(|()| writer.write(self, &batch));
        if let Err(error) = written {
            return Err(self.refuse(&mut writer, &batch, before, error));
        }
        writer.committed = Committed {
            ticket: batch.last_ticket,
            last_sequence: batch.last_sequence,
        };
        self.progress.lock().committed = writer.committed;
        writer.link = batch.last_link;
        let removals = batch.removals.iter().map(|(_, removal)| *removal);
        self.erasures
            .lock()
            .extend(removals.filter(|removal| removal.erase));
        let lazy = self.apply(&batch, writer.opened.drain(..));
        let mut staging = self.staging.lock();
        staging.give_back(batch);
        staging.remove_lazily(lazy);
        drop(staging);
        let committed = writer.committed;
        drop(writer);
        self.health.recover();
        Ok(committed)
    }

    /// Has the owner told when what the store began with is durable, before anything is acknowledged.
    pub fn when_settled(&self, told: impl Fn() -> std::io::Result<()> + Send + 'static) -> &Self {
        *self.on_settled.lock() = Box::new(told);
        self
    }

    pub fn is_unsettled(&self) -> bool {
        self.is_unsettled.load(Ordering::Acquire)
    }

    /// Makes durable what the store began with, and has its owner told.
    pub fn make_durable(&self) -> StoreResult<()> {
        if !self.is_unsettled() {
            return Ok(());
        }
        self.health.check_removable()?;
        let mut writer = self.writer.lock();
        writer
            .write_beginning(self)
            .map_err(|error| self.postpone(error))
    }

    /// Has the owner of a store that is not settled write down that there is none; then nothing will be settled any more.
    pub fn abandon(&self, define: impl FnOnce() -> std::io::Result<()>) -> std::io::Result<()> {
        if !self.is_unsettled() {
            return define();
        }
        let _writer = self.writer.lock();
        define()?;
        self.is_unsettled.store(false, Ordering::Release);
        Ok(())
    }

    /// Why nothing can be stored at the moment, if that is so.
    pub fn hindrance(&self) -> Option<StoreError> {
        self.health.hindrance()
    }

    /// Messages that wait for the next commit.
    pub fn staged_messages(&self) -> usize {
        self.staging.lock().staged_messages()
    }

    /// What became of everything staged since the last time somebody asked.
    pub fn take_progress(&self) -> CommitProgress {
        let mut progress = self.progress.lock();
        CommitProgress {
            committed: progress.committed,
            refused: std::mem::take(&mut progress.refused),
            told_through: progress.told_through,
        }
    }

    /// The sequence that was given last, committed or not.
    pub fn last_given_sequence(&self) -> u64 {
        self.staging.lock().next_sequence - 1
    }

    /// Whether a commit may have to wait for a disk.
    pub fn has_disk(&self) -> bool {
        self.file_system.has_disk()
    }

    pub fn counting(&self) -> Counting {
        self.options.counting
    }

    /// How long commits have waited for the disk.
    pub fn sync_times(&self) -> &SyncTimes {
        &self.sync_times
    }

    /// What is committed, in numbers.
    pub fn counts(&self) -> Counts {
        let index = self.index.read();
        Counts {
            messages: index.messages,
            bytes: index.bytes,
            first_sequence: index.first_sequence,
            last_sequence: index.last_sequence,
        }
    }

    /// Makes durable what was committed without waiting for the disk.
    pub fn sync(&self) -> StoreResult<()> {
        let mut writer = self.writer.lock();
        let synced = writer.finish_undoing(self).and_then(|()| writer.sync());
        synced.map_err(|error| self.postpone(error))?;
        self.staging.lock().begin_round();
        Ok(())
    }

    pub fn state(&self) -> StoreState {
        let mut state = {
            let index = self.index.read();
            StoreState {
                messages: index.messages,
                bytes: index.bytes,
                first_sequence: index.first_sequence,
                first_time_ns: 0,
                last_sequence: index.last_sequence,
                last_time_ns: index.last_time_ns,
                subjects: index.subjects.len() as u64,
                lost: index.lost.clone(),
            }
        };
        if state.messages > 0 {
            let first_time_ns = self.time_of(state.first_sequence);
            state.first_time_ns = first_time_ns.ok().flatten().unwrap_or(0);
        }
        state
    }

    /// What has been found since the last time somebody asked.
    pub fn take_findings(&self) -> Vec<Finding> {
        self.health.take_findings()
    }

    /// Writes down where the store ends, so that a later opening can tell whether anything is missing.
    pub fn close(&self) -> StoreResult<()> {
        self.commit_staged(true)?;
        let mut writer = self.writer.lock();
        writer.close(self).map_err(|error| self.postpone(error))
    }

    /// Writes nothing any more, whatever is asked for. When this returns, nothing is being written.
    pub fn retire(&self) {
        drop(
            self.health
                .become_read_only(std::io::Error::other("the stream was deleted")),
        );
        drop(self.writer.lock());
        drop(self.maintenance.lock());
    }
}

#[cfg(test)]
#[path = "clock_tests.rs"]
mod tests;
