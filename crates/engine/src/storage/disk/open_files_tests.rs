//! Files that are closed when nobody uses them: they come back as they were, and there are never more open than may be.

use super::*;

use std::sync::atomic::AtomicU32;

/// A folder of its own, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("jetlake-open-files-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir(&folder).unwrap();
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn create(files: &Arc<OpenFiles>, path: &Path, bytes: &[u8]) -> Arc<StoreFile> {
    let mut options = fs::OpenOptions::new();
    options.read(true).write(true).create_new(true);
    let file = files.open(path, &options, true).unwrap();
    file.write_all_at(bytes, 0).unwrap();
    file.sync().unwrap();
    file
}

fn content(file: &StoreFile) -> Vec<u8> {
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

#[test]
fn no_more_files_are_open_than_may_be_and_each_is_read_and_written_all_the_same() {
    let folder = Folder::new();
    let files = OpenFiles::new(4);
    let all: Vec<_> = (0..20)
        .map(|number| create(&files, &folder.path(&number.to_string()), b"0123"))
        .collect();

    for (number, file) in all.iter().enumerate() {
        file.write_all_at(&[number as u8], 2).unwrap();
        file.sync().unwrap();
    }

    for (number, file) in all.iter().enumerate() {
        assert_eq!(content(file), [b'0', b'1', number as u8, b'3']);
        assert!(files.open_count() <= 4);
    }
    drop(all);
    assert_eq!(files.open_count(), 0);
    assert!(files.table.lock().named.is_empty());
}

#[test]
fn a_file_with_bytes_that_are_not_synced_stays_open() {
    let folder = Folder::new();
    let files = OpenFiles::new(1);
    let unsynced = create(&files, &folder.path("a"), b"a");
    unsynced.write_all_at(b"b", 1).unwrap();

    let others = [
        create(&files, &folder.path("b"), b"b"),
        create(&files, &folder.path("c"), b"c"),
    ];

    assert!(unsynced.is_open() && !others[0].is_open());
    unsynced.sync().unwrap();
    assert_eq!(files.close_some(3), 2);
    assert!(!unsynced.is_open());
    assert_eq!(content(&unsynced), b"ab");
}

#[test]
fn a_file_is_found_again_under_the_name_it_was_given() {
    let folder = Folder::new();
    let files = OpenFiles::new(8);
    let file = create(&files, &folder.path("before"), b"it");
    assert_eq!(files.close_some(8), 1);

    files
        .rename(&folder.path("before"), &folder.path("after"))
        .unwrap();

    assert_eq!(files.close_some(8), 1);
    assert_eq!(content(&file), b"it");
    assert_eq!(fs::read(folder.path("after")).unwrap(), b"it");
}

#[test]
fn whoever_reads_a_file_that_was_removed_or_replaced_goes_on_reading_that_one() {
    let folder = Folder::new();
    let files = OpenFiles::new(8);
    let removed = create(&files, &folder.path("removed"), b"removed");
    let replaced = create(&files, &folder.path("replaced"), b"replaced");
    let new = create(&files, &folder.path("new"), b"new");
    assert_eq!(files.close_some(8), 3);

    files.remove(&folder.path("removed")).unwrap();
    files
        .rename(&folder.path("new"), &folder.path("replaced"))
        .unwrap();

    files.close_some(8);
    assert_eq!(content(&removed), b"removed");
    assert_eq!(content(&replaced), b"replaced");
    assert_eq!(content(&new), b"new");
    assert!(removed.is_open() && replaced.is_open());
}

#[test]
fn another_file_that_was_put_in_its_place_from_outside_is_not_taken_for_it() {
    let folder = Folder::new();
    let files = OpenFiles::new(8);
    let file = create(&files, &folder.path("a"), b"a");
    files.close_some(8);
    fs::write(folder.path("other"), b"other").unwrap();
    fs::rename(folder.path("other"), folder.path("a")).unwrap();

    let read = file.read_exact_at(&mut [0], 0);

    assert!(read.unwrap_err().to_string().contains("replaced"));
    assert!(!file.read_cached_at(&mut [0], 0));
}

#[test]
fn a_call_that_finds_no_descriptor_closes_files_and_is_tried_again() {
    let folder = Folder::new();
    let files = OpenFiles::new(100);
    let held = create(&files, &folder.path("a"), b"a");
    let calls = AtomicU32::new(0);

    let found = files.with_relief(|| match calls.fetch_add(1, Ordering::Relaxed) {
        0 => Err(io::Error::from_raw_os_error(libc::EMFILE)),
        _ => Ok("found"),
    });
    let nothing_left =
        files.with_relief(|| -> io::Result<()> { Err(io::Error::from_raw_os_error(libc::EMFILE)) });

    assert_eq!(found.unwrap(), "found");
    assert!(!held.is_open());
    assert!(is_exhausted(&nothing_left.unwrap_err()));
    assert_eq!(content(&held), b"a");
}

#[test]
fn threads_that_read_more_files_than_may_be_open_read_what_is_in_them() {
    let folder = Folder::new();
    let files = OpenFiles::new(3);
    let all: Vec<_> = (0..12u8)
        .map(|number| create(&files, &folder.path(&number.to_string()), &[number]))
        .collect();

    std::thread::scope(|scope| {
        for start in 0..4 {
            let all = &all;
            scope.spawn(move || {
                for round in 0..500 {
                    let number = (start * 5 + round * 7) % all.len();
                    assert_eq!(content(&all[number]), [number as u8]);
                }
            });
        }
        for round in 0..50 {
            let spare = create(&files, &folder.path("spare"), b"x");
            files.remove(&folder.path("spare")).unwrap();
            assert_eq!(content(&spare), b"x");
            // Names move while others read.
            let kept = folder.path("kept");
            let first = folder.path("0");
            match round % 2 {
                0 => files.rename(&first, &kept).unwrap(),
                _ => files.rename(&kept, &first).unwrap(),
            }
        }
    });

    // Those in use may have been more for a moment.
    files.make_room();
    assert!(files.open_count() <= 3);
}
