"""Vacancies: a holder that leaves a slot tells one of the waiting campaigners, those that have waited longest first.

Polling alone is not fair: a new campaigner tries more often than one that has backed off. So waiting campaigners
subscribe, in one queue group, to a subject that says how long they have waited, and a holder that leaves asks the
longest-waiting class first. The server delivers the message to one of them, which tries at once. It costs one message
for each slot that becomes free, however many wait.

This is a hint, and nothing depends on it: a campaigner that receives nothing (the other side is Choria's, a lease
expired, the slot was taken in between) gets in by polling.
"""

import asyncio
import time
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from jetlake.governor.layout import side_subject

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.subscription import Subscription

CLASSES_S = (0.0, 1.0, 5.0, 20.0, 60.0)
"""The waiting time at which each class begins. A holder that leaves asks at most once per class."""

QUEUE_GROUP = "campaign"

ANSWER_S_MAX = 0.5
"""A waiting campaigner that does not answer within this time gets in by polling."""


def class_of(waited_s: float) -> int:
    """Return the class of a campaigner that has waited this long."""
    return max(number for number, begin_s in enumerate(CLASSES_S) if waited_s >= begin_s)


async def announce(connection: "Client", subject: str) -> bool:
    """Tell one waiting campaigner, if there is one, that a slot is free; return whether one was told."""
    from nats.errors import Error, NoRespondersError

    for number in reversed(range(len(CLASSES_S))):
        try:
            await connection.request(_subject(subject, number), b"", timeout=ANSWER_S_MAX)
        except NoRespondersError:
            continue
        except (TimeoutError, Error, OSError):
            return False
        return True
    return False


class VacancyListener:
    """One waiting campaigner. Use it in `async with`; the first `wait` subscribes."""

    def __init__(self, connection: "Client", subject: str) -> None:
        self._connection = connection
        self._subject = subject
        self._heard = asyncio.Event()
        self._class = -1
        self._subscription: Subscription | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._leave()

    async def wait(self, seconds: float, waited_s: float) -> bool:
        """Wait until a slot is free or the time is over; return whether a holder reported a free slot.

        A report since the last call counts: it may have come while the ballot was on its way.
        """
        begin_s = time.monotonic()
        while True:
            if self._heard.is_set():
                self._heard.clear()
                return True
            passed_s = time.monotonic() - begin_s
            if passed_s >= seconds:
                return False
            number = class_of(waited_s + passed_s)
            await self._join(number)
            is_last = number + 1 == len(CLASSES_S)
            older_in_s = seconds if is_last else CLASSES_S[number + 1] - waited_s - passed_s
            with suppress(TimeoutError):
                await asyncio.wait_for(self._heard.wait(), min(seconds - passed_s, older_in_s))

    async def _join(self, number: int) -> None:
        from nats.errors import Error

        if number == self._class:
            return
        await self._leave()
        self._class = number
        with suppress(Error, OSError):
            self._subscription = await self._connection.subscribe(
                _subject(self._subject, number), queue=QUEUE_GROUP, cb=self._hear
            )

    async def _leave(self) -> None:
        from nats.errors import Error

        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            with suppress(Error, OSError):
                await subscription.unsubscribe()

    async def _hear(self, message: Any) -> None:
        from nats.errors import Error

        with suppress(Error, OSError):
            await message.respond(b"")
        self._heard.set()


def _subject(subject: str, number: int) -> str:
    return side_subject(subject, f"vacated-{number}")
