"""Lines to paste reach the `jetlake` that printed them."""

import subprocess
import sys
from pathlib import Path

import pytest

from jetlake.cli.own_name import own_name

PROGRAMS = Path(sys.executable).parent


@pytest.fixture(autouse=True)
def needs_the_script():
    if not (PROGRAMS / "jetlake").is_file():
        pytest.skip("jetlake is not installed beside this Python")


def test_name_alone_is_enough_where_a_shell_finds_it(monkeypatch):
    monkeypatch.setenv("PATH", f"{PROGRAMS}:/usr/bin:/bin")

    assert own_name() == "jetlake"


def test_path_is_given_where_a_shell_finds_none(monkeypatch):
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.chdir(PROGRAMS.parent)

    answer = subprocess.run(f"{own_name()} version", shell=True, capture_output=True, text=True, check=False)

    assert own_name() == f"{PROGRAMS.name}/jetlake"
    assert answer.returncode == 0
    assert answer.stdout.startswith("jetlake ")


def test_path_is_given_where_a_shell_finds_another_one(monkeypatch, tmp_path):
    other = tmp_path / "jetlake"
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.chdir(tmp_path)

    assert own_name() == str(PROGRAMS / "jetlake")
