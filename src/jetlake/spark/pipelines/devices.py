"""The pipeline `devices`: the events of the device event bus as tables people use.

| table              | a row is                                           | key                                  |
|--------------------|----------------------------------------------------|--------------------------------------|
| `device_resources` | what a resource holds now                          | device_id, href                      |
| `device_changes`   | a change, the value before it, how long that stood | aggregate_id, event_ns, version      |
| `device_commands`  | a command: its request, its end, how long it took  | aggregate_id, correlation_id         |
| `device_sessions`  | a connection of a device, from when to when        | device_id, connection_id, started_at |
| `device_twins`     | how far the twin of a connection got, and how fast | device_id, connection_id, started_at |
| `device_links`     | a resource that a device has published             | device_id, href                      |
| `devices_bad`      | an event that cannot be read, and why              |                                      |

Events are decoded where they are read, before Spark sees them (docs/decisions/0027-native-decode.md). Two queries read
the stream, each its own subjects: one the changes of resources, of which there are most, and one everything else, which
goes through a state per device.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jetlake.errors import ConfigurationError
from jetlake.spark.pipelines import device_history
from jetlake.spark.pipelines.device_report import report
from jetlake.spark.pipelines.model import Frames, Ordered, Pipeline, StreamInput, TableOutput

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["ABOUT", "Parameters", "build", "report"]

ABOUT = "Device events: current state, changes, commands, sessions and twins."

DECODERS = {"2025": "jetlake.devices.columns:EVENTS", "2021": "jetlake.devices.columns:EVENTS_2021"}
"""The schema of the events is a setting; read as the other one they would give wrong values without an error."""

COMMANDS = ("create", "retrieve", "update", "delete")

BAD_INPUT = "events"

MESSAGE = "subject STRING, sequence BIGINT, timestamp TIMESTAMP"

WHY = {"reason": "STRING", "payload": "BINARY"}

CHANGE_FIELDS = WHY | {
    "event_type": "STRING",
    "device_id": "STRING",
    "href": "STRING",
    "aggregate_id": "STRING",
    "version": "BIGINT",
    "event_ns": "BIGINT",
    "status": "STRING",
    "content": "BINARY",
    "content_type": "STRING",
    "content_format": "INT",
    "content_json": "STRING",
    "etag": "BINARY",
    "resource_types": "ARRAY<STRING>",
    "user_id": "STRING",
    "owner": "STRING",
    "hub_id": "STRING",
    "origin_id": "STRING",
}

STATE_FIELDS = WHY | {
    "event_type": "STRING",
    "device_id": "STRING",
    "href": "STRING",
    "aggregate_id": "STRING",
    "version": "BIGINT",
    "event_ns": "BIGINT",
    "user_id": "STRING",
    "correlation_id": "STRING",
    "owner": "STRING",
    "origin_id": "STRING",
    "status": "STRING",
    "valid_until_ns": "BIGINT",
    "is_online": "BOOLEAN",
    "connection_id": "STRING",
    "connected_at_ns": "BIGINT",
    "online_until_ns": "BIGINT",
    "protocol": "STRING",
    "service_id": "STRING",
    "local_endpoints": "ARRAY<STRING>",
    "twin_state": "STRING",
    "syncing_at_ns": "BIGINT",
    "in_sync_at_ns": "BIGINT",
    "forced_at_ns": "BIGINT",
    "is_twin_enabled": "BOOLEAN",
    "is_canceled": "BOOLEAN",
    "links": "ARRAY<STRUCT<href: STRING, resource_types: ARRAY<STRING>, interfaces: ARRAY<STRING>, title: STRING, "
    "policy: INT, endpoints: ARRAY<STRING>>>",
    "unpublished": "ARRAY<STRING>",
}

TABLES = {
    "sessions": {
        "device_id": "STRING",
        "connection_id": "STRING",
        "started_at": "TIMESTAMP",
        "ended_at": "TIMESTAMP",
        "ended_by": "STRING",
        "is_open": "BOOLEAN",
        "seconds": "DOUBLE",
        "online_until": "TIMESTAMP",
        "protocol": "STRING",
        "service_id": "STRING",
        "local_endpoints": "ARRAY<STRING>",
        "revision": "BIGINT",
    },
    "twins": {
        "device_id": "STRING",
        "connection_id": "STRING",
        "started_at": "TIMESTAMP",
        "state": "STRING",
        "is_enabled": "BOOLEAN",
        "is_open": "BOOLEAN",
        "syncing_at": "TIMESTAMP",
        "in_sync_at": "TIMESTAMP",
        "sync_seconds": "DOUBLE",
        "seconds_to_in_sync": "DOUBLE",
        "forced_syncs": "BIGINT",
        "out_of_sync_seconds": "DOUBLE",
        "syncing_seconds": "DOUBLE",
        "in_sync_seconds": "DOUBLE",
        "changed_at": "TIMESTAMP",
        "revision": "BIGINT",
    },
    "commands": {
        "device_id": "STRING",
        "href": "STRING",
        "aggregate_id": "STRING",
        "correlation_id": "STRING",
        "kind": "STRING",
        "requested_at": "TIMESTAMP",
        "valid_until": "TIMESTAMP",
        "finished_at": "TIMESTAMP",
        "latency_ms": "DOUBLE",
        "outcome": "STRING",
        "status": "STRING",
        "is_late": "BOOLEAN",
        "requester": "STRING",
        "owner": "STRING",
        "responder": "STRING",
        "known_ends": "BIGINT",
        "revision": "BIGINT",
    },
    "links": {
        "device_id": "STRING",
        "href": "STRING",
        "resource_types": "ARRAY<STRING>",
        "interfaces": "ARRAY<STRING>",
        "title": "STRING",
        "policy": "INT",
        "endpoints": "ARRAY<STRING>",
        "first_published_at": "TIMESTAMP",
        "last_changed_at": "TIMESTAMP",
        "unpublished_at": "TIMESTAMP",
        "is_published": "BOOLEAN",
        "revision": "BIGINT",
    },
}
"""The tables that come from the state of a device."""

KEYS = {
    "sessions": ("device_id", "connection_id", "started_at"),
    "twins": ("device_id", "connection_id", "started_at"),
    "commands": ("aggregate_id", "correlation_id"),
    "links": ("device_id", "href"),
}

ORDERS = {"commands": ("known_ends", "revision")}


@dataclass(frozen=True)
class Parameters:
    """What can be set with `--set` or under `with`."""

    stream: str = "EVENTS"
    generation: str = "2025"
    """Of the events: 2025, or 2021 for those that a hub of that year has published."""

    prefix: str = "device"
    """The tables are `<prefix>_resources`, `<prefix>_changes` and so on."""

    start: str = "earliest"
    trigger: str = "2 seconds"


def build(name: str, parameters: Parameters) -> Pipeline:
    """Return the pipeline."""
    decoder = DECODERS.get(parameters.generation)
    if decoder is None:
        raise ConfigurationError(
            f"pipeline {name}: generation is {parameters.generation!r}; it must be {' or '.join(DECODERS)}"
        )
    prefix, bad = parameters.prefix, f"{name}_bad"

    def given(subjects: tuple[str, ...], fields: dict[str, str]) -> StreamInput:
        return StreamInput(
            stream=parameters.stream,
            subjects=subjects,
            start=parameters.start,
            schema=f"{MESSAGE}, value STRUCT<{spelled(fields, ': ')}>",
            options={"decoder": decoder},
        )

    return Pipeline(
        name=name,
        about=ABOUT,
        inputs={"changes": given(change_subjects(), CHANGE_FIELDS), "others": given(other_subjects(), STATE_FIELDS)},
        transform=transform,
        outputs=(
            TableOutput(
                f"{prefix}_changes",
                of="changes",
                partition_by=("day",),
                key=device_history.CHANGE_KEY,
                ordered=Ordered(
                    f"{prefix}_resources", device_history.fresh, device_history.late, device_history.reconciled
                ),
            ),
            TableOutput(
                f"{prefix}_resources",
                of="changes",
                key=("device_id", "href"),
                order_by=("event_ns", "version"),
                reduced=True,
                pick=device_history.newest,
            ),
            TableOutput(bad, of="changes", partition_by=("day",), pick=unread),
            *(
                TableOutput(
                    f"{prefix}_{table}",
                    of="others",
                    key=KEYS[table],
                    order_by=ORDERS.get(table, ("revision",)),
                    reduced=True,
                    pick=picker(table),
                )
                for table in TABLES
            ),
            TableOutput(bad, of="others", partition_by=("day",), pick=unread_of_state),
        ),
        trigger=parameters.trigger,
    )


def change_subjects() -> tuple[str, ...]:
    """Return where the changes of resources are."""
    return tuple(f"events.*.resources.*.{name}" for name in ("resourcechanged", "resourcestatesnapshottaken"))


def other_subjects() -> tuple[str, ...]:
    """Return where everything else is."""
    names = [f"resource{kind}{end}" for kind in COMMANDS for end in ("pending", "d")]
    return ("events.*.metadata.*", "events.*.resource-links.*", *(f"events.*.resources.*.{name}" for name in names))


def transform(frames: Frames) -> Frames:
    """Messages → changes as rows, and rows of the tables that come from the state of a device."""
    return {"changes": as_rows(frames["changes"]), "others": through_state(frames["others"])}


def as_rows(messages: "DataFrame") -> "DataFrame":
    """Messages with decoded events → a column per field."""
    return messages.select("subject", "sequence", "timestamp", "value.*")


def through_state(messages: "DataFrame") -> "DataFrame":
    """Messages with decoded events → rows of tables as JSON, with the name of the table."""
    from pyspark.sql import functions

    from jetlake.spark.pipelines.device_rows import OUTPUT, DeviceProcessor

    stored_us = functions.unix_micros("timestamp").alias("stored_us")
    rows = as_rows(messages)
    event = functions.to_json(functions.struct("subject", "sequence", stored_us, *STATE_FIELDS))
    keyed = rows.select("device_id", event.alias("event"))
    return keyed.groupBy("device_id").transformWithState(DeviceProcessor(), OUTPUT, "Update", "None")


def picker(table: str) -> "Callable[[DataFrame], DataFrame]":
    """Return what takes the rows of one table out of those of the state."""
    columns = TABLES[table]

    def pick(rows: "DataFrame") -> "DataFrame":
        from pyspark.sql import functions

        in_json = {name: "BIGINT" if kind == "TIMESTAMP" else kind for name, kind in columns.items()}
        parsed = functions.from_json("row", spelled(in_json, " ")).alias("_row")
        return (
            rows.where(functions.col("target") == table)
            .select(parsed)
            .select(*(column_of(name, kind) for name, kind in columns.items()))
        )

    return pick


def column_of(name: str, kind: str) -> "Column":
    from pyspark.sql import functions

    column = functions.col(f"_row.{name}")
    return (functions.timestamp_micros(column) if kind == "TIMESTAMP" else column).alias(name)


def unread(rows: "DataFrame") -> "DataFrame":
    """Rows of changes → those that cannot be read, as the table of bad rows has them."""
    from pyspark.sql import functions

    return rows.where("reason IS NOT NULL").select(
        functions.lit(BAD_INPUT).alias("input"),
        "reason",
        "subject",
        "sequence",
        "timestamp",
        functions.col("payload").alias("data"),
        functions.to_date("timestamp").alias("day"),
    )


def unread_of_state(rows: "DataFrame") -> "DataFrame":
    """Rows of the state → those that cannot be read, as the table of bad rows has them."""
    from pyspark.sql import functions

    from jetlake.spark.pipelines.device_rows import BAD

    fields = "reason STRING, subject STRING, sequence BIGINT, stored_us BIGINT, payload STRING"
    parsed = rows.where(functions.col("target") == BAD).select(functions.from_json("row", fields).alias("_row"))
    return unread(
        parsed.select("_row.*").withColumns(
            {"timestamp": functions.timestamp_micros("stored_us"), "payload": functions.unbase64("payload")}
        )
    )


def spelled(columns: "Mapping[str, str]", between: str) -> str:
    """Return columns as Spark spells them."""
    return ", ".join(f"{name}{between}{kind}" for name, kind in columns.items())
