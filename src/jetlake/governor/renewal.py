"""Renewing a lease: a younger message takes the place of an older one, and nobody gets in between.

A message cannot be made younger, so a renewed lease is another message. If a slot is free, the new one is published
first, and the holder deletes the old one then: for an instant it has two, and the governor is never exceeded. If all
slots are taken, the old one must go first, and another campaigner may be faster than the new one. So the holder
announces that it is renewing, by subscribing to a subject beside that of the governor, before it deletes; a campaigner
that gets a slot asks there, and gives the slot back if there is an answer.

Choria's campaigners do not ask. If one of them is faster, the holder has lost its lease and is told so.

Invariant: a holder deletes its last lease only while it is subscribed to the guard's subject.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from jetlake.client.api import Api
from jetlake.client.connection import flush
from jetlake.errors import ApiError, ClientError
from jetlake.governor import catalog
from jetlake.governor.ballot import Ballot, Entered, Full, delete_lease
from jetlake.governor.layout import side_subject

if TYPE_CHECKING:
    from nats.aio.client import Client

ASK_S_MAX = 1.0
"""A renewing holder answers at once; if there is none, the server itself says so."""

GUARD_SPREAD_S = 0.2
"""How long until all servers of a cluster know that the guard's subject has a subscriber."""

SWAP_S_MAX = 10.0
"""How long a holder tries to get its slot back before it counts as lost."""

SWAP_RETRY_S = 0.05
"""Pause between two tries to get a slot back: the campaigner that got it is about to release it."""


async def is_renewing(connection: "Client", subject: str) -> bool:
    """Tell whether some holder of this governor is renewing its lease at this moment."""
    from nats.errors import Error, NoRespondersError

    try:
        await connection.request(side_subject(subject, "renewing"), b"", timeout=ASK_S_MAX)
    except NoRespondersError:
        return False
    except (TimeoutError, Error, OSError):
        # Not permitted, or gone meanwhile.
        return False
    return True


@asynccontextmanager
async def guarded(connection: "Client", subject: str) -> AsyncIterator[None]:
    """Answer every campaigner that asks whether a holder is renewing. Raises `ClientError` without a connection."""
    from nats.errors import Error

    async def answer(message: Any) -> None:
        with suppress(Error, OSError):
            await message.respond(b"renewing")

    subscription = None
    try:
        try:
            subscription = await connection.subscribe(side_subject(subject, "renewing"), cb=answer)
            await flush(connection)
        except (Error, OSError, TimeoutError) as error:
            raise ClientError(f"the renewal of a lease could not be announced: {error}") from error
        await asyncio.sleep(GUARD_SPREAD_S)
        yield
    finally:
        if subscription is not None:
            with suppress(Error, OSError):
                await subscription.unsubscribe()


async def renew(api: Api, name: str, subject: str, sequence: int, ballot: Ballot, *, may_swap: bool) -> int | None:
    """Return the sequence of the renewed lease; 0 = all slots are taken and `may_swap` is False; None = it is lost.

    The caller deletes the old lease, which is there still if a slot was free. It must know of the new one before: the
    answer to a deletion can be lost, and then the new one is all that the holder has.

    Raises `ClientError` when the server does not answer; then the lease is what it was, and it can be tried again.
    """
    if await catalog.lease_at(api, name, sequence, timeout_s=ASK_S_MAX) is None:
        return None
    outcome = await ballot.cast()
    if isinstance(outcome, Entered):
        ballot.mark_owned()
        return outcome.sequence
    if not isinstance(outcome, Full):
        raise ClientError(f"the lease {sequence} of {name} could not be renewed: {outcome.reason}")
    if not may_swap:
        return 0
    async with guarded(api.connection, subject):
        if not await _give_up(api, name, sequence):
            return None
        return await _take_back(ballot)


async def _give_up(api: Api, name: str, sequence: int) -> bool:
    """Delete the last lease; False = another client did it. One that is gone after a try without an answer is ours."""
    deadline_s, may_be_deleted = time.monotonic() + SWAP_S_MAX, False
    while True:
        try:
            return await delete_lease(api, name, sequence) or may_be_deleted
        except ClientError as error:
            is_final = isinstance(error, ApiError) and error.code < 500
            if is_final or time.monotonic() >= deadline_s:
                raise
            may_be_deleted = True
        await asyncio.sleep(SWAP_RETRY_S)


async def _take_back(ballot: Ballot) -> int | None:
    """Get back the slot that was just released; None = another campaigner has it."""
    deadline_s = time.monotonic() + SWAP_S_MAX
    while True:
        outcome = await ballot.cast()
        if isinstance(outcome, Entered):
            ballot.mark_owned()
            return outcome.sequence
        if time.monotonic() >= deadline_s:
            await ballot.withdraw()
            return None
        await asyncio.sleep(SWAP_RETRY_S)
