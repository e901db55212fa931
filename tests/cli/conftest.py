"""Fixtures of the command line's tests: a server of each kind, and the command run in this process."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import nats
import pytest
from typer.testing import CliRunner, Result

from jetlake.cli.app import create
from tests.compatibility import fixtures

COMMAND_S_MAX = 60.0
PAUSE_S = 0.05
"""Between two messages of somebody who sends until he is heard."""


Answer = TypeVar("Answer")

own_environment, server_kind, url = fixtures.own_environment, fixtures.server_kind, fixtures.url
start_server = fixtures.start_server


def pytest_configure(config: pytest.Config) -> None:
    fixtures.register_markers(config)


@pytest.fixture
def cli(url: str, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Run a command in this process, at the server."""
    monkeypatch.setenv("NATS_URL", url)

    def run(*words: str, stdin: bytes | str | None = None) -> Result:
        result = CliRunner().invoke(create(), list(words), input=stdin)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    return run


@pytest.fixture
def done(cli: Callable[..., Result]) -> Callable[..., str]:
    """Run a command that must succeed, and return what it prints."""

    def run(*words: str, stdin: bytes | str | None = None) -> str:
        result = cli(*words, stdin=stdin)
        assert result.exit_code == 0, result.output
        return result.stdout

    return run


@pytest.fixture
def read(done: Callable[..., str]) -> Callable[..., Any]:
    """Run a command with --json that must succeed, and return the value it prints."""
    return lambda *words: json.loads(done(*words, "--json"))


def asked_until(ask: Callable[[], Answer], is_whole: Callable[[Answer], bool]) -> Answer:
    """Ask again until an answer is whole, and return it: some commands wait a second only for what a server says."""
    deadline = time.monotonic() + COMMAND_S_MAX
    while True:
        answer = ask()
        if is_whole(answer) or time.monotonic() > deadline:
            return answer
        time.sleep(PAUSE_S)


@pytest.fixture
def process(url: str) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the real command as a process, at the server."""

    def run(*words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "jetlake", *words],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=COMMAND_S_MAX,
            env=os.environ | {"NATS_URL": url},
        )

    return run


@pytest.fixture
def sending(url: str) -> Iterator[Callable[..., None]]:
    """Send a message again and again until the test ends, so that whoever listens will hear it."""
    stop = threading.Event()
    threads: list[threading.Thread] = []

    async def send(subject: str, payload: bytes, headers: dict[str, str] | None) -> None:
        connection = await nats.connect(url)
        number = 0
        while not stop.is_set():
            number += 1
            await connection.publish(subject.replace("#", str(number)), payload, headers=headers)
            await asyncio.sleep(PAUSE_S)
        await connection.close()

    def start(subject: str, payload: bytes, headers: dict[str, str] | None = None) -> None:
        threads.append(threading.Thread(target=lambda: asyncio.run(send(subject, payload, headers))))
        threads[-1].start()

    yield start
    stop.set()
    for thread in threads:
        thread.join()


@pytest.fixture
def answering(url: str) -> Iterator[Callable[..., None]]:
    """Answer requests until the test ends."""
    stop = threading.Event()
    threads: list[threading.Thread] = []

    async def answer(subject: str, payloads: tuple[bytes, ...], ready: threading.Event) -> None:
        connection = await nats.connect(url)

        async def respond(message: Any) -> None:
            for payload in payloads:
                await connection.publish(message.reply, payload or message.data)

        await connection.subscribe(subject, cb=respond)
        await connection.flush()
        ready.set()
        await asyncio.to_thread(stop.wait)
        await connection.close()

    def start(subject: str, *payloads: bytes) -> None:
        """An empty payload echoes the request."""
        ready = threading.Event()
        threads.append(threading.Thread(target=lambda: asyncio.run(answer(subject, payloads or (b"",), ready))))
        threads[-1].start()
        assert ready.wait(COMMAND_S_MAX)

    yield start
    stop.set()
    for thread in threads:
        thread.join()
