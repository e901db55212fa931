"""The level a configuration asks of a server, and how it stands in the metadata.

Streams and consumers keep the level they need under `_nats.req.level`, so that an older server can refuse to open them.
Answers also tell the server's own level and version, which are never kept.

Invariant: what a client says under these three keys is overwritten.
"""

from typing import TypeVar

import msgspec

from jetlake.config import NATS_VERSION
from jetlake.management.consumer_config import ConsumerConfig
from jetlake.management.stream_config import StreamConfig

Config = TypeVar("Config", StreamConfig, ConsumerConfig)

API_LEVEL = 5
"""The level of `NATS_VERSION`."""

REQUIRED_LEVEL_KEY = "_nats.req.level"
SERVER_LEVEL_KEY = "_nats.level"
SERVER_VERSION_KEY = "_nats.ver"
VERSION_KEYS = frozenset({REQUIRED_LEVEL_KEY, SERVER_LEVEL_KEY, SERVER_VERSION_KEY})


def required_level(config: StreamConfig) -> int:
    """Return the lowest level of a server that can serve this stream."""
    if config.allow_batched:
        return 4
    if config.allow_msg_counter or config.allow_atomic or config.allow_msg_schedules or config.persist_mode == "async":
        return 2
    return 1 if config.allow_msg_ttl or config.subject_delete_marker_ttl > 0 else 0


def required_consumer_level(config: ConsumerConfig) -> int:
    """Return the lowest level of a server that can serve this consumer."""
    if config.ack_policy == "flow_control":
        return 4
    is_paused = config.pause_until is not None and not config.pause_until.is_zero
    has_priorities = config.priority_policy or config.priority_timeout or config.priority_groups
    return 1 if is_paused or has_priorities else 0


def with_required_level(config: StreamConfig) -> StreamConfig:
    """Return the configuration of a stream as it is kept."""
    return _with_level(config, required_level(config))


def with_required_consumer_level(config: ConsumerConfig) -> ConsumerConfig:
    """Return the configuration of a consumer as it is kept."""
    return _with_level(config, required_consumer_level(config))


def with_server_versions(config: Config) -> Config:
    """Return a kept configuration as answers show it."""
    versions = {SERVER_LEVEL_KEY: str(API_LEVEL), SERVER_VERSION_KEY: NATS_VERSION}
    return msgspec.structs.replace(config, metadata={**(config.metadata or {}), **versions})


def is_level_too_high(metadata: dict[str, str] | None) -> bool:
    """Return whether what has this metadata needs a newer server than this one."""
    level = (metadata or {}).get(REQUIRED_LEVEL_KEY, "")
    return level.isdecimal() and int(level) > API_LEVEL


def _with_level(config: Config, level: int) -> Config:
    kept = {key: value for key, value in (config.metadata or {}).items() if key not in VERSION_KEYS}
    return msgspec.structs.replace(config, metadata={**kept, REQUIRED_LEVEL_KEY: str(level)})
