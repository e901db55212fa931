"""`Reservations`: what the streams of all accounts may grow to together.

Accounts are decided about at the same time, so what one has found free another may have taken: the last word is here.

Invariant: what is reserved never passes a limit that was in force when it was.
"""

from threading import Lock

from jetlake.management.streams.config import StreamConfig
from jetlake.management.streams.context import ServerLimits
from jetlake.management.wire.error_codes import ErrorCode, RequestError


class Reservations:
    """Bytes by storage. Any thread may ask and change."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._reserved = {"file": 0, "memory": 0}
        self._limits = {"file": -1, "memory": -1}

    def __getitem__(self, storage: str) -> int:
        return self._reserved[storage]

    def limit(self, server: ServerLimits) -> None:
        """Reserve no more than this from now on."""
        self._limits = {"file": server.max_storage, "memory": server.max_memory}

    def reserve(self, config: StreamConfig, before: StreamConfig | None = None) -> None:
        """Reserve what a stream may grow to, instead of what it might before. Raises `RequestError`."""
        added, released = max(config.max_bytes, 0), 0 if before is None else max(before.max_bytes, 0)
        with self._lock:
            most, now = self._limits[config.storage], self._reserved[config.storage]
            if added > released and 0 <= most < now + added - released:
                is_memory = config.storage == "memory"
                code = ErrorCode.MEMORY_RESOURCES_EXCEEDED if is_memory else ErrorCode.STORAGE_RESOURCES_EXCEEDED
                raise RequestError(code)
            self._reserved[config.storage] += added - released

    def release(self, config: StreamConfig, before: StreamConfig | None = None) -> None:
        """Undo `take`, or release what a deleted stream had reserved."""
        with self._lock:
            kept = 0 if before is None else max(before.max_bytes, 0)
            self._reserved[config.storage] += kept - max(config.max_bytes, 0)
