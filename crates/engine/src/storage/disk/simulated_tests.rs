//! The simulated disk forgets, tears and fails exactly as planned.

use super::*;

fn disk_with_file() -> (SimulatedDisk, Arc<dyn File>, PathBuf) {
    let disk = SimulatedDisk::default();
    disk.create_folder(Path::new("/s")).unwrap();
    let path = PathBuf::from("/s/file");
    let file = disk.open(&path, OpenMode::Create).unwrap();
    (disk, file, path)
}

#[test]
fn only_what_was_synced_survives_the_worst_power_cut() {
    let (disk, file, path) = disk_with_file();
    file.write_all_at(b"kept", 0).unwrap();
    file.sync().unwrap();
    assert!(disk.after_power_cut(Survival::Nothing).files().is_empty());
    disk.sync_folder(Path::new("/s")).unwrap();
    file.write_all_at(b"lost", 4).unwrap();

    let after = disk.after_power_cut(Survival::Nothing);

    assert_eq!(after.files(), vec![(path.clone(), b"kept".to_vec())]);
    let lucky = disk.after_power_cut(Survival::Everything);
    assert_eq!(lucky.files(), vec![(path, b"keptlost".to_vec())]);
}

#[test]
fn a_torn_write_leaves_its_first_bytes() {
    let (disk, file, path) = disk_with_file();
    disk.sync_folder(Path::new("/s")).unwrap();
    file.write_all_at(&[7; 2000], 0).unwrap();

    let after = disk.after_power_cut(Survival::Torn {
        whole: 0,
        bytes: 700,
    });

    assert_eq!(after.files(), vec![(path, vec![7; 700])]);
}

#[test]
fn a_planned_fault_strikes_at_its_call() {
    let (disk, file, _) = disk_with_file();
    disk.plan(Some(FaultPlan {
        at_call: disk.calls() + 1,
        fault: Fault::NoSpace,
        lasting: false,
    }));

    file.write_all_at(b"a", 0).unwrap();
    let full = file.write_all_at(b"b", 1).unwrap_err();
    file.write_all_at(b"c", 1).unwrap();

    assert_eq!(full.raw_os_error(), Some(libc::ENOSPC));
}

#[test]
fn a_planned_read_fails_and_the_next_one_does_not() {
    let (disk, file, _) = disk_with_file();
    file.write_all_at(b"a", 0).unwrap();
    disk.plan_reads(Some(FaultPlan {
        at_call: disk.reads(),
        fault: Fault::Broken,
        lasting: false,
    }));

    let broken = file.read_exact_at(&mut [0], 0).unwrap_err();
    file.read_exact_at(&mut [0], 0).unwrap();

    assert_eq!(broken.raw_os_error(), Some(libc::EIO));
    assert_eq!(disk.reads(), 2);
}
