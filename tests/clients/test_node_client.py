"""nats.js on Node."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.clients.client_script import CACHE, SOURCES, prepare, require_tool, run_script

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


@pytest.fixture(scope="session")
def node_folder() -> Path:
    """The script beside its installed library; installed anew when package.json changes."""
    require_tool("node", "apt-get install nodejs")
    npm = require_tool("npm", "apt-get install npm")
    folder = CACHE / "node"
    folder.mkdir(parents=True, exist_ok=True)
    package = (SOURCES / "node" / "package.json").read_text()
    installed = folder / "installed.json"
    if not installed.exists() or installed.read_text() != package:
        (folder / "package.json").write_text(package)
        prepare([npm, "install", "--no-audit", "--no-fund", "--no-package-lock"], folder)
        installed.write_text(package)
    shutil.copy(SOURCES / "node" / "script.mjs", folder)
    return folder


@pytest.mark.timeout(300)
def test_node_client_does_its_ordinary_work(node_folder: Path, start_server) -> None:
    lines = run_script(["node", "script.mjs"], node_folder, start_server)

    assert lines == EXPECTED_LINES
