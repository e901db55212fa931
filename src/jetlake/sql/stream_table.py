"""A stream as a table that DuckDB scans.

DuckDB asks for a stream of Arrow batches with the columns a query needs and the conditions it may leave to us. Only
those columns and those sequences are asked of the server; they come while the query runs, so that memory does not grow
with the stream.

Invariant: a scan yields exactly the rows of its conditions, in the order of their sequences.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from duckdb._sources import ArrowScanSource
from duckdb._sources.nodes import Node

from jetlake.errors import JetlakeError
from jetlake.spark.columns import MESSAGE, arrow_schema
from jetlake.spark.connecting import connect
from jetlake.spark.planning import Planner, StreamRange
from jetlake.spark.ranges import read_range
from jetlake.sql.bounds import Bounds, bounds_of

__all__ = ["StreamTable"]


class StreamTable(ArrowScanSource):
    """See the module. `values` are the options of the format, `stream` included."""

    schema_is_stable = True

    def __init__(self, values: dict[str, Any]) -> None:
        super().__init__(self)
        self._values = values
        # What ended a scan: DuckDB would tell it in its own words.
        self.failure: JetlakeError | None = None

    def __arrow_c_schema__(self) -> object:
        return arrow_schema(tuple(MESSAGE)).__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return all rows; by this DuckDB knows that it can scan a table, and then asks for a `stream`."""
        assert requested_schema is None, "DuckDB takes the columns as they are"
        return self.stream(None, ())[0]

    def accepts(self, predicate: Node) -> bool:
        """Tell whether the server can do a condition for DuckDB."""
        bounds = bounds_of(predicate)
        # With subjects of the user's own the server cannot be asked for another one too.
        return bounds is not None and not (bounds.subject is not None and self._values["subjects"])

    def stream(self, columns: Sequence[int] | None, filters: Sequence[Node]) -> tuple[object, bool]:
        """Return the rows of these conditions as a stream of Arrow, and that it has only these columns."""
        names = tuple(MESSAGE) if columns is None else tuple(list(MESSAGE)[index] for index in columns)
        bounds = Bounds()
        for condition in filters:
            accepted = bounds_of(condition)
            assert accepted is not None, "only what was accepted comes back"
            bounds = bounds.meet(accepted)
        reader = pa.RecordBatchReader.from_batches(arrow_schema(names), self._scan(names, bounds))
        return reader.__arrow_c_stream__(), columns is not None

    def _scan(self, columns: tuple[str, ...], bounds: Bounds) -> "Iterator[pa.RecordBatch]":
        values = dict(self._values)
        if bounds.subject is not None:
            values["subjects"] = (bounds.subject,)
        try:
            for part in ranges(values, bounds):
                for batch in read_range(part, columns or ("sequence",), values, executor=False):
                    yield batch.select(list(columns))
        except JetlakeError as error:
            self.failure = error
            raise


def ranges(values: dict[str, Any], bounds: Bounds) -> list[StreamRange]:
    """Return what a stream holds now, as far as the options and the bounds leave it, as ranges to read."""
    if bounds.impossible:
        return []
    planner = Planner(connect(values), {**values, "minPartitions": 1})
    try:
        found = []
        for state in planner.states().values():
            start = max(planner.begin(state, "earliest").next, state.first_sequence, bounds.start)
            end = planner.finish(state)
            found += planner.divide(state, start, end if bounds.end is None else min(end, bounds.end))
        return found
    finally:
        planner.close()
