"""Messages between clients: publish and subscribe, queue groups, requests, and who may come in.

Invariant: every message is counted where it arrives, and the counts are compared with what was sent.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from jetlake.client.connection import connect, flush
from jetlake.demo.scene import Scene, Script, in_event_loop
from jetlake.demo.stage import SETTLE_S_MAX, Stage
from jetlake.errors import ClientError
from jetlake.server.server import Server

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg

__all__ = ["SCRIPTS"]

ROOMS = ("kitchen", "bath", "attic")
QUANTITIES = ("temperature", "humidity")
READINGS = 100
"""Of each quantity in each room."""

PATTERNS = {
    "sensors.kitchen.temperature": READINGS,
    "sensors.*.temperature": READINGS * len(ROOMS),
    "sensors.>": READINGS * len(ROOMS) * len(QUANTITIES),
}
"""What is subscribed to, and how many messages must come."""

WORKERS = ("ada", "grace", "edsger")
JOBS = 900

ANSWER_S_MAX = 5.0
POLL_S = 0.01

ADMITTED, REFUSED = "admitted", "refused: Authorization Violation"


async def _publish_and_subscribe(stage: Stage, scene: Scene) -> None:
    received: Counter[str] = Counter()
    async with AsyncExitStack() as stack:
        client = await _connected(stack, stage)
        for pattern in PATTERNS:
            await client.subscribe(pattern, cb=_counting(received, pattern))
        for room in ROOMS:
            for quantity in QUANTITIES:
                for reading in range(READINGS):
                    await client.publish(f"sensors.{room}.{quantity}", b"%d" % reading)
        await _arrived(client, received, sum(PATTERNS.values()))
    for pattern, expected in PATTERNS.items():
        scene.rows.append((pattern, received[pattern]))
        scene.check(f"{pattern} receives what matches it", expected=expected, found=received[pattern])


async def _queue_group(stage: Stage, scene: Scene) -> None:
    received: Counter[str] = Counter()
    seen: Counter[bytes] = Counter()
    async with AsyncExitStack() as stack:
        for name in WORKERS:
            worker = await _connected(stack, stage)

            async def work(message: "Msg", name: str = name) -> None:
                received[name] += 1
                seen[message.data] += 1

            await worker.subscribe("chores", queue="workers", cb=work)
            await flush(worker)
        client = await _connected(stack, stage)
        for number in range(JOBS):
            await client.publish("chores", b"%d" % number)
        await _arrived(client, received, JOBS)
    scene.rows += [(name, received[name]) for name in WORKERS]
    once = sum(count == 1 for count in seen.values())
    scene.check("each message goes to exactly one worker", expected=JOBS, found=once)


async def _request_and_reply(stage: Stage, scene: Scene) -> None:
    from nats.errors import NoRespondersError

    async def answer(message: "Msg") -> None:
        await message.respond(message.data.upper())

    async with AsyncExitStack() as stack:
        service, client = await _connected(stack, stage), await _connected(stack, stage)
        await service.subscribe("shout", cb=answer)
        await flush(service)
        for subject, question in (("shout", "hello"), ("shout", "is anybody there?"), ("whisper", "hello?")):
            begin_s = time.perf_counter()
            try:
                shown = (await client.request(subject, question.encode(), timeout=ANSWER_S_MAX)).data.decode()
            except NoRespondersError:
                shown = "503 no responders"
            took_ms = (time.perf_counter() - begin_s) * 1000
            scene.rows.append((subject, question, shown, f"{took_ms:.1f} ms"))
            expected = question.upper() if subject == "shout" else "503 no responders"
            scene.check(f"the answer to {question!r}", expected=expected, found=shown)


async def _logins(_stage: Stage, scene: Scene) -> None:
    user, password = "ada", "lovelace"
    cases: tuple[tuple[str, dict[str, str], str], ...] = (
        (f"{user} and the right password", {"user": user, "password": password}, ADMITTED),
        (f"{user} and a wrong password", {"user": user, "password": "byron"}, REFUSED),
        ("no credentials", {}, REFUSED),
    )
    async with Server(jetstream=False, user=user, password=password) as guarded:
        for shown, credentials, expected in cases:
            try:
                # The address alone: with the server itself, `connect` would know the password.
                client = await connect(guarded.url, allow_reconnect=False, **credentials)
            except ClientError:
                found = REFUSED
            else:
                found = ADMITTED
                await client.close()
            scene.rows.append((shown, found))
            scene.check(shown, expected=expected, found=found)


async def _connected(stack: AsyncExitStack, stage: Stage) -> "Client":
    """Return a client that is closed with the stack."""
    client = await connect(stage.server)
    stack.push_async_callback(client.close)
    return client


def _counting(received: Counter[str], name: str) -> "Callable[[Msg], Awaitable[None]]":
    async def count(_message: "Msg") -> None:
        received[name] += 1

    return count


async def _arrived(client: "Client", received: Counter[str], expected: int) -> None:
    """Wait until as many messages have come as must; the checks tell if they do not."""
    await flush(client)
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + SETTLE_S_MAX
    # Callbacks count; an event for each count would be more than what is waited for.
    while received.total() < expected and loop.time() < deadline_s:  # noqa: ASYNC110
        await asyncio.sleep(POLL_S)


SCRIPTS = (
    Script(
        "publish",
        "Publish and subscribe",
        "Three subscriptions, two of them with wildcards. Each message goes to all that match its subject.",
        ("subscription", "messages received"),
        in_event_loop(_publish_and_subscribe),
        bars=True,
    ),
    Script(
        "queue",
        "Queue group",
        f"Three workers share one subject: each of {JOBS} jobs goes to exactly one of them.",
        ("worker", "jobs"),
        in_event_loop(_queue_group),
        bars=True,
    ),
    Script(
        "request",
        "Request and reply",
        "A service answers requests. If nobody listens, the server says so at once.",
        ("subject", "request", "reply", "took"),
        in_event_loop(_request_and_reply),
    ),
    Script(
        "logins",
        "Who may come in",
        "A second server in the same process, with a user and a password.",
        ("presented", "result"),
        in_event_loop(_logins),
    ),
)
