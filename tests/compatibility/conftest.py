"""Gives this suite the fixtures of both kinds of server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compatibility.callout_site import start_callout, xkey  # noqa: F401
from tests.compatibility.fixtures import (  # noqa: F401
    client,
    library_client,
    mark_items,
    monitored,
    one_client,
    other_client,
    register_markers,
    server,
    server_kind,
    start_monitored,
    start_server,
    start_site,
    subject,
)
from tests.compatibility.websocket_servers import (  # noqa: F401
    authority,
    secure_config,
    server_certificate,
    start_once,
    websocket_client,
    websocket_server,
)


def pytest_configure(config: pytest.Config) -> None:
    register_markers(config)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark_items(items, Path(__file__).parent)
