"""The sink: rows become messages of a stream, each stored once, however often a task or a batch is repeated.

Every message has an id made of the query, the batch, the task and its content, so that what is sent again is known to
the server, in whatever order the rows come. The server forgets ids after the stream's duplicate window, which must
therefore outlast an outage; that is looked at when a query starts.

Invariant: an id depends on nothing that differs between two attempts at the same batch.
"""

import logging
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from jetlake.client.raw_streams import Streams, StreamState
from jetlake.errors import ClientError, ConfigurationError
from jetlake.spark.connecting import connect
from jetlake.spark.publishing import publish

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["JetlakeStreamWriter", "JetlakeWriter"]

LOG = logging.getLogger("jetlake.spark")

WINDOW_S_ADVISED = 3600
"""How long a stream should know ids: an outage that lasts longer is an incident of its own."""

QUERY_PROPERTY = "sql.streaming.queryId"
BATCH_PROPERTY = "streaming.sql.batchId"


_LOOKED_AT: set[tuple[str, str, str]] = set()
"""What this process has looked at before: Spark makes a writer twice for every batch."""


@dataclass
class Stored(WriterCommitMessage):
    """What a task tells the driver."""

    stored: int
    duplicates: int
    # The sequence below which an overwrite removes what was there before, else 0. It comes with the tasks because the
    # writer that commits is made after they have written.
    replaces_below: int


class JetlakeWriter(DataSourceArrowWriter):
    """Writes the rows of a batch query."""

    def __init__(self, values: dict[str, Any], *, overwrite: bool) -> None:
        if overwrite and values["writeId"]:
            raise ConfigurationError("writeId is for appending, and mode is overwrite: leave one of them out")
        self._values = values
        self._replaced = prepare(values, overwrite=overwrite)
        # Made here, so that every attempt at a task has the same one.
        self._write_id = values["writeId"] or uuid.uuid4().hex

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> Stored:
        return write_task(iterator, self._values, self._write_id, self._replaced)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        replace(self._values, messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Nothing to undo: what is stored is known by its ids when the write is repeated with the same writeId."""


class JetlakeStreamWriter(DataSourceStreamArrowWriter):
    """Writes the rows of every micro-batch of a query."""

    def __init__(self, values: dict[str, Any], *, overwrite: bool) -> None:
        self._values = values
        self._replaced = prepare(values, overwrite=overwrite)
        # A batch that replaces everything must not take what an earlier attempt left for its own.
        self._attempt = uuid.uuid4().hex if overwrite else ""

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> Stored:
        task = TaskContext.get()
        assert task is not None, "a writer runs in a task"
        query, batch = task.getLocalProperty(QUERY_PROPERTY), task.getLocalProperty(BATCH_PROPERTY)
        if not query or batch is None:
            raise ClientError("Spark does not say which query and batch this is: use PySpark 4.2 or newer")
        return write_task(iterator, self._values, f"{self._attempt}{query}-{batch}", self._replaced)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803
        replace(self._values, messages)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Nothing to undo: the batch is repeated with the same ids."""


def write_task(
    iterator: "Iterator[pa.RecordBatch]", values: dict[str, Any], write_id: str, replaces_below: int
) -> Stored:
    task = TaskContext.get()
    assert task is not None, "a writer runs in a task"
    published = publish(iterator, values, f"{write_id}-{task.partitionId()}")
    return Stored(published.stored, published.duplicates, replaces_below)


def prepare(values: dict[str, Any], *, overwrite: bool) -> int:
    """Look at the stream before anything is sent; return the sequence below which an overwrite removes, else 0."""
    if overwrite and not values["allowPurge"]:
        raise ConfigurationError(
            "overwriting removes every message of the stream: set allowPurge=true if that is meant, or append"
        )
    if overwrite and not values["stream"]:
        raise ConfigurationError("overwriting needs the option stream: it says which messages are removed")
    looked_at = (values["url"], values["stream"], values["subject"])
    if looked_at in _LOOKED_AT and not overwrite:
        return 0
    streams = connect(values)
    try:
        state = target(streams, values)
        _LOOKED_AT.add(looked_at)
        if state is None:
            return 0
        if state.sealed:
            raise ClientError(f"{state.name} is sealed and takes no messages: write to another stream")
        if values["guarantee"] == "exactly-once":
            check_window(state, values["duplicateWindow"])
        return state.next_sequence if overwrite else 0
    finally:
        streams.connection.close()


def target(streams: Streams, values: dict[str, Any]) -> StreamState | None:
    """Return the stream that is written to; None when only the rows say."""
    subject = values["subject"]
    if values["stream"]:
        state = streams.state(values["stream"])
        if subject and not any(covers(pattern, subject) for pattern in state.subjects):
            raise ConfigurationError(
                f"{state.name} takes no messages on {subject!r} but on {', '.join(state.subjects) or 'none'}: correct "
                "the option subject"
            )
        return state
    if not subject:
        return None
    names = streams.ask("STREAM.NAMES", {"subject": values["subject"]}).get("streams") or []
    if not names:
        raise ClientError(
            f"no stream takes messages on {values['subject']!r}: create one with this subject, or correct the option"
        )
    return streams.state(names[0])


def covers(pattern: str, subject: str) -> bool:
    """Tell whether a subject is one of those that a pattern with `*` and `>` means."""
    wanted, given = pattern.split("."), subject.split(".")
    for position, word in enumerate(wanted):
        if word == ">":
            return len(given) > position
        if position >= len(given) or word not in ("*", given[position]):
            return False
    return len(wanted) == len(given)


def check_window(state: StreamState, choice: str) -> None:
    """See to a duplicate window that is shorter than an outage may be."""
    window_s = state.duplicate_window_ns / 1e9
    if window_s >= WINDOW_S_ADVISED or choice == "ignore":
        return
    message = (
        f"{state.name} knows the ids of messages for {window_s:g} s: a batch that is repeated after a longer outage is "
        f"stored twice. Set duplicate_window of the stream to {WINDOW_S_ADVISED} s or more"
    )
    if choice == "refuse":
        raise ConfigurationError(f"{message}, or the option duplicateWindow=warn")
    LOG.warning("%s, or the option duplicateWindow=ignore", message)


def replace(values: dict[str, Any], messages: list[WriterCommitMessage | None]) -> None:
    """Remove what an overwrite replaces, now that its successor is stored."""
    below = max((message.replaces_below for message in messages if isinstance(message, Stored)), default=0)
    if below > 1:
        streams = connect(values)
        try:
            streams.purge_below(values["stream"], below)
        finally:
            streams.connection.close()
