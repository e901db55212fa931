"""The sink, into servers of both kinds."""

import json

import pytest

from jetlake.errors import ConfigurationError
from jetlake.spark.options import parse

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

WAIT_S_MAX = 60
HOUR_NS = 3600 * 10**9


def stored(shore, name):
    """Return the messages of a stream: subject, data and header lines."""
    import base64

    state = shore.streams.state(name)
    found = []
    for sequence in range(state.first_sequence, state.next_sequence):
        message = shore.streams.ask(f"STREAM.MSG.GET.{name}", {"seq": sequence})["message"]
        headers = base64.b64decode(message.get("hdrs", "")).decode()
        found.append((message["subject"], base64.b64decode(message.get("data", "")), headers))
    return found


def write(frame, shore, name, mode="append", **options):
    frame.write.format("jetlake").mode(mode).options(url=shore.url, stream=name, **options).save()


def test_rows_become_messages_with_their_subjects_headers_and_data(spark, shore):
    name = shore.create(duplicate_window=HOUR_NS)
    frame = spark.sql(
        f"SELECT '{name}.a' AS subject, CAST('one' AS BINARY) AS data, map('K', array('v', 'w')) AS headers"
    )

    write(frame, shore, name)

    [(subject, data, headers)] = stored(shore, name)
    assert (subject, data) == (f"{name}.a", b"one")
    assert "K: v\r\nK: w\r\n" in headers.replace("K:v", "K: v").replace("K:w", "K: w")
    assert "Nats-Msg-Id:" in headers


def test_strings_structs_and_a_subject_for_all_are_taken(spark, shore):
    name = shore.create()

    write(spark.sql("SELECT 'text' AS value"), shore, name, subject=f"{name}.s")
    write(
        spark.sql("SELECT named_struct('id', 7, 'tags', array('a'), 'm', map('k', 1.5D), 'gone', NULL) AS value"),
        shore,
        name,
        subject=f"{name}.j",
    )

    (first, second) = stored(shore, name)
    assert first[:2] == (f"{name}.s", b"text")
    assert json.loads(second[1]) == {"id": 7, "tags": ["a"], "m": {"k": 1.5}}


def test_many_rows_of_several_tasks_are_all_stored(spark, shore):
    name = shore.create()
    frame = spark.range(0, 20_000, numPartitions=2).selectExpr(
        f"concat('{name}.', id % 3) AS subject", "CAST(id AS STRING) AS data"
    )

    write(frame, shore, name)

    state = shore.streams.state(name)
    assert state.messages == 20_000
    rows = spark.read.format("jetlake").options(url=shore.url, stream=name).load()
    assert rows.selectExpr("count(DISTINCT data)").first()[0] == 20_000


def test_equal_rows_are_all_kept_and_a_write_that_is_repeated_by_name_stores_nothing_twice(spark, shore):
    name = shore.create()
    frame = spark.sql(f"SELECT '{name}.a' AS subject, 'same' AS data FROM range(0, 10, 1, 1)")

    write(frame, shore, name, writeId="once")
    write(frame, shore, name, writeId="once")
    assert shore.streams.state(name).messages == 10

    write(frame, shore, name)
    assert shore.streams.state(name).messages == 20


def test_ids_come_from_a_column_if_one_is_named(spark, shore):
    name = shore.create()
    frame = spark.sql(f"SELECT '{name}.a' AS subject, 'x' AS data, concat('id-', id % 2) AS key FROM range(4)")

    write(frame, shore, name, msgIdColumn="key")

    assert shore.streams.state(name).messages == 2


def test_messages_have_no_ids_when_they_need_not_be_stored_once(spark, jetlake_shore):
    name = jetlake_shore.create()

    write(spark.sql(f"SELECT '{name}.a' AS subject, 'x' AS data"), jetlake_shore, name, guarantee="at-least-once")

    [(subject, data, headers)] = stored(jetlake_shore, name)
    assert (subject, data) == (f"{name}.a", b"x")
    assert "Nats-Msg-Id" not in headers


def test_overwriting_replaces_everything_and_must_be_allowed(spark, shore):
    name = shore.create()
    shore.fill(name, 5)
    frame = spark.sql(f"SELECT '{name}.new' AS subject, 'x' AS data")

    with pytest.raises(Exception, match="set allowPurge=true if that is meant"):
        write(frame, shore, name, mode="overwrite")
    assert shore.streams.state(name).messages == 5

    write(frame, shore, name, mode="overwrite", allowPurge="true")
    assert [message[0] for message in stored(shore, name)] == [f"{name}.new"]


def test_overwriting_a_stream_with_itself_loses_nothing(spark, jetlake_shore):
    name = jetlake_shore.create()
    jetlake_shore.fill(name, 10)
    rows = spark.read.format("jetlake").options(url=jetlake_shore.url, stream=name).load()

    write(rows.filter("sequence > 4").select("subject", "data"), jetlake_shore, name, "overwrite", allowPurge="true")

    assert sorted(json.loads(data)["n"] for _, data, _ in stored(jetlake_shore, name)) == [4, 5, 6, 7, 8, 9]


@pytest.mark.parametrize(
    ("query", "options", "says"),
    [
        ("SELECT 'a' AS subject", {}, "no column data or value"),
        ("SELECT 1 AS data, 's' AS subject", {}, "cast it to STRING or BINARY"),
        ("SELECT 'x' AS data", {}, "nothing says on which subject"),
        ("SELECT 'x' AS data, 1 AS other", {"subject": "s"}, "other is not part of a message"),
        ("SELECT 'x' AS data, 'y' AS value", {"subject": "s"}, "both data and value"),
        ("SELECT 'x' AS data, map('a', 'b') AS headers", {"subject": "s"}, "must be map<string,array<string>>"),
        ("SELECT 'x' AS data", {"subject": "s", "msgIdColumn": "key"}, "no such column of type STRING"),
        (
            "SELECT 'x' AS data",
            {"subject": "own.s", "duplicateWindow": "refuse"},
            "knows the ids of messages for 120 s",
        ),
        ("SELECT 'x' AS data", {"subject": "s", "maxInflght": "1"}, "did you mean maxInflight"),
    ],
)
def test_rows_and_options_that_cannot_be_written_are_refused_before_anything_is_sent(
    spark, jetlake_shore, query, options, says
):
    name = jetlake_shore.create(subjects=["own.>"] if "own.s" in options.values() else ["other.>"])

    with pytest.raises(Exception, match=says):
        write(spark.sql(query), jetlake_shore, name, **options)
    assert jetlake_shore.streams.state(name).messages == 0
    jetlake_shore.streams.ask(f"STREAM.DELETE.{name}")


def test_a_message_that_the_server_refuses_fails_the_write_with_its_words(spark, shore):
    name = shore.create(max_msg_size=100)

    with pytest.raises(Exception, match="message size exceeds maximum allowed"):
        write(spark.sql("SELECT repeat('x', 200) AS data"), shore, name, subject=f"{name}.a")


def test_a_subject_that_no_stream_takes_is_named(spark, shore):
    name = shore.create()

    with pytest.raises(Exception, match=r"takes no messages on 'nowhere\.at\.all' but on"):
        write(spark.sql("SELECT 'x' AS data"), shore, name, subject="nowhere.at.all")


def test_a_query_copies_one_stream_into_another(spark, shore, tmp_path):
    one, two = shore.create(), shore.create(duplicate_window=HOUR_NS)
    shore.fill(one, 10_000)
    rows = (
        spark.readStream.format("jetlake")
        .options(url=shore.url, stream=one, startingSequence="earliest", maxRowsPerTrigger=4000)
        .load()
        .selectExpr(f"concat('{two}.', split(subject, '[.]')[1]) AS subject", "headers", "data")
    )

    query = (
        rows.writeStream.format("jetlake")
        .options(url=shore.url, stream=two, checkpointLocation=str(tmp_path))
        .queryName(f"copy_{two}")
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(WAIT_S_MAX)

    copied = spark.read.format("jetlake").options(url=shore.url, stream=two).load()
    assert copied.selectExpr("count(*)", "count(DISTINCT data)").first()[:] == (10_000, 10_000)


def copy_to(spark, shore, one, two, folder, **options):
    """Run a query that copies what is in one stream."""
    rows = spark.readStream.format("jetlake").options(url=shore.url, stream=one, startingSequence="earliest").load()
    query = (
        rows.selectExpr("data")
        .writeStream.format("jetlake")
        .options(url=shore.url, subject=f"{two}.copy", checkpointLocation=str(folder), **options)
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(WAIT_S_MAX)


def test_a_query_stores_a_batch_at_once_where_the_server_can_and_by_ids_elsewhere(spark, shore, tmp_path):
    one, two, three = shore.create(), shore.create(), shore.create()
    shore.fill(one, 5)

    copy_to(spark, shore, one, two, tmp_path / "auto")
    copy_to(spark, shore, one, three, tmp_path / "ids", commit="ids")

    headers = [headers for _, _, headers in stored(shore, two)]
    if shore.kind == "jetlake":
        assert headers[:-1] == [""] * 4
        assert headers[-1].startswith(f"NATS/1.0\r\nJetlake-Batch: {two}/")
        assert headers[-1].endswith("/0\r\n\r\n")
    else:
        assert all("Nats-Msg-Id" in one for one in headers)
    assert all("Nats-Msg-Id" in headers for _, _, headers in stored(shore, three))
    assert shore.streams.state(two).messages == shore.streams.state(three).messages == 5


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"guarantee": "at-least-once"}, "guarantee is at-least-once"),
        ({"msgIdColumn": "key"}, "msgIdColumn names ids"),
        ({"subject": ""}, "only the rows say which stream they go to"),
    ],
)
def test_a_commit_that_is_not_possible_is_refused_with_the_reason(jetlake_shore, options, reason):
    from jetlake.spark.writers import JetlakeStreamWriter

    name = jetlake_shore.create()
    values = parse({"url": jetlake_shore.url, "subject": f"{name}.a", "commit": "staged", **options}, "write")

    with pytest.raises(ConfigurationError, match=f"commit=staged is not possible: {reason}"):
        JetlakeStreamWriter(values, overwrite=False)


def test_a_batch_write_cannot_be_staged(jetlake_shore):
    from jetlake.spark.writers import JetlakeWriter

    values = parse({"url": jetlake_shore.url, "stream": jetlake_shore.create(), "commit": "staged"}, "write")

    with pytest.raises(ConfigurationError, match="commit=staged is for queries"):
        JetlakeWriter(values, overwrite=False)


def test_no_other_server_can_store_a_batch_at_once(shore):
    from jetlake.spark.writers import JetlakeStreamWriter

    name = shore.create()
    values = parse({"url": shore.url, "stream": name, "commit": "staged"}, "write")

    if shore.kind == "jetlake":
        JetlakeStreamWriter(values, overwrite=False)
    else:
        with pytest.raises(ConfigurationError, match="the server is not Jetlake"):
            JetlakeStreamWriter(values, overwrite=False)


def test_a_query_in_complete_mode_replaces_its_result(spark, jetlake_shore, tmp_path):
    one, two = jetlake_shore.create(), jetlake_shore.create()
    jetlake_shore.fill(one, 8)
    counts = (
        spark.readStream.format("jetlake")
        .options(url=jetlake_shore.url, stream=one, startingSequence="earliest", maxRowsPerTrigger=4)
        .load()
        .groupBy("subject")
        .count()
        .selectExpr(f"'{two}.counts' AS subject", "named_struct('subject', subject, 'count', count) AS value")
    )

    query = (
        counts.writeStream.format("jetlake")
        .outputMode("complete")
        .options(url=jetlake_shore.url, stream=two, allowPurge="true", checkpointLocation=str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(WAIT_S_MAX)

    rows = [json.loads(data) for _, data, _ in stored(jetlake_shore, two)]
    assert sorted((row["subject"], row["count"]) for row in rows) == [(f"{one}.{number}", 2) for number in range(4)]
