"""Metrics of adapters, in Prometheus' text format, under the original's names; ours begin with `jetlake_adapter_`.

Each worker has counters of its own, which only its thread changes; reading them needs no lock.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from jetlake.adapters.adapter import Adapter

__all__ = ["Counters", "render"]


class Counters(msgspec.Struct, kw_only=True):
    """What one worker has done. For an ingest worker `messages` are received, for a stream worker acknowledged."""

    name: str
    role: str
    messages: int = 0
    bytes: int = 0
    errors: int = 0
    busy_s: float = 0.0
    # Of ingest workers: no room in the queue in time.
    dropped: int = 0
    # What could not be parsed, or not be published.
    dead_letters: int = 0
    # Of stream workers: published again, found to be there already, given up.
    retried: int = 0
    duplicates: int = 0
    failed: int = 0
    connections: int = 0


COUNTERS = (
    ("choria_adapter_received_msgs", "messages", "input", "Messages received."),
    ("choria_adapter_published_msgs", "messages", "output", "Messages that a stream has acknowledged."),
    ("choria_adapter_errors", "errors", "", "Messages that could not be parsed or published, and failed attempts."),
    ("choria_adapter_bytes", "bytes", "", "Bytes received, and bytes of documents published."),
    ("jetlake_adapter_dropped_msgs", "dropped", "input", "Messages dropped because the queue stayed full."),
    ("jetlake_adapter_dead_letters", "dead_letters", "", "Messages that became dead letters."),
    ("jetlake_adapter_retried_msgs", "retried", "output", "Publications sent again."),
    ("jetlake_adapter_duplicate_msgs", "duplicates", "output", "Publications that the stream already had."),
    ("jetlake_adapter_failed_msgs", "failed", "output", "Publications given up."),
    ("jetlake_adapter_connections", "connections", "", "Connections made, the first one included."),
)
"""Name, field, role (empty for both) and help of each counter."""


def render(adapters: Iterable["Adapter"], identity: str) -> str:
    """Return the page."""
    listed = list(adapters)
    workers = [counters for adapter in listed for counters in adapter.counters]
    lines: list[str] = []
    for name, field, role, text in COUNTERS:
        lines += [f"# HELP {name} {text}", f"# TYPE {name} counter"]
        lines += [
            f"{name}{_labels(each, identity)} {getattr(each, field)}" for each in workers if role in ("", each.role)
        ]
    lines += ["# HELP choria_adapter_time Time spent on messages.", "# TYPE choria_adapter_time summary"]
    for each in workers:
        lines.append(f"choria_adapter_time_sum{_labels(each, identity)} {each.busy_s:.6f}")
        lines.append(f"choria_adapter_time_count{_labels(each, identity)} {each.messages}")
    lines += _gauges(listed, identity)
    return "\n".join(lines) + "\n"


def _gauges(adapters: list["Adapter"], identity: str) -> Iterator[str]:
    for name, text, value in (
        ("choria_adapter_queue_length", "Messages waiting.", lambda adapter: len(adapter.queue)),
        ("choria_adapter_queue_capacity", "Messages that may wait.", lambda adapter: adapter.queue.messages_max),
        ("jetlake_adapter_queue_bytes", "Memory of what waits.", lambda adapter: adapter.queue.memory_bytes),
        ("jetlake_adapter_unacknowledged_msgs", "Published, no answer yet.", lambda adapter: adapter.in_flight),
    ):
        yield f"# HELP {name} {text}"
        yield f"# TYPE {name} gauge"
        for adapter in adapters:
            yield f'{name}{{name="{adapter.name}",identity="{_escaped(identity)}"}} {value(adapter)}'


def _labels(counters: Counters, identity: str) -> str:
    return f'{{name="{counters.name}",role="{counters.role}",identity="{_escaped(identity)}"}}'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
