"""Where rows that leave the state of devices go, and those that are events as they are.

Invariant: every message is in the audit, in the table of bad rows, or a snapshot.
"""

from typing import TYPE_CHECKING

import numpy as np

from jetlake.spark.pipelines import device_tables
from jetlake.spark.pipelines.targets import arranged, arrow_type

if TYPE_CHECKING:
    import pyarrow as pa

HISTORY, LATE, RESOURCES = "changes", "late changes", "resources"
"""Changes: those that are newer than anything known, those that are not, and the newest of each resource."""

BAD, AUDIT, QUALITY = "bad", "audit", "bus_quality"
"""Tables whose rows come from events as they are, and that of the quality of the bus."""

INPUT = "events"

SNAPSHOT = "snapshottaken"
"""The ending of the type of an event that repeats what other events have reported."""

EMPTY_IS_NULL = ("user_id", "owner", "origin_id", "correlation_id")


def audit_rows(parts: "list[pa.Table]") -> "pa.Table":
    """Return who caused each of these readable events; a snapshot repeats what another event has reported."""
    import pyarrow as pa
    from pyarrow import compute

    found = []
    for part in parts:
        events = part.filter(compute.invert(compute.ends_with(part.column("event_type"), SNAPSHOT)))
        happened_at = times(events, "event_ns")
        columns = {name: events.column(name) for name in events.column_names} | {
            "stored_at": events.column("timestamp"),
            "happened_at": happened_at,
            "day": happened_at.cast(arrow_type("DATE")),
        }
        for name in EMPTY_IS_NULL:
            texts = columns.get(name, pa.nulls(len(events), pa.string()))
            columns[name] = compute.if_else(compute.equal(texts, ""), pa.scalar(None, pa.string()), texts)
        found.append(arranged(columns, device_tables.AUDIT))
    return pa.concat_tables(found)


def bad_rows(parts: "list[pa.Table]") -> "pa.Table":
    """Return these events, which cannot be read, as all tables of bad rows have them."""
    import pyarrow as pa

    found = []
    for part in parts:
        columns = {
            "input": pa.array([INPUT] * len(part), pa.string()),
            "reason": part.column("reason"),
            "subject": part.column("subject"),
            "sequence": part.column("sequence"),
            "timestamp": part.column("timestamp"),
            "data": part.column("payload"),
            "day": part.column("timestamp").cast(arrow_type("DATE")),
        }
        found.append(arranged(columns, device_tables.BAD))
    return pa.concat_tables(found)


def times(rows: "pa.Table", name: str) -> "pa.Array":
    """Return a column of nanoseconds since 1970 as times."""
    import pyarrow as pa

    return pa.array(rows.column(name).to_numpy() // np.int64(1000)).cast(arrow_type("TIMESTAMP"))
