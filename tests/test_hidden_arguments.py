"""Secrets of the command line are covered, and nothing else is."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from jetlake.hidden_arguments import cover
from tests.waiting import until

PROGRAM = """
import sys
from jetlake import hidden_arguments
hidden_arguments.hide()
print("hidden", flush=True)
sys.stdin.read()
"""


def command_line(process_id: int) -> bytes:
    return Path(f"/proc/{process_id}/cmdline").read_bytes()


@pytest.mark.parametrize(
    ("given", "covered"),
    [
        ("x --password secret pub a", "x --password xxxxxx pub a"),
        ("x --password=secret pub", "x --password=xxxxxx pub"),
        ("x -pass secret", "x -pass xxxxxx"),
        ("x --auth secret --user ada", "x --auth xxxxxx --user ada"),
        ("x --token", "x --token"),
        ("x -s nats://ada:secret@host:4222,nats://token@b", "x -s nats://xxxxxxxxxx@host:4222,nats://xxxxx@b"),
        ("x pub a@b secret --passive yes", "x pub a@b secret --passive yes"),
    ],
)
def test_only_secrets_are_covered(given, covered):
    assert cover(given.replace(" ", "\0").encode()) == covered.replace(" ", "\0").encode()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems keep arguments elsewhere")
def test_other_users_do_not_see_them():
    words = [sys.executable, "-c", PROGRAM, "--user", "ada", "--password", "geheim"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"hidden\n"
        shown = command_line(process.pid)
        process.communicate(b"")

    assert b"geheim" not in shown
    assert shown.endswith(b"--user\0ada\0--password\0xxxxxx\0")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems keep arguments elsewhere")
async def test_a_server_hides_its_password(tmp_path):
    words = [sys.executable, "-m", "jetlake", "server", "-a", "127.0.0.1", "-p", "-1", "--user", "ada"]
    words += ["--pass", "geheim", "--ports_file_dir", str(tmp_path)]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:  # noqa: ASYNC220
        try:
            await until(lambda: any(tmp_path.iterdir()))
            shown = command_line(process.pid)
        finally:
            process.terminate()

    assert b"geheim" not in shown
    assert b"--user\0ada\0" in shown
