"""The configuration of a stream in the words of each dialect, to and from today's.

| today           | 2020             | 2019              |
|-----------------|------------------|-------------------|
| `max_consumers` | the same         | `max_observables` |
| `max_msg_size`  | the same         | there is none     |
| words           | the same         | numbers; both are read in both dialects |
| metadata        | `template_owner` | there is none     |

Invariant: what a dialect has no word for stays as it is when a stream is updated.
"""

from typing import Any

from jetlake.management.streams.config import StreamConfig
from jetlake.management.streams.dialect import DIALECT_KEY, OF_2019, TEMPLATE_KEY, template_of
from jetlake.management.wire.error_codes import ErrorCode, RequestError

_KEYS = (
    "name",
    "subjects",
    "retention",
    "max_consumers",
    "max_msgs",
    "max_bytes",
    "max_age",
    "max_msg_size",
    "storage",
    "num_replicas",
    "no_ack",
)
_LEFT_OUT_WHEN_EMPTY = ("subjects", "max_msg_size", "no_ack")
_RETENTIONS = ("limits", "interest", "workqueue")
_STORAGES = {0: "memory", 1: "file", 22: "file", 33: "memory"}
"""The numbers of both years."""


def to_today(config: dict[str, Any], dialect: str, template: str = "") -> dict[str, Any]:
    """Return the configuration as today's API reads it, or raise `RequestError`."""
    if "max_observables" in config:
        config = {**config, "max_consumers": config["max_observables"]}
    wanted = {key: config[key] for key in _KEYS if config.get(key) is not None}
    retention, storage = wanted.get("retention"), wanted.get("storage")
    if isinstance(retention, int):
        wanted["retention"] = _word(_RETENTIONS[retention] if 0 <= retention < len(_RETENTIONS) else None)
    if isinstance(storage, int):
        wanted["storage"] = _word(_STORAGES.get(storage))
    if template:
        return {**wanted, "metadata": {DIALECT_KEY: dialect, TEMPLATE_KEY: template}}
    return {**wanted, "metadata": {DIALECT_KEY: dialect}}


def updated(current: StreamConfig, wanted: dict[str, Any]) -> dict[str, Any]:
    """Return today's configuration of a stream with what an old request says."""
    return {**current.to_json(), **wanted, "metadata": current.metadata or {}}


def from_today(config: StreamConfig, dialect: str) -> dict[str, Any]:
    """Return the configuration as a dialect writes it."""
    written: dict[str, Any] = {}
    for key in _KEYS:
        value = getattr(config, key)
        if key in _LEFT_OUT_WHEN_EMPTY and not value:
            continue
        written[key] = list(value) if isinstance(value, tuple) else value
    if template_of(config.metadata):
        written["template_owner"] = template_of(config.metadata)
    if dialect != OF_2019:
        return written
    written.pop("max_msg_size", None)
    retention = _RETENTIONS.index(config.retention)
    return {("max_observables" if key == "max_consumers" else key): value for key, value in written.items()} | {
        "retention": retention
    }


def _word(word: str | None) -> str:
    if word is None:
        raise RequestError(ErrorCode.BAD_REQUEST)
    return word
