"""The engine's bulk part against real servers: rows of a stream as Arrow, and Arrow as messages of a stream."""

import gzip
import itertools
import json
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow", reason="the extra `spark` is not installed")

from jetlake._engine import EngineError, PublishWriter, RowReader, StoreReader  # noqa: E402
from jetlake.client.raw_connection import ConnectionSettings, RawConnection  # noqa: E402
from jetlake.errors import ClientError  # noqa: E402
from tests.spark.conftest import Shore  # noqa: E402

SOURCES = ["consumer", "direct_get", "scan"]

_inbox_numbers = itertools.count(1)


@pytest.fixture(params=SOURCES)
def source(request: pytest.FixtureRequest, shore: Shore) -> str:
    """Each way to read; nats-server has no scans."""
    if request.param == "scan" and shore.kind != "jetlake":
        pytest.skip("only Jetlake has scans")
    return str(request.param)


@pytest.fixture
def connection(shore: Shore) -> Iterator[RawConnection]:
    with RawConnection(ConnectionSettings(url=shore.url, name="rows")) as connection:
        yield connection


def read_rows(connection: RawConnection, stream: str, **options: Any) -> Any:
    """Return a range as a table."""
    reader = new_reader(stream, **options)
    batches = []
    while True:
        connection.send(reader.to_send())
        if reader.finished:
            break
        batches += [pa.record_batch(batch) for batch in reader.feed(connection.receive())]
    table = pa.Table.from_batches(batches) if batches else None
    assert reader.rows == (0 if table is None else table.num_rows)
    return table


def new_reader(stream: str, **options: Any) -> RowReader:
    number = next(_inbox_numbers)
    wanted = {"stream": stream, "inbox": f"_INBOX.rows{number}", "sid": 1000 + number, "source": "consumer", **options}
    return RowReader(json.dumps(wanted).encode())


def write_rows(connection: RawConnection, table: Any, **options: Any) -> PublishWriter:
    """Publish a table, wait for all acknowledgements, and return the writer."""
    number = next(_inbox_numbers)
    wanted = {"inbox": f"_INBOX.rows{number}", "sid": 1000 + number, **options}
    writer = PublishWriter(json.dumps(wanted).encode())
    for batch in table.to_batches(max_chunksize=1000):
        writer.add(batch)
        while writer.waiting:
            pass_on(connection, writer)
    while writer.outstanding:
        pass_on(connection, writer)
    return writer


def pass_on(connection: RawConnection, writer: PublishWriter) -> None:
    to_send = writer.to_send()
    connection.send(to_send)
    if not to_send or not writer.waiting:
        writer.feed(connection.receive())


def test_every_message_of_a_range_becomes_a_row(shore: Shore, connection: RawConnection, source: str) -> None:
    stream = shore.create()
    shore.fill(stream, 5000)

    table = read_rows(connection, stream, source=source, start=11, end=4001, batch_rows=1000, request_rows=100)

    assert table.column("sequence").to_pylist() == list(range(11, 4001))
    assert table.column("stream").unique().to_pylist() == [stream]
    assert table.column("subject")[0].as_py() == f"{stream}.2"
    assert table.column("data")[0].as_py() == b'{"n": 10}'
    assert table.column("headers")[0].as_py() == []
    assert [len(chunk) for chunk in table.column("data").chunks] == [1000, 1000, 1000, 990]


def test_an_open_end_is_the_last_message(shore: Shore, connection: RawConnection, source: str) -> None:
    stream = shore.create()
    shore.fill(stream, 300)

    table = read_rows(connection, stream, source=source, request_rows=100)

    assert table.num_rows == 300


def test_an_empty_range_has_no_rows(shore: Shore, connection: RawConnection, source: str) -> None:
    stream = shore.create()

    assert read_rows(connection, stream, source=source) is None

    shore.fill(stream, 3)
    assert read_rows(connection, stream, source=source, start=4) is None
    assert read_rows(connection, stream, source=source, start=2, end=2) is None


def test_deleted_messages_are_gaps(shore: Shore, connection: RawConnection, source: str) -> None:
    stream = shore.create()
    shore.fill(stream, 10)
    for sequence in (1, 4, 5, 10):
        shore.streams.ask(f"STREAM.MSG.DELETE.{stream}", {"seq": sequence})

    table = read_rows(connection, stream, source=source, end=11)

    assert table.column("sequence").to_pylist() == [2, 3, 6, 7, 8, 9]


@pytest.mark.parametrize("subjects", [["0"], ["0", "3"], ["*"], ["nobody"]])
def test_only_the_wanted_subjects_come(
    shore: Shore, connection: RawConnection, source: str, subjects: list[str]
) -> None:
    stream = shore.create()
    shore.fill(stream, 100)

    table = read_rows(connection, stream, source=source, subjects=[f"{stream}.{last}" for last in subjects], end=90)

    wanted = [number + 1 for number in range(89) if subjects == ["*"] or str(number % 4) in subjects]
    assert (table.column("sequence").to_pylist() if table else []) == wanted


def test_headers_and_times_come_as_they_were_stored(shore: Shore, connection: RawConnection, source: str) -> None:
    stream = shore.create()
    shore.publish(f"{stream}.a", b"x", {"A": "1", "Nats-Sequence": "99", "B": "two  words"})
    shore.publish(f"{stream}.a", b"", {})

    table = read_rows(connection, stream, source=source)

    first, second = table.column("headers").to_pylist()
    assert first == [("A", ["1"]), ("Nats-Sequence", ["99"]), ("B", ["two  words"])]
    assert second == []
    stored = shore.streams.ask(f"STREAM.MSG.GET.{stream}", {"seq": 1})["message"]["time"]
    time_ns = table.column("time_ns")[0].as_py()
    nanoseconds = int(stored.rstrip("Z").partition(".")[2].ljust(9, "0"))
    assert time_ns % 1_000_000_000 == nanoseconds
    assert table.column("timestamp")[0].cast("int64").as_py() == time_ns // 1000


def test_large_messages_come_one_by_one(shore: Shore, connection: RawConnection, source: str) -> None:
    stream = shore.create()
    size_bytes = 900_000
    shore.fill(stream, 24, data=lambda number: bytes([number]) * size_bytes)

    table = read_rows(connection, stream, source=source, batch_bytes=1_000_000)

    assert [len(chunk) for chunk in table.column("data").chunks] == [1] * 24
    assert table.column("data")[23].as_py() == bytes([23]) * size_bytes


def test_columns_come_in_the_order_that_was_asked(shore: Shore, connection: RawConnection, source: str) -> None:
    stream = shore.create()
    shore.fill(stream, 3)

    table = read_rows(connection, stream, source=source, columns=["data", "sequence"])

    assert table.schema == pa.schema([("data", pa.binary()), ("sequence", pa.int64())])


def test_the_schema_is_the_one_that_spark_expects(shore: Shore, connection: RawConnection, source: str) -> None:
    types = pytest.importorskip("pyspark.sql.pandas.types", reason="the extra `spark` is not installed")
    from pyspark.sql.types import (
        ArrayType,
        BinaryType,
        LongType,
        MapType,
        StringType,
        StructField,
        StructType,
        TimestampType,
    )

    stream = shore.create()
    shore.fill(stream, 1)
    fields = {
        "stream": StringType(),
        "subject": StringType(),
        "sequence": LongType(),
        "timestamp": TimestampType(),
        "time_ns": LongType(),
        "headers": MapType(StringType(), ArrayType(StringType())),
        "data": BinaryType(),
    }
    expected = types.to_arrow_schema(
        StructType([StructField(name, kind) for name, kind in fields.items()]), timezone="UTC"
    )

    table = read_rows(connection, stream, source=source)

    assert table.schema == expected


@pytest.mark.parametrize(("way", "pack"), [("zlib", zlib.compress), ("zlib", gzip.compress)])
def test_payloads_are_decompressed(
    shore: Shore, connection: RawConnection, source: str, way: str, pack: Callable[[bytes], bytes]
) -> None:
    stream = shore.create()
    shore.publish(f"{stream}.a", pack(b"hello" * 100))
    shore.publish(f"{stream}.a", b"not compressed")

    table = read_rows(connection, stream, source=source, decompress=way, bad_payload="null")

    assert table.column("data").to_pylist() == [b"hello" * 100, None]
    assert table.column("sequence").to_pylist() == [1, 2]
    with pytest.raises(EngineError, match="does not decompress") as caught:
        read_rows(connection, stream, source=source, decompress=way)
    assert caught.value.args[0] == "data"


def test_a_reader_leaves_nothing_behind(shore: Shore, connection: RawConnection) -> None:
    stream = shore.create()
    shore.fill(stream, 10)

    read_rows(connection, stream)
    stopped = new_reader(stream, request_rows=1)
    connection.send(stopped.to_send())
    stopped.feed(connection.receive())
    stopped.stop()
    connection.send(stopped.to_send())

    assert stopped.finished
    # A server may do the next request before it has done the last one.
    while shore.streams.ask(f"CONSUMER.NAMES.{stream}", {})["consumers"]:
        continue


def test_a_stream_that_is_not_there_is_an_error(shore: Shore, connection: RawConnection, source: str) -> None:
    with pytest.raises(EngineError) as caught:
        read_rows(connection, "MISSING", source=source)

    assert caught.value.args[0] == "refused"
    assert "stream" in caught.value.args[1]


def test_options_that_are_none_are_refused() -> None:
    for options in (b"", b"[]", b"{}", b'{"stream":"S","inbox":"i","source":"file"}'):
        with pytest.raises(EngineError) as caught:
            RowReader(options)
        assert caught.value.args[0] == "options"


def test_bytes_that_are_not_nats_are_refused_once_and_for_all() -> None:
    reader = new_reader("S")

    with pytest.raises(EngineError) as caught:
        reader.feed(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    assert caught.value.args[0] == "protocol"
    with pytest.raises(EngineError, match="has failed before"):
        reader.feed(b"PING\r\n")


def test_rows_are_published_and_read_back(shore: Shore, connection: RawConnection) -> None:
    stream = shore.create()
    headers = [[("A", ["1", "2"])], []] * 1250
    table = pa.table(
        {
            "subject": [f"{stream}.{number % 3}" for number in range(2500)],
            "data": [b"%d" % number for number in range(2500)],
            "headers": pa.array(headers, type=pa.map_(pa.string(), pa.list_(pa.string()))),
        }
    )

    writer = write_rows(connection, table, stream=stream, outstanding_max=500)

    assert (writer.stored, writer.duplicates, writer.waiting) == (2500, 0, 0)
    back = read_rows(connection, stream, columns=["subject", "data", "headers"])
    assert back.column("data").to_pylist() == table.column("data").to_pylist()
    assert back.column("subject").to_pylist() == table.column("subject").to_pylist()
    assert back.column("headers")[0].as_py() == [("A", ["1", "2"]), ("Nats-Expected-Stream", [stream])]


def test_content_ids_store_nothing_twice_in_any_order(shore: Shore, connection: RawConnection) -> None:
    stream = shore.create()
    values = [f"row {number % 90}" for number in range(100)]
    subject = f"{stream}.a"

    first = write_rows(connection, pa.table({"value": values}), subject=subject, ids="content", id_prefix="q-1-0")
    again = write_rows(connection, pa.table({"value": values[::-1]}), subject=subject, ids="content", id_prefix="q-1-0")
    next_batch = write_rows(connection, pa.table({"value": values}), subject=subject, ids="content", id_prefix="q-2-0")

    assert (first.stored, first.duplicates) == (100, 0)
    assert (again.stored, again.duplicates) == (0, 100)
    assert next_batch.stored == 100


def test_ids_may_come_from_a_column(shore: Shore, connection: RawConnection) -> None:
    stream = shore.create()
    table = pa.table({"data": [b"a", b"b", b"c"], "msg_id": ["1", "2", "1"]})

    writer = write_rows(connection, table, subject=f"{stream}.a", ids="column")

    assert (writer.stored, writer.duplicates) == (2, 1)


@pytest.mark.parametrize(
    ("columns", "options", "text"),
    [
        ({"data": [b"x"], "color": ["red"]}, {"subject": "a"}, "color"),
        ({"subject": ["a"]}, {}, "no column data or value"),
        ({"data": [b"x"]}, {}, "row 1 has no subject"),
        ({"data": [b"x"], "subject": ["a b"]}, {}, "row 1 has an invalid subject"),
        ({"data": [1]}, {"subject": "a"}, "Int64"),
        ({"data": [b"xyz"]}, {"subject": "a", "payload_bytes_max": 2}, "3 bytes"),
    ],
)
def test_rows_that_cannot_be_messages_are_refused(columns: dict[str, Any], options: dict[str, Any], text: str) -> None:
    writer = PublishWriter(json.dumps({"inbox": "_INBOX.x", **options}).encode())

    def write() -> None:
        writer.add(pa.record_batch(columns))
        writer.to_send()

    with pytest.raises(EngineError, match=text) as caught:
        write()

    assert caught.value.args[0] == "data"


def test_what_a_server_refuses_is_an_error_with_its_words(shore: Shore, connection: RawConnection) -> None:
    stream = shore.create(max_msg_size=10)

    with pytest.raises(EngineError, match="maximum") as caught:
        write_rows(connection, pa.table({"data": [b"x" * 11]}), subject=f"{stream}.a")

    assert caught.value.args[0] == "refused"


def test_a_subject_that_no_stream_takes_is_an_error(shore: Shore, connection: RawConnection) -> None:
    with pytest.raises(EngineError, match="no stream takes"):
        write_rows(connection, pa.table({"data": [b"x"]}), subject="nobody.takes.this")


def plan(shore: Shore, stream: str, **request: Any) -> dict[str, Any]:
    return shore.streams.ask(f"STREAM.SCAN.PLAN.{stream}", request)


def test_a_plan_divides_a_range_and_promises_its_rows(jetlake_shore: Shore) -> None:
    stream = jetlake_shore.create()
    jetlake_shore.fill(stream, 10_000)
    jetlake_shore.streams.ask(f"STREAM.MSG.DELETE.{stream}", {"seq": 5000})

    planned = plan(jetlake_shore, stream, parts=4)

    assert (planned["first"], planned["last"], planned["end"], planned["rows"]) == (1, 10_000, 10_001, 9_999)
    ranges = planned["ranges"]
    assert len(ranges) == 4
    assert [each["end"] for each in ranges[:-1]] == [each["start"] for each in ranges[1:]]
    with RawConnection(ConnectionSettings(url=jetlake_shore.url)) as connection:
        for each in ranges:
            table = read_rows(connection, stream, source="scan", start=each["start"], end=each["end"])
            assert table.num_rows == each["rows"]


def test_a_plan_keeps_to_what_is_wanted_at_most(jetlake_shore: Shore) -> None:
    stream = jetlake_shore.create()
    jetlake_shore.fill(stream, 3000)

    by_rows = plan(jetlake_shore, stream, start=11, max_rows=1500)
    by_subject = plan(jetlake_shore, stream, max_rows=10, subjects=[f"{stream}.3"])
    by_bytes = plan(jetlake_shore, stream, max_bytes=1)
    beyond = plan(jetlake_shore, stream, start=5000)

    assert (by_rows["rows"], by_rows["end"]) == (1500, 1511)
    assert (by_subject["rows"], by_subject["end"]) == (10, 41)
    assert (by_bytes["rows"], by_bytes["end"]) == (1, 2)
    assert (beyond["rows"], beyond["end"], beyond["ranges"]) == (0, 5000, [])


@pytest.mark.parametrize(
    ("request_body", "text"),
    [
        ({"deliver_subject": "x", "columns": ["color"]}, "there is no column 'color'"),
        ({"deliver_subject": "x.>"}, "bad request"),
        ({"columns": ["data"]}, "bad request"),
        ({"deliver_subject": "x", "subjects": ["a..b"]}, "is not a valid subject"),
        ({"deliver_subject": "x", "start": -1}, "cannot unmarshal"),
    ],
)
def test_a_scan_that_cannot_be_is_refused(jetlake_shore: Shore, request_body: dict[str, Any], text: str) -> None:
    stream = jetlake_shore.create()

    with pytest.raises(ClientError, match=text):
        jetlake_shore.streams.ask(f"STREAM.SCAN.ROWS.{stream}", request_body)


def test_a_reader_that_goes_away_ends_its_scan(jetlake_shore: Shore) -> None:
    stream = jetlake_shore.create()
    jetlake_shore.fill(stream, 40, data=lambda _: b"x" * 900_000)
    with RawConnection(ConnectionSettings(url=jetlake_shore.url)) as connection:
        reader = new_reader(stream, source="scan")
        connection.send(reader.to_send())
        reader.feed(connection.receive())

    with RawConnection(ConnectionSettings(url=jetlake_shore.url)) as connection:
        table = read_rows(connection, stream, source="scan")

    assert table.num_rows == 40


def read_files(pieces: list[dict[str, Any]], stream: str, **options: Any) -> Any:
    """Return what the files hold as a table."""
    reader = StoreReader(json.dumps({"stream": stream, "pieces": pieces, **options}).encode())
    batches = []
    while found := reader.read():
        batches += [pa.record_batch(batch) for batch in found]
    table = pa.Table.from_batches(batches)
    assert reader.rows == table.num_rows
    return table


def test_the_files_of_a_running_server_hold_the_same_rows(jetlake_shore: Shore) -> None:
    stream = jetlake_shore.create()
    jetlake_shore.fill(stream, 20_000)
    for sequence in (1, 500, 501, 19_999):
        jetlake_shore.streams.ask(f"STREAM.MSG.DELETE.{stream}", {"seq": sequence})
    where = jetlake_shore.streams.ask(f"STREAM.SCAN.FILES.{stream}", {"start": 400, "end": 20_001})

    table = read_files(where["pieces"], stream)

    with RawConnection(ConnectionSettings(url=jetlake_shore.url)) as connection:
        expected = read_rows(connection, stream, source="scan", start=400)
    assert table.combine_chunks() == expected.combine_chunks()
    some = read_files(where["pieces"], stream, columns=["sequence"], subjects=[f"{stream}.3"])
    assert some.num_rows == 4900


def test_a_stream_in_memory_has_no_files(jetlake_shore: Shore) -> None:
    stream = jetlake_shore.create(storage="memory")

    with pytest.raises(ClientError, match="read over the connection"):
        jetlake_shore.streams.ask(f"STREAM.SCAN.FILES.{stream}", {})


def test_files_that_are_not_here_are_lost(tmp_path: Path) -> None:
    piece = {
        "path": str(tmp_path / "0000000001.segment"),
        "identity": 1,
        "from": 4096,
        "to": 8192,
        "first_sequence": 1,
        "last_sequence": 9,
        "rows": 9,
        "gone": [],
    }

    with pytest.raises(EngineError, match="read over the connection") as caught:
        read_files([piece], "S")

    assert caught.value.args[0] == "lost"
