"""A batch of events becomes the same columns as its events one by one, whatever is in it."""

import random

import pytest

np = pytest.importorskip("numpy", reason="the extra `spark` is not installed")
pa = pytest.importorskip("pyarrow", reason="the extra `spark` is not installed")

from jetlake.devices.codec import EventCodec  # noqa: E402
from jetlake.devices.columns import EVENTS, EVENTS_2021, _Reading  # noqa: E402
from jetlake.devices.event_rows import COLUMNS, row_of  # noqa: E402
from jetlake.devices.generations import Generation  # noqa: E402
from jetlake.devices.protos import events_2025_pb2 as events  # noqa: E402
from jetlake.devices.protos.envelope_pb2 import Event as Envelope  # noqa: E402
from jetlake.devices.simulator.simulation import Simulation, SimulationOptions  # noqa: E402
from tests.devices.samples import D1, GOLDEN, R1, corpus, event  # noqa: E402

TEXTS = pa.list_(pa.string())
LINK = pa.struct(
    {
        "href": pa.string(),
        "resource_types": TEXTS,
        "interfaces": TEXTS,
        "title": pa.string(),
        "policy": pa.int32(),
        "endpoints": TEXTS,
    }
)
ARROW = {
    "STRING": pa.string(),
    "BINARY": pa.binary(),
    "BIGINT": pa.int64(),
    "INT": pa.int32(),
    "BOOLEAN": pa.bool_(),
    "ARRAY<STRING>": TEXTS,
}
KIND = pa.struct({name: ARROW.get(kind, pa.list_(LINK)) for name, kind in COLUMNS.items()})


def batch_of(messages):
    """Return subjects and payloads as the reader gives them."""
    subjects, payloads = zip(*messages, strict=True) if messages else ((), ())
    return pa.record_batch({"subject": pa.array(subjects, pa.string()), "data": pa.array(payloads, pa.binary())})


def encoded(made, generation=Generation.Y2025):
    codec = EventCodec(generation)
    return [codec.encode(message)[:2] for message in made]


def expected(messages, generation=Generation.Y2025):
    codec = EventCodec(generation)
    rows = [row_of(codec, payload, subject) for subject, payload in messages]
    return pa.array(rows, KIND).to_pylist()


def check(messages, decoder=EVENTS):
    found = decoder.decode(batch_of(messages), KIND)
    found.validate(full=True)
    wanted = expected(messages, decoder.generation)
    for (subject, _), one, other in zip(messages, found.to_pylist(), wanted, strict=True):
        assert one == other, subject


def simulated(**options):
    simulation = Simulation(SimulationOptions(**{"devices": 12, "seconds": 900.0, "start_ns": 10**18, **options}))
    return [timed.message for timed in simulation.timed_events()]


def full_change(**fields):
    return event(
        "resourcechanged",
        D1,
        "/light/1",
        version=7,
        content=events.Content(data=b'{"on":true}', content_type="application/json", coap_content_format=50),
        status=events.OK,
        etag=b"\x00\x01",
        resource_types=["oic.r.light", "oic.r.switch", ""],
        audit_context=events.AuditContext(user_id="u", correlation_id="c", owner="ö"),
        **fields,
    )


@pytest.mark.parametrize("generation", list(Generation))
def test_every_type_of_event_gives_the_columns_of_the_codec(generation):
    check(encoded(corpus(generation), generation), EVENTS if generation is Generation.Y2025 else EVENTS_2021)


def test_the_events_of_a_simulation_give_the_columns_of_the_codec():
    check(encoded(simulated()))


def test_events_of_a_simulation_are_not_read_one_by_one_but_for_their_links():
    messages = encoded(simulated())
    reading = _Reading(batch_of(messages).column("data"), Generation.Y2025)
    reading.check_subjects(batch_of(messages).column("subject"))
    for name in COLUMNS:
        reading.column(name)

    one_by_one = {messages[row][0].split(".")[2] for row in np.flatnonzero(reading.scan.odd)}

    assert one_by_one == {"resource-links"}


def test_the_golden_vector_of_2021_is_read():
    check([(f"events.{D1}.resources.{R1}.resourcechanged", GOLDEN)], EVENTS_2021)


def test_all_fields_of_a_change_and_of_the_change_in_a_snapshot_are_there():
    change = full_change()
    snapshot = event("resourcestatesnapshottaken", D1, "/light/1", version=9, latest_resource_change=change)
    messages = encoded([change, snapshot])

    check(messages)

    first, second = EVENTS.decode(batch_of(messages), KIND).to_pylist()
    assert first["content_json"] == '{"on":true}'
    assert first["resource_types"] == ["oic.r.light", "oic.r.switch", ""]
    assert first["owner"] == "ö"
    assert (second["version"], second["own_version"]) == (7, 9)
    assert second["event_type"] == "resourcestatesnapshottaken"
    assert second["own_ns"] == snapshot.event_metadata.timestamp > first["own_ns"] == change.event_metadata.timestamp
    assert {name for name in first if first[name] != second[name]} == {"event_type", "own_version", "own_ns"}


def test_metadata_with_everything_in_it_is_read():
    made = event(
        "devicemetadataupdated",
        D1,
        version=3,
        connection=events.Connection(
            status=events.Connection.ONLINE,
            id="1.2.3.4:5",
            connected_at=-1,
            protocol=events.Connection.C2C,
            service_id="s",
            local_endpoints=["coap://a", "coap://b"],
        ),
        twin_synchronization=events.TwinSynchronization(
            state=events.TwinSynchronization.IN_SYNC,
            syncing_at=5,
            in_sync_at=6,
            force_synchronization_at=7,
            command_metadata=events.CommandMetadata(connection_id="x", sequence=1),
        ),
        twin_enabled=True,
        canceled=True,
    )

    check(encoded([made, event("devicemetadatasnapshottaken", D1, version=4, device_metadata_updated=made)]))


@pytest.mark.parametrize(
    "subject",
    [
        f"events.{D1}.resources.{R1}.resourcechanged",
        f"events.{D1}.metadata.resourcechanged",
        f"events.x.resources.{R1}.resourcechanged",
        "orders.new",
        "",
    ],
)
def test_an_event_on_a_subject_of_another_one_has_a_reason(subject):
    (_, payload), *_ = encoded([full_change()])
    message = [(subject, payload)]

    check(message)

    (row,) = EVENTS.decode(batch_of(message), KIND).to_pylist()
    # Without a subject there is nothing to compare with.
    assert (row["reason"] is None) == (subject == "")
    assert row["payload"] == (payload if subject else None)


def test_metadata_with_the_aggregate_id_of_another_device_has_a_reason():
    (subject, payload), *_ = encoded([event("devicemetadataupdated", D1, version=1)])
    envelope = Envelope.FromString(payload)
    envelope.aggregate_id = R1

    (row,) = EVENTS.decode(batch_of([(subject, envelope.SerializeToString())]), KIND).to_pylist()

    assert "does not belong to the subject" in row["reason"]


@pytest.mark.parametrize("version", [0, 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1])
def test_versions_up_to_the_limit_of_a_column_are_read(version):
    change = full_change()
    change.event_metadata.version = version

    check(
        encoded([change, event("resourcestatesnapshottaken", D1, "/light/1", version=5, latest_resource_change=change)])
    )


def test_an_enumeration_of_the_future_keeps_its_number():
    change = full_change()
    change.status = 77

    check(encoded([change]))


def test_a_type_of_the_future_tells_nothing():
    envelope = Envelope(version=3, event_type="resourcepainted", group_id=D1, aggregate_id=R1, data=b"\x02\x04\x08\x01")
    message = [(f"events.{D1}.resources.{R1}.resourcepainted", envelope.SerializeToString())]

    check(message)

    assert EVENTS.decode(batch_of(message), KIND).to_pylist()[0]["version"] == -1


def test_unknown_fields_and_long_values_are_passed_over():
    change = full_change()
    change.content.data = bytes(range(256)) * 300
    change.open_telemetry_carrier["trace"] = "x" * 200

    check(encoded([change] * 3))


def test_texts_that_are_not_utf8_have_a_reason():
    change = full_change()
    (subject, payload), *_ = encoded([change])
    envelope = Envelope.FromString(payload)
    inner = change.SerializeToString().replace("ö".encode(), b"\xff\xfe")
    envelope.data = bytes([len(inner) & 127 | 128, len(inner) >> 7, 0xF0, len(inner) - 1]) + inner

    check([(subject, envelope.SerializeToString()), (subject, payload)])


@pytest.mark.parametrize(
    "payloads", [[], [b""], [None], [b"\xff" * 40], [b"\x0a"], [b"\x12\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80"]]
)
def test_what_is_no_envelope_has_a_reason(payloads):
    check([("events.a.metadata.devicemetadataupdated", payload) for payload in payloads])


def test_damaged_events_give_what_the_codec_gives():
    """Bytes are changed, cut out and added at random; the codec alone decides what that means."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    messages = encoded([full_change(), *corpus(), *simulated(devices=2, seconds=60.0)])
    damaged = []
    for _ in range(2000):
        subject, payload = chance.choice(messages)
        data = bytearray(payload)
        for _ in range(chance.randrange(1, 4)):
            place = chance.randrange(len(data) or 1)
            match chance.randrange(3):
                case 0 if data:
                    data[place] = chance.randrange(256)
                case 1:
                    del data[place : place + chance.randrange(1, 9)]
                case _:
                    data[place:place] = chance.randbytes(chance.randrange(1, 5))
        damaged.append((subject, bytes(data)))

    found = EVENTS.decode(batch_of(damaged), KIND)
    found.validate(full=True)
    for one, other in zip(found.to_pylist(), expected(damaged), strict=True):
        if one["reason"] is None and other["reason"] is not None:
            # The damage is in a field that no column is made of; everything around it was read.
            assert other["reason"].startswith("cannot read the event: the data of")
        else:
            assert one == other


def test_a_slice_of_a_batch_is_read_as_the_batch_is():
    messages = encoded(simulated(devices=3, seconds=60.0))
    whole = batch_of(messages)

    part = EVENTS.decode(whole.slice(7, 11), KIND)

    assert part.to_pylist() == expected(messages[7:18])


def test_only_the_fields_that_are_wanted_are_there_in_the_order_they_are_wanted():
    kind = pa.struct({name: KIND.field(name).type for name in ("version", "links", "device_id", "reason")})

    found = EVENTS.decode(batch_of([*encoded(corpus()), ("x", b"y")]), kind)

    assert found.type == kind
    assert found.field("reason").null_count == 52
