"""Programs of ours as processes forked from one that has loaded everything: what loading costs is paid once.

The tests start some two thousand servers and dashboards, and most of what such a start costs is loading Python and the
modules. A process that is made here runs the same `main` with the same command line, folder, variables and output as
one of a new interpreter. Tests of the start itself (`test_process.py`, `tests/server`) use new interpreters.

Invariant: a process that was started here is ended with this one, unless this one is killed.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import jetlake

LOADED_PARTS = ("server", "monitoring", "management", "client", "dashboard")
"""Of `jetlake`: what a server or a dashboard may load at some time."""

LOADED_LIBRARIES = (
    "aiohttp.web",
    "bcrypt",
    "cryptography.hazmat.primitives.asymmetric.ed25519",
    "jetlake.cli.app",
    "jetlake.cli.dashboard",
    "jinja2",
    "nacl.public",
    "nats",
    "rich.console",
)


def _modules() -> Iterator[str]:
    """Return the names of all modules that are loaded before the first process is made."""
    yield __name__
    folder = Path(jetlake.__file__).parent
    for part in LOADED_PARTS:
        for path in sorted((folder / part).rglob("*.py")):
            yield ".".join(("jetlake", *path.relative_to(folder).with_suffix("").parts)).removesuffix(".__init__")
    yield from LOADED_LIBRARIES


_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(list(_modules()))


class ForkedProcess:
    """A process that runs `main` of a program, with what the tests use of `subprocess.Popen`."""

    def __init__(self, main: Callable[[], int | None], args: list[str], folder: Path, output_path: Path) -> None:
        self.args = args
        # What an earlier process has written there is not this one's.
        output_path.write_bytes(b"")
        self._process = _context.Process(
            target=_run, args=(main, args, str(folder), str(output_path), dict(os.environ)), daemon=True
        )
        self._process.start()
        pid = self._process.pid
        assert pid is not None, "a process that was started has an id"
        self.pid: int = pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        """Return the exit code, or None while it runs."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the exit code. Raises `subprocess.TimeoutExpired`."""
        self._process.join(timeout)
        code = self._process.exitcode
        if code is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            # It may end just now: its parent, the fork server, reaps it at once, and then there is no such process.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _run(
    main: Callable[[], int | None], args: list[str], folder: str, output_path: str, environment: dict[str, str]
) -> None:
    """Be the program, in the new process."""
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    output = os.open(output_path, os.O_WRONLY | os.O_APPEND)
    os.dup2(output, sys.stdout.fileno())
    os.dup2(output, sys.stderr.fileno())
    os.close(output)
    sys.argv = args
    sys.exit(main())
