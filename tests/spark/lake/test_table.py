"""Tables of a lake: every batch once, columns only added, few files, exact after a crash, readable as of earlier."""

import datetime

import deltalake
import pytest

from jetlake.errors import ConfigurationError
from jetlake.spark.lake import compaction
from jetlake.spark.lake.folder import Lake
from jetlake.spark.lake.table import LakeTable

pytestmark = [pytest.mark.spark, pytest.mark.timeout(180)]


def sequences(frame):
    return sorted(row.sequence for row in frame.select("sequence").collect())


@pytest.fixture
def table(tmp_path):
    return LakeTable(tmp_path / "orders")


def test_rows_of_all_batches_are_in_the_table_with_their_partitions(spark, rows_of, table):
    table.append(rows_of(0), "q", 0, ["day"])
    second = table.append(rows_of(10), "q", 1, ["day"])

    frame = table.read(spark)
    assert second.rows == 10
    assert sequences(frame) == list(range(20))
    assert frame.columns == ["sequence", "subject", "day"]
    assert dict(frame.dtypes)["day"] == "date"
    assert frame.where("day = DATE'2026-02-01'").count() == 10
    assert table.snapshot().rows == 20
    assert {path.name for path in table.path.glob("day=*")} == {"day=2026-01-31", "day=2026-02-01"}


def test_a_batch_that_comes_again_changes_nothing(spark, rows_of, table):
    table.append(rows_of(0), "q", 7)
    again = table.append(rows_of(100), "q", 7)
    older = table.append(rows_of(200), "q", 6)

    assert again.already_there
    assert older.already_there
    assert sequences(table.read(spark)) == list(range(10))


def test_two_queries_count_their_batches_apart(spark, rows_of, table):
    table.append(rows_of(0), "one", 5)
    table.append(rows_of(10), "two", 0)

    assert sequences(table.read(spark)) == list(range(20))
    assert (table.last_batch("one"), table.last_batch("two"), table.last_batch("none")) == (5, 0, None)


def test_an_empty_batch_is_remembered_and_adds_no_file(rows_of, table):
    table.append(rows_of(0), "q", 0)
    files = dict(table.snapshot().files)
    empty = table.append(rows_of(0).where("false"), "q", 1)

    assert (empty.rows, empty.already_there) == (0, False)
    assert table.last_batch("q") == 1
    assert table.snapshot().files.keys() == files.keys()


def test_what_a_dead_attempt_left_is_neither_read_nor_kept(spark, rows_of, table):
    table.append(rows_of(0), "q", 0, ["day"])

    def die():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        table.append(rows_of(10), "q", 1, before_commit=die)
    left = {path.name for path in table.path.rglob("q-1-*.parquet")}
    seen = sequences(LakeTable(table.path).read(spark))
    reopened = LakeTable(table.path)
    reopened.append(rows_of(10), "q", 1)

    assert left
    assert seen == list(range(10))
    assert sequences(reopened.read(spark)) == list(range(20))
    assert not left & {path.name for path in table.path.rglob("*.parquet")}


def test_columns_are_added_and_older_rows_have_none(spark, rows_of, table):
    table.append(rows_of(0, 2), "q", 0)
    table.append(rows_of(2, 2).selectExpr("*", "sequence * 2 AS twice"), "q", 1)
    table.append(rows_of(4, 2).drop("subject"), "q", 2)

    rows = {row.sequence: (row.subject, row.twice) for row in table.read(spark).collect()}
    assert rows == {
        0: ("s.0", None),
        1: ("s.1", None),
        2: ("s.2", 4),
        3: ("s.0", 6),
        4: (None, None),
        5: (None, None),
    }
    assert table.to_arrow(["sequence", "twice"]).num_rows == 6


def test_a_column_that_changes_its_type_is_refused_with_both_types(rows_of, table):
    table.append(rows_of(0), "q", 0)

    with pytest.raises(ConfigurationError, match="column subject is string and would become int"):
        table.append(rows_of(10).selectExpr("sequence", "1 AS subject", "day"), "q", 1)
    with pytest.raises(ConfigurationError, match="differs from subject only in upper and lower case"):
        table.append(rows_of(10).withColumnRenamed("subject", "Subject"), "q", 1)
    assert table.last_batch("q") == 0


def test_many_small_files_become_one_per_partition_and_vacuum_removes_the_old(spark, rows_of, table):
    for batch in range(5):
        table.append(rows_of(batch * 10).coalesce(1), "q", batch, ["day"])
    before = table.snapshot()
    merged = table.compact(files_min=2)
    after = table.snapshot()
    kept = table.vacuum()
    deleted = table.vacuum(retention_s=0)

    assert merged == len(before.files) == 10
    assert len(after.files) == 2
    assert sequences(table.read(spark)) == list(range(50))
    assert kept == []
    assert sorted(deleted) == sorted(before.files)
    assert {p.relative_to(table.path).as_posix() for p in table.path.rglob("*.parquet")} == set(after.files)
    assert table.last_batch("q") == 4


def test_compaction_keeps_columns_that_were_added_on_the_way(spark, rows_of, table):
    table.append(rows_of(0, 2).coalesce(1), "q", 0)
    table.append(rows_of(2, 2).coalesce(1).selectExpr("*", "current_timestamp() AS seen"), "q", 1)
    table.compact(files_min=2)

    rows = table.read(spark).orderBy("sequence").collect()
    assert [row.seen is None for row in rows] == [True, True, False, False]


def test_replaced_rows_are_gone_and_the_new_ones_there(spark, rows_of, table):
    table.append(rows_of(0), "q", 0)
    table.replace(rows_of(50, 3), "q", 1)

    assert sequences(table.read(spark)) == [50, 51, 52]


def test_a_writer_that_was_overtaken_looks_again(spark, rows_of, table, monkeypatch):
    table.append(rows_of(0), "q", 0)
    other = LakeTable(table.path)

    def overtake():
        other.append(rows_of(10), "other", 0)

    table.append(rows_of(20), "q", 1, before_commit=overtake)

    assert sequences(table.read(spark)) == list(range(30))


def test_the_same_batch_by_two_writers_counts_once(spark, rows_of, table):
    table.append(rows_of(0), "q", 0)
    other = LakeTable(table.path)

    def overtake():
        other.append(rows_of(10), "q", 1)

    outcome = table.append(rows_of(10), "q", 1, before_commit=overtake)

    assert outcome.already_there
    assert sequences(table.read(spark)) == list(range(20))


def test_values_that_are_no_folder_names_and_nulls_partition_too(spark, table):
    values = {1: "a:b c/ä%", 2: None, 3: "007", 4: "2026-01-01"}
    frame = spark.createDataFrame(list(values.items()), "sequence BIGINT, source STRING")
    table.append(frame, "q", 0, ["source"])

    rows = {row.sequence: row.source for row in table.read(spark).collect()}
    assert rows == values
    assert {row["sequence"]: row["source"] for row in table.to_arrow().to_pylist()} == rows


def test_a_column_to_partition_by_must_be_there(rows_of, table):
    with pytest.raises(ConfigurationError, match="no column dai to partition by; the columns are sequence"):
        table.append(rows_of(0), "q", 0, ["dai"])
    assert not table.exists()


def test_a_table_is_what_delta_readers_see(rows_of, table):
    table.append(rows_of(0), "q", 0, ["day"])
    table.append(rows_of(10), "q", 1)

    opened = deltalake.DeltaTable(table.path)
    assert sorted(opened.to_pyarrow_table()["sequence"].to_pylist()) == list(range(20))
    assert opened.transaction_version("q") == 1
    assert opened.count() == 20


def test_a_table_is_read_as_it_was_at_a_version_and_at_a_time(spark, rows_of, table):
    table.append(rows_of(0), "q", 0)
    version = table.snapshot().version
    between = datetime.datetime.now(datetime.UTC)
    table.append(rows_of(10), "q", 1)

    assert sequences(table.read(spark, as_of=version)) == list(range(10))
    assert sequences(table.read(spark, as_of=between)) == list(range(10))
    assert sorted(table.to_arrow(["sequence"], as_of=between)["sequence"].to_pylist()) == list(range(10))
    assert sequences(table.read(spark)) == list(range(20))
    with pytest.raises(ConfigurationError, match="has no version 99 any more or not yet: it is at version 2"):
        table.read(spark, as_of=99)


def test_groups_to_merge_are_bounded_in_size(monkeypatch):
    from jetlake.spark.lake.snapshot import DataFile, Snapshot

    monkeypatch.setattr(compaction, "TARGET_BYTES", 100)
    monkeypatch.setattr(compaction, "SMALL_BYTES", 50)
    files = {f"f{n}": DataFile(f"f{n}", size, 1) for n, size in enumerate([40, 40, 40, 40, 90, 10])}

    groups = compaction.groups(Snapshot(0, "", files=files), files_min=2)

    assert [[file.path for file in group] for group in groups] == [["f0", "f1"], ["f2", "f3", "f5"]]


def test_a_lake_knows_its_tables_and_the_nearest_name(rows_of, tmp_path):
    lake = Lake(tmp_path)
    lake.table("orders").append(rows_of(0), "q", 0)
    (tmp_path / "_pipelines").mkdir()

    assert lake.names() == ["orders"]
    with pytest.raises(ConfigurationError, match=r"no table ordres in .*; did you mean orders"):
        lake.existing("ordres")
    with pytest.raises(ConfigurationError, match="is not a name for a table"):
        lake.table("../up")
