"""Who gets what of another account: every decision of Jetlake against nats-server.

```sh
python -m tests.compatibility.sharing_oracle --decisions 1000000
```

Each round makes up a configuration: accounts with exports, imports, prefixes, renamed subjects and mappings, and users
with permissions. Both servers get it, with the same subscriptions and the same publishes and answers, and everything
that each client hears is compared. A decision is whether one publish reaches one subscription, and under which subject,
or whether a publish or subscription is refused.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.compatibility.server_process import ServerProcess, start_server_process
from tests.compatibility.sharing_worlds import World
from tests.compatibility.wire import RawClient

KINDS = ("nats-server", "jetlake")

BATCHES_OF_WORLD = 8
"""Batches that one configuration lives for: starting two servers takes as long as some of them."""

PUBLISHES_OF_BATCH = 60

REPLY = re.compile(rb"_R_\.[^ \r\n]+")

Heard = Counter[tuple[str, ...]]


@dataclass
class Tally:
    """What was decided, and where both disagree."""

    decisions: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)
    # Messages, answers and refusals that clients of nats-server heard.
    heard: int = 0

    def note(self, kind: str, count: int) -> None:
        self.decisions += count
        self.kinds[kind] += count


class Play:
    """One server of one kind in a world, with a client of each user."""

    def __init__(self, world: World, server: ServerProcess) -> None:
        self._world = world
        self._clients: list[RawClient] = []
        self._requests: list[tuple[int, bytes, bytes]] = []
        # What users heard while they waited for the server, by their number.
        self._early: dict[int, list[bytes]] = {}
        for user in world.users:
            client = server.client()
            client.connect(user=user.name, headers=True, no_responders=True, **{"pass": "x"})
            self._clients.append(client)

    def subscribe(self) -> list[Heard]:
        for user, client in zip(self._world.users, self._clients, strict=True):
            client.send("".join(f"SUB {each.line()}\r\n" for each in user.subscriptions).encode())
        return [self._heard_by(number) for number in range(len(self._clients))]

    def publish(self, batch: list[tuple[int, bytes]]) -> list[Heard]:
        """Send what the users publish, one after the other, and have requests answered in the order of the users."""
        for number, frame in batch:
            self._clients[number].send(frame)
            self._wait_for(number)
        heard = [self._heard_by(number) for number in range(len(self._clients))]
        answering, self._requests = sorted(self._requests, key=lambda request: request[:2]), []
        for number, marked, reply in answering:
            self._clients[number].send(b"PUB %s %d\r\n%s\r\n" % (reply, len(marked) + 2, b"A:" + marked))
            self._wait_for(number)
        for number in range(len(self._clients)):
            heard[number] += self._heard_by(number)
        self._requests.clear()
        return heard

    def close(self) -> None:
        for client in self._clients:
            client.close()

    def _wait_for(self, number: int) -> None:
        """Wait until the server has read what a user sent; what it hears meanwhile is kept for later."""
        client = self._clients[number]
        client.send(b"PING\r\n")
        while (frame := client.read_line()) != b"PONG\r\n":
            self._early.setdefault(number, []).append(frame)

    def _heard_by(self, number: int) -> Heard:
        client = self._clients[number]
        client.send(b"PING\r\n")
        frames = self._early.pop(number, [])
        while (frame := client.read_line()) != b"PONG\r\n":
            frames.append(frame)
        return Counter(self._comparable(number, frame) for frame in frames)

    def _comparable(self, number: int, frame: bytes) -> tuple[str, ...]:
        line, _, rest = frame.partition(b"\r\n")
        kind, *words = line.split()
        if kind not in (b"MSG", b"HMSG"):
            return (REPLY.sub(b"_R_", line).decode(),)
        subject, sid = words[0], words[1]
        sizes = 1 if kind == b"MSG" else 2
        reply = words[2] if len(words) == 3 + sizes else b""
        header_bytes = int(words[-2]) if kind == b"HMSG" else 0
        payload = rest[header_bytes:-2]
        shown_sid = self._world.users[number].shown_sid(sid.decode())
        # Which member of a group would answer is chance.
        if reply and shown_sid.isdecimal() and not payload.startswith(b"A:"):
            self._requests.append((number, b"%d:%s:%s" % (number, sid, payload), reply))
        status = rest.split(b"\r\n")[0].decode() if rest.startswith(b"NATS/1.0 ") else ""
        if status:
            # Of several subscriptions to the reply subject, any one hears that there is nobody.
            return (subject.decode(), status)
        shown_reply = "_R_" if REPLY.fullmatch(reply) else reply.decode()
        return (
            REPLY.sub(b"_R_", subject).decode(),
            shown_sid,
            shown_reply,
            _requester(rest[:header_bytes]),
            payload.decode(),
        )


def _requester(header: bytes) -> str:
    """Return what a service hears of who asks, without what differs from run to run."""
    for line in header.split(b"\r\n"):
        if line.startswith(b"Nats-Request-Info: "):
            told = json.loads(line.partition(b": ")[2])
            return json.dumps({key: told.get(key) for key in ("acc", "svc", "user")} | {"server": "server" in told})
    return ""


def play(world: World, tally: Tally) -> None:
    """Have both servers decide everything in one world."""
    with tempfile.TemporaryDirectory() as folder:
        servers, plays = [], []
        for kind in KINDS:
            place = Path(folder) / kind
            place.mkdir()
            try:
                servers.append(start_server_process(kind, place, config=world.configuration()))
            except RuntimeError:
                servers.append(None)
        tally.note("configuration", 1)
        try:
            if None in servers:
                if servers[0] is not servers[1]:
                    refusing = KINDS[servers.index(None)]
                    tally.differences.append(f"only {refusing} refuses\n{world.configuration()}")
                return
            plays = [Play(world, server) for server in servers if server is not None]
            _compare_all(world, plays, tally)
        finally:
            for each in plays:
                each.close()
            for server in servers:
                if server is not None:
                    server.stop()


def _compare_all(world: World, plays: list[Play], tally: Tally) -> None:
    _compare(world, [each.subscribe() for each in plays], "subscribing", tally)
    tally.note("subscription", world.subscription_count)
    for _ in range(BATCHES_OF_WORLD):
        batch = world.publishes(PUBLISHES_OF_BATCH)
        heard = [each.publish(batch) for each in plays]
        _compare(world, heard, "publishing", tally)
        # Each publish is allowed or not, and reaches each of the subscriptions or not.
        tally.note("publish", len(batch))
        tally.note("delivery", len(batch) * world.subscription_count)


def _compare(world: World, heard: list[list[Heard]], what: str, tally: Tally) -> None:
    for user, *both in zip(world.users, *heard, strict=True):
        tally.heard += both[0].total()
        theirs, ours = (world.without_groups(each) for each in both)
        if theirs != ours:
            tally.differences.append(
                f"{what}: {user.name} of {user.account}\n  only nats-server: {dict(theirs - ours)}\n"
                f"  only jetlake: {dict(ours - theirs)}\n{world.configuration()}\n"
                f"  subscriptions: {[each.line() for each in user.subscriptions]}"
            )
    by_group = [world.by_group(each) for each in heard]
    if by_group[0] != by_group[1]:
        tally.differences.append(
            f"{what}: queue groups\n  only nats-server: {dict(by_group[0] - by_group[1])}\n"
            f"  only jetlake: {dict(by_group[1] - by_group[0])}\n{world.configuration()}\n"
            f"  subscriptions: {[(user.name, each.line()) for user in world.users for each in user.subscriptions]}"
        )


def run(decisions: int, seed: int, differences_max: int = 20) -> Tally:
    """Compare at least so many decisions, or stop when both disagree too often."""
    generator, tally, begun_at = random.Random(seed), Tally(), time.monotonic()
    while tally.decisions < decisions and len(tally.differences) < differences_max:
        play(World(generator), tally)
        seconds = time.monotonic() - begun_at
        sys.stderr.write(f"{tally.decisions:,} decisions, {len(tally.differences)} differences, {seconds:.0f} s\n")
    return tally


def main() -> int:
    """Compare, and say how it went."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--decisions", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=20_261_117)
    arguments = parser.parse_args()
    begun_at = time.monotonic()
    tally = run(arguments.decisions, arguments.seed)
    for difference in tally.differences[:5]:
        sys.stdout.write(f"{difference}\n\n")
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(tally.kinds.items()))
    sys.stdout.write(
        f"{tally.decisions:,} decisions ({kinds}), {len(tally.differences)} differences, {tally.heard:,} frames heard, "
        f"seed {arguments.seed}, {time.monotonic() - begun_at:.0f} s\n"
    )
    return 1 if tally.differences else 0


if __name__ == "__main__":
    sys.exit(main())
