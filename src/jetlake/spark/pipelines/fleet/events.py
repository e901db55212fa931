"""Messages as flat events: CloudEvents, raw events, registrations, told apart where they are read.

One event per message, whatever it is: what cannot be read is an event of the kind `BAD` with the reason. A registration
is left as it is, because it is packed three times over; only who sent it is looked up. Events travel as packs
(docs/decisions/0027-native-decode.md), in the bucket of their node.

Invariant: every message is one event, in the order of its stream.
"""

import re
import zlib
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from jetlake.choria.events import LIFECYCLE, MACHINE
from jetlake.spark.packs import RowPart
from jetlake.spark.pipelines.fleet.folding import (
    AHEAD_S_MAX,
    BAD,
    CHECK,
    GOVERNOR,
    HEARD,
    REGISTRATION,
    RUN,
    STARTED,
    STOPPED,
    TOO_DEEP,
    WRONG_TIME,
    FleetEvent,
)
from jetlake.spark.pipelines.fleet.folding import TRANSITION as STEPPED
from jetlake.spark.pipelines.messages import NOT_JSON, NOT_TEXT
from jetlake.spark.pipelines.targets import arrow_type

if TYPE_CHECKING:
    import pyarrow as pa

BUCKETS = 64
"""Parts of the state, each kept as one value. More than cores by far, and few enough that reading one costs little."""

EVENTS_PART = "events"

COLUMNS = {
    "kind": "INT",
    "identity": "STRING",
    "at_s": "BIGINT",
    "sequence": "BIGINT",
    "event": "BIGINT",
    "name": "STRING",
    "value": "STRING",
    "more": "STRING",
    "extra": "STRING",
    "number": "BIGINT",
    "stored_s": "BIGINT",
    "payload": "BINARY",
}
"""Of an event, as `folding.FleetEvent` has them."""

NO_IDENTITY = "it does not say which node it is about"
NO_TIME = "it does not say when it happened"
NOT_OURS = "it is neither an event nor a registration of Choria"
TOO_LARGE = "its sequence does not fit into 64 bits"

NUMBERS = range(-(2**63), 2**63)
"""What a BIGINT holds."""

OLD_LIFECYCLE = re.compile(r"choria:lifecycle:(\w+):")
TRANSPORTS = ("choria:transport:1", "io.choria.protocol.v2.transport")


class EventBody(msgspec.Struct, gc=False):
    """The fields of an event, whether it travels in a CloudEvent or raw."""

    protocol: str | None = None
    identity: str | None = None
    timestamp: int | None = None
    version: str | None = None
    governor: str | None = None
    sequence: int | None = None
    event_type: str | None = None
    machine: str | None = None
    transition: str | None = None
    from_state: str | None = None
    to_state: str | None = None
    name: str | None = None
    status: str | None = None
    previous_outcome: str | None = None


class Headers(msgspec.Struct, gc=False):
    """Of a transport."""

    mc_sender: str | None = None
    sender: str | None = None


class CloudEvent(msgspec.Struct, gc=False):
    """An event in its usual wrapping."""

    data: EventBody
    id: str | None = None
    specversion: str | None = None


class Other(EventBody, gc=False):
    """Anything else: a raw event, a transport, a document of an adapter."""

    data: str | None = None
    id: str | None = None
    sender: str | None = None
    headers: Headers | None = None


_cloud_event = msgspec.json.Decoder(CloudEvent).decode
_other = msgspec.json.Decoder(Other).decode

WHOLE = ("timestamp", "sequence")
"""Fields that are whole numbers; the others are texts."""

KIND_OF_LIFECYCLE = {"startup": STARTED, "shutdown": STOPPED, "governor": GOVERNOR}
KIND_OF_MACHINE = {"watcher.nagios.v1.state": CHECK, "v1.transition": STEPPED, "watcher.exec.v1.state": RUN}
"""Kinds by the names of protocols; others of these families only say that a node is there."""

PROTOCOLS_REMEMBERED_MAX = 1024
"""There are some twenty; a sender that makes them up must not fill the memory."""


class FleetPacker:
    """Packs the messages of a fleet."""

    inputs = ("stream", "subject", "sequence", "timestamp", "data")

    def parts(self, batch: "pa.RecordBatch") -> list[RowPart]:
        """Return the events of a batch."""
        import pyarrow as pa

        stored_s = (batch.column("timestamp").cast(pa.int64()).to_numpy() // 1_000_000).tolist()
        events = list(
            map(
                event_of,
                batch.column("stream").to_pylist(),
                batch.column("subject").to_pylist(),
                batch.column("sequence").to_numpy().tolist(),
                stored_s,
                batch.column("data").to_pylist(),
            )
        )
        if not events:
            return []
        columns = zip(*events, strict=True)
        arrays = {
            name: pa.array(column, arrow_type(kind))
            for (name, kind), column in zip(COLUMNS.items(), columns, strict=True)
        }
        return [RowPart(EVENTS_PART, pa.RecordBatch.from_pydict(arrays), bucket_of(arrays["identity"]))]


EVENTS = FleetPacker()


def bucket_of(identities: "pa.Array") -> "np.ndarray[Any, np.dtype[Any]]":
    """Return the bucket of each node: the same on every machine and for ever, as the state is kept by it."""
    encoded = identities.fill_null("").dictionary_encode()
    buckets = [zlib.crc32(identity.encode()) % BUCKETS for identity in encoded.dictionary.to_pylist()]
    found: np.ndarray[Any, np.dtype[Any]] = np.array(buckets, np.int32)[encoded.indices.to_numpy(zero_copy_only=False)]
    return found


def event_of(stream: str, subject: str, sequence: int, stored_s: int, payload: bytes | None) -> FleetEvent:
    """Return the event of a message."""
    payload = payload or b""
    try:
        body, event_id, sender = read(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        reason = TOO_DEEP if isinstance(error, RecursionError) else reason_of(payload)
        return FleetEvent(BAD, "", 0, sequence, 0, stream, reason, subject, "", 0, stored_s, payload)
    kind = kind_of(body.protocol or "")
    identity = body.identity or sender
    at_s = body.timestamp
    reason = refusal_of(kind, identity, body, stored_s)
    if kind is None or reason:
        return FleetEvent(BAD, identity, 0, sequence, 0, stream, reason, subject, "", 0, stored_s, payload)
    name, value, more, extra = texts_of(kind, body)
    is_registration = kind == REGISTRATION
    return FleetEvent(
        kind,
        identity,
        at_s or 0,
        sequence,
        zlib.crc32(event_id.encode()),
        name or "",
        value or "",
        subject if is_registration else more or "",
        extra or "",
        body.sequence or 0,
        stored_s,
        payload if is_registration else None,
    )


def refusal_of(kind: int | None, identity: str, body: EventBody, stored_s: int) -> str:
    """Return why a message that can be read is not an event of a fleet; empty when it is one."""
    if kind is None:
        return NOT_OURS
    if not identity:
        return NO_IDENTITY
    if body.timestamp is None and kind != REGISTRATION:
        return NO_TIME
    if not 0 <= (body.timestamp or 0) <= stored_s + AHEAD_S_MAX:
        return WRONG_TIME
    return "" if (body.sequence or 0) in NUMBERS else TOO_LARGE


def read(payload: bytes) -> tuple[EventBody, str, str]:
    """Return the body of a message, its id and its sender. Raises `MsgspecError` for what is not JSON."""
    try:
        event = _cloud_event(payload)
    except msgspec.ValidationError:
        pass
    else:
        return event.data, event.id or "", ""
    try:
        other = _other(payload)
    except msgspec.ValidationError:
        other = lenient(msgspec.json.decode(payload))
    headers = other.headers or Headers()
    return other, other.id or "", other.sender or headers.mc_sender or headers.sender or ""


def lenient(message: Any) -> Other:
    """Return what a message says of which fields have another type than they should: those are left out."""
    found = Other()
    if not isinstance(message, dict):
        return found
    data, headers = message.get("data"), message.get("headers")
    fields = {**message, **data} if isinstance(data, dict) else message
    for name in EventBody.__struct_fields__:
        value = fields.get(name)
        wanted = int if name in WHOLE else str
        if isinstance(value, wanted) and not isinstance(value, bool):
            setattr(found, name, value)
    found.id, found.sender = _text(message.get("id")), _text(message.get("sender"))
    if isinstance(headers, dict):
        found.headers = Headers(_text(headers.get("mc_sender")), _text(headers.get("sender")))
    return found


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


@lru_cache(maxsize=PROTOCOLS_REMEMBERED_MAX)
def kind_of(protocol: str) -> int | None:
    """Return which kind of event a protocol means; None when it is not ours."""
    if protocol.startswith(f"{MACHINE}."):
        return KIND_OF_MACHINE.get(protocol.removeprefix(f"{MACHINE}."), HEARD)
    if protocol.startswith(f"{LIFECYCLE}.v1."):
        return KIND_OF_LIFECYCLE.get(protocol.rpartition(".")[2], HEARD)
    old = OLD_LIFECYCLE.match(protocol)
    if old is not None:
        return KIND_OF_LIFECYCLE.get(old[1], HEARD)
    return REGISTRATION if protocol.startswith("choria:adapters:") or protocol in TRANSPORTS else None


def texts_of(kind: int, body: EventBody) -> tuple[str | None, str | None, str | None, str | None]:
    """Return the texts of an event: name, value, more, extra."""
    match kind:
        case 7:  # CHECK, by far the most
            return body.name, body.status, None, None
        case 6:  # TRANSITION
            return body.machine, body.to_state, body.transition, body.from_state
        case 8:  # RUN
            return body.machine, body.previous_outcome, body.name, None
        case 5:  # GOVERNOR
            return body.governor, body.event_type, None, None
        case _:
            return None, body.version, None, None


def reason_of(payload: bytes) -> str:
    """Return why a payload cannot be read at all."""
    try:
        payload.decode()
    except UnicodeDecodeError:
        return NOT_TEXT
    return NOT_JSON
