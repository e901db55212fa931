"""Packs: many rows as one value, so that Spark moves them without looking at each.

Spark copies a row of a Python source field by field, and again at each step on the way to a Python function: some fifty
microseconds for a row of twenty fields, when decoding it takes five. Rows that go through a state in Python are of no
use to Spark in between. So a *packer* decodes messages where they are read and says which bucket each belongs to; the
rows of a bucket then travel as one value, a stream of Arrow, and are unpacked where the state is.

```python
class Temperatures:
    inputs = ("subject", "data", "sequence")

    def parts(self, batch):                 # batch has the columns of `inputs`
        return [Part("temperatures", rows, buckets)]
```

`.option("decoder", "my_package.temperatures:PACKER").schema(SCHEMA)` uses it. What leaves the state may travel the same
way: `pack` and `unpacked` are all there is to it.

Invariant: every row that a packer gives is in exactly one pack, in the order in which it was read.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Packer", "RowPart", "SCHEMA", "is_packed", "pack", "packed", "unpacked"]  # noqa: RUF022

SCHEMA = "bucket INT, part STRING, pack BINARY"
"""The columns of a source that gives packs."""

NAMES = ("bucket", "part", "pack")

ROWS_MAX = 131_072
"""Messages that are packed together: some thousand for each of 64 buckets, so that no pack is mostly its own header,
in some tens of megabytes."""


class RowPart(NamedTuple):
    """Rows of one kind, and the bucket of each."""

    name: str
    rows: "pa.RecordBatch"
    buckets: "np.ndarray[Any, np.dtype[Any]]"


class Packer(Protocol):
    """See the module."""

    inputs: tuple[str, ...]
    """The columns of a message that it needs."""

    def parts(self, batch: "pa.RecordBatch") -> list[RowPart]:
        """Return the rows of a batch of messages; those of a part always have the same columns."""
        ...


def is_packed(columns: Iterable[str]) -> bool:
    """Tell whether these are the columns of packs."""
    return tuple(columns) == NAMES


def packed(batches: "Iterator[pa.RecordBatch]", packer: Packer, schema: "pa.Schema") -> "Iterator[pa.RecordBatch]":
    """Yield the packs of a range of messages, each row of a batch with its bucket and part."""
    waiting: dict[str, list[RowPart]] = {}
    rows = 0
    for batch in batches:
        for part in packer.parts(batch):
            waiting.setdefault(part.name, []).append(part)
        rows += batch.num_rows
        if rows >= ROWS_MAX:
            yield _all_packs(waiting, schema)
            waiting, rows = {}, 0
    if waiting:
        yield _all_packs(waiting, schema)


def _all_packs(waiting: dict[str, list[RowPart]], schema: "pa.Schema") -> "pa.RecordBatch":
    import pyarrow as pa

    made: list[tuple[int, str, bytes]] = []
    for name, parts in waiting.items():
        rows = pa.Table.from_batches([part.rows for part in parts]).combine_chunks()
        buckets = np.concatenate([part.buckets for part in parts])
        order = np.argsort(buckets, kind="stable")
        rows, buckets = rows.take(pa.array(order)), buckets[order]
        starts = np.flatnonzero(np.diff(buckets, prepend=-1))
        ends = np.append(starts[1:], len(buckets))
        for bucket, start, end in zip(buckets[starts].tolist(), starts.tolist(), ends.tolist(), strict=True):
            made.append((bucket, name, pack(rows.slice(start, end - start))))
    columns = list(zip(*made, strict=True)) or [(), (), ()]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def pack(rows: "pa.Table") -> bytes:
    """Return rows as one value."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    packed_rows: bytes = sink.getvalue().to_pybytes()
    return packed_rows


def unpacked(packs: Iterable[bytes]) -> "pa.Table | None":
    """Return the rows of packs with the same columns, in this order; None when there are no packs."""
    import pyarrow as pa

    tables = [pa.ipc.open_stream(pa.py_buffer(each)).read_all() for each in packs]
    return pa.concat_tables(tables).combine_chunks() if tables else None
