"""From folded events to the tables of the pipeline `fleet`, without Spark: batches that die and come again included."""

import json
import zlib

import pyarrow
import pytest

from jetlake.choria.events import decode
from jetlake.simulation.fleet import Fleet, FleetOptions
from jetlake.spark.lake.folder import Lake
from jetlake.spark.pipelines import catalog
from jetlake.spark.pipelines.fleet import folding
from jetlake.spark.pipelines.fleet.folding import Event, Fold
from tests.spark.pipelines.fleet_truth_check import differences

pytestmark = [pytest.mark.timeout(180)]

LATENESS_S = 120
BATCHES = 6


def flat(sequence, event):
    """Return a message as the event that Spark makes of it, taken apart by other means."""
    values = {"name": None, "value": None, "more": None, "extra": None, "number": 0, "payload": None}
    if event.subject == "choria.discovery":
        sender = json.loads(event.payload)["headers"]["mc_sender"]
        values |= {"more": event.subject, "payload": event.payload}
        return Event(
            kind=folding.REGISTRATION, identity=sender, at_s=0, sequence=sequence, event=0, stored_s=0, **values
        )
    body = decode(event.payload)
    kind, fields = kind_of(body)
    return Event(
        kind=kind,
        identity=body["identity"],
        at_s=body["timestamp"],
        sequence=sequence,
        event=zlib.crc32(json.loads(event.payload)["id"].encode()),
        stored_s=0,
        **{**values, **{slot: body.get(name) for slot, name in fields.items()}},
    )


def kind_of(body):
    """Return the kind of an event, and which of its fields goes where."""
    match body["protocol"].removeprefix("io.choria.").split("."):
        case ["lifecycle", _, "startup"]:
            return folding.STARTED, {"value": "version"}
        case ["lifecycle", _, "shutdown"]:
            return folding.STOPPED, {}
        case ["lifecycle", _, "governor"]:
            return folding.GOVERNOR, {"name": "governor", "value": "event_type", "number": "sequence"}
        case ["machine", _, "transition"]:
            return folding.TRANSITION, {
                "name": "machine",
                "value": "to_state",
                "more": "transition",
                "extra": "from_state",
            }
        case ["machine", "watcher", "nagios", *_]:
            return folding.CHECK, {"name": "name", "value": "status"}
        case ["machine", "watcher", "exec", *_]:
            return folding.RUN, {"name": "machine", "value": "previous_outcome", "more": "name"}
        case _:
            return folding.HEARD, {"value": "version"}


def rows_of(changes):
    """Return changed rows as they come out of Spark's state."""
    kinds = {name: pyarrow.int64() for name in folding.Change._fields if name.startswith(("time", "number"))}
    kinds |= {"kind": pyarrow.int32(), "flag": pyarrow.bool_(), "payload": pyarrow.binary()}
    columns = zip(*changes, strict=True)
    named = zip(folding.Change._fields, columns, strict=True)
    return pyarrow.table({name: pyarrow.array(column, kinds.get(name, pyarrow.string())) for name, column in named})


def write(lake, pipeline, rows, batch, tables=None):
    """Write a batch to the tables, or to the first of them only, as a process that dies would."""
    for output in pipeline.outputs[:tables]:
        taken = output.take(rows)
        if len(taken):
            table = lake.table(output.table)
            table.write_rows(taken, "query", batch, output.key, output.order_by, list(output.partition_by))


def test_the_tables_say_what_the_fleet_did_though_batches_are_written_again(tmp_path):
    options = FleetOptions(
        nodes=120, seconds=3600, seed=4, start_s=1_767_225_600, late_share=0.1, duplicate_share=0.1, crashes_per_hour=2
    )
    fleet = Fleet(options)
    events = [flat(number, event) for number, event in enumerate(fleet.events(), 1)]
    lake, pipeline, nodes = Lake(tmp_path), catalog.shipped("fleet", "fleet", {}), {}
    size = len(events) // BATCHES + 1

    for batch in range(BATCHES):
        fold = Fold(nodes, LATENESS_S)
        fold.take(sorted(events[batch * size : (batch + 1) * size], key=lambda each: (each.at_s, each.sequence)))
        rows = rows_of(fold.changes())
        # The process dies after some tables have the batch, and writes it again.
        write(lake, pipeline, rows, batch, tables=batch * 2)
        write(lake, pipeline, rows, batch)

    assert differences(lake, fleet.truth.as_json()) == []
    assert not lake.table("fleet_bad").exists()
