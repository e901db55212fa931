"""The levels of the API, and how they stand in the metadata of streams and consumers.

Streams and consumers keep the level they need under `_nats.req.level`, so that an older server can refuse to open them.
Answers also tell the server's own level and version, which are never kept.

Invariant: what a client says under these three keys is overwritten.
"""

from jetlake.config import NATS_VERSION

API_LEVEL = 5
"""The level of `NATS_VERSION`."""

REQUIRED_LEVEL_KEY = "_nats.req.level"
SERVER_LEVEL_KEY = "_nats.level"
SERVER_VERSION_KEY = "_nats.ver"
VERSION_KEYS = frozenset({REQUIRED_LEVEL_KEY, SERVER_LEVEL_KEY, SERVER_VERSION_KEY})

Metadata = dict[str, str] | None
"""The metadata of a configuration; None = the request had none."""


def metadata_with_level(metadata: Metadata, level: int) -> dict[str, str]:
    """Return the metadata as it is kept, for a configuration that needs this level."""
    kept = {key: value for key, value in (metadata or {}).items() if key not in VERSION_KEYS}
    return {**kept, REQUIRED_LEVEL_KEY: str(level)}


def metadata_with_server_versions(metadata: Metadata) -> dict[str, str]:
    """Return kept metadata as answers show it."""
    return {**(metadata or {}), SERVER_LEVEL_KEY: str(API_LEVEL), SERVER_VERSION_KEY: NATS_VERSION}


def is_level_too_high(metadata: Metadata) -> bool:
    """Return whether what has this metadata needs a newer server than this one."""
    level = (metadata or {}).get(REQUIRED_LEVEL_KEY, "")
    return level.isdecimal() and int(level) > API_LEVEL
