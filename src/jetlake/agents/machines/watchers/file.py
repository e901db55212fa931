"""`FileWatcher`: notices that a file has changed, or keeps its contents as the manifest says."""

import asyncio
import grp
import hashlib
import os
import pwd
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from jetlake.agents.machines.watcher_options import FileOptions
from jetlake.agents.machines.watchers.watcher import Watcher
from jetlake.errors import ConfigurationError, JetlakeError, reason_of

if TYPE_CHECKING:
    from jetlake.agents.machines.machine import Machine
    from jetlake.agents.machines.manifest import WatcherManifest

__all__ = ["FileWatcher"]

T = TypeVar("T")

READ_BYTES = 1024 * 1024


class WantedFile(msgspec.Struct, frozen=True):
    """How a managed file should be."""

    content: bytes
    mode: int
    owner: str
    group: str


class FileWatcher(Watcher):
    """Looks at one file."""

    def __init__(self, manifest: "WatcherManifest", machine: "Machine") -> None:
        super().__init__(manifest, machine)
        assert isinstance(manifest.options, FileOptions)
        self._options = manifest.options
        self._path = machine.folder / manifest.options.path
        # Of the file as it was last seen; 0 = never.
        self._mtime_ns = 0
        self._previous_outcome = "unknown"

    def state_fields(self) -> dict[str, Any]:
        return {"path": str(self._path), "previous_outcome": self._previous_outcome}

    async def run(self) -> None:
        if self._options.gather_initial_state:
            with suppress(JetlakeError):
                self._mtime_ns = await self._in_thread(_mtime_of, self._path)
        while True:
            await self.wait(self.manifest.interval_s)
            await self._look()

    async def _look(self) -> None:
        if not self.is_active:
            self._previous_outcome = "skipped"
            return
        try:
            changed = await (self._manage() if self._options.contents else self._has_changed())
        except JetlakeError as error:
            self._mtime_ns = 0
            self._previous_outcome = "error"
            self.report("warning", f"{self._path}: {error}")
            self.announce()
            await self.fail()
            return
        self._previous_outcome = "changed" if changed else "unchanged"
        if changed:
            self.announce()
            await self.succeed()

    async def _has_changed(self) -> bool:
        mtime_ns = await self._in_thread(_mtime_of, self._path)
        changed = mtime_ns > self._mtime_ns
        self._mtime_ns = max(mtime_ns, self._mtime_ns)
        return changed

    async def _manage(self) -> bool:
        """Make the file as it should be; return whether it was not."""
        render, options = self.machine.render, self._options
        mode = render(options.mode)
        try:
            wanted = WantedFile(
                render(options.contents).encode(), int(mode, 8), render(options.owner), render(options.group)
            )
        except ValueError as error:
            raise ConfigurationError(f"mode is {mode!r}: it must be octal digits, such as 0644") from error
        changed, self._mtime_ns = await self._in_thread(_make, self._path, wanted, self._mtime_ns)
        return changed

    async def _in_thread(self, work: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self.machine.services.file_threads, work, *arguments)


def _mtime_of(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError as error:
        raise ConfigurationError(reason_of(error)) from error


def _make(path: Path, wanted: WantedFile, seen_ns: int) -> tuple[bool, int]:
    """Write a file if it is not as wanted; return whether it was written, and the time of its last change."""
    try:
        status = path.stat()
        is_same = (
            status.st_mtime_ns <= seen_ns
            and status.st_mode & 0o7777 == wanted.mode
            and status.st_size == len(wanted.content)
            and _digest(path) == hashlib.sha256(wanted.content).digest()
        )
        if is_same:
            return False, seen_ns
    except FileNotFoundError:
        pass
    except OSError as error:
        raise ConfigurationError(reason_of(error)) from error
    try:
        _replace(path, wanted)
        return True, path.stat().st_mtime_ns
    except OSError as error:
        raise ConfigurationError(f"cannot be written: {reason_of(error)}") from error


def _replace(path: Path, wanted: WantedFile) -> None:
    descriptor, unfinished = tempfile.mkstemp(prefix="jetlake-file-", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(wanted.content)
            os.fchmod(file.fileno(), wanted.mode)
            os.fchown(file.fileno(), _user(wanted.owner), _group(wanted.group))
        os.replace(unfinished, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(unfinished)
        raise


def _user(name: str) -> int:
    try:
        return int(name) if name.isdecimal() else pwd.getpwnam(name).pw_uid
    except KeyError as error:
        raise ConfigurationError(f"there is no user {name!r}") from error


def _group(name: str) -> int:
    try:
        return int(name) if name.isdecimal() else grp.getgrnam(name).gr_gid
    except KeyError as error:
        raise ConfigurationError(f"there is no group {name!r}") from error


def _digest(path: Path) -> bytes:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(READ_BYTES):
            digest.update(piece)
    return digest.digest()
