"""Which changed rows go to which table, and the pipeline that has them.

| table                   | one row per                       |
|-------------------------|-----------------------------------|
| `<prefix>_nodes`        | node: state, version, counts      |
| `<prefix>_sessions`     | time that a node was up           |
| `<prefix>_inventory`    | node: its newest inventory        |
| `<prefix>_inventory_history` | inventory that a node ever had |
| `<prefix>_checks`       | check of a node, as it is         |
| `<prefix>_check_changes`| change of a check's status        |
| `<prefix>_machines`     | machine of a node, as it is       |
| `<prefix>_transitions`  | transition of a machine           |
| `<prefix>_leases`       | slot of a governor that was taken |
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jetlake.spark.pipelines.fleet import folding
from jetlake.spark.pipelines.fleet.events import events
from jetlake.spark.pipelines.model import Frames, Pipeline, StreamInput, TableOutput, duration_s

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame

ABOUT = "Nodes of a fleet: inventory, availability, checks, machines and governors."

CHANGES = "changes"

DAY, INPUT = "day of time_1", "'events'"
"""Columns that are no slots: the day of a time, and the name of the input."""

COLUMNS = {
    folding.NODE: {
        "identity": "key",
        "state": "text",
        "version": "name",
        "started_at": "time_1",
        "last_event_at": "time_2",
        "registered_at": "time_3",
        "starts": "number_1",
        "lost_sessions": "number_2",
        "registrations": "number_3",
        "governor_refusals": "number_4",
    },
    folding.SESSION: {
        "identity": "key",
        "started_at": "time_1",
        "ended_at": "time_2",
        "end": "text",
        "version": "name",
    },
    folding.INVENTORY: {
        "identity": "key",
        "registered_at": "time_2",
        "file": "name",
        "file_changed_at": "time_1",
        "size_bytes": "number_1",
        "digest": "number_2",
        "inventory": "text",
    },
    folding.CHECK_STATE: {
        "identity": "key",
        "check": "name",
        "status": "text",
        "since": "time_1",
        "checked_at": "time_2",
        "runs": "number_1",
        "changes": "number_2",
        "recent_changes": "number_3",
        "flapping": "flag",
    },
    folding.CHECK_CHANGE: {
        "identity": "key",
        "check": "name",
        "changed_at": "time_1",
        "from_status": "text_2",
        "to_status": "text",
        "changed": "flag",
    },
    folding.MACHINE: {
        "identity": "key",
        "machine": "name",
        "state": "text",
        "since": "time_1",
        "transitions": "number_1",
        "runs": "number_2",
        "failed_runs": "number_3",
        "last_outcome": "text_2",
    },
    folding.STEP: {
        "identity": "key",
        "machine": "name",
        "at": "time_1",
        "transition": "text",
        "from_state": "text_2",
        "to_state": "text_3",
        "sequence": "number_1",
    },
    folding.LEASE: {
        "governor": "name",
        "lease": "number_1",
        "identity": "key",
        "entered_at": "time_1",
        "left_at": "time_2",
        "abandoned_at": "time_3",
    },
    folding.BAD_ROW: {
        "input": INPUT,
        "reason": "text",
        "stream": "name",
        "subject": "text_2",
        "sequence": "number_1",
        "timestamp": "time_1",
        "data": "payload",
        "day": DAY,
    },
}
"""What the slots of each kind of row are called in its table. Slots with times hold seconds."""


@dataclass(frozen=True)
class Parameters:
    """What can be set with `--set` or under `with`."""

    streams: str = "CHORIA_EVENTS|CHORIA_MACHINE|CHORIA_REGISTRATION"
    """A regular expression of the names of the streams."""

    prefix: str = "fleet"
    lateness: str = "2 minutes"
    """How late an event may come after a newer one of the same check, machine or node."""

    start: str = "earliest"
    trigger: str = "1 second"
    batch: int = 1_000_000
    """Events of one batch, at most."""


def build(name: str, parameters: Parameters) -> Pipeline:
    """Return the pipeline."""
    lateness_s = int(duration_s(parameters.lateness, f"pipeline {name}, lateness"))

    def transform(frames: Frames) -> Frames:
        from jetlake.spark.pipelines.fleet.processor import changes

        return {CHANGES: changes(events(frames["events"]), lateness_s)}

    return Pipeline(
        name=name,
        about=ABOUT,
        inputs={
            "events": StreamInput(
                pattern=parameters.streams,
                start=parameters.start,
                options={"maxRowsPerTrigger": str(parameters.batch)},
            )
        },
        transform=transform,
        outputs=outputs(name, parameters.prefix),
        trigger=parameters.trigger,
        steps=(CHANGES,),
    )


def outputs(name: str, prefix: str) -> tuple[TableOutput, ...]:
    """Return the tables. Rows leave the state once per key and batch, so the last one is the newest."""

    def keyed(table: str, kind: int, *key: str, order_by: tuple[str, ...] = ()) -> TableOutput:
        return TableOutput(
            f"{prefix}_{table}",
            of=CHANGES,
            key=key,
            order_by=order_by,
            pick=picking(kind),
            take=taking(kind),
            reduced=not order_by,
        )

    return (
        keyed("nodes", folding.NODE, "identity"),
        keyed("sessions", folding.SESSION, "identity", "started_at"),
        keyed("inventory", folding.INVENTORY, "identity", order_by=("registered_at",)),
        keyed("inventory_history", folding.INVENTORY, "identity", "digest", order_by=("registered_at",)),
        keyed("checks", folding.CHECK_STATE, "identity", "check"),
        keyed("check_changes", folding.CHECK_CHANGE, "identity", "check", "changed_at"),
        keyed("machines", folding.MACHINE, "identity", "machine"),
        TableOutput(f"{prefix}_transitions", of=CHANGES, pick=picking(folding.STEP), take=taking(folding.STEP)),
        keyed("leases", folding.LEASE, "governor", "lease"),
        TableOutput(
            f"{name}_bad",
            of=CHANGES,
            pick=picking(folding.BAD_ROW),
            take=taking(folding.BAD_ROW),
            partition_by=("day",),
        ),
    )


def picking(kind: int) -> "Callable[[DataFrame], DataFrame]":
    """Return the function that takes the rows of one kind, with their names."""

    def expression(name: str, slot: str) -> str:
        if slot == DAY:
            return f"to_date(timestamp_seconds(time_1)) AS {name}"
        return f"timestamp_seconds({slot}) AS {name}" if slot.startswith("time_") else f"{slot} AS {name}"

    def pick(rows: "DataFrame") -> "DataFrame":
        return rows.where(f"kind = {kind}").selectExpr(*(expression(*column) for column in COLUMNS[kind].items()))

    return pick


def taking(kind: int) -> "Callable[[pyarrow.Table], pyarrow.Table]":
    """Return the same for rows that are in this process."""

    def column(rows: "pyarrow.Table", slot: str) -> Any:
        import pyarrow
        from pyarrow import compute

        if slot == INPUT:
            return pyarrow.array([slot.strip("'")] * len(rows), pyarrow.string())
        if slot != DAY and not slot.startswith("time_"):
            return rows.column(slot)
        seconds = compute.cast(rows.column("time_1" if slot == DAY else slot), pyarrow.timestamp("s", "UTC"))
        return compute.cast(seconds, pyarrow.date32() if slot == DAY else pyarrow.timestamp("us", "UTC"))

    def take(rows: "pyarrow.Table") -> "pyarrow.Table":
        import pyarrow
        from pyarrow import compute

        mine = rows.filter(compute.equal(rows.column("kind"), kind))
        return pyarrow.table({name: column(mine, slot) for name, slot in COLUMNS[kind].items()})

    return take
