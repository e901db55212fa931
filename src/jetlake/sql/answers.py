"""An answer: columns, and rows as Arrow batches that are read once, as they are made.

Invariant: no two columns have the same name. A query may give one name twice, as each join of two streams does; JSON,
Parquet and a program that reads a row by its names could then have only one of them.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, Self

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["QueryAnswer"]


class QueryAnswer(NamedTuple):
    """See the module; made with `of`. A statement without a result has no columns."""

    schema: "pa.Schema"
    batches: "Iterator[pa.RecordBatch]"

    @classmethod
    def of(cls, schema: "pa.Schema", batches: "Iterator[pa.RecordBatch]") -> Self:
        """Return an answer whose columns have names of their own: the second `a` is `a_1`."""
        import pyarrow as pa

        names = distinct(schema.names)
        if names == schema.names:
            return cls(schema, batches)
        fields = [field.with_name(name) for field, name in zip(schema, names, strict=True)]
        return cls(pa.schema(fields, schema.metadata), (batch.rename_columns(names) for batch in batches))

    @property
    def columns(self) -> list[str]:
        return list(self.schema.names)


def distinct(names: Sequence[str]) -> list[str]:
    """Return names that differ; a repeated one gets the lowest number that makes a name nobody else has."""
    taken = set(names)
    chosen: list[str] = []
    # Where to go on counting, so that many columns of one name do not take long.
    numbers: dict[str, int] = {}
    for name in names:
        if name not in numbers:
            numbers[name] = 0
            chosen.append(name)
            continue
        while (numbered := f"{name}_{numbers[name] + 1}") in taken:
            numbers[name] += 1
        taken.add(numbered)
        chosen.append(numbered)
    return chosen
