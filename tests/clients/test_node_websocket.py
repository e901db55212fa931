"""nats.js over WebSocket, on Node."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.client_script import run_script
from tests.clients.websocket_lines import EXPECTED_LINES, restartable


@pytest.mark.timeout(900)
@pytest.mark.parametrize("keys", ["", "compress: true"])
def test_node_client_does_its_work_over_websocket(node_folder: Path, start_server, tmp_path: Path, keys: str) -> None:
    start, url = restartable(start_server, tmp_path, keys)

    # Node had no WebSocket of its own before version 22 without this flag, which later versions take and ignore.
    command = ["node", "--experimental-websocket", "--no-warnings", "websocket.mjs"]
    lines = run_script(command, node_folder, start, url)

    assert lines == EXPECTED_LINES
