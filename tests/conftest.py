"""Fixtures for all tests: a server inside the test process, and the server as a process of its own."""

import gc
import inspect
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nats.aio.client
import nats.aio.msg
import nats.aio.subscription
import pytest
from hypothesis import HealthCheck, settings
from nats.js import JetStreamContext

import jetlake

REPOSITORY = Path(__file__).resolve().parent.parent

# A machine that is busy with other tests is slow, and the inputs are none the worse for it.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")

# The tests start more than a thousand processes, and those that keep no bytecode compile every module they import:
# a server with JetStream then takes twice the time to start.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Twenty thousand tests are found, and all of them stay: nothing of that is garbage. See `pytest_collection_finish`.
gc.disable()

# gRPC's own handlers of a fork fail where a test has left a channel open, and with them whatever is started then.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "false")

# A shell that runs the tests in the background has them ignore Ctrl-C, and so would every process that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

REQUEST_S_MAX = 60.0
"""How long an answer may take, on a machine that is busy with other tests."""

START_S_MAX = 60.0
"""How long a server process may take to say that it is ready, on a machine that is busy with other tests."""


CHROMIUM_NAMES = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)
"""The first is the same browser without its own windows and menus: a page costs two thirds of the processor's time."""

NO_CHROMIUM = "no Chromium is installed: run `make browser`, or install your system's package `chromium`"


def find_chromium() -> str | None:
    """Return the path of a browser for the tests of the dashboard, if there is one."""
    return next((path for name in CHROMIUM_NAMES if (path := shutil.which(name)) is not None), None)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Divide the tests with `--dist loadfile` as `tests/scheduling.py` says; without xdist nobody asks."""
    if config.getvalue("dist") != "loadfile":
        return None
    from tests.scheduling import FolderScheduling

    return FolderScheduling(config, log)


def pytest_collection_finish() -> None:
    """Collect garbage from now on, and never look at what was there before the first test."""
    gc.freeze()
    gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say loudly that tests in a browser were skipped; here, because xdist's main process reads no other conftest."""
    skipped = [report for report in terminalreporter.stats.get("skipped", []) if NO_CHROMIUM in str(report.longrepr)]
    if skipped:
        terminalreporter.section("THE DASHBOARD WAS NOT TESTED", sep="!", red=True, bold=True)
        terminalreporter.line(f"{len(skipped)} tests were skipped: {NO_CHROMIUM}", red=True)


class ServerProcess:
    """One `jetlake server` started by a test; its log is collected in a file."""

    def __init__(self, command: list[str], log_path: Path) -> None:
        self.log_path = log_path
        with log_path.open("wb") as log_file:
            self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log_file)

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def port(self) -> int:
        for line in self.log().splitlines():
            if "Listening for client connections on " in line:
                return int(line.rpartition(":")[2])
        raise AssertionError(f"no port in the log:\n{self.log()}")

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    def log(self) -> str:
        return self.log_path.read_text()

    def wait_for_line(self, text: str) -> None:
        """Wait until the log contains this text."""
        deadline = time.monotonic() + START_S_MAX
        while text not in self.log():
            assert self.process.poll() is None or text in self.log(), f"ended before {text!r}:\n{self.log()}"
            assert time.monotonic() < deadline, f"{text!r} did not come:\n{self.log()}"
            time.sleep(0.01)

    def send(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def wait(self) -> int:
        """Wait for the end and return the exit code."""
        return self.process.wait(START_S_MAX)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


StartProcess = Callable[..., ServerProcess]


@pytest.fixture(autouse=True, scope="session")
def flush_in_order() -> Iterator[None]:
    """Have nats-py's `flush` send what is pending before its PING.

    nats-py writes the PING at once and leaves the pending commands to a task of its own, so that on a busy machine
    the PONG can come before the server has seen the SUB or PUB that a test wants to be sure of.
    """
    flush = nats.aio.client.Client.flush

    async def in_order(self: nats.aio.client.Client, timeout: float = REQUEST_S_MAX) -> None:  # noqa: ASYNC109
        if self.is_connected:
            await self._flush_pending(force_flush=True)
        await flush(self, timeout)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nats.aio.client.Client, "flush", in_order)
        yield


@pytest.fixture(autouse=True, scope="session")
def patient_client() -> Iterator[None]:
    """Have nats-py wait longer than it does by itself, unless a test says how long: a machine may be busy."""
    client = nats.aio.client.Client
    with pytest.MonkeyPatch.context() as patch:
        for function, name in (
            (client.connect, "connect_timeout"),
            (client.request, "timeout"),
            (JetStreamContext.__init__, "timeout"),
            (JetStreamContext.PullSubscription.fetch, "timeout"),
            (nats.aio.subscription.Subscription.next_msg, "timeout"),
            (nats.aio.msg.Msg.ack_sync, "timeout"),
        ):
            patch.setattr(function, "__defaults__", changed_defaults(function, name, REQUEST_S_MAX))
        yield


def changed_defaults(function: Callable[..., Any], name: str, value: float) -> tuple[Any, ...]:
    """Return the defaults of a function with one of them replaced."""
    parameters = inspect.signature(function).parameters.values()
    with_default = [each for each in parameters if each.default is not inspect.Parameter.empty]
    assert name in [each.name for each in with_default], f"{function} has no default for {name}"
    return tuple(value if each.name == name else each.default for each in with_default)


@pytest.fixture
def jetlake_server() -> Iterator[jetlake.Server]:
    """A server in this process, on a random port."""
    with jetlake.Server(jetstream=False) as server:
        yield server


@pytest.fixture
def start_process(tmp_path: Path) -> Iterator[StartProcess]:
    """Start server processes with the flags given; on a random loopback port unless the flags say otherwise."""
    started: list[ServerProcess] = []

    def start(*flags: str, command: list[str] | None = None, wait: bool = True) -> ServerProcess:
        address = [] if command or "-p" in flags else ["-p", "-1", "-a", "127.0.0.1"]
        process = ServerProcess(
            command or [sys.executable, "-m", "jetlake.server.main", *address, *flags],
            tmp_path / f"server-{len(started)}.log",
        )
        started.append(process)
        if wait:
            process.wait_for_line("Server is ready")
        return process

    yield start
    for process in started:
        process.close()
