//! A disk in memory that does what a real one may do at its worst: it forgets, tears, fills up and fails.
//!
//! Writes go into a cache and become durable with `sync`; names become durable with `sync_folder`. A power cut (`after_power_cut`) keeps
//! everything durable and any chosen part of the rest, torn at sector boundaries. Every call that changes something is counted, so that a
//! test can cut the power, or let a call fail, at each of them in turn.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::file_system::{File, FileSystem, OpenMode};
use crate::common::random::Random;

/// What a disk writes as a whole, or not at all.
pub const SECTOR_BYTES: usize = 512;

/// Which part of what was not synced survives a power cut.
#[derive(Debug, Clone, Copy)]
pub enum Survival {
    Nothing,
    Everything,
    /// Each sector of each write, and each change of a name, by the toss of a coin. A file may have grown without what made it grow.
    Random {
        seed: u64,
    },
    /// Everything but the write (or change of a name) of this number.
    AllBut(usize),
    /// The writes up to this number, and the first `bytes` bytes of the next one, torn at a sector.
    Torn {
        whole: usize,
        bytes: usize,
    },
}

/// A fault that calls meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// No call that changes anything succeeds any more: the power is gone.
    PowerCut,
    NoSpace,
    /// The process has no descriptor left.
    NoDescriptors,
    Broken,
}

/// When a fault strikes: at the changing call (or the read) of this number, once or from then on.
#[derive(Debug, Clone, Copy)]
pub struct FaultPlan {
    pub at_call: u64,
    pub fault: Fault,
    pub lasting: bool,
}

impl FaultPlan {
    /// What the call of this number meets.
    fn meet(&self, call: u64) -> io::Result<()> {
        let strikes = call == self.at_call || (self.lasting && call > self.at_call);
        match self.fault {
            Fault::PowerCut if call >= self.at_call => Err(broken()),
            Fault::NoSpace if strikes => Err(io::Error::from_raw_os_error(libc::ENOSPC)),
            Fault::NoDescriptors if strikes => Err(io::Error::from_raw_os_error(libc::EMFILE)),
            Fault::Broken if strikes => Err(broken()),
            _ => Ok(()),
        }
    }
}

#[derive(Clone, Default)]
pub struct SimulatedDisk {
    state: Arc<Mutex<SimulatedState>>,
}

#[derive(Default)]
struct SimulatedState {
    names: BTreeMap<PathBuf, u64>,
    durable_names: BTreeMap<PathBuf, u64>,
    folders: BTreeSet<PathBuf>,
    contents: BTreeMap<u64, Content>,
    /// Writes and changes of names that are not durable yet, in order.
    pending: Vec<UnsyncedChange>,
    next_content: u64,
    calls: u64,
    plan: Option<FaultPlan>,
    reads: u64,
    read_plan: Option<FaultPlan>,
    /// Bytes all files together may have.
    capacity_bytes: Option<u64>,
    /// Places that cannot be read any more: content and bytes.
    bad: Vec<(u64, Range<usize>)>,
}

#[derive(Default, Clone)]
struct Content {
    cached: Vec<u8>,
    durable: Vec<u8>,
}

#[derive(Clone)]
enum UnsyncedChange {
    Write {
        content: u64,
        offset: usize,
        bytes: Vec<u8>,
    },
    Length {
        content: u64,
        length: usize,
    },
    Name {
        path: PathBuf,
        content: Option<u64>,
    },
}

impl SimulatedDisk {
    /// Lets a fault strike from now on, counting calls from the beginning of the disk.
    pub fn plan(&self, plan: Option<FaultPlan>) {
        self.state.lock().plan = plan;
    }

    /// Lets reading fail, counting reads from the beginning of the disk.
    pub fn plan_reads(&self, plan: Option<FaultPlan>) {
        self.state.lock().read_plan = plan;
    }

    /// Reads so far.
    pub fn reads(&self) -> u64 {
        self.state.lock().reads
    }

    pub fn set_capacity(&self, capacity_bytes: Option<u64>) {
        self.state.lock().capacity_bytes = capacity_bytes;
    }

    /// Calls so far that changed, or tried to change, something.
    pub fn calls(&self) -> u64 {
        self.state.lock().calls
    }

    /// Writes and changes of names that a power cut could take.
    pub fn pending_count(&self) -> usize {
        self.state.lock().pending.len()
    }

    /// What is pending, in order: offset and length of a write, nothing for anything else.
    pub fn pending_writes(&self) -> Vec<Option<(usize, usize)>> {
        let state = self.state.lock();
        let extent = |pending: &UnsyncedChange| match pending {
            UnsyncedChange::Write { offset, bytes, .. } => Some((*offset, bytes.len())),
            UnsyncedChange::Length { .. } | UnsyncedChange::Name { .. } => None,
        };
        state.pending.iter().map(extent).collect()
    }

    /// The disk as it is found after a power cut.
    pub fn after_power_cut(&self, survival: Survival) -> Self {
        let state = self.state.lock();
        let mut names = state.durable_names.clone();
        let mut contents: BTreeMap<u64, Vec<u8>> = state
            .contents
            .iter()
            .map(|(id, content)| (*id, content.durable.clone()))
            .collect();
        let mut random = Random::seeded(match survival {
            Survival::Random { seed } => seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x55,
            _ => 1,
        });
        for (number, pending) in state.pending.iter().enumerate() {
            let whole = match survival {
                Survival::Nothing => false,
                Survival::Everything | Survival::Random { .. } => true,
                Survival::AllBut(lost) => number != lost,
                Survival::Torn { whole, .. } => number < whole,
            };
            let toss = |random: &mut Random| match survival {
                Survival::Random { .. } => random.below(2) == 0,
                _ => whole,
            };
            match pending {
                UnsyncedChange::Name { path, content } => {
                    if toss(&mut random) {
                        match content {
                            Some(content) => names.insert(path.clone(), *content),
                            None => names.remove(path),
                        };
                    }
                }
                UnsyncedChange::Length { content, length } => {
                    if toss(&mut random) {
                        contents.entry(*content).or_default().resize(*length, 0);
                    }
                }
                UnsyncedChange::Write {
                    content,
                    offset,
                    bytes,
                } => {
                    let kept = match survival {
                        Survival::Torn { whole, bytes: torn } if number == whole => {
                            torn.min(bytes.len())
                        }
                        _ => bytes.len(),
                    };
                    let torn_here =
                        matches!(survival, Survival::Torn { whole, .. } if number == whole);
                    for (start, sector) in sectors(*offset, &bytes[..kept]) {
                        let content = contents.entry(*content).or_default();
                        if torn_here || toss(&mut random) {
                            put(content, start, sector);
                        } else if toss(&mut random) && content.len() < start + sector.len() {
                            content.resize(start + sector.len(), 0);
                        }
                    }
                }
            }
        }
        Self::from_durable(names, state.folders.clone(), contents, state.next_content)
    }

    fn from_durable(
        names: BTreeMap<PathBuf, u64>,
        folders: BTreeSet<PathBuf>,
        contents: BTreeMap<u64, Vec<u8>>,
        next_content: u64,
    ) -> Self {
        let contents = contents
            .into_iter()
            .filter(|(id, _)| names.values().any(|named| named == id))
            .map(|(id, bytes)| {
                let content = Content {
                    cached: bytes.clone(),
                    durable: bytes,
                };
                (id, content)
            })
            .collect();
        Self {
            state: Arc::new(Mutex::new(SimulatedState {
                durable_names: names.clone(),
                names,
                folders,
                contents,
                next_content,
                ..SimulatedState::default()
            })),
        }
    }

    /// The files there are, with their bytes.
    pub fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let state = self.state.lock();
        state
            .names
            .iter()
            .map(|(path, id)| (path.clone(), state.contents[id].cached.clone()))
            .collect()
    }

    /// Changes a file in the background, durably.
    pub fn tamper(&self, path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.state.lock();
        let id = state.names[path];
        let content = state.contents.get_mut(&id).expect("a name has a content");
        change(&mut content.cached);
        content.durable = content.cached.clone();
    }

    /// Lets bytes of a file become unreadable, as a bad sector is; writing over them does not help.
    pub fn spoil(&self, path: &Path, bytes: Range<usize>) {
        let mut state = self.state.lock();
        let id = state.names[path];
        state.bad.push((id, bytes));
    }

    /// Takes a file away in the background.
    pub fn lose(&self, path: &Path) {
        let mut state = self.state.lock();
        state.names.remove(path);
        state.durable_names.remove(path);
    }

    /// A copy that shares nothing, and has the same pending; no fault is planned for it.
    pub fn fork(&self) -> Self {
        let state = self.state.lock();
        Self {
            state: Arc::new(Mutex::new(SimulatedState {
                names: state.names.clone(),
                durable_names: state.durable_names.clone(),
                folders: state.folders.clone(),
                contents: state.contents.clone(),
                pending: state.pending.clone(),
                next_content: state.next_content,
                ..SimulatedState::default()
            })),
        }
    }

    /// A copy that shares nothing, with everything durable.
    pub fn copy(&self) -> Self {
        let state = self.state.lock();
        let contents = state
            .contents
            .iter()
            .map(|(id, content)| (*id, content.cached.clone()))
            .collect();
        Self::from_durable(
            state.names.clone(),
            state.folders.clone(),
            contents,
            state.next_content,
        )
    }
}

/// The parts of a write by the sectors they fall into.
fn sectors(offset: usize, bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == bytes.len() {
            return None;
        }
        let start = offset + done;
        let room = SECTOR_BYTES - start % SECTOR_BYTES;
        let count = room.min(bytes.len() - done);
        let part = &bytes[done..done + count];
        done += count;
        Some((start, part))
    })
}

fn put(content: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    if content.len() < offset + bytes.len() {
        content.resize(offset + bytes.len(), 0);
    }
    content[offset..offset + bytes.len()].copy_from_slice(bytes);
}

fn broken() -> io::Error {
    io::Error::from_raw_os_error(libc::EIO)
}

impl SimulatedState {
    /// Counts a changing call and lets it fail if its time has come.
    fn change(&mut self) -> io::Result<()> {
        self.calls += 1;
        self.plan.map_or(Ok(()), |plan| plan.meet(self.calls - 1))
    }

    /// Counts a read and lets it fail if its time has come.
    fn read(&mut self) -> io::Result<()> {
        self.reads += 1;
        self.read_plan
            .map_or(Ok(()), |plan| plan.meet(self.reads - 1))
    }

    fn name(&mut self, path: &Path, content: Option<u64>) {
        match content {
            Some(content) => self.names.insert(path.to_owned(), content),
            None => self.names.remove(path),
        };
        self.pending.push(UnsyncedChange::Name {
            path: path.to_owned(),
            content,
        });
    }

    fn find(&self, path: &Path) -> io::Result<u64> {
        self.names
            .get(path)
            .copied()
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn check_room(&self, more: usize) -> io::Result<()> {
        if more == 0 {
            return Ok(());
        }
        let used: usize = self
            .names
            .values()
            .map(|id| self.contents[id].cached.len())
            .sum();
        match self.capacity_bytes {
            Some(capacity) if (used + more) as u64 > capacity => {
                Err(io::Error::from_raw_os_error(libc::ENOSPC))
            }
            _ => Ok(()),
        }
    }
}

impl FileSystem for SimulatedDisk {
    fn open(&self, path: &Path, access: OpenMode) -> io::Result<Arc<dyn File>> {
        let mut state = self.state.lock();
        let content = match access {
            OpenMode::Read | OpenMode::Write => state.find(path)?,
            OpenMode::Create => {
                state.change()?;
                if state.names.contains_key(path) {
                    return Err(io::ErrorKind::AlreadyExists.into());
                }
                let content = state.next_content;
                state.next_content += 1;
                state.contents.insert(content, Content::default());
                state.name(path, Some(content));
                content
            }
        };
        Ok(Arc::new(SimulatedFile {
            state: Arc::clone(&self.state),
            content,
        }))
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<String>> {
        let state = self.state.lock();
        if !state.folders.contains(folder) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let all = state.names.keys().chain(&state.folders);
        let mut names: Vec<String> = all
            .filter(|path| path.parent() == Some(folder))
            .filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()))
            .collect();
        names.dedup();
        Ok(names)
    }

    fn create_folder(&self, folder: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        state.change()?;
        // Folders are durable at once: what is tested are the names in them.
        for above in folder.ancestors() {
            state.folders.insert(above.to_owned());
        }
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        state.change()?;
        if state.folders.contains(path) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        state.find(path)?;
        state.name(path, None);
        Ok(())
    }

    fn remove_folder(&self, folder: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        state.change()?;
        if state.names.keys().any(|path| path.parent() == Some(folder)) {
            return Err(io::Error::from_raw_os_error(libc::ENOTEMPTY));
        }
        state.folders.remove(folder);
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        state.change()?;
        let content = state.find(from)?;
        state.name(to, Some(content));
        state.name(from, None);
        Ok(())
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        state.change()?;
        let content = state.find(from)?;
        state.name(to, Some(content));
        Ok(())
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        state.change()?;
        let pending = std::mem::take(&mut state.pending);
        for one in pending {
            match one {
                UnsyncedChange::Name { path, content } if path.parent() == Some(folder) => {
                    match content {
                        Some(content) => state.durable_names.insert(path, content),
                        None => state.durable_names.remove(&path),
                    };
                }
                other => state.pending.push(other),
            }
        }
        Ok(())
    }
}

struct SimulatedFile {
    state: Arc<Mutex<SimulatedState>>,
    content: u64,
}

impl File for SimulatedFile {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let mut state = self.state.lock();
        state.read()?;
        let cached = &state.contents[&self.content].cached;
        let start = offset as usize;
        let end = start + buffer.len();
        let touches = |bad: &Range<usize>| bad.start < end && start < bad.end;
        let mut bad = state.bad.iter();
        if bad.any(|(content, bytes)| *content == self.content && touches(bytes)) {
            return Err(broken());
        }
        match cached.get(start..end) {
            Some(bytes) => {
                buffer.copy_from_slice(bytes);
                Ok(())
            }
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut state = self.state.lock();
        state.change()?;
        let offset = offset as usize;
        let length = state.contents[&self.content].cached.len();
        state.check_room((offset + bytes.len()).saturating_sub(length))?;
        let content = state
            .contents
            .get_mut(&self.content)
            .expect("an open file has a content");
        put(&mut content.cached, offset, bytes);
        state.pending.push(UnsyncedChange::Write {
            content: self.content,
            offset,
            bytes: bytes.to_vec(),
        });
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.state.lock();
        state.change()?;
        let content = state
            .contents
            .get_mut(&self.content)
            .expect("an open file has a content");
        content.durable = content.cached.clone();
        let own = self.content;
        state.pending.retain(|pending| match pending {
            UnsyncedChange::Write { content, .. } | UnsyncedChange::Length { content, .. } => {
                *content != own
            }
            UnsyncedChange::Name { .. } => true,
        });
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.state.lock().contents[&self.content].cached.len() as u64)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let mut state = self.state.lock();
        state.change()?;
        let content = state
            .contents
            .get_mut(&self.content)
            .expect("an open file has a content");
        content.cached.resize(length as usize, 0);
        state.pending.push(UnsyncedChange::Length {
            content: self.content,
            length: length as usize,
        });
        Ok(())
    }

    fn links(&self) -> io::Result<u64> {
        let state = self.state.lock();
        let named = state.names.values().filter(|id| **id == self.content);
        Ok(named.count() as u64)
    }
}

#[cfg(test)]
#[path = "simulated_tests.rs"]
mod tests;
