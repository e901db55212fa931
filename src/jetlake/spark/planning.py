"""Which sequences are read, and how they are split into tasks.

A range is half-open, `[start, end)`. In a stream that keeps its messages a range has the same rows whenever it is
read, so a task that is repeated reads the same; and a range can be cut anywhere, so one stream is read by many tasks.

Invariant: the ranges of a split are in order, touch each other, and together are exactly what was split.
"""

import difflib
import itertools
import os
import re
from typing import Any

import msgspec

from jetlake.client.raw_streams import NO_STREAM, RefusedError, RemoteStreamState, Streams
from jetlake.errors import ClientError, ConfigurationError, reworded
from jetlake.spark.connecting import connect
from jetlake.spark.offsets import Offset, StreamPosition

__all__ = ["Planner", "StreamRange"]

TASK_ROWS_MIN = 4096
"""A range is not split into tasks of fewer sequences: starting a task costs more than reading them."""

TASKS_MAX = 10_000
"""Ranges of one plan, at most; a plan with more of them is slower to schedule than to read."""

DIRECT_GET_VERSION = (2, 11)
"""The first nats-server that answers one request with a batch of messages."""


class StreamRange(msgspec.Struct, frozen=True, kw_only=True):
    """What one task reads."""

    stream: str
    start: int
    end: int
    # How the rows come: see `ranges`.
    source: str
    # How many rows there are if that is known, else -1.
    rows: int = -1
    # The first sequence of the stream when this was planned: messages before it are not lost to this reading.
    first_sequence: int = 1


class Planner:
    """Plans for one table, over one connection. Every method raises `ClientError` or `ConfigurationError`."""

    def __init__(self, streams: Streams, values: dict[str, Any]) -> None:
        self.streams = streams
        self._values = values
        # Whether the server plans and scans; not known until it is asked.
        self._scans: bool | None = None

    def close(self) -> None:
        self.streams.connection.close()

    # Which streams.

    def names(self) -> list[str]:
        """Return the names of the streams of this table, sorted."""
        values = self._values
        given = [name for name in ("stream", "streams", "streamsPattern") if values[name]]
        if len(given) != 1:
            raise ConfigurationError(
                f"{' and '.join(given)} are both given: give one of them"
                if given
                else "no stream is named: give one of the options stream, streams and streamsPattern"
            )
        if values["stream"]:
            return [values["stream"]]
        if values["streams"]:
            return sorted(set(values["streams"]))
        try:
            pattern = re.compile(values["streamsPattern"])
        except re.error as error:
            raise ConfigurationError(f"streamsPattern is not a regular expression: {error}") from error
        return [name for name in self.streams.names() if pattern.fullmatch(name)]

    def states(self) -> dict[str, RemoteStreamState]:
        """Return how each stream of this table stands."""
        return {name: self.state(name) for name in self.names()}

    def state(self, name: str) -> RemoteStreamState:
        try:
            return self.streams.state(name)
        except RefusedError as refusal:
            if refusal.code != NO_STREAM:
                raise
            try:
                near = difflib.get_close_matches(name, self.streams.names(), n=1, cutoff=0.5)
            except ClientError:
                # A user may be allowed to read one stream and not to list them all.
                near = []
            hint = f"did you mean {near[0]}? Names are case-sensitive" if near else "create it, or correct the name"
            raise reworded(
                refusal, f"there is no stream {name!r} at {self.streams.connection.url}: {hint}"
            ) from refusal

    # Where to begin and where to end.

    def begin(self, state: RemoteStreamState, default: str) -> StreamPosition:
        """Return the first position of a stream."""
        values = self._values
        if values["startingTimestamp"]:
            found = self.streams.first_sequence_at(state.name, values["startingTimestamp"])
            if found is None and values["startingTimestampStrategy"] == "error":
                raise ClientError(
                    f"every message of {state.name} is older than {values['startingTimestamp']}: give an earlier "
                    "startingTimestamp, or startingTimestampStrategy=latest"
                )
            return StreamPosition(state.created, state.next_sequence if found is None else found)
        chosen = _of_stream(values["startingSequence"], state.name) or default
        if chosen == "earliest":
            return StreamPosition(state.created, state.first_sequence)
        if chosen == "latest":
            return StreamPosition(state.created, state.next_sequence)
        return StreamPosition(state.created, int(chosen))

    def finish(self, state: RemoteStreamState) -> int:
        """Return the sequence at which a batch ends; it is not included."""
        values = self._values
        if values["endingTimestamp"]:
            found = self.streams.first_sequence_at(state.name, values["endingTimestamp"])
            return state.next_sequence if found is None else found
        chosen = _of_stream(values["endingSequence"], state.name) or "latest"
        if chosen == "earliest":
            raise ConfigurationError("endingSequence is earliest: there is nothing before it, give a later one")
        return state.next_sequence if chosen == "latest" else min(int(chosen), state.next_sequence)

    def check(self, state: RemoteStreamState, position: StreamPosition) -> StreamPosition:
        """Return the position to go on from: the same one, or a later one where losing messages is allowed."""
        lost = ""
        behind = position
        if position.created and position.created != state.created:
            lost = f"{state.name} was deleted and created again ({position.created}, now {state.created})"
            behind = StreamPosition(state.created, state.first_sequence)
        elif position.next > state.next_sequence:
            lost = f"{state.name} ends before {position.next}, up to which it was read: it was restored or cut"
            behind = StreamPosition(state.created, state.next_sequence)
        elif position.next < state.first_sequence:
            lost = f"{state.name} no longer has the messages {position.next} to {state.first_sequence - 1}"
            behind = StreamPosition(state.created, state.first_sequence)
        if lost and self._values["failOnDataLoss"]:
            raise ClientError(
                f"{lost}: set failOnDataLoss=false to go on at {behind.next}, or begin with a new checkpoint"
            )
        return behind

    # How much at a time.

    def admit(
        self, start: Offset, states: dict[str, RemoteStreamState], rows_max: int | None, bytes_max: int | None
    ) -> Offset:
        """Return the end of the next batch: at most this many rows and bytes, shared by what each stream has waiting.

        `start` has a position in each stream of `states`.
        """
        waiting = {name: max(states[name].next_sequence - position.next, 0) for name, position in start.streams.items()}
        total = sum(waiting.values())
        positions = {}
        for name, position in start.streams.items():
            take = waiting[name]
            if take == 0:
                positions[name] = position
                continue
            if rows_max is not None and total > rows_max:
                take = min(take, max(rows_max * take // total, 1))
            end = self._bounded(
                states[name], position.next, take, bytes_max and max(bytes_max * waiting[name] // total, 1)
            )
            positions[name] = StreamPosition(position.created, end, self.parts(end - position.next))
        return Offset(positions)

    def _bounded(self, state: RemoteStreamState, start: int, count: int, bytes_max: int | None) -> int:
        """Return the end of at most `count` sequences, and about `bytes_max` bytes, from `start` on."""
        if bytes_max is None or state.size_bytes <= bytes_max:
            return start + count
        if self.scans(state.name):
            plan = self.streams.plan(state.name, start=start, end=start + count, bytes_max=bytes_max)
            # With nothing left in the range, because all of it was deleted, it is passed over.
            return max(plan.end, start + 1) if plan.rows else start + count
        average = state.bytes_per_message
        return start + (min(count, max(int(bytes_max / average), 1)) if average else count)

    def parts(self, count: int) -> int:
        """Return into how many tasks this many sequences are split."""
        wanted = self._values["minPartitions"] or os.cpu_count() or 1
        parts = min(wanted, max(count // TASK_ROWS_MIN, 1))
        return int(min(max(parts, -(-count // self._values["maxRowsPerPartition"])), TASKS_MAX))

    def split(self, state: RemoteStreamState, start: int, end: int, parts: int) -> list[StreamRange]:
        """Split a range into one part per task; the cuts depend on nothing but these three numbers."""
        count = end - start
        if count <= 0:
            return []
        source = self.source(state)
        # Every sequence has its message where none was deleted and none is left out.
        whole = state.messages == state.next_sequence - state.first_sequence and not self._values["subjects"]
        edges = [start + count * part // parts for part in range(parts + 1)]
        return [
            StreamRange(
                stream=state.name,
                start=low,
                end=high,
                source=source,
                rows=high - low if whole and low >= state.first_sequence and high <= state.next_sequence else -1,
                first_sequence=state.first_sequence,
            )
            for low, high in itertools.pairwise(edges)
        ]

    def divide(self, state: RemoteStreamState, start: int, end: int) -> list[StreamRange]:
        """Return a range as what tasks read, by bytes where the server can say; for reading once."""
        parts = self.parts(end - start)
        if end <= start or self.source(state) not in ("scan", "files") or not self.scans(state.name):
            return self.split(state, start, end, parts)
        subjects = self._values["subjects"]
        plan = self.streams.plan(state.name, start=start, end=end, parts=parts, subjects=subjects)
        return [
            StreamRange(
                stream=state.name,
                start=one.start,
                end=one.end,
                source=self.source(state),
                rows=one.rows,
                first_sequence=state.first_sequence,
            )
            for one in plan.ranges
        ]

    def scans(self, name: str) -> bool:
        """Tell whether the server plans and scans: a Jetlake that is new enough."""
        if self._scans is None:
            self._scans = False
            if self.streams.connection.is_jetlake and self._values["transport"] in ("auto", "scan", "files"):
                try:
                    self.streams.plan(name, start=1, end=2)
                    self._scans = True
                except ClientError:
                    # An older one does not answer, and one that may not be asked says so: the rows come another way.
                    self.streams = connect(self._values) if self.streams.connection.broken else self.streams
        return self._scans

    def source(self, state: RemoteStreamState) -> str:
        """Return how rows of a stream are read."""
        chosen = self._values["transport"]
        if chosen in ("consumer", "direct_get", "scan", "files"):
            if chosen in ("scan", "files") and not self.streams.connection.is_jetlake:
                raise ConfigurationError(
                    f"transport={chosen} needs a Jetlake server, and {self.streams.connection.url} is another one: "
                    "leave the option out"
                )
            return str(chosen)
        if chosen == "auto" and self.scans(state.name):
            return "scan"
        if state.retention == "limits":
            return "consumer"
        # A consumer of these streams would take messages away, or be refused.
        if not state.allow_direct or self.streams.connection.server_version < DIRECT_GET_VERSION:
            raise ConfigurationError(
                f"{state.name} keeps messages only until they are taken ({state.retention}), so it is read by direct "
                "get: set allow_direct on the stream, on a server of version 2.11 or newer"
            )
        return "direct_get"


def _of_stream(chosen: Any, name: str) -> str | int | None:
    found = chosen.get(name) if isinstance(chosen, dict) else chosen
    return found if isinstance(found, str | int) else None
