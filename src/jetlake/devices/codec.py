"""Events to bytes and back: a protobuf envelope whose `data` is a snappy block of a protobuf event.

```python
codec = Codec()
encoded = codec.encode(changed)          # subject, payload
event = codec.decode(encoded.payload)    # event.message == changed
```

Invariants: what `encode` makes, `decode` of the same generation gives back. No bytes make `decode` raise anything but
`DeviceError`, and none make it allocate more than `UNCOMPRESSED_BYTES_MAX`.
"""

from typing import Any, NamedTuple

import cramjam
from google.protobuf.message import DecodeError

from jetlake.devices.generations import MESSAGES, TYPE_OF_MESSAGE, Generation, upgraded
from jetlake.devices.ids import check_device_id
from jetlake.devices.protos.envelope_pb2 import Event as Envelope
from jetlake.devices.subjects import FAMILY_OF_TYPE, Address, AggregateKey, Family, enveloped_key, resource_key
from jetlake.errors import DeviceError

UNCOMPRESSED_BYTES_MAX = 64 * 1024 * 1024
"""A message of NATS has at most 64 MiB; a block that claims to hold more is damaged or an attack."""

_LENGTH_BYTES_MAX = 5
"""The length before a snappy block is below 2^32."""

_compress = cramjam.snappy.compress_raw
_decompress = cramjam.snappy.decompress_raw


class Event(NamedTuple):
    """One event as it came from the bus."""

    key: AggregateKey
    event_type: str
    version: int
    # Of the codec's generation; None if the type is not known to it.
    message: Any
    # The protobuf bytes of the event, without compression.
    data: bytes
    # In the stream; 0 if it did not come from one.
    sequence: int = 0
    # The message id it was published with.
    message_id: str = ""

    @property
    def subject(self) -> str:
        return self.key.subject(self.event_type)

    @property
    def timestamp_ns(self) -> int:
        """When the aggregate decided it; 0 for a type that is not known."""
        return 0 if self.message is None else int(self.message.event_metadata.timestamp)

    @property
    def is_snapshot(self) -> bool:
        return self.event_type.endswith("snapshottaken")

    def current(self) -> Any:
        """Return the message in today's form."""
        return None if self.message is None else upgraded(self.message)


class Encoded(NamedTuple):
    """One event ready for the bus."""

    subject: str
    payload: bytes
    key: AggregateKey
    version: int


class EventCodec:
    """Encodes and decodes the events of one generation."""

    def __init__(self, generation: Generation = Generation.Y2025) -> None:
        self.generation = generation
        self._messages = MESSAGES[generation]
        self._types = {message: event_type for event_type, message in self._messages.items()}

    def encode(self, message: Any) -> Encoded:
        """Return an event's subject and bytes. Raises `DeviceError` for one of the other generation or without ids."""
        event_type = self._types.get(type(message))
        if event_type is None:
            raise DeviceError("INVALID_ARGUMENT", self._refusal(message))
        key = key_of(event_type, message)
        version = message.event_metadata.version
        payload = Envelope(
            version=version,
            event_type=event_type,
            group_id=key.device_id,
            aggregate_id=key.aggregate_id,
            data=bytes(_compress(message.SerializeToString())),
        ).SerializeToString()
        return Encoded(key.subject(event_type), payload, key, version)

    def decode(self, payload: bytes, *, subject: str = "", sequence: int = 0, message_id: str = "") -> Event:
        """Return the event in a payload; with a subject, refuse an envelope that belongs to another one.

        Raises `DeviceError`. An event type that is not known gives an event without a message.
        """
        try:
            envelope = Envelope.FromString(payload)
        except DecodeError as error:
            raise malformed("the envelope is not protobuf", error) from error
        event_type, device_id, aggregate = envelope.event_type, envelope.group_id, envelope.aggregate_id
        if not event_type or not device_id or not aggregate:
            raise malformed("the envelope lacks its event type, group id or aggregate id")
        key, own_subject = enveloped_key(event_type, device_id, aggregate)
        if subject and subject != own_subject:
            key = _key_on(subject, event_type, device_id, aggregate)
        data = _uncompressed(envelope.data)
        kind = self._messages.get(event_type)
        if kind is None:
            return Event(key, event_type, envelope.version, None, data, sequence, message_id)
        try:
            message = kind.FromString(data)
        except DecodeError as error:
            raise malformed(f"the data of {event_type} is not protobuf", error) from error
        return Event(key, event_type, envelope.version, message, data, sequence, message_id)

    def _refusal(self, message: object) -> str:
        if type(message) in TYPE_OF_MESSAGE:
            return f"{type(message).__name__} is of another generation: this codec encodes those of {self.generation}"
        return f"{type(message).__name__} is not an event"


def key_of(event_type: str, message: Any) -> AggregateKey:
    """Return the aggregate that an event belongs to. Raises `DeviceError` if its ids cannot be used."""
    family = FAMILY_OF_TYPE[event_type]
    if family is not Family.RESOURCES:
        return AggregateKey(check_device_id(message.device_id), family)
    resource = message.resource_id
    href = resource.href
    if not href:
        raise DeviceError("INVALID_ARGUMENT", f"{event_type} has no href: give the resource it is about")
    return resource_key(check_device_id(resource.device_id), href)


def malformed(what: str, cause: object = "") -> DeviceError:
    """Return the error for bytes that cannot be read."""
    return DeviceError("DATA_LOSS", f"cannot read the event: {what}{f' ({cause})' if str(cause) else ''}")


def _key_on(subject: str, event_type: str, device_id: str, aggregate: str) -> AggregateKey:
    """Return the aggregate of an envelope on a subject that does not look like its own, or refuse it."""
    address = Address.of(subject)
    if address.event_type != event_type or address.device_id != device_id:
        raise malformed(f"the envelope of {event_type} does not belong to the subject {subject}")
    if address.key.aggregate_id != aggregate:
        raise malformed(f"aggregate {aggregate} does not belong to the subject {subject}")
    return address.key


def _uncompressed(block: bytes) -> bytes:
    if not block:
        raise malformed("the envelope has no data")
    length = _length_of(block)
    if length > UNCOMPRESSED_BYTES_MAX:
        raise malformed(f"the snappy block claims {length:,} bytes, at most {UNCOMPRESSED_BYTES_MAX:,} are possible")
    try:
        data = bytes(_decompress(block))
    except cramjam.DecompressionError as error:
        raise malformed("the data is not a snappy block", error) from error
    if len(data) != length:
        raise malformed(f"the snappy block claims {length:,} bytes and has {len(data):,}")
    return data


def _length_of(block: bytes) -> int:
    """Return the length that a snappy block begins with."""
    first = block[0]
    if first < 0x80:
        return first
    if len(block) > 1 and block[1] < 0x80:
        return first & 0x7F | block[1] << 7
    length = 0
    for index, byte in enumerate(block[:_LENGTH_BYTES_MAX]):
        length |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return length
    raise malformed("the snappy block does not begin with a length")
