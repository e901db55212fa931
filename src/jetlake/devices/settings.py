"""The settings of the aggregate service, as its YAML file has them.

```yaml
clients:
  eventBus:
    nats:
      jetstream: true
```

| key                                                   | default                 |
|-------------------------------------------------------|-------------------------|
| `clients.eventBus.nats.url`                           | `nats://127.0.0.1:4222` |
| `clients.eventBus.nats.jetstream`                     | false                   |
| `clients.eventBus.nats.flusherTimeout`                | 30s                     |
| `clients.eventBus.nats.pendingLimits.msgLimit`        | 524288; -1: no limit    |
| `clients.eventBus.nats.pendingLimits.bytesLimit`      | 67108864; -1: no limit  |
| `clients.eventBus.nats.tls.caPool`, `keyFile`, `certFile` | none                |
| `clients.eventStore.snapshotThreshold`                | 16                      |
| `clients.eventStore.occMaxRetry`                      | 8                       |
| `clients.eventStore.defaultCommandTimeToLive`         | 0s: for ever            |
| `apis.grpc.address`, `apis.http.address`              | 127.0.0.1:9100, :9101   |
| `apis.grpc.subscriptionBufferSize`                    | 1000                    |

Files of plgd have many more keys; those that mean nothing here are left out. A key of `clients.eventBus.nats` or
`clients.eventStore` that nobody knows is an error, because it is probably a mistyped one.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import yaml

from jetlake.client.connection import DEFAULT_URL
from jetlake.errors import ConfigurationError, reason_of
from jetlake.shared.durations import duration_ns
from jetlake.suggestions import suggestion

VARIABLE = "JETSTREAM"
"""Turns JetStream mode on if it is `true`, and off if it is anything else."""

SNAPSHOT_THRESHOLD = 16
CONFLICT_RETRIES_MAX = 8
TIME_TO_LIVE_NS_MIN = 100_000_000
"""A command that is valid for less could not reach its device."""

GRPC_ADDRESS = "127.0.0.1:9100"
HTTP_ADDRESS = "127.0.0.1:9101"

_ELLIPSIS = "..."
"""Stands for the rest of a file in documentation; at its beginning YAML would not allow it."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What the service needs to know."""

    url: str = DEFAULT_URL
    jetstream: bool = False
    flush_timeout_s: float = 30.0
    pending_messages_max: int = 524_288
    pending_bytes_max: int = 67_108_864
    tls_ca: str = ""
    tls_certificate: str = ""
    tls_key: str = ""
    # Events of an aggregate after which the next command takes a snapshot first.
    snapshot_threshold: int = SNAPSHOT_THRESHOLD
    # How often a command is decided again because another writer was faster.
    conflict_retries_max: int = CONFLICT_RETRIES_MAX
    # Of commands that say nothing; 0 is for ever.
    time_to_live_ns: int = 0
    grpc_address: str = GRPC_ADDRESS
    http_address: str = HTTP_ADDRESS
    # Events that wait for a slow subscriber; more are dropped, and it is told how many.
    subscription_buffer_max: int = 1000

    def __post_init__(self) -> None:
        if self.snapshot_threshold < 1:
            raise ConfigurationError(f"snapshotThreshold is {self.snapshot_threshold}: it must be at least 1")
        if self.conflict_retries_max < 0:
            raise ConfigurationError(f"occMaxRetry is {self.conflict_retries_max}: it cannot be negative")
        if self.flush_timeout_s <= 0:
            raise ConfigurationError("flusherTimeout must be more than 0, such as 30s")
        if 0 in (self.pending_messages_max, self.pending_bytes_max):
            raise ConfigurationError("pendingLimits must not be 0: give a limit, or -1 for none")
        if 0 < self.time_to_live_ns < TIME_TO_LIVE_NS_MIN or self.time_to_live_ns < 0:
            raise ConfigurationError("defaultCommandTimeToLive must be 0s, or 100ms and more")
        if self.subscription_buffer_max < 1:
            raise ConfigurationError("subscriptionBufferSize must be at least 1")


_FIELDS = {
    "clients.eventBus.nats.url": ("url", str),
    "clients.eventBus.nats.jetstream": ("jetstream", bool),
    "clients.eventBus.nats.flusherTimeout": ("flush_timeout_s", float),
    "clients.eventBus.nats.pendingLimits.msgLimit": ("pending_messages_max", int),
    "clients.eventBus.nats.pendingLimits.bytesLimit": ("pending_bytes_max", int),
    "clients.eventBus.nats.tls.caPool": ("tls_ca", str),
    "clients.eventBus.nats.tls.keyFile": ("tls_key", str),
    "clients.eventBus.nats.tls.certFile": ("tls_certificate", str),
    "clients.eventStore.snapshotThreshold": ("snapshot_threshold", int),
    "clients.eventStore.occMaxRetry": ("conflict_retries_max", int),
    "clients.eventStore.defaultCommandTimeToLive": ("time_to_live_ns", "duration"),
    "apis.grpc.address": ("grpc_address", str),
    "apis.http.address": ("http_address", str),
    "apis.grpc.subscriptionBufferSize": ("subscription_buffer_max", int),
}

_STRICT = ("clients.eventBus.nats", "clients.eventStore")
_LEFT_OUT = (
    "clients.eventBus.nats.tls.useSystemCAPool",
    "clients.eventBus.nats.leadResourceType",
    "clients.eventBus.nats.pendingLimits",
    "clients.eventStore.mongoDB",
    "clients.eventStore.cqlDB",
    "clients.eventStore.use",
    "clients.eventStore.cacheExpiration",
)


def read_settings(path: Path) -> Settings:
    """Read a file. Raises `ConfigurationError`."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = reason_of(error) if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigurationError(f"cannot read {path}: {reason}") from error
    return parse_settings(text, str(path))


def parse_settings(text: str, name: str = "the configuration") -> Settings:
    """Read the text of a file. Raises `ConfigurationError`."""
    kept = "\n".join(line for line in text.splitlines() if line.strip() != _ELLIPSIS)
    try:
        content = yaml.safe_load(kept)
    except yaml.YAMLError as error:
        raise ConfigurationError(f"{name} is not YAML: {error}") from error
    if content is None:
        return Settings()
    if not isinstance(content, dict):
        raise ConfigurationError(f"{name} must be a mapping that begins with `clients:`")
    values: dict[str, Any] = {}
    for key, value in _leaves(content):
        if key in _FIELDS:
            field, kind = _FIELDS[key]
            values[field] = _value(name, key, value, kind)
        elif key.startswith(_STRICT) and not key.startswith(_LEFT_OUT):
            raise ConfigurationError(f"{name} has an unknown key {key}{suggestion(key, list(_FIELDS))}")
    return Settings(**values)


def from_environment(settings: Settings, environment: Mapping[str, str] | None = None) -> Settings:
    """Return the settings with JETSTREAM applied: only `true` turns JetStream mode on."""
    variables = os.environ if environment is None else environment
    if VARIABLE not in variables:
        return settings
    return msgspec.structs.replace(settings, jetstream=variables[VARIABLE] == "true")


def _leaves(content: dict[Any, Any], prefix: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for key, value in content.items():
        path = f"{prefix}{key}"
        found += _leaves(value, f"{path}.") if isinstance(value, dict) else [(path, value)]
    return found


def _value(name: str, key: str, value: Any, kind: Any) -> Any:
    if kind in (float, "duration"):
        nanoseconds = duration_ns(str(value))
        if nanoseconds is None:
            raise ConfigurationError(f"{name}: {key} is {value!r}, which is not a duration: write 30s")
        return nanoseconds / 1_000_000_000 if kind is float else nanoseconds
    if type(value) is not kind:
        wanted = {bool: "true or false", int: "a whole number", str: "text"}[kind]
        raise ConfigurationError(f"{name}: {key} is {value!r}, it must be {wanted}")
    return value
