"""`Fleet`: nodes that register, start, stop, crash, run machines and checks, in simulated time.

```python
fleet = Fleet(FleetOptions(nodes=10_000, seconds=600, seed=7, start_s=1_767_225_600))
for event in fleet.events():
    publish(event.subject, event.payload)
```

What happens is decided by one random number generator, in the order of simulated time: the same options give the same
events, byte by byte. Governor events are raw and all others CloudEvents, as the original sends them.

Invariant: events come in the order of their publication; `event.time_s` never decreases.
"""

import heapq
from collections.abc import Callable, Iterator
from random import Random
from typing import Any
from uuid import UUID

import msgspec

from jetlake.choria.envelopes import make_request
from jetlake.choria.events import encode, lifecycle_body, subject_of, transition_body, watcher_body
from jetlake.choria.registration import file_content
from jetlake.choria.times import rfc3339_s
from jetlake.errors import ConfigurationError
from jetlake.simulation.fleet_truth import FleetTruth
from jetlake.simulation.node import STATUSES, VERSIONS, SimulatedCheck, SimulatedNode, make_node

__all__ = ["Fleet", "FleetOptions", "SimulatedEvent"]

NODES_MAX = 1_000_000
"""Nodes that fit into memory, some kilobytes each."""

INVENTORY_FILE = "/etc/choria/inventory.json"
MACHINE, MACHINE_VERSION = "puppet", "1.0.0"
GOVERNOR = "PUPPET"
HOUR_S = 3600.0

HISTORY_MAX = 15
"""Earlier results in the state of a check, as the original keeps them."""

LEASE_S = 1_200
"""How long the lease of a node that crashed stays."""

FOREVER_S = 10**12
UPGRADE_SHARE = 0.3
"""Of restarts: a new version is installed."""

LATE_S_MAX = 30
"""How much later than its time a late event is published."""


class FleetOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What is simulated. Shares are between 0 and 1; rates are per node and hour."""

    nodes: int = 1_000
    seconds: int = 600
    seed: int = 1
    start_s: int = 0
    target: str = "choria.discovery"
    register_interval_s: int = 300
    check_interval_s: int = 60
    run_interval_s: int = 600
    alive_interval_s: int = 1_800
    governor_slots: int = 50
    restarts_per_hour: float = 0.5
    crashes_per_hour: float = 0.2
    departures_per_hour: float = 0.05
    arrivals_per_hour: float = 0.05
    changes_per_hour: float = 1.0
    late_share: float = 0.0
    duplicate_share: float = 0.0

    def __post_init__(self) -> None:
        for field, lowest, highest in (("nodes", 1, NODES_MAX), ("seconds", 1, 10**8), ("start_s", 0, 10**11)):
            if not lowest <= getattr(self, field) <= highest:
                raise ConfigurationError(f"{field} is {getattr(self, field)}: give {lowest:,} to {highest:,}")
        for field in (
            "register_interval_s",
            "check_interval_s",
            "run_interval_s",
            "alive_interval_s",
            "governor_slots",
        ):
            if getattr(self, field) < 1:
                raise ConfigurationError(f"{field} is {getattr(self, field)}: give at least 1")
        for field in ("late_share", "duplicate_share"):
            if not 0 <= getattr(self, field) <= 1:
                raise ConfigurationError(f"{field} is {getattr(self, field)}: give a share between 0 and 1")


class SimulatedEvent(msgspec.Struct, frozen=True, gc=False):
    """One message, to be published at a simulated time."""

    time_s: int
    subject: str
    payload: bytes


Action = Callable[[SimulatedNode, int], None]


class Fleet:
    """One run of a simulation; `truth` is complete when `events` has ended."""

    def __init__(self, options: FleetOptions) -> None:
        self.options = options
        self._random = Random(f"jetlake fleet {options.seed}")
        self._end_s = options.start_s + options.seconds
        # Leases of the governor, and when each expires.
        self._slots: dict[int, int] = {}
        # What will happen: time, a number that keeps the order, node, its generation, what.
        self._plan: list[tuple[int, int, int, int, str]] = []
        self._numbers = 0
        self._nodes: list[SimulatedNode] = []
        self._published: list[SimulatedEvent] = []
        self._late: list[tuple[int, int, SimulatedEvent]] = []
        self._slot_number = 0
        self.truth = FleetTruth(options.seed, options.start_s, self._end_s)
        self._actions: dict[str, Action] = {
            "start": self._start,
            "register": self._register,
            "alive": self._alive,
            "check": self._check,
            "change": self._change,
            "run": self._begin_run,
            "run_end": self._end_run,
            "restart": self._restart,
            "crash": self._crash,
            "depart": self._depart,
        }

    def events(self) -> Iterator[SimulatedEvent]:
        """Yield everything that is published, in order."""
        options = self.options
        for _ in range(options.nodes):
            # A fleet is there when one begins to look; it comes up within a minute.
            self._add_node(options.start_s + self._random.randrange(min(60, options.seconds)))
        self._plan_arrivals()
        while self._plan:
            now_s, _, index, generation, what = heapq.heappop(self._plan)
            if now_s >= self._end_s:
                break
            node = self._nodes[index]
            if node.generation == generation and not node.is_gone:
                self._actions[what](node, now_s)
            yield from self._take_published(now_s)
        for _, _, event in sorted(self._late):
            yield event
        self._late.clear()
        self.truth.finish(self._nodes)

    # Planning

    def _add_node(self, start_s: int) -> None:
        self._nodes.append(make_node(len(self._nodes) + 1, self._random, self.options.start_s))
        self._schedule(len(self._nodes) - 1, start_s, "start")

    def _plan_arrivals(self) -> None:
        options = self.options
        expected = options.nodes * options.arrivals_per_hour * options.seconds / HOUR_S
        for _ in range(int(expected + self._random.random())):
            self._add_node(options.start_s + self._random.randrange(options.seconds))

    def _schedule(self, index: int, time_s: int, what: str) -> None:
        self._numbers += 1
        heapq.heappush(self._plan, (time_s, self._numbers, index, self._nodes[index].generation, what))

    def _soon(self, node: SimulatedNode, after_s: float, what: str) -> None:
        self._schedule(self._index_of(node), self._now_s + max(1, round(after_s)), what)

    def _by_rate(self, node: SimulatedNode, per_hour: float, what: str) -> None:
        if per_hour > 0:
            self._soon(node, self._random.expovariate(per_hour / HOUR_S), what)

    def _index_of(self, node: SimulatedNode) -> int:
        return int(node.identity.partition(".")[0].lstrip("abcdefghijklmnopqrstuvwxyz")) - 1

    # What happens on a node

    def _start(self, node: SimulatedNode, now_s: int) -> None:
        self._now_s = now_s
        options = self.options
        node.start(now_s, self._uuid())
        self._tell(node, "startup", version=node.version)
        self._soon(node, self._random.uniform(1, options.register_interval_s), "register")
        self._soon(node, self._random.uniform(1, options.alive_interval_s), "alive")
        self._soon(node, self._random.uniform(1, options.run_interval_s), "run")
        for _ in node.checks:
            self._soon(node, self._random.uniform(1, options.check_interval_s), "check")
        self._by_rate(node, options.changes_per_hour, "change")
        self._by_rate(node, options.restarts_per_hour, "restart")
        self._by_rate(node, options.crashes_per_hour, "crash")
        self._by_rate(node, options.departures_per_hour, "depart")

    def _register(self, node: SimulatedNode, now_s: int) -> None:
        self._now_s = now_s
        body = file_content(
            path=INVENTORY_FILE,
            mtime_s=node.mtime_s,
            updated=0 < node.published_mtime_s < node.mtime_s,
            content=msgspec.json.encode(node.inventory()),
        )
        payload = make_request(body, sender=node.identity, request_id=self._uuid().replace("-", ""), time_s=now_s)
        node.registrations += 1
        node.registered_s = now_s
        node.registered_mtime_s = node.published_mtime_s = node.mtime_s
        node.registered_inventory = node.inventory()
        self._publish(self.options.target, payload, "registration")
        self._soon(node, self.options.register_interval_s, "register")

    def _alive(self, node: SimulatedNode, now_s: int) -> None:
        self._now_s = now_s
        self._tell(node, "alive", version=node.version)
        self._soon(node, self.options.alive_interval_s, "alive")

    def _change(self, node: SimulatedNode, now_s: int) -> None:
        """Install or remove a package: the inventory is written again."""
        self._now_s = now_s
        node.packages += self._random.choice((-1, 1, 2))
        node.mtime_s = now_s
        self._by_rate(node, self.options.changes_per_hour, "change")

    def _check(self, node: SimulatedNode, now_s: int) -> None:
        self._now_s = now_s
        check = min(node.checks.values(), key=lambda each: (each.runs, each.name))
        status = self._next_status(check)
        if status != check.status:
            check.changes += check.runs > 0
            check.since_s = now_s
        check.status = status
        check.runs += 1
        value = round(self._random.uniform(0, 100), 2)
        self._tell_watcher(
            node,
            "nagios",
            f"check_{check.name}",
            plugin=f"check_{check.name} -w 80 -c 90",
            status=status,
            status_code=STATUSES.index(status),
            output=f"{check.name} is {value}",
            check_time=now_s,
            perfdata=[{"label": check.name, "value": value, "unit": "%"}],
            runtime=round(self._random.uniform(0.01, 2), 3),
            history=[{"execute": rfc3339_s(now_s), "status": STATUSES.index(status)}][:HISTORY_MAX],
            annotations={},
        )
        self._soon(node, self.options.check_interval_s, "check")

    def _next_status(self, check: SimulatedCheck) -> str:
        if check.is_flapping:
            return "CRITICAL" if check.status == "OK" else "OK"
        if not check.status:
            return "OK" if self._random.random() < 0.95 else "WARNING"
        if self._random.random() >= (0.02 if check.status == "OK" else 0.3):
            return check.status
        return self._random.choice(STATUSES) if check.status == "OK" else "OK"

    def _begin_run(self, node: SimulatedNode, now_s: int) -> None:
        """Run configuration management, if the governor has a slot."""
        self._now_s = now_s
        for slot in [slot for slot, expires_s in self._slots.items() if expires_s <= now_s]:
            del self._slots[slot]
        if len(self._slots) >= self.options.governor_slots:
            self._tell_governor(node, "timeouts", 0)
            self._soon(node, self.options.run_interval_s, "run")
            return
        self._slot_number += 1
        node.slot = self._slot_number
        self._slots[node.slot] = FOREVER_S
        self.truth.note_slots(len(self._slots))
        self.truth.note_enter(node.slot)
        self._tell_governor(node, "enter", node.slot)
        self._transition(node, "run", "RUNNING")
        self._soon(node, self._random.uniform(2, 60), "run_end")

    def _end_run(self, node: SimulatedNode, now_s: int) -> None:
        self._now_s = now_s
        failed = self._random.random() < 0.05
        outcome = "error" if failed else "success"
        self._tell_watcher(
            node,
            "exec",
            "run_puppet",
            command="puppet agent --onetime",
            previous_outcome=outcome,
            previous_run_time=self._random.randrange(10**9, 60 * 10**9),
        )
        node.runs_failed += failed
        self._transition(node, "fail" if failed else "success", "FAILED" if failed else "IDLE")
        self._release(node)
        self._soon(node, self.options.run_interval_s * self._random.uniform(0.8, 1.2), "run")

    def _restart(self, node: SimulatedNode, now_s: int) -> None:
        self._now_s = now_s
        if self._random.random() < UPGRADE_SHARE and node.version != VERSIONS[-1]:
            node.next_version = VERSIONS[VERSIONS.index(node.version) + 1]
            self._tell(node, "upgraded", version=node.version, new_version=node.next_version)
        self._release(node)
        self._tell(node, "shutdown")
        node.end(now_s, "shutdown")
        self._soon(node, self._random.uniform(2, 120), "start")

    def _crash(self, node: SimulatedNode, now_s: int) -> None:
        """Crash without a message; an observer finds out by the silence, or by the next start."""
        self._now_s = now_s
        if node.slot:
            # Its lease stays until it expires, and nobody says when that is.
            self._slots[node.slot] = now_s + LEASE_S
            self.truth.note_abandoned(node.slot)
            node.slot = 0
        node.end(now_s, "crash")
        self._soon(node, self._random.uniform(60, 900), "start")

    def _depart(self, node: SimulatedNode, now_s: int) -> None:
        self._now_s = now_s
        self._release(node)
        self._tell(node, "shutdown")
        node.end(now_s, "departure")
        node.is_gone = True

    # What is said about it

    def _release(self, node: SimulatedNode) -> None:
        if node.slot:
            self._slots.pop(node.slot, None)
            self.truth.note_exit(node.slot)
            self._tell_governor(node, "exit", node.slot)
            node.slot = 0

    def _transition(self, node: SimulatedNode, name: str, to_state: str) -> None:
        body = transition_body(**self._machine(node), transition=name, from_state=node.machine_state, to_state=to_state)
        node.machine_state = node.announced_state = to_state
        node.transitions += 1
        self._publish_event(body, "transition")

    def _tell_watcher(self, node: SimulatedNode, kind: str, name: str, **fields: Any) -> None:
        self._publish_event(watcher_body(kind, **self._machine(node), name=name, **fields), f"watcher.{kind}")

    def _machine(self, node: SimulatedNode) -> dict[str, Any]:
        return {
            "identity": node.identity,
            "machine": MACHINE,
            "version": MACHINE_VERSION,
            "machine_id": node.machine_id,
            "timestamp_s": self._now_s,
        }

    def _tell(self, node: SimulatedNode, kind: str, **fields: Any) -> None:
        body = lifecycle_body(
            kind,
            identity=node.identity,
            component="server",
            event_id=self._uuid(),
            timestamp_s=self._now_s,
            **fields,
        )
        self._publish_event(body, kind)

    def _tell_governor(self, node: SimulatedNode, event_type: str, sequence: int) -> None:
        body = lifecycle_body(
            "governor",
            identity=node.identity,
            component=MACHINE,
            event_id=self._uuid(),
            timestamp_s=self._now_s,
            governor=GOVERNOR,
            sequence=sequence,
            event_type=event_type,
        )
        self._publish(subject_of(body), encode(body, raw=True), f"governor.{event_type}")

    def _publish_event(self, body: dict[str, Any], kind: str) -> None:
        self._publish(subject_of(body), encode(body, event_id=self._uuid()), kind)

    def _publish(self, subject: str, payload: bytes, kind: str) -> None:
        """Publish a message now, or later, or twice; it is counted once."""
        self.truth.count(kind)
        event = SimulatedEvent(self._now_s, subject, payload)
        options = self.options
        for again in range(2):
            if again and self._random.random() >= options.duplicate_share:
                return
            self.truth.published += 1
            if options.late_share and self._random.random() < options.late_share:
                due_s = self._now_s + self._random.randint(1, LATE_S_MAX)
                self._numbers += 1
                heapq.heappush(self._late, (due_s, self._numbers, SimulatedEvent(due_s, subject, payload)))
            else:
                self._published.append(event)

    def _take_published(self, now_s: int) -> Iterator[SimulatedEvent]:
        while self._late and self._late[0][0] <= now_s:
            yield heapq.heappop(self._late)[2]
        yield from self._published
        self._published.clear()

    def _uuid(self) -> str:
        return str(UUID(int=self._random.getrandbits(128), version=4))
