"""Competitors for the few slots of a governor: never more inside than it has.

Invariant: who is inside is counted by the competitors themselves, not read from the server.
"""

import asyncio
import random
from collections.abc import Iterator
from contextlib import contextmanager

from jetlake.client.api import open_api
from jetlake.demo.scene import Scene, Script, in_event_loop
from jetlake.demo.stage import Stage
from jetlake.governor import Governor, GovernorSettings, catalog

__all__ = ["SCRIPTS"]

NAME = "MAINTENANCE"
SLOTS = 3
EXPIRES_NS = 60_000_000_000
"""Longer than any competitor works: a slot that is given back is given back by its holder."""

WORK_S = (0.05, 0.15)
WAIT_S_MAX = 60.0


class _Room:
    """How many are inside, and how many ever were at once."""

    def __init__(self) -> None:
        self.inside = 0
        self.most = 0
        self.served = 0

    @contextmanager
    def entered(self) -> Iterator[None]:
        self.inside += 1
        self.most = max(self.most, self.inside)
        try:
            yield
        finally:
            self.inside -= 1
            self.served += 1


async def _govern(stage: Stage, scene: Scene) -> None:
    room, chance = _Room(), random.Random(NAME)
    competitors = stage.scale.count(0.5, 6, 30)

    async def compete(number: int) -> None:
        async with (
            Governor(stage.access, NAME) as governor,
            governor.slot(holder=f"node{number}.example.net", max_wait_s=WAIT_S_MAX, end_on_sigterm=False),
        ):
            with room.entered():
                await asyncio.sleep(chance.uniform(*WORK_S))

    async with open_api(stage.access) as api:
        await catalog.add(api, GovernorSettings(name=NAME, capacity=SLOTS, expires_ns=EXPIRES_NS))
        await asyncio.gather(*(compete(number) for number in range(competitors)))
        left = len((await catalog.view(api, NAME)).leases)
    scene.rows += [
        ("slots", SLOTS),
        ("competitors", competitors),
        ("had their turn", room.served),
        ("most inside at once", room.most),
        ("leases left", left),
    ]
    scene.check("everybody had a turn", expected=competitors, found=room.served)
    scene.check("never more inside than there are slots", expected=True, found=room.most <= SLOTS)
    scene.check("every slot is given back", expected=0, found=left)


SCRIPTS = (
    Script(
        "governor",
        "Governor",
        f"A governor has {SLOTS} slots. Many nodes want to do something at the same time; it lets them in a few at "
        "once, network-wide, and nobody is in the middle: a governor is a stream.",
        ("what", "count"),
        in_event_loop(_govern),
    ),
)
