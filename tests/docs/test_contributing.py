"""CONTRIBUTING names files and commands that exist."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import REPOSITORY, read

NAMED = ("CONTRIBUTING.md", "README.md", "docs/internals/release.md")
FILE = re.compile(r"`((?:\.ci|\.venv|benchmarks|crates|docs|examples|packaging|src|tests)/[^\s`]*)`")
TARGET = re.compile(r"\bmake ([a-z][a-z-]+)\b(?=[^`\n]*`|\s*(?:#|$))", re.MULTILINE)
BUILT = (".venv/", "build/")


@pytest.mark.parametrize("page", NAMED)
def test_every_file_that_is_named_exists(page):
    missing = [
        name
        for name in FILE.findall(read(page))
        if not name.startswith(BUILT) and not any(REPOSITORY.glob(name.rstrip("/")))
    ]

    assert not missing, f"{page} names what is not there: {', '.join(missing)}"


@pytest.mark.parametrize("page", NAMED)
def test_every_make_target_that_is_named_exists(page):
    makefile = (REPOSITORY / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))

    missing = set(TARGET.findall(read(page))) - targets

    assert not missing, f"{page} names targets that the Makefile does not have: {', '.join(sorted(missing))}"


def test_contributing_names_files_and_targets():
    assert len(FILE.findall(read("CONTRIBUTING.md"))) >= 10
    assert {"setup", "test", "check"} <= set(TARGET.findall(read("CONTRIBUTING.md")))
