"""Events as they come, for one client that may be slow.

Nothing of the past is sent. A client that does not keep up loses events, and the next one it gets says how many: it can
then ask for the events after the last one it has.

Invariant: a client's buffer never has more than `subscription_buffer_max` events, and a full one never holds up the
others.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from jetlake.devices.codec import Event
from jetlake.devices.consumer import subscribe
from jetlake.devices.protos import api_pb2
from jetlake.devices.service.filters import event_filter
from jetlake.devices.session import UserSession, as_response
from jetlake.devices.subjects import ALL, Family
from jetlake.errors import DeviceError

if TYPE_CHECKING:
    from nats.aio.subscription import Subscription

SUBSCRIPTIONS_MAX = 100
"""Of one client."""

ANSWERS_MAX = 100
"""To requests of one client that it has not read yet."""

_Filter = api_pb2.SubscribeToEventsRequest.CreateSubscription.Event

TYPE_OF_FILTER = {
    _Filter.DEVICE_METADATA_UPDATED: "devicemetadataupdated",
    _Filter.DEVICE_METADATA_UPDATE_PENDING: "devicemetadataupdatepending",
    _Filter.RESOURCE_PUBLISHED: "resourcelinkspublished",
    _Filter.RESOURCE_UNPUBLISHED: "resourcelinksunpublished",
    _Filter.RESOURCE_UPDATE_PENDING: "resourceupdatepending",
    _Filter.RESOURCE_UPDATED: "resourceupdated",
    _Filter.RESOURCE_RETRIEVE_PENDING: "resourceretrievepending",
    _Filter.RESOURCE_RETRIEVED: "resourceretrieved",
    _Filter.RESOURCE_DELETE_PENDING: "resourcedeletepending",
    _Filter.RESOURCE_DELETED: "resourcedeleted",
    _Filter.RESOURCE_CREATE_PENDING: "resourcecreatepending",
    _Filter.RESOURCE_CREATED: "resourcecreated",
    _Filter.RESOURCE_CHANGED: "resourcechanged",
}


class _Live:
    """One subscription of a client."""

    def __init__(self, subscriptions: "list[Subscription]") -> None:
        self.subscriptions = subscriptions
        self.dropped = 0


class Subscriptions:
    """All subscriptions of one client."""

    def __init__(self, session: UserSession) -> None:
        self._session = session
        self._buffer_max = session.settings.subscription_buffer_max
        self._queue: asyncio.Queue[Any] = asyncio.Queue()
        self._live: dict[str, _Live] = {}
        self._waiting = 0
        self._room = asyncio.Semaphore(ANSWERS_MAX)

    async def run(self, requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Take requests and yield events until there are no more requests and no subscriptions."""
        reading = asyncio.create_task(self._read(requests))
        try:
            while True:
                answer = await self._queue.get()
                if answer is None:
                    break
                if answer.WhichOneof("type") == "event":
                    self._waiting -= 1
                else:
                    self._room.release()
                yield answer
            # Report an unreadable request to the client.
            await reading
        finally:
            reading.cancel()
            for live in list(self._live.values()):
                await self._end(live)
            self._live.clear()

    async def _read(self, requests: AsyncIterator[Any]) -> None:
        is_at_end = False
        try:
            async for request in requests:
                # Who asks without reading the answers waits.
                await self._room.acquire()
                self._queue.put_nowait(await self._answer(request))
            is_at_end = True
        finally:
            # A client that has said everything still listens if it has subscriptions.
            if not is_at_end or not self._live:
                self._queue.put_nowait(None)

    async def _answer(self, request: Any) -> Any:
        correlation_id = request.correlation_id
        try:
            match request.WhichOneof("action"):
                case "create_subscription":
                    name = await self._create(request.create_subscription)
                    return _processed(name, correlation_id)
                case "cancel_subscription":
                    return await self._cancel(request.cancel_subscription.subscription_id, correlation_id)
                case _:
                    raise DeviceError("INVALID_ARGUMENT", "say create_subscription or cancel_subscription")
        except DeviceError as error:
            return _processed("", correlation_id, str(error))

    async def _create(self, request: Any) -> str:
        if len(self._live) >= SUBSCRIPTIONS_MAX:
            raise DeviceError("RESOURCE_EXHAUSTED", f"a client has at most {SUBSCRIPTIONS_MAX} subscriptions")
        types = {TYPE_OF_FILTER[each] for each in request.event_filter if each in TYPE_OF_FILTER}
        if request.event_filter and not types:
            raise DeviceError("INVALID_ARGUMENT", "the bus does not carry registrations of devices")
        wanted, hrefs = event_filter(request), set(request.href_filter)
        name = str(uuid4())
        live = self._live[name] = _Live([])
        chosen = types or set(TYPE_OF_FILTER.values())

        def receive(event: Event) -> None:
            if event.event_type in chosen and _wants_href(event, hrefs):
                self._put(name, live, event)

        for subject in wanted.patterns or [ALL]:
            live.subscriptions.append(
                await subscribe(
                    self._session.api,
                    subject,
                    receive,
                    codec=self._session.codec,
                    pending_messages_max=self._session.settings.pending_messages_max,
                    pending_bytes_max=self._session.settings.pending_bytes_max,
                )
            )
        # What is stored after the client hears that all is well must reach it.
        await self._session.api.flush()
        return name

    def _put(self, name: str, live: _Live, event: Event) -> None:
        if self._waiting >= self._buffer_max:
            live.dropped += 1
            return
        answer = api_pb2.SubscriptionEvent(
            subscription_id=name, event=as_response(event.current()), dropped=live.dropped
        )
        live.dropped = 0
        self._waiting += 1
        self._queue.put_nowait(answer)

    async def _cancel(self, name: str, correlation_id: str) -> Any:
        live = self._live.pop(name, None)
        if live is None:
            raise DeviceError("NOT_FOUND", f"there is no subscription {name!r}")
        await self._end(live)
        return api_pb2.SubscriptionEvent(
            subscription_id=name,
            correlation_id=correlation_id,
            subscription_canceled=api_pb2.SubscriptionEvent.SubscriptionCanceled(),
        )

    async def _end(self, live: _Live) -> None:
        for subscription in live.subscriptions:
            if self._session.api.connection.is_connected:
                await subscription.unsubscribe()


def _wants_href(event: Event, hrefs: set[str]) -> bool:
    if not hrefs:
        return True
    return (
        event.key.family is Family.RESOURCES and event.message is not None and event.message.resource_id.href in hrefs
    )


def _processed(name: str, correlation_id: str, failure: str = "") -> Any:
    return api_pb2.SubscriptionEvent(
        subscription_id=name,
        correlation_id=correlation_id,
        operation_processed=api_pb2.SubscriptionEvent.OperationProcessed(ok=not failure, message=failure),
    )
