"""What the Spark tests share: one session for all of them, servers of both kinds, and streams to read.

A session takes ten seconds to start and its first query as long again, so there is one, of two cores; tests use streams
of their own.
"""

import itertools
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from jetlake.client.raw_connection import ConnectionSettings, RawConnection
from jetlake.client.raw_streams import Streams
from tests.compatibility.server_process import ServerProcess, start_server_process

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KINDS = [
    pytest.param("jetlake", marks=pytest.mark.jetlake),
    pytest.param("nats-server", marks=pytest.mark.nats_server),
]

_stream_numbers = itertools.count(1)

IDLE_S_MAX = 20.0
"""How long a connection may lie idle before it is made anew."""

IS_LONG_RUN = os.environ.get("JETLAKE_LONG") == "1"
"""Drivers and workers that are killed again and again take many minutes: `make test-long` runs those tests, too."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave the longest tests of Spark to the long run."""
    if IS_LONG_RUN:
        return
    for item in items:
        if item.get_closest_marker("slow") and item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.skip(reason="takes minutes: make test-long"))


class Shore:
    """A running server, and streams made on it."""

    def __init__(self, process: ServerProcess) -> None:
        self.process = process
        self.kind = process.kind
        self.url = process.url
        self._opened: RawConnection | None = None
        self._used_at = 0.0

    @property
    def _connection(self) -> RawConnection:
        """A connection that was used a moment ago, or a new one: nobody answers a server's pings between two tests."""
        now = time.monotonic()
        if self._opened is None or now > self._used_at + IDLE_S_MAX:
            self.close()
            self._opened = RawConnection(ConnectionSettings(url=self.url, name="test"))
        self._used_at = now
        return self._opened

    @property
    def streams(self) -> Streams:
        """The streams of the server."""
        return Streams(self._connection)

    def kill_and_restart(self) -> None:
        """Kill the server, and start it again in the same place."""
        port = self.process.port
        self.close()
        self.process.signal(signal.SIGKILL)
        self.process.wait_for_exit()
        flags = ["-js", "-sd", str(self.process.folder / "store")]
        self.process = start_server_process(self.kind, self.process.folder, flags, port=port)

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def create(self, name: str = "", **config: Any) -> str:
        """Make a stream for `<name>.>` and return its name; one nobody else uses unless given."""
        name = name or f"S{next(_stream_numbers)}"
        body = {"name": name, "subjects": [f"{name}.>"], "allow_direct": True, **config}
        self.streams.ask(f"STREAM.CREATE.{name}", body)
        return name

    def publish(self, subject: str, data: bytes = b"", headers: dict[str, str] | None = None) -> int:
        """Store one message and return its sequence."""
        block = ""
        if headers is not None:
            block = "NATS/1.0\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers.items()) + "\r\n"
        answer = self._connection.request(subject, data, headers=block.encode()).json()
        assert "error" not in answer, answer
        return int(answer["seq"])

    def fill(self, name: str, count: int, *, data: Callable[[int], bytes] | None = None, subjects: int = 4) -> None:
        """Store many messages on `<name>.<0 … subjects-1>` in turn; the data is a number as JSON unless given."""
        make = data or (lambda number: json.dumps({"n": number}).encode())
        before = self.streams.state(name).messages
        pieces = []
        for number in range(count):
            payload = make(number)
            pieces.append(f"PUB {name}.{number % subjects} {len(payload)}\r\n".encode() + payload + b"\r\n")
            # Without acknowledgements, so in steps that no queue of a server is too short for.
            if len(pieces) == 1000 or number == count - 1:
                self._connection.send(b"".join(pieces))
                pieces.clear()
                while self.streams.state(name).messages < before + number + 1:
                    pass


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    """The session of all tests."""
    pytest.importorskip("pyspark", reason="the extra `spark` is not installed")
    import jetlake.spark

    # No test computes for as long as Java's best compiler takes, or Spark to write and compile Java of its own.
    interpreted = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    session = jetlake.spark.session("tests", master="local[2]", driver_memory="1g", small=True, config=interpreted)
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="session", params=KINDS)
def shore(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shore]:
    """A server of each kind, shared by all tests."""
    yield from _run(str(request.param), tmp_path_factory)


@pytest.fixture(scope="session")
def jetlake_shore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shore]:
    """A Jetlake server, for what does not depend on the kind."""
    yield from _run("jetlake", tmp_path_factory)


@pytest.fixture
def fresh_shore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shore]:
    """A Jetlake server for one test."""
    yield from _run("jetlake", tmp_path_factory)


def _run(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shore]:
    folder = tmp_path_factory.mktemp(kind)
    process = start_server_process(kind, folder, ["-js", "-sd", str(folder / "store")])
    shore = Shore(process)
    try:
        yield shore
        shore.close()
    finally:
        shore.process.stop()
