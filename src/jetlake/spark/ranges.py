"""Reads one range of one stream as Arrow batches: a connection, the engine's reader, and the check that all came.

The sources are those of the engine: `scan` (Jetlake makes the columns and sends only those; on the same host they are
read from its files), `files` (from those or not at all), `consumer` (an ordered one, on any server), `direct_get`.

Invariant: a range either gives every row it has, or raises; it never ends early in silence.
"""

import json
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from jetlake._engine import EngineError, RowReader
from jetlake.client.raw_connection import RawConnection
from jetlake.client.raw_streams import RemoteStreamState, Streams
from jetlake.errors import ClientError, ConfigurationError
from jetlake.spark import files
from jetlake.spark.connecting import connect
from jetlake.spark.planning import StreamRange

if TYPE_CHECKING:
    import pyarrow as pa

    from jetlake._engine import RowBatch

__all__ = ["read_range"]

SILENCE_S_MAX = 60.0
"""A server that sends no byte for this long, not even a heartbeat, is not going to."""

RECONNECTS_MAX = 3
"""Connections of one range that may break one after the other without bringing a row."""

RESTART_S_MAX = 30.0
"""How long a server that was there may be away."""

RESTART_POLL_S = 0.2

DAMAGED_NAMED_MAX = 10
"""Damaged messages that an error names."""


def read_range(
    wanted: StreamRange, columns: tuple[str, ...], values: dict[str, Any], *, executor: bool = True
) -> "Iterator[pa.RecordBatch]":
    """Yield the rows of a range. Raises `ClientError`.

    A connection that breaks, or that the server gave up because rows were taken too slowly, is made again; reading
    continues after the last row that came.
    """
    import pyarrow as pa

    start = wanted.start
    rows = 0
    if wanted.source == "files" or may_use_files(wanted, values):
        streams = connect(values, executor=executor)
        try:
            if streams.connection.is_local or wanted.source == "files":
                taken = files.FileRows(streams, wanted, columns, values)
                yield from taken.batches()
                rows, start = taken.rows, max(start, taken.last_sequence + 1)
                if taken.complete:
                    check_count(streams, wanted, rows, values)
                    return
                if wanted.source == "files":
                    raise ConfigurationError(
                        f"{wanted.stream} cannot be read from files ({taken.reason}): leave out transport=files"
                    )
        finally:
            streams.connection.close()
    fruitless = 0
    while True:
        streams = connect_again(values, patient=start > wanted.start or fruitless > 0, executor=executor)
        connection = streams.connection
        reader = RowReader(json.dumps(reader_options(wanted, start, columns, values, streams)).encode())
        try:
            for batch in batches_of(reader, connection):
                yield pa.record_batch(batch)
            if wanted.source != "scan" and may_miss_rows(wanted, rows + reader.rows, values):
                # The reader may have kept the beginning of a message from beyond the range: the rest is not an answer.
                connection.close()
                streams = connect_again(values, patient=True, executor=executor)
                connection = streams.connection
            check_count(streams, wanted, rows + reader.rows, values)
            return
        except (ClientError, EngineError) as error:
            fruitless = 0 if reader.rows else fruitless + 1
            lost = connection.broken or (isinstance(error, EngineError) and error.args[0] == "lost")
            if not lost or fruitless > RECONNECTS_MAX:
                raise as_ours(error, f"{wanted.stream} from {start} to {wanted.end}") from error
            for batch in reader.flush():
                yield pa.record_batch(batch)
            rows += reader.rows
            start = max(start, reader.last_sequence + 1)
        finally:
            connection.close()


def may_use_files(wanted: StreamRange, values: dict[str, Any]) -> bool:
    """Tell whether files are worth a try: nobody has chosen another way, and there are rows enough."""
    return wanted.source == "scan" and values["transport"] == "auto" and wanted.end - wanted.start >= files.ROWS_MIN


def batches_of(reader: RowReader, connection: RawConnection) -> "Iterator[RowBatch]":
    """Yield what the reader makes of what the connection brings."""
    connection.send(reader.to_send())
    data = connection.take_unparsed()
    while True:
        yield from reader.feed(data)
        if to_send := reader.to_send():
            connection.send(to_send)
        if reader.finished:
            break
        data = connection.receive(SILENCE_S_MAX)
    yield from reader.flush()


def connect_again(values: dict[str, Any], *, patient: bool, executor: bool) -> Streams:
    """Connect; after a connection has broken, with patience for a server that starts again."""
    deadline = time.monotonic() + RESTART_S_MAX
    while True:
        try:
            return connect(values, executor=executor)
        except ClientError:
            if not patient or time.monotonic() > deadline:
                raise
            time.sleep(RESTART_POLL_S)


def reader_options(
    wanted: StreamRange, start: int, columns: tuple[str, ...], values: dict[str, Any], streams: Streams
) -> dict[str, Any]:
    """Return the options of the engine's reader."""
    return {
        "stream": wanted.stream,
        "inbox": streams.connection.new_inbox(),
        "sid": streams.connection.new_subscription(),
        "api_prefix": streams.api_prefix,
        "source": wanted.source,
        "start": start,
        "end": wanted.end,
        "columns": list(columns),
        "subjects": list(values["subjects"]),
        "decompress": "" if values["decompress"] == "none" else values["decompress"],
        "bad_payload": values["badPayload"],
    }


def check_count(streams: Streams, wanted: StreamRange, rows: int, values: dict[str, Any]) -> None:
    """Raise when messages are lost, or rows are missing that the plan promised and nobody has deleted since."""
    if not may_miss_rows(wanted, rows, values):
        return
    state = streams.state(wanted.stream)
    check_damage(wanted, state)
    if rows == wanted.rows or (wanted.rows < 0 and is_worked_off(state, values)):
        return
    # Without a promised count nobody can say whether these were read before they went, so they count as lost.
    expected = max(wanted.start, wanted.first_sequence)
    if state.first_sequence > expected and wanted.end > expected:
        last = min(state.first_sequence, wanted.end) - 1
        raise ClientError(
            f"{wanted.stream} lost the messages {expected} to {last} while they were read: "
            "set failOnDataLoss=false to go on without them"
        )
    if wanted.rows < 0:
        return
    now = rows_now(streams, wanted, state, values)
    if now is not None and rows != now:
        raise ClientError(
            f"{wanted.stream} gave {rows} of {wanted.rows} messages from {wanted.start} to {wanted.end}: try again"
        )


def may_miss_rows(wanted: StreamRange, rows: int, values: dict[str, Any]) -> bool:
    """Tell whether it must be asked if all rows came: not where each sequence gave one."""
    has_every_sequence = rows == wanted.end - wanted.start and wanted.rows in (-1, rows)
    return values["failOnDataLoss"] and not has_every_sequence


def check_damage(wanted: StreamRange, state: RemoteStreamState) -> None:
    """Raise when the server found messages of a range damaged: it passes over them and no longer counts them."""
    expected = max(wanted.start, wanted.first_sequence)
    damaged = [sequence for sequence in state.damaged if expected <= sequence < wanted.end]
    if damaged:
        named = ", ".join(map(str, damaged[:DAMAGED_NAMED_MAX]))
        more = ", …" if len(damaged) > DAMAGED_NAMED_MAX else ""
        raise ClientError(
            f"{wanted.stream} has messages that are damaged on the server's disk, {named}{more}: restore them from a "
            "backup, or set failOnDataLoss=false to go on without them"
        )


def is_worked_off(state: RemoteStreamState, values: dict[str, Any]) -> bool:
    """Tell whether messages go because consumers of others have them, which is not a loss."""
    return state.retention != "limits" and not values["deleteOnCommit"]


def rows_now(streams: Streams, wanted: StreamRange, state: RemoteStreamState, values: dict[str, Any]) -> int | None:
    """Return how many messages a range has after some were deleted; None where nobody can say."""
    if wanted.source in ("scan", "files"):
        plan = streams.plan(wanted.stream, start=wanted.start, end=wanted.end, subjects=values["subjects"])
        return plan.rows
    return wanted.rows if state.messages == state.next_sequence - state.first_sequence else None


def as_ours(error: ClientError | EngineError, what: str) -> Exception:
    """Return an error of the engine's bulk part as one of the list; others as they are."""
    if isinstance(error, ClientError):
        return error
    kind, message = error.args if len(error.args) == 2 else ("", str(error))
    return ConfigurationError(f"{what}: {message}") if kind == "options" else ClientError(f"{what}: {message}")
