//! The messages of one stream, in a folder of segments.
//!
//! A store is its parts, each with an invariant of its own, and the order in which they are used:
//!
//! - `folder` is where it lies and what never changes, `options` what it is opened with.
//! - `committed` is what readers see, `reading` what they read of the files. `walking` reads on for a caller that comes
//!   back for more, `slices` goes through many messages without holding others up, `planning` divides a range among
//!   readers, `pieces` says where it lies. `applying` is what a batch changes in it.
//! - `staging` takes messages and removals and gives them their places; nothing touches the disk there. `staged_work` tells each caller what became of its own.
//! - `writing` makes what was staged durable: one write and one sync for all that gathered meanwhile; `spare` is the file of the next segment, `settling` whether what the store began with is durable, `progress` what became of everything staged, `health` whether anything is taken.
//! - `maintenance` seals, compacts and frees segments in the background, by `rewriting` them; `forking` makes another store of what this one holds, and shares its sealed segments; `verifying` follows the chain.
//! - `opening` finds out what there is, after whatever happened: `gathering` finds the files, `assembling` sees what is missing.
//!
//! `Store` coordinates them, here and in `removing`. A message is staged by `append`, and is there for readers when `commit` has returned; between the two nobody but its publisher knows of it.
//! Removals work the same way. A memory stream is the same store on a disk in memory.
//!
//! What is durable after which call: `commit` returns after the sync of every segment it wrote to, and after the sync of the folder where it began a
//! segment. A crash before that can leave any part of the batch; what of it is whole counts, the rest is cut. Invariant: what a reader was
//! shown once is not taken back by a crash.

mod applying;
pub(super) mod assembling;
pub mod committed;
mod copying;
mod folder;
mod forking;
mod gathering;
mod health;
mod maintenance;
mod opening;
mod options;
pub mod pieces;
pub mod planning;
mod progress;
pub mod reading;
mod removing;
mod rewriting;
mod settling;
pub mod slices;
mod spare;
pub mod staged_work;
mod staging;
pub(super) mod verifying;
pub mod walking;
pub(super) mod writing;

use std::path::Path;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use self::committed::CommittedMessages;
use self::folder::StoreFolder;
use self::health::Health;
use self::maintenance::{MaintainedStore, Maintenance};
pub use self::options::{StoreOptions, SEGMENT_BYTES_DEFAULT};
use self::progress::Progress;
use self::reading::read_error;
use self::settling::Settling;
use self::spare::Spare;
use self::staged_work::StagedWork;
use self::staging::{AppendStaging, StagedBatch};
use self::writing::{Active, Writer};
use crate::storage::disk::failure;
use crate::storage::disk::file_system::FileSystem;
use crate::storage::disk::sync_times::SyncTimes;
use crate::storage::finding::Finding;
use crate::storage::format::chain::Verification;
use crate::storage::message::{
    Appended, CommitProgress, Committed, Counting, NewMessage, StoreError, StoreResult,
};

/// Locks are taken in the order of the fields.
pub struct Store {
    folder: StoreFolder,
    /// Holds segments as they are.
    maintenance: Maintenance,
    /// Taken by one commit at a time, while it writes.
    writer: Mutex<Writer>,
    messages: CommittedMessages,
    /// Taken for each message, never while something is written.
    staging: Mutex<AppendStaging>,
    health: Health,
    settling: Settling,
    progress: Progress,
    sync_times: SyncTimes,
}

impl Store {
    /// Opens the store in a folder, or makes one there.
    pub fn open(
        file_system: Arc<dyn FileSystem>,
        folder: &Path,
        options: StoreOptions,
    ) -> StoreResult<Self> {
        let opened = opening::open(&*file_system, folder, &options)?;
        let limits = options.limits;
        let store = Self {
            messages: CommittedMessages::new(opened.index, opened.findings, file_system.has_disk()),
            folder: StoreFolder {
                file_system,
                path: folder.to_owned(),
                options,
                stream: opened.anchor.anchor.stream,
                origin_sequence: opened.anchor.anchor.origin_sequence,
                stream_key: opened.stream_key,
            },
            maintenance: Maintenance::default(),
            progress: Progress::new(opened.writer.committed()),
            writer: Mutex::new(opened.writer),
            staging: Mutex::new(opened.staging),
            health: Health::new(),
            settling: Settling::new(opened.is_unsettled),
            sync_times: SyncTimes::default(),
        };
        store.enforce_limits(limits);
        Ok(store)
    }

    /// What is committed, for readers.
    pub fn messages(&self) -> &CommittedMessages {
        &self.messages
    }

    /// Stages a message after all others.
    pub fn append(&self, message: &NewMessage<'_>) -> StoreResult<Appended> {
        self.health.check_writable()?;
        self.staging.lock().append(message, &self.folder.options)
    }

    /// Stages messages with consecutive sequences that are there together or not at all, whatever happens before they are committed.
    pub fn append_all(&self, messages: &[NewMessage<'_>]) -> StoreResult<Vec<Appended>> {
        self.health.check_writable()?;
        let mut staging = self.staging.lock();
        staging.append_all(messages, &self.folder.options)
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
        staging.append_following(message, sequence, resets, &self.folder.options)
    }

    /// How often everything staged was refused and forgotten.
    pub fn resets(&self) -> u64 {
        self.staging.lock().resets()
    }

    /// Makes everything durable and visible that is staged now. After an error nothing of it is, and it is forgotten.
    ///
    /// Success says nothing about what the caller staged earlier: a commit of another thread may have failed meanwhile, and taken that with it.
    /// A caller that must know uses `commit_through` with what it staged, or reads `take_progress`, as publishers do.
    pub fn commit(&self) -> StoreResult<Committed> {
        self.commit_staged(false)
    }

    /// The same; with `lazy`, what nobody waits for is written too.
    fn commit_staged(&self, lazy: bool) -> StoreResult<Committed> {
        let committed = self.commit_batch(self.writer.lock(), lazy)?;
        if self.maintenance.has_erasures() {
            self.carry_out_erasures()?;
        }
        Ok(committed)
    }

    /// Makes durable and visible what one caller has staged, unless a commit of another thread has done so; what else is staged goes with it. The
    /// outcome is that of this work and of no other: an error says that nothing of it is stored, except that an erasure may be
    /// what failed, and then its removal holds.
    pub fn commit_through(&self, work: &StagedWork) -> StoreResult<Committed> {
        let writer = self.writer.lock();
        if let Some(error) = work.refusal() {
            return Err(error);
        }
        let mut committed = writer.committed();
        if work.is_within(committed) {
            drop(writer);
        } else {
            committed = self.commit_batch(writer, false)?;
        }
        if work.erases() {
            // The thread that committed it may not have done that yet.
            self.carry_out_erasures()?;
        }
        Ok(committed)
    }

    /// Overwrites everything whose removal is durable; when this returns, no other thread is still doing so.
    fn carry_out_erasures(&self) -> StoreResult<()> {
        self.maintenance
            .carry_out_erasures(self.maintained(), || self.settle())
    }

    /// Commits what is staged; what must be overwritten, now that its removal is durable, is noted for maintenance.
    fn commit_batch(
        &self,
        mut writer: MutexGuard<'_, Writer>,
        lazy: bool,
    ) -> StoreResult<Committed> {
        let read_only = self.health.read_only();
        let mut staging = self.staging.lock();
        let segment_bytes = self.folder.options.segment_bytes;
        let batch = staging.take_batch(writer.committed(), lazy, segment_bytes);
        if self.folder.options.sync_commits {
            staging.begin_round();
        }
        drop(staging);
        let Some(batch) = batch else {
            if read_only.is_none() {
                let prepared = writer.prepare(&self.folder, &self.settling);
                prepared.map_err(|error| self.health.postpone(error))?;
            }
            return Ok(writer.committed());
        };
        if let Some(cause) = read_only {
            // Staged before the write that failed was known to have failed.
            let error = StoreError::ReadOnly(cause);
            self.discard(&mut self.staging.lock(), writer.committed(), &error);
            return Err(error);
        }
        let before = writer.active();
        let written = writer
            .prepare(&self.folder, &self.settling)
            .and_then(|()| writer.write(&self.folder, &batch));
        match written {
            Ok(sync_time) => {
                if let Some(time) = sync_time {
                    self.sync_times.add(time);
                }
            }
            Err(error) => return Err(self.refuse(&mut writer, &batch, before, error)),
        }
        writer.note_committed(&batch);
        let committed = writer.committed();
        self.progress.note_committed(committed);
        let removals = batch.removals.iter().map(|(_, removal)| *removal);
        self.maintenance.add_erasures(removals);
        let counting = self.folder.options.counting;
        let lazy = self.messages.apply(&batch, writer.take_opened(), counting);
        let mut staging = self.staging.lock();
        staging.give_back(batch);
        staging.remove_lazily(lazy);
        drop(staging);
        drop(writer);
        self.health.recover();
        Ok(committed)
    }

    /// A batch could not be written: nothing of it remains, and nothing of what was staged after it.
    fn refuse(
        &self,
        writer: &mut Writer,
        batch: &StagedBatch,
        before: Active,
        error: std::io::Error,
    ) -> StoreError {
        let error = match failure::refusal(&error) {
            Some(refusal) => {
                writer.begin_undoing(&self.folder, batch, before);
                match writer.finish_undoing(&self.folder) {
                    Ok(()) => self.health.hinder(refusal),
                    Err(error) => match failure::refusal(&error) {
                        // The next commit tries again, and writes nothing before.
                        Some(_) => self.health.hinder(refusal),
                        None => self.health.become_read_only(error),
                    },
                }
            }
            None => self.health.become_read_only(error),
        };
        let mut staging = self.staging.lock();
        self.discard(&mut staging, writer.committed(), &error);
        staging.remove_lazily(batch.lazy_removals.clone());
        staging.reset(writer.committed_end());
        error
    }

    /// Reports to all who staged something after the last commit that it will not be stored.
    fn discard(&self, staging: &mut AppendStaging, committed: Committed, error: &StoreError) {
        let (after, through) = (committed.ticket, staging.last_ticket());
        self.progress.note_refused(after, through, error);
        staging.discard(after, error);
    }

    /// Calls `told` when what the store began with is durable, before anything is acknowledged.
    pub fn when_settled(&self, told: impl Fn() -> std::io::Result<()> + Send + 'static) -> &Self {
        self.settling.set_on_settled(told);
        self
    }

    pub fn is_unsettled(&self) -> bool {
        self.settling.is_unsettled()
    }

    /// Makes durable what the store began with, and notifies its owner.
    pub fn make_durable(&self) -> StoreResult<()> {
        if !self.is_unsettled() {
            return Ok(());
        }
        self.health.check_removable()?;
        let mut writer = self.writer.lock();
        writer
            .write_beginning(&self.folder, &self.settling)
            .map_err(|error| self.health.postpone(error))
    }

    /// Has the owner of a store that is not settled write down that there is none; then nothing will be settled any more.
    pub fn abandon(&self, define: impl FnOnce() -> std::io::Result<()>) -> std::io::Result<()> {
        if !self.is_unsettled() {
            return define();
        }
        let _writer = self.writer.lock();
        define()?;
        self.settling.abandon();
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

    /// What became of everything staged since the last call.
    pub fn take_progress(&self) -> CommitProgress {
        self.progress.drain()
    }

    /// The sequence that was given last, committed or not.
    pub fn last_given_sequence(&self) -> u64 {
        self.staging.lock().next_sequence() - 1
    }

    /// Whether a commit may have to wait for a disk.
    pub fn has_disk(&self) -> bool {
        self.folder.file_system.has_disk()
    }

    pub fn counting(&self) -> Counting {
        self.folder.options.counting
    }

    /// How long commits have waited for the disk.
    pub fn sync_times(&self) -> &SyncTimes {
        &self.sync_times
    }

    /// Makes durable what was committed without waiting for the disk.
    pub fn sync(&self) -> StoreResult<()> {
        let mut writer = self.writer.lock();
        let synced = writer
            .finish_undoing(&self.folder)
            .and_then(|()| writer.sync());
        synced.map_err(|error| self.health.postpone(error))?;
        self.staging.lock().begin_round();
        Ok(())
    }

    /// The findings since the last call.
    pub fn take_findings(&self) -> Vec<Finding> {
        self.messages.take_findings()
    }

    fn maintained(&self) -> MaintainedStore<'_> {
        MaintainedStore {
            folder: &self.folder,
            messages: &self.messages,
            health: &self.health,
        }
    }

    /// Does in the background what has become necessary; true if something was.
    pub fn maintain(&self) -> StoreResult<bool> {
        let postpone = |error| self.health.postpone(error);
        let freed = self.free_front()?;
        let held = self.maintenance.hold_segments();
        self.health.check_removable()?;
        {
            let mut writer = self.writer.lock();
            writer
                .prepare(&self.folder, &self.settling)
                .and_then(|()| writer.note_number(&self.folder))
                .map_err(postpone)?;
        }
        let leftovers = std::iter::empty();
        self.maintenance
            .remove_files(&held, &self.folder, leftovers)
            .map_err(postpone)?;
        let prepared = self.writer.lock().wants_spare(&self.folder.options);
        if prepared {
            let spare = Spare::fill(&self.folder).map_err(postpone)?;
            self.writer.lock().put_spare(spare);
        }
        // Every removal that shows in some segments is durable by itself before they are. Otherwise some would become so with the segments and others, for
        // which those made room, would not: and the limits would not ask for them again.
        let settle = || {
            self.commit_batch(self.writer.lock(), true)?;
            self.settle()
        };
        let store = self.maintained();
        let done = self
            .maintenance
            .seal_closed(&held, store, settle)
            .and_then(|sealed| Ok(sealed | self.maintenance.compact(&held, store, settle)?));
        // Overwriting needs the segments that are held here.
        drop(held);
        if self.maintenance.has_erasures() {
            self.carry_out_erasures()?;
        }
        Ok(freed || prepared || done?)
    }

    /// Has everything committed durable, also where commits do not wait for the disk: what it replaces may be destroyed then.
    fn settle(&self) -> StoreResult<()> {
        match self.folder.options.sync_commits {
            true => Ok(()),
            false => self.sync(),
        }
    }

    /// Gives back segments at the front that have no message any more.
    fn free_front(&self) -> StoreResult<bool> {
        let Some(emptied) = self.messages.emptied_front() else {
            return Ok(false);
        };
        // It must be known that they were removed before they are: a missing file would be taken for a loss. Of segments
        // that no sequence ever came into there is nothing to know.
        self.health.check_removable()?;
        if emptied.first <= emptied.last {
            let emptying = self.stage_range(emptied);
            self.commit_through(&emptying)?;
        }
        self.settle()?;
        let held = self.maintenance.hold_segments();
        // A store that is retired meanwhile has left its folder to another one, whose files have the same names.
        self.health.check_removable()?;
        let files = self.messages.free_front(emptied.last).into_iter();
        self.maintenance
            .remove_files(&held, &self.folder, files)
            .map_err(|error| self.health.postpone(error))?;
        self.health.recover();
        Ok(true)
    }

    /// Makes a store in another folder of the same file system that holds what this one holds up to `last_sequence`, and
    /// continues after it. When this returns, it is durable. A folder that has a store already is refused.
    pub fn fork(&self, folder: &Path, last_sequence: u64) -> StoreResult<()> {
        forking::check_last_sequence(last_sequence)?;
        loop {
            self.health.check_removable()?;
            self.commit_staged(true)?;
            let _held = self.maintenance.hold_segments();
            let pieces = {
                let _writer = self.writer.lock();
                // What was to be overwritten must not be shared before it is.
                let is_settled = !self.maintenance.has_erasures();
                is_settled.then(|| forking::pieces(&self.messages.index(), last_sequence))
            };
            if let Some(pieces) = pieces {
                return forking::fork(&self.folder, &self.messages, folder, &pieces);
            }
            std::thread::yield_now();
        }
    }

    /// Follows the chain of a chained stream through all segments, removed messages included.
    pub fn verify(&self) -> StoreResult<Verification> {
        let _held = self.maintenance.hold_segments();
        let (files, last_sequence) = self.messages.files();
        let files = files.iter().map(|(file, end)| (&**file, *end));
        let (stream, origin) = (self.folder.stream, self.folder.origin_sequence);
        verifying::verify(files, stream, origin, last_sequence).map_err(read_error)
    }

    /// Frees the space that was prepared for messages to come, on a full disk: what must be written down before messages are removed fits in there.
    pub fn give_back_space(&self) -> StoreResult<()> {
        self.health.check_removable()?;
        let mut writer = self.writer.lock();
        writer
            .prepare(&self.folder, &self.settling)
            .and_then(|()| writer.give_back_space(&self.folder))
            .map_err(|error| self.health.postpone(error))
    }

    /// Writes down where the store ends, so that a later opening notices if anything is missing.
    pub fn close(&self) -> StoreResult<()> {
        // After a failed write nobody knows what is on disk. A store that is not closed in good order is checked when it is opened.
        self.health.check_removable()?;
        self.commit_staged(true)?;
        let mut writer = self.writer.lock();
        writer
            .close(&self.folder, &self.settling)
            .map_err(|error| self.health.postpone(error))
    }

    /// Writes nothing any more, whatever is asked for. When this returns, nothing is being written.
    pub fn retire(&self) {
        drop(
            self.health
                .become_read_only(std::io::Error::other("the stream was deleted")),
        );
        drop(self.writer.lock());
        drop(self.maintenance.hold_segments());
    }
}

#[cfg(test)]
#[path = "clock_tests.rs"]
mod tests;
