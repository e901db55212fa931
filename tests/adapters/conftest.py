"""Fixtures of the adapters' tests: servers of each kind, adapters in this process, nodes that register."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from jetlake.adapters.adapter import Adapter
from jetlake.adapters.configuration import read_hash
from jetlake.adapters.host import AdapterHost
from jetlake.client.access import Access
from tests.adapters.fleet import Fleet, Stored
from tests.compatibility import fixtures

own_environment, server_kind, url = fixtures.own_environment, fixtures.server_kind, fixtures.url
start_server = fixtures.start_server

WAIT_S_MAX = 60.0

_numbers = itertools.count(1)


def pytest_configure(config: pytest.Config) -> None:
    fixtures.register_markers(config)


@pytest.fixture
def name() -> str:
    """A name nobody else uses, for subjects and streams."""
    return f"test{next(_numbers)}"


@pytest.fixture
def stored(url: str) -> Iterator[Stored]:
    """Streams at the server."""
    opened = Stored(url)
    yield opened
    opened.close()


@pytest.fixture
def fleet(url: str) -> Iterator[Fleet]:
    """Nodes that register at the server."""
    opened = Fleet(url)
    yield opened
    opened.close()


class Adapters:
    """Starts adapters in this process, and keeps what they report."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.lines: list[str] = []
        self.hosts: list[AdapterHost] = []

    def start(self, adapters: dict[str, Any], url: str = "", **rest: Any) -> AdapterHost:
        host = AdapterHost(
            read_hash({"adapters": adapters, **rest}),
            Access(url=url or self.url),
            lambda level, text: self.lines.append(f"{level} {text}"),
        )
        self.hosts.append(host)
        host.start()
        return host

    def start_one(self, name: str, url: str = "", **options: Any) -> Adapter:
        """Start one adapter from NAME.in to NAME.out with two workers at each end, and wait until it listens."""
        content = adapter_content(name, **options)
        adapter = self.start({name: content}, url).adapters[0]
        wait_until(lambda: adapter.total("connections", "input") >= content["ingest"]["workers"])
        return adapter

    def stop(self) -> None:
        for host in self.hosts:
            host.stop()
        self.hosts.clear()


def adapter_content(name: str, **options: Any) -> dict[str, Any]:
    content: dict[str, Any] = {
        "type": "jetstream",
        "ingest": {"topic": f"{name}.in", "protocol": "request", "workers": 2},
        "stream": {"topic": f"{name}.out", "workers": 2},
    }
    for key, value in options.items():
        if isinstance(value, dict):
            content[key] = content.get(key, {}) | value
        else:
            content[key] = value
    return content


@pytest.fixture
def adapters(url: str) -> Iterator[Adapters]:
    started = Adapters(url)
    yield started
    started.stop()


def wait_until(condition: Callable[[], bool], what: str = "") -> None:
    deadline = time.monotonic() + WAIT_S_MAX
    while not condition():
        assert time.monotonic() < deadline, f"did not become true: {what or condition}"
        time.sleep(0.01)
