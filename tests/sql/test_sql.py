"""`jetlake sql` as it is typed, on both servers."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import until

pytest.importorskip("duckdb", reason="the extra `sql` is not installed")


def test_groups_and_joins_over_streams(server, rows):
    one, two = server.create(), server.create()
    server.fill(one, 10)
    server.publish(f"{two}.x", {"city": "Oslo", "country": "Norway"})

    counted = rows(f"SELECT subject, count(*) AS n FROM streams.{one.lower()} GROUP BY subject ORDER BY subject")
    joined = rows(
        f"SELECT c.payload->>'country' AS country, sum(CAST(o.payload->>'n' AS INT)) AS total FROM {one.lower()} o "
        f"JOIN {two.lower()} c ON o.payload->>'city' = c.payload->>'city' GROUP BY ALL"
    )

    assert counted == [{"subject": f"{one}.a", "n": 5}, {"subject": f"{one}.b", "n": 5}]
    assert joined == [{"country": "Norway", "total": 25}]


def test_every_column_of_a_message_is_there(server, rows):
    name = server.create()
    server.publish(f"{name}.x", b"\xff\x00")
    server.publish(f"{name}.y", b"text", {"Colour": "red"})

    first, second = rows(f"SELECT * FROM streams.{name.lower()} ORDER BY sequence")

    assert list(first) == ["stream", "subject", "sequence", "timestamp", "time_ns", "headers", "data", "payload"]
    assert (first["payload"], first["headers"], first["data"]) == (None, {}, "\\xff\x00")
    assert (second["payload"], second["headers"], second["data"]) == ("text", {"Colour": ["red"]}, "text")
    assert second["timestamp"].endswith("Z")
    assert second["time_ns"] // 1000 == int(
        rows(f"SELECT epoch_us(timestamp) AS t FROM {name.lower()} WHERE sequence = 2")[0]["t"]
    )


def test_filters_give_exactly_their_rows(server, rows):
    name = server.create()
    server.fill(name, 30)
    table = f"streams.{name.lower()}"
    cases = {
        "sequence > 5 AND sequence <= 7": [6, 7],
        "sequence = 30": [30],
        "sequence > 1000": [],
        f"subject = '{name}.b' AND sequence < 5": [2, 4],
        "subject LIKE '%.b' AND sequence BETWEEN 9 AND 12": [10, 12],
        "sequence IN (1, 29)": [1, 29],
        "sequence < 3 OR sequence > 28": [1, 2, 29, 30],
        "NOT sequence > 2": [1, 2],
        # No subject is like these; the server would refuse to be asked for them.
        "subject = 'a..b'": [],
        f"subject = '.{name}.a' OR subject = '{name}.a.'": [],
        f"subject = '{name}.b.' AND sequence < 5": [],
        "timestamp > TIMESTAMPTZ '2100-01-01'": [],
        "payload->>'city' = 'Oslo' AND sequence < 4": [2],
    }

    for condition, expected in cases.items():
        found = rows(f"SELECT sequence FROM {table} WHERE {condition} ORDER BY sequence")
        assert [row["sequence"] for row in found] == expected, condition


def test_three_filters_of_one_table_do_not_disturb_each_other(server, rows):
    name = server.create().lower()
    server.fill(name.upper(), 10)

    (row,) = rows(
        f"SELECT (SELECT count(*) FROM {name} WHERE sequence > 7) AS a,"
        f" (SELECT count(*) FROM {name} WHERE sequence <= 5) AS b, (SELECT count(*) FROM {name}) AS c"
    )

    assert row == {"a": 3, "b": 5, "c": 10}


def test_fields_of_payloads_are_columns_of_value(server, rows):
    name = server.create()
    server.fill(name, 3)
    server.publish(f"{name}.x", b"no JSON")
    server.publish(f"{name}.x", {"n": "not a number", "city": "Bern"})

    found = rows(f"SELECT value.n AS n, value.city AS city FROM {name.lower()}", "--columns", "n BIGINT, city STRING")

    assert found == [
        {"n": 0, "city": "Rome"},
        {"n": 1, "city": "Oslo"},
        {"n": 2, "city": "Rome"},
        {"n": None, "city": None},
        {"n": None, "city": "Bern"},
    ]


def test_the_function_of_spark_for_json_works_here_too(server, rows):
    name = server.create()
    server.fill(name, 2)

    found = rows(f"SELECT get_json_object(payload, '$.city') AS city FROM {name.lower()} ORDER BY sequence")

    assert found == [{"city": "Rome"}, {"city": "Oslo"}]


def test_options_say_how_streams_are_read(server, rows):
    name = server.create()
    server.fill(name, 10)

    found = rows(
        f"SELECT count(*) AS n FROM {name.lower()}", "--option", f"subjects={name}.a", "--option", "startingSequence=5"
    )

    assert found == [{"n": 3}]


def test_names_that_are_no_identifiers_are_found(server, rows):
    server.create("My-Orders", subjects=["my.>"])
    server.publish("my.x")

    assert rows("SELECT count(*) AS n FROM streams.my_orders") == [{"n": 1}]
    assert rows('SELECT count(*) AS n FROM streams."My-Orders"') == [{"n": 1}]
    server.streams.ask("STREAM.DELETE.My-Orders")


def test_tables_are_listed_and_described(server, rows):
    name = server.create().lower()

    listed = rows("SHOW ALL TABLES")
    described = rows(f"DESCRIBE streams.{name}")

    assert ("streams", name) in {(row["schema"], row["name"]) for row in listed}
    assert {row["column_name"]: row["column_type"] for row in described} == {
        "stream": "VARCHAR",
        "subject": "VARCHAR",
        "sequence": "BIGINT",
        "timestamp": "TIMESTAMP WITH TIME ZONE",
        "time_ns": "BIGINT",
        "headers": "MAP(VARCHAR, VARCHAR[])",
        "data": "BLOB",
        "payload": "VARCHAR",
    }


def test_a_streams_larger_than_a_batch_is_read_whole_and_from_its_beginning(server, rows):
    name = server.create()
    server.fill(name, 20_000)

    assert rows(f"SELECT count(*) AS n, min(sequence) AS a, max(sequence) AS z FROM {name.lower()}") == [
        {"n": 20_000, "a": 1, "z": 20_000}
    ]
    assert rows(f"SELECT sequence FROM {name.lower()} LIMIT 2") == [{"sequence": 1}, {"sequence": 2}]


def test_answers_are_lines_csv_and_json(server, ask):
    name = server.create()
    server.publish(f"{name}.x", b'a "quoted", text\n', {"A": "b"})
    query = f"SELECT sequence, payload, headers, NULL AS nothing FROM {name.lower()}"

    assert ask(query).stdout == 'sequence\tpayload\theaders\tnothing\n1\ta "quoted", text \t{"A":["b"]}\tNULL\n'
    assert ask(query, "--csv").stdout == (
        'sequence,payload,headers,nothing\n1,"a ""quoted"", text\n","{""A"":[""b""]}",\n'
    )
    assert json.loads(ask(query, "--json").stdout) == {
        "sequence": 1,
        "payload": 'a "quoted", text\n',
        "headers": {"A": ["b"]},
        "nothing": None,
    }
    assert ask(query, "--json", "--csv").exit_code == 2


def test_columns_of_the_same_name_keep_their_own_values(server, ask, rows, tmp_path):
    from pyarrow import parquet

    one, two = server.create(), server.create()
    server.fill(one, 1)
    server.fill(two, 2)
    query = f"SELECT o.sequence, p.sequence FROM {one.lower()} o, {two.lower()} p ORDER BY p.sequence"

    assert ask(query).stdout == "sequence\tsequence_1\n1\t1\n1\t2\n"
    assert ask(query, "--csv").stdout == "sequence,sequence_1\n1,1\n1,2\n"
    assert rows(query) == [{"sequence": 1, "sequence_1": 1}, {"sequence": 1, "sequence_1": 2}]
    assert ask(query, "-o", "rows.parquet").exit_code == 0
    assert parquet.read_table(tmp_path / "rows.parquet").to_pydict() == {"sequence": [1, 1], "sequence_1": [1, 2]}
    assert ask(query, "-o", "rows.csv").exit_code == 0
    assert (tmp_path / "rows.csv").read_text() == "sequence,sequence_1\n1,1\n1,2\n"


def test_decimals_are_printed_and_written_with_every_digit(ask):
    query = "SELECT 12345678901234567.89::DECIMAL(20, 2) AS total, 0.0000001::DECIMAL(20, 7) AS part"

    assert ask(query).stdout == "total\tpart\n12345678901234567.89\t0.0000001\n"
    assert ask(query, "--csv").stdout == "total,part\n12345678901234567.89,0.0000001\n"
    assert ask(query, "--json").stdout.startswith('{"total":12345678901234567.89,"part":')


def test_value_that_cannot_be_shown_or_written_is_told_with_its_column(ask, tmp_path):
    cases = {
        ("SELECT 1 AS id, 'infinity'::TIMESTAMP AS ends",): "column ends has a value",
        ("SELECT '0044-03-15 (BC)'::DATE AS day", "--json"): "column day has a value",
        (
            "SELECT 1 AS id, INTERVAL 1 DAY AS span",
            "-o",
            "rows.parquet",
        ): "column span does not fit into a Parquet file",
        (
            "SELECT 'infinity'::TIMESTAMP_S AS ends",
            "-o",
            "rows.parquet",
        ): "column ends does not fit into a Parquet file",
    }
    for words, message in cases.items():
        answer = ask(*words)
        assert answer.exit_code == 1, (words, answer.output)
        assert message in answer.stderr
        assert "; cast it to VARCHAR" in answer.stderr
    assert list(tmp_path.iterdir()) == []


def test_rows_are_counted_off_and_told(server, ask):
    name = server.create()
    server.fill(name, 5)

    cut = ask(f"SELECT sequence FROM {name.lower()}", "--rows", "3")
    whole = ask(f"SELECT sequence FROM {name.lower()}", "--rows", "5")

    assert cut.stdout == "sequence\n1\n2\n3\n"
    assert "there are more than 3 rows: use --rows" in cut.stderr
    assert whole.stderr == ""


def test_answers_are_written_to_files(server, ask, tmp_path):
    from pyarrow import csv, parquet

    name = server.create()
    server.fill(name, 100)
    query = f"SELECT sequence, subject, headers, data FROM {name.lower()}"

    for suffix in ("parquet", "csv", "json"):
        answer = ask(query, "-o", f"rows.{suffix}")
        assert (answer.exit_code, answer.stdout) == (0, ""), answer.output
        assert answer.stderr == f"100 rows in rows.{suffix}\n"

    table = parquet.read_table(tmp_path / "rows.parquet")
    assert table.column("sequence").to_pylist() == list(range(1, 101))
    assert table.schema.field("data").type == "binary"
    assert csv.read_csv(tmp_path / "rows.csv").num_rows == 100
    lines = (tmp_path / "rows.json").read_text().splitlines()
    assert json.loads(lines[-1]) == {
        "sequence": 100,
        "subject": f"{name}.b",
        "headers": {},
        "data": '{"n": 99, "city": "Oslo"}',
    }
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rows.csv", "rows.json", "rows.parquet"]


def test_a_query_can_come_through_a_pipe_and_join_files(server, ask, tmp_path):
    name = server.create()
    server.fill(name, 4)
    (tmp_path / "cities.csv").write_text("city,country\nOslo,Norway\n")

    answer = ask(
        "-", stdin=f"SELECT count(*) AS n FROM {name.lower()} JOIN 'cities.csv' c ON payload->>'city' = c.city"
    )

    assert answer.stdout == "n\n2\n"


def test_lake_tables_are_there_at_every_version(server, ask, rows, tmp_path):
    deltalake = pytest.importorskip("deltalake")
    import pyarrow as pa

    name = server.create()
    server.fill(name, 4)
    table = pa.table({"city": ["Oslo", "Rome"], "day": ["2026-01-31", "2026-02-01"], "people": [1, 2]})
    deltalake.write_deltalake(tmp_path / "lake" / "cities", table, partition_by=["day"])
    deltalake.write_deltalake(tmp_path / "lake" / "cities", table, mode="append")

    joined = rows(
        f"SELECT city, day, sum(people) AS people, count(DISTINCT sequence) AS orders FROM lake.cities "
        f"JOIN streams.{name.lower()} ON payload->>'city' = city GROUP BY ALL ORDER BY city"
    )

    assert joined == [
        {"city": "Oslo", "day": "2026-01-31", "people": 4, "orders": 2},
        {"city": "Rome", "day": "2026-02-01", "people": 8, "orders": 2},
    ]
    assert rows("SELECT count(*) AS n FROM cities WHERE day = '2026-01-31'") == [{"n": 2}]
    assert rows("SELECT count(*) AS n FROM lake.cities", "--as-of", "0") == [{"n": 2}]
    assert "names no version" in ask("SELECT * FROM lake.cities", "--as-of", "yesterday").stderr
    missing = ask("SELECT * FROM lake.citys")
    assert missing.stderr == "jetlake sql: there is no table lake.citys; did you mean lake.cities?\n"


def test_mistakes_are_told_in_one_sentence(server, ask):
    name = server.create("SHIPMENTS").lower()
    cases = {
        "SELECT * FROM streams.shipment": "there is no table streams.shipment; did you mean streams.shipments?",
        "SELECT * FROM shipmnts": "there is no table shipmnts; did you mean shipments?",
        f"SELECT subjct FROM {name}": "there is no column subjct; did you mean subject?",
        f"SELECT s.sequnce FROM {name} s": "there is no column sequnce; did you mean sequence?",
        f"SELECT * FORM {name}": "syntax error at or near",
        f"SELECT nofunction(subject) FROM {name}": "nofunction does not exist",
        "SELECT * FROM 'nothing.csv'": "there is no file nothing.csv",
    }
    for query, message in cases.items():
        answer = ask(query)
        assert answer.exit_code == 1, query
        assert answer.stdout == ""
        assert answer.stderr.startswith("jetlake sql: "), answer.stderr
        assert message in answer.stderr, (query, answer.stderr)
        assert "Traceback" not in answer.stderr
    server.streams.ask("STREAM.DELETE.SHIPMENTS")


def test_options_that_cannot_work_are_told_before_anything_is_read(server, ask, tmp_path):
    query = f"SELECT * FROM {server.create().lower()}"
    cases = {
        ("-o", "rows.parket"): "did you mean .parquet?",
        ("-o", "nowhere/rows.csv"): "there is no folder",
        ("--option", "subject=x"): "subject",
        ("--columns", "id BIGIN"): "did you mean BIGINT?",
        ("--server", "nats://127.0.0.1:1"): "127.0.0.1:1",
    }
    for words, message in cases.items():
        answer = ask(query, *words)
        assert answer.exit_code == 1, (words, answer.output)
        assert message in answer.stderr, answer.stderr
    assert ask(query, "--option", "x").exit_code == 2


def test_what_fails_while_rows_are_read_is_told(server, ask):
    name = server.create()
    server.publish(f"{name}.x", b"not compressed")

    answer = ask(f"SELECT data FROM {name.lower()}", "--option", "decompress=zlib")

    assert answer.exit_code == 1
    assert "does not decompress (corrupt deflate stream)" in answer.stderr
    assert "DuckDB" not in answer.stderr


def test_a_user_who_may_not_list_streams_reads_the_one_he_names(start_server, tmp_path, ask):
    process = start_server(
        ["-js", "-sd", str(tmp_path / "store")],
        config=(
            "authorization { users = [{user: all, password: x}, {user: reader, password: x, permissions: {"
            'publish: {deny: ["$JS.API.STREAM.NAMES"]}}}] }'
        ),
    )
    address = process.url.replace("nats://", "nats://all:x@")
    from tests.sql.conftest import Filler

    filler = Filler(address)
    filler.create("ORDERS")
    filler.fill("ORDERS", 3)
    filler.connection.close()

    answer = ask("SELECT count(*) AS n FROM streams.orders", "--server", address.replace("all:", "reader:"))

    assert answer.stdout == "n\n3\n", answer.output


def test_a_missing_package_is_told_in_one_line(server, ask, monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)

    answer = ask(f"SELECT * FROM {server.create().lower()}")

    assert answer.exit_code == 1
    assert "run `pip install 'jetlake[sql]'`" in answer.stderr
    assert len(answer.stderr.splitlines()) == 1


@pytest.mark.parametrize("query", ["SELECT count(*) FROM {0} a, {0} b, {0} c, {0} d", "SELECT * FROM {0}"])
async def test_ctrl_c_ends_it_without_a_word(server, query):
    name = server.create()
    server.fill(name, 3000)
    command = [sys.executable, "-m", "jetlake", "sql", query.format(name.lower()), "--json"]
    environment = {**os.environ, "NATS_URL": server.url}
    process = subprocess.Popen(  # noqa: ASYNC220
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )

    # The first takes hours to count; the second fills the pipe that nobody reads.
    await until(lambda: "duckdb" in Path(f"/proc/{process.pid}/maps").read_text())
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)

    assert (process.returncode, errors) == (130, "")


def test_a_closed_pipe_ends_it_without_a_word(server):
    name = server.create()
    server.fill(name, 5000)
    command = f"{sys.executable} -m jetlake sql 'SELECT * FROM {name.lower()}' --json | head -1"

    answer = subprocess.run(
        ["bash", "-c", command], env={**os.environ, "NATS_URL": server.url}, capture_output=True, text=True, check=False
    )

    assert len(answer.stdout.splitlines()) == 1
    assert answer.stderr == ""
