"""`StoreConfig`: what an object store is like, and the stream that it is on every NATS server."""

from typing import Any, Literal

import msgspec

from jetlake.errors import ConfigurationError
from jetlake.objects.names import STREAM_PREFIX, SUBJECT_PREFIX, check_store

__all__ = ["StoreConfig"]

REPLICAS_MAX = 5
"""Copies that a cluster keeps of a stream at most."""

SECOND = 1_000_000_000


class StoreConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What an object store is like. Times are in seconds; -1 means unlimited."""

    store: str
    description: str = ""
    # How long objects are kept; 0 = for ever.
    ttl_s: float = 0.0
    max_bytes: int = -1
    storage: Literal["file", "memory"] = "file"
    replicas: int = 1
    compression: bool = False
    # Where a cluster places it: `cluster` and `tags`.
    placement: dict[str, Any] | None = None
    metadata: dict[str, str] = {}

    def __post_init__(self) -> None:
        check_store(self.store)
        if not 1 <= self.replicas <= REPLICAS_MAX:
            raise ConfigurationError(f"replicas is {self.replicas}: it must be 1 to {REPLICAS_MAX}")
        if self.ttl_s < 0:
            raise ConfigurationError(f"ttl_s is {self.ttl_s:g}: it must not be negative; 0 keeps objects for ever")

    def stream(self) -> dict[str, Any]:
        """Return the configuration of the stream that is this store."""
        config: dict[str, Any] = {
            "name": STREAM_PREFIX + self.store,
            "subjects": [f"{SUBJECT_PREFIX}{self.store}.C.>", f"{SUBJECT_PREFIX}{self.store}.M.>"],
            "retention": "limits",
            "discard": "new",
            "storage": self.storage,
            "num_replicas": self.replicas,
            "max_msgs": -1,
            "max_consumers": -1,
            "max_bytes": self.max_bytes,
            "max_age": round(self.ttl_s * SECOND),
            "allow_rollup_hdrs": True,
            "allow_direct": True,
            "compression": "s2" if self.compression else "none",
        }
        if self.description:
            config["description"] = self.description
        if self.placement:
            config["placement"] = self.placement
        if self.metadata:
            config["metadata"] = dict(self.metadata)
        return config

    @classmethod
    def of(cls, config: dict[str, Any]) -> "StoreConfig":
        """Return what the object store of a stream is like."""
        return cls(
            store=str(config["name"]).removeprefix(STREAM_PREFIX),
            description=config.get("description", ""),
            ttl_s=config.get("max_age", 0) / SECOND,
            max_bytes=config.get("max_bytes", -1),
            storage=config.get("storage", "file"),
            replicas=config.get("num_replicas", 1),
            compression=config.get("compression", "none") != "none",
            placement=config.get("placement"),
            metadata={
                key: value for key, value in (config.get("metadata") or {}).items() if not key.startswith("_nats.")
            },
        )
