"""The command `jetlake`: what it lists, what it hands over, how it ends."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from jetlake.cli.app import create, main
from jetlake.cli.commands import COMMANDS
from jetlake.cli.invocation import FLAGS
from jetlake.cli.lazy import find

REPOSITORY = Path(__file__).parents[2]

HEAVY = ("nats", "pyspark", "cryptography", "jetlake._engine", "jetlake.server", "asyncio", "jetlake.client")
"""What the list of commands must not wait for."""


def run(*words):
    return subprocess.run(
        [sys.executable, "-m", "jetlake", *words], capture_output=True, text=True, check=False, timeout=60
    )


def test_help_lists_every_command():
    answer = CliRunner().invoke(create(), ["--help"])

    assert answer.exit_code == 0
    for command in COMMANDS:
        if not command.hidden:
            assert re.search(rf"\b{command.name}\b", answer.output)


def test_help_imports_no_command_and_nothing_heavy():
    program = (
        "import sys, atexit; sys.argv = ['jetlake', '--help']\n"
        "atexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
        "from jetlake.cli.app import main; main()"
    )

    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)

    loaded = set(answer.stderr.split())
    assert "jetlake.cli.lazy" in loaded
    assert not loaded & {command.module for command in COMMANDS}
    assert not [name for name in HEAVY if name in loaded]


def test_a_command_imports_only_its_own_module():
    program = (
        "import sys, atexit; sys.argv = ['jetlake', 'stream', 'ls', '--help']\n"
        "atexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
        "from jetlake.cli.app import main; main()"
    )

    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)

    loaded = set(answer.stderr.split())
    assert "jetlake.cli.stream" in loaded
    assert not loaded & ({command.module for command in COMMANDS} - {"jetlake.cli.stream", "jetlake.cli.sub"})
    assert not loaded & {"nats", "pyspark", "jetlake._engine"}


def test_help_of_a_command_says_where_the_other_flags_are():
    for words in (["rtt", "--help"], ["stream", "--help"], ["stream", "ls", "--help"]):
        assert "--server and --context" in CliRunner().invoke(create(), words).output


def test_every_line_of_the_table_leads_somewhere():
    for command in COMMANDS:
        assert callable(find(command)), command.name


def test_version_names_both_versions():
    answer = CliRunner().invoke(create(), ["version"])

    assert answer.exit_code == 0
    assert re.search(r"^jetlake \d+\.\d+\.\d+ \(engine: (debug|release) build\)$", answer.output, re.MULTILINE)
    assert "compatible with nats-server 2.15.1" in answer.output


def test_server_is_handed_over_with_its_flags_untouched(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["jetlake", "server", "-v"])

    assert main() == 0
    assert capsys.readouterr().out == "nats-server: v2.15.1\n"


def test_server_takes_its_flags_within_the_application_too(capsys):
    answer = CliRunner().invoke(create(), ["server", "-v"])

    assert (answer.exit_code, answer.output) == (0, "nats-server: v2.15.1\n")


def test_python_dash_m_is_the_same_command():
    answer = run("server", "--bogus")

    assert answer.returncode == 0
    assert answer.stderr == "flag provided but not defined: -bogus\n"


def test_unknown_command_is_an_error_with_a_suggestion():
    answer = run("strem", "ls")

    assert answer.returncode == 2
    assert "Did you mean 'stream'" in answer.stderr


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("stream", "ls", "--server", "nats://127.0.0.1:1"), 1, "jetlake stream ls: cannot connect to"),
        (("stream", "ls", "--bogus"), 2, "No such option"),
        (("stream", "ls", "--server"), 2, "--server needs a value"),
        (("rtt", "--timeout", "soon"), 1, "jetlake rtt: 'soon' is not a time"),
        (("rtt", "--context", "nowhere"), 1, "there is no context 'nowhere'"),
    ],
)
def test_failures_have_their_exit_code_and_no_traceback(words, code, text):
    answer = run(*words)

    assert answer.returncode == code
    assert text in answer.stderr
    assert "Traceback" not in answer.stderr


def test_password_in_an_address_is_not_shown_when_it_cannot_be_reached():
    answer = run("rtt", "-s", "nats://ada:secret@127.0.0.1:1")

    assert answer.returncode == 1
    assert "secret" not in answer.stderr


def test_reference_explains_every_command():
    page = (REPOSITORY / "docs" / "reference" / "command_line.md").read_text()

    unexplained = [
        c.name for c in COMMANDS if not c.hidden and f"`jetlake {c.name}" not in page and f"`{c.name}`" not in page
    ]

    assert not unexplained, f"explain these in docs/reference/command_line.md: {', '.join(unexplained)}"


def test_reference_explains_every_flag_of_all_commands():
    page = (REPOSITORY / "docs" / "reference" / "command_line.md").read_text()

    assert [name for flag in FLAGS for name in flag.names if f"`{name}`" not in page] == []
