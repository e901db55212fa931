"""The sink: rows become messages of a stream, each stored once, however often a task or a batch is repeated.

There are two ways. On a Jetlake server the tasks of a query upload their rows, and its driver commits them: the server
stores all of a batch at once, and remembers the last batch of the query, for good. On any NATS server, and for a batch
query, every message has an id made of the query, the batch, the task and its content, so that what is sent again is
known to the server, in whatever order the rows come. The server forgets ids after the stream's duplicate window, which
must therefore outlast an outage; that is looked at when a query starts.

Invariant: an id depends on nothing that differs between two attempts at the same batch.
"""

import logging
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from jetlake.client.raw_streams import RemoteStreamState, Streams
from jetlake.errors import ClientError, ConfigurationError
from jetlake.shared.subjects import matches
from jetlake.spark.connecting import connect
from jetlake.spark.publishing import Upload, publish

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["JetlakeStreamWriter", "JetlakeWriter"]

LOG = logging.getLogger("jetlake.spark")

WINDOW_S_ADVISED = 3600
"""How long a stream should know ids: an outage that lasts longer is an incident of its own."""

QUERY_PROPERTY = "sql.streaming.queryId"
BATCH_PROPERTY = "streaming.sql.batchId"


_LOOKED_AT: "dict[tuple[str, str, str], TargetStream]" = {}
"""What this process has looked at before: Spark makes a writer twice for every batch."""


@dataclass(frozen=True)
class TargetStream:
    """The stream that is written to; its name is empty when only the rows say."""

    stream: str = ""
    is_jetlake: bool = False
    # The sequence below which an overwrite removes what was there before, else 0.
    replaces_below: int = 0


@dataclass
class TaskStored(WriterCommitMessage):
    """What a task tells the driver."""

    stored: int
    duplicates: int
    # As of `TargetStream`. It comes with the tasks because the writer that commits is made after they have written.
    replaces_below: int


@dataclass
class Uploaded(WriterCommitMessage):
    """What a task tells the driver that is to commit it."""

    stream: str
    query: str
    upload: str
    messages: int


class JetlakeWriter(DataSourceArrowWriter):
    """Writes the rows of a batch query."""

    def __init__(self, values: dict[str, Any], *, overwrite: bool) -> None:
        if overwrite and values["writeId"]:
            raise ConfigurationError("writeId is for appending, and mode is overwrite: leave one of them out")
        if values["commit"] == "staged":
            raise ConfigurationError("commit=staged is for queries, whose batches have numbers: leave it out")
        self._values = values
        self._replaced = prepare(values, overwrite=overwrite).replaces_below
        # Made here, so that every attempt at a task has the same one.
        self._write_id = values["writeId"] or uuid.uuid4().hex

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> TaskStored:
        return write_task(iterator, self._values, self._write_id, self._replaced)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        replace(self._values, messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Nothing to undo: what is stored is known by its ids when the write is repeated with the same writeId."""


class JetlakeStreamWriter(DataSourceStreamArrowWriter):
    """Writes the rows of every micro-batch of a query."""

    def __init__(self, values: dict[str, Any], *, overwrite: bool) -> None:
        self._values = values
        target = prepare(values, overwrite=overwrite, is_query=True)
        self._replaced = target.replaces_below
        self._staged = target.stream if is_staged(values, target, overwrite=overwrite) else ""
        # Made here, so that every task of a batch has the same one. A batch that replaces everything must not take what
        # an earlier attempt left for its own, and uploads of an earlier attempt are dropped.
        self._attempt = uuid.uuid4().hex

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> WriterCommitMessage:
        task = TaskContext.get()
        assert task is not None, "a writer runs in a task"
        query, batch = task.getLocalProperty(QUERY_PROPERTY), task.getLocalProperty(BATCH_PROPERTY)
        if not query or batch is None:
            raise ClientError("Spark does not say which query and batch this is: use PySpark 4.2 or newer")
        if self._staged:
            upload = Upload(uuid.uuid4().hex, query, self._attempt)
            published = publish(iterator, {**self._values, "stream": self._staged}, upload)
            return Uploaded(self._staged, query, upload.id, published.stored)
        attempt = self._attempt if self._replaced else ""
        return write_task(iterator, self._values, f"{attempt}{query}-{batch}", self._replaced)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        uploaded = uploads(messages)
        if not uploaded:
            replace(self._values, messages)
            return
        first = uploaded[0]
        named = {one.upload: one.messages for one in uploaded}
        streams = connect(self._values)
        try:
            if not streams.commit_uploads(first.stream, first.query, batchId, named):
                LOG.info("batch %d of query %s was stored before", batchId, first.query)
        finally:
            streams.connection.close()

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803
        """Drop what was uploaded. Otherwise there is nothing to undo: the batch is repeated with the same ids."""
        if uploaded := uploads(messages):
            streams = connect(self._values)
            try:
                streams.abort_uploads(uploaded[0].stream, [one.upload for one in uploaded])
            finally:
                streams.connection.close()


def uploads(messages: list[WriterCommitMessage | None]) -> list[Uploaded]:
    """Return the uploads that have anything in them."""
    return [message for message in messages if isinstance(message, Uploaded) and message.messages]


def is_staged(values: dict[str, Any], target: TargetStream, *, overwrite: bool) -> bool:
    """Return whether batches are uploaded and committed. Raises `ConfigurationError` if they should be and cannot."""
    reasons = {
        "commit is ids": values["commit"] == "ids",
        "guarantee is at-least-once": values["guarantee"] != "exactly-once",
        "msgIdColumn names ids": bool(values["msgIdColumn"]),
        "every batch replaces the one before": overwrite,
        "only the rows say which stream they go to: give the option stream or subject": not target.stream,
        "the server is not Jetlake": not target.is_jetlake,
    }
    hindrance = next((reason for reason, holds in reasons.items() if holds), None)
    if hindrance is not None and values["commit"] == "staged":
        raise ConfigurationError(f"commit=staged is not possible: {hindrance}")
    return hindrance is None


def write_task(
    iterator: "Iterator[pa.RecordBatch]", values: dict[str, Any], write_id: str, replaces_below: int
) -> TaskStored:
    task = TaskContext.get()
    assert task is not None, "a writer runs in a task"
    published = publish(iterator, values, f"{write_id}-{task.partitionId()}")
    return TaskStored(published.stored, published.duplicates, replaces_below)


def prepare(values: dict[str, Any], *, overwrite: bool, is_query: bool = False) -> TargetStream:
    """Look at the stream before anything is sent."""
    if overwrite and not values["allowPurge"]:
        raise ConfigurationError(
            "overwriting removes every message of the stream: set allowPurge=true if that is meant, or append"
        )
    if overwrite and not values["stream"]:
        raise ConfigurationError("overwriting needs the option stream: it says which messages are removed")
    looked_at = (values["url"], values["stream"], values["subject"])
    if looked_at in _LOOKED_AT and not overwrite:
        return _LOOKED_AT[looked_at]
    streams = connect(values)
    try:
        state = target(streams, values)
        found = TargetStream(is_jetlake=streams.connection.is_jetlake)
        if state is not None:
            if state.sealed:
                raise ClientError(f"{state.name} is sealed and takes no messages: write to another stream")
            found = TargetStream(state.name, found.is_jetlake, state.next_sequence if overwrite else 0)
            by_ids = not (is_query and is_staged(values, found, overwrite=overwrite))
            if by_ids and values["guarantee"] == "exactly-once":
                check_window(state, values["duplicateWindow"])
        if not overwrite:
            _LOOKED_AT[looked_at] = found
        return found
    finally:
        streams.connection.close()


def target(streams: Streams, values: dict[str, Any]) -> RemoteStreamState | None:
    """Return the stream that is written to; None when only the rows say."""
    subject = values["subject"]
    if values["stream"]:
        state = streams.state(values["stream"])
        if subject and not any(matches(pattern, subject) for pattern in state.subjects):
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


def check_window(state: RemoteStreamState, choice: str) -> None:
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
    below = max((message.replaces_below for message in messages if isinstance(message, TaskStored)), default=0)
    if below > 1:
        streams = connect(values)
        try:
            streams.purge_below(values["stream"], below)
        finally:
            streams.connection.close()
