"""Shells complete commands, flags, and names that the server knows now."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from jetlake.cli import complete
from jetlake.cli.app import create
from jetlake.cli.complete import candidates, main, names_of
from jetlake.cli.invocation import Invocation
from jetlake.client.api import open_api


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """The server may take its time: nobody is waiting for the key they have pressed."""
    monkeypatch.setattr(complete, "SERVER_S_MAX", 60.0)


@pytest.fixture
def names(done, read, monkeypatch, url):
    monkeypatch.setenv("NATS_URL", url)
    if "COMPLETE" not in read("stream", "ls", "--names"):
        done("stream", "add", "COMPLETE", "--subjects", "complete")
        done("consumer", "add", "COMPLETE", "worker")


def test_commands_and_groups_are_completed():
    assert candidates(["str"]) == ["stream"]
    assert candidates(["stream", "re"]) == ["report", "restore"]
    assert {"pub", "sub", "stream", "doctor"} <= set(candidates([""]))
    assert "__complete" not in candidates([""])


def test_flags_of_the_command_and_of_all_commands_are_completed():
    assert candidates(["stream", "add", "X", "--max-msg"]) == ["--max-msg-size", "--max-msgs", "--max-msgs-per-subject"]
    assert candidates(["stream", "ls", "--tls"]) == ["--tlsca", "--tlscert", "--tlsfirst", "--tlskey"]
    assert candidates(["--ser"]) == ["--server"]


def test_names_come_from_the_server(names):
    assert candidates(["stream", "info", "COM"]) == ["COMPLETE"]
    assert candidates(["consumer", "info", "COMPLETE", ""]) == ["worker"]
    assert candidates(["consumer", "next", "--raw", "COMPLETE", "w"]) == ["worker"]
    assert candidates(["stream", "info", "COMPLETE", ""]) == []


async def test_buckets_and_keys_are_found_where_a_command_wants_them(url):
    invocation = Invocation({"url": url})
    async with open_api(url) as api:
        config = {"name": "KV_box", "subjects": ["$KV.box.>"], "max_msgs_per_subject": 1, "allow_direct": True}
        await api.request("STREAM.CREATE.KV_box", config)
        for key in ("b.c", "a"):
            await api.ask(f"$KV.box.{key}", b"value")

    assert await names_of("BUCKET", {}, invocation) == ["box"]
    assert await names_of("KEY", {"BUCKET": "box"}, invocation) == ["a", "b.c"]


def test_values_of_flags_are_left_to_the_shell(names):
    assert candidates(["stream", "info", "--server", ""]) == []
    assert candidates(["stream", "add", "--max-age", ""]) == []


def test_contexts_are_completed():
    CliRunner().invoke(create(), ["context", "add", "production"])

    assert candidates(["context", "select", "pro"]) == ["production"]


def test_failure_is_silent(capsys):
    assert main(["--", "-s", "nats://127.0.0.1:1", "stream", "info", ""]) == 0
    assert main(["bogus", "words", ""]) == 0
    assert main(["stream", "ls", "--context", "nowhere", "--bogus", "x"]) == 0

    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_are_understood_by_their_shells(shell):
    script = CliRunner().invoke(create(), ["completion", shell]).output

    assert "jetlake __complete --" in script
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=script, text=True, check=True, timeout=60)


def test_bash_asks_and_gets_names(names, url):
    program = (
        "source <(jetlake completion bash); COMP_WORDS=(jetlake stream info COM); COMP_CWORD=3; "
        '_jetlake_complete; echo "${COMPREPLY[@]}"'
    )
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"

    answer = subprocess.run(
        ["bash", "-c", program],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={"PATH": path, "NATS_URL": url, "JETLAKE_COMPLETION_S_MAX": "20"},
    )

    assert answer.stdout == "COMPLETE\n"


def test_unknown_shell_is_wrong_usage():
    assert CliRunner().invoke(create(), ["completion", "tcsh"]).exit_code == 2
