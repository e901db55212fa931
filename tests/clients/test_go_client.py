"""nats.go."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.client_script import CACHE, SOURCES, prepare, require_tool, run_script

EXPECTED_LINES = [
    "message go.words.one ONE",
    "message go.words.two TWO",
    "message go.words.three THREE",
    "after the maximum true",
    "queue total 100 shared true",
    "headers labelled green,blue",
    "request HELLO",
    "no responders true",
    "drain 50 true",
    "ready to reconnect",
    "reconnect hello again",
]


@pytest.fixture(scope="session")
def go_program() -> Path:
    go = require_tool("go", "apt-get install golang")
    program = CACHE / "go" / "clientscript"
    program.parent.mkdir(parents=True, exist_ok=True)
    prepare([go, "build", "-o", str(program), "."], SOURCES / "go")
    return program


@pytest.mark.timeout(900)
def test_go_client_does_its_ordinary_work(go_program: Path, start_server) -> None:
    lines = run_script([str(go_program)], go_program.parent, start_server)

    assert lines == EXPECTED_LINES
