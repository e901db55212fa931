"""The history of resources: each change with the one before it, and the newest of each resource.

Changes mostly come in order. Those that are newer than anything known of their resource are added with the value before
them, which is in the same batch or in the table of the newest values. The few that come late or twice are looked up in
the history itself; only then is it read.

Invariant: a change is in the history once, and `previous_value` is that of the change before it by time and version,
whatever order they came in.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

CHANGE_KEY = ("aggregate_id", "event_ns", "version")
"""Versions start again when a device is deleted and onboarded anew, so the time is part of the key."""

IS_NEWER = "(event_ns > _known_ns OR (event_ns = _known_ns AND version > _known_version))"

REMOVED = "NOT_FOUND"
"""The status of a resource whose link is gone; it has no content then."""


def told(rows: "DataFrame") -> "DataFrame":
    """Rows of messages → the changes they tell; a snapshot tells the last one before it."""
    return rows.where("reason IS NULL AND version >= 0").drop("reason", "payload", "subject", "event_type")


def newest(rows: "DataFrame") -> "DataFrame":
    """Rows of messages → the newest change of each resource."""
    from pyspark.sql import functions

    changes = told(rows)
    # Whole rows can only be aggregated by sorting all of them; numbers cannot be beaten, and leave few rows to sort.
    last = changes.groupBy("aggregate_id").agg(functions.max("event_ns").alias("_last_ns"))
    few = changes.join(last, "aggregate_id").where("event_ns = _last_ns").drop("_last_ns")
    row = functions.struct(*few.columns)
    order = functions.struct("event_ns", "version")
    return (
        few.groupBy("device_id", "href")
        .agg(functions.max_by(row, order).alias("_row"))
        .select("_row.*")
        .select(
            "device_id",
            "href",
            "aggregate_id",
            "version",
            "event_ns",
            moment("event_ns").alias("changed_at"),
            "status",
            ((functions.col("status") == REMOVED) & (functions.length("content") == 0)).alias("is_removed"),
            functions.col("content_json").alias("value"),
            "content",
            "content_type",
            "content_format",
            "etag",
            "resource_types",
            "user_id",
            "owner",
            "hub_id",
            "origin_id",
            "sequence",
            functions.col("timestamp").alias("stored_at"),
        )
    )


def fresh(rows: "DataFrame", current: "DataFrame | None") -> "DataFrame":
    """Rows of messages → changes newer than anything known of their resource, each with the one before it."""
    changes = plain(rows)
    if current is None:
        return with_previous(changes)
    return with_previous(compared(changes, current).where(f"_known_ns IS NULL OR {IS_NEWER}"))


def late(rows: "DataFrame", current: "DataFrame | None") -> "DataFrame":
    """Rows of messages → changes that are not newer than what is known of their resource; most came twice."""
    changes = plain(rows)
    if current is None:
        return changes.where("false")
    # The newest one itself is told again by the next snapshot, and is no news.
    is_known = "event_ns = _known_ns AND version = _known_version"
    found = compared(changes, current).where(f"_known_ns IS NOT NULL AND NOT ({IS_NEWER}) AND NOT ({is_known})")
    return found.select(*changes.columns)


def reconciled(changes: "DataFrame", history: "DataFrame") -> "DataFrame":
    """Late changes and the history → rows of the history that are new, or follow another change than they did."""
    from pyspark.sql import functions

    aggregates = functions.broadcast(changes.select("aggregate_id").distinct())
    there = history.join(aggregates, "aggregate_id", "left_semi")
    old = there.select(
        *changes.columns, functions.col("previous_at").alias("_was"), functions.lit(True).alias("_is_old")
    )
    new = changes.dropDuplicates(list(CHANGE_KEY)).join(there.select(*CHANGE_KEY), list(CHANGE_KEY), "left_anti")
    both = old.unionByName(
        new.withColumns({"_was": functions.lit(None).cast("timestamp"), "_is_old": functions.lit(False)})
    )
    fixed = with_previous(both)
    return fixed.where("NOT _is_old OR NOT (previous_at <=> _was)").drop("_was", "_is_old")


def plain(rows: "DataFrame") -> "DataFrame":
    """Rows of messages → changes with the columns of the history but those about the one before."""
    from pyspark.sql import functions

    return told(rows).select(
        "device_id",
        "href",
        "aggregate_id",
        "version",
        "event_ns",
        moment("event_ns").alias("changed_at"),
        "status",
        functions.col("content_json").alias("value"),
        "user_id",
        "origin_id",
        "sequence",
        functions.col("timestamp").alias("stored_at"),
        functions.to_date(moment("event_ns")).alias("day"),
    )


def compared(changes: "DataFrame", current: "DataFrame") -> "DataFrame":
    """Return changes beside the newest one that is known of their resource."""
    from pyspark.sql import functions

    known = current.select(
        "aggregate_id",
        functions.col("event_ns").alias("_known_ns"),
        functions.col("version").alias("_known_version"),
        functions.col("value").alias("_known_value"),
    )
    return changes.join(known, "aggregate_id", "left")


def with_previous(changes: "DataFrame") -> "DataFrame":
    """Return changes, each once, with the value before it and how long that stood."""
    from pyspark.sql import Window, functions

    order = Window.partitionBy("aggregate_id").orderBy("event_ns", "version", "sequence")
    before = functions.lag(functions.struct("event_ns", "version", "value")).over(order)
    compared_columns = [name for name in changes.columns if name.startswith("_known")]
    rows = changes.withColumn("_before", before).where(
        "_before IS NULL OR _before.event_ns <> event_ns OR _before.version <> version"
    )
    previous_ns, previous_value = functions.col("_before.event_ns"), functions.col("_before.value")
    if compared_columns:
        is_first = functions.col("_before").isNull()
        previous_ns = functions.when(is_first, functions.col("_known_ns")).otherwise(previous_ns)
        previous_value = functions.when(is_first, functions.col("_known_value")).otherwise(previous_value)
    return rows.withColumns(
        {
            "previous_value": previous_value,
            "previous_at": moment(previous_ns),
            "seconds_since_previous": (functions.col("event_ns") - previous_ns) / 1e9,
        }
    ).drop("_before", *compared_columns)


def moment(nanoseconds: "Column | str") -> "Column":
    """Return nanoseconds since 1970 as a time."""
    from pyspark.sql import functions

    column = functions.col(nanoseconds) if isinstance(nanoseconds, str) else nanoseconds
    # Not as a fraction: it would have too few digits.
    return functions.timestamp_micros(functions.call_function("div", column, functions.lit(1000)))
