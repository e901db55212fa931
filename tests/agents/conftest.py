"""Fixtures of the agent's tests: a server of each kind, and agents as processes of their own."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.adapters.fleet import Stored
from tests.compatibility import fixtures

own_environment, server_kind, url = fixtures.own_environment, fixtures.server_kind, fixtures.url
start_server = fixtures.start_server

WAIT_S_MAX = 60.0

_numbers = itertools.count(1)


def pytest_configure(config: pytest.Config) -> None:
    fixtures.register_markers(config)


@pytest.fixture
def name() -> str:
    """A name nobody else uses."""
    return f"node{next(_numbers)}"


@pytest.fixture
def stored(url: str) -> Iterator[Stored]:
    opened = Stored(url)
    yield opened
    opened.close()


class AgentProcess:
    """One `jetlake agent run`."""

    def __init__(self, config: Path, url: str, log: Path) -> None:
        self._log = log
        with log.open("wb") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "jetlake", "agent", "run", "-c", str(config)],
                stderr=file,
                stdin=subprocess.DEVNULL,
                env=os.environ | ({"NATS_URL": url} if url else {}),
            )

    def log(self) -> str:
        return self._log.read_text()

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(WAIT_S_MAX)


@pytest.fixture
def run_agent(url: str, tmp_path: Path) -> Iterator[Callable[..., AgentProcess]]:
    """Start an agent with the text of a configuration."""
    started: list[AgentProcess] = []

    def start(text: str, name: str = "server.conf", at: str = url) -> AgentProcess:
        path = tmp_path / name
        path.write_text(text)
        started.append(AgentProcess(path, at, tmp_path / f"agent{len(started)}.log"))
        return started[-1]

    yield start
    for process in started:
        process.process.kill()
        process.process.wait()


def wait_until(condition: Callable[[], bool], what: Callable[[], str] = str) -> None:
    deadline = time.monotonic() + WAIT_S_MAX
    while not condition():
        assert time.monotonic() < deadline, what()
        time.sleep(0.02)
