"""Histories of one stream and its consumers, made by chance: what is published, fetched, acknowledged, changed, killed.

The same seed makes the same history. A step names what it is about by small numbers (`pick`), which the player reduces
to what is there, so that a history stays playable when steps are left out of it.

Left out are a few things that nats-server 2.15.1 does by race or by mistake, so that no two servers can agree on them.
Each is named here or in `consumer_playing`, and in docs/reference/differences.md where a user could notice:

- A consumer with a filter is never updated to one without: nats-server does not notice new messages afterwards.
- No restarts and no limits of the stream where a consumer delivers `last_per_subject`: nats-server forgets what was
  left of that.
- No consumers with `ack_policy` `all` where limits of the stream remove messages (see `consumer_playing`).
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]

TAILS = "abcd"
CONSUMERS = ("A", "B", "C")
PUSH = "P"

# Long enough that no message of a history waits so long for its acknowledgement.
ACK_WAIT_NS = 3_600_000_000_000

STEPS_MIN, STEPS_MAX = 12, 40

# Kills take seconds, so only some histories have one.
KILLED_PART = 0.15

ACKNOWLEDGEMENTS = {
    "+ACK": 10,
    "-NAK": 4,
    "-NAK later": 1,
    "-NAK soon": 1,
    "+TERM": 2,
    "+WPI": 1,
    "+NXT": 1,
}


@dataclass(frozen=True)
class Step:
    """One thing that happens: its kind, which is a method of the player, and what it is called with."""

    kind: str
    arguments: Json = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.kind}({', '.join(f'{key}={value!r}' for key, value in self.arguments.items())})"


@dataclass(frozen=True)
class History:
    seed: int
    stream: Json
    steps: tuple[Step, ...]

    def __str__(self) -> str:
        lines = [f"  {number:2} {step}" for number, step in enumerate(self.steps)]
        return "\n".join([f"history {self.seed}: {self.stream}", *lines])


class Maker:
    """Makes the history of a seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.retention = self.random.choice(["limits", "limits", "workqueue", "interest"])
        self.storage = self.random.choice(["file", "memory"])
        self.is_killed = self.storage == "file" and self.random.random() < KILLED_PART * 2
        self.filtered: set[str] = set()
        self.has_limits = self.random.random() < 0.35

    def history(self) -> History:
        count = self.random.randint(STEPS_MIN, STEPS_MAX)
        steps = [self.create(), *(self.step() for _ in range(count))]
        if self.is_killed:
            for _ in range(self.random.choice([1, 1, 2])):
                steps.insert(self.random.randint(2, len(steps)), Step("restart"))
        return History(self.seed, self.stream(), tuple(steps))

    def stream(self) -> Json:
        config: Json = {"retention": self.retention, "storage": self.storage, "allow_rollup_hdrs": True}
        if self.has_limits:
            config |= self.random.choice(
                [{"max_msgs": self.random.randint(3, 12)}, {"max_msgs_per_subject": self.random.randint(1, 4)}]
            )
        return config

    def step(self) -> Step:
        kinds = {
            self.publish: 22,
            self.fetch: 18,
            self.acknowledge: 24,
            self.create: 5,
            self.update: 5,
            self.reset: 3,
            self.delete_consumer: 1,
            self.delete_message: 4,
            self.purge: 2,
            self.roll_up: 1,
            self.leave_early: 3,
            self.listen: 2,
        }
        return self.random.choices(list(kinds), list(kinds.values()))[0]()

    def pick(self) -> int:
        return self.random.randrange(1000)

    def name(self) -> str:
        return self.random.choice(CONSUMERS)

    def publish(self) -> Step:
        return Step("publish", {"tails": "".join(self.random.choices(TAILS, k=self.random.randint(1, 6)))})

    def roll_up(self) -> Step:
        return Step("roll_up", {"tail": self.random.choice(TAILS), "what": self.random.choice(["sub", "all"])})

    def fetch(self) -> Step:
        return Step("fetch", {"name": self.name(), "count": self.random.choice([1, 1, 2, 3, 5, 20])})

    def acknowledge(self) -> Step:
        body = self.random.choices(list(ACKNOWLEDGEMENTS), list(ACKNOWLEDGEMENTS.values()))[0]
        name = self.random.choice([*CONSUMERS, PUSH])
        # Mostly one of the last that were delivered; sometimes any, which may be settled or forgotten.
        back = self.random.choice([self.random.randrange(4), self.random.randrange(4), self.pick()])
        return Step("acknowledge", {"name": name, "body": body, "back": back})

    def delete_message(self) -> Step:
        return Step("delete_message", {"pick": self.pick()})

    def purge(self) -> Step:
        request: Json = self.random.choice(
            [{}, {"filter": self.random.choice(TAILS)}, {"seq": self.pick()}, {"keep": self.random.randint(1, 4)}]
        )
        return Step("purge", {"request": request})

    def delete_consumer(self) -> Step:
        return Step("delete_consumer", {"name": self.name()})

    def reset(self) -> Step:
        return Step("reset", {"name": self.name(), "pick": self.random.choice([None, self.pick()])})

    def leave_early(self) -> Step:
        """A pull whose subscription ends in the middle, and what happens to the rest then."""
        then = self.random.choice(["", "", "delete", "purge", "acknowledge", *(["restart"] if self.is_killed else [])])
        heard = self.random.randint(1, 3)
        return Step("leave_early", {"name": self.name(), "heard": heard, "then": then, "pick": self.pick()})

    def listen(self) -> Step:
        """Somebody subscribes to what the push consumer delivers to, or unsubscribes."""
        return Step("listen", {"is_there": self.random.random() < 0.7})

    def create(self) -> Step:
        if self.random.random() < 0.12:
            return Step("create", {"name": PUSH, "config": {**self.config(PUSH), "deliver_subject": "to"}})
        name = self.name()
        return Step("create", {"name": name, "config": self.config(name)})

    def config(self, name: str) -> Json:
        policies = ["explicit"] * 7
        if self.retention != "workqueue":
            policies += ["none"] if self.has_limits else ["all", "all", "none"]
        config: Json = {"ack_policy": self.random.choice(policies), **self.filters(name), **self.limits(config_of={})}
        if config["ack_policy"] == "none":
            config.pop("max_ack_pending", None)
            config.pop("max_deliver", None)
        if self.retention != "workqueue" and self.random.random() < 0.35:
            config |= self.start(name)
        return config

    def start(self, name: str) -> Json:
        policies = ["new", "last", "by_start_sequence"]
        if not self.is_killed and not self.has_limits and name != PUSH:
            policies.append("last_per_subject")
        policy = self.random.choice(policies)
        config: Json = {"deliver_policy": policy}
        if policy == "by_start_sequence":
            config["opt_start_seq"] = self.random.randint(1, 20)
        if policy == "last_per_subject":
            config["filter_subject"] = "*"
        return config

    def filters(self, name: str) -> Json:
        """Filters as tails of subjects. Those of a work queue must not overlap, so most names keep to theirs."""
        own = {"A": "ad", "B": "b", "C": "c", PUSH: "d"}[name]
        tails = own if self.retention == "workqueue" and self.random.random() < 0.9 else TAILS
        count = self.random.choice([1, 1, 2])
        chosen = self.random.sample(tails, min(count, len(tails)))
        if self.random.random() < 0.3 and self.retention != "workqueue":
            return {"filter_subject": "*"}
        if self.random.random() < 0.2 and name not in self.filtered and self.retention != "workqueue":
            return {}
        self.filtered.add(name)
        return {"filter_subject": chosen[0]} if len(chosen) == 1 else {"filter_subjects": sorted(chosen)}

    def limits(self, config_of: Json) -> Json:
        config = dict(config_of)
        if self.random.random() < 0.2:
            config["max_ack_pending"] = self.random.randint(1, 5)
        if self.random.random() < 0.2:
            config["max_deliver"] = self.random.randint(1, 3)
        return config

    def update(self) -> Step:
        """Other filters or other limits; everything else stays."""
        name = self.name()
        if self.random.random() < 0.6:
            changes = self.filters(name) or {"filter_subject": "*"}
            changes = {"filter_subject": "", "filter_subjects": None, **changes}
        else:
            changes = self.limits({"description": f"{self.pick()}"})
        return Step("update", {"name": name, "changes": changes})
