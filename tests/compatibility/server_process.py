"""Starts a server of either kind as a real process on loopback and stops it by its process id."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from jetlake.server.entry import main
from tests.compatibility.wire import RawClient
from tests.forked_process import ForkedProcess

# The executable of each kind; both understand nats-server's command line.
EXECUTABLES = {"nats-server": "nats-server", "jetlake": "jetlake-nats-server"}

START_SECONDS_MAX = 60.0
STOP_SECONDS_MAX = 60.0

LISTENING = re.compile(r"Listening for client connections on (\S+):(\d+)")
READY = "Server is ready"


def find_executable(kind: str) -> str:
    """Return the executable beside the running interpreter, else the one on PATH."""
    name = EXECUTABLES[kind]
    beside = Path(sys.executable).parent / name
    if beside.is_file():
        return str(beside)
    found = shutil.which(name)
    if found is None:
        raise FileNotFoundError(f"no {name} beside {sys.executable} nor on PATH; run `make setup`")
    return found


class ServerProcess:
    """A running server. Its log is read from the file its standard error goes to.

    One of ours may be forked from a process that has loaded everything, which takes a fraction of the time.
    """

    def __init__(self, kind: str, folder: Path, arguments: list[str], *, is_forked: bool = False) -> None:
        self.kind = kind
        self.folder = folder
        self.arguments = arguments
        self.host = "127.0.0.1"
        self.port = 0
        self._log_path = folder / "stderr.log"
        self.process = self._forked() if is_forked else self._started()

    def _forked(self) -> ForkedProcess:
        assert self.kind == "jetlake", f"{self.kind} is not a Python program"
        return ForkedProcess(main, [find_executable(self.kind), *self.arguments], self.folder, self._log_path)

    def _started(self) -> subprocess.Popen[bytes]:
        command = [find_executable(self.kind), *self.arguments]
        with self._log_path.open("wb") as log:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder)

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def url(self) -> str:
        return f"nats://{self.host}:{self.port}"

    def client(self, **options: object) -> RawClient:
        """Return a raw client that has read INFO and not yet said CONNECT."""
        return RawClient(self.host, self.port, **options)  # type: ignore[arg-type]

    def log(self) -> str:
        return self._log_path.read_text(errors="replace")

    def wait_for_log(self, text: str, seconds: float = START_SECONDS_MAX, log_path: Path | None = None) -> str:
        """Wait until the log holds `text` and return the log."""
        path = log_path or self._log_path
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            log = path.read_text(errors="replace") if path.exists() else ""
            if text in log:
                return log
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.kind} ended with {self.process.returncode} before {text!r}:\n{self.log()}")
            time.sleep(0.005)
        raise TimeoutError(f"{self.kind} did not log {text!r} within {seconds} s:\n{self.log()}")

    def wait_until_ready(self, log_path: Path | None = None) -> None:
        log = self.wait_for_log(READY, log_path=log_path)
        listening = LISTENING.search(log)
        assert listening is not None, f"{self.kind} is ready but did not say where it listens:\n{log}"
        self.host, self.port = listening[1], int(listening[2])

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait_for_exit(self, seconds: float = STOP_SECONDS_MAX) -> int:
        """Return the exit code."""
        return self.process.wait(timeout=seconds)

    def stop(self) -> None:
        """End the process, whatever state it is in. One of ours that does not obey is a failure."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(timeout=STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                threads = self._thread_names()
                self.process.kill()
                self.process.wait()
                assert self.kind != "jetlake", f"did not stop; threads {threads}; log:\n{self.log()}"

    def _thread_names(self) -> list[str]:
        return sorted(path.read_text().strip() for path in Path(f"/proc/{self.pid}/task").glob("*/comm"))


def start_server_process(
    kind: str, folder: Path, flags: list[str] | None = None, config: str | None = None, port: int = -1
) -> ServerProcess:
    """Start a server on loopback (a random port unless given) and wait until it is ready."""
    arguments = ["-a", "127.0.0.1", "-p", str(port), *(flags or [])]
    if config is not None:
        config_path = folder / "server.conf"
        config_path.write_text(config)
        arguments += ["-c", str(config_path)]
    server = ServerProcess(kind, folder, arguments, is_forked=kind == "jetlake")
    try:
        server.wait_until_ready()
    except BaseException:
        server.stop()
        raise
    return server


def run_to_end(kind: str, arguments: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the executable with `arguments` until it ends by itself and return its output and exit code."""
    command = [find_executable(kind), *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True, cwd=cwd, timeout=START_SECONDS_MAX)
