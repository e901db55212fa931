"""Permissions with queue groups (`subscribe: "subject queue"`), for users by chance, against the rules in plain words.

A pattern of a subject may be followed by a pattern of queue groups. Of the rules that allow all of a subscription:
without a group one must name none; with a group, those that name groups decide if there are any. A rule that denies and
names groups is about those groups only. What is denied of a wider subscription is kept back.

Two things are left out there and have tests of their own, because the servers differ: nats-server lets `*` of a rule
stand for the final `>` of a subscription, and takes a group that is named like a pattern for one.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from tests.compatibility.server_process import ServerProcess
from tests.compatibility.wire import RawClient

USERS = 25

PATTERNS = ("foo", "foo.bar", "foo.*", "foo.>", "*", "*.bar", ">", "bar")
GROUP_PATTERNS = ("", "", "", "q", "q.a", "q.*", "*", "q.>", ">", "r")
SUBSCRIPTIONS = ("foo", "foo.bar", "foo.x", "foo.*", "foo.>", "*", "*.bar", ">", "bar")
GROUPS = ("", "q", "q.a", "q.b", "q.a.b", "r")
SUBJECTS = ("foo", "foo.bar", "foo.x", "bar")


def matches(pattern: str, subject: str) -> bool:
    """Whether every subject of `subject`, which may be a pattern, is one of `pattern`."""
    wanted, given = pattern.split("."), subject.split(".")
    for position, word in enumerate(wanted):
        if word == ">":
            return len(given) > position
        if position >= len(given) or given[position] == ">" or (word not in ("*", given[position])):
            return False
    return len(wanted) == len(given)


@dataclass(frozen=True)
class Rule:
    pattern: str
    group: str

    @property
    def text(self) -> str:
        return f'"{self.pattern} {self.group}"' if self.group else f'"{self.pattern}"'

    def concerns(self, group: str) -> bool:
        return not self.group or (group != "" and matches(self.group, group))


@dataclass(frozen=True)
class Rights:
    allow: tuple[Rule, ...]
    deny: tuple[Rule, ...]

    @property
    def text(self) -> str:
        lists = [("allow", self.allow), ("deny", self.deny)]
        inner = ", ".join(f"{word}: [{', '.join(rule.text for rule in rules)}]" for word, rules in lists if rules)
        return f"{{ subscribe: {{ {inner} }} }}"

    def delivered(self, subscription: str, group: str) -> list[str] | None:
        """What of the subjects is delivered; None = the subscription is refused."""
        if not self._is_allowed(subscription, group):
            return None
        concerned = [rule for rule in self.deny if rule.concerns(group)]
        if any(matches(rule.pattern, subscription) for rule in concerned):
            return None
        wanted = [subject for subject in SUBJECTS if matches(subscription, subject)]
        return [subject for subject in wanted if not any(matches(rule.pattern, subject) for rule in concerned)]

    def _is_allowed(self, subscription: str, group: str) -> bool:
        if not self.allow:
            return True
        covering = [rule for rule in self.allow if matches(rule.pattern, subscription)]
        if group and any(rule.group for rule in covering):
            return any(rule.group and rule.concerns(group) for rule in covering)
        return any(not rule.group for rule in covering)

    def is_told_apart(self, subscription: str) -> bool:
        """Whether no `*` of a rule stands where the subscription has its final `>`."""
        words = subscription.split(".")
        if words[-1] != ">":
            return True
        ends = [rule.pattern.split(".")[len(words) - 1 :] for rule in (*self.allow, *self.deny)]
        return not any(end[:1] == ["*"] for end in ends)


def rights_by_chance(chance: random.Random) -> Rights:
    def rules(count: int) -> tuple[Rule, ...]:
        return tuple(Rule(chance.choice(PATTERNS), chance.choice(GROUP_PATTERNS)) for _ in range(count))

    allow = rules(chance.randint(1, 3)) if chance.random() < 0.8 else ()
    return Rights(allow, rules(chance.randint(0 if allow else 1, 3)))


def subscribe(client: RawClient, other: RawClient, subscription: str, group: str) -> list[str] | None:
    """Subscribe, let somebody publish to all subjects, and return what comes; None = it was refused."""
    client.send(f"SUB {subscription} {group} 7\r\nPING\r\n".encode())
    line = client.read_line()
    if line != b"PONG\r\n":
        queue = f' using queue "{group}"' if group else ""
        assert line == f"-ERR 'Permissions Violation for Subscription to \"{subscription}\"{queue}'\r\n".encode()
        client.expect(b"PONG\r\n")
        return None
    other.send("".join(f"PUB {subject} 0\r\n\r\n" for subject in SUBJECTS).encode())
    other.expect_pong()
    client.send(b"UNSUB 7\r\nPING\r\n")
    came = []
    while (line := client.read_line()) != b"PONG\r\n":
        if line.startswith(b"MSG "):
            came.append(line.split()[1].decode())
    return came


def start(start_server, users: list[Rights]) -> ServerProcess:
    named = ", ".join(f"{{user: u{number}, permissions: {rights.text}}}" for number, rights in enumerate(users))
    server: ServerProcess = start_server(config=f"authorization {{ users: [ {{user: all}}, {named} ] }}")
    return server


@pytest.mark.parametrize("seed", [1, 2])
def test_subscriptions_with_groups_are_allowed_and_delivered_by_the_rules(start_server, seed: int) -> None:
    chance = random.Random(seed)
    users = [rights_by_chance(chance) for _ in range(USERS)]
    server = start(start_server, users)

    with server.client() as other:
        other.connect(user="all")
        for number, rights in enumerate(users):
            with server.client() as client:
                client.connect(user=f"u{number}")
                for subscription in filter(rights.is_told_apart, SUBSCRIPTIONS):
                    for group in GROUPS:
                        came = subscribe(client, other, subscription, group)
                        assert came == rights.delivered(subscription, group), (rights.text, subscription, group)


def test_star_is_no_right_to_all_that_is_below(start_server, server_kind: str) -> None:
    rights = [Rights((Rule("foo.*", ""),), ()), Rights((Rule("*", "q"),), ())]
    denied = Rights((), (Rule("foo.*", ""),))
    server = start(start_server, [*rights, denied])

    with server.client() as other, server.client() as one, server.client() as two, server.client() as three:
        for user, client in (("all", other), ("u0", one), ("u1", two), ("u2", three)):
            client.connect(user=user)

        is_ours = server_kind == "jetlake"
        assert subscribe(one, other, "foo.>", "") == (None if is_ours else ["foo.bar", "foo.x"])
        assert subscribe(two, other, ">", "q") == (None if is_ours else list(SUBJECTS))
        # Nothing of what is denied comes, and the subscription is wider than that.
        assert subscribe(three, other, "foo.>", "") == ([] if is_ours else None)
        assert subscribe(three, other, ">", "") == ["foo", "bar"]


def test_group_that_is_named_like_a_pattern_is_a_name(start_server, server_kind: str) -> None:
    server = start(start_server, [Rights((Rule("foo", "q"),), ()), Rights((), (Rule("foo", "*"),))])

    with server.client() as other, server.client() as one, server.client() as two:
        for user, client in (("all", other), ("u0", one), ("u1", two)):
            client.connect(user=user)

        for group in ("*", ">", "q.>", "q*"):
            assert subscribe(one, other, "foo", group) is None
        for group in ("*", "q"):
            assert subscribe(two, other, "foo", group) is None
        assert subscribe(two, other, "foo", ">") == (None if server_kind == "jetlake" else ["foo"])
