"""The state of one node: checks, machines, sessions, leases and registrations.

Each part applies one event at a time and returns whether it was new. Counts include the events that were dropped from
the timeline and those still in it, so a late event changes a count as if it had come in time.
"""

import msgspec

from jetlake.spark.pipelines.fleet.timelines import Entry, Timeline

RESULTS = 16
"""Results of a check that tell whether it flaps."""

FLAPPING_CHANGES = 5
"""Changes among those from which on it does."""

LEASES_MAX = 32
"""Leases remembered of one node: those of crashed runs are never given back."""

NEVER_S = 2**62
"""Later than every event: the start of a session that there is not."""

STARTUP, SHUTDOWN = "+", "-"
"""How an entry about a session begins; the version of the node follows a startup."""


class CheckView(msgspec.Struct):
    """A check as it is now."""

    status: str = ""
    since_s: int = 0
    runs: int = 0
    changes: int = 0
    changed_bits: int = 0

    def advance(self, entry: Entry) -> bool:
        """Go on by one result; True when the status changed."""
        changed = bool(self.status) and entry[3] != self.status
        if entry[3] != self.status:
            self.since_s = entry[0]
        self.status = entry[3]
        self.runs += 1
        self.changes += changed
        self.changed_bits = (self.changed_bits << 1 | changed) & ((1 << RESULTS) - 1)
        return changed

    @property
    def recent_changes(self) -> int:
        return self.changed_bits.bit_count()

    @property
    def is_flapping(self) -> bool:
        return self.recent_changes >= FLAPPING_CHANGES


class NodeCheck(msgspec.Struct):
    """A check of a node: what is settled, and the results after that."""

    settled: CheckView
    timeline: Timeline
    told_s: int = -1
    """Changes up to here are in the table as they are."""

    highest_s: int = -1
    """Up to here changes were reported, right or not."""

    def add_result(self, at_s: int, sequence: int, event: int, status: str) -> bool:
        """Take one result; False when it was there or comes too late."""
        recent = self.timeline.recent
        in_order = not recent or at_s > recent[-1][0]
        if not self.timeline.add(at_s, sequence, event, status):
            return False
        if not in_order:
            # It may turn a non-change into a change, and a change into none.
            self.told_s = min(self.told_s, at_s - 1)
        return True

    def tell(self, lateness_s: int) -> tuple[CheckView, list[tuple[int, str, str, bool]]]:
        """Return the current check, and the unreported changes: when, from, to, and whether it is one.

        It is not one if it was reported before and a late result has disproved it. Old enough entries are settled.
        """
        news = []
        view = self.settled
        recent = self.timeline.recent
        last_s = recent[-1][0]
        ripe = len(self.timeline.ripe_entries(lateness_s))
        for number, entry in enumerate(recent):
            if number == ripe:
                view = msgspec.structs.replace(view)
            before = view.status
            if view.advance(entry):
                if entry[0] > self.told_s:
                    news.append((entry[0], before, entry[3], True))
            elif before and self.told_s < entry[0] <= self.highest_s:
                news.append((entry[0], before, entry[3], False))
        self.timeline.let_go(ripe)
        self.told_s = last_s
        self.highest_s = max(self.highest_s, last_s)
        return view, news


class NodeMachine(msgspec.Struct):
    """A machine of a node: its transitions, and the runs of its commands."""

    timeline: Timeline
    runs_timeline: Timeline
    state: str = ""
    since_s: int = 0
    transitions: int = 0
    runs: int = 0
    failed_runs: int = 0
    outcome: str = ""

    def apply_ripe(self, lateness_s: int) -> None:
        for entry in self.timeline.ripe(lateness_s):
            self.transitions += 1
            self.state, self.since_s = entry[3], entry[0]
        for entry in self.runs_timeline.ripe(lateness_s):
            self.runs += 1
            self.failed_runs += entry[3] == "error"
            self.outcome = entry[3]

    def view(self) -> tuple[str, int, int, int, int, str]:
        """Return state, since when, transitions, runs, failed runs and the last outcome."""
        recent, ran = self.timeline.recent, self.runs_timeline.recent
        state, since_s = (recent[-1][3], recent[-1][0]) if recent else (self.state, self.since_s)
        failed = self.failed_runs + sum(entry[3] == "error" for entry in ran)
        return (
            state,
            since_s,
            self.transitions + len(recent),
            self.runs + len(ran),
            failed,
            ran[-1][3] if ran else self.outcome,
        )


class NodeSession(msgspec.Struct):
    """One time that a node was up; `end` is shutdown, lost (it started again without one) or empty."""

    started_s: int
    version: str = ""
    ended_s: int = 0
    end: str = ""


class NodeLifecycle(msgspec.Struct):
    """When a node was up."""

    timeline: Timeline
    open: NodeSession | None = None
    """The session that was running when the oldest event of the timeline happened."""

    starts: int = 0
    lost: int = 0
    seen: dict[int, int] = {}
    """By the start of a session that may still be open, the last event in it."""

    newest_s: int = NEVER_S
    """The newest start among those."""

    def see(self, at_s: int) -> bool:
        """Note that the node said something; True when it is the last word of its session so far."""
        started_s = max((started_s for started_s in self.seen if started_s <= at_s), default=NEVER_S)
        if started_s == NEVER_S or at_s <= self.seen[started_s]:
            return False
        self.seen[started_s] = at_s
        return True

    def add_change(self, at_s: int, sequence: int, event: int, value: str) -> bool:
        """Take a startup or a shutdown; False when it was there or comes too late."""
        if not self.timeline.add(at_s, sequence, event, value):
            return False
        if value.startswith(STARTUP):
            self.seen[at_s] = max([at_s, *(seen_s for start_s, seen_s in self.seen.items() if start_s < at_s)])
            self.newest_s = max(self.seen)
        return True

    def next_start_s(self, at_s: int) -> int:
        """Return the first start after a moment that is still remembered; 0 when there is none."""
        starts = (entry[0] for entry in self.timeline.recent if entry[3].startswith(STARTUP) and entry[0] > at_s)
        return min(starts, default=0)

    def apply_ripe(self, lateness_s: int) -> None:
        for entry in self.timeline.ripe(lateness_s):
            ended, self.open = follow(self.open, entry, self.seen)
            self.starts += entry[3].startswith(STARTUP)
            if ended is not None:
                self.lost += ended.end == "lost"
                self.seen.pop(ended.started_s, None)
                self.newest_s = max(self.seen, default=NEVER_S)

    def view(self) -> tuple[list[NodeSession], int, int, bool]:
        """Return the sessions that may still change, starts, those lost, and whether the last word was a shutdown."""
        sessions: list[NodeSession] = []
        now = self.open
        starts, lost, down = self.starts, self.lost, False
        for entry in self.timeline.recent:
            ended, now = follow(now, entry, self.seen)
            starts += entry[3].startswith(STARTUP)
            down = entry[3] == SHUTDOWN
            if ended is not None:
                lost += ended.end == "lost"
                sessions.append(ended)
        if now is not None:
            sessions.append(now)
        return sessions, starts, lost, down


def follow(
    now: NodeSession | None, entry: Entry, seen: dict[int, int]
) -> tuple[NodeSession | None, NodeSession | None]:
    """Return the session that an event ends, if one, and the one that is open after it."""
    at_s, value = entry[0], entry[3]
    ended = None
    if now is not None:
        if value == SHUTDOWN:
            ended = msgspec.structs.replace(now, ended_s=at_s, end="shutdown")
        else:
            heard_s = min(seen.get(now.started_s, now.started_s), at_s)
            ended = msgspec.structs.replace(now, ended_s=heard_s, end="lost")
    return ended, NodeSession(at_s, value[1:]) if value.startswith(STARTUP) else None


class NodeLease(msgspec.Struct):
    """A slot of a governor that the node holds or held; 0 = not known, or not yet."""

    governor: str
    sequence: int
    entered_s: int = 0
    left_s: int = 0
    abandoned_s: int = 0


class FleetNode(msgspec.Struct):
    """Everything that is known about a node."""

    lifecycle: NodeLifecycle
    registered: Timeline
    refused: Timeline
    checks: dict[str, NodeCheck] = {}
    machines: dict[str, NodeMachine] = {}
    leases: list[NodeLease] = []
    version: str = ""
    version_s: int = -1
    last_s: int = 0
    stored_s: int = 0
    registrations: int = 0
    registered_s: int = 0
    inventory: int = 0
    """A digest of the newest inventory."""

    inventory_s: int = 0
    """When it was registered first."""

    refusals: int = 0

    def check(self, name: str) -> NodeCheck:
        found = self.checks.get(name)
        if found is None:
            found = self.checks[name] = NodeCheck(CheckView(), Timeline([]))
        return found

    def machine(self, name: str) -> NodeMachine:
        found = self.machines.get(name)
        if found is None:
            found = self.machines[name] = NodeMachine(Timeline([]), Timeline([]))
        return found

    def lease(self, governor: str, sequence: int) -> NodeLease:
        for lease in self.leases:
            if lease.sequence == sequence and lease.governor == governor:
                return lease
        self.leases.append(NodeLease(governor, sequence))
        del self.leases[:-LEASES_MAX]
        return self.leases[-1]


def new_node() -> FleetNode:
    return FleetNode(
        NodeLifecycle(Timeline([]), seen={}), Timeline([]), Timeline([]), checks={}, machines={}, leases=[]
    )
