"""The description of a consumer in answers: its configuration, since when it is there, and its state.

The order of the keys is nats-server's. A list shows the configuration as it is kept, every other answer with the
versions of the server in the metadata.
"""

from typing import Any

from jetlake.management.consumers.config import ConsumerConfig
from jetlake.management.consumers.required_level import with_server_versions
from jetlake.management.consumers.state import ConsumerState, SequencePair
from jetlake.management.consumers.stream_consumers import Consumer
from jetlake.management.wire.replies import ZERO_TIME
from jetlake.shared.go_text import time_text

DURATION_NS_MAX = 2**63 - 1
"""The longest duration that an answer can hold."""


def describe_consumer(
    stream: str, consumer: Consumer, state: ConsumerState, now_ns: int, *, shows_versions: bool = True
) -> dict[str, Any]:
    """Return the description of a consumer as what `write_json` takes."""
    config = with_server_versions(consumer.config) if shows_versions else consumer.config
    described: dict[str, Any] = {
        "stream_name": stream,
        "name": consumer.name,
        "created": consumer.created,
        "config": config.to_json(),
        "delivered": _describe_position(state.delivered),
        "ack_floor": _describe_position(state.floor),
        "num_ack_pending": state.ack_pending,
        # What may be delivered once is never delivered again.
        "num_redelivered": 0 if config.max_deliver == 1 else state.redelivered,
        "num_waiting": state.waiting,
        "num_pending": state.pending,
    }
    if state.push_bound:
        described["push_bound"] = True
    remaining_ns = pause_remaining_ns(config, now_ns)
    if remaining_ns > 0:
        described |= {"paused": True, "pause_remaining": remaining_ns}
    described["ts"] = time_text(now_ns)
    if config.priority_groups:
        described["priority_groups"] = [_describe_group(config.priority_groups[0], state)]
    return described


def pause_remaining_ns(config: ConsumerConfig, now_ns: int) -> int:
    """Return for how long a consumer will still pause; 0 = it does not."""
    if config.pause_until is None:
        return 0
    return min(max(config.pause_until.unix_ns - now_ns, 0), DURATION_NS_MAX)


def _describe_position(position: SequencePair) -> dict[str, Any]:
    described: dict[str, Any] = {
        "consumer_seq": position.consumer_sequence,
        "stream_seq": position.stream_sequence,
    }
    if position.active_ns:
        described["last_active"] = time_text(position.active_ns)
    return described


def _describe_group(group: str, state: ConsumerState) -> dict[str, Any]:
    if state.pinned is None:
        return {"group": group, "pinned_ts": ZERO_TIME}
    return {"group": group, "pinned_client_id": state.pinned.id, "pinned_ts": time_text(state.pinned.since_ns)}
