"""The command `jetlake`: what it lists, what it hands over."""

import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from jetlake.cli.app import create, main


def test_help_lists_every_command():
    answer = CliRunner().invoke(create(), ["--help"])

    assert answer.exit_code == 0
    for command in ("server", "bench", "check", "stream", "version"):
        assert re.search(rf"\b{command}\b", answer.output)


def test_version_names_both_versions():
    answer = CliRunner().invoke(create(), ["version"])

    assert answer.exit_code == 0
    assert re.search(r"^jetlake \d+\.\d+\.\d+ \(engine: (debug|release) build\)$", answer.output, re.MULTILINE)
    assert "compatible with nats-server 2.15.1" in answer.output


def test_server_is_handed_over_with_its_flags_untouched(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["jetlake", "server", "-v"])

    assert main() == 0
    assert capsys.readouterr().out == "nats-server: v2.15.1\n"


def test_python_dash_m_is_the_same_command():
    answer = subprocess.run(
        [sys.executable, "-m", "jetlake", "server", "--bogus"], capture_output=True, text=True, check=False, timeout=30
    )

    assert answer.returncode == 0
    assert answer.stderr == "flag provided but not defined: -bogus\n"


def test_unknown_command_is_an_error(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["jetlake", "bogus"])

    with pytest.raises(SystemExit) as end:
        main()

    assert end.value.code == 2
