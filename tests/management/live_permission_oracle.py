"""Whatever reaches a subject of a real server because of a user must be allowed to that user, by the model.

```sh
python -m tests.management.live_permission_oracle --messages 20000
```

Every user has streams, subjects and rights of its own, with names that say whose they are, so that whatever anybody
sees can be told to be one user's doing, whenever it comes. Users send requests of all dialects, publishes with headers
of schedules, and reply subjects of all kinds, over raw connections. An observer sees everything. Held against it:

- each message on a subject of a user, that it was or could have been sent there;
- each secret of a stream that the observer sees again, that the user may read the stream;
- each secret that is gone, that the user may remove it.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import random
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import nats
from nats.aio.msg import Msg

import jetlake
from tests.management.permission_model import API, REQUESTS, Asked, Lists, Model, World

USERS_AT_ONCE = 25
"""Users of one server; more of them take another one."""

MESSAGES_OF_USER = 40

SOCKET_S_MAX = 60.0

# Rights that let somebody read all of a stream, by whatever name it is asked for, or that let a stream send it on.
READING = (
    *("STREAM.MSG.GET.{}", "DIRECT.GET.{}", "DIRECT.GET.{}.a", "DIRECT.GET.{}.a.x", "CONSUMER.CREATE.{}"),
    *("CONSUMER.CREATE.{}.D", "CONSUMER.DURABLE.CREATE.{}.D", "CONSUMER.MSG.NEXT.{}.C", "STREAM.SNAPSHOT.{}"),
)
REMOVING = ("STREAM.DELETE.{}", "STREAM.PURGE.{}", "STREAM.MSG.DELETE.{}", "STREAM.UPDATE.{}", "STREAM.DELETE.*")


@dataclass
class Person:
    """One user, with what it is and what was seen of it."""

    number: int
    lists: Lists
    world: World
    model: Model
    # Subjects that it named where the server was to send, or published to itself.
    seen: list[tuple[str, bytes]] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"u{self.number}"

    def secret(self, stream: str) -> bytes:
        return f"secret-of-{stream}-{self.number:05d}".encode()


@dataclass
class Outcome:
    """What was sent and seen, and what should not have been."""

    messages: int = 0
    decisions: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)


def make_people(generator: random.Random, first: int) -> list[Person]:
    people = []
    for number in range(first, first + USERS_AT_ONCE):
        # Digits, and a letter behind, so that no name is the beginning of another one.
        world = World(f"{number:05d}q")
        lists = Lists.random(generator, world)
        people.append(Person(number, lists, world, Model(lists)))
    return people


def configuration(people: list[Person], folder: Path) -> str:
    users = "\n".join(
        f"{{ user: {person.name}, password: x, permissions: {person.lists.as_configuration()} }}" for person in people
    )
    return f"""
port: -1
jetstream {{ store_dir: "{folder}" }}
authorization {{ users: [ {{ user: all, password: x }}
{users} ] }}
"""


class Raw:
    """A connection of one user, by bytes."""

    def __init__(self, port: int, user: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=SOCKET_S_MAX)
        options = {"verbose": False, "user": user, "pass": "x", "headers": True, "no_responders": False, "echo": True}
        self._socket.sendall(b"CONNECT %s\r\n" % json.dumps(options).encode())
        self.wait()

    def publish(self, subject: str, reply: str, header: bytes, body: bytes) -> None:
        words = f"{subject} {reply}".strip()
        sizes = f"{len(header)} {len(header) + len(body)}" if header else str(len(body))
        line = f"{'HPUB' if header else 'PUB'} {words} {sizes}\r\n"
        self._socket.sendall(line.encode() + header + body + b"\r\n")

    def wait(self) -> None:
        """Wait until the server has read everything."""
        self._socket.sendall(b"PING\r\n")
        received = b""
        while b"PONG\r\n" not in received:
            chunk = self._socket.recv(65_536)
            assert chunk, received
            received = received[-16:] + chunk

    def close(self) -> None:
        self._socket.close()


def next_message(generator: random.Random, person: Person) -> tuple[Asked, str, bytes]:
    """Return a request or a publish, its reply subject and its header."""
    world = person.world
    reply = generator.choice(["", *world.outside, *world.data(f"Z{world.mark}"), *world.data(world.streams[1])])
    if generator.random() < 0.65:
        return generator.choice(REQUESTS)(generator, world), reply, b""
    stream = generator.choice(world.streams)
    match generator.randrange(5):
        case 0:
            return Asked(f"{API}STREAM.MSG.GET.{stream}", b'{"seq":1}'), reply, b""
        case 1:
            return Asked(f"{API}DIRECT.GET.{stream}", b'{"seq":1}'), reply, b""
        case 2:
            subject = generator.choice([f"{API}CONSUMER.MSG.NEXT.{stream}.C", f"$JS.RN.{stream}.C"])
            return Asked(subject, b"1"), reply, b""
        case 3:
            target = generator.choice(world.data(stream))
            header = f"NATS/1.0\r\nNats-Schedule: @at 2020-01-01T00:00:00Z\r\nNats-Schedule-Target: {target}\r\n\r\n"
            return Asked(f"{stream.lower()}.z", b"scheduled"), reply, header.encode()
        case _:
            return Asked(generator.choice(world.data(stream)), b"plain"), reply, b""


async def run_once(generator: random.Random, first: int, outcome: Outcome) -> None:
    people = make_people(generator, first)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "server.conf"
        file.write_text(configuration(people, Path(folder) / "store"))
        with jetlake.Server(config=file) as server:
            await _play(server, people, generator, outcome)


async def _play(server: jetlake.Server, people: list[Person], generator: random.Random, outcome: Outcome) -> None:
    observer = await nats.connect(server.url, user="all", password="x", max_reconnect_attempts=0)
    # What people send themselves, and what is sent for them.
    sent: Counter[tuple[str, bytes]] = Counter()

    for person in people:
        for stream in person.world.streams:
            config = {"name": stream, "subjects": [f"{stream.lower()}.>"], "allow_direct": True}
            config |= {"allow_msg_schedules": True, "allow_rollup_hdrs": True}
            await _ask(observer, f"{API}STREAM.CREATE.{stream}", json.dumps(config).encode())
            consumer = {"stream_name": stream, "config": {"durable_name": "C", "ack_policy": "explicit"}}
            await _ask(observer, f"{API}CONSUMER.DURABLE.CREATE.{stream}.C", json.dumps(consumer).encode())
            await _ask(observer, f"{stream.lower()}.kept", person.secret(stream))

    for person in people:
        for subject in _subjects_of(person):
            await observer.subscribe(subject, cb=_seeing(person, subject))
    await observer.flush()
    for person in people:
        connection = Raw(server.port, person.name)
        for _ in range(MESSAGES_OF_USER):
            asked, reply, header = next_message(generator, person)
            connection.publish(asked.subject, reply, header, asked.body)
            sent[asked.subject, asked.body] += 1
            outcome.messages += 1
        connection.wait()
        connection.close()
    # Requests of an account are answered in their order, so this comes behind all of them.
    await _ask(observer, f"{API}INFO", b"")
    await _let_settle(people)
    for person in people:
        await _hold_against_model(observer, person, sent, outcome)
    await observer.close()


def _subjects_of(person: Person) -> list[str]:
    """Return the subjects where somebody may listen: all of the user's that are none of the server's."""
    stored = [f"{stream.lower()}.{tail}" for stream in person.world.streams for tail in ("kept", "z")]
    return [*stored, *(subject for subject in person.world.universe if not subject.startswith("$"))]


def _seeing(person: Person, subject: str) -> Callable[[Msg], Awaitable[None]]:
    """Return what notes that a message came to a subject; a message says itself only where it was stored."""

    async def see(message: Msg) -> None:
        person.seen.append((subject, message.data))

    return see


async def _let_settle(people: list[Person]) -> None:
    """Wait until nothing new is seen for a while; what comes later is not looked at, and proves nothing."""
    before, quiet = -1, 0
    while quiet < 5:
        await asyncio.sleep(0.1)
        now = sum(len(person.seen) for person in people)
        quiet = quiet + 1 if now == before else 0
        before = now


async def _ask(connection: nats.NATS, subject: str, body: bytes) -> dict[str, object]:
    return dict(json.loads((await connection.request(subject, body, timeout=60)).data))


async def _hold_against_model(
    observer: nats.NATS, person: Person, sent: Counter[tuple[str, bytes]], outcome: Outcome
) -> None:
    model = person.model
    for subject, data in person.seen:
        outcome.decisions += 1
        kind = "own publish" if sent[subject, data] else "sent by the server"
        outcome.kinds[kind] += 1
        if kind == "own publish":
            is_allowed = model.may_publish(subject)
        else:
            is_allowed = model.may_send_to(subject, for_sender=True)
        if not is_allowed:
            outcome.violations.append(f"{person.name}: {data[:100]!r} reached {subject}, with {person.lists}")
    for stream in person.world.streams:
        outcome.decisions += 2
        outcome.kinds["secret kept or read"] += 2
        secret = person.secret(stream)
        shapes = (secret, base64.b64encode(secret))
        was_read = any(shape in data for _, data in person.seen for shape in shapes)
        if was_read and not any(model.may_publish(API + way.format(stream)) for way in READING):
            outcome.violations.append(f"{person.name} read {stream} with {person.lists}")
        found = await _ask(observer, f"{API}STREAM.MSG.GET.{stream}", b'{"seq":1}')
        if "error" in found and not any(model.may_publish(API + way.format(stream)) for way in REMOVING):
            outcome.violations.append(f"{person.name} removed the secret of {stream} with {person.lists}")


def run(messages: int, seed: int) -> Outcome:
    """Send at least so many messages."""
    generator, outcome, first = random.Random(seed), Outcome(), 1
    while outcome.messages < messages:
        asyncio.run(run_once(generator, first, outcome))
        first += USERS_AT_ONCE
    return outcome


def main() -> int:
    """Send, look, and say how it went."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=20_261_117)
    arguments = parser.parse_args()
    begun_at = time.monotonic()
    outcome = run(arguments.messages, arguments.seed)
    for violation in outcome.violations[:20]:
        sys.stdout.write(f"{violation}\n")
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(outcome.kinds.items()))
    sys.stdout.write(
        f"{outcome.messages:,} messages, {outcome.decisions:,} decisions ({kinds}), "
        f"{len(outcome.violations)} violations, seed {arguments.seed}, {time.monotonic() - begun_at:.0f} s\n"
    )
    return 1 if outcome.violations else 0


if __name__ == "__main__":
    sys.exit(main())
