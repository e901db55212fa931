"""One range of one stream, and what may happen while it is read."""

import pytest

from jetlake.errors import ClientError
from jetlake.spark.options import parse
from jetlake.spark.planning import StreamRange
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
