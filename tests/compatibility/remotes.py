"""A server of either kind with the origins, and one of ours that copies from it."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.compatibility.jetstream import POLL_SECONDS, JetStream, Json
from tests.compatibility.origins import PATIENCE_SECONDS
from tests.compatibility.server_process import ServerProcess, start_server_process

API = "$JS.hub.API"
EXTERNAL: Json = {"api": API, "deliver": ""}


class Pair:
    """The two servers, each in a folder of its own, to be killed and started again on the same port and store."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        self.folder = folder
        self.origin_config = ""
        self.domain = ""
        self.origin_login: dict[str, Any] = {}
        # Of the remote `hub`, besides its address.
        self.remote = ""
        self.copy_config = ""
        self.servers: dict[str, ServerProcess] = {}
        for name in ("origin", "copy"):
            (folder / name).mkdir()

    def start_origin(self, kind: str | None = None) -> ServerProcess:
        port = self.servers["origin"].port if "origin" in self.servers else -1
        domain = f"domain: {self.domain}" if self.domain else ""
        config = f'jetstream {{ store_dir: "{self.folder / "origin" / "store"}"\n{domain} }}\n{self.origin_config}'
        self.servers["origin"] = start_server_process(
            kind or self.kind, self.folder / "origin", config=config, port=port
        )
        return self.servers["origin"]

    def start_copy(self, url: str = "") -> ServerProcess:
        url = url or f'"{self.servers["origin"].url}"'
        config = (
            f'jetstream {{ store_dir: "{self.folder / "copy" / "store"}"\n'
            f"remotes {{ hub {{ url: {url}, {self.remote} }} }} }}\n{self.copy_config}"
        )
        self.servers["copy"] = start_server_process("jetlake", self.folder / "copy", config=config)
        return self.servers["copy"]

    @contextlib.contextmanager
    def origin(self) -> Iterator[JetStream]:
        with JetStream(self.servers["origin"], **self.origin_login) as js:
            yield js

    @contextlib.contextmanager
    def copy(self, **login: Any) -> Iterator[JetStream]:
        with JetStream(self.servers["copy"], **login) as js:
            yield js

    def kill(self, name: str) -> None:
        self.servers[name].signal(signal.SIGKILL)
        self.servers[name].wait_for_exit()

    def stop(self) -> None:
        for server in self.servers.values():
            server.stop()


@pytest.fixture
def pair(server_kind: str, tmp_path: Path) -> Iterator[Pair]:
    """Two servers that are not started yet."""
    pair = Pair(server_kind, tmp_path)
    yield pair
    pair.stop()


@pytest.fixture
def killable(pair: Pair) -> Pair:
    """Two servers without special settings, for one test."""
    pair.start_origin()
    pair.start_copy()
    return pair


@pytest.fixture(scope="module")
def shared_pair(server_kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Two servers without special settings, for all tests of a module."""
    pair = Pair(server_kind, tmp_path_factory.mktemp("pair"))
    pair.start_origin()
    pair.start_copy()
    yield pair
    pair.stop()


@pytest.fixture
def started(shared_pair: Pair) -> Iterator[Pair]:
    """The shared servers, without any stream."""
    yield shared_pair
    for connected in (shared_pair.copy, shared_pair.origin):
        with connected() as js:
            delete_streams(js)


def delete_streams(js: JetStream) -> None:
    for name in js.api("STREAM.NAMES")["streams"] or []:
        js.api(f"STREAM.DELETE.{name}")


def origin_of(name: str, **more: Any) -> Json:
    return {"name": name, "external": EXTERNAL, **more}


def state_of(js: JetStream, stream: str) -> Json:
    """Return what a stream says about its only origin."""
    info = js.info(stream)
    return dict(info.get("mirror") or info["sources"][0])


def wait_for_origin(js: JetStream, stream: str, condition: Callable[[Json], bool]) -> Json:
    """Wait until the only origin of a stream is as it should be, and return how it is."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition(state := state_of(js, stream)):
        assert time.monotonic() < deadline, f"the origin stays {state}"
        time.sleep(POLL_SECONDS)
    return state


def error_text(js: JetStream, stream: str) -> str:
    """Wait until the only origin of a stream has an error, and return its words."""
    state = wait_for_origin(js, stream, lambda state: "error" in state)
    return str(state["error"]["description"])
