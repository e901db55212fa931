"""Gives this suite the fixtures of both kinds of server."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.clients.client_script import CACHE, SOURCES, prepare, require_tool
from tests.compatibility.fixtures import mark_items, register_markers, server_kind, start_server  # noqa: F401


def pytest_configure(config: pytest.Config) -> None:
    register_markers(config)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark_items(items, Path(__file__).parent)


@pytest.fixture(scope="session")
def node_folder() -> Path:
    """The scripts beside their installed libraries; installed anew when package.json changes."""
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
    for script in (*(SOURCES / "node").glob("*.mjs"), *(SOURCES / "node").glob("*.html")):
        shutil.copy(script, folder)
    return folder


@pytest.fixture(scope="session")
def page_folder(node_folder: Path) -> Path:
    """The same, with the libraries as files that a page can import."""
    modules = node_folder / "node_modules"
    shutil.copy(modules / "nats.ws" / "esm" / "nats.js", node_folder / "nats.ws.js")
    bundle = ["browser_library.mjs", "--bundle", "--format=esm", "--platform=browser", "--outfile=nats_core.js"]
    prepare([str(modules / ".bin" / "esbuild"), *bundle], node_folder)
    return node_folder
