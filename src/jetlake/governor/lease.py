"""`Lease`: a slot that a holder has, renewed while it is held if that was asked for, and released once.

Invariant: after `release` has returned, the stream has no message of this lease, unless the server could not be reached
for `RELEASE_S_MAX`, which is an error, or the slot must stay taken until it expires.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress

from jetlake.client.api import Api
from jetlake.client.backoff import jittered
from jetlake.errors import ApiError, ClientError, reworded
from jetlake.governor import events, vacancies
from jetlake.governor.ballot import Ballot, delete_lease
from jetlake.governor.layout import GovernorSettings
from jetlake.governor.renewal import renew

RELEASE_S_MAX = 15.0
"""How long a release waits for a server that is gone: a cluster has elected another leader by then."""

RELEASE_RETRY_S = 0.25
"""Between two tries to release."""

SECOND_NS = 1_000_000_000

_log = logging.getLogger(__name__)


class Lease:
    """A slot that is held. `Governor.slot` makes it; it is used, and not made, by programs."""

    def __init__(
        self,
        api: Api,
        settings: GovernorSettings,
        sequence: int,
        *,
        holder: str,
        identity: str,
        component: str,
        renew: bool,
        keep_until_expiry: bool,
        on_released: Callable[["Lease"], None],
    ) -> None:
        self._api = api
        self._settings = settings
        self._component = component
        self._identity = identity
        self._keep_until_expiry = keep_until_expiry
        self._on_released = on_released
        self._entered_s = time.monotonic()
        self._released = False
        self.holder = holder
        self.sequence = sequence
        # Set when the slot is lost although the work continues: evicted, or expired before it was renewed.
        self.lost = asyncio.Event()
        self.renewals = 0
        # Leases that another one has taken the place of; each may still be in the stream.
        self._replaced: list[int] = []
        self._stop = asyncio.Event()
        self._renewing: asyncio.Task[None] | None = None
        if renew and settings.expires_ns:
            self._renewing = asyncio.create_task(self._keep_renewing())

    @property
    def governor(self) -> str:
        return self._settings.name

    @property
    def age_s(self) -> float:
        """How long ago the slot was obtained, or the lease last renewed."""
        return time.monotonic() - self._entered_s

    @property
    def is_expired(self) -> bool:
        """Whether the lease is older than the governor keeps it, so that another process may have the slot."""
        return self.expires_in_s is not None and self.expires_in_s <= 0

    @property
    def expires_in_s(self) -> float | None:
        """How long the lease lasts from now on unless it is renewed, below 0 if it has expired; None = for ever."""
        return self._settings.expires_ns / SECOND_NS - self.age_s if self._settings.expires_ns else None

    async def release(self) -> None:
        """Give the slot back; harmless when repeated. Raises `ClientError` if the server cannot be reached."""
        if self._released:
            return
        self._released = True
        self._on_released(self)
        self._stop.set()
        if self._renewing is not None:
            # A renewal under way is finished, so that it is known which message is to be deleted.
            await self._renewing
        own = [] if self._keep_until_expiry else [self.sequence]
        for sequence in own + self._replaced:
            await self._delete(sequence)
        await events.publish(
            self._api.connection,
            "exit",
            governor=self.governor,
            identity=self._identity,
            component=self._component,
            sequence=self.sequence,
        )
        if not self._keep_until_expiry:
            await vacancies.announce(self._api.connection, self._settings.subject)

    async def _delete(self, sequence: int) -> None:
        deadline_s = time.monotonic() + RELEASE_S_MAX
        while True:
            try:
                await delete_lease(self._api, self.governor, sequence)
            except ApiError as error:
                if error.code < 500 or time.monotonic() >= deadline_s:
                    raise
            except ClientError as error:
                if time.monotonic() >= deadline_s:
                    text = f"slot {sequence} of {self.governor} could not be given back: {error}"
                    raise reworded(error, f"{text}; it becomes free when the lease expires") from error
            else:
                return
            await asyncio.sleep(jittered(RELEASE_RETRY_S))

    async def _keep_renewing(self) -> None:
        """Renew at a third of the lease's time if a slot is free, and at two thirds in any case."""
        third_s = self._settings.expires_ns / SECOND_NS / 3
        ballot, has_failed = self._ballot(), False
        while not self.lost.is_set():
            delay_s = min(RELEASE_RETRY_S, third_s) if has_failed else third_s - self.age_s % third_s
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), delay_s)
            if self._stop.is_set():
                break
            began_s = time.monotonic()
            try:
                await self._delete_replaced()
                # The last try may have failed after the lease was renewed.
                if self.age_s >= third_s and await self._renew(ballot, may_swap=self.age_s >= 2 * third_s):
                    self._entered_s, ballot = began_s, self._ballot()
                    await self._delete_replaced()
                has_failed = False
            except ClientError as error:
                _log.warning("governor %s: %s", self.governor, error)
                has_failed = True
                if self.is_expired:
                    self.lost.set()
        await self._withdraw(ballot)

    async def _withdraw(self, ballot: Ballot) -> None:
        """Remove the second lease that a renewal without an answer may have left."""
        deadline_s = time.monotonic() + RELEASE_S_MAX
        while not await ballot.withdraw():
            if time.monotonic() >= deadline_s:
                _log.warning("governor %s: no answer; a renewed lease may remain until it expires", self.governor)
                return
            await asyncio.sleep(jittered(RELEASE_RETRY_S))

    async def _delete_replaced(self) -> None:
        while self._replaced:
            await delete_lease(self._api, self.governor, self._replaced[0])
            del self._replaced[0]

    async def _renew(self, ballot: Ballot, *, may_swap: bool) -> bool:
        renewed = await renew(
            self._api, self.governor, self._settings.subject, self.sequence, ballot, may_swap=may_swap
        )
        if renewed is None:
            _log.warning("governor %s: the lease %d is lost; the work goes on without", self.governor, self.sequence)
            self.lost.set()
            return False
        if not renewed:
            return False
        self._replaced.append(self.sequence)
        self.sequence = renewed
        self.renewals += 1
        return True

    def _ballot(self) -> Ballot:
        return Ballot(self._api, self.governor, self._settings.subject, self.holder)
