"""Reads a table as it grows: one micro-batch after the other, each a half-open range of every stream.

Spark asks for the newest offset a hundred times a second when nothing happens, so the answer waits here for a message
to come. It asks for the first offset twice, and never says that it has stopped: the first answer is kept, and nothing
on the server has to be given back.

Invariant: what `latestOffset` returns is never before its `start`, and is the very same when there is nothing new.
"""

import logging
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from jetlake.client.raw_streams import RemoteStreamState
from jetlake.errors import ClientError, ConfigurationError
from jetlake.spark.batch_reader import RangePartition, read_partition
from jetlake.spark.columns import Narrowed
from jetlake.spark.connecting import connect
from jetlake.spark.offsets import Offset, StreamPosition
from jetlake.spark.planning import Planner

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["JetlakeStreamReader"]

LOG = logging.getLogger("jetlake.spark")

POLL_S = 0.02
"""Between two looks at a stream that has nothing new: far below the time of a micro-batch."""

RESTART_S_MAX = 60.0
"""How long a server may be away before the query fails."""

RESTART_POLL_S = 0.5

Answer = TypeVar("Answer")


class JetlakeStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The reader of one query; on the driver in a process of its own, on executors only for `read`."""

    def __init__(self, values: dict[str, Any], narrowed: Narrowed) -> None:
        self._values = values
        self._narrowed = narrowed
        self._planner: Planner | None = None
        self._first: Offset | None = None
        self._newest: Offset | None = None
        # With AvailableNow: the sequence at which each stream ends.
        self._ends: dict[str, int] | None = None
        self._last_batch_s = time.monotonic()

    def __getstate__(self) -> dict[str, Any]:
        # A connection does not cross to another process.
        return {**self.__dict__, "_planner": None}

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        if self._first is None:

            def begin(planner: Planner) -> Offset:
                states = self._states(planner)
                return Offset({name: planner.begin(state, "latest") for name, state in states.items()})

            self._first = self._ask(begin)
        return self._first.to_json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self._values["maxRowsPerTrigger"])

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        states = self._ask(self._states)
        self._ends = {name: state.next_sequence for name, state in states.items()}

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        begin = Offset.from_json(start)
        rows_max, bytes_max = self._limits(limit)

        def look(planner: Planner) -> tuple[Offset, dict[str, RemoteStreamState]]:
            states = self._capped(self._states(planner))
            return self._go_on(planner, begin, states), states

        deadline = time.monotonic() + self._values["pollTimeoutMs"] / 1000
        while True:
            position, states = self._ask(look)
            self._newest = Offset(
                {
                    **begin.streams,
                    **{name: StreamPosition(state.created, state.next_sequence) for name, state in states.items()},
                }
            )
            waiting = sum(states[name].next_sequence - one.next for name, one in position.streams.items())
            if waiting > 0 and self._enough(waiting):
                break
            if self._ends is not None or time.monotonic() >= deadline:
                return begin.to_json()
            time.sleep(POLL_S)
        self._last_batch_s = time.monotonic()
        end = self._ask(lambda planner: planner.admit(position, states, rows_max, bytes_max))
        return Offset({**begin.streams, **end.streams}).to_json()

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        return None if self._newest is None else self._newest.to_json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        begin, finish = Offset.from_json(start), Offset.from_json(end)

        def plan(planner: Planner) -> list[InputPartition]:
            planned: list[InputPartition] = []
            for name, until in finish.streams.items():
                position = begin.streams.get(name)
                # A new or recreated stream is read from its beginning.
                known = position is not None and position.created == until.created
                low = position.next if position is not None and known else 1
                if low >= until.next:
                    continue
                state = planner.state(name)
                planner.check(
                    state,
                    StreamPosition(until.created, low)
                    if known
                    else StreamPosition(until.created, state.first_sequence),
                )
                if state.created != until.created:
                    # Recreated since the batch was planned; the planned messages are gone, which is allowed here.
                    continue
                planned += [RangePartition(one) for one in planner.split(state, low, until.next, until.parts)]
            return planned

        return self._ask(plan)

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        return read_partition(partition, self._narrowed, self._values)

    def commit(self, end: dict[str, Any]) -> None:
        """Show how far the query is, and forget what a work queue need not keep. Nothing of it has to succeed."""
        if not self._values["progressConsumer"] and not self._values["deleteOnCommit"]:
            return
        for name, position in Offset.from_json(end).streams.items():
            try:
                self._ask(partial(self._apply_commit, name, position))
            except ClientError as error:
                LOG.warning("what is read of %s is not shown to the server: %s", name, error)

    def stop(self) -> None:
        if self._planner is not None:
            self._planner.close()
            self._planner = None

    def _apply_commit(self, name: str, position: StreamPosition, planner: Planner) -> None:
        if self._values["progressConsumer"]:
            planner.streams.show_progress(name, self._values["progressConsumer"], position.next)
        if self._values["deleteOnCommit"]:
            for subject in self._values["subjects"] or ("",):
                planner.streams.purge_below(name, position.next, subject)

    def _states(self, planner: Planner) -> dict[str, RemoteStreamState]:
        states = planner.states()
        for state in states.values():
            self._check_retention(state)
        return states

    def _check_retention(self, state: RemoteStreamState) -> None:
        delete = self._values["deleteOnCommit"]
        if state.retention == "workqueue" and not delete:
            raise ConfigurationError(
                f"{state.name} is a work queue, whose messages others take away: read a stream with retention limits "
                "that mirrors or sources it, or set deleteOnCommit=true if this query alone works it off"
            )
        if state.retention == "interest":
            raise ConfigurationError(
                f"{state.name} keeps messages only until its consumers have them: read a stream with retention limits "
                "that mirrors or sources it"
            )
        if delete and state.retention != "workqueue":
            raise ConfigurationError(f"deleteOnCommit is for work queues, and {state.name} is none: leave it out")

    def _capped(self, states: dict[str, RemoteStreamState]) -> dict[str, RemoteStreamState]:
        """Return the streams as they stood when AvailableNow began."""
        if self._ends is None:
            return states
        return {name: state.until(self._ends[name]) for name, state in states.items() if name in self._ends}

    def _go_on(self, planner: Planner, begin: Offset, states: dict[str, RemoteStreamState]) -> Offset:
        """Return the position in each stream to go on from."""
        gone = sorted(begin.streams.keys() - states.keys())
        if gone and self._values["failOnDataLoss"]:
            raise ClientError(
                f"{', '.join(gone)} was read and is no longer there: set failOnDataLoss=false to go on without it"
            )
        positions = {}
        for name, state in states.items():
            position = begin.streams.get(name)
            fresh = StreamPosition(state.created, state.first_sequence)
            positions[name] = fresh if position is None else planner.check(state, position)
        return Offset(positions)

    def _enough(self, waiting: int) -> bool:
        return (
            self._ends is not None
            or waiting >= self._values["minRowsPerTrigger"]
            or time.monotonic() - self._last_batch_s >= self._values["maxTriggerDelay"]
        )

    def _limits(self, limit: ReadLimit) -> tuple[int | None, int | None]:
        if isinstance(limit, ReadAllAvailable):
            return None, None
        rows = limit.max_rows if isinstance(limit, ReadMaxRows) else self._values["maxRowsPerTrigger"]
        size = limit.max_bytes if isinstance(limit, ReadMaxBytes) else self._values["maxBytesPerTrigger"]
        return rows, size

    def _ask(self, question: Callable[[Planner], Answer]) -> Answer:
        """Ask over this process's connection; a server that starts again is waited for."""
        deadline = time.monotonic() + RESTART_S_MAX
        while True:
            planner = self._planner
            try:
                if planner is None:
                    planner = self._planner = Planner(connect(self._values), self._values)
                return question(planner)
            except ClientError:
                lost = planner is None or planner.streams.connection.broken
                was_connected = planner is not None or self._first is not None or self._newest is not None
                if not lost or not was_connected or time.monotonic() > deadline:
                    raise
                self.stop()
                time.sleep(RESTART_POLL_S)
