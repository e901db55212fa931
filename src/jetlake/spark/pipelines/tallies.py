"""Sums that grow batch by batch: the rows of a batch added to what a table has for the same keys.

Why a restart is exact: a table remembers the last batch of a query in the commit that holds it. A batch that is there
already is not added again; its rows are then those of the table.

Invariant: a frame has every key once, and so has the result.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from jetlake.spark.pipelines.model import TableOutput

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame

    from jetlake.spark.lake.table import LakeTable

__all__ = ["with_totals"]


def with_totals(frame: "DataFrame", table: "LakeTable", output: TableOutput, query: str, batch: int) -> "DataFrame":
    """Return the rows of a batch with the sums that the table will have."""
    counted = frame.toArrow()
    last = table.last_batch(query)
    is_there = last is not None and last >= batch
    totals = added(counted, there(table, counted), output, is_there=is_there)
    return frame.sparkSession.createDataFrame(totals, frame.schema)


def there(table: "LakeTable", counted: "pyarrow.Table") -> "pyarrow.Table | None":
    """Return the rows of a table in the partitions of a batch; None when there are none."""
    if not table.exists():
        return None
    snapshot = table.snapshot()
    wanted = {name: {str(value) for value in counted.column(name).to_pylist()} for name in snapshot.partition_by}
    files = {
        path: file
        for path, file in snapshot.files.items()
        if all(str(file.partition.get(name)) in values for name, values in wanted.items())
    }
    return table.to_arrow(counted.column_names, snapshot=msgspec.structs.replace(snapshot, files=files))


def added(
    counted: "pyarrow.Table", existing: "pyarrow.Table | None", output: TableOutput, *, is_there: bool
) -> "pyarrow.Table":
    """Return the rows of a batch with the sums of the rows that exist; those themselves if the batch is among them."""
    import pyarrow

    if existing is None or not len(existing):
        return counted
    known = {key: number for number, key in enumerate(keys(existing, output.key))}
    places = [known.get(key) for key in keys(counted, output.key)]
    result = counted
    for name in output.sums:
        before, new = existing.column(name).to_pylist(), counted.column(name).to_pylist()
        values = [
            value if place is None else before[place] if is_there else before[place] + value
            for place, value in zip(places, new, strict=True)
        ]
        index = result.column_names.index(name)
        field = result.schema.field(index)
        result = result.set_column(index, field, pyarrow.array(values, field.type))
    return result


def keys(rows: "pyarrow.Table", names: Sequence[str]) -> "list[tuple[Any, ...]]":
    """Return the key of every row."""
    return list(zip(*(rows.column(name).to_pylist() for name in names), strict=True))
