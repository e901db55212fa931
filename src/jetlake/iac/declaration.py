"""What files declare: streams, consumers and templates, whatever format they were written in.

A key-value bucket and an object store are the streams they are; their `label` says what they were declared as.

Invariant: no two resources of a declaration have the same key.
"""

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from jetlake.located.nodes import SourceLocation, refusal

ResourceKind: TypeAlias = Literal["stream", "consumer", "template"]
Key: TypeAlias = tuple[str, str, str]
"""Kind, stream and name; the stream is empty except for consumers."""

OWNER_KEY = "jetlake.iac"
"""The metadata that says which project has made a stream or a consumer."""

NAME_BYTES_MAX = 255
"""The longest name of a stream or a consumer."""

STREAM_PREFIXES = {"bucket": "KV_", "object store": "OBJ_", "governor": "GOVERNOR_"}
"""What is a stream on the server and has a word of its own in files, with how the names of such streams begin."""

_NOT_IN_NAMES = frozenset(" \t\r\n\f.*>\\/")


@dataclass(frozen=True)
class Resource:
    """One thing that is wanted; `config` has the API's names and only what was declared."""

    kind: ResourceKind
    name: str
    config: dict[str, Any]
    location: SourceLocation
    stream: str = ""
    label: str = ""
    # Fields that may be on the server whatever they are: their declaration says nothing about them.
    unmanaged: frozenset[str] = frozenset()

    @property
    def key(self) -> Key:
        return (self.kind, self.stream, self.name)

    @property
    def title(self) -> str:
        return title_of(self.key, self.label)


@dataclass
class Declaration:
    """Everything that is wanted, and what its reader should know."""

    project: str = ""
    resources: list[Resource] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    _by_key: dict[Key, Resource] = field(default_factory=dict)

    def add(self, resource: Resource) -> None:
        """Add a resource. Raises `ConfigurationError` when its name cannot be one, or when it is there already."""
        check_name(resource.kind, resource.name, resource.location)
        if resource.kind == "consumer":
            check_name("stream", resource.stream, resource.location)
        other = self._by_key.setdefault(resource.key, resource)
        if other is not resource:
            raise refusal(
                resource.location, f"{resource.title} is declared already at {other.location}: remove one of them"
            )
        self.resources.append(resource)

    def warn(self, location: SourceLocation, text: str) -> None:
        self.warnings.append(f"{location}: {text}")


def label_of(key: Key) -> str:
    """Return what something on a server is called in files: a bucket is a stream whose name says so."""
    kind, _, name = key
    labels = (label for label, prefix in STREAM_PREFIXES.items() if kind == "stream" and name.startswith(prefix))
    return next(labels, kind)


def title_of(key: Key, label: str = "") -> str:
    """Return how a resource is called in the words of a file: `consumer ORDERS/worker`, `bucket sessions`."""
    _, stream, name = key
    label = label or label_of(key)
    path = f"{stream}/{name}" if stream else name.removeprefix(STREAM_PREFIXES.get(label, ""))
    # A server may have names that a terminal would take for orders.
    return f"{label} {path if path.isprintable() else repr(path)}"


def check_name(what: str, name: str, location: SourceLocation) -> None:
    """Raise `ConfigurationError` for a name that no server accepts."""
    if not name:
        raise refusal(location, f"a {what} has no name: give it one, `name: ORDERS`")
    if len(name.encode()) > NAME_BYTES_MAX:
        raise refusal(
            location, f"the name of a {what} has {len(name.encode())} bytes: at most {NAME_BYTES_MAX} are allowed"
        )
    wrong = sorted(letter for letter in set(name) if letter in _NOT_IN_NAMES or not letter.isprintable())
    if wrong:
        raise refusal(location, f"{name!r} cannot be the name of a {what}: it contains {', '.join(map(repr, wrong))}")
