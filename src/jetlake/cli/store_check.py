"""Examining stores: which folders are stores, what the engine finds in them, and the exit code that follows.

A store is the folder of one stream. A server's store folder is a tree of them; every folder of it that holds anything
of ours is examined. Nothing is ever written.
"""

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal

import msgspec

from jetlake._engine import check_store
from jetlake.errors import ConfigurationError, reason_of

__all__ = ["Checked", "Counts", "Finding", "Severities", "StoreReport", "check", "exit_code", "find_stores"]

Progress = Callable[[Path, int, int], None]
"""Receives the store, the bytes done and the bytes in total."""

ALL_GOOD, FINDINGS, UNREADABLE, LOSS = 0, 1, 2, 3

TWIN_MARK = b"JETLAKET"
"""How every small file that is kept twice begins."""


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """What a store holds. `messages` and `bytes` are upper bounds, and `subjects` is unknown, where it is encrypted."""

    segments: int
    records: int
    messages: int
    bytes: int
    subjects: int | None
    small_files: int
    file_bytes: int


class Severities(msgspec.Struct, frozen=True, kw_only=True):
    """How many findings there are of each kind, listed or not."""

    harmless: int
    healed: int
    loss: int


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that is wrong: what, what it means, and what to do about it. `kind` is a stable name for programs."""

    severity: Literal["harmless", "healed", "loss"]
    kind: str
    what: str
    advice: str
    path: str | None = None
    position: int | None = None
    first_sequence: int | None = None
    last_sequence: int | None = None


class StoreReport(msgspec.Struct, frozen=True, kw_only=True):
    """What the engine found in one folder; the worst findings come first."""

    folder: str
    encrypted: bool
    counts: Counts
    severities: Severities
    findings: list[Finding]
    # Files of interrupted changes, which opening removes, and files that an earlier opening put aside.
    unfinished: list[str]
    aside: list[str]
    opening_changes: bool


class Checked(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One folder: its report, or why there is none."""

    folder: str
    report: StoreReport | None = None
    error: str | None = None


def check(root: Path, progress: Progress | None = None) -> list[Checked]:
    """Examine the store in a folder, or all stores below it. Raises `ConfigurationError` where there is none."""
    try:
        stores = find_stores(root)
    except OSError as error:
        raise ConfigurationError(f"{error.filename or root} cannot be read: {reason_of(error)}") from error
    if not stores:
        raise ConfigurationError(
            f"there is no store in {root}: give the folder of a stream, or a server's store folder"
        )
    return [check_one(store, progress) for store in stores]


def check_one(store: Path, progress: Progress | None) -> Checked:
    """Examine one folder."""
    tell = None if progress is None else lambda done, total: progress(store, done, total)
    try:
        answer = check_store(str(store), tell)
    except OSError as error:
        return Checked(folder=str(store), error=str(error))
    return Checked(folder=str(store), report=msgspec.json.decode(answer, type=StoreReport))


def find_stores(root: Path) -> list[Path]:
    """Return the folders that hold anything of ours, the given one included, sorted."""

    def fail(error: OSError) -> None:
        raise error

    found = [Path(folder) for folder, _, names in os.walk(root, onerror=fail) if is_store(Path(folder), names)]
    return sorted(found)


def is_store(folder: Path, names: Iterable[str]) -> bool:
    """Tell whether a folder with files of these names has something to examine."""
    for name in names:
        if name.endswith(".segment") or name in {"anchor.1", "anchor.2"}:
            return True
        # Log files that were rotated end like this, too.
        if name.endswith((".1", ".2")) and (folder / name).is_file():
            with (folder / name).open("rb") as file:
                if file.read(len(TWIN_MARK)) == TWIN_MARK:
                    return True
    return False


def exit_code(results: Iterable[Checked]) -> int:
    """Return 3 if something is lost, else 2 if a store cannot be examined, else 1 if there are findings, else 0."""
    code = ALL_GOOD
    for checked in results:
        if checked.report is None:
            code = max(code, UNREADABLE)
        elif checked.report.severities.loss:
            code = LOSS
        elif checked.report.findings:
            code = max(code, FINDINGS)
    return code
