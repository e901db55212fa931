"""Child processes of a server: features that are clients of it run beside it, and are kept running.

A feature such as an adapter or the sender of a spool speaks only the NATS protocol, so the server does not import it:
it runs as a process of its own, which cannot slow the server down or take it along when it fails.

```python
children = Children([Child(name="adapters", words=("adapter", "run", "--hosted"), settings={…})], log)
children.start()
children.stop()
```

What a child can rely on, and what it has to do:

1. The first line of its standard input is `settings` as JSON; passwords go this way, where `ps` does not show them.
2. Standard input stays open as long as the server lives. Its end means that the server is gone: stop.
3. SIGTERM means: finish what is under way and end, within `STOP_S_MAX`.
4. Lines on its standard error become lines of the server's log: `[ERR] …`, `[WRN] …` and `[DBG] …` keep their level.

Invariant: `stop` returns when no child is left. A child that ends by itself is started again after a pause that grows,
and given up after `FAILURES_MAX` failures in a row; a run of `HEALTHY_S` forgets the failures before it.
"""

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from threading import Event, Thread
from typing import IO, TYPE_CHECKING, Any

import msgspec

from jetlake.errors import reason_of
from jetlake.server.signals import signals_blocked

if TYPE_CHECKING:
    from jetlake.server.log import Level, Log

FAILURES_MAX = 10
"""Failures in a row before a child is given up: with the pauses below, some four minutes of trying."""

FIRST_PAUSE_S = 0.5
PAUSE_S_MAX = 60.0
"""The pause doubles from the first to the last; each is shortened by up to half, so that children spread out."""

HEALTHY_S = 60.0
"""A child that has run for this long was fine; a later failure is a new one."""

STOP_S_MAX = 30.0
"""How long a child has to finish after SIGTERM, before it is killed: longer than any of them drains its queues."""

LINE_BYTES_MAX = 16 * 1024
"""What one line of a child's log may have; a child must not fill the server's memory."""

LEVELS: "dict[str, Level]" = {"[ERR] ": "error", "[WRN] ": "warning", "[DBG] ": "debug", "[INF] ": "info"}


class Child(msgspec.Struct, frozen=True, kw_only=True):
    """One process: the words after `jetlake`, or after another module, and the contents of its standard input."""

    name: str
    words: tuple[str, ...] = ()
    module: str = "jetlake"
    settings: dict[str, Any] = {}


class Children:
    """The children of one server."""

    def __init__(self, children: Sequence[Child], log: "Log") -> None:
        self._supervisors = [Supervisor(child, log) for child in children]

    def start(self) -> None:
        """Start all of them, each in its own time: one that cannot start does not delay the others."""
        for supervisor in self._supervisors:
            supervisor.start()

    def stop(self) -> None:
        """Ask all of them to stop, then wait for each; harmless when repeated."""
        for supervisor in self._supervisors:
            supervisor.request_stop()
        for supervisor in self._supervisors:
            supervisor.join()

    @property
    def process_ids(self) -> list[int]:
        """The processes that run now."""
        return [supervisor.process_id for supervisor in self._supervisors if supervisor.process_id]


class Supervisor:
    """Keeps one child running, in a thread of its own."""

    def __init__(self, child: Child, log: "Log") -> None:
        self._child = child
        self._log = log
        self._stopping = Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = Thread(target=self._run, name=f"jetlake-child-{child.name}", daemon=True)

    @property
    def process_id(self) -> int:
        process = self._process
        return process.pid if process is not None and process.poll() is None else 0

    def start(self) -> None:
        with signals_blocked():
            self._thread.start()

    def request_stop(self) -> None:
        self._stopping.set()

    def join(self) -> None:
        self._thread.join()

    def _run(self) -> None:
        failures = 0
        while not self._stopping.is_set():
            started_s = time.monotonic()
            outcome = self._run_once()
            if self._stopping.is_set():
                return
            if time.monotonic() - started_s >= HEALTHY_S:
                failures = 0
            failures += 1
            if failures >= FAILURES_MAX:
                self._log.error(
                    f"{self._child.name}: {outcome}; given up after {failures} failures in a row: "
                    "see the lines above, correct the configuration and restart the server"
                )
                return
            pause_s = min(FIRST_PAUSE_S * 2 ** (failures - 1), PAUSE_S_MAX) * random.uniform(0.5, 1.0)
            self._log.error(f"{self._child.name}: {outcome}; starting it again in {pause_s:.1f} s")
            self._stopping.wait(pause_s)

    def _run_once(self) -> str:
        """Run the process until it ends, or until it is to stop, and return how it ended."""
        command = [sys.executable, "-m", self._child.module, *self._child.words]
        try:
            # This thread takes no signals, and a process would inherit that: its SIGTERM would never arrive.
            before = signal.pthread_sigmask(signal.SIG_SETMASK, [])
            try:
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    # A Ctrl-C is for the server, which ends its children in order.
                    start_new_session=True,
                )
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
        except OSError as error:
            return f"cannot start: {reason_of(error)}"
        self._process = process
        self._log.info(f"{self._child.name}: started as process {process.pid}")
        assert process.stderr is not None
        reader = Thread(target=self._forward, args=(process.stderr,), name="jetlake-child-log", daemon=True)
        reader.start()
        self._tell_settings(process)
        while process.poll() is None and not self._stopping.wait(0.1):
            pass
        code = self._finish(process)
        reader.join()
        process.stderr.close()
        return f"process {process.pid} ended with exit code {code}"

    def _tell_settings(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(self._child.settings).encode() + b"\n")
            process.stdin.flush()
        except OSError:
            # It has ended already, and the exit code says more than a broken pipe.
            return

    def _finish(self, process: subprocess.Popen[bytes]) -> int:
        """Return the exit code; a process that still runs is asked to end first, and made to if it does not."""
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(STOP_S_MAX)
            except subprocess.TimeoutExpired:
                self._log.error(
                    f"{self._child.name}: process {process.pid} did not stop within {STOP_S_MAX:g} s and is killed; "
                    "what it had not finished is lost"
                )
                process.kill()
        code = process.wait()
        assert process.stdin is not None
        # What was still in the pipe has nobody to read it.
        with suppress(OSError):
            process.stdin.close()
        if self._stopping.is_set():
            self._log.info(f"{self._child.name}: process {process.pid} stopped with exit code {code}")
        return code

    def _forward(self, lines: IO[bytes]) -> None:
        while line := lines.readline(LINE_BYTES_MAX):
            text = line.decode(errors="replace").rstrip()
            if not text:
                continue
            level = LEVELS.get(text[:6], "info")
            self._log.write(level, f"{self._child.name}: {text[6:] if text[:6] in LEVELS else text}")
