"""Reads a table once: the sequences that are there when the query is planned.

Invariant: the ranges are fixed when `partitions` returns; what is stored later is not in this read. No filter is taken
from Spark: it would apply one query's filter to the next one (docs/decisions/0008-spark.md).
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from jetlake.errors import ClientError
from jetlake.spark.columns import Narrowed, arrange
from jetlake.spark.decoders import load_packer
from jetlake.spark.packs import is_packed, packed
from jetlake.spark.plan_once import plan_once
from jetlake.spark.planning import StreamRange
from jetlake.spark.ranges import read_range

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["JetlakeReader", "RangePartition", "read_partition"]


class RangePartition(InputPartition):
    """What one task of Spark reads."""

    def __init__(self, wanted: StreamRange) -> None:
        super().__init__(wanted)
        self.wanted = wanted


class JetlakeReader(DataSourceReader):
    """The reader of one query."""

    def __init__(self, values: dict[str, Any], narrowed: Narrowed) -> None:
        self._values = values
        self._narrowed = narrowed

    def partitions(self) -> list[InputPartition]:
        return [RangePartition(wanted) for wanted in plan_once(self._values)]

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        return read_partition(partition, self._narrowed, self._values)


def read_partition(partition: InputPartition, narrowed: Narrowed, values: dict[str, Any]) -> "Iterator[pa.RecordBatch]":
    """Yield the batches of one task, in the columns that are wanted."""
    # Spark makes a partition of nothing when there are no ranges.
    if not isinstance(partition, RangePartition):
        if partition.value is None:
            return
        raise ClientError(f"this is not a partition of Jetlake: {partition!r}")
    schema = narrowed.arrow_schema()
    batches = read_range(partition.wanted, narrowed.asked, values)
    if is_packed(narrowed.wanted):
        yield from packed(batches, load_packer(narrowed.decoder), schema)
        return
    for batch in batches:
        yield arrange(batch, narrowed, schema)
