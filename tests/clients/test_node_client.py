"""nats.js on Node."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.client_script import run_script

EXPECTED_LINES = [
    "message node.words.one ONE",
    "message node.words.two TWO",
    "message node.words.three THREE",
    "queue total 100 shared true",
    "headers labelled green,blue",
    "request desserts",
    "no responders true",
    "drain 50 true",
    "ready to reconnect",
    "reconnect hello again",
]


@pytest.mark.timeout(900)
def test_node_client_does_its_ordinary_work(node_folder: Path, start_server) -> None:
    lines = run_script(["node", "script.mjs"], node_folder, start_server)

    assert lines == EXPECTED_LINES
