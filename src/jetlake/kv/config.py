"""`BucketConfig`: what a bucket is like, and the stream that it is on every NATS server.

```python
BucketConfig(bucket="CFG", history=5, ttl_s=3600, replicas=3)
```

Invariants: `BucketConfig.of(config.stream())` is the same configuration, and
`changed_stream(stream, BucketConfig.of(stream))` the same stream.
"""

from typing import Any, Literal

import msgspec

from jetlake.errors import ConfigurationError
from jetlake.kv.names import STREAM_PREFIX, SUBJECT_PREFIX, check_bucket, check_filter

__all__ = ["BucketConfig", "Origin", "Republish", "changed_stream"]

HISTORY_MAX = 64
"""Revisions of a key that a bucket may keep; the specification's limit."""

REPLICAS_MAX = 5
"""Copies that a cluster keeps of a stream at most."""

DUPLICATE_WINDOW_S = 120.0
"""How long a stream remembers message ids; never longer than it keeps messages."""

MARKER_S_MIN = 1.0
"""The shortest life of a marker that a server takes."""

SERVER_METADATA = "_nats."
"""How the names begin under which a server notes what it needs to know about a stream."""

SECOND = 1_000_000_000


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """A bucket that another one copies, as a mirror or as one of its sources."""

    bucket: str
    # Only these keys, with `*` and `>`; all of them unless given.
    keys: tuple[str, ...] = ()
    # Of another account or domain: the prefix of its API, as "$JS.hub.API", and of the subjects it delivers to.
    api_prefix: str = ""
    deliver_prefix: str = ""


class Republish(msgspec.Struct, frozen=True, kw_only=True):
    """Sends every stored message on to another subject."""

    destination: str
    # All of the bucket's subjects unless given.
    source: str = ""
    headers_only: bool = False


class BucketConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What a bucket is like. Times are in seconds; -1 means unlimited."""

    bucket: str
    description: str = ""
    # Revisions kept of each key.
    history: int = 1
    # How long values are kept; 0 = for ever.
    ttl_s: float = 0.0
    max_value_bytes: int = -1
    max_bytes: int = -1
    storage: Literal["file", "memory"] = "file"
    replicas: int = 1
    compression: bool = False
    # Lets keys have a TTL of their own; it cannot be turned off again.
    key_ttl: bool = True
    # How long the server keeps markers of values that it removed by their TTL; 0 = it leaves none.
    limit_marker_ttl_s: float = 0.0
    # Any server of a cluster may answer reads; without it only the leader does.
    allow_direct: bool = True
    republish: Republish | None = None
    mirror: Origin | None = None
    sources: tuple[Origin, ...] = ()
    # Where a cluster places it: `cluster` and `tags`.
    placement: dict[str, Any] | None = None
    metadata: dict[str, str] = {}

    def __post_init__(self) -> None:
        check_bucket(self.bucket)
        if not 1 <= self.history <= HISTORY_MAX:
            raise ConfigurationError(f"history is {self.history}: a bucket keeps 1 to {HISTORY_MAX} revisions of a key")
        if not 1 <= self.replicas <= REPLICAS_MAX:
            raise ConfigurationError(f"replicas is {self.replicas}: it must be 1 to {REPLICAS_MAX}")
        if self.ttl_s < 0:
            raise ConfigurationError(f"ttl_s is {self.ttl_s:g}: it must not be negative; 0 keeps values for ever")
        if self.limit_marker_ttl_s and self.limit_marker_ttl_s < MARKER_S_MIN:
            raise ConfigurationError(f"limit_marker_ttl_s is {self.limit_marker_ttl_s:g}: it must be at least 1, or 0")
        if self.mirror and self.sources:
            raise ConfigurationError(f"bucket {self.bucket} has a mirror and sources: choose one of them")
        for origin in (*([self.mirror] if self.mirror else []), *self.sources):
            check_bucket(origin.bucket)
            for pattern in origin.keys:
                check_filter(pattern)

    def stream(self) -> dict[str, Any]:
        """Return the configuration of the stream that is this bucket."""
        config: dict[str, Any] = {
            "name": STREAM_PREFIX + self.bucket,
            "subjects": [f"{SUBJECT_PREFIX}{self.bucket}.>"],
            "retention": "limits",
            "discard": "new",
            "storage": self.storage,
            "num_replicas": self.replicas,
            "max_msgs": -1,
            "max_consumers": -1,
            "max_bytes": self.max_bytes,
            "max_age": round(self.ttl_s * SECOND),
            "max_msgs_per_subject": self.history,
            "max_msg_size": self.max_value_bytes,
            "duplicate_window": round((min(self.ttl_s, DUPLICATE_WINDOW_S) or DUPLICATE_WINDOW_S) * SECOND),
            "allow_rollup_hdrs": True,
            "deny_delete": True,
            "allow_direct": self.allow_direct,
            "compression": "s2" if self.compression else "none",
        }
        if self.description:
            config["description"] = self.description
        if self.key_ttl or self.limit_marker_ttl_s:
            config["allow_msg_ttl"] = True
        if self.limit_marker_ttl_s:
            config["subject_delete_marker_ttl"] = round(self.limit_marker_ttl_s * SECOND)
        if self.republish:
            config["republish"] = {
                "src": self.republish.source or f"{SUBJECT_PREFIX}{self.bucket}.>",
                "dest": self.republish.destination,
                "headers_only": self.republish.headers_only,
            }
        if self.placement:
            config["placement"] = self.placement
        if self.metadata:
            config["metadata"] = dict(self.metadata)
        self._copy_origins(config)
        return config

    def _copy_origins(self, config: dict[str, Any]) -> None:
        if self.mirror:
            # A mirror has the subjects of its origin, and a stream of one has none of its own.
            del config["subjects"]
            config["mirror"] = _origin(self.mirror, self.mirror.bucket)
            config["mirror_direct"] = True
        elif self.sources:
            config["sources"] = [_origin(source, self.bucket) for source in self.sources]

    @classmethod
    def of(cls, config: dict[str, Any]) -> "BucketConfig":
        """Return what the bucket of a stream is like."""
        bucket = str(config["name"]).removeprefix(STREAM_PREFIX)
        republish = config.get("republish")
        mirror = config.get("mirror")
        return cls(
            bucket=bucket,
            description=config.get("description", ""),
            history=_history(config),
            ttl_s=config.get("max_age", 0) / SECOND,
            max_value_bytes=config.get("max_msg_size", -1),
            max_bytes=config.get("max_bytes", -1),
            storage=config.get("storage", "file"),
            replicas=config.get("num_replicas", 1),
            compression=config.get("compression", "none") != "none",
            key_ttl=bool(config.get("allow_msg_ttl")),
            limit_marker_ttl_s=config.get("subject_delete_marker_ttl", 0) / SECOND,
            allow_direct=bool(config.get("allow_direct")),
            republish=None if not republish else _read_republish(republish, bucket),
            mirror=None if not mirror else _read_origin(mirror),
            sources=tuple(_read_origin(source) for source in config.get("sources") or []),
            placement=config.get("placement"),
            metadata=_metadata(config, of_server=False),
        )


def changed_stream(stream: dict[str, Any], wanted: BucketConfig) -> dict[str, Any]:
    """Return the configuration of a bucket's stream once the bucket is as wanted.

    Other clients make streams that say more than a `BucketConfig` can, so only what differs between the bucket that is
    there and the wanted one is changed.
    """
    now, then = BucketConfig.of(stream).stream(), wanted.stream()
    changed = {key: value for key, value in stream.items() if key in then or key not in now}
    changed |= {key: value for key, value in then.items() if value != now.get(key)}
    # What servers note about a stream must stay as it is.
    if metadata := _metadata(stream, of_server=True) | wanted.metadata:
        changed["metadata"] = metadata
    window = stream.get("duplicate_window", now["duplicate_window"])
    if window != now["duplicate_window"]:
        # A user chose it; a server refuses one that is longer than values are kept.
        changed["duplicate_window"] = min(window, then["max_age"] or window)
    if (sources := then.get("sources")) and sources != now.get("sources"):
        known = list(zip(now.get("sources", []), stream.get("sources") or [], strict=True))
        changed["sources"] = [next((real for ours, real in known if ours == source), source) for source in sources]
    return changed


def _history(stream: dict[str, Any]) -> int:
    """Return the revisions that a bucket keeps; a stream that another client has made may keep more, or all."""
    count = int(stream.get("max_msgs_per_subject", 0))
    return min(count, HISTORY_MAX) if count > 0 else HISTORY_MAX


def _metadata(stream: dict[str, Any], *, of_server: bool) -> dict[str, str]:
    """Return what the server notes about a stream, or what others do."""
    found = (stream.get("metadata") or {}).items()
    return {key: value for key, value in found if key.startswith(SERVER_METADATA) == of_server}


def _origin(origin: Origin, bucket: str) -> dict[str, Any]:
    """Return the origin of a stream's copies, whose keys get the name of the bucket they are copied to."""
    patterns = origin.keys or (">",)
    made: dict[str, Any] = {"name": STREAM_PREFIX + origin.bucket}
    renames = bucket != origin.bucket
    if renames or origin.keys:
        made["subject_transforms"] = [
            {
                "src": f"{SUBJECT_PREFIX}{origin.bucket}.{pattern}",
                "dest": f"{SUBJECT_PREFIX}{bucket}.{_same_tokens(pattern)}" if renames else "",
            }
            for pattern in patterns
        ]
    if origin.api_prefix:
        made["external"] = {"api": origin.api_prefix, "deliver": origin.deliver_prefix}
    return made


def _same_tokens(pattern: str) -> str:
    """Return the destination that keeps the tokens of a pattern: the wildcards by their number."""
    number, tokens = 0, []
    for token in pattern.split("."):
        if token == "*":  # noqa: S105
            number += 1
            tokens.append(f"{{{{wildcard({number})}}}}")
        else:
            tokens.append(token)
    return ".".join(tokens)


def _read_origin(origin: dict[str, Any]) -> Origin:
    bucket = str(origin.get("name", "")).removeprefix(STREAM_PREFIX)
    prefix = f"{SUBJECT_PREFIX}{bucket}."
    sources = [str(each.get("src", "")) for each in origin.get("subject_transforms") or []]
    sources += [origin["filter_subject"]] if origin.get("filter_subject") else []
    keys = tuple(source.removeprefix(prefix) for source in sources)
    external = origin.get("external") or {}
    return Origin(
        bucket=bucket,
        keys=() if keys == (">",) else keys,
        api_prefix=external.get("api", ""),
        deliver_prefix=external.get("deliver", ""),
    )


def _read_republish(republish: dict[str, Any], bucket: str) -> Republish:
    source = republish.get("src", "")
    return Republish(
        destination=republish.get("dest", ""),
        source="" if source == f"{SUBJECT_PREFIX}{bucket}.>" else source,
        headers_only=bool(republish.get("headers_only")),
    )
