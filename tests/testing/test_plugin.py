"""The pytest plug-in: each test has a server of its own, and what it offers works. `tests/docs` runs the guide."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

SERVERS = """
seen = set()

def test_first(jetlake_server, jetlake_client):
    jetlake_client.streams.create("S", subjects=["s"])
    seen.add(jetlake_server.server_id)

def test_second(jetlake_server, jetlake_client):
    assert jetlake_client.streams.names() == []
    assert jetlake_server.server_id not in seen

def test_clock(jetlake_server, jetlake_clock):
    jetlake_clock.advance("1h")
    jetlake_clock.advance(1.5)
    assert jetlake_clock.advanced_s == 3601.5

def test_wrong_time(jetlake_clock):
    import jetlake, pytest
    with pytest.raises(jetlake.ConfigurationError, match="'soon' is not a duration"):
        jetlake_clock.advance("soon")

import pytest

@pytest.mark.jetlake_server(token="outer", name="kept")
class TestOptions:
    @pytest.mark.jetlake_server(token="inner")
    def test_inner_marker_wins(self, jetlake_server):
        assert jetlake_server.login() == {"token": "inner"}
"""


def run_pytest(folder: Path, *files: str) -> subprocess.CompletedProcess[str]:
    """Run pytest as a project of its own does, with the plug-in that its entry point names."""
    settings = ("addopts = --strict-markers", "filterwarnings = error", "asyncio_default_fixture_loop_scope = function")
    (folder / "pytest.ini").write_text("\n".join(("[pytest]", *settings)))
    entry = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["entry-points"]["pytest11"]["jetlake"]
    # Other plug-ins are not loaded by themselves; ours by its name, whether or not this tree is installed.
    command = [sys.executable, "-m", "pytest", "-q", "-p", entry, "-p", "pytest_asyncio.plugin", *files]
    return subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=55,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )


def test_each_test_has_a_server_of_its_own(tmp_path):
    (tmp_path / "test_servers.py").write_text(SERVERS)

    answer = run_pytest(tmp_path)

    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "5 passed" in answer.stdout


@pytest.mark.parametrize("module", ["jetlake.server", "nats", "msgspec"])
def test_plug_in_loads_nothing_until_a_test_asks(module):
    program = f"import sys, jetlake.testing.plugin; print({module!r} in sys.modules)"

    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)

    assert answer.stdout == "False\n"
