"""A stream as a person reads it: its configuration and its state, in sections."""

from typing import Any

from jetlake.presentation.cells import Bytes, Cell, Nanoseconds, as_dict
from jetlake.presentation.timestamps import shown_timestamp

UNLIMITED = "unlimited"


def limit(value: Any) -> Cell:
    """Return a limit for a person: 0 and less mean no limit."""
    return value if isinstance(value, int) and value > 0 else UNLIMITED


def config_facts(config: dict[str, Any]) -> dict[str, dict[str, Cell]]:
    """Return the sections of a stream's configuration."""
    return {
        "": {
            "description": config.get("description"),
            "subjects": ", ".join(config.get("subjects") or []) or None,
            "mirror of": as_dict(config.get("mirror")).get("name"),
            "sources": ", ".join(str(source.get("name")) for source in config.get("sources") or []) or None,
            "storage": config.get("storage"),
            "compression": _unless(config.get("compression"), "none"),
            "replicas": config.get("num_replicas"),
        },
        "Options": {
            "retention": config.get("retention"),
            "discard": config.get("discard", "old") + (" per subject" if config.get("discard_new_per_subject") else ""),
            "duplicate window": Nanoseconds(config.get("duplicate_window", 0)),
            "acknowledges": not config.get("no_ack", False),
            "direct get": bool(config.get("allow_direct")),
            "mirror direct get": config.get("mirror_direct") or None,
            "rollups": config.get("allow_rollup_hdrs") or None,
            "atomic batches": config.get("allow_atomic") or None,
            "fast batches": config.get("allow_batched") or None,
            "counters": config.get("allow_msg_counter") or None,
            "time to live": config.get("allow_msg_ttl") or None,
            "schedules": config.get("allow_msg_schedules") or None,
            "deletes denied": config.get("deny_delete") or None,
            "purges denied": config.get("deny_purge") or None,
            "sealed": config.get("sealed") or None,
            "subject transform": _arrow(config.get("subject_transform")),
            "republished": _arrow(config.get("republish")),
        },
        "Limits": {
            "max messages": limit(config.get("max_msgs")),
            "max messages per subject": limit(config.get("max_msgs_per_subject")),
            "max bytes": _limit_of(Bytes, config.get("max_bytes")),
            "max age": _limit_of(Nanoseconds, config.get("max_age")),
            "max message size": _limit_of(Bytes, config.get("max_msg_size")),
            "max consumers": limit(config.get("max_consumers")),
        },
        "Metadata": {key: value for key, value in as_dict(config.get("metadata")).items() if key[:1] != "_"},
    }


def state_facts(info: dict[str, Any]) -> dict[str, dict[str, Cell]]:
    """Return the section about what a stream holds."""
    state = info["state"]
    return {
        "State": {
            "messages": state["messages"],
            "size": Bytes(state["bytes"]),
            "first sequence": state["first_seq"],
            "first time": shown_timestamp(state.get("first_ts")),
            "last sequence": state["last_seq"],
            "last time": shown_timestamp(state.get("last_ts")),
            "deleted messages": state.get("num_deleted") or None,
            "subjects held": state.get("num_subjects"),
            "consumers": state.get("consumer_count", 0),
        },
        "Origin": _origin(info),
    }


def _origin(info: dict[str, Any]) -> dict[str, Cell]:
    facts: dict[str, Cell] = {}
    for source in [info["mirror"]] if info.get("mirror") else info.get("sources") or []:
        active = source.get("active", -1)
        seen = "never" if active < 0 else f"{Nanoseconds(active) // 1_000_000_000:,} s ago"
        problem = as_dict(source.get("error")).get("description", "")
        facts[str(source.get("name"))] = f"{source.get('lag', 0):,} behind, heard {seen}" + (
            f": {problem}" if problem else ""
        )
    return facts


def _limit_of(kind: type[int], value: Any) -> Cell:
    return kind(value) if isinstance(value, int) and value > 0 else UNLIMITED


def _unless(value: Any, usual: str) -> Cell:
    return None if value in (None, "", usual) else str(value)


def _arrow(value: Any) -> Cell:
    change = as_dict(value)
    return f"{change.get('src') or '>'} → {change.get('dest', '')}" if change else None
