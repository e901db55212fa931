"""`jetlake errors`: what the numbers in refusals mean."""

import json
import subprocess
import sys

from typer.testing import CliRunner

from jetlake.cli.app import create
from jetlake.cli.errors import ADVICE
from jetlake.management.wire.error_codes import ErrorCode


def run(*words):
    return CliRunner().invoke(create(), ["errors", *words])


def test_number_is_explained_with_what_to_do():
    text = run("lookup", "10059").output

    assert "text: stream not found" in text
    assert "what to do: `jetlake stream ls`" in text
    assert json.loads(run("lookup", "10059", "--json").output)["code"] == 404


def test_unknown_number_ends_with_1():
    answer = run("lookup", "1")

    assert (answer.exit_code, answer.stderr) == (
        1,
        "jetlake errors lookup: there is no error 1; `jetlake errors ls` lists them\n",
    )


def test_all_errors_are_listed_and_searched():
    assert len(json.loads(run("ls", "--json").output)) == len(ErrorCode)
    assert [line.split("\t")[0] for line in run("ls", "sealed").output.splitlines()] == ["error", "10109"]
    assert run("ls", "(").exit_code == 2


def test_advice_is_about_errors_that_exist():
    assert set(ADVICE) <= {code.value[0] for code in ErrorCode}


def test_process_needs_neither_server_nor_engine():
    program = (
        "import sys; sys.argv = ['jetlake', 'errors', 'lookup', '10059']\n"
        "from jetlake.cli.app import main\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code\n"
        "assert 'nats' not in sys.modules and 'jetlake._engine' not in sys.modules"
    )

    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)

    assert answer.returncode == 0, answer.stderr
