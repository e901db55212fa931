"""Servers of both kinds for the tests of config as code: empty, with streams enabled."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import pytest
from typer.testing import CliRunner, Result

from jetlake.cli.app import create
from jetlake.client.api import Api, open_api
from jetlake.iac.actual import Actual, read_actual
from jetlake.iac.declaration import Declaration
from jetlake.iac.plan import Plan
from jetlake.iac.planner import Options, make_plan
from jetlake.iac.reader import read
from tests.compatibility.fixtures import server_kind  # noqa: F401
from tests.compatibility.server_process import ServerProcess, start_server_process

T = TypeVar("T")


@pytest.fixture(scope="module")
def streams_server(server_kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:  # noqa: F811
    """One server with streams for all tests of a module."""
    folder = tmp_path_factory.mktemp(server_kind)
    process = start_server_process(server_kind, folder, ["-js", "-sd", str(folder / "store")])
    yield process
    process.stop()


@pytest.fixture
def server(streams_server: ServerProcess) -> ServerProcess:
    """A server that has nothing."""

    async def empty(api: Api) -> None:
        for name in await api.stream_names():
            await api.request(f"STREAM.DELETE.{name}")

    ask(streams_server, empty)
    return streams_server


def ask(server: ServerProcess, work: Callable[[Api], Coroutine[Any, Any, T]]) -> T:
    """Do something with the API of a server."""

    async def connected() -> T:
        async with open_api(server.url) as api:
            return await work(api)

    return asyncio.run(connected())


def request(server: ServerProcess, subject: str, body: object | None = None) -> dict[str, Any]:
    """Send one request to the API of a server."""
    return ask(server, lambda api: api.request(subject, body))


def publish(server: ServerProcess, subject: str, count: int = 1) -> None:
    """Store messages."""

    async def work(api: Api) -> None:
        js = api.connection.jetstream()
        for number in range(count):
            await js.publish(subject, b"%d" % number)

    ask(server, work)


def actual_of(server: ServerProcess) -> Actual:
    return ask(server, read_actual)


def jetlake(server: ServerProcess, *words: object, environment: Mapping[str, str] | None = None) -> Result:
    """Run a command line against a server."""
    # Help and errors of typer are as wide as the terminal.
    return CliRunner(env={**os.environ, "COLUMNS": "200", **(environment or {})}).invoke(
        create(), [*(str(word) for word in words), "--server", server.url]
    )


def declared(folder: Path, text: str, name: str = "declaration.yaml", **variables: str) -> Declaration:
    """Read a declaration from its text."""
    path = folder / name
    path.write_text(text)
    return read([path], variables, {})


def planned(declaration: Declaration, actual: Actual, **options: bool) -> Plan:
    """Make a plan for a server."""
    return make_plan(declaration, actual, datetime(2026, 1, 1, tzinfo=UTC), Options(**options))


def steps_of(plan: Plan) -> list[str]:
    """Return the steps of a plan as `create stream ORDERS`."""
    return [f"{step.action} {step.title}" for step in plan.steps]
