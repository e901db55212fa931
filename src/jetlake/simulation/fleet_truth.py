"""`FleetTruth`: what a simulated fleet really did: counts, and the final state of every node.

It is kept by the simulation while it decides, and never read from messages: a pipeline that is checked against it is
checked against something that does not share its code.
"""

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from jetlake.errors import ClientError, reason_of
from jetlake.simulation.node import SimulatedNode

__all__ = ["FleetTruth"]


class FleetTruth:
    """The account of one run."""

    def __init__(self, seed: int, start_s: int, end_s: int) -> None:
        self.seed = seed
        self.start_s = start_s
        self.end_s = end_s
        self.counts: Counter[str] = Counter()
        # Messages sent, those that were sent twice included.
        self.published = 0
        self._slots_max = 0
        self._entered: set[int] = set()
        self._abandoned: set[int] = set()
        self._nodes: list[SimulatedNode] = []

    def count(self, kind: str) -> None:
        self.counts[kind] += 1

    def note_slots(self, held: int) -> None:
        self._slots_max = max(self._slots_max, held)

    def note_enter(self, slot: int) -> None:
        self._entered.add(slot)

    def note_exit(self, slot: int) -> None:
        self._entered.remove(slot)

    def note_abandoned(self, slot: int) -> None:
        """A node crashed and kept its lease; it will never say that it left."""
        self._entered.remove(slot)
        self._abandoned.add(slot)

    def finish(self, nodes: list[SimulatedNode]) -> None:
        """Keep the nodes as they are at the end."""
        self._nodes = nodes

    @property
    def total(self) -> int:
        """Different messages."""
        return sum(self.counts.values())

    def as_json(self) -> dict[str, Any]:
        """Return the account as it is written down."""
        return {
            "seed": self.seed,
            "start_s": self.start_s,
            "end_s": self.end_s,
            "events": self.total,
            "published": self.published,
            "counts": dict(sorted(self.counts.items())),
            "governors": {
                "PUPPET": {
                    "held": sorted(self._entered),
                    "abandoned": sorted(self._abandoned),
                    "held_max": self._slots_max,
                }
            },
            "nodes": {node.identity: _facts(node) for node in self._nodes if node.sessions},
        }

    def write(self, path: Path) -> None:
        """Write the account to a file. Raises `ClientError`."""
        try:
            path.write_bytes(msgspec.json.format(msgspec.json.encode(self.as_json()), indent=1) + b"\n")
        except OSError as error:
            raise ClientError(f"cannot write {path}: {reason_of(error)}") from error


def _facts(node: SimulatedNode) -> dict[str, Any]:
    last = node.sessions[-1]
    return {
        "state": "up" if node.is_up else {"shutdown": "down", "crash": "crashed", "departure": "gone"}[last.end],
        "version": node.version,
        "starts": len(node.sessions),
        "sessions": [
            {"started_s": session.started_s, "ended_s": session.ended_s, "end": session.end}
            for session in node.sessions
        ],
        "registrations": node.registrations,
        "registered_s": node.registered_s,
        "mtime_s": node.registered_mtime_s,
        "inventory": node.registered_inventory,
        "machine": {
            "id": node.machine_id,
            "state": node.announced_state,
            "transitions": node.transitions,
            "runs_failed": node.runs_failed,
        },
        "checks": {
            check.name: {"status": check.status, "runs": check.runs, "changes": check.changes, "since_s": check.since_s}
            for check in node.checks.values()
            if check.runs
        },
    }
