"""`jetlake sql` against a real server."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from jetlake.cli.app import create
from jetlake.cli.sql import NAMED, first_sentence


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_question_is_answered_as_a_table_and_as_json(jetlake_shore):
    name = jetlake_shore.create("ASKED")
    jetlake_shore.fill(name, 8)
    question = (
        "SELECT subject, count(*) AS n, max(data) AS newest FROM streams.asked "
        "GROUP BY subject ORDER BY subject LIMIT 1"
    )

    answer = subprocess.run(
        [
            sys.executable,
            "-m",
            "jetlake",
            "sql",
            question,
            "--server",
            jetlake_shore.url,
            "--json",
            "--master",
            "local[1]",
        ],
        capture_output=True,
        text=True,
        check=False,
    )

    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout) == {"subject": "ASKED.0", "n": 2, "newest": '{"n": 4}'}


def test_a_table_that_is_not_there_is_told_before_spark_starts(jetlake_shore):
    jetlake_shore.create("KNOWN")

    result = CliRunner().invoke(create(), ["sql", "SELECT * FROM streams.knwon", "--server", jetlake_shore.url])

    assert result.exit_code == 1
    assert "there is no stream for the table streams.knwon; did you mean streams.known?" in result.output


def test_a_server_that_is_not_there_is_told_before_spark_starts():
    result = CliRunner().invoke(create(), ["sql", "SELECT 1 FROM streams.x", "--server", "nats://127.0.0.1:1"])

    assert result.exit_code == 1
    assert "check that a server runs there" in result.output


def test_the_tables_of_a_question_are_found_in_it():
    question = "SELECT * FROM streams.orders o JOIN Streams . `line_items` USING (id) -- streams\n"

    assert NAMED.findall(question) == ["orders", "line_items"]


def test_a_mistake_is_told_without_the_plan_behind_it():
    assert first_sentence("[X] column `a` cannot be resolved.; line 1 pos 7;\n'Project\n+- Y") == (
        "[X] column `a` cannot be resolved.; line 1 pos 7"
    )


def test_our_own_words_are_told_without_the_stack_around_them():
    text = (
        "[X] Failed: Traceback:\n File x\njetlake.errors.ClientError: there is no stream 'A': create it\n SQLSTATE: 1"
    )

    assert first_sentence(text) == "there is no stream 'A': create it"
