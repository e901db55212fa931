"""`jetlake sql --spark`: the same tables and columns as without it."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from jetlake.cli.app import create
from jetlake.errors import ConfigurationError
from jetlake.sql.on_spark import SparkEngine, find_sources, for_spark, table_names
from jetlake.sql.sources import LakeSource, QueriedStream, Sources
from jetlake.sql.values import rows_of


@pytest.fixture
def ask(spark, shore, tmp_path):
    """Ask the session of all tests, and return the rows."""

    def run(query, columns="", rows_max=None):
        sources = Sources({"url": shore.url}, tmp_path / "lake")
        answer = SparkEngine(spark, sources, columns).ask(query, find_sources(query, sources), rows_max)
        return [row for batch in answer.batches for row in rows_of(batch)]

    return run


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_streams_and_lake_tables_have_the_same_columns_as_without_spark(ask, shore, spark, tmp_path):
    from jetlake.spark.lake.folder import Lake

    name = shore.create()
    shore.fill(name, 8)
    shore.publish(f"{name}.x", b"\xff")
    table = f"streams.{name.lower()}"
    cities = spark.createDataFrame([(0, "Oslo"), (1, "Rome")], "n INT, city STRING")
    Lake(tmp_path / "lake").table("cities").append(cities, "q", 0)

    assert ask(f"SELECT sequence, payload FROM {table} WHERE sequence > 7 ORDER BY sequence") == [
        {"sequence": 8, "payload": '{"n": 7}'},
        {"sequence": 9, "payload": None},
    ]
    query = f"SELECT c.city, s.value.n AS n FROM {name} s JOIN lake.cities c ON c.n = s.value.n ORDER BY n"
    assert ask(query, "n INT") == [{"city": "Oslo", "n": 0}, {"city": "Rome", "n": 1}]
    assert ask(f"SELECT get_json_object(payload, '$.n') AS n FROM {table} ORDER BY sequence", rows_max=1) == [
        {"n": "0"}
    ]
    with pytest.raises(ConfigurationError, match="there is no column subjct; did you mean subject"):
        ask(f"SELECT subjct FROM {table}")
    with pytest.raises(ConfigurationError, match=r"there is no table lake\.citie; did you mean lake\.cities"):
        ask("SELECT * FROM lake.citie")
    with pytest.raises(ConfigurationError, match="there is no table citie; did you mean cities"):
        ask("SELECT * FROM citie")


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_command_asks_spark(jetlake_shore):
    name = jetlake_shore.create("ASKED")
    jetlake_shore.fill(name, 8)
    question = (
        "SELECT subject, count(*) AS n, max(data) AS newest FROM streams.asked "
        "GROUP BY subject ORDER BY subject LIMIT 1"
    )
    command = [sys.executable, "-m", "jetlake", "sql", question, "--spark", "--master", "local[1]", "--json"]

    answer = subprocess.run([*command, "--server", jetlake_shore.url], capture_output=True, text=True, check=False)

    assert (answer.returncode, answer.stderr) == (0, "")
    assert json.loads(answer.stdout) == {"subject": "ASKED.0", "n": 2, "newest": '{"n": 4}'}


def test_what_is_not_there_is_told_before_spark_starts(jetlake_shore):
    jetlake_shore.create("KNOWN")

    def run(query, server):
        return CliRunner().invoke(create(), ["sql", query, "--spark", "--server", server])

    missing = run("SELECT * FROM streams.knwon", jetlake_shore.url)
    unreachable = run("SELECT 1 FROM streams.x", "nats://127.0.0.1:1")

    assert (missing.exit_code, unreachable.exit_code) == (1, 1)
    assert "there is no table streams.knwon; did you mean streams.known?" in missing.stderr
    assert "127.0.0.1:1" in unreachable.stderr


def test_without_pyspark_one_line_says_what_to_install(jetlake_shore, monkeypatch):
    name = jetlake_shore.create()
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)

    answer = CliRunner().invoke(
        create(), ["sql", f"SELECT * FROM {name.lower()}", "--spark", "--server", jetlake_shore.url]
    )

    assert answer.exit_code == 1
    assert "run `pip install 'jetlake[spark]'`" in answer.stderr
    assert len(answer.stderr.splitlines()) == 1


def test_the_tables_of_a_query_are_found_in_it():
    query = (
        "SELECT * FROM streams.orders o JOIN Streams . `line-items` USING (id) JOIN lake.x JOIN cities -- streams.no\n"
        "WHERE a = 'streams.neither' AND b IN (SELECT id FROM /* lake.nor */ people) AND now() > c"
    )

    assert table_names(query) == (
        [("streams", "orders"), ("streams", "line-items"), ("lake", "x")],
        ["cities", "people"],
    )


def test_names_of_a_query_become_those_that_spark_knows():
    found = [QueriedStream("my_orders", "My-Orders"), LakeSource("Cities")]
    query = "SELECT 'lake.cities' FROM streams.`My-Orders` JOIN lake.cities JOIN cities JOIN own"

    assert for_spark(query, found) == (
        "SELECT 'lake.cities' FROM streams.my_orders JOIN `lake_Cities` JOIN `lake_Cities` JOIN own"
    )
