"""Options of one adapter, checked: those of the original, and what ours does better.

Invariant: an `AdapterOptions` that exists can run; `read_adapter` names every mistake of an adapter at once.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from jetlake.choria.documents import KINDS, Kind
from jetlake.choria.envelopes import Protocol
from jetlake.choria.subjects import PLACE, is_publishable, is_subscribable
from jetlake.errors import ConfigurationError
from jetlake.shared.durations import duration_ns
from jetlake.suggestions import suggestion
from jetlake.units import size_bytes

__all__ = ["AdapterOptions", "IngestOptions", "StreamOptions", "VerifyOptions", "read_adapter"]

WORKERS_DEFAULT = 10
WORKERS_MAX = 100
"""The original's own bound: each worker is a connection."""

QUEUE_MESSAGES_DEFAULT = 1_000
"""The original's own default."""

QUEUE_MESSAGES_MAX = 1_000_000
QUEUE_BYTES_DEFAULT = 64 * 1024 * 1024
"""A queue full of the largest messages would otherwise take a gigabyte."""

QUEUE_WAIT_S_DEFAULT = 5.0
"""Half of the time after which a server cuts off a client that does not read."""

QUEUE_WAIT_S_MAX = 9.0
TRIES_DEFAULT = 10
"""With the pauses between them, half a minute of refusals before a document is given up."""

TRIES_MAX = 1_000
ACKNOWLEDGEMENT_S_DEFAULT = 5.0
DRAIN_S_DEFAULT = 20.0
"""For a stop: less than what a hosting server waits."""

PROTOCOLS: tuple[Protocol, ...] = ("request", "reply", "raw")
DEPRECATED_KINDS = ("nats_stream", "natsstream")
NANOSECONDS_PER_SECOND = 1_000_000_000

T = TypeVar("T")


class VerifyOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Whose signatures are trusted: a file of authorities for version 1, keys of issuers for version 2."""

    ca: str = ""
    issuers: tuple[str, ...] = ()


class IngestOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Where messages come from."""

    topic: str
    protocol: Protocol = "reply"
    workers: int = WORKERS_DEFAULT
    # Empty = the connection of the process.
    servers: tuple[str, ...] = ()
    verify: VerifyOptions | None = None


class StreamOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Where documents go."""

    topic: str
    workers: int = WORKERS_DEFAULT
    servers: tuple[str, ...] = ()
    tries: int = TRIES_DEFAULT
    acknowledgement_s: float = ACKNOWLEDGEMENT_S_DEFAULT


class AdapterOptions(msgspec.Struct, frozen=True, kw_only=True):
    """One adapter. `dead_letters` is a subject; empty = what cannot be parsed is counted and dropped."""

    name: str
    kind: Kind
    ingest: IngestOptions
    stream: StreamOptions
    queue_messages_max: int = QUEUE_MESSAGES_DEFAULT
    queue_bytes_max: int = QUEUE_BYTES_DEFAULT
    # How long a worker waits for room in the queue before it drops what it has received; 0 = the original's way.
    queue_wait_s: float = QUEUE_WAIT_S_DEFAULT
    dead_letters: str = ""
    drain_s: float = DRAIN_S_DEFAULT

    @property
    def group(self) -> str:
        """The queue group: adapters of one name in many processes share the messages."""
        return f"nats_ingest_{self.name}"


def read_adapter(name: str, content: object) -> AdapterOptions:
    """Return the options in a map. Raises `ConfigurationError` with every mistake, one per line."""
    problems: list[str] = []
    reader = _Map(f"adapter {name}", content, problems)
    ingest, stream = reader.inner("ingest"), reader.inner("stream")
    if not is_publishable(name) or "." in name:
        problems.append(f"adapter {name!r}: a name must have no blanks, dots, * or >")
    options = AdapterOptions(
        name=name,
        kind=_read_kind(reader, stream),
        ingest=_read_ingest(ingest),
        stream=_read_stream(stream, name),
        queue_messages_max=reader.number("queue_len", QUEUE_MESSAGES_DEFAULT, 1, QUEUE_MESSAGES_MAX),
        queue_bytes_max=reader.size("queue_bytes", QUEUE_BYTES_DEFAULT),
        queue_wait_s=reader.seconds("queue_wait", QUEUE_WAIT_S_DEFAULT, QUEUE_WAIT_S_MAX),
        dead_letters=_read_subject(reader, "dead_letters", ""),
        drain_s=reader.seconds("drain", DRAIN_S_DEFAULT, 3_600.0),
    )
    for each in (reader, ingest, stream):
        each.finish()
    if problems:
        raise ConfigurationError("\n".join(problems))
    return options


def _read_kind(adapter: "_Map", stream: "_Map") -> Kind:
    """Return the type, which manifests put beside `stream` or into it."""
    beside, inside = adapter.text("type"), stream.text("type")
    given = beside or inside
    if beside and inside and beside != inside:
        adapter.problem("type", f"is {beside!r} here and {inside!r} within stream: keep one of them")
    elif given in DEPRECATED_KINDS:
        adapter.problem("type", f"is {given!r}: NATS Streaming is no longer there; write jetstream")
    elif not given:
        adapter.problem("type", f"is missing: write one of {', '.join(KINDS)}")
    elif given not in KINDS:
        adapter.problem("type", f"is {given!r}: it must be one of {', '.join(KINDS)}{suggestion(given, KINDS)}")
    return next((kind for kind in KINDS if kind == given), "jetstream")


def _read_ingest(ingest: "_Map") -> IngestOptions:
    topic = ingest.text("topic")
    if not topic:
        ingest.problem("topic", "is missing: write the subject that nodes publish to, such as choria.discovery")
    elif not is_subscribable(topic):
        ingest.problem("topic", f"is {topic!r}, which is not a subject: no blanks, and no empty parts between dots")
    protocol = ingest.text("protocol") or "reply"
    if protocol not in PROTOCOLS:
        ingest.problem("protocol", f"is {protocol!r}: it must be one of {', '.join(PROTOCOLS)}")
    verify = ingest.inner("verify") if ingest.has("verify") else None
    options = IngestOptions(
        topic=topic,
        protocol=next((known for known in PROTOCOLS if known == protocol), "reply"),
        workers=ingest.number("workers", WORKERS_DEFAULT, 1, WORKERS_MAX),
        servers=ingest.servers("servers"),
        verify=None if verify is None else VerifyOptions(ca=verify.text("ca"), issuers=verify.texts("issuers")),
    )
    if verify is not None:
        if not verify.text("ca") and not verify.texts("issuers"):
            verify.problem("ca", "is missing: name a file with trusted authorities, or issuers")
        if protocol == "raw":
            ingest.problem("verify", "cannot be used with the protocol raw, which has no signatures")
        verify.finish()
    return options


def _read_stream(stream: "_Map", name: str) -> StreamOptions:
    # Only the old type has one; files may keep it.
    stream.text("clusterid")
    return StreamOptions(
        topic=_read_subject(stream, "topic", name),
        workers=stream.number("workers", WORKERS_DEFAULT, 1, WORKERS_MAX),
        servers=stream.servers("servers"),
        tries=stream.number("tries", TRIES_DEFAULT, 1, TRIES_MAX),
        acknowledgement_s=stream.seconds("ack_wait", ACKNOWLEDGEMENT_S_DEFAULT, 300.0),
    )


def _read_subject(reader: "_Map", key: str, default: str) -> str:
    topic = reader.text(key) or default
    if topic and not is_publishable(topic.replace(PLACE, "sender")):
        reader.problem(key, f"is {topic!r}, which cannot be published to: no blanks, * or >, and no empty parts")
    return topic


class _Map:
    """Typed access to one map; every mistake is noted, and what nobody asked for is unknown."""

    def __init__(self, where: str, content: object, problems: list[str]) -> None:
        self._where = where
        self._problems = problems
        self._content: dict[str, Any] = content if isinstance(content, dict) else {}
        self._asked: set[str] = set()
        if not isinstance(content, dict):
            problems.append(f"{where}: must be a map")

    def has(self, key: str) -> bool:
        return self._content.get(key) is not None

    def inner(self, key: str) -> "_Map":
        self._asked.add(key)
        return _Map(f"{self._where}: {key}", self._content.get(key) or {}, self._problems)

    def text(self, key: str) -> str:
        value = self._get(key)
        if value is None:
            return ""
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            self.problem(key, "must be text")
            return ""
        return str(value).strip()

    def texts(self, key: str) -> tuple[str, ...]:
        """A list, or one text with commas."""
        value = self._get(key)
        if isinstance(value, str):
            value = value.split(",")
        if value is None:
            return ()
        if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
            self.problem(key, "must be a list of texts, or one text with commas")
            return ()
        return tuple(each.strip() for each in value if each.strip())

    def servers(self, key: str) -> tuple[str, ...]:
        found = self.texts(key)
        for server in found:
            address = server.rpartition("://")[2].rpartition("@")[2]
            port = address.rpartition(":")[2]
            if ":" not in address or not port.isdecimal() or not 0 < int(port) < 65_536:
                self.problem(key, f"has {address!r}: write host:port, such as js1.example.net:4222")
        return found

    def number(self, key: str, default: int, lowest: int, highest: int) -> int:
        return self._convert(key, default, lambda text: _whole(text, lowest, highest))

    def size(self, key: str, default: int) -> int:
        return self._convert(key, default, _bytes)

    def seconds(self, key: str, default: float, highest: float) -> float:
        return self._convert(key, default, lambda text: _seconds(text, highest))

    def _convert(self, key: str, default: T, convert: Callable[[str], T]) -> T:
        text = self.text(key)
        if not text:
            return default
        try:
            return convert(text)
        except ValueError as error:
            self.problem(key, f"is {text!r}: {error}")
            return default

    def _get(self, key: str) -> Any:
        self._asked.add(key)
        return self._content.get(key)

    def problem(self, key: str, text: str) -> None:
        self._problems.append(f"{self._where}: {key} {text}")

    def finish(self) -> None:
        for key in self._content:
            if key not in self._asked:
                self.problem(str(key), f"is unknown{suggestion(str(key), self._asked)}")


def _whole(text: str, lowest: int, highest: int) -> int:
    if not text.lstrip("-").isdecimal() or not lowest <= int(text) <= highest:
        raise ValueError(f"it must be a whole number from {lowest:,} to {highest:,}")
    return int(text)


def _bytes(text: str) -> int:
    size = size_bytes(text)
    if size is None or size < 1:
        raise ValueError("it must be a size such as 64MiB")
    return size


def _seconds(text: str, highest: float) -> float:
    """A bare number is seconds, as in Choria's files."""
    nanoseconds = duration_ns(f"{text}s" if text.replace(".", "", 1).isdecimal() else text)
    if nanoseconds is None or not 0 <= nanoseconds <= highest * NANOSECONDS_PER_SECOND:
        raise ValueError(f"it must be a time such as 5s, at most {highest:g}s")
    return nanoseconds / NANOSECONDS_PER_SECOND
