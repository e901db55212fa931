"""Tables that are read once, from servers of both kinds."""

import json
import zlib

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

ROWS = 20_000


@pytest.fixture(scope="module")
def filled(shore):
    """A stream with many messages, which no test changes."""
    name = shore.create()
    shore.fill(name, ROWS)
    return name


def read(spark, shore, name, **options):
    return spark.read.format("jetlake").options(url=shore.url, stream=name, **options)


def test_every_message_is_one_row_with_all_its_columns(spark, shore):
    name = shore.create()
    shore.publish(f"{name}.a", b"first")
    shore.publish(f"{name}.b", b"\x00\xff", {"Kind": "test", "Other": "x"})

    rows = read(spark, shore, name).load().orderBy("sequence").collect()

    assert [(row.stream, row.subject, row.sequence, row.data) for row in rows] == [
        (name, f"{name}.a", 1, b"first"),
        (name, f"{name}.b", 2, b"\x00\xff"),
    ]
    assert [row.headers for row in rows] == [{}, {"Kind": ["test"], "Other": ["x"]}]
    assert [int(row.timestamp.timestamp()) for row in rows] == [row.time_ns // 10**9 for row in rows]


def test_a_stream_is_read_by_several_tasks_and_every_row_comes_once(spark, shore, filled):
    frame = read(spark, shore, filled, minPartitions=4).load()

    assert frame.rdd.getNumPartitions() == 4
    assert frame.selectExpr("count(*)", "count(DISTINCT sequence)", "sum(sequence)").first()[:] == (
        ROWS,
        ROWS,
        ROWS * (ROWS + 1) // 2,
    )


def test_three_filters_of_one_table_do_not_disturb_each_other(spark, shore, filled):
    # A source that takes Spark's filters gives 50, 50 and 50 here (the first filter stays).
    read(spark, shore, filled).load().createOrReplaceTempView("filtered")

    row = spark.sql(
        f"SELECT (SELECT count(*) FROM filtered WHERE sequence > {ROWS - 100}) a,"
        " (SELECT count(*) FROM filtered WHERE sequence <= 50) b, (SELECT count(*) FROM filtered) c"
    ).first()

    assert (row.a, row.b, row.c) == (100, 50, ROWS)


def test_a_frame_that_is_filtered_once_is_whole_the_next_time(spark, shore, filled):
    frame = read(spark, shore, filled).load()

    assert frame.filter("sequence > 19900").count() == 100
    assert frame.count() == ROWS
    assert frame.filter("sequence <= 10").union(frame.filter("sequence > 19990")).count() == 20


def test_a_narrow_schema_in_any_order_is_what_comes(spark, shore, filled):
    frame = read(spark, shore, filled).schema("data BINARY, sequence BIGINT").load()

    assert frame.columns == ["data", "sequence"]
    assert frame.filter("sequence = 3").first().data == b'{"n": 2}'


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ("sequenc BIGINT", "did you mean sequence"),
        ("sequence STRING", "the column sequence is bigint"),
        ("value STRING", "VARIANT or a STRUCT"),
    ],
)
def test_a_schema_that_messages_do_not_have_is_refused(spark, jetlake_shore, schema, says):
    name = jetlake_shore.create()

    with pytest.raises(Exception, match=says):
        read(spark, jetlake_shore, name).schema(schema).load().collect()


def test_subjects_are_selected_by_the_server(spark, shore, filled):
    frame = read(spark, shore, filled, subjects=f"{filled}.1, {filled}.3").load()

    assert sorted(row.subject for row in frame.select("subject").distinct().collect()) == [f"{filled}.1", f"{filled}.3"]
    assert frame.count() == ROWS // 2


def test_sequences_bound_what_is_read_and_the_end_is_not_included(spark, shore, filled):
    frame = read(spark, shore, filled, startingSequence=100, endingSequence=110).load()

    assert sorted(row.sequence for row in frame.collect()) == list(range(100, 110))


def test_times_bound_what_is_read(spark, shore, filled):
    times = [
        shore.streams.ask(f"STREAM.MSG.GET.{filled}", {"seq": sequence})["message"]["time"] for sequence in (500, 1500)
    ]

    frame = read(spark, shore, filled, startingTimestamp=times[0], endingTimestamp=times[1]).load()

    bounds = frame.selectExpr("min(sequence)", "max(sequence)").first()
    # Several messages may have one time, and the server begins at the first of them.
    assert bounds[0] <= 500
    assert bounds[1] < 1500
    assert bounds[1] - bounds[0] > 500


def test_a_time_after_the_last_message_gives_no_rows_or_an_error_as_wanted(spark, jetlake_shore):
    name = jetlake_shore.create()
    jetlake_shore.publish(f"{name}.a", b"x")
    later = {"startingTimestamp": "2100-01-01"}

    assert read(spark, jetlake_shore, name, **later).load().count() == 0
    with pytest.raises(Exception, match="older than 2100-01-01T00:00:00Z: give an earlier"):
        read(spark, jetlake_shore, name, startingTimestampStrategy="error", **later).load().count()


def test_an_empty_stream_is_an_empty_table(spark, shore):
    name = shore.create()

    assert read(spark, shore, name).load().collect() == []


def test_deleted_messages_are_gaps(spark, shore):
    name = shore.create()
    shore.fill(name, 10)
    shore.streams.ask(f"STREAM.MSG.DELETE.{name}", {"seq": 5})

    rows = read(spark, shore, name).load().orderBy("sequence").collect()

    assert [row.sequence for row in rows] == [1, 2, 3, 4, 6, 7, 8, 9, 10]


def test_several_streams_and_patterns_are_one_table(spark, shore):
    one, two = shore.create(), shore.create()
    shore.fill(one, 3)
    shore.fill(two, 4)

    by_names = spark.read.format("jetlake").options(url=shore.url, streams=f"{one},{two}").load()
    by_pattern = spark.read.format("jetlake").options(url=shore.url, streamsPattern=f"({one}|{two})").load()

    assert {row.stream: row["count"] for row in by_names.groupBy("stream").count().collect()} == {one: 3, two: 4}
    assert by_pattern.count() == 7


def test_a_work_queue_is_read_without_taking_anything_away(spark, shore):
    name = shore.create(retention="workqueue")
    shore.fill(name, 20)

    assert read(spark, shore, name).load().count() == 20
    assert shore.streams.state(name).messages == 20


@pytest.mark.parametrize("transport", ["consumer", "direct_get"])
def test_each_transport_gives_the_same_rows(spark, shore, filled, transport):
    row = read(spark, shore, filled, transport=transport).load().selectExpr("count(*)", "sum(hash(data))").first()

    assert row[:] == read(spark, shore, filled).load().selectExpr("count(*)", "sum(hash(data))").first()[:]
    assert row[0] == ROWS


def test_json_is_a_variant_column(spark, shore):
    name = shore.create()
    values = [{"id": 1, "who": {"name": "Ada"}, "tags": ["a", None, 1.5]}, [1, 2], "text", True, None, -(2**40)]
    for value in values:
        shore.publish(f"{name}.a", json.dumps(value).encode())
    shore.publish(f"{name}.a", b"{broken")
    shore.publish(f"{name}.a", b"")

    frame = read(spark, shore, name, decode="json").load().orderBy("sequence")

    texts = [row.text for row in frame.selectExpr("to_json(value) AS text").collect()]
    assert [None if text is None else json.loads(text) for text in texts] == [*values, None, None]
    assert frame.selectExpr("variant_get(value, '$.who.name', 'string') AS n").first().n == "Ada"


def test_json_is_a_struct_column_and_what_does_not_fit_is_null(spark, shore):
    name = shore.create()
    payloads = [b'{"id": 7, "city": "Ulm", "more": 1}', b'{"id": "x", "city": 5}', b"no json", b'{"id": 8}']
    for payload in payloads:
        shore.publish(f"{name}.a", payload)

    frame = read(spark, shore, name, valueSchema="id BIGINT, city STRING").load().orderBy("sequence")

    found = [None if row.value is None else (row.value.id, row.value.city) for row in frame.collect()]
    assert found == [(7, "Ulm"), (None, "5"), None, (8, None)]


def test_payloads_are_decompressed_before_they_are_decoded(spark, shore):
    name = shore.create()
    for number in range(5):
        shore.publish(f"{name}.a", zlib.compress(json.dumps({"n": number}).encode()))

    frame = read(spark, shore, name, decompress="zlib", valueSchema="n INT").load()

    assert sorted(row.value.n for row in frame.collect()) == [0, 1, 2, 3, 4]


def test_a_frame_shows_what_was_there_at_its_first_action(spark, jetlake_shore):
    name = jetlake_shore.create()
    jetlake_shore.fill(name, 3)
    frame = read(spark, jetlake_shore, name).load()
    assert frame.count() == 3

    jetlake_shore.fill(name, 2)

    assert frame.count() == 3
    assert read(spark, jetlake_shore, name).load().count() == 5


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"stream": "S", "maxRowPerTrigger": "1"}, "did you mean maxRowsPerTrigger"),
        ({"stream": "S", "allowPurge": "true"}, "`allowPurge` is for writing; leave it out here"),
        ({}, "no stream is named"),
        ({"stream": "S", "streams": "S,T"}, "both given"),
        ({"stream": "nothing"}, "there is no stream 'nothing'"),
        ({"stream": "S", "transport": "pigeon"}, "must be one of auto, scan"),
    ],
)
def test_options_that_cannot_work_are_refused_with_what_to_do(spark, jetlake_shore, options, says):
    with pytest.raises(Exception, match=says):
        spark.read.format("jetlake").options(url=jetlake_shore.url, **options).load().collect()
