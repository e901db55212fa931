"""A spool: a folder with messages that wait for a sender, in Choria's layout.

```text
spool/                   0700
  P0/ … P4/              0700, one for each priority
    <unix ns>-<id>.msg   0600, one message; sorted by name they are in the order of submission
  rejected/              reliable messages that could not be delivered, a bounded number
  .submit-….tmp          a message that is being written
  .sender.lock           held by the one sender
```

A message is written to a temporary file, synced to disk if it is reliable, and renamed: a process that lists a folder
sees whole files only.

Durability: when `put` has returned for a reliable message, file and name are on disk. What a crash leaves is a `.tmp`,
which the sender removes after an hour. Changing a file is the same write and rename: of a reliable message the old or
the new content is on disk, at any moment.

Invariant: a name in a lane never stands for an incomplete message.
"""

import fcntl
import os
import re
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from jetlake.client.timestamps import SECOND_NS
from jetlake.errors import ConfigurationError, SpoolError, reason_of
from jetlake.submission.message import PAYLOAD_BYTES_MAX, PRIORITIES, SpoolMessage, check, decode, encode

SUFFIX = ".msg"
FOLDER_MODE = 0o700
FILE_MODE = 0o600

DEFAULT_MESSAGES_MAX = 500
"""Messages of one priority that may wait, as in Choria."""

FILE_BYTES_MAX = 64 * 1024 * 1024 * 2
"""A file that no server could take as a message is not read into memory: 64 MiB, and base64 around it."""

LISTED_MAX = 10_000
"""Names of one lane that the sender looks at at once; programs that write by themselves may leave more."""

REJECTED_MAX = 1_000
"""Files that are kept after they could not be delivered; the oldest go first."""

UNFINISHED_S_MAX = 3_600.0
"""Nobody writes one message for longer: what is older was left by a crash."""

CLOCK_STEP_NS_MAX = 3_600 * SECOND_NS
"""A clock that was set back by less does not change the order of messages."""

LOCK_NAME = ".sender.lock"
REJECTED = "rejected"

_UNFINISHED = re.compile(r"\.submit.*|\d+")
"""Names of files that are being written: ours, those of the shell recipe, and Choria's."""

_NAME_TIME = re.compile(r"(\d{1,20})-")


class Spool:
    """One spool folder."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        messages_max: int = DEFAULT_MESSAGES_MAX,
        payload_bytes_max: int = PAYLOAD_BYTES_MAX,
    ) -> None:
        if not os.fspath(folder):
            raise ConfigurationError("spool is not configured: name its folder with --spool or JETLAKE_SPOOL")
        if messages_max < 1:
            raise ConfigurationError(f"a spool of {messages_max} messages holds nothing: give at least 1")
        self.folder = Path(folder)
        self.messages_max = messages_max
        self.payload_bytes_max = payload_bytes_max

    def lane(self, priority: int) -> Path:
        return self.folder / f"P{priority}"

    def create(self) -> None:
        """Make the folders that are not there; those that are keep their permissions. Raises `SpoolError`."""
        try:
            for folder in (self.folder, *(self.lane(priority) for priority in range(PRIORITIES))):
                if not folder.is_dir():
                    folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
                    # The umask may have taken more away, or the folder above may have given more.
                    folder.chmod(FOLDER_MODE)
        except OSError as error:
            raise SpoolError(
                f"the spool {self.folder} cannot be made: {reason_of(error)}; choose a folder that you may write to"
            ) from error

    def put(self, message: SpoolMessage) -> Path:
        """Add a message, and return its file. Raises `ConfigurationError` for a wrong one, else `SpoolError`."""
        check(message, payload_bytes_max=self.payload_bytes_max)
        self.create()
        lane = self.lane(message.priority)
        try:
            unfinished = self._write(encode(message), durable=message.reliable)
            try:
                with _locked(lane):
                    names = self._names(lane)
                    if len(names) >= self.messages_max:
                        raise SpoolError(
                            f"spool is full: {lane} holds {len(names):,} messages; see that a sender runs, "
                            "`jetlake submission status` shows it"
                        )
                    file = lane / f"{_next_time_ns(names)}-{message.id}{SUFFIX}"
                    unfinished.rename(file)
            except BaseException:
                with suppress(OSError):
                    unfinished.unlink()
                raise
            if message.reliable:
                self._make_durable(file)
        except OSError as error:
            raise SpoolError(
                f"the spool {self.folder} cannot be written: {reason_of(error)}; the message was not submitted"
            ) from error
        return file

    def names(self, priority: int) -> list[str]:
        """Return the files of a priority, oldest first, `LISTED_MAX` at most. Raises `SpoolError`."""
        try:
            return self._names(self.lane(priority))[:LISTED_MAX]
        except OSError as error:
            raise SpoolError(f"the spool {self.folder} cannot be read: {reason_of(error)}") from error

    def read(self, priority: int, name: str) -> SpoolMessage | None:
        """Return the message of a file; None if it is gone. Raises `ConfigurationError` and `SpoolError`."""
        file = self.lane(priority) / name
        try:
            if file.stat().st_size > FILE_BYTES_MAX:
                raise ConfigurationError(f"the file has more than {FILE_BYTES_MAX:,} bytes")
            return decode(file.read_bytes())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise SpoolError(f"{file} cannot be read: {reason_of(error)}") from error

    def replace(self, priority: int, name: str, message: SpoolMessage) -> None:
        """Rewrite a message in one step. Raises `SpoolError`; then the file is what it was."""
        try:
            # Only the content: where the new name is not on disk yet, the old content is.
            unfinished = self._write(encode(message), durable=message.reliable)
            try:
                unfinished.replace(self.lane(priority) / name)
            except BaseException:
                with suppress(OSError):
                    unfinished.unlink()
                raise
        except OSError as error:
            raise SpoolError(f"{name} cannot be rewritten: {reason_of(error)}") from error

    def remove(self, priority: int, name: str) -> None:
        """Remove a file. Raises `SpoolError`."""
        try:
            (self.lane(priority) / name).unlink(missing_ok=True)
        except OSError as error:
            raise SpoolError(f"{name} cannot be removed: {reason_of(error)}; correct the permissions") from error

    def reject(self, priority: int, name: str) -> None:
        """Move a file out of the way, to `rejected`; the oldest there go. Raises `SpoolError`."""
        folder = self.folder / REJECTED
        try:
            folder.mkdir(mode=FOLDER_MODE, exist_ok=True)
            with suppress(FileNotFoundError):
                (self.lane(priority) / name).replace(folder / name)
            for old in sorted(os.listdir(folder))[:-REJECTED_MAX]:
                (folder / old).unlink(missing_ok=True)
        except OSError as error:
            raise SpoolError(f"{name} cannot be moved to {folder}: {reason_of(error)}") from error

    def clean_up(self) -> int:
        """Remove what crashes have left unfinished, and return how many files that were."""
        count, oldest_s = 0, time.time() - UNFINISHED_S_MAX
        with suppress(OSError):
            for entry in os.scandir(self.folder):
                if not _UNFINISHED.fullmatch(entry.name) or not entry.is_file(follow_symlinks=False):
                    continue
                with suppress(OSError):
                    if entry.stat(follow_symlinks=False).st_mtime < oldest_s:
                        os.unlink(entry.path)
                        count += 1
        return count

    @contextmanager
    def sender_lock(self) -> Iterator[bool]:
        """Hold the lock of the sender; False = another one has it. Raises `SpoolError`."""
        try:
            descriptor = os.open(self.folder / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
        except OSError as error:
            raise SpoolError(f"the spool {self.folder} cannot be locked: {reason_of(error)}") from error
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True
        finally:
            os.close(descriptor)

    def _make_durable(self, file: Path) -> None:
        """Force the name of a file to disk. Raises `OSError`, and then the message is not submitted."""
        try:
            _sync_folder(file.parent)
        except OSError:
            try:
                file.unlink()
            except FileNotFoundError:
                # The sender has it already: what is delivered need not be durable here.
                return
            raise

    def _names(self, lane: Path) -> list[str]:
        return sorted(name for name in os.listdir(lane) if name.endswith(SUFFIX) and not name.startswith("."))

    def _write(self, content: bytes, *, durable: bool) -> Path:
        """Write a file that nobody looks at, beside the lanes."""
        unfinished = self.folder / f".submit-{uuid.uuid4().hex}.tmp"
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                if durable:
                    os.fsync(file.fileno())
        except BaseException:
            with suppress(OSError):
                unfinished.unlink()
            raise
        return unfinished


def _next_time_ns(names: list[str]) -> int:
    """Return the time for the name of a new file: later than that of every other, even if the clock was set back."""
    now_ns = time.time_ns()
    found = _NAME_TIME.match(names[-1]) if names else None
    newest_ns = int(found[1]) if found else 0
    return newest_ns + 1 if now_ns <= newest_ns < now_ns + CLOCK_STEP_NS_MAX else now_ns


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Let one program at a time count and add, so that the limit is exact and the order is that of the names."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
