//! A small file kept twice, so that one bad copy costs nothing: definitions, states.
//!
//! `NAME.1` and `NAME.2` hold the same body with a generation and a checksum. A change writes each copy beside itself, syncs it, gives it its name
//! and syncs the folder, one copy after the other. So at any moment at least one copy is whole, and after `write` returns both hold the
//! new body. Opening takes the good copy of the higher generation and writes the other one again.

use std::io;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::file_system::{FileSystem, OpenMode};
use crate::storage::format::bytes::{ByteReader, Put};

const MARK: &[u8; 8] = b"JETLAKET";
const VERSION: u32 = 1;
const HEAD_BYTES: usize = 8 + 4 + 8 + 8;

/// Larger bodies are not ours.
const BODY_BYTES_MAX: u64 = 64 * 1024 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TwinFile {
    pub generation: u64,
    pub body: Vec<u8>,
}

/// What was found under a name.
#[derive(Debug, PartialEq, Eq)]
pub enum Twins {
    /// Neither copy is there.
    Missing,
    /// Both copies hold the same.
    Good(TwinFile),
    /// One copy was older: a change was interrupted.
    Behind(TwinFile),
    /// One copy was damaged or gone.
    Healed(TwinFile),
    /// Made by a later version of this program.
    TooNew(u32),
    /// Neither copy can be read.
    Lost,
}

/// What was found under the name of one copy.
pub(in crate::storage) enum TwinCopy {
    Missing,
    Good(TwinFile),
    TooNew(u32),
    Damaged,
}

pub(in crate::storage) fn path(folder: &Path, name: &str, copy: usize) -> PathBuf {
    folder.join(format!("{name}.{}", copy + 1))
}

/// Writes both copies; returns when both are durable.
pub fn write(
    file_system: &dyn FileSystem,
    folder: &Path,
    name: &str,
    twin: &TwinFile,
) -> io::Result<()> {
    for copy in 0..2 {
        write_copy(file_system, folder, name, copy, twin)?;
        // Of the first two either may be missing after a crash; later one of them must always be whole.
        if copy == 1 || twin.generation > 1 {
            file_system.sync_folder(folder)?;
        }
    }
    Ok(())
}

/// Writes both copies for the first time, and leaves it to `sync` to make them durable.
pub fn write_unsynced(
    file_system: &dyn FileSystem,
    folder: &Path,
    name: &str,
    twin: &TwinFile,
) -> io::Result<()> {
    for copy in 0..2 {
        put_copy(file_system, folder, name, copy, twin, false)?;
    }
    Ok(())
}

/// Makes durable what is in both copies; their names are when their folder is synced.
pub fn sync(file_system: &dyn FileSystem, folder: &Path, name: &str) -> io::Result<()> {
    for copy in 0..2 {
        let file = file_system.open(&path(folder, name, copy), OpenMode::Write)?;
        file.sync()?;
    }
    Ok(())
}

/// Writes the first copy alone, for what is defined at once and written down properly, with a higher generation, later; returns when it is durable.
pub fn write_first(
    file_system: &dyn FileSystem,
    folder: &Path,
    name: &str,
    twin: &TwinFile,
) -> io::Result<()> {
    write_copy(file_system, folder, name, 0, twin)?;
    file_system.sync_folder(folder)
}

fn write_copy(
    file_system: &dyn FileSystem,
    folder: &Path,
    name: &str,
    copy: usize,
    twin: &TwinFile,
) -> io::Result<()> {
    put_copy(file_system, folder, name, copy, twin, true)
}

fn put_copy(
    file_system: &dyn FileSystem,
    folder: &Path,
    name: &str,
    copy: usize,
    twin: &TwinFile,
    is_synced: bool,
) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(HEAD_BYTES + twin.body.len() + 8);
    bytes.extend_from_slice(MARK);
    bytes.put_u32(VERSION);
    bytes.put_u64(twin.generation);
    bytes.put_u64(twin.body.len() as u64);
    bytes.extend_from_slice(&twin.body);
    let checksum = checksum(&bytes, name);
    bytes.put_u64(checksum);

    let target = path(folder, name, copy);
    let beside = folder.join(format!("{name}.{}.new", copy + 1));
    let file = match file_system.open(&beside, OpenMode::Create) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            file_system.remove_file(&beside)?;
            file_system.open(&beside, OpenMode::Create)?
        }
        other => other?,
    };
    file.write_all_at(&bytes, 0)?;
    if is_synced {
        file.sync()?;
    }
    file_system.rename(&beside, &target)
}

/// Reads both copies and heals the worse one, if `heal` is set.
pub fn read(
    file_system: &dyn FileSystem,
    folder: &Path,
    name: &str,
    heal: bool,
) -> io::Result<Twins> {
    let copies = [
        read_copy(file_system, &path(folder, name, 0))?,
        read_copy(file_system, &path(folder, name, 1))?,
    ];
    let (good, bad_copy, behind) = match copies {
        [TwinCopy::Good(one), TwinCopy::Good(other)] if one == other => {
            return Ok(Twins::Good(one))
        }
        [TwinCopy::Good(one), TwinCopy::Good(other)] => {
            // An interrupted change leaves neighbours; any other pair was put here by another program or a person.
            let neighbours = one.generation.abs_diff(other.generation) == 1;
            if one.generation > other.generation {
                (one, 1, neighbours)
            } else {
                (other, 0, neighbours)
            }
        }
        [TwinCopy::TooNew(version), _] | [_, TwinCopy::TooNew(version)] => {
            return Ok(Twins::TooNew(version))
        }
        // The very first writing was interrupted between the copies.
        [TwinCopy::Good(one), TwinCopy::Missing] if one.generation <= 1 => (one, 1, true),
        [TwinCopy::Missing, TwinCopy::Good(other)] if other.generation <= 1 => (other, 0, true),
        [TwinCopy::Good(one), _] => (one, 1, false),
        [_, TwinCopy::Good(other)] => (other, 0, false),
        [TwinCopy::Missing, TwinCopy::Missing] => return Ok(Twins::Missing),
        _ => return Ok(Twins::Lost),
    };
    if heal {
        write_copy(file_system, folder, name, bad_copy, &good)?;
        file_system.sync_folder(folder)?;
    }
    Ok(if behind {
        Twins::Behind(good)
    } else {
        Twins::Healed(good)
    })
}

pub(in crate::storage) fn read_copy(
    file_system: &dyn FileSystem,
    path: &Path,
) -> io::Result<TwinCopy> {
    let file = match file_system.open(path, OpenMode::Read) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(TwinCopy::Missing),
        other => other?,
    };
    let length = file.len()?;
    if length < (HEAD_BYTES + 8) as u64 || length > BODY_BYTES_MAX {
        return Ok(TwinCopy::Damaged);
    }
    let mut bytes = vec![0; length as usize];
    file.read_exact_at(&mut bytes, 0)?;
    let name = path.file_stem().and_then(|stem| stem.to_str());
    let copy = name.and_then(|name| decode(&bytes, name));
    Ok(copy.unwrap_or(TwinCopy::Damaged))
}

/// Bound to the name, so that a file that replaces another is not taken for it.
fn checksum(content: &[u8], name: &str) -> u64 {
    xxh3_64_with_seed(content, xxh3_64(name.as_bytes()))
}

fn decode(bytes: &[u8], name: &str) -> Option<TwinCopy> {
    let (content, checksum) = bytes.split_at(bytes.len() - 8);
    if self::checksum(content, name).to_le_bytes() != *checksum {
        return None;
    }
    let mut reader = ByteReader::new(content);
    if reader.bytes(8)? != MARK {
        return None;
    }
    let version = reader.u32()?;
    if version > VERSION {
        return Some(TwinCopy::TooNew(version));
    }
    let generation = reader.u64()?;
    let length = usize::try_from(reader.u64()?).ok()?;
    let body = reader.bytes(length)?.to_vec();
    reader
        .is_empty()
        .then_some(TwinCopy::Good(TwinFile { generation, body }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::disk::simulated::{SimulatedDisk, Survival};

    const FOLDER: &str = "/s";

    fn twin(generation: u64, body: &[u8]) -> TwinFile {
        TwinFile {
            generation,
            body: body.to_vec(),
        }
    }

    fn disk_with(first: &TwinFile) -> SimulatedDisk {
        let disk = SimulatedDisk::default();
        disk.create_folder(Path::new(FOLDER)).unwrap();
        write(&disk, Path::new(FOLDER), "state", first).unwrap();
        disk
    }

    fn opened(disk: &SimulatedDisk) -> Twins {
        read(disk, Path::new(FOLDER), "state", true).unwrap()
    }

    #[test]
    fn a_flipped_bit_in_either_copy_is_healed() {
        let first = twin(3, b"body");
        let length = disk_with(&first).files()[0].1.len();
        for bit in 0..length * 8 {
            for copy in ["/s/state.1", "/s/state.2"] {
                let disk = disk_with(&first);
                disk.tamper(Path::new(copy), |bytes| bytes[bit / 8] ^= 1 << (bit % 8));

                assert_eq!(opened(&disk), Twins::Healed(first.clone()));
                assert_eq!(opened(&disk), Twins::Good(first.clone()));
            }
        }
    }

    #[test]
    fn a_power_cut_at_any_call_leaves_the_old_or_the_new_body() {
        use crate::storage::disk::simulated::{Fault, FaultPlan};
        let calls = {
            let disk = disk_with(&twin(1, b"old"));
            let before = disk.calls();
            write(&disk, Path::new(FOLDER), "state", &twin(2, b"newer")).unwrap();
            before..disk.calls()
        };
        for at_call in calls {
            for seed in 0..20 {
                let disk = disk_with(&twin(1, b"old"));
                disk.plan(Some(FaultPlan {
                    at_call,
                    fault: Fault::PowerCut,
                    lasting: true,
                }));
                write(&disk, Path::new(FOLDER), "state", &twin(2, b"newer")).unwrap_err();

                let after = disk.after_power_cut(Survival::Random { seed });

                match opened(&after) {
                    Twins::Good(found) | Twins::Behind(found) => {
                        assert!(found == twin(1, b"old") || found == twin(2, b"newer"));
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
    }

    #[test]
    fn a_file_in_the_place_of_another_is_not_taken_for_it() {
        let disk = disk_with(&twin(1, b"mine"));
        let folder = Path::new(FOLDER);
        write(&disk, folder, "other", &twin(9, b"yours")).unwrap();
        disk.rename(&folder.join("other.1"), &folder.join("state.1"))
            .unwrap();

        assert_eq!(opened(&disk), Twins::Healed(twin(1, b"mine")));
    }

    #[test]
    fn two_bad_copies_are_lost_and_none_is_missing() {
        let disk = disk_with(&twin(1, b"x"));
        for copy in ["/s/state.1", "/s/state.2"] {
            disk.tamper(Path::new(copy), |bytes| bytes[0] ^= 1);
        }

        assert_eq!(opened(&disk), Twins::Lost);
        assert_eq!(
            read(&disk, Path::new(FOLDER), "other", true).unwrap(),
            Twins::Missing
        );
    }
}
