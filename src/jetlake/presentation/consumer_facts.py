"""A consumer as a person reads it: its configuration and its state, in sections."""

from typing import Any

from jetlake.presentation.cells import Cell, Nanoseconds, as_dict
from jetlake.presentation.quantities import shown_duration
from jetlake.presentation.timestamps import shown_timestamp


def consumer_facts(info: dict[str, Any]) -> dict[str, dict[str, Cell]]:
    """Return the sections of a consumer's description."""
    config = info["config"]
    return {
        "Configuration": {
            "description": config.get("description"),
            "mode": mode(config),
            "target": config.get("deliver_subject"),
            "group": config.get("deliver_group"),
            "begins": _begins(config),
            "filter": filters(config) or None,
            "acknowledgement": config.get("ack_policy"),
            "ack wait": Nanoseconds(config["ack_wait"]) if config.get("ack_wait") else None,
            "backoff": ", ".join(shown_duration(step) for step in config.get("backoff") or []) or None,
            "deliveries at most": config["max_deliver"] if config.get("max_deliver", -1) > 0 else None,
            "replay": config.get("replay_policy"),
            "headers only": config.get("headers_only") or None,
            "rate limit in bits": config.get("rate_limit_bps") or None,
            "sampled": f"{config['sample_freq']} %" if config.get("sample_freq") else None,
            "flow control": config.get("flow_control") or None,
            "heartbeat": Nanoseconds(config["idle_heartbeat"]) if config.get("idle_heartbeat") else None,
            "inactive at most": Nanoseconds(config["inactive_threshold"]) if config.get("inactive_threshold") else None,
            "priority": config.get("priority_policy"),
            "groups": ", ".join(config.get("priority_groups") or []) or None,
            "in memory": config.get("mem_storage") or None,
        },
        "Metadata": {key: value for key, value in as_dict(config.get("metadata")).items() if key[:1] != "_"},
        "State": {
            "last delivered": _position(info.get("delivered")),
            "acknowledged up to": _position(info.get("ack_floor")),
            "outstanding": _of(info.get("num_ack_pending", 0), config.get("max_ack_pending")),
            "redelivered": info.get("num_redelivered", 0),
            "unprocessed": info.get("num_pending", 0),
            "waiting requests": _of(info.get("num_waiting", 0), config.get("max_waiting"))
            if not config.get("deliver_subject")
            else None,
            "active subscriber": bool(info.get("push_bound")) if config.get("deliver_subject") else None,
            "paused until": shown_timestamp(config.get("pause_until")) if info.get("paused") else None,
        },
    }


def mode(config: dict[str, Any]) -> str:
    """Return how messages leave a consumer."""
    return "push" if config.get("deliver_subject") else "pull"


def filters(config: dict[str, Any]) -> str:
    """Return the subjects a consumer is limited to."""
    return ", ".join(
        config.get("filter_subjects") or ([config["filter_subject"]] if config.get("filter_subject") else [])
    )


def _begins(config: dict[str, Any]) -> str:
    policy = str(config.get("deliver_policy", "all"))
    if policy == "by_start_sequence":
        return f"at sequence {config.get('opt_start_seq', 0):,}"
    if policy == "by_start_time":
        return f"at {config.get('opt_start_time')}"
    return policy.replace("_", " ")


def _position(value: Any) -> str:
    position = as_dict(value)
    return f"stream {position.get('stream_seq', 0):,}, consumer {position.get('consumer_seq', 0):,}"


def _of(count: int, most: Any) -> str:
    return f"{count:,} of at most {most:,}" if isinstance(most, int) and most > 0 else f"{count:,}"
