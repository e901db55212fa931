"""A campaign: from wanting a slot to holding one, or to giving up.

The first try is made at once. Then the campaign waits as Choria's does, by a back-off or a fixed interval, each
jittered; a holder that leaves may wake it earlier. Only the refusal of a full governor and failures that can pass are
tried again; everything else ends the campaign at once.

Invariant: a campaign that ends without a lease, by its deadline, an error or a cancellation, leaves no lease behind as
long as the server can be reached.
"""

import asyncio
import logging
import time
from contextlib import suppress

from jetlake.client.api import Api
from jetlake.client.backoff import BackOff, jittered, table
from jetlake.client.uninterrupted import finish
from jetlake.errors import ClientError
from jetlake.governor.ballot import Ballot, Entered, Full, Unknown, delete_lease
from jetlake.governor.renewal import is_renewing
from jetlake.governor.vacancies import VacancyListener

UNKNOWN_RETRY_S = 0.25
"""Pause after a try without an answer: its outcome is worth knowing soon."""

YIELD_S = 0.5
"""A campaigner that gave a slot back to a renewing holder waits this long for the renewal."""

WITHDRAW_S_MAX = 5.0
"""How long a campaign that gives up looks for the lease that an unanswered try may have left."""

_log = logging.getLogger(__name__)


class NoSlotError(ClientError):
    """Is raised when a campaign did not get a slot in the time it had."""


class Campaign:
    """One campaign of one holder."""

    def __init__(
        self,
        api: Api,
        name: str,
        subject: str,
        holder: str,
        *,
        back_off: BackOff | None = None,
        max_wait_s: float | None = None,
    ) -> None:
        self._api = api
        self._name = name
        self._subject = subject
        self._ballot = Ballot(api, name, subject, holder)
        self._back_off = back_off or table()
        self._max_wait_s = max_wait_s
        self._begin_s = time.monotonic()
        # Number of tries, for reports.
        self.tries = 0

    @property
    def waited_s(self) -> float:
        return time.monotonic() - self._begin_s

    async def run(self) -> int:
        """Return the sequence of the lease. Raises `NoSlotError` when the time is over, else `ClientError`."""
        self._begin_s = time.monotonic()
        try:
            async with VacancyListener(self._api.connection, self._subject) as vacancies:
                sequence = await self._run(vacancies)
            self._ballot.mark_owned()
        except BaseException:
            # A cancellation must not leave an orphaned lease either.
            await finish(self._withdraw())
            raise
        return sequence

    async def _run(self, vacancies: VacancyListener) -> int:
        while True:
            self.tries += 1
            outcome = await self._ballot.cast()
            match outcome:
                case Entered(sequence):
                    if not await is_renewing(self._api.connection, self._subject):
                        return sequence
                    await self._give_back(sequence)
                    delay_s, reason = jittered(YIELD_S), "a holder is renewing its lease"
                case Full():
                    delay_s, reason = self._back_off(self.tries), "all slots are taken"
                case Unknown(why):
                    delay_s, reason = jittered(UNKNOWN_RETRY_S), why
            left_s = None if self._max_wait_s is None else self._max_wait_s - self.waited_s
            if left_s is not None and left_s <= 0:
                raise NoSlotError(
                    f"could not get a execution slot on {self._name} within {self._max_wait_s:g} s: {reason}"
                )
            await vacancies.wait(delay_s if left_s is None else min(delay_s, left_s), self.waited_s)

    async def _give_back(self, sequence: int) -> None:
        """Let a holder that renews have its slot; if the server does not answer, the next try finds it still ours."""
        with suppress(ClientError):
            await delete_lease(self._api, self._name, sequence)
            self._ballot = self._ballot.successor()

    async def _withdraw(self) -> None:
        deadline_s = time.monotonic() + WITHDRAW_S_MAX
        while not await self._ballot.withdraw():
            if time.monotonic() >= deadline_s:
                _log.warning(
                    "governor %s: the server did not answer; a lease that it may have given ends when it expires",
                    self._name,
                )
                return
            await asyncio.sleep(UNKNOWN_RETRY_S)
