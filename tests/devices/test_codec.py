"""Events to bytes and back: both generations, the golden vector, and bytes that are no events."""

import hashlib
from contextlib import suppress

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jetlake.devices.codec import UNCOMPRESSED_BYTES_MAX, EventCodec
from jetlake.devices.content import value_of
from jetlake.devices.generations import MESSAGES, Generation, upgraded
from jetlake.devices.ids import aggregate_id, links_id, metadata_id
from jetlake.devices.protos import events_2021_pb2 as events_2021
from jetlake.devices.protos import events_2025_pb2 as events_2025
from jetlake.devices.protos.envelope_pb2 import Event as Envelope
from jetlake.devices.subjects import Family
from jetlake.errors import DeviceError
from tests.devices.samples import D1, GOLDEN, TIMESTAMP_NS, corpus, event

GENERATIONS = list(Generation)


def test_golden_vector_has_its_checksum():
    assert hashlib.sha256(GOLDEN).hexdigest() == "03677779a34442fe9d9acde28f75cb3ed65ba5f3bc63408e3c0d6fb8a89004be"


def test_golden_vector_decodes_to_its_values():
    found = EventCodec(Generation.Y2021).decode(GOLDEN)

    message = found.message
    assert (found.event_type, found.version, found.key.device_id) == ("resourcechanged", 7, D1)
    assert found.key.resource_id == aggregate_id(D1, "/oic/d")
    assert (message.resource_id.device_id, message.resource_id.href) == (D1, "/oic/d")
    assert (message.content.data.hex(), message.content.content_type) == ("a1617601", "application/vnd.ocf+cbor")
    assert message.content.coap_content_format == 10000
    assert message.audit_context.user_id == "u1"
    assert message.event_metadata.timestamp == found.timestamp_ns == TIMESTAMP_NS
    assert (message.event_metadata.connection_id, message.event_metadata.sequence) == ("c1", 3)
    assert message.status == events_2021.OK
    assert value_of(found.current().content) == {"v": 1}


def test_generation_is_never_guessed():
    as_today = EventCodec(Generation.Y2025).decode(GOLDEN)

    # It can be read, and its fields are shifted: the status is a connection of length 1 now.
    assert as_today.message.status != events_2025.OK or as_today.message.audit_context.user_id != "u1"


@pytest.mark.parametrize("generation", GENERATIONS)
def test_every_event_comes_back_as_it_was(generation):
    codec = EventCodec(generation)

    for message in corpus(generation):
        encoded = codec.encode(message)
        found = codec.decode(encoded.payload, subject=encoded.subject, sequence=3)
        assert found.message == message
        assert (found.subject, found.version, found.sequence) == (encoded.subject, encoded.version, 3)


@pytest.mark.parametrize("generation", GENERATIONS)
def test_envelope_agrees_with_subject_and_event(generation):
    for message in corpus(generation):
        encoded = EventCodec(generation).encode(message)
        envelope = Envelope.FromString(encoded.payload)
        tokens = encoded.subject.split(".")
        assert (tokens[0], tokens[1], tokens[-1]) == ("events", envelope.group_id, envelope.event_type)
        assert envelope.event_type == type(message).__name__.lower()
        assert envelope.version == message.event_metadata.version
        if encoded.key.family is Family.RESOURCES:
            assert tokens[3] == envelope.aggregate_id == aggregate_id(D1, message.resource_id.href) or tokens[1] != D1
        elif encoded.key.family is Family.LINKS:
            assert envelope.aggregate_id == links_id(tokens[1])
        else:
            assert envelope.aggregate_id == metadata_id(tokens[1])


def test_first_version_and_unused_fields_are_not_on_the_wire():
    encoded = EventCodec().encode(event("resourcechanged", D1, "/oic/d"))

    assert [field.number for field, _ in Envelope.FromString(encoded.payload).ListFields()] == [2, 3, 4, 5]


def test_data_is_a_snappy_block_and_not_a_framed_stream():
    message = event("resourcechanged", D1, "/oic/d", content={"data": b"x" * 300})
    block = Envelope.FromString(EventCodec().encode(message).payload).data

    plain = message.SerializeToString()
    length = (block[0] & 0x7F) | block[1] << 7
    assert length == len(plain)
    assert bytes(cramjam.snappy.decompress_raw(block)) == plain
    with pytest.raises(cramjam.DecompressionError):
        cramjam.snappy.decompress(block)


def test_unknown_event_type_is_kept_without_a_message():
    envelope = Envelope(version=4, event_type="deviceteleported", group_id=D1, aggregate_id="a", data=compressed(b"hi"))

    found = EventCodec().decode(envelope.SerializeToString())

    assert (found.event_type, found.version, found.message, found.data) == ("deviceteleported", 4, None, b"hi")
    assert found.current() is None
    assert found.timestamp_ns == 0


def test_unknown_fields_are_kept():
    message = event("resourcechanged", D1, "/oic/d")
    envelope = Envelope.FromString(EventCodec().encode(message).payload)
    extra = b"\xba\x3e\x02hi"  # Field 999, two bytes.
    envelope.data = compressed(message.SerializeToString() + extra)

    found = EventCodec().decode(envelope.SerializeToString() + extra)

    assert found.message.SerializeToString().endswith(extra)


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"", "lacks its event type"),
        (b"\xff\xff\xff", "envelope is not protobuf"),
        (Envelope(event_type="resourcechanged", group_id=D1, aggregate_id="a"), "has no data"),
        (Envelope(event_type="resourcechanged", group_id=D1, aggregate_id="a", data=b"\xff" * 9), "with a length"),
        (Envelope(event_type="resourcechanged", group_id=D1, aggregate_id="a", data=b"\x05\xff\xff"), "snappy block"),
        (Envelope(event_type="resourcechanged", group_id=D1, data=b"\x00"), "lacks its event type"),
    ],
)
def test_malformed_bytes_are_a_clear_error(payload, reason):
    raw = payload if isinstance(payload, bytes) else payload.SerializeToString()

    with pytest.raises(DeviceError, match=reason) as refused:
        EventCodec().decode(raw)

    assert refused.value.status == "DATA_LOSS"


def test_malformed_protobuf_inside_the_block_is_a_clear_error():
    envelope = Envelope(event_type="resourcechanged", group_id=D1, aggregate_id="a", data=compressed(b"\xff\xff"))

    with pytest.raises(DeviceError, match="data of resourcechanged is not protobuf"):
        EventCodec().decode(envelope.SerializeToString())


def test_block_that_claims_gigabytes_is_refused_before_it_is_unpacked():
    huge = (UNCOMPRESSED_BYTES_MAX + 1).bit_length()
    claim = bytes([0xFF] * 4 + [0x0F])
    assert huge < 32
    envelope = Envelope(event_type="resourcechanged", group_id=D1, aggregate_id="a", data=claim + b"\x00")

    with pytest.raises(DeviceError, match="claims 4,294,967,295 bytes"):
        EventCodec().decode(envelope.SerializeToString())


def test_envelope_on_a_foreign_subject_is_refused():
    encoded = EventCodec().encode(event("resourcechanged", D1, "/oic/d"))

    for subject in (
        encoded.subject.replace("resourcechanged", "resourcecreated"),
        encoded.subject.replace(D1, "other"),
        encoded.subject.replace(encoded.key.resource_id, aggregate_id(D1, "/light/1")),
    ):
        with pytest.raises(DeviceError, match="does not belong to the subject"):
            EventCodec().decode(encoded.payload, subject=subject)


@given(st.binary(max_size=300))
def test_no_bytes_break_the_decoder(payload):
    with suppress(DeviceError):
        EventCodec().decode(payload)


@given(st.integers(min_value=0, max_value=212), st.integers(min_value=0, max_value=255))
def test_no_damage_to_the_golden_vector_breaks_the_decoder(position, value):
    damaged = bytearray(GOLDEN)
    damaged[position] = value
    with suppress(DeviceError):
        assert EventCodec(Generation.Y2021).decode(bytes(damaged)).event_type


@pytest.mark.parametrize("device_id", ["*", "a.b", ""])
def test_device_id_with_a_wildcard_is_refused_before_publishing(device_id):
    with pytest.raises(DeviceError):
        EventCodec().encode(event("resourcechanged", device_id, "/oic/d"))


def test_event_of_the_other_generation_is_refused():
    with pytest.raises(DeviceError, match="another generation: this codec encodes those of 2021"):
        EventCodec(Generation.Y2021).encode(event("resourcechanged", D1, "/oic/d"))


def test_something_else_is_no_event():
    with pytest.raises(DeviceError, match="Content is not an event"):
        EventCodec().encode(events_2025.Content())


def test_old_events_upgrade_to_todays_form():
    old = events_2021.ResourceLinksPublished(device_id=D1)
    link = old.resources.add(href="/a", resource_types=["x"], policies=events_2021.Policies(bit_flags=3))
    link.endpoint_informations.add(endpoint="coap://1.2.3.4", priority=2)
    metadata = events_2021.DeviceMetadataUpdated(device_id=D1, shadow_synchronization=events_2021.DISABLED)
    metadata.status.value = events_2021.ConnectionStatus.ONLINE
    snapshot = events_2021.ResourceLinksSnapshotTaken(device_id=D1)
    snapshot.resources["/a"].CopyFrom(link)
    pending = events_2021.DeviceMetadataSnapshotTaken(device_id=D1)
    pending.update_pendings.add(device_id=D1, shadow_synchronization=events_2021.ENABLED)

    links, twin, links_snapshot, metadata_snapshot = (upgraded(each) for each in (old, metadata, snapshot, pending))

    assert links.resources[0].policy.bit_flags == 3
    assert links.resources[0].endpoint_informations[0].priority == 2
    assert (twin.connection.status, twin.twin_enabled) == (events_2025.Connection.ONLINE, False)
    assert links_snapshot.resources["/a"].resource_types == ["x"]
    assert metadata_snapshot.update_pendings[0].twin_enabled


def test_every_old_event_can_be_upgraded():
    for message in corpus(Generation.Y2021):
        new = upgraded(message)
        assert type(new) is MESSAGES[Generation.Y2025][type(message).__name__.lower()]
        assert new.event_metadata.version == message.event_metadata.version
        assert upgraded(new) is new


def compressed(data: bytes) -> bytes:
    return bytes(cramjam.snappy.compress_raw(data))
