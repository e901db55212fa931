"""Messages through a spool while the server is up, away, and back: each arrives once, in order.

Invariant: what `submit` has returned for is delivered, however often the server goes away in between.
"""

import asyncio

from jetlake.client.api import Api, open_api
from jetlake.client.pulls import Start, read
from jetlake.demo.scene import Scene, Script, in_event_loop
from jetlake.demo.stage import Stage
from jetlake.submission import SenderOptions, run_sender, submit_async

__all__ = ["SCRIPTS"]

STREAM = "SUBMISSIONS"
SUBJECT = "backups.status"
COLLECTIVE = "mcollective"
DELIVERY_S_MAX = 60.0
"""The sender waits longer after each failure; the longest pause is twenty seconds."""

POLL_S = 0.1


async def _submission(stage: Stage, scene: Scene) -> None:
    count = stage.scale.count(2, 10, 100)
    spool = stage.folder / "spool"
    stop = asyncio.Event()
    sending = asyncio.create_task(run_sender(SenderOptions(spool=spool, access=stage.access), stop=stop))

    async def submitted(first: int) -> None:
        for number in range(first, first + count):
            await submit_async(SUBJECT, b"%d" % number, spool=spool, reliable=True)

    try:
        async with asyncio.timeout(DELIVERY_S_MAX):
            await submitted(0)
            online = await _stored(stage, count)
            scene.rows.append(("up", count, len(online)))
            stage.stop_server()
            try:
                stage.tell("the server is away; messages wait in the spool")
                await submitted(count)
            finally:
                stage.start_server()
            scene.rows.append(("away", count, 0))
            stage.tell("the server is back")
            arrived = await _stored(stage, 2 * count)
            scene.rows.append(("back", 0, len(arrived) - len(online)))
    finally:
        stop.set()
        statistics = await sending
    scene.check("every message arrives once, in order", expected=_list(range(2 * count)), found=_list(arrived))
    scene.check("none is left in the spool", expected=0, found=sum(statistics.spooled))


def _list(numbers: "range | list[int]") -> str:
    return " ".join(map(str, numbers))


async def _stored(stage: Stage, expected: int) -> list[int]:
    """Return what is in the stream as soon as there is as much as expected."""
    async with open_api(stage.access) as api:
        while True:
            info = await api.request(f"STREAM.INFO.{STREAM}")
            if int(info["state"]["messages"]) >= expected:
                return await _numbers(api)
            await asyncio.sleep(POLL_S)


async def _numbers(api: Api) -> list[int]:
    return [int(message.data) async for message in read(api, STREAM, start=Start(), to_end=True)]


def _play(stage: Stage, scene: Scene) -> None:
    stage.create_stream(STREAM, f"{COLLECTIVE}.submission.in.>")
    in_event_loop(_submission)(stage, scene)


SCRIPTS = (
    Script(
        "submission",
        "Submission through a spool",
        "A program hands messages over by writing files, without any connection; a sender delivers them. In the middle "
        "the server is stopped and started again.",
        ("the server is", "submitted", "delivered"),
        _play,
    ),
)
