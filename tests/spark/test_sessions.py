"""The session and its defaults."""

import json
import sys

import pytest

import jetlake.spark
from jetlake.errors import MissingDependencyError
from jetlake.spark.progress import Progress
from jetlake.spark.sessions import cores, defaults, new_session, session


def test_a_local_session_is_made_for_one_machine_and_a_cluster_is_left_alone():
    local, cluster = defaults("local[3]"), defaults("spark://host:7077")

    assert local["spark.sql.shuffle.partitions"] == "3"
    assert "FileSystemBased" in local["spark.sql.streaming.checkpointFileManagerClass"]
    assert cluster["spark.sql.session.timeZone"] == "UTC"
    assert "spark.sql.shuffle.partitions" not in cluster
    assert "spark.sql.streaming.checkpointFileManagerClass" not in cluster


def test_a_master_says_how_many_tasks_it_runs():
    assert [cores("local"), cores("local[2]"), cores("local[4,3]")] == [1, 2, 4]
    assert cores("local[*]") >= 1


def test_without_pyspark_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)

    with pytest.raises(MissingDependencyError, match=r"pip install 'jetlake\[spark\]'"):
        session()


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_after_work_in_another_session_the_tables_of_streams_are_found_as_before(spark, jetlake_shore, tmp_path):
    name = jetlake_shore.create()
    jetlake_shore.fill(name, 3)
    jetlake.spark.attach(spark, jetlake_shore.url, streams=[name])
    table = f"streams.{name.lower()}"

    with new_session(spark, {"spark.sql.shuffle.partitions": "1"}) as other:
        assert other.createDataFrame([(1,)], "n INT").count() == 1

    rows = spark.readStream.option("startingSequence", "earliest").table(table)
    query = rows.writeStream.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).toTable(table)
    assert query.awaitTermination(60)
    assert spark.table(table).count() == 6


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_a_query_tells_its_progress_to_the_listener_of_its_session(spark, jetlake_shore, tmp_path):
    name = jetlake_shore.create()
    jetlake_shore.fill(name, 12)
    progress = Progress()
    progress.listen(spark)
    try:
        with progress.bar():
            query = (
                spark.readStream.format("jetlake")
                .options(url=jetlake_shore.url, stream=name, startingSequence="earliest", maxRowsPerTrigger=5)
                .load()
                .writeStream.format("noop")
                .queryName("watched")
                .option("checkpointLocation", str(tmp_path))
                .trigger(availableNow=True)
                .start()
            )
            assert query.awaitTermination(60)
        # Events come after the end of the query, on a thread of their own.
        import time

        deadline = time.monotonic() + 30
        while not (progress.queries() and not progress.queries()[0].running):
            assert time.monotonic() < deadline
            time.sleep(0.05)
    finally:
        progress.stop(spark)

    [watched] = progress.queries()
    assert (watched.name, watched.rows_total, watched.lag) == ("watched", 12, 0)
    assert json.loads(query.lastProgress.sources[0].endOffset)["streams"][name]["next"] == 13
