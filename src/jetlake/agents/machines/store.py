"""`MachineStore`: the data and the state of one machine, in files of its folder.

`machine_data.json` is the original's file. `machine_state.json` is ours: the original begins at the initial state after
every restart.

Durability: a file is written beside the old one, synced, and renamed over it, and the folder is synced. After `save_…`
has returned, the new content survives a crash of the machine; a crash before leaves the old one. A file that cannot be
read is ignored with a warning, and overwritten.
"""

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from jetlake.errors import ConfigurationError, reason_of

__all__ = ["MachineStore", "SavedState", "write_durably"]

DATA_FILE = "machine_data.json"
STATE_FILE = "machine_state.json"

FILE_BYTES_MAX = 16 * 1024 * 1024
"""Of one of the files: all data of a machine is kept in memory and given to its commands."""

FILE_MODE = 0o600
"""Data may be passwords."""

Report = Callable[[str, str], None]


class SavedState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where a machine was."""

    name: str
    version: str
    state: str
    # When it entered the state.
    entered_unix_s: float
    # Watchers whose change is in the data, or about to be, and whose transition has not happened yet.
    unfired: tuple[str, ...] = ()


class MachineStore:
    """The files of one machine."""

    def __init__(self, folder: Path, report: Report) -> None:
        self._folder = folder
        self._report = report

    def load_data(self) -> dict[str, Any]:
        content = self._read(DATA_FILE)
        if content is None:
            return {}
        try:
            data = json.loads(content)
        except (ValueError, RecursionError):
            data = None
        if isinstance(data, dict):
            return data
        self._report("warning", f"{self._folder / DATA_FILE} is not a JSON object and is ignored")
        return {}

    def load_state(self, name: str) -> SavedState | None:
        """Return where the machine was, in whichever version; None if it never ran."""
        content = self._read(STATE_FILE)
        if content is None:
            return None
        try:
            saved = msgspec.json.decode(content, type=SavedState)
        except (msgspec.DecodeError, UnicodeDecodeError):
            self._report("warning", f"{self._folder / STATE_FILE} cannot be read: beginning at the initial state")
            return None
        return saved if saved.name == name else None

    def save_data(self, data: dict[str, Any]) -> None:
        """Raises `ConfigurationError` if the data cannot be kept."""
        try:
            content = json.dumps(data).encode()
        except (ValueError, TypeError, RecursionError) as error:
            raise ConfigurationError(f"the data cannot be written as JSON: {error}") from error
        if len(content) > FILE_BYTES_MAX:
            raise ConfigurationError(
                f"the machine has {len(content):,} bytes of data: at most {FILE_BYTES_MAX:,} are kept"
            )
        self._write(DATA_FILE, content)

    def save_state(self, state: SavedState) -> None:
        """Raises `ConfigurationError` if the disk refuses."""
        self._write(STATE_FILE, msgspec.json.encode(state))

    def _read(self, name: str) -> bytes | None:
        try:
            with (self._folder / name).open("rb") as file:
                return file.read(FILE_BYTES_MAX + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            self._report("warning", f"cannot read {self._folder / name}: {reason_of(error)}")
            return None

    def _write(self, name: str, content: bytes) -> None:
        try:
            write_durably(self._folder / name, content, FILE_MODE)
        except OSError as error:
            raise ConfigurationError(f"cannot write {self._folder / name}: {reason_of(error)}") from error


def write_durably(path: Path, content: bytes, mode: int) -> None:
    """Replace a file so that a crash leaves the old content or the new one. Raises `OSError`."""
    # One writer at a time has the folder, so one name is enough, and a crash leaves at most one such file.
    unfinished = path.with_name(f".{path.name}.new")
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink()
        raise
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
