"""The API level that a stream asks of a server, and the configuration with it."""

import msgspec

from jetlake.management.streams.config import StreamConfig
from jetlake.management.wire.api_level import metadata_with_level, metadata_with_server_versions


def required_level(config: StreamConfig) -> int:
    """Return the lowest level of a server that can serve this stream."""
    if config.allow_batched:
        return 4
    if config.allow_msg_counter or config.allow_atomic or config.allow_msg_schedules or config.persist_mode == "async":
        return 2
    return 1 if config.allow_msg_ttl or config.subject_delete_marker_ttl > 0 else 0


def with_required_level(config: StreamConfig) -> StreamConfig:
    """Return the configuration of a stream as it is kept."""
    return msgspec.structs.replace(config, metadata=metadata_with_level(config.metadata, required_level(config)))


def with_server_versions(config: StreamConfig) -> StreamConfig:
    """Return a kept configuration as answers show it."""
    return msgspec.structs.replace(config, metadata=metadata_with_server_versions(config.metadata))
