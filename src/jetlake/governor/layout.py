"""How a governor is laid out on a stream: the layout of Choria, so that both see each other's leases.

A governor is the stream `GOVERNOR_<name>` with one subject, `<collective>.governor.<name>`. It keeps as many messages
as there are slots, refuses further ones, and drops each when it is as old as a lease may be. A lease is one message:
its sequence is the id, its payload the name of the holder.

Invariant: `settings_of(stream_config(settings)) == settings`.
"""

import re
from typing import Any

import msgspec

from jetlake.errors import ConfigurationError

STREAM_PREFIX = "GOVERNOR_"
DEFAULT_COLLECTIVE = "mcollective"

CAPACITY_MAX = 1_000_000
"""Slots of one governor: every lease is a message that `view` reads."""

EXPIRES_NS_MIN = 100_000_000
"""The shortest age of a message that nats-server accepts."""

REPLICAS_MAX = 5
"""As many as a stream can have."""

HOLDER_BYTES_MAX = 1_024
"""A holder is a name, not a document."""

_NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")
_COLLECTIVE = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")


class GovernorSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What a governor is. Raises `ConfigurationError` when it is made of what no governor can be."""

    name: str
    capacity: int
    # 0 = leases never expire; a crashed holder then keeps its slot until it is evicted.
    expires_ns: int
    replicas: int = 1
    collective: str = DEFAULT_COLLECTIVE

    def __post_init__(self) -> None:
        check_name(self.name)
        check_collective(self.collective)
        if not 1 <= self.capacity <= CAPACITY_MAX:
            raise ConfigurationError(
                f"governor {self.name} cannot have a capacity of {self.capacity}: give 1 to {CAPACITY_MAX:,}"
            )
        if self.expires_ns and self.expires_ns < EXPIRES_NS_MIN:
            raise ConfigurationError(
                f"leases of governor {self.name} cannot expire after {self.expires_ns} ns: give at least 100ms, or 0 "
                "for leases that never expire"
            )
        if not 1 <= self.replicas <= REPLICAS_MAX:
            raise ConfigurationError(
                f"governor {self.name} cannot have {self.replicas} replicas: give 1 to {REPLICAS_MAX}"
            )

    @property
    def stream(self) -> str:
        return stream_of(self.name)

    @property
    def subject(self) -> str:
        return subject_of(self.name, self.collective)


def stream_of(name: str) -> str:
    """Return the stream of a governor."""
    return f"{STREAM_PREFIX}{name}"


def subject_of(name: str, collective: str = DEFAULT_COLLECTIVE) -> str:
    """Return the subject that campaigners publish to."""
    return f"{collective}.governor.{name}"


def side_subject(subject: str, word: str) -> str:
    """Return a subject beside that of a governor, for messages between its users.

    It is one token, so that every user who may campaign (`<collective>.governor.*`) may use it too, and it contains a
    slash, which no stream name does, so that it is never the subject of another governor.
    """
    return f"{subject}/{word}"


def stream_config(settings: GovernorSettings) -> dict[str, Any]:
    """Return the configuration of a governor's stream."""
    return {
        "name": settings.stream,
        "description": f"Concurrency Governor {settings.name}",
        "subjects": [settings.subject],
        "retention": "limits",
        "storage": "file",
        "discard": "new",
        "max_msgs": settings.capacity,
        "max_bytes": -1,
        "max_age": settings.expires_ns,
        "num_replicas": settings.replicas,
    }


def settings_of(config: dict[str, Any]) -> GovernorSettings:
    """Return a governor's settings from its stream's configuration. Raises `ConfigurationError` if it is not one."""
    name = str(config.get("name", ""))
    subjects = config.get("subjects") or []
    subject = str(subjects[0]) if len(subjects) == 1 else ""
    collective = subject.removesuffix(f".governor.{name.removeprefix(STREAM_PREFIX)}")
    if not name.startswith(STREAM_PREFIX) or not subject or collective == subject:
        raise ConfigurationError(
            f"stream {name} is not a governor: its subject must be <collective>.governor.<name>, not {subjects}"
        )
    if config.get("discard") != "new" or int(config.get("max_msgs", -1)) < 1:
        raise ConfigurationError(
            f"stream {name} does not limit anybody: a governor has max_msgs and discard new; delete it and run "
            "`jetlake governor add`"
        )
    return GovernorSettings(
        name=name.removeprefix(STREAM_PREFIX),
        capacity=int(config["max_msgs"]),
        expires_ns=int(config.get("max_age", 0)),
        replicas=max(int(config.get("num_replicas", 1)), 1),
        collective=collective,
    )


def check_name(name: str) -> str:
    """Return the name of a governor. Raises `ConfigurationError` for one that cannot be."""
    if not _NAME.fullmatch(name):
        raise ConfigurationError(f"{name!r} cannot name a governor: use letters, digits, - and _, 128 at most")
    return name


def check_collective(collective: str) -> str:
    """Return the name of a collective. Raises `ConfigurationError` for one that cannot be."""
    if not _COLLECTIVE.fullmatch(collective):
        raise ConfigurationError(f"{collective!r} cannot name a collective: use letters, digits, -, _ and dots")
    return collective


def check_holder(holder: str) -> str:
    """Return the name of a holder. Raises `ConfigurationError` for one that cannot be."""
    if not holder or not holder.isprintable() or len(holder.encode()) > HOLDER_BYTES_MAX:
        raise ConfigurationError(
            f"{holder[:40]!r} cannot name the holder of a lease: give 1 to {HOLDER_BYTES_MAX} printable characters"
        )
    return holder
