"""What a pipeline has to say about its tables: sections with facts, plots and rows, for the terminal and for the page.

A pipeline that ships has a function `report(tables)` which returns them. It reads tables without Spark, and says
nothing about a table that is not there yet.

```python
def report(tables):
    nodes = tables.find("nodes", ["identity", "state"])
    if nodes is None:
        return []
    return [Section("Nodes", (Facts((Fact("nodes", f"{len(nodes):,}"),)),))]
```
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from jetlake.spark.lake.as_of import AsOf
from jetlake.spark.lake.folder import Lake

if TYPE_CHECKING:
    import pyarrow

Tone: TypeAlias = Literal["", "good", "warning", "bad"]
"""How a value is meant: nothing special, all is well, look at it, act."""

ROWS_MAX = 5_000_000
"""Newest rows of a table that a report is made of; what is older is in the table."""


VALUE_LENGTH_MAX = 60
"""Characters of a value in a row; the whole value is in the table."""

WHOLE_LENGTH_MAX = 4096
"""The same where a cut value would be of no use."""


@dataclass(frozen=True)
class Fact:
    """One number at a glance."""

    label: str
    value: str
    tone: Tone = ""
    note: str = ""


@dataclass(frozen=True)
class Facts:
    """Numbers side by side."""

    facts: tuple[Fact, ...]


@dataclass(frozen=True)
class Plot:
    """A plot, as `charts` makes it; `half` puts two side by side where there is room."""

    title: str
    svg: str
    half: bool = False


@dataclass(frozen=True)
class Rows:
    """A table for people: values are shown as `summary.shown` does; `tones` says how some values are meant."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[Sequence[Any]]
    note: str = ""
    tones: "tuple[tuple[str, Tone], ...]" = ()
    is_whole: bool = False
    """Nothing is cut, however long: commands to copy."""

    @property
    def value_length_max(self) -> int:
        return WHOLE_LENGTH_MAX if self.is_whole else VALUE_LENGTH_MAX

    def tone_of(self, value: Any) -> Tone:
        """Return how a value is meant."""
        return next((tone for text, tone in self.tones if text == value), "")


Part: TypeAlias = Facts | Plot | Rows


@dataclass(frozen=True)
class ReportSection:
    """Parts under one title."""

    title: str
    parts: tuple[Part, ...]


class Tables:
    """The tables of one pipeline, as they are now or were at a version or a time."""

    def __init__(self, lake: Lake, names: Sequence[str], as_of: AsOf | None = None) -> None:
        self.lake = lake
        self.names = tuple(names)
        self.as_of = as_of
        self.now = as_of if isinstance(as_of, datetime) else datetime.now(UTC)
        """The moment the report is about."""

    def find(self, ending: str, columns: Sequence[str] | None = None) -> "pyarrow.Table | None":
        """Return the rows of the table whose name ends so; None when it is not there or has none."""
        name = next((each for each in self.names if each == ending or each.endswith(f"_{ending}")), None)
        if name is None or not (table := self.lake.table(name)).exists():
            return None
        snapshot = table.snapshot(self.as_of)
        rows = table.to_arrow(list(columns) if columns else None, ROWS_MAX, snapshot)
        return rows if len(rows) else None
