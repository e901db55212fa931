"""Waiting for the device's answer to one command.

Invariant: a waiter subscribes before the command is stored, so an answer that comes at once is not missed.
"""

import asyncio
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from jetlake.client.api import Api
from jetlake.devices.aggregate.resource import CommandKind
from jetlake.devices.codec import Event, EventCodec
from jetlake.devices.consumer import subscribe
from jetlake.devices.subjects import AggregateKey
from jetlake.errors import DeviceError

if TYPE_CHECKING:
    from nats.aio.subscription import Subscription

WAIT_S_MAX = 600.0
"""To wait longer, a caller asks for the pending commands instead."""


class Confirmation:
    """The confirmation of one command, if it comes."""

    def __init__(self, api: Api, codec: EventCodec, key: AggregateKey, kind: CommandKind, correlation_id: str) -> None:
        self._api = api
        self._codec = codec
        self._subject = key.subject(kind.confirmed_type)
        self._correlation_id = correlation_id
        self._found: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._subscription: Subscription

    async def __aenter__(self) -> Self:
        self._subscription = await subscribe(self._api, self._subject, self._look, codec=self._codec)
        await self._api.flush()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._api.connection.is_connected:
            await self._subscription.unsubscribe()

    async def wait(self, seconds: float) -> Any:
        """Return the confirming event. Raises `DeviceError` if it does not come in time; the command stays pending."""
        try:
            async with asyncio.timeout(min(seconds, WAIT_S_MAX)):
                return await self._found
        except TimeoutError as error:
            raise DeviceError(
                "DEADLINE_EXCEEDED",
                f"the device did not confirm {self._correlation_id!r} within {min(seconds, WAIT_S_MAX):g} s; "
                "the command is still pending",
            ) from error

    def _look(self, event: Event) -> None:
        message = event.current()
        if (
            message is not None
            and message.audit_context.correlation_id == self._correlation_id
            and not self._found.done()
        ):
            self._found.set_result(message)
