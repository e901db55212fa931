"""Tables with one row per key: the newest wins, in whatever order rows and batches come, each batch once."""

import itertools

import deltalake
import pyarrow
import pytest

from jetlake.errors import ConfigurationError
from jetlake.spark.lake import upserts
from jetlake.spark.lake.table import LakeTable, kept_versions

pytestmark = [pytest.mark.spark, pytest.mark.timeout(180)]

COLUMNS = "node STRING, check STRING, at BIGINT, sequence BIGINT, status STRING"
KEY, ORDER = ("node", "check"), ("at", "sequence")


@pytest.fixture
def table(tmp_path):
    return LakeTable(tmp_path / "checks")


@pytest.fixture
def upsert(spark, table):
    """Upsert rows as the next batch of a query."""
    numbers = itertools.count()

    def write(*rows, batch=None, query="q", columns=COLUMNS, **more):
        frame = spark.createDataFrame(list(rows), columns)
        return table.upsert(frame, query, next(numbers) if batch is None else batch, KEY, ORDER, **more)

    return write


def contents(table):
    return {(row["node"], row["check"]): row["status"] for row in table.to_arrow().to_pylist()}


def test_a_batch_is_reduced_to_the_newest_row_of_every_key(spark, table, upsert):
    written = upsert(
        ("a", "disk", 3, 30, "BAD"), ("a", "disk", 1, 10, "OK"), ("a", "load", 1, 11, "OK"), ("b", "disk", 2, 12, "OK")
    )

    assert written.rows == 3
    assert contents(table) == {("a", "disk"): "BAD", ("a", "load"): "OK", ("b", "disk"): "OK"}
    assert table.read(spark).count() == 3


def test_a_late_row_changes_nothing_and_a_newer_one_replaces(table, upsert):
    upsert(("a", "disk", 10, 1, "OK"), ("b", "disk", 10, 2, "OK"))
    upsert(("a", "disk", 5, 3, "BAD"), ("b", "disk", 11, 4, "BAD"), ("c", "disk", 1, 5, "OK"))

    assert contents(table) == {("a", "disk"): "OK", ("b", "disk"): "BAD", ("c", "disk"): "OK"}


def test_rows_of_one_moment_are_told_apart_by_the_next_column_of_the_order(table, upsert):
    upsert(("a", "disk", 10, 7, "seven"))
    upsert(("a", "disk", 10, 6, "six"))
    upsert(("a", "disk", 10, 8, "eight"))

    assert contents(table) == {("a", "disk"): "eight"}


def test_without_an_order_the_row_with_the_highest_sequence_of_the_last_batch_stays(spark, table):
    def frame(*statuses):
        rows = [("a", "disk", None, sequence, status) for sequence, status in enumerate(statuses)]
        return spark.createDataFrame(rows, COLUMNS).repartition(1)

    table.upsert(frame("one", "two", "three").orderBy("sequence"), "q", 0, KEY)
    after_one = contents(table)
    table.upsert(frame("four", "five").orderBy("sequence", ascending=False), "q", 1, KEY)

    assert after_one == {("a", "disk"): "three"}
    assert contents(table) == {("a", "disk"): "five"}


def test_any_order_of_rows_and_batches_gives_the_same_table(spark, tmp_path):
    rows = [("a", "x", at, at, f"s{at}") for at in range(4)] + [("b", "x", None, 1, "none"), ("b", "x", 0, 0, "zero")]
    results = []
    for number, order in enumerate(([0, 1, 2, 3, 4, 5], [5, 3, 1, 4, 2, 0], [3, 4, 5, 0, 1, 2])):
        table = LakeTable(tmp_path / f"t{number}")
        for batch, pair in enumerate((order[:2], order[2:4], order[4:])):
            table.upsert(spark.createDataFrame([rows[each] for each in pair], COLUMNS), "q", batch, KEY, ORDER)
        results.append(contents(table))

    assert results == [{("a", "x"): "s3", ("b", "x"): "zero"}] * 3


def test_a_batch_that_comes_again_changes_nothing(table, upsert):
    upsert(("a", "disk", 1, 1, "first"), batch=4)
    again = upsert(("a", "disk", 9, 9, "again"), batch=4)
    other = upsert(("a", "disk", 2, 2, "other"), batch=4, query="other")

    assert again.already_there
    assert not other.already_there
    assert contents(table) == {("a", "disk"): "other"}
    assert deltalake.DeltaTable(table.path).transaction_version("q") == 4


def test_a_writer_that_was_overtaken_looks_again(spark, table, upsert):
    upsert(("a", "disk", 1, 1, "OK"), batch=0)

    def overtake():
        frame = spark.createDataFrame([("b", "disk", 1, 1, "OK")], COLUMNS)
        LakeTable(table.path).upsert(frame, "other", 0, KEY, ORDER)

    upsert(("a", "disk", 2, 2, "BAD"), batch=1, before_commit=overtake)

    assert contents(table) == {("a", "disk"): "BAD", ("b", "disk"): "OK"}


def test_columns_are_added_and_rows_without_a_key_left_out(table, upsert, caplog):
    upsert(("a", "disk", 1, 1, "OK"))
    upsert(("b", "disk", 1, 1, "OK", "hot"), (None, "disk", 1, 1, "?", "cold"), columns=f"{COLUMNS}, note STRING")

    rows = {row["node"]: row["note"] for row in table.to_arrow().to_pylist()}
    assert rows == {"a": None, "b": "hot"}
    assert "1 rows without a key were left out" in caplog.text


def test_upserted_tables_stay_small_and_keep_one_version_an_hour(spark, table, upsert):
    for number in range(12):
        upsert((f"n{number % 3}", "disk", number, number, f"s{number}"))
    table.compact(files_min=2)
    deleted = table.vacuum(0, thinned=True)
    reopened = LakeTable(table.path)

    assert contents(reopened) == {("n0", "disk"): "s9", ("n1", "disk"): "s10", ("n2", "disk"): "s11"}
    assert deleted
    assert reopened.read(spark).count() == 3
    versions = [(number, 1000.0 * number) for number in range(10)]
    assert kept_versions(versions, 9000.0) == [3, 7, 9]
    assert kept_versions(versions, 9000.0 + 7 * 24 * 3600) == [9]


def test_names_that_need_quotes_are_keys_too(spark, tmp_path):
    table = LakeTable(tmp_path / "odd")
    for batch, value in enumerate(("one", "two")):
        frame = spark.createDataFrame([("k", batch, value)], "`Node Name` STRING, `At` BIGINT, value STRING")
        table.upsert(frame, "q", batch, ["Node Name"], ["At"])

    assert table.to_arrow(["value"]).to_pylist() == [{"value": "two"}]


def test_a_key_must_be_a_column_with_values_that_can_be_compared(spark, table):
    frame = spark.createDataFrame([("a", [1])], "node STRING, parts ARRAY<INT>")

    with pytest.raises(ConfigurationError, match="there is no column nod for its key; the columns are node, parts"):
        table.upsert(frame, "q", 0, ["nod"])
    with pytest.raises(ConfigurationError, match="column parts is array, which makes no key"):
        table.upsert(frame, "q", 0, ["parts"])
    assert not table.exists()


def test_rows_of_this_process_are_upserted_and_added_the_same_way(spark, table, tmp_path):
    def rows(*values):
        names = ("node", "check", "at", "sequence", "status")
        return pyarrow.table(
            {name: pyarrow.array(column) for name, column in zip(names, zip(*values, strict=True), strict=True)}
        )

    table.write_rows(
        rows(("a", "disk", 3, 3, "BAD"), ("a", "disk", 1, 1, "OK"), ("b", "disk", 1, 2, "OK")), "q", 0, KEY, ORDER
    )
    table.write_rows(rows(("a", "disk", 2, 2, "late"), ("b", "disk", 4, 4, "BAD")), "q", 1, KEY, ORDER)
    again = table.write_rows(rows(("b", "disk", 9, 9, "again")), "q", 1, KEY, ORDER)
    added = LakeTable(tmp_path / "added")
    for batch in (0, 0, 1):
        added.write_rows(rows(("a", "disk", batch, batch, "x")), "q", batch, partition_by=["status"])

    assert again.already_there
    assert contents(table) == {("a", "disk"): "BAD", ("b", "disk"): "BAD"}
    assert sorted(row.at for row in added.read(spark).collect()) == [0, 1]
    assert added.snapshot().partition_by == ["status"]


def test_the_condition_for_newer_compares_columns_one_after_the_other():
    assert upserts.is_newer(()) == ""
    assert upserts.is_newer(("at",)).startswith('new."at" > there."at" OR ')
