"""`SimulatedNode`: one node of a fleet: what it is, what runs on it, and what it says about itself.

Its state changes only by the methods here; the account of the simulation is made from it.
"""

from random import Random
from typing import Any

import msgspec

__all__ = ["CHECKS", "SimulatedCheck", "SimulatedNode", "SimulatedSession", "make_node"]

ROLES = ("web", "db", "cache", "queue", "build")
SITES = ("ldn", "fra", "nyc", "sgp")
FAMILIES = ("RedHat", "Debian", "Suse")
CHECKS = ("load", "disk", "ntp")
STATUSES = ("OK", "WARNING", "CRITICAL", "UNKNOWN")
VERSIONS = ("0.23.0", "0.24.0", "0.25.0", "0.26.0")

FLAPPING_SHARE = 0.02
"""Of all checks: they change their state all the time."""


class SimulatedCheck(msgspec.Struct):
    """One check on a node. `status` is empty before its first run."""

    name: str
    status: str = ""
    runs: int = 0
    changes: int = 0
    since_s: int = 0
    is_flapping: bool = False


class SimulatedSession(msgspec.Struct):
    """One time that a node was up; `end` is how it ended, empty while it lasts."""

    started_s: int
    ended_s: int = 0
    end: str = ""


class SimulatedNode(msgspec.Struct, kw_only=True):
    """One node."""

    identity: str
    role: str
    site: str
    family: str
    version: str
    # Installed while it was down; the next start says so.
    next_version: str = ""
    memory_bytes: int
    # What is up is in the last session.
    is_up: bool = False
    is_gone: bool = False
    sessions: list[SimulatedSession] = []
    packages: int = 0
    mtime_s: int = 0
    registrations: int = 0
    # Of the last registration: when it was, and what it said.
    registered_s: int = 0
    registered_mtime_s: int = 0
    registered_inventory: dict[str, Any] = {}
    # The mtime of the last registration of this run of the node; 0 before the first.
    published_mtime_s: int = 0
    checks: dict[str, SimulatedCheck] = {}
    machine_id: str = ""
    machine_state: str = "IDLE"
    # Where the last transition led to, whatever has happened to the node since.
    announced_state: str = ""
    transitions: int = 0
    runs_failed: int = 0
    # Of the governor; 0 = it holds none.
    slot: int = 0
    # Raised by every start and end: what was planned for an earlier run of the node does not happen.
    generation: int = 0

    def start(self, now_s: int, machine_id: str) -> None:
        assert not self.is_up, "a node starts once"
        self.is_up = True
        self.version = self.next_version or self.version
        self.generation += 1
        self.machine_id = machine_id
        self.machine_state = "IDLE"
        self.published_mtime_s = 0
        self.sessions.append(SimulatedSession(now_s))

    def end(self, now_s: int, how: str) -> None:
        assert self.is_up, "what is down does not end"
        self.is_up = False
        self.generation += 1
        self.sessions[-1].ended_s = now_s
        self.sessions[-1].end = how

    def inventory(self) -> dict[str, Any]:
        """Return what the node writes into its inventory file."""
        return {
            "fqdn": self.identity,
            "role": self.role,
            "site": self.site,
            "os": {"family": self.family, "packages": self.packages},
            "memory": {"total_bytes": self.memory_bytes},
            "choria": {"version": self.version},
        }


def make_node(number: int, random: Random, now_s: int) -> SimulatedNode:
    """Return a node that has not started yet."""
    role, site = random.choice(ROLES), random.choice(SITES)
    return SimulatedNode(
        identity=f"{role}{number}.{site}.example.net",
        role=role,
        site=site,
        family=random.choice(FAMILIES),
        version=random.choice(VERSIONS[:2]),
        memory_bytes=random.choice((4, 8, 16, 64)) * 1024**3,
        sessions=[],
        packages=random.randrange(300, 2_000),
        mtime_s=now_s - random.randrange(1, 30 * 86_400),
        checks={name: SimulatedCheck(name, is_flapping=random.random() < FLAPPING_SHARE) for name in CHECKS},
    )
