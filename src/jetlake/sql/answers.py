"""An answer: columns, and rows as Arrow batches that are read once, as they are made."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["QueryAnswer"]


class QueryAnswer(NamedTuple):
    """See the module. A statement without a result has no columns."""

    schema: "pa.Schema"
    batches: "Iterator[pa.RecordBatch]"

    @property
    def columns(self) -> list[str]:
        return list(self.schema.names)
