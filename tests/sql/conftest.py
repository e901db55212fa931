"""What the tests of SQL share: a server of each kind with streams on it, and the command."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from jetlake.cli.app import create
from jetlake.client.raw_connection import ConnectionSettings, RawConnection
from jetlake.client.raw_streams import Streams
from tests.compatibility import fixtures

own_environment, server_kind, url = fixtures.own_environment, fixtures.server_kind, fixtures.url
start_server = fixtures.start_server

_stream_numbers = itertools.count(1)


def pytest_configure(config: pytest.Config) -> None:
    fixtures.register_markers(config)


class Filler:
    """Makes streams at a server and stores messages in them."""

    def __init__(self, server: str) -> None:
        self.url = server
        self.connection = RawConnection(ConnectionSettings(url=server, name="test"))
        self.streams = Streams(self.connection)

    def create(self, name: str = "", **config: Any) -> str:
        """Make a stream for `<name>.>`; one nobody else uses unless given."""
        name = name or f"Q{next(_stream_numbers)}"
        self.streams.ask(f"STREAM.CREATE.{name}", {"name": name, "subjects": [f"{name}.>"], **config})
        return name

    def publish(self, subject: str, data: bytes | dict[str, Any] = b"", headers: dict[str, str] | None = None) -> None:
        """Store one message."""
        payload = data if isinstance(data, bytes) else json.dumps(data).encode()
        block = ""
        if headers is not None:
            block = "NATS/1.0\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers.items()) + "\r\n"
        answer = self.connection.request(subject, payload, headers=block.encode()).json()
        assert "error" not in answer, answer

    def fill(self, name: str, count: int) -> None:
        """Store `{"n": 0}` and so on on `<name>.a` and `<name>.b` in turn."""
        pieces = []
        for number in range(count):
            payload = b'{"n": %d, "city": "%s"}' % (number, b"Oslo" if number % 2 else b"Rome")
            pieces.append(b"PUB %s.%s %d\r\n%s\r\n" % (name.encode(), b"ab"[number % 2 :][:1], len(payload), payload))
        before = self.streams.state(name).messages
        self.connection.send(b"".join(pieces))
        while self.streams.state(name).messages < before + count:
            pass


@pytest.fixture
def server(url: str) -> Iterator[Filler]:
    """A server of each kind, and streams made on it."""
    filler = Filler(url)
    yield filler
    filler.connection.close()


@pytest.fixture
def ask(url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Result]:
    """Run `jetlake sql` in this process, in a folder of its own."""
    monkeypatch.setenv("NATS_URL", url)
    monkeypatch.delenv("JETLAKE_LAKE", raising=False)
    monkeypatch.chdir(tmp_path)

    def run(*words: str, stdin: str | None = None) -> Result:
        result = CliRunner().invoke(create(), ["sql", *words], input=stdin)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    return run


@pytest.fixture
def rows(ask: Callable[..., Result]) -> Callable[..., list[dict[str, Any]]]:
    """Ask with --json and return the rows."""

    def run(*words: str) -> list[dict[str, Any]]:
        result = ask(*words, "--json")
        assert result.exit_code == 0, result.output
        return [json.loads(line) for line in result.stdout.splitlines()]

    return run
