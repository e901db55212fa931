"""`OrderedReader`: the messages of a stream in order, many at a time, with a limit on what waits in memory.

```python
reader = OrderedReader(api, "KV_CFG", subjects=["$KV.CFG.>"], start=Start(last_per_subject=True))
pending = await reader.open()
messages = await reader.batch()
```

It creates a consumer for itself and pulls from it, so that a slow reader slows the server down instead of filling
memory. A consumer that is lost, because its server was restarted or the connection moved to another server, is
recreated after the last message that was handed out.

Invariant: `batch` hands out every message once and in the order of the stream; at most `window_messages` and about
`window_bytes` are under way or waiting.
"""

import asyncio
import math
from typing import Any, NamedTuple
from uuid import uuid4

from jetlake.client.api import Api, encoded, token
from jetlake.client.channel import Channel, Inbox, header_value
from jetlake.client.lean_parser import RawMessage
from jetlake.client.pulls import Start
from jetlake.errors import ApiError, ClientError

__all__ = ["MessagePosition", "OrderedReader", "RawMessages", "position_of"]

WINDOW_MESSAGES = 4096
"""Messages under way at once: what a server sends in some ten milliseconds, so that it never waits for us."""

WINDOW_BYTES = 8 * 1024 * 1024
"""Bytes one pull may bring, unless the server takes larger messages."""

EXPIRES_S = 30.0
"""A pull that waits for messages is sent again after this time."""

HEARTBEAT_S = 2.0
"""How often the server says that a waiting pull is still known."""

SILENCE_S_MAX = 5.0
"""Two heartbeats and a half: the consumer is gone, or the server is."""

CAUGHT_UP_CHECK_S = 1.0
"""After this much silence a reader asks whether anything is left: the last message may have been removed meanwhile."""

TICK_S = 0.5
"""How often a waiting reader checks whether the connection has moved to another server."""

INACTIVE_S = 300
"""The server removes a reader's consumer that has had no pull for this long."""

RECOVER_S_MAX = 60.0
"""An election in a cluster takes up to some ten seconds; a reader waits for several before it gives up."""

PAUSE_S_FIRST, PAUSE_S_MAX = 0.1, 2.0
"""Between two attempts to make a consumer."""

NO_STREAM = 10059
NO_MESSAGE = 10037

SECOND = 1_000_000_000

RawMessages = list[RawMessage]


class MessagePosition(NamedTuple):
    """Where a message stands."""

    sequence: int
    delivered: int
    created_ns: int
    # Matching messages that come after it.
    pending: int


def position_of(reply: bytes) -> MessagePosition:
    """Return the position that the reply subject of a delivered message tells."""
    words = reply.split(b".")
    # With a domain two more tokens come first.
    first = 5 if len(words) == 9 else 7
    sequence, delivered, created_ns, pending = map(int, words[first : first + 4])
    return MessagePosition(sequence, delivered, created_ns, pending)


class OrderedReader:
    """Reads one stream. Methods raise `ApiError` when the server refuses and `ClientError` when it stays away."""

    def __init__(
        self,
        api: Api,
        stream: str,
        *,
        subjects: list[str],
        start: Start,
        headers_only: bool = False,
        window_messages: int = WINDOW_MESSAGES,
        patience_s: float = RECOVER_S_MAX,
    ) -> None:
        self._api = api
        self._channel = Channel.of(api.connection)
        self._stream = token(stream)
        self._subjects = subjects
        self._start = start
        self._headers_only = headers_only
        self._window_messages = window_messages
        # How long a lost consumer is tried to be made again.
        self._patience_s = patience_s
        self._consumer = ""
        self._inbox: Inbox | None = None
        # What has come and is not handed out, statuses included; the parser fills it.
        self.messages: RawMessages = []
        self._signal = asyncio.Event()
        # Messages the server may still send.
        self._outstanding = 0
        self._delivered = 0
        # Messages that were there when the consumer was made.
        self._pending = 0
        self._is_caught_up = False
        # What was the last message when reading began, in a cluster.
        self._wanted_sequence = 0
        self._last_sequence = 0
        # Messages up to here were handed out by a consumer before this one.
        self._skipped_sequence = 0
        self._heard_s = 0.0
        self._reconnects = 0
        self._problem = ""

    async def open(self) -> int:
        """Make the consumer and return how many messages wait in the stream."""
        deadline = asyncio.get_running_loop().time() + min(self._patience_s, RECOVER_S_MAX)
        if self._channel.is_clustered and not self._start.new:
            self._wanted_sequence = await self._last_at_leader()
        while True:
            try:
                return await self._create(self._start)
            except ClientError as error:
                if not self._api.is_temporary(error) or asyncio.get_running_loop().time() > deadline:
                    raise
            await asyncio.sleep(PAUSE_S_FIRST)

    async def batch(self, timeout_s: float = math.inf) -> RawMessages:
        """Return the messages that have come, at least one.

        The list is empty if `timeout_s` passes first, or if a reader that had to start over has found nothing new.
        """
        deadline = asyncio.get_running_loop().time() + timeout_s
        while True:
            if self.messages and (taken := self._drain()):
                if self._is_complete(taken):
                    await self._replenish()
                    if self._skipped_sequence:
                        taken = self._unseen(taken)
                    return taken
                await self._recover()
                continue
            if self._problem:
                await self._recover()
                continue
            await self._replenish()
            left_s = deadline - asyncio.get_running_loop().time()
            if left_s <= 0:
                return []
            await self._wait(min(left_s, TICK_S))

    async def initial(self) -> RawMessages:
        """Return the next messages of those that were there at the beginning; none when they are all handed out.

        Later messages may be among the last of them.
        """
        while not self._is_caught_up:
            is_late = self._last_sequence < self._wanted_sequence
            taken = await self.batch(CAUGHT_UP_CHECK_S if self._delivered < self._pending or is_late else 0)
            if taken:
                is_end = self._delivered >= self._pending or not position_of(taken[-1][1]).pending
                self._is_caught_up = is_end and self._last_sequence >= self._wanted_sequence
                return taken
            if is_late:
                # The message may be gone, or the server that has our consumer is still far behind.
                self._wanted_sequence = await self._last_at_leader()
            elif self._delivered >= self._pending or await self._is_drained():
                self._is_caught_up = True
        return []

    async def close(self) -> None:
        """Stop reading and remove the consumer."""
        await self._forget()

    # What comes in.

    def notify(self) -> None:
        """Called by the parser when messages have come."""
        self._heard_s = asyncio.get_running_loop().time()
        self._signal.set()

    def _drain(self) -> RawMessages:
        """Return what has come, and obey the statuses among it."""
        taken, self.messages = self.messages, []
        self._signal.clear()
        # Only statuses have no reply.
        statuses = [headers for _, reply, headers, _ in taken if not reply]
        if statuses:
            taken = [message for message in taken if message[1]]
        self._outstanding -= len(taken)
        for headers in statuses:
            self._obey(headers)
        return taken

    def _obey(self, headers: bytes) -> None:
        status = headers[9:12]
        if status == b"100":
            return
        # The pull is over; what it had left will not come.
        left = header_value(headers, b"Nats-Pending-Messages")
        self._outstanding = max(0, self._outstanding - int(left)) if left else 0
        if status not in (b"404", b"408") and b"MaxBytes" not in headers and b"Batch Completed" not in headers:
            self._problem = headers[9:].split(b"\r\n", 1)[0].decode(errors="replace")

    async def _wait(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        timer = loop.call_later(seconds, self._signal.set)
        try:
            await self._signal.wait()
        finally:
            timer.cancel()
        self._signal.clear()
        if self.messages:
            return
        if self._channel.is_closed:
            raise ClientError(f"the connection is closed: {self._stream} cannot be read any further")
        is_silent = loop.time() - self._heard_s > SILENCE_S_MAX
        if is_silent or self._channel.reconnects != self._reconnects:
            await self._recover()

    def _is_complete(self, taken: RawMessages) -> bool:
        """Tell whether nothing is missing between the last message and these, and move on past them."""
        first, last = position_of(taken[0][1]), position_of(taken[-1][1])
        if first.delivered != self._delivered + 1 or last.delivered != self._delivered + len(taken):
            return False
        self._delivered = last.delivered
        self._last_sequence = max(self._last_sequence, last.sequence)
        return True

    async def _last_at_leader(self) -> int:
        """Return the sequence of the last message that the leader of the stream has; 0 = there is none.

        In a cluster the consumer may be on a server that does not have the last messages yet, and does not know it.
        """
        last = 0
        for subject in self._subjects:
            try:
                answer = await self._api.insist(f"STREAM.MSG.GET.{self._stream}", {"last_by_subj": subject})
            except ApiError as error:
                if error.error_code != NO_MESSAGE:
                    raise
            else:
                last = max(last, int(answer["message"]["seq"]))
        return 0 if last < self._start.sequence else last

    async def _is_drained(self) -> bool:
        """Ask the server whether nothing is left that a silent consumer could send."""
        try:
            info = await self._api.find(f"CONSUMER.INFO.{self._stream}.{self._consumer}")
        except ClientError as error:
            if self._api.is_temporary(error):
                return False
            raise
        if info is None or info["num_pending"] or self.messages:
            return False
        # What was sent and has not come is on its way, or lost with its connection.
        return int(info["delivered"]["consumer_seq"]) == self._delivered

    def _unseen(self, taken: RawMessages) -> RawMessages:
        unseen = [each for each in taken if position_of(each[1]).sequence > self._skipped_sequence]
        if unseen:
            self._skipped_sequence = 0
        return unseen

    # What goes out.

    async def _replenish(self) -> None:
        """Pull when half of the window is free."""
        free = self._window_messages - self._outstanding
        if free * 2 < self._window_messages:
            return
        request: dict[str, Any] = {
            "batch": free,
            "expires": round(EXPIRES_S * SECOND),
            "idle_heartbeat": round(HEARTBEAT_S * SECOND),
        }
        if not self._headers_only:
            request["max_bytes"] = max(WINDOW_BYTES, 2 * self._channel.payload_bytes_max)
        assert self._inbox is not None
        if not self._outstanding:
            # Nothing was requested until now, so silence was normal.
            self._heard_s = asyncio.get_running_loop().time()
        self._outstanding += free
        subject = self._api.access.api_subject(f"CONSUMER.MSG.NEXT.{self._stream}.{self._consumer}")
        await self._channel.publish(subject, encoded(request), reply=self._inbox.subject)

    async def _create(self, start: Start) -> int:
        self._reconnects = self._channel.reconnects
        self._inbox = await self._channel.collect(self)
        self.messages, self._outstanding, self._delivered, self._problem = [], 0, 0, ""
        self._heard_s = 0.0
        name = f"jetlake_{uuid4().hex[:12]}"
        config: dict[str, Any] = {
            "name": name,
            "ack_policy": "none",
            "max_deliver": 1,
            "mem_storage": True,
            "num_replicas": 1,
            "inactive_threshold": INACTIVE_S * SECOND,
            **start.settings(),
        }
        if self._headers_only:
            config["headers_only"] = True
        subject = f"CONSUMER.CREATE.{self._stream}.{name}"
        if len(self._subjects) == 1:
            config["filter_subject"] = self._subjects[0]
            subject += f".{self._subjects[0]}"
        else:
            config["filter_subjects"] = self._subjects
        try:
            made = await self._api.request(subject, {"stream_name": self._stream, "config": config})
        except BaseException:
            await self._inbox.close()
            self._inbox = None
            raise
        self._consumer = name
        if start.new:
            # Where it began is where another one has to begin if this one is lost.
            self._last_sequence = max(self._last_sequence, int(made["delivered"]["stream_seq"]))
        self._pending = int(made["num_pending"])
        await self._replenish()
        return self._pending

    async def _recover(self) -> None:
        """Create another consumer that continues after the last message."""
        await self._forget()
        loop = asyncio.get_running_loop()
        deadline, pause_s = loop.time() + self._patience_s, PAUSE_S_FIRST
        while True:
            try:
                await self._create(self._resumed())
            except ClientError as error:
                gone = isinstance(error, ApiError) and error.error_code == NO_STREAM
                if gone or self._channel.is_closed or loop.time() > deadline:
                    raise
                await asyncio.sleep(pause_s)
                pause_s = min(pause_s * 2, PAUSE_S_MAX)
            else:
                return

    def _resumed(self) -> Start:
        if self._start.new:
            return Start(sequence=self._last_sequence + 1)
        if not self._last_sequence:
            return self._start
        if self._start.last_per_subject:
            # The last values again, without those that were handed out: older ones would be out of place.
            self._skipped_sequence = self._last_sequence
            return self._start
        return Start(sequence=self._last_sequence + 1)

    def follow_all(self) -> None:
        """After the last value of each subject, a lost reader continues with every later message."""
        self._start = Start()
        self._skipped_sequence = 0

    async def _forget(self) -> None:
        inbox, self._inbox = self._inbox, None
        if inbox is None:
            return
        await inbox.close()
        if self._consumer and not self._channel.is_closed:
            # Nobody waits for the answer: a consumer that is not removed goes away by itself.
            subject = self._api.access.api_subject(f"CONSUMER.DELETE.{self._stream}.{self._consumer}")
            await self._channel.publish(subject, reply=inbox.subject)
        self._consumer = ""
