"""Tables that are read as they grow, from servers of both kinds."""

import time

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

WAIT_S_MAX = 60


def stream(spark, shore, name, **options):
    return spark.readStream.format("jetlake").options(url=shore.url, stream=name, **options).load()


def run_to_end(frame, folder, table, **options):
    """Run a query over everything there is, into a table in memory; return its last progress."""
    query = (
        frame.writeStream.format("memory")
        .queryName(table)
        .option("checkpointLocation", str(folder))
        .options(**options)
        .trigger(availableNow=True)
        .start()
    )
    try:
        assert query.awaitTermination(WAIT_S_MAX), "the query did not end"
        return query.recentProgress
    finally:
        query.stop()


def collect_batches(frame, folder, *, available_now=True):
    """Run a query and return the sequences of each batch."""
    seen = []

    def keep(batch, _):
        seen.append(sorted(row.sequence for row in batch.select("sequence").collect()))

    writer = frame.writeStream.foreachBatch(keep).option("checkpointLocation", str(folder))
    query = writer.trigger(availableNow=True).start() if available_now else writer.start()
    return query, seen


def flat(batches):
    return [sequence for batch in batches for sequence in batch]


def finish(query):
    try:
        assert query.awaitTermination(WAIT_S_MAX), "the query did not end"
    finally:
        query.stop()


def wait_until(condition, query):
    deadline = time.monotonic() + WAIT_S_MAX
    while not condition():
        assert query.exception() is None, query.exception()
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)


def test_available_now_reads_everything_in_batches_of_the_size_wanted(spark, shore, tmp_path):
    name = shore.create()
    shore.fill(name, 100)

    query, seen = collect_batches(
        stream(spark, shore, name, startingSequence="earliest", maxRowsPerTrigger=40), tmp_path
    )
    finish(query)

    assert seen == [list(range(1, 41)), list(range(41, 81)), list(range(81, 101))]


def test_a_restart_goes_on_where_the_last_run_ended(spark, jetlake_shore, tmp_path):
    name = jetlake_shore.create()
    jetlake_shore.fill(name, 10)
    frame = stream(spark, jetlake_shore, name, startingSequence="earliest")
    query, first = collect_batches(frame, tmp_path)
    finish(query)
    jetlake_shore.fill(name, 5)

    query, second = collect_batches(frame, tmp_path)
    finish(query)

    assert first == [list(range(1, 11))]
    assert second == [list(range(11, 16))]


def test_bytes_bound_a_batch_too(spark, jetlake_shore, tmp_path):
    name = jetlake_shore.create()
    jetlake_shore.fill(name, 40, data=lambda _: b"x" * 1000)

    query, seen = collect_batches(
        stream(spark, jetlake_shore, name, startingSequence="earliest", maxBytesPerTrigger="11k"), tmp_path
    )
    finish(query)

    assert flat(seen) == list(range(1, 41))
    assert max(map(len, seen)) <= 11


def test_a_running_query_begins_at_the_end_and_sees_what_comes(spark, shore, tmp_path):
    name = shore.create()
    shore.fill(name, 10)
    query, seen = collect_batches(stream(spark, shore, name), tmp_path, available_now=False)
    try:
        wait_until(lambda: query.lastProgress is not None or query.status["message"].startswith("Waiting"), query)
        first = shore.streams.state(name).next_sequence
        shore.fill(name, 3)

        wait_until(lambda: sum(map(len, seen)) >= 3, query)
    finally:
        query.stop()

    assert flat(seen) == [first, first + 1, first + 2]


def test_one_stream_is_split_into_tasks(spark, jetlake_shore, tmp_path):
    name = jetlake_shore.create()
    jetlake_shore.fill(name, 10_000)
    counts = []

    def keep(batch, _):
        counts.append((batch.rdd.getNumPartitions(), batch.count()))

    frame = stream(spark, jetlake_shore, name, startingSequence="earliest", minPartitions=2)
    query = frame.writeStream.foreachBatch(keep).option("checkpointLocation", str(tmp_path)).trigger(availableNow=True)
    finish(query.start())

    assert counts == [(2, 10_000)]


def test_messages_that_are_gone_before_they_are_read_fail_the_query_unless_allowed(spark, shore, tmp_path):
    name = shore.create()
    shore.fill(name, 10)
    frame = stream(spark, shore, name, startingSequence="earliest")
    query, _ = collect_batches(frame, tmp_path)
    finish(query)
    shore.fill(name, 10)
    shore.streams.purge_below(name, 16)

    query, _ = collect_batches(frame, tmp_path)
    with pytest.raises(Exception, match=f"{name} no longer has the messages 11 to 15"):
        query.awaitTermination(WAIT_S_MAX)

    query, seen = collect_batches(
        stream(spark, shore, name, startingSequence="earliest", failOnDataLoss="false"), tmp_path
    )
    finish(query)
    assert flat(seen) == [16, 17, 18, 19, 20]


def test_a_stream_that_was_made_anew_fails_the_query_unless_allowed(spark, shore, tmp_path):
    name = shore.create()
    shore.fill(name, 10)
    query, _ = collect_batches(stream(spark, shore, name, startingSequence="earliest"), tmp_path)
    finish(query)
    shore.streams.ask(f"STREAM.DELETE.{name}")
    shore.create(name)
    shore.fill(name, 20)

    query, _ = collect_batches(stream(spark, shore, name), tmp_path)
    with pytest.raises(Exception, match="was deleted and created again"):
        query.awaitTermination(WAIT_S_MAX)

    query, seen = collect_batches(stream(spark, shore, name, failOnDataLoss="false"), tmp_path)
    finish(query)
    assert flat(seen) == list(range(1, 21))


def test_streams_of_a_pattern_that_are_made_later_are_read_from_their_beginning(spark, jetlake_shore, tmp_path):
    first = jetlake_shore.create()
    pattern = f"{first}(_LATER)?"
    jetlake_shore.fill(first, 3)
    frame = (
        spark.readStream.format("jetlake")
        .options(url=jetlake_shore.url, streamsPattern=pattern, startingSequence="earliest")
        .load()
    )
    run_to_end(frame, tmp_path, f"before_{first}")
    jetlake_shore.create(f"{first}_LATER")
    jetlake_shore.fill(f"{first}_LATER", 4)
    jetlake_shore.fill(first, 1)

    query, seen = collect_batches(frame, tmp_path)
    finish(query)

    assert sorted(flat(seen)) == [1, 2, 3, 4, 4]


def test_a_work_queue_is_refused_unless_the_query_works_it_off(spark, shore, tmp_path):
    name = shore.create(retention="workqueue")
    shore.fill(name, 10)

    query, _ = collect_batches(stream(spark, shore, name, startingSequence="earliest"), tmp_path / "a")
    with pytest.raises(Exception, match="is a work queue"):
        query.awaitTermination(WAIT_S_MAX)

    options = {"startingSequence": "earliest", "deleteOnCommit": "true", "maxRowsPerTrigger": 4}
    query, seen = collect_batches(stream(spark, shore, name, **options), tmp_path / "b")
    finish(query)
    assert flat(seen) == list(range(1, 11))
    # The last batch is committed when the next one is built.
    assert shore.streams.state(name).messages == 2


def test_a_consumer_shows_how_far_the_query_is(spark, shore, tmp_path):
    name = shore.create()
    shore.fill(name, 10)
    options = {"startingSequence": "earliest", "progressConsumer": "spark", "maxRowsPerTrigger": 4}

    query, _ = collect_batches(stream(spark, shore, name, **options), tmp_path)
    finish(query)

    assert shore.streams.ask(f"CONSUMER.INFO.{name}.spark")["num_pending"] == 2


def test_the_progress_of_a_query_shows_offsets_and_the_newest_one(spark, jetlake_shore, tmp_path):
    name = jetlake_shore.create()
    jetlake_shore.fill(name, 10)

    progress = run_to_end(stream(spark, jetlake_shore, name, startingSequence="earliest"), tmp_path, f"progress_{name}")

    source = progress[0].sources[0]
    assert f'"{name}"' in source.endOffset
    assert '"next":11' in source.endOffset.replace(" ", "")
    assert '"next":11' in source.latestOffset.replace(" ", "")
    assert source.numInputRows == 10


def test_rows_are_waited_for_when_too_few_would_make_a_batch(spark, jetlake_shore, tmp_path):
    name = jetlake_shore.create()
    options = {"minRowsPerTrigger": 10, "maxTriggerDelay": "1h", "startingSequence": "earliest"}
    query, seen = collect_batches(stream(spark, jetlake_shore, name, **options), tmp_path, available_now=False)
    try:
        jetlake_shore.fill(name, 6)
        wait_until(lambda: query.status["message"].startswith("Getting offsets"), query)
        jetlake_shore.fill(name, 6)
        wait_until(lambda: seen, query)
    finally:
        query.stop()

    assert len(seen[0]) >= 10
