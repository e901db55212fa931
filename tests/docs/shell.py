"""Runs the shell blocks of a page as a reader would: in their order, in one folder, against a real server.

Servers that a block starts in the background listen on a free port of the loopback address, and `NATS_URL` leads the
blocks that follow to the last one. What a block exports is there for the next. Lines that install packages are left
out: they change the machine.

Invariant: when a session is closed, every process it started has ended.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.docs.pages import Block

READY_S_MAX = 30.0
"""How long a server may take to say that it is ready, on a machine that is busy with other tests."""

BLOCK_S_MAX = 60.0
"""How long one block may take; the slowest starts a dozen processes."""

_ADDRESS = re.compile(r"(?:ready at nats://|Listening for client connections on )([\w.]+:\d+)")
_VARIABLES = "variables.sh"
_INSTALLS = re.compile(r"^\s*(?:pip install|make|git clone|cd )\b")


class Session:
    """One reader with a folder; `close` ends what was started in the background."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._background: list[tuple[subprocess.Popen[bytes], Path]] = []
        programs = Path(sys.executable).parent
        self._environment = os.environ | {
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            # No context of whoever runs the tests may lead elsewhere.
            "XDG_CONFIG_HOME": str(folder / "config"),
            "NATS_URL": "",
            "NO_COLOR": "1",
        }

    def visit(self, url: str) -> None:
        """Have the blocks that follow speak to this server."""
        self._environment["NATS_URL"] = url

    def start(self, block: Block) -> None:
        """Start a server and wait until it is ready."""
        (line,) = [each.partition(" #")[0] for each in _lines(block) if each]
        if re.match(r"^(?:\S+/)?jetlake server\b", line):
            line += " -a 127.0.0.1 -p -1"
        log = self._folder / f"background-{len(self._background)}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                ["bash", "-c", f"exec {line}"],
                cwd=self._folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self._background.append((process, log))
        deadline = time.monotonic() + READY_S_MAX
        while not (address := _ADDRESS.search(log.read_text())):
            assert process.poll() is None, f"{block.page}:{block.line} ended early:\n{log.read_text()}"
            assert time.monotonic() < deadline, f"{block.page}:{block.line} is not ready:\n{log.read_text()}"
            time.sleep(0.02)
        self.visit(f"nats://{address[1]}")

    def run(self, block: Block) -> str:
        """Run a block to its end, its first failure included, and return what it printed."""
        script = "\n".join((*self._recall(), "set -euo pipefail", *_lines(block), f"export -p > {_VARIABLES}"))
        process = subprocess.Popen(
            ["bash", "-c", script],
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            printed, _ = process.communicate(timeout=BLOCK_S_MAX)
        except subprocess.TimeoutExpired:
            # A server that a block starts in the foreground goes on when its shell is killed: the whole group must end.
            os.killpg(process.pid, signal.SIGKILL)
            printed, _ = process.communicate()
            raise AssertionError(f"{block.page}:{block.line} does not end:\n{printed}") from None
        assert process.returncode == 0, f"{block.page}:{block.line} ended with {process.returncode}:\n{printed}"
        return printed

    def _recall(self) -> list[str]:
        """Return the lines that bring back what earlier blocks have exported; the server may be another one by now."""
        address = f"export NATS_URL={self._environment['NATS_URL']}"
        return [f"source ./{_VARIABLES}", address] if (self._folder / _VARIABLES).exists() else [address]

    def close(self) -> None:
        for process, _ in self._background:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGINT)
        for process, _ in self._background:
            try:
                process.wait(READY_S_MAX)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def _lines(block: Block) -> list[str]:
    """Return the lines to run; comments behind a command stay, bash passes over them."""
    return [line for line in block.text.splitlines() if not _INSTALLS.match(line) and not line.startswith("# ")]
