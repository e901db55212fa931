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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jetlake.spark.packs import SCHEMA
from jetlake.spark.pipelines.fleet import folding
from jetlake.spark.pipelines.model import Frames, Pipeline, StreamInput, TableOutput, duration_s
from jetlake.spark.pipelines.targets import Target, arrow_schema

if TYPE_CHECKING:
    import pyarrow

ABOUT = "Nodes of a fleet: inventory, availability, checks, machines and governors."

PACKER = "jetlake.spark.pipelines.fleet.events:EVENTS"

CHANGES = "changes"

DAY, INPUT = "day of time_1", "name of the input"
"""Columns that are not slots."""

TYPES = {
    "key": "STRING",
    "name": "STRING",
    "text": "STRING",
    "time": "TIMESTAMP",
    "number": "BIGINT",
    "flag": "BOOLEAN",
    "payload": "BINARY",
    DAY: "DATE",
    INPUT: "STRING",
}
"""Types by slot, without its number."""

NAMES = {
    folding.NODE: "nodes",
    folding.SESSION: "sessions",
    folding.INVENTORY: "inventory",
    folding.CHECK_STATE: "checks",
    folding.CHECK_CHANGE: "check_changes",
    folding.MACHINE: "machines",
    folding.STEP: "transitions",
    folding.LEASE: "leases",
    folding.BAD_ROW: "bad",
}
"""Of the packs by kind of row."""

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

        return {CHANGES: changes(frames["events"], lateness_s)}

    return Pipeline(
        name=name,
        about=ABOUT,
        inputs={
            "events": StreamInput(
                pattern=parameters.streams,
                start=parameters.start,
                schema=SCHEMA,
                options={"decoder": PACKER, "maxRowsPerTrigger": str(parameters.batch)},
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
            pick=target_of(kind).pick,
            rows_of=target_of(kind).rows_of,
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
        TableOutput(
            f"{prefix}_transitions",
            of=CHANGES,
            pick=target_of(folding.STEP).pick,
            rows_of=target_of(folding.STEP).rows_of,
        ),
        keyed("leases", folding.LEASE, "governor", "lease"),
        TableOutput(
            f"{name}_bad",
            of=CHANGES,
            pick=target_of(folding.BAD_ROW).pick,
            rows_of=target_of(folding.BAD_ROW).rows_of,
            partition_by=("day",),
        ),
    )


def target_of(kind: int) -> Target:
    """Return where the rows of one kind go."""
    columns = {name: TYPES.get(slot) or TYPES[slot[:-2]] for name, slot in COLUMNS[kind].items()}
    return Target(NAMES[kind], columns)


def tables_of(changes: list[folding.RowChange]) -> "dict[str, pyarrow.Table]":
    """Return rows that changed as tables by target."""
    import pyarrow

    of_kind: dict[int, list[folding.RowChange]] = {}
    for change in changes:
        of_kind.setdefault(change.kind, []).append(change)
    tables = {}
    for kind, rows in of_kind.items():
        slots = dict(zip(folding.RowChange._fields, zip(*rows, strict=True), strict=True))
        arrays = [
            array_of(slots, slot, field.type)
            for slot, field in zip(COLUMNS[kind].values(), arrow_schema(target_of(kind).columns), strict=True)
        ]
        tables[NAMES[kind]] = pyarrow.table(arrays, schema=arrow_schema(target_of(kind).columns))
    return tables


def array_of(slots: Mapping[str, Sequence[Any]], slot: str, kind: "pyarrow.DataType") -> Any:
    """Return a slot of many rows as a column of its table."""
    import pyarrow

    if slot == INPUT:
        return pyarrow.array(["events"] * len(slots["kind"]), kind)
    if slot == DAY or slot.startswith("time_"):
        seconds = pyarrow.array(slots["time_1" if slot == DAY else slot], pyarrow.int64())
        return seconds.cast(pyarrow.timestamp("s", "UTC")).cast(kind)
    return pyarrow.array(slots[slot], kind)
