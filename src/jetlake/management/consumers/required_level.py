"""The API level that a consumer asks of a server, and the configuration with it."""

import msgspec

from jetlake.management.consumers.config import ConsumerConfig
from jetlake.management.wire.api_level import metadata_with_level, metadata_with_server_versions


def required_consumer_level(config: ConsumerConfig) -> int:
    """Return the lowest level of a server that can serve this consumer."""
    if config.ack_policy == "flow_control":
        return 4
    is_paused = config.pause_until is not None and not config.pause_until.is_zero
    has_priorities = config.priority_policy or config.priority_timeout or config.priority_groups
    return 1 if is_paused or has_priorities else 0


def with_required_consumer_level(config: ConsumerConfig) -> ConsumerConfig:
    """Return the configuration of a consumer as it is kept."""
    level = required_consumer_level(config)
    return msgspec.structs.replace(config, metadata=metadata_with_level(config.metadata, level))


def with_server_versions(config: ConsumerConfig) -> ConsumerConfig:
    """Return a kept configuration as answers show it."""
    return msgspec.structs.replace(config, metadata=metadata_with_server_versions(config.metadata))
