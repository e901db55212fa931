"""One range of one stream, and what may happen while it is read."""

import signal
from pathlib import Path

import pytest

from jetlake.client.raw_streams import Streams
from jetlake.errors import ClientError
from jetlake.frames import table
from jetlake.spark.connecting import connect
from jetlake.spark.options import parse
from jetlake.spark.planning import Planner, StreamRange
from jetlake.spark.ranges import read_range
from tests.compatibility.server_process import start_server_process
from tests.spark.conftest import KINDS, Shore

pytest.importorskip("pyarrow", reason="the extra `spark` is not installed")

LARGE_BYTES = 50_000
MESSAGES = 800
"""Together more than a server sends ahead of its reader."""


@pytest.fixture(params=KINDS)
def restartable(request, tmp_path):
    """A server that can be stopped, and started again with what it has stored."""
    folder = tmp_path / "server"
    folder.mkdir()
    flags = ["-js", "-sd", str(tmp_path / "store")]
    processes = [start_server_process(request.param, folder, flags)]

    def restart():
        processes[-1].stop()
        processes.append(start_server_process(request.param, folder, flags, port=processes[0].port))

    yield processes[0], restart
    processes[-1].stop()


def test_reading_goes_on_behind_the_last_row_when_the_server_starts_again(restartable):
    server, restart = restartable
    shore = Shore(server)
    name = shore.create()
    shore.fill(name, MESSAGES, data=lambda number: number.to_bytes(4) + bytes(LARGE_BYTES))
    shore.close()
    # By direct get only some messages are on their way at a time, whatever the server has in its buffers.
    transport = "scan" if server.kind == "jetlake" else "direct_get"
    values = parse({"url": server.url, "stream": name, "transport": transport}, "read")
    wanted = StreamRange(stream=name, start=1, end=MESSAGES + 1, source=transport, rows=MESSAGES)

    batches = read_range(wanted, ("sequence", "data"), values)
    sequences = next(batches).column("sequence").to_pylist()
    assert len(sequences) < MESSAGES
    restart()
    for batch in batches:
        sequences += batch.column("sequence").to_pylist()

    assert sequences == list(range(1, MESSAGES + 1))


def test_a_stream_that_is_not_there_is_an_error_and_no_empty_range(shore):
    values = parse({"url": shore.url, "stream": "MISSING"}, "read")
    wanted = StreamRange(stream="MISSING", start=1, end=10, source="consumer")

    with pytest.raises(ClientError, match=r"MISSING from 1 to 10: .*not found"):
        list(read_range(wanted, ("data",), values))


def test_rows_that_the_plan_promised_and_do_not_come_are_an_error(shore):
    name = shore.create()
    shore.fill(name, 10)
    values = parse({"url": shore.url, "stream": name}, "read")
    wanted = StreamRange(stream=name, start=1, end=11, source="consumer", rows=12)

    with pytest.raises(ClientError, match=f"{name} gave 10 of 12 messages"):
        list(read_range(wanted, ("data",), values))


def test_rows_that_expired_meanwhile_are_an_error_unless_allowed(shore):
    name = shore.create()
    shore.fill(name, 10)
    wanted = StreamRange(stream=name, start=1, end=11, source="consumer", rows=10)
    shore.streams.purge_below(name, 4)

    with pytest.raises(ClientError, match=f"{name} lost the messages 1 to 3 while they were read"):
        list(read_range(wanted, ("data",), parse({"url": shore.url, "stream": name}, "read")))
    allowed = parse({"url": shore.url, "stream": name, "failOnDataLoss": "false"}, "read")
    assert sum(batch.num_rows for batch in read_range(wanted, ("data",), allowed)) == 7


def planned_by_a_query(shore, name, start, end, **options):
    """Return the range of one micro-batch, and the options it is read with."""
    values = parse({"url": shore.url, "stream": name, **options}, "read")
    planner = Planner(connect(values), values)
    try:
        [wanted] = planner.split(planner.state(name), start, end, 1)
    finally:
        planner.close()
    return wanted, values


def sequences_of(wanted, values):
    return [row for batch in read_range(wanted, ("sequence",), values) for row in batch.column("sequence").to_pylist()]


@pytest.mark.parametrize("selects", [True, False], ids=["some_subjects", "a_gap"])
def test_messages_purged_before_they_are_read_are_an_error_though_no_count_was_promised(shore, selects):
    name = shore.create()
    shore.fill(name, 100)
    shore.streams.ask(f"STREAM.MSG.DELETE.{name}", {"seq": 80})
    chosen = {"subjects": f"{name}.1"} if selects else {}
    wanted, values = planned_by_a_query(shore, name, 1, 101, **chosen)
    assert wanted.rows == -1
    shore.streams.purge_below(name, 41)

    with pytest.raises(ClientError, match=f"{name} lost the messages 1 to 40 .*: set failOnDataLoss=false"):
        sequences_of(wanted, values)
    assert min(sequences_of(wanted, {**values, "failOnDataLoss": False})) >= 41


def test_a_purge_of_everything_names_only_what_was_to_be_read(shore):
    name = shore.create()
    shore.fill(name, 100)
    wanted, values = planned_by_a_query(shore, name, 11, 31, subjects=f"{name}.1")
    shore.streams.purge(name)

    with pytest.raises(ClientError, match=f"{name} lost the messages 11 to 30 "):
        sequences_of(wanted, values)


def test_messages_that_were_gone_before_the_plan_are_no_loss(shore):
    name = shore.create()
    shore.fill(name, 20)
    for sequence in (1, 2, 7):
        shore.streams.ask(f"STREAM.MSG.DELETE.{name}", {"seq": sequence})
    wanted, values = planned_by_a_query(shore, name, 1, 21)
    chosen, values_of_chosen = planned_by_a_query(shore, name, 1, 21, subjects=f"{name}.0")

    assert sequences_of(wanted, values) == [3, 4, 5, 6, *range(8, 21)]
    assert sequences_of(chosen, values_of_chosen) == [5, 9, 13, 17]


def test_a_stream_that_was_emptied_before_the_plan_lost_nothing(shore):
    name = shore.create()
    shore.fill(name, 20)
    shore.streams.purge(name)
    wanted, values = planned_by_a_query(shore, name, 1, 21)

    assert sequences_of(wanted, values) == []


def test_messages_in_the_middle_that_were_deleted_after_the_plan_are_no_loss(shore):
    name = shore.create()
    shore.fill(name, 20)
    shore.streams.ask(f"STREAM.MSG.DELETE.{name}", {"seq": 7})
    wanted, values = planned_by_a_query(shore, name, 1, 21)
    shore.streams.ask(f"STREAM.MSG.DELETE.{name}", {"seq": 9})

    assert sequences_of(wanted, values) == [*range(1, 7), 8, *range(10, 21)]


def test_messages_that_others_take_from_a_work_queue_are_no_loss(shore):
    name = shore.create(retention="workqueue")
    shore.fill(name, 20)
    wanted, values = planned_by_a_query(shore, name, 1, 21, subjects=f"{name}.0")
    shore.streams.purge_below(name, 3)

    assert sequences_of(wanted, values) == [5, 9, 13, 17]


@pytest.mark.parametrize("known", [True, False], ids=["known_before", "found_by_the_reading"])
def test_a_message_that_is_damaged_on_disk_is_an_error_unless_allowed(fresh_shore, known):
    name = fresh_shore.create()
    fresh_shore.fill(name, 100, data=lambda number: b"payload-%03d-" % number * 8)
    damage(fresh_shore, name, b"payload-049-" * 8)
    if known:
        values = parse({"url": fresh_shore.url, "stream": name, "failOnDataLoss": "false"}, "read")
        sequences_of(StreamRange(stream=name, start=1, end=101, source="scan"), values)
    wanted, values = planned_by_a_query(fresh_shore, name, 1, 101)
    behind, _ = planned_by_a_query(fresh_shore, name, 51, 101)

    with pytest.raises(
        ClientError, match=f"{name} has messages that are damaged on the server's disk, 50: .*set failOnDataLoss=false"
    ):
        sequences_of(wanted, values)
    assert sequences_of(wanted, {**values, "failOnDataLoss": False}) == [*range(1, 50), *range(51, 101)]
    assert sequences_of(behind, values) == list(range(51, 101))
    with pytest.raises(ClientError, match="disk, 50: "):
        table(name, fresh_shore.url, columns=["sequence"]).to_arrow()


def damage(shore, name, payload):
    """Change one bit of a payload in the files of a server, which is stopped meanwhile."""
    shore.close()
    port, folder = shore.process.port, shore.process.folder
    shore.process.signal(signal.SIGTERM)
    shore.process.wait_for_exit()
    changed = 0
    for path in Path(folder / "store").rglob("*"):
        content = path.read_bytes() if path.is_file() else b""
        if (position := content.find(payload)) >= 0:
            path.write_bytes(content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :])
            changed += 1
    assert changed == 1
    shore.process = start_server_process(shore.kind, folder, ["-js", "-sd", str(folder / "store")], port=port)
    assert Streams(shore.streams.connection).state(name).next_sequence == 101


@pytest.mark.parametrize("transport", ["auto", "consumer", "direct_get"])
def test_the_end_of_a_range_within_a_stream_is_checked_while_more_is_on_its_way(shore, transport):
    name = shore.create()
    # Part of such a message, taken for what the server says, would be an error.
    shore.fill(name, MESSAGES, data=lambda _: b"\r\n-ERR 'payload'\r\n" * 2000)
    wanted, values = planned_by_a_query(shore, name, 3, 401, transport=transport, subjects=f"{name}.1")

    assert sequences_of(wanted, values) == list(range(6, 401, 4))
