//! Streams come and go on a disk that may lose power at any call.

use std::path::Path;

use super::*;
use crate::storage::disk::simulated::{SimulatedDisk, Survival};

const ROOT: &str = "/jetstream";

fn folders(disk: &SimulatedDisk) -> Folders {
    Folders::new(Arc::new(disk.clone()), Path::new(ROOT))
}

fn names(folders: &Folders) -> Vec<String> {
    let inventory = folders.inventory().unwrap();
    let text = |found: FoundDefinition| String::from_utf8(found.definition).unwrap();
    inventory.streams.into_iter().map(text).collect()
}

fn make(folders: &Folders, name: &str, definition: &str) {
    let folder = folders.of_stream("A", name);
    folders.prepare(&folder).unwrap();
    folders.define(&folder, definition.as_bytes()).unwrap();
}

#[test]
fn what_was_defined_survives_a_power_cut_and_what_was_deleted_does_not_come_back() {
    let disk = SimulatedDisk::default();
    let made = folders(&disk);
    make(&made, "S", "one");
    make(&made, "T/..", "two");
    made.define(&made.of_stream("A", "S"), b"changed").unwrap();

    let after = folders(&disk.after_power_cut(Survival::Nothing));
    assert_eq!(names(&after), ["changed", "two"]);
    let gone = made.of_stream("A", "S");
    made.delete(&gone).unwrap();
    let after = folders(&disk.after_power_cut(Survival::Nothing));
    assert!(after.is_free(&gone).unwrap());
    assert_eq!(names(&after), ["two"]);
    made.remove(&gone).unwrap();
    assert_eq!(names(&made), ["two"]);
}

#[test]
fn an_unfinished_creation_is_cleared_away() {
    let disk = SimulatedDisk::default();
    let made = folders(&disk);
    let folder = made.of_stream("A", "S");
    made.prepare(&folder).unwrap();

    assert!(made.is_free(&folder).unwrap());
    let inventory = made.inventory().unwrap();

    assert!(inventory.streams.is_empty());
    assert_eq!(inventory.findings.len(), 1);
    assert!(
        made.file_system.list(&folder).is_err()
            || made.file_system.list(&folder).unwrap().is_empty()
    );
}

#[test]
fn damage_to_both_copies_is_told_and_nothing_is_removed() {
    let disk = SimulatedDisk::default();
    let made = folders(&disk);
    make(&made, "S", "one");
    let folder = made.of_stream("A", "S");
    for name in made.file_system.list(&folder).unwrap() {
        if name.starts_with(DEFINITION) {
            let access = crate::storage::disk::file_system::OpenMode::Write;
            let file = made.file_system.open(&folder.join(name), access).unwrap();
            file.write_all_at(b"?", 20).unwrap();
        }
    }

    let inventory = made.inventory().unwrap();

    assert!(inventory.streams.is_empty());
    assert!(inventory.findings[0].contains("both copies"));
    assert!(!made.is_free(&folder).unwrap());
}

#[test]
fn names_that_could_lead_elsewhere_become_digests() {
    for name in [
        "",
        ".",
        "..",
        "a/b",
        "a\\b",
        "a b",
        "\u{e4}",
        &"x".repeat(101),
    ] {
        let folder = folder_name(name);
        assert!(folder.starts_with('~') && folder.len() == 65, "{name}");
    }
    assert_eq!(folder_name("ORDERS_1-a$"), "ORDERS_1-a$");
}
