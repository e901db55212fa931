"""The level a configuration asks of a server, and how it stands in the metadata.

A stream keeps the level it needs under `_nats.req.level`, so that an older server can refuse to open it. Answers also
tell the server's own level and version, which are never kept.

Invariant: what a client says under these three keys is overwritten.
"""

import msgspec

from jetlake.config import NATS_VERSION
from jetlake.management.stream_config import StreamConfig

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


def with_required_level(config: StreamConfig) -> StreamConfig:
    """Return the configuration as it is kept."""
    metadata = {**_without_versions(config), REQUIRED_LEVEL_KEY: str(required_level(config))}
    return msgspec.structs.replace(config, metadata=metadata)


def with_server_versions(config: StreamConfig) -> StreamConfig:
    """Return a kept configuration as answers show it."""
    versions = {SERVER_LEVEL_KEY: str(API_LEVEL), SERVER_VERSION_KEY: NATS_VERSION}
    return msgspec.structs.replace(config, metadata={**(config.metadata or {}), **versions})


def _without_versions(config: StreamConfig) -> dict[str, str]:
    return {key: value for key, value in (config.metadata or {}).items() if key not in VERSION_KEYS}
