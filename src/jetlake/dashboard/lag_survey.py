"""`LagSurvey`: how far the consumers of an account are behind, found out a few streams at a time.

No request of JetStream's API returns the lag of all consumers, so the survey walks: each step lists one page of streams
or the consumers of some streams that have any.

Invariant: a step costs at most `STREAMS_PER_STEP` requests, however many streams there are; `total` is None until the
first walk is complete.
"""

import heapq
from typing import Any

import msgspec

from jetlake.client.api import Api, token
from jetlake.errors import ClientError

__all__ = ["LagSurvey", "LaggingConsumer"]

STREAMS_PER_STEP = 16
"""Streams whose consumers are read in one step: eight per second, which a busy server does not notice."""

WORST_MAX = 10
"""Consumers that are named; the overview is not a list."""


class LaggingConsumer(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """One consumer with messages to deliver or to acknowledge."""

    pending: int
    unacknowledged: int
    redelivered: int
    stream: str
    name: str


class LagSurvey:
    """A walk through streams and consumers that begins again when it has ended."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.total: int | None = None
        self.worst: list[LaggingConsumer] = []
        self._offset = 0
        self._is_listed = False
        # Streams whose consumers are still to be read, with the number of those that have been.
        self._queue: list[tuple[str, int]] = []
        self._found: list[LaggingConsumer] = []
        self._sum = 0

    async def advance(self) -> None:
        """Do one step. A user who may not list streams or consumers gets no figures."""
        try:
            for _ in range(STREAMS_PER_STEP):
                if self._queue:
                    await self._read_consumers(*self._queue.pop())
                elif not self._is_listed:
                    await self._list_streams()
                else:
                    break
        except ClientError:
            self._begin()
            return
        if self._is_listed and not self._queue:
            self.total, self.worst = self._sum, self._found
            self._begin()

    def _begin(self) -> None:
        self._offset, self._is_listed, self._queue, self._found, self._sum = 0, False, [], [], 0

    async def _list_streams(self) -> None:
        answer = await self._api.request("STREAM.LIST", {"offset": self._offset})
        page: list[dict[str, Any]] = answer.get("streams") or []
        self._offset += len(page)
        self._is_listed = not page or self._offset >= int(answer.get("total", 0))
        self._queue = [(each["config"]["name"], 0) for each in page if each["state"].get("consumer_count")]

    async def _read_consumers(self, stream: str, offset: int) -> None:
        answer = await self._api.request(f"CONSUMER.LIST.{token(stream)}", {"offset": offset})
        found = [
            LaggingConsumer(
                pending=int(each.get("num_pending", 0)),
                unacknowledged=int(each.get("num_ack_pending", 0)),
                redelivered=int(each.get("num_redelivered", 0)),
                stream=stream,
                name=str(each["name"]),
            )
            for each in answer.get("consumers") or []
        ]
        if found and offset + len(found) < int(answer.get("total", 0)):
            self._queue.append((stream, offset + len(found)))
        self._sum += sum(each.pending for each in found)
        behind = [each for each in found if each.pending or each.unacknowledged]
        self._found = heapq.nlargest(WORST_MAX, [*self._found, *behind])
