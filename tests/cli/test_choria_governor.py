"""`jetlake choria governor` and `jetlake choria tool submit`: Choria's words for commands of ours."""

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from jetlake.cli.choria import take_config

_numbers = itertools.count(1)


@pytest.fixture
def name():
    return f"CH{next(_numbers)}"


def test_the_exit_code_is_the_command_s(process, name):
    made = process("choria", "governor", "add", name, "2", "1m")
    ended = process("choria", "gov", "run", name, "--", "sh", "-c", "exit 9")

    assert made.returncode == 0
    assert made.stdout.startswith("Configuration:\n\n  Capacity: 2\n")
    assert ended.returncode == 9


@pytest.mark.parametrize("position", range(6))
def test_the_configuration_may_be_named_anywhere(position):
    words = ["governor", "run", "PUPPET", "--max-wait", "1m", "puppet agent"]

    for flag in (["--config", "server.conf"], ["--config=server.conf"]):
        line, rest = take_config([*words[:position], *flag, *words[position:]])
        assert line.config == Path("server.conf")
        assert rest == words


def test_the_collective_is_that_of_the_configuration(process, tmp_path, name):
    config = tmp_path / "server.conf"
    config.write_text("collectives = dev, mcollective\n")

    made = process("choria", "governor", "add", name, "--config", str(config), "1", "1m")
    listed = process("governor", "ls", "--collective", "dev", "--json")

    assert made.returncode == 0, made.stderr
    assert json.loads(listed.stdout) == [name]
    process("governor", "rm", name, "--force")


def test_the_servers_are_those_of_the_configuration(tmp_path, url, name):
    config = tmp_path / "server.conf"
    config.write_text(f"plugin.choria.middleware_hosts = {url.removeprefix('nats://')}\n")
    environment = {key: value for key, value in os.environ.items() if key != "NATS_URL"}

    made = subprocess.run(
        [sys.executable, "-m", "jetlake", "choria", "governor", "add", name, "1", "1m", "--config", str(config)],
        env=environment, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip

    assert made.returncode == 0, made.stderr


def test_a_configuration_that_is_not_there_is_a_warning(process, name):
    made = process("choria", "governor", "add", name, "1", "1m", "--config", "/nonexistent/server.conf")

    assert made.returncode == 0
    assert "warning: cannot read /nonexistent/server.conf" in made.stderr


def test_a_spool_size_that_is_no_number_is_refused(process, tmp_path):
    config = tmp_path / "server.conf"
    config.write_text(f"plugin.choria.submission.spool = {tmp_path}\nplugin.choria.submission.max_spool_size = many\n")

    refused = process("choria", "tool", "submit", "--config", str(config), "a", "-", stdin="x")

    assert refused.returncode == 1
    assert "max_spool_size is 'many': write a whole number" in refused.stderr


def test_an_unknown_command_is_refused(process):
    refused = process("choria", "tool", "sub")

    assert refused.returncode == 1
    assert "FATA[0000] Could not run Choria: unknown command 'tool sub'" in refused.stderr
