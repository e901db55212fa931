//! The messages of one stream, in a folder of segments.
//!
//! - `staging` takes messages and removals and gives them their places; nothing touches the disk there.
//! - `writing` makes what was staged durable: one write and one sync for all that gathered meanwhile.
//! - `reading` and `removing` work on what is committed, `walking` reads on for whoever comes again, `planning` divides a range among readers, `pieces` says where it lies; `upkeep` seals, compacts and frees segments behind everybody's back.
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
mod opening;
pub mod pieces;
pub mod planning;
pub mod reading;
mod removing;
mod staging;
mod upkeep;
pub(super) mod verifying;
pub mod walking;
pub(super) mod writing;

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use super::encryption::{MasterKey, StreamKey};
use super::file_system::FileSystem;
use super::finding::Finding;
use super::index::MessageIndex;
use super::message::{
    Appended, Committed, Counting, Counts, Limits, NewMessage, Progress, StoreError, StoreResult,
    StoreState,
};
use super::removal::Removal;
use super::sync_times::SyncTimes;
use staging::Staging;
use writing::Writer;

/// What a segment may hold before the next one begins.
pub const SEGMENT_BYTES_DEFAULT: u64 = 64 * 1024 * 1024;

/// Findings kept for whoever asks; the oldest go first.
const FINDINGS_MAX: usize = 1000;

#[derive(Clone)]
pub struct StoreOptions {
    pub segment_bytes: u64,
    pub limits: Limits,
    /// The sequence of the first message; counts when the store is new.
    pub first_sequence: u64,
    /// Whether sequences come from elsewhere, each always for the same message: then one that a crash took may be given again.
    pub follows: bool,
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

/// Whether the store takes messages.
enum Status {
    Writable,
    /// The disk was full; whether it still is, is tried now and then.
    Full {
        tried: std::time::Instant,
    },
    ReadOnly(Arc<std::io::Error>),
}

pub struct Store {
    file_system: Arc<dyn FileSystem>,
    folder: PathBuf,
    options: StoreOptions,
    /// The identity of the stream.
    stream: u64,
    origin_sequence: u64,
    stream_key: Option<StreamKey>,
    /// Taken for each message, never while something is written.
    staging: Mutex<Staging>,
    /// Taken by one commit at a time, while it writes.
    writer: Mutex<Writer>,
    index: RwLock<MessageIndex>,
    limits: Mutex<Limits>,
    status: Mutex<Status>,
    /// Taken by whatever changes segments that no commit writes to.
    upkeep: Mutex<()>,
    /// Commits that have still to overwrite what they removed.
    erasing: AtomicUsize,
    findings: Mutex<Vec<Finding>>,
    progress: Mutex<Progress>,
    sync_times: SyncTimes,
}

impl Store {
    /// Stages a message behind all others.
    pub fn append(&self, message: &NewMessage<'_>) -> StoreResult<Appended> {
        self.check_writable()?;
        self.staging.lock().append(message, &self.options)
    }

    /// Stages messages with consecutive sequences that are there together or not at all, whatever happens before they are committed.
    pub fn append_all(&self, messages: &[NewMessage<'_>]) -> StoreResult<Vec<Appended>> {
        self.check_writable()?;
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
        self.check_writable()?;
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

    /// Makes everything staged so far durable and visible. After an error nothing of it is, and it is forgotten.
    pub fn commit(&self) -> StoreResult<Committed> {
        self.commit_staged(false)
    }

    fn commit_staged(&self, lazy: bool) -> StoreResult<Committed> {
        let (committed, erasures) = self.commit_batch(lazy)?;
        self.carry_out(&erasures)?;
        Ok(committed)
    }

    /// Overwrites what a batch has removed for good.
    fn carry_out(&self, erasures: &[Removal]) -> StoreResult<()> {
        if erasures.is_empty() {
            return Ok(());
        }
        self.erase(erasures)
            .map_err(|error| self.become_read_only(error))
    }

    /// Commits, and says what must be overwritten now that its removal is durable.
    fn commit_batch(&self, lazy: bool) -> StoreResult<(Committed, Vec<Removal>)> {
        let mut writer = self.writer.lock();
        let read_only = match &*self.status.lock() {
            Status::ReadOnly(cause) => Some(Arc::clone(cause)),
            Status::Writable | Status::Full { .. } => None,
        };
        let mut staging = self.staging.lock();
        let batch = staging.take(writer.committed, lazy);
        if self.options.sync_commits {
            staging.begin_round();
        }
        drop(staging);
        let Some(batch) = batch else {
            return Ok((writer.committed, Vec::new()));
        };
        if let Some(cause) = read_only {
            // Staged before the write that failed was known to have failed.
            let error = StoreError::ReadOnly(cause);
            self.note_refused(writer.committed.ticket, batch.last_ticket, &error);
            return Err(error);
        }
        let before = writer.active.clone();
        if let Err(error) = writer.write(self, &batch) {
            return Err(self.refuse(&mut writer, &batch, before, error));
        }
        writer.committed = Committed {
            ticket: batch.last_ticket,
            last_sequence: batch.last_sequence,
        };
        self.progress.lock().committed = writer.committed;
        writer.link = batch.last_link;
        let erasures: Vec<Removal> = batch
            .removals
            .iter()
            .map(|(_, removal)| *removal)
            .filter(|removal| removal.erase)
            .collect();
        if !erasures.is_empty() {
            self.erasing.fetch_add(1, Ordering::AcqRel);
        }
        let lazy = self.apply(&batch, writer.opened.drain(..));
        let mut staging = self.staging.lock();
        staging.give_back(batch);
        staging.remove_lazily(lazy);
        drop(staging);
        let committed = writer.committed;
        drop(writer);
        let mut status = self.status.lock();
        if matches!(*status, Status::Full { .. }) {
            *status = Status::Writable;
        }
        drop(status);
        Ok((committed, erasures))
    }

    /// Messages that wait for the next commit.
    pub fn staged_messages(&self) -> usize {
        self.staging.lock().staged_messages()
    }

    /// What became of everything staged since the last time somebody asked.
    pub fn take_progress(&self) -> Progress {
        let mut progress = self.progress.lock();
        Progress {
            committed: progress.committed,
            refused: std::mem::take(&mut progress.refused),
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
        writer
            .sync()
            .map_err(|error| self.become_read_only(error))?;
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
        std::mem::take(&mut self.findings.lock())
    }

    fn found(&self, finding: Finding) {
        let mut findings = self.findings.lock();
        if findings.len() == FINDINGS_MAX {
            findings.remove(0);
        }
        findings.push(finding);
    }

    /// Writes down where the store ends, so that a later opening can tell whether anything is missing.
    pub fn close(&self) -> StoreResult<()> {
        self.commit_staged(true)?;
        let mut writer = self.writer.lock();
        writer
            .close(self)
            .map_err(|error| self.become_read_only(error))
    }

    /// Writes nothing any more, whatever is asked for. When this returns, nothing is being written.
    pub fn retire(&self) {
        self.become_read_only(std::io::Error::other("the stream was deleted"));
        drop(self.writer.lock());
        drop(self.upkeep.lock());
    }

    fn become_read_only(&self, error: std::io::Error) -> StoreError {
        let cause = Arc::new(error);
        *self.status.lock() = Status::ReadOnly(Arc::clone(&cause));
        StoreError::ReadOnly(cause)
    }
}

#[cfg(test)]
#[path = "clock_tests.rs"]
mod tests;
