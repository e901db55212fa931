"""Servers with a WebSocket listener, for the tests that compare them: fixtures, and the configurations they take."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.compatibility.certificates import Authority, Certificate
from tests.compatibility.server_process import ServerProcess, start_server_process
from tests.compatibility.websocket_wire import WebSocketClient


def websocket_config(keys: str = "", rest: str = "") -> str:
    """Return a configuration with a listener in the clear: keys of the block, and what stands outside of it."""
    return f"""
        websocket {{
          listen: "127.0.0.1:-1"
          no_tls: true
          {keys}
        }}
        {rest}
    """


@pytest.fixture(scope="module")
def start_once(server_kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., ServerProcess]]:
    """Start one server per configuration and flags for the whole module."""
    processes: dict[tuple[str, tuple[str, ...]], ServerProcess] = {}

    def start(config: str, flags: tuple[str, ...] = ()) -> ServerProcess:
        key = (config, flags)
        if key not in processes:
            folder = tmp_path_factory.mktemp(server_kind)
            processes[key] = start_server_process(server_kind, folder, list(flags), config)
        return processes[key]

    yield start
    for process in processes.values():
        process.stop()


@pytest.fixture
def websocket_server(start_once: Callable[..., ServerProcess]) -> ServerProcess:
    """A server that speaks WebSocket in the clear, shared by the tests of a module."""
    return start_once(websocket_config())


@pytest.fixture
def websocket_client(websocket_server: ServerProcess) -> Iterator[WebSocketClient]:
    """A client that has read INFO and not yet said CONNECT."""
    with WebSocketClient(websocket_server) as client:
        yield client


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def server_certificate(authority: Authority) -> Certificate:
    return authority.server()


@pytest.fixture
def secure_config(authority: Authority, server_certificate: Certificate) -> Callable[..., str]:
    """Write a configuration with TLS: keys of its tls block, keys of the websocket block, and the rest."""

    def write(tls_keys: str = "", keys: str = "", rest: str = "") -> str:
        return f"""
            websocket {{
              listen: "127.0.0.1:-1"
              tls {{
                cert_file: "{server_certificate.certificate_file}"
                key_file: "{server_certificate.key_file}"
                ca_file: "{authority.file}"
                {tls_keys}
              }}
              {keys}
            }}
            {rest}
        """

    return write
