"""The files that show a running pipeline to others, in `_pipelines/<name>` of the lake.

- `state.json`      who runs it, since when, the last heartbeat, the state of every query; replaced by renaming
- `progress.jsonl`  one line per batch, the newest `LINES_MAX` of them
- `lock`            held by the process that runs it: a runner that died holds nothing, whatever its files say
- `stop`            its existence asks the runner to end after the batch at hand
- `checkpoints/`    where Spark notes which sequences belong to which batch; without them a query is a new one

Invariant: only the holder of the lock writes these files; only `stop` is created by others.
"""

import fcntl
import os
import socket
import time
from pathlib import Path
from typing import IO, Any

import msgspec

from jetlake.errors import ConfigurationError

FOLDER = "_pipelines"

HEARTBEAT_S = 2.0
HEARTBEAT_S_MAX = 30.0
"""A runner on another machine that was silent for this long is considered dead: its lock is not visible here."""

LINES_MAX = 2_000

ENDED = ("stopped", "finished", "failed")


class QueryState(msgspec.Struct):
    """How one query is doing."""

    name: str
    id: str = ""
    batch: int = -1
    rows: int = 0
    """Since this run began."""

    rows_per_second: float = 0.0
    batch_ms: int = 0
    lag: int | None = None
    """Messages that wait to be read; None when the source does not say."""

    restarts: int = 0
    error: str = ""


class RunState(msgspec.Struct):
    """How one pipeline is doing: starting, running, stopping, stopped, finished or failed."""

    pipeline: str
    state: str
    pid: int
    host: str
    started_ms: int
    heartbeat_ms: int
    queries: list[QueryState] = []
    tables: list[str] = []
    about: str = ""
    error: str = ""
    written: dict[str, int] = {}
    """Rows that reached each table in this run."""

    shipped: str = ""
    """Which of the pipelines that ship it is."""


class PipelineFiles:
    """See the module."""

    def __init__(self, lake: Path, name: str) -> None:
        self.name = name
        self.folder = lake / FOLDER / name
        self._lock: IO[bytes] | None = None
        self._lines = 0

    def checkpoint(self, query: str) -> Path:
        return self.folder / "checkpoints" / query

    def acquire(self) -> None:
        """Take the lock. Raises `ConfigurationError` when another process runs this pipeline."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            file = (self.folder / "lock").open("ab")
        except OSError as error:
            raise ConfigurationError(f"the lake cannot be written: {error}") from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.close()
            raise ConfigurationError(self._taken(self.read())) from error
        self._lock = file
        (self.folder / "stop").unlink(missing_ok=True)
        self._lines = len(self.progress())

    def check_free(self) -> None:
        """Refuse a pipeline that is running, before anything is started for it. Raises `ConfigurationError`."""
        state = self.read()
        if state is not None and state.state not in ENDED and self.is_alive(state):
            raise ConfigurationError(self._taken(state))

    def _taken(self, state: RunState | None) -> str:
        who = f" by process {state.pid} on {state.host}" if state else ""
        return (
            f"pipeline {self.name} is running already{who}: see `jetlake pipeline status`, or end it with "
            f"`jetlake pipeline stop {self.name}`"
        )

    def release(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def write(self, state: RunState) -> None:
        """Replace the state. Only for the holder of the lock."""
        state.heartbeat_ms = now_ms()
        temporary = self.folder / f".state.{os.getpid()}"
        temporary.write_bytes(msgspec.json.encode(state))
        temporary.replace(self.folder / "state.json")

    def read(self) -> RunState | None:
        """Return the state as it was written; None when there is none or it cannot be read."""
        try:
            return msgspec.json.decode((self.folder / "state.json").read_bytes(), type=RunState)
        except (OSError, msgspec.MsgspecError):
            return None

    def status(self) -> RunState | None:
        """Return the state as it is: a runner that ended without a word is `died`."""
        state = self.read()
        if state is None or state.state in ENDED or self.is_alive(state):
            return state
        state.state = "died"
        return state

    def is_alive(self, state: RunState) -> bool:
        """Whether a process runs this pipeline."""
        if state.host != socket.gethostname():
            return now_ms() - state.heartbeat_ms <= HEARTBEAT_S_MAX * 1000
        try:
            with (self.folder / "lock").open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def ask_to_stop(self) -> None:
        (self.folder / "stop").touch()

    def is_asked_to_stop(self) -> bool:
        return (self.folder / "stop").exists()

    def note(self, line: dict[str, Any]) -> None:
        """Add a line to the progress; the oldest go when there are twice as many as are kept."""
        path = self.folder / "progress.jsonl"
        with path.open("ab") as file:
            file.write(msgspec.json.encode(line) + b"\n")
        self._lines += 1
        if self._lines >= 2 * LINES_MAX:
            kept = path.read_bytes().splitlines(keepends=True)[-LINES_MAX:]
            temporary = self.folder / f".progress.{os.getpid()}"
            temporary.write_bytes(b"".join(kept))
            temporary.replace(path)
            self._lines = len(kept)

    def progress(self) -> list[dict[str, Any]]:
        """Return the lines that are kept, oldest first; a line that was being written is left out."""
        lines = []
        try:
            content = (self.folder / "progress.jsonl").read_bytes()
        except OSError:
            return []
        for line in content.splitlines()[-LINES_MAX:]:
            try:
                lines.append(msgspec.json.decode(line, type=dict[str, Any]))
            except msgspec.MsgspecError:
                continue
        return lines


def known(lake: Path) -> list[str]:
    """Return the names of the pipelines that ever ran on a lake."""
    folder = lake / FOLDER
    return sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []


def now_ms() -> int:
    return time.time_ns() // 1_000_000
