"""From folded events to the tables of the pipeline `fleet`, without Spark: batches that die and come again included."""

import json
import zlib

import pyarrow
import pytest

from jetlake.choria.envelopes import make_request
from jetlake.choria.events import decode
from jetlake.choria.registration import file_content
from jetlake.simulation.fleet import Fleet, FleetOptions
from jetlake.spark.lake.folder import Lake
from jetlake.spark.pipelines import catalog
from jetlake.spark.pipelines.fleet import folding
from jetlake.spark.pipelines.fleet.events import EVENTS, event_of
from jetlake.spark.pipelines.fleet.folding import FleetEvent, Fold
from jetlake.spark.pipelines.fleet.tables import tables_of
from jetlake.spark.pipelines.targets import packs_of
from tests.spark.pipelines.fleet_truth_check import differences

pytestmark = [pytest.mark.timeout(180)]

LATENESS_S = 120
START_S = 1_767_225_600
BATCHES = 6


def flat(sequence, event):
    """Return a message as the event that the reader makes of it, taken apart by other means."""
    values = {"name": None, "value": None, "more": None, "extra": None, "number": 0, "payload": None}
    if event.subject == "choria.discovery":
        sender = json.loads(event.payload)["headers"]["mc_sender"]
        values |= {"more": event.subject, "payload": event.payload}
        return FleetEvent(
            kind=folding.REGISTRATION, identity=sender, at_s=0, sequence=sequence, event=0, stored_s=START_S, **values
        )
    body = decode(event.payload)
    kind, fields = kind_of(body)
    return FleetEvent(
        kind=kind,
        identity=body["identity"],
        at_s=body["timestamp"],
        sequence=sequence,
        event=zlib.crc32(json.loads(event.payload)["id"].encode()),
        stored_s=START_S,
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
    return pyarrow.Table.from_pandas(packs_of(tables_of(changes)), preserve_index=False)


def write(lake, pipeline, rows, batch, tables=None):
    """Write a batch to the tables, or to the first of them only, as a process that dies would."""
    for output in pipeline.outputs[:tables]:
        taken = output.rows_of(rows)
        if len(taken):
            table = lake.table(output.table)
            table.write_rows(taken, "query", batch, output.key, output.order_by, list(output.partition_by))


def tables_after(*payloads):
    """Return the tables that these messages give: read, packed, folded."""
    count = len(payloads)
    batch = pyarrow.record_batch(
        {
            "stream": ["S"] * count,
            "subject": ["a"] * count,
            "sequence": range(1, count + 1),
            "timestamp": pyarrow.array([START_S * 1_000_000] * count, pyarrow.timestamp("us", "UTC")),
            "data": pyarrow.array(payloads, pyarrow.binary()),
        }
    )
    fold = Fold({}, LATENESS_S)
    for part in EVENTS.parts(batch):
        fold.add_events(map(FleetEvent._make, zip(*part.rows.to_pydict().values(), strict=True)))
    return tables_of(fold.changes())


def a_check(**fields):
    body = {"protocol": "io.choria.machine.watcher.nagios.v1.state", "identity": "n1", "name": "disk", "status": "OK"}
    return json.dumps({"id": str(fields), "data": body | {"timestamp": START_S} | fields}).encode()


def a_registration(time_s=START_S, mtime_s=START_S, body=None):
    body = body or file_content(path="/inventory.json", mtime_s=mtime_s, updated=False, content=b"{}")
    return make_request(body, sender="n1", request_id=f"{time_s:032}", time_s=time_s)


@pytest.mark.parametrize(
    "payload",
    [
        *(a_check(timestamp=START_S * unit) for unit in (1000, 10**6, 10**9)),
        *(a_check(timestamp=at_s) for at_s in (2**64 - 1, 10**30, -(2**63), -(10**30))),
        a_check(sequence=2**63),
        b"[" * 5000,
        b'{"data":' * 5000,
        a_registration(time_s=START_S + 2 * 24 * 3600),
        *(a_registration(mtime_s=mtime_s) for mtime_s in (START_S * 10**6, -START_S * 10**6, 10**30)),
        a_registration(body='{"content": ' + "[" * 5000 + "]" * 5000 + "}"),
    ],
    ids=lambda payload: f"{payload[-40:]!r}",
)
def test_an_event_with_odd_numbers_is_set_aside_and_those_after_it_count(payload):
    tables = tables_after(payload, a_check(), a_check(timestamp=START_S + 60, status="CRITICAL"), a_registration())

    (state,) = tables["checks"].to_pylist()
    assert tables["bad"].column("sequence").to_pylist() == [1]
    assert (state["status"], state["runs"], state["changes"]) == ("CRITICAL", 2, 1)
    assert tables["nodes"].column("registrations").to_pylist() == [1]
    assert len(tables["inventory"]) == 1


def test_the_reader_takes_messages_apart_in_the_same_way():
    fleet = Fleet(FleetOptions(nodes=20, seconds=1800, seed=4, start_s=START_S, crashes_per_hour=2))
    messages = list(fleet.events())

    for number, message in enumerate(messages, 1):
        found = event_of("S", message.subject, number, START_S, message.payload)
        expected = flat(number, message)
        if found.kind == folding.REGISTRATION:
            assert found._replace(event=0) == expected._replace(name="", value="", extra="")
        else:
            # What an event does not say is an empty text for the reader.
            assert found == FleetEvent(*("" if value is None else value for value in expected))._replace(payload=None)
    assert {found.kind for found in map(flat, range(len(messages)), messages)} >= {1, 2, 3, 5, 6, 7, 8}


def test_the_tables_say_what_the_fleet_did_though_batches_are_written_again(tmp_path):
    options = FleetOptions(
        nodes=120, seconds=3600, seed=4, start_s=START_S, late_share=0.1, duplicate_share=0.1, crashes_per_hour=2
    )
    fleet = Fleet(options)
    events = [flat(number, event) for number, event in enumerate(fleet.events(), 1)]
    lake, pipeline, nodes = Lake(tmp_path), catalog.shipped("fleet", "fleet", {}), {}
    size = len(events) // BATCHES + 1

    for batch in range(BATCHES):
        fold = Fold(nodes, LATENESS_S)
        fold.add_events(sorted(events[batch * size : (batch + 1) * size], key=lambda each: (each.at_s, each.sequence)))
        rows = rows_of(fold.changes())
        # The process dies after some tables have the batch, and writes it again.
        write(lake, pipeline, rows, batch, tables=batch * 2)
        write(lake, pipeline, rows, batch)

    assert differences(lake, fleet.truth.as_json()) == []
    assert not lake.table("fleet_bad").exists()
