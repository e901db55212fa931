"""What stays: a stream with a fork of it, and everything acknowledged by a server that is killed under load.

The crash test is the one of `jetlake crashtest`: a server process of its own, SIGKILL, a new process on the same
store, and every acknowledged message read back and compared byte by byte.
"""

import asyncio
import shutil

import msgspec

from jetlake.client.api import Api
from jetlake.client.publishing import Publisher
from jetlake.client.streams import fork
from jetlake.crashtest import campaign, servers
from jetlake.demo.scene import Scene, Script
from jetlake.demo.stage import Stage

__all__ = ["SCRIPTS"]

ORDERS = "ORDERS"
FORKED = "TRIAL"
ORDERS_COUNT = 1_000
FORK_SEQUENCE = 600
COUNTRIES = ("at", "br", "de", "in", "jp", "ke", "us")
AMOUNTS = (5, 12, 30, 75, 140)

SEED = 1
"""The kills come at the same moments in every run."""


def order(number: int) -> dict[str, int | str]:
    """Return an order; the same for the same number, so that others can compute what a query must find."""
    return {
        "order": number,
        "country": COUNTRIES[number % len(COUNTRIES)],
        "amount": AMOUNTS[number % len(AMOUNTS)],
    }


def _orders(stage: Stage, scene: Scene) -> None:
    stage.create_stream(ORDERS, "orders.>")
    stage.with_api(_publish_orders)
    copied = asyncio.run(fork(stage.access, ORDERS, FORKED, last_sequence=FORK_SEQUENCE, subjects=["trial.>"]))
    stored = stage.count_messages(ORDERS, ORDERS_COUNT)
    forked = int(copied["state"]["messages"])
    scene.rows += [
        ("every order acknowledged", ORDERS, stored),
        (f"forked at order {FORK_SEQUENCE}", FORKED, forked),
    ]
    scene.check("every acknowledged order is in the stream", expected=ORDERS_COUNT, found=stored)
    scene.check("the fork has the orders up to its sequence", expected=FORK_SEQUENCE, found=forked)


async def _publish_orders(api: Api) -> None:
    publisher = Publisher(api, ORDERS)
    await asyncio.gather(
        *(
            publisher.publish(f"orders.{order(number)['country']}", msgspec.json.encode(order(number)))
            for number in range(ORDERS_COUNT)
        )
    )


def _crash(stage: Stage, scene: Scene) -> None:
    folder = stage.folder / "crash"
    stage.tell("publishing, killing the server, reading back")
    try:
        outcome = campaign.run(
            servers.available()[:1],
            ["kill"],
            servers.fresh(folder),
            seconds=stage.scale.crash_s,
            seed=SEED,
            report=lambda _outcome: None,
        )[0]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    verdict = outcome.verdict
    assert verdict is not None, "a kill needs nothing that a machine could lack"
    for what, count in (
        ("times killed", verdict.rounds),
        ("messages acknowledged", verdict.acknowledged),
        ("lost", verdict.lost),
        ("changed", verdict.wrong),
        ("sequences given twice", verdict.reused),
    ):
        scene.rows.append((what, count))
    scene.check("no acknowledged message is lost", expected=0, found=verdict.lost)
    scene.check("no message has changed", expected=0, found=verdict.wrong)
    scene.check("no sequence is given twice", expected=0, found=verdict.reused)
    scene.check("the server starts after every kill", expected=0, found=verdict.failed_starts + verdict.streams_gone)
    scene.check("messages were acknowledged before the kills", expected=True, found=verdict.acknowledged > 0)


SCRIPTS = (
    Script(
        "streams",
        "Streams that stay",
        f"{ORDERS_COUNT:,} orders are stored; an acknowledgement means that a message is on disk. Then the stream is "
        f"forked as it was at order {FORK_SEQUENCE}, without copying it message by message.",
        ("what", "stream", "messages"),
        _orders,
    ),
    Script(
        "crash",
        "kill -9",
        "A server process is killed while it acknowledges messages, repeatedly on one store. Each time a new one must "
        "have every message that was ever acknowledged. `jetlake crashtest` also cuts the power and damages files.",
        ("what", "count"),
        _crash,
    ),
)
