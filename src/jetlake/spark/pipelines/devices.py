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

Events are decoded where they are read, and go as packs through a state for each device and aggregate, before Spark
sees any of them (docs/decisions/0027-native-decode.md). One query reads the stream.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jetlake.errors import ConfigurationError
from jetlake.spark.packs import SCHEMA
from jetlake.spark.pipelines import device_history, device_tables, device_targets
from jetlake.spark.pipelines.device_report import report
from jetlake.spark.pipelines.model import Frames, Ordered, Pipeline, StreamInput, TableOutput
from jetlake.spark.pipelines.targets import Target

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ABOUT", "Parameters", "build", "report"]

ABOUT = "Device events: current state, changes, commands, sessions and twins."

PACKERS = {
    "2025": "jetlake.spark.pipelines.device_packs:EVENTS",
    "2021": "jetlake.spark.pipelines.device_packs:EVENTS_2021",
}
"""The schema of the events is a setting; read as the other one they would give wrong values without an error."""

SUBJECTS = ("events.*.metadata.*", "events.*.resource-links.*", "events.*.resources.*.*")

ROWS = "rows"
"""The frame that all tables take their rows of."""


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
    batch: int = 250_000
    """Events of one batch, at most."""


def build(name: str, parameters: Parameters) -> Pipeline:
    """Return the pipeline."""
    packer = PACKERS.get(parameters.generation)
    if packer is None:
        raise ConfigurationError(
            f"pipeline {name}: generation is {parameters.generation!r}; it must be {' or '.join(PACKERS)}"
        )
    prefix = parameters.prefix
    late = Target(device_targets.LATE, device_history.LATE_COLUMNS)
    return Pipeline(
        name=name,
        about=ABOUT,
        inputs={
            "events": StreamInput(
                stream=parameters.stream,
                subjects=SUBJECTS,
                start=parameters.start,
                schema=SCHEMA,
                options={"decoder": packer, "maxRowsPerTrigger": str(parameters.batch)},
            )
        },
        transform=transform,
        outputs=(
            output(
                f"{prefix}_changes",
                device_targets.HISTORY,
                device_tables.CHANGES,
                ordered=Ordered(device_history.CHANGE_KEY, late.rows_of, device_history.reconciled),
            ),
            output(
                f"{prefix}_resources",
                device_targets.RESOURCES,
                device_tables.RESOURCES,
                ("device_id", "href"),
                ("event_ns", "version"),
            ),
            output(f"{prefix}_audit", device_targets.AUDIT, device_tables.AUDIT),
            *(
                output(
                    f"{prefix}_{table}",
                    table,
                    columns,
                    device_tables.KEYS[table],
                    device_tables.ORDERS.get(table, ("revision",)),
                )
                for table, columns in device_tables.TABLES.items()
            ),
            output(f"{name}_bad", device_targets.BAD, device_tables.BAD),
        ),
        trigger=parameters.trigger,
        steps=(ROWS,),
    )


def output(
    table: str,
    target: str,
    columns: "Mapping[str, str]",
    key: tuple[str, ...] = (),
    order_by: tuple[str, ...] = (),
    ordered: Ordered | None = None,
) -> TableOutput:
    """Return the output of a table."""
    rows = Target(target, columns)
    return TableOutput(
        table,
        of=ROWS,
        key=key,
        order_by=order_by,
        ordered=ordered,
        partition_by=("day",) if "day" in columns else (),
        pick=rows.pick,
        rows_of=rows.rows_of,
    )


def transform(frames: Frames) -> Frames:
    """Packs of events → packs of rows."""
    from jetlake.spark.pipelines.device_processor import rows_of_tables

    return {ROWS: rows_of_tables(frames["events"])}
