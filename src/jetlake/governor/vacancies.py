"""Vacancies: who leaves a slot tells one of those who wait, first those who have waited longest.

Polling alone is not fair: who has just come tries more often than who has backed off. So those who wait listen on a
subject that says how long they have waited, in one queue group, and who leaves asks the longest-waiting class first.
The server gives the message to one of them, who tries at once. It costs one message for each slot that becomes free,
however many wait.

This is a hint, and nothing depends on it: whoever hears nothing (the other side is Choria's, a lease expired, somebody
took the slot in between) gets in by polling.
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
"""The waiting time from which on somebody belongs to a class. Who leaves asks at most this many times."""

QUEUE_GROUP = "campaign"

ANSWER_S_MAX = 0.5
"""A waiting campaigner that does not answer so soon will get in by polling."""


def class_of(waited_s: float) -> int:
    """Return the class of somebody who has waited so long."""
    return max(number for number, begin_s in enumerate(CLASSES_S) if waited_s >= begin_s)


async def announce(connection: "Client", subject: str) -> bool:
    """Tell one of those who wait, if anybody does, that a slot is free; return whether somebody was told."""
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
    """One campaigner, waiting. Use it in `async with`; it begins to listen with the first `wait`."""

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
        """Wait until a slot is free or the time is over; return whether somebody said that one is.

        What was said since the last time counts: it may have come while the ballot was on its way.
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
