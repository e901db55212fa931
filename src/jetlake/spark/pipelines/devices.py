"""The pipeline `devices`: the events of the device event bus as tables people use.

| table                | a row is                                             | key                                  |
|----------------------|------------------------------------------------------|--------------------------------------|
| `device_resources`   | what a resource holds now                            | device_id, href                      |
| `device_changes`     | a change, the value before it, how long that stood   | aggregate_id, event_ns, version      |
| `device_commands`    | a command: its request, its end, how long it took    | aggregate_id, correlation_id         |
| `device_pending`     | commands that wait for an answer of a resource       | device_id, href                      |
| `device_sessions`    | a connection of a device, from when to when          | device_id, connection_id, started_at |
| `device_twins`       | how far the twin of a connection got, and how fast   | device_id, connection_id, started_at |
| `device_links`       | a resource that a device has published               | device_id, href                      |
| `device_audit`       | a message of the bus: who caused it, through what    | sequence                             |
| `device_bus_quality` | an aggregate: missing, duplicate, late events        | aggregate_id                         |
| `devices_bad`        | an event that cannot be read, and why                |                                      |

Events are decoded where they are read, before Spark sees them (docs/decisions/0027-native-decode.md). Two queries read
the stream. One reads the changes of resources, of which there are most. The other one reads all events through a state
for each device and aggregate; of a change it takes only its version and its times.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jetlake.errors import ConfigurationError
from jetlake.spark.pipelines import device_history, device_tables
from jetlake.spark.pipelines.device_lines import Lines
from jetlake.spark.pipelines.device_report import report
from jetlake.spark.pipelines.model import Frames, Ordered, Pipeline, StreamInput, TableOutput

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["ABOUT", "Parameters", "build", "report"]

ABOUT = "Device events: current state, changes, commands, sessions and twins."

DECODERS = {"2025": "jetlake.devices.columns:EVENTS", "2021": "jetlake.devices.columns:EVENTS_2021"}
"""The schema of the events is a setting; read as the other one they would give wrong values without an error."""

SUBJECTS = ("events.*.metadata.*", "events.*.resource-links.*", "events.*.resources.*.*")

BAD_INPUT = "events"

CHANGE_TYPES = ("resourcechanged", "resourcestatesnapshottaken")

BUCKETS = 64
"""Of devices, each with its own value in Spark's state: enough for some ten cores, few enough to read all of them in
every batch."""

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

BUS_FIELDS = {"own_version": "BIGINT", "own_ns": "BIGINT"}

STATE_FIELDS = {
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
        inputs={
            "changes": given(change_subjects(), CHANGE_FIELDS),
            "events": given(SUBJECTS, WHY | BUS_FIELDS | STATE_FIELDS),
        },
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
            TableOutput(f"{prefix}_audit", of="changes", partition_by=("day",), pick=audited),
            *(
                from_state(f"{prefix}_{table}", table, columns, device_tables.KEYS[table])
                for table, columns in device_tables.TABLES.items()
            ),
            from_state(f"{prefix}_audit", "audit", device_tables.AUDIT),
            from_state(bad, "bad", device_tables.BAD),
        ),
        trigger=parameters.trigger,
    )


def from_state(table: str, target: str, columns: Mapping[str, str], key: tuple[str, ...] = ()) -> TableOutput:
    """Return the output of a table whose rows come from the state."""
    lines = Lines(target, columns)
    return TableOutput(
        table,
        of="events",
        key=key,
        order_by=device_tables.ORDERS.get(target, ("revision",)) if key else (),
        partition_by=("day",) if "day" in columns else (),
        pick=lines.pick,
        take=lines.take,
    )


def change_subjects() -> tuple[str, ...]:
    """Return where the changes of resources are."""
    return tuple(f"events.*.resources.*.{name}" for name in CHANGE_TYPES)


def transform(frames: Frames) -> Frames:
    """Messages → changes as rows, and rows of the tables that come from the state."""
    return {"changes": as_rows(frames["changes"]), "events": through_state(frames["events"])}


def as_rows(messages: "DataFrame") -> "DataFrame":
    """Messages with decoded events → a column per field."""
    return messages.select("subject", "sequence", "timestamp", "value.*")


def through_state(messages: "DataFrame") -> "DataFrame":
    """Messages with decoded events → rows of tables as lines of JSON, with the name of the table."""
    from pyspark.sql import functions

    from jetlake.spark.pipelines.device_processor import rows_of_tables

    rows = as_rows(messages).withColumn("stored_us", functions.unix_micros("timestamp"))
    # What cannot be decoded belongs to the device and the resource that its subject names.
    is_bad = functions.col("reason").isNotNull()
    device = functions.when(is_bad, functions.split_part("subject", functions.lit("."), functions.lit(2)))
    event = (
        functions.when(is_bad, functions.to_json(functions.struct(*unread())))
        .when(functions.col("event_type").isin(*CHANGE_TYPES), None)
        .otherwise(functions.to_json(functions.struct(*event_fields())))
    )
    device_id = device.otherwise(functions.col("device_id"))
    events = rows.select(
        device_id.alias("device_id"),
        functions.when(is_bad, functions.col("subject")).otherwise(functions.col("aggregate_id")).alias("aggregate_id"),
        "href",
        "own_version",
        "own_ns",
        "stored_us",
        "sequence",
        is_bad.alias("is_bad"),
        event.alias("event"),
    )
    bucket = functions.pmod(functions.xxhash64("device_id"), functions.lit(BUCKETS)).cast("int")
    return rows_of_tables(events.withColumn("bucket", bucket))


def event_fields() -> "list[Column]":
    """Return the fields of an event that the state is told; what is empty is left out, to be short."""
    from pyspark.sql import functions

    empty = {"STRING": "", "BIGINT": 0, "BOOLEAN": False}

    def field(name: str, kind: str) -> "Column":
        column = functions.col(name)
        if name == "version":
            # 0 is a version.
            return column
        if kind in empty:
            return functions.nullif(column, functions.lit(empty[kind])).alias(name)
        return functions.when(functions.size(column) > 0, column).alias(name)

    happened = functions.expr("event_ns div 1000")
    return [
        *(field(name, kind) for name, kind in STATE_FIELDS.items()),
        "sequence",  # type: ignore[list-item]
        functions.col("stored_us").alias("stored_at"),
        happened.alias("happened_at"),
        happened.alias("day"),
    ]


def unread() -> "list[Column]":
    """Return the fields of an event that cannot be read, as the table of bad rows has them."""
    from pyspark.sql import functions

    return [
        functions.lit(BAD_INPUT).alias("input"),
        functions.col("reason"),
        functions.col("subject"),
        functions.col("sequence"),
        functions.col("stored_us").alias("timestamp"),
        functions.col("payload").alias("data"),
        functions.col("stored_us").alias("day"),
    ]


def audited(rows: "DataFrame") -> "DataFrame":
    """Rows of changes → who caused each; a snapshot tells what another event has told."""
    from pyspark.sql import functions

    happened_at = device_history.moment("event_ns")
    made = {
        "stored_at": functions.col("timestamp"),
        "happened_at": happened_at,
        "correlation_id": functions.lit(None).cast("string"),
        "day": functions.to_date(happened_at),
    }
    changes = rows.where("reason IS NULL AND event_type = 'resourcechanged'")
    return changes.select(*(made.get(name, functions.col(name)).alias(name) for name in device_tables.AUDIT))


def spelled(columns: "Mapping[str, str]", between: str) -> str:
    """Return columns as Spark spells them."""
    return ", ".join(f"{name}{between}{kind}" for name, kind in columns.items())
