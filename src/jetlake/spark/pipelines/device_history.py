"""The history of resources: each change with the one before it, and the newest of each resource.

Changes mostly come in order. Those that are newer than anything known of their resource get the value before them,
which is in the same batch or in the state. A change that comes late is put between its neighbours, which may be days
old, so the history itself is read for it; only then.

Invariant: a change is in the history once, and `previous_value` is that of the change before it by time and version,
whatever order they came in.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from jetlake.spark.pipelines import device_tables
from jetlake.spark.pipelines.targets import arranged, arrow_type

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    Numbers = np.ndarray[Any, np.dtype[Any]]

CHANGE_KEY = ("aggregate_id", "event_ns", "version")
"""Versions start again when a device is deleted and onboarded again, so the time is part of the key."""

REMOVED = "NOT_FOUND"
"""The status of a resource whose link is gone; it has no content then."""

PREVIOUS = ("previous_value", "previous_at", "seconds_since_previous")
"""The columns about the change before."""

LATE_COLUMNS = {name: kind for name, kind in device_tables.CHANGES.items() if name not in PREVIOUS}
"""Of late changes: what is before them is found in the history."""


class Newest(msgspec.Struct, array_like=True):
    """The newest change that is known of a resource."""

    event_ns: int
    version: int
    value: str | None


class Folded(NamedTuple):
    """What changes of one batch lead to."""

    history: "pa.Table"
    """Changes that are newer than anything known, each with the one before it."""

    late: "pa.Table"
    """Changes that are not, and not the newest one itself; most came twice. Nothing is said about the one before."""

    resources: "pa.Table"
    """The newest change of each resource that has one."""

    newest: dict[str, Newest]
    """The same by aggregate, in the form to remember."""


def fold(changes: "pa.Table", known: Callable[[str], Newest | None]) -> Folded:
    """Take changes, as packs have them, but those that cannot be read; `known` tells what is known of an aggregate."""
    encoded = changes.column("aggregate_id").combine_chunks().dictionary_encode()
    names = encoded.dictionary.to_pylist()
    there = [known(name) for name in names]
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    event_ns, version = numbers(changes, "event_ns"), numbers(changes, "version")
    order = np.lexsort((numbers(changes, "sequence"), version, event_ns, codes))
    codes, event_ns, version = codes[order], event_ns[order], version[order]

    is_known = np.array([each is not None for each in there], bool)[codes]
    known_ns = np.array([each.event_ns if each else 0 for each in there], np.int64)
    known_version = np.array([each.version if each else -1 for each in there], np.int64)
    since_ns, since_version = event_ns - known_ns[codes], version - known_version[codes]
    # Snapshots tell the newest change again.
    is_repeated = (np.diff(codes, prepend=-1) == 0) & (np.diff(event_ns, prepend=0) == 0)
    is_repeated &= np.diff(version, prepend=0) == 0
    is_newer = ~is_known | (since_ns > 0) | ((since_ns == 0) & (since_version > 0))
    is_newest_itself = is_known & (since_ns == 0) & (since_version == 0)
    fresh = np.flatnonzero(is_newer & ~is_repeated)
    late = np.flatnonzero(~is_newer & ~is_repeated & ~is_newest_itself)

    rows = changes.take(order[fresh])
    codes, event_ns = codes[fresh], event_ns[fresh]
    is_first = np.diff(codes, prepend=-1) != 0
    last = np.flatnonzero(np.diff(codes, append=-1) != 0)
    # Of a first change the one before it is what is known of its resource, if anything is.
    previous_ns = np.where(is_first, known_ns[codes], np.roll(event_ns, 1))
    has_none = is_first & ~is_known[fresh]
    values = rows.column("content_json").combine_chunks()
    history = own_columns(rows) | previous(values, [each.value if each else None for each in there], codes, is_first)
    history |= times_since(event_ns, previous_ns, has_none)
    newest = {
        names[code]: Newest(int(event_ns[row]), int(numbers(rows, "version")[row]), values[row].as_py())
        for code, row in zip(codes[last].tolist(), last.tolist(), strict=True)
    }
    return Folded(
        arranged(history, device_tables.CHANGES),
        arranged(own_columns(changes.take(order[late])), LATE_COLUMNS),
        arranged(held(rows.take(last)), device_tables.RESOURCES),
        newest,
    )


def own_columns(rows: "pa.Table") -> dict[str, Any]:
    """Return the columns of the history that a change itself tells."""
    changed_at = moments(numbers(rows, "event_ns"))
    return {name: rows.column(name) for name in rows.column_names} | {
        "changed_at": changed_at,
        "value": rows.column("content_json"),
        "stored_at": rows.column("timestamp"),
        "day": changed_at.cast(arrow_type("DATE")),
    }


def held(rows: "pa.Table") -> dict[str, Any]:
    """Return the columns of what a resource holds."""
    from pyarrow import compute

    is_removed = compute.and_(
        compute.equal(rows.column("status"), REMOVED), compute.equal(compute.binary_length(rows.column("content")), 0)
    )
    return own_columns(rows) | {"is_removed": is_removed}


def previous(values: "pa.Array", known: list[str | None], codes: "Numbers", is_first: "Numbers") -> dict[str, Any]:
    """Return the value before each change: that of the row before, or what is known of the aggregate."""
    import pyarrow as pa

    both = pa.concat_arrays([values, pa.array(known, pa.string())])
    places = np.where(is_first, len(values) + codes, np.arange(len(codes)) - 1)
    return {"previous_value": both.take(pa.array(places))}


def times_since(event_ns: "Numbers", previous_ns: "Numbers", has_none: "Numbers") -> dict[str, Any]:
    """Return when the change before each was, and how long its value stood."""
    import pyarrow as pa

    return {
        "previous_at": moments(previous_ns, has_none),
        "seconds_since_previous": pa.array((event_ns - previous_ns) / 1e9, mask=has_none),
    }


def numbers(rows: "pa.Table", name: str) -> "Numbers":
    found: Numbers = rows.column(name).to_numpy()
    return found


def moments(nanoseconds: "Numbers", mask: "Numbers | None" = None) -> "pa.Array":
    """Return nanoseconds since 1970 as times."""
    import pyarrow as pa

    return pa.array(nanoseconds // 1000, mask=mask).cast(arrow_type("TIMESTAMP"))


def reconciled(changes: "DataFrame", history: "DataFrame") -> "DataFrame":
    """Late changes and the history → rows of the history that are new, or follow another change than they did."""
    from pyspark.sql import Window, functions

    aggregates = functions.broadcast(changes.select("aggregate_id").distinct())
    there = history.join(aggregates, "aggregate_id", "left_semi")
    old = there.select(
        *changes.columns, functions.col("previous_at").alias("_was"), functions.lit(True).alias("_is_old")
    )
    new = changes.dropDuplicates(list(CHANGE_KEY)).join(there.select(*CHANGE_KEY), list(CHANGE_KEY), "left_anti")
    both = old.unionByName(
        new.withColumns({"_was": functions.lit(None).cast("timestamp"), "_is_old": functions.lit(False)})
    )
    order = Window.partitionBy("aggregate_id").orderBy("event_ns", "version", "sequence")
    before = functions.lag(functions.struct("event_ns", "value")).over(order)
    previous_ns = functions.col("_before.event_ns")
    # Not as a fraction: it would have too few digits.
    previous_at = functions.timestamp_micros(functions.call_function("div", previous_ns, functions.lit(1000)))
    fixed = both.withColumn("_before", before).withColumns(
        {
            "previous_value": functions.col("_before.value"),
            "previous_at": previous_at,
            "seconds_since_previous": (functions.col("event_ns") - previous_ns) / 1e9,
        }
    )
    return fixed.where("NOT _is_old OR NOT (previous_at <=> _was)").drop("_was", "_is_old", "_before")
