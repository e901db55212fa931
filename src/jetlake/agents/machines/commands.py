"""`Commands`: runs the programs of all machines of a process, so that none of them can hold the others up.

Each command has a process group, a deadline and a limit on its output. At the deadline the whole group is killed.
A process that has left the group and still holds the pipe is not waited for. A thread waits for each command: no other
portable way to wait for a process is safe from signal handlers and missing pidfds.

Invariant: `run` returns at most `DRAIN_S_MAX` after the command has ended or its time is over, and the event loop is
never blocked by it.
"""

import asyncio
import os
import selectors
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Lock

import msgspec

from jetlake.errors import ConfigurationError, reason_of

__all__ = ["CommandResult", "Commands", "words_of"]

COMMANDS_MAX = 256
"""Commands that run at once; further ones wait. Each has a thread, which sleeps."""

OUTPUT_BYTES_MAX = 1024 * 1024
"""Of one command's output that is kept; the rest is read and thrown away."""

READ_BYTES = 64 * 1024
DRAIN_S_MAX = 0.5
"""How long output is read after the command has ended, if another process holds the pipe."""

POLL_S = 0.5
"""How often we check whether a command has ended whose pipe another process holds."""


class CommandResult(msgspec.Struct, frozen=True, kw_only=True):
    """How a command ended. `failure` is empty if it ended by itself, whatever its exit code."""

    exit_code: int
    output: bytes
    runtime_ns: int
    failure: str = ""

    @property
    def text(self) -> str:
        return self.output.decode(errors="replace")

    @property
    def is_success(self) -> bool:
        return not self.failure and self.exit_code == 0


class Commands:
    """Runs commands, up to a number of them at once."""

    def __init__(self, limit: int = COMMANDS_MAX) -> None:
        self._threads = ThreadPoolExecutor(limit, thread_name_prefix="jetlake-command")
        self._lock = Lock()
        self._running: set[RunningCommand] = set()
        self._is_closed = False

    async def run(
        self,
        words: Sequence[str],
        *,
        folder: Path,
        environment: Mapping[str, str],
        timeout_s: float,
        disown: bool = False,
    ) -> CommandResult:
        """Run a command to its end. A cancellation kills it, unless it is disowned."""
        running = RunningCommand(words, folder, environment, timeout_s, disown=disown)
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(self._threads, self._run, running)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            running.cancel()
            raise

    def close(self) -> None:
        """Kill what runs, except for disowned commands, and let the threads end."""
        with self._lock:
            self._is_closed = True
            running = list(self._running)
        for each in running:
            each.cancel()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _run(self, running: "RunningCommand") -> CommandResult:
        with self._lock:
            if self._is_closed:
                running.cancel()
            self._running.add(running)
        try:
            return running.run()
        finally:
            with self._lock:
                self._running.discard(running)


class RunningCommand:
    """One command, run by one thread and cancelled by another."""

    def __init__(
        self, words: Sequence[str], folder: Path, environment: Mapping[str, str], timeout_s: float, *, disown: bool
    ) -> None:
        self._words = list(words)
        self._folder = folder
        self._environment = dict(environment)
        self._timeout_s = timeout_s
        self._disown = disown
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_cancelled = False

    def cancel(self) -> None:
        """Kill the command; one that has not started never does. A disowned one goes on."""
        with self._lock:
            self._is_cancelled = True
            process = self._process
        if process is not None and not self._disown:
            kill_group(process)

    def run(self) -> CommandResult:
        started_ns = time.monotonic_ns()
        program = shutil.which(self._words[0], path=self._environment.get("PATH", os.defpath))
        if "/" in self._words[0]:
            program = str(self._folder / self._words[0])
        if program is None:
            return _failed(f"{self._words[0]!r} is not on the path", started_ns)
        try:
            with self._lock:
                if self._is_cancelled:
                    return _failed("the agent stops", started_ns)
                process = self._process = subprocess.Popen(
                    [program, *self._words[1:]],
                    cwd=self._folder,
                    env=self._environment,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL if self._disown else subprocess.PIPE,
                    stderr=subprocess.DEVNULL if self._disown else subprocess.STDOUT,
                    start_new_session=True,
                )
        except (OSError, ValueError) as error:
            reason = reason_of(error) if isinstance(error, OSError) else str(error)
            return _failed(f"{self._words[0]!r} cannot be started: {reason}", started_ns)
        deadline_s = time.monotonic() + self._timeout_s
        output = b"" if self._disown else _read_output(process, deadline_s)
        return self._wait(process, output, deadline_s, started_ns)

    def _wait(
        self, process: "subprocess.Popen[bytes]", output: bytes, deadline_s: float, started_ns: int
    ) -> CommandResult:
        failure = ""
        while True:
            try:
                process.wait(max(min(deadline_s - time.monotonic(), 1.0), 0.0))
                break
            except subprocess.TimeoutExpired:
                if time.monotonic() < deadline_s and not (self._disown and self._is_cancelled):
                    continue
            if self._disown and self._is_cancelled:
                failure = "the agent stops; the command goes on"
            else:
                failure = f"killed after {self._timeout_s:g} s"
                kill_group(process)
                # Killed processes end; one that a broken disk holds must not keep a thread for ever.
                with suppress(subprocess.TimeoutExpired):
                    process.wait(DRAIN_S_MAX)
            break
        if not failure and self._is_cancelled and process.returncode == -signal.SIGKILL:
            failure = "the agent stops"
        return CommandResult(
            exit_code=process.returncode if process.returncode is not None else -signal.SIGKILL,
            output=output,
            runtime_ns=time.monotonic_ns() - started_ns,
            failure=failure,
        )


def _read_output(process: "subprocess.Popen[bytes]", deadline_s: float) -> bytes:
    """Return the output, up to the limit, until the pipe is closed, the command has ended or its time is over."""
    assert process.stdout is not None
    kept = bytearray()
    descriptor = process.stdout.fileno()
    os.set_blocking(descriptor, False)
    ended_s: float | None = None
    with process.stdout, selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        while True:
            now_s = time.monotonic()
            if ended_s is None and process.poll() is not None:
                ended_s = now_s
            last_s = deadline_s if ended_s is None else min(deadline_s, ended_s + DRAIN_S_MAX)
            # Once more when the time is over: this process may have been suspended while there was something to read.
            is_last = now_s >= last_s
            if selector.select(0 if is_last else min(last_s - now_s, POLL_S)):
                with suppress(BlockingIOError):
                    piece = os.read(descriptor, READ_BYTES)
                    if not piece:
                        break
                    kept += piece[: OUTPUT_BYTES_MAX - len(kept)]
            if is_last:
                break
    return bytes(kept)


def kill_group(process: "subprocess.Popen[bytes]") -> None:
    """Kill a command and everything it started that is still in its group."""
    # The number of a process that was waited for may already belong to another process.
    if process.returncode is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


def _failed(reason: str, started_ns: int) -> CommandResult:
    return CommandResult(exit_code=-1, output=b"", runtime_ns=time.monotonic_ns() - started_ns, failure=reason)


def words_of(command: str) -> list[str]:
    """Split a command as a shell would; no shell is involved. Raises `ConfigurationError`."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ConfigurationError(f"the command {command[:60]!r} cannot be split into words: {error}") from error
    if not words:
        raise ConfigurationError("the command is empty: name a program")
    return words
