"""`NodeAgent`: one process on a node, with one connection and the parts that use it.

```python
agent = NodeAgent(options, access, [Lifecycle(options), *registration_parts(options)], report)
await agent.run(stopping)
```

A part runs until it is cancelled, and then may say its last words. One that fails is started again after a pause; the
others do not notice.

Invariant: while the agent runs, every part runs or waits for its next start. `run` returns after every part has ended.
"""

import asyncio
import contextlib
import random
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

from jetlake.agents.options import NodeOptions
from jetlake.client.access import Access, connect
from jetlake.client.api import COMPLAINTS_MAX, Api
from jetlake.client.connection import flush
from jetlake.errors import ClientError, JetlakeError
from jetlake.shared.cancellation import cancel

if TYPE_CHECKING:
    from nats.aio.client import Client

__all__ = ["LocalNode", "NodeAgent", "Part", "Report"]

Report: TypeAlias = Callable[[str, str], None]
"""Takes a level (info, warning, error) and a line."""

PAUSES_S = (0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0)
"""Between attempts to connect, and before a failed part runs again; the last one repeats."""

FINISH_S_MAX = 5.0
"""For the last words of all parts together."""

CONNECTED_CHECK_S = 0.2
"""How soon a part that waits for the connection notices that it is back."""


class LocalNode:
    """What a part sees: the node's identity, and its connection, which may come later or never."""

    def __init__(
        self,
        options: NodeOptions,
        connection: "Client | None",
        report: Report,
        access: Access | None = None,
    ) -> None:
        self.options = options
        self.report = report
        self._access = access or Access()
        self._connection = connection
        self._api: Api | None = None

    @property
    def connection(self) -> "Client":
        """The connection. Raises `ClientError` as long as there is none."""
        if self._connection is None:
            raise ClientError("there is no connection to a server yet")
        return self._connection

    @property
    def is_connected(self) -> bool:
        return self._connection is not None and self._connection.is_connected

    def set_connection(self, connection: "Client") -> None:
        """Give the node its first connection."""
        self._connection = connection

    @property
    def payload_bytes_max(self) -> int:
        return int(self.connection.max_payload)

    def api(self) -> Api:
        """Return the JetStream API over this connection. Raises `ClientError` while the server is away."""
        if not self.is_connected:
            raise ClientError("there is no connection to a server")
        if self._api is None:
            self._api = Api(self.connection, self._access, deque(maxlen=COMPLAINTS_MAX))
        return self._api

    async def wait_connected(self) -> None:
        """Return when the connection is there: at once, or after it has come back."""
        # nats-py reports a new connection to one callback only, and that belongs to the code that connected.
        while not self.is_connected:  # noqa: ASYNC110
            await asyncio.sleep(CONNECTED_CHECK_S)

    async def publish(self, subject: str, payload: bytes) -> None:
        """Publish a message, and return when the server has it. Raises `ClientError`."""
        await self.publish_all([(subject, payload)])

    async def publish_all(self, messages: Sequence[tuple[str, bytes]]) -> None:
        """Publish messages, and return when the server has all of them. Raises `ClientError`."""
        from nats.errors import Error

        await self.wait_connected()
        for subject, payload in messages:
            if len(payload) > self.payload_bytes_max:
                raise ClientError(
                    f"a message of {len(payload):,} bytes for {subject} is larger than the server's max_payload of "
                    f"{self.payload_bytes_max:,}"
                )
        try:
            for subject, payload in messages:
                await self.connection.publish(subject, payload)
            await flush(self.connection)
        except (Error, OSError, TimeoutError) as error:
            names = ", ".join(dict.fromkeys(subject for subject, _ in messages))
            raise ClientError(f"{names} could not be published: {str(error) or type(error).__name__}") from error


class Part(Protocol):
    """Something that runs on a node. `name` is for log lines."""

    name: str

    async def run(self, node: LocalNode) -> None:
        """Work until cancelled. Returning means that there is nothing more to do."""

    async def finish(self, node: LocalNode) -> None:
        """Say the last words; called only while the connection is there."""


class NodeAgent:
    """One node."""

    def __init__(self, options: NodeOptions, access: Access | None, parts: Sequence[Part], report: Report) -> None:
        self._options = options
        # None = the node works without a server.
        self._access = access
        self._parts = parts
        self._report = report

    async def run(self, stopping: asyncio.Event) -> None:
        """Run all parts until `stopping` is set. They begin at once, and wait for the connection if they need it."""
        node = LocalNode(self._options, None, self._report, self._access)
        tasks = [asyncio.create_task(self._keep_running(part, node), name=part.name) for part in self._parts]
        connection: Client | None = None
        try:
            if self._access is not None:
                connection = await self._connect(self._access, stopping)
                if connection is not None:
                    self._report("info", f"{self._options.identity}: connected to {self._access.shown}")
                    node.set_connection(connection)
            await stopping.wait()
        finally:
            await cancel(*tasks)
            await self._finish(node)
            if connection is not None:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(connection.close(), FINISH_S_MAX)
        self._report("info", f"{self._options.identity}: stopped")

    async def _connect(self, access: Access, stopping: asyncio.Event) -> "Client | None":
        """Return a connection as soon as there is one; None when it is time to stop before."""
        tries = 0
        while not stopping.is_set():
            try:
                return await connect(
                    access, reconnect=True, on_error=lambda error: self._report("warning", f"connection: {error}")
                )
            except ClientError as error:
                if tries == 0:
                    self._report("error", f"{error}; trying until it works")
                tries += 1
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(stopping.wait(), _pause_s(tries))
        return None

    async def _keep_running(self, part: Part, node: LocalNode) -> None:
        tries = 0
        while True:
            try:
                await part.run(node)
            except JetlakeError as error:
                tries += 1
                self._report("error", f"{part.name}: {error}")
            except Exception as error:  # noqa: BLE001 - a bug in one part must not end the others
                tries += 1
                self._report("error", f"{part.name}: a bug, please report it: {type(error).__name__}: {error}")
            else:
                return
            await asyncio.sleep(_pause_s(tries))

    async def _finish(self, node: LocalNode) -> None:
        async def all_of_them() -> None:
            for part in self._parts:
                try:
                    await part.finish(node)
                except JetlakeError as error:
                    self._report("warning", f"{part.name}: {error}")

        if not node.is_connected:
            # Nobody would hear the last words.
            return
        try:
            await asyncio.wait_for(all_of_them(), FINISH_S_MAX)
        except TimeoutError:
            self._report("warning", "the connection is gone: the last events could not be sent")


def _pause_s(tries: int) -> float:
    return PAUSES_S[min(max(tries, 1), len(PAUSES_S)) - 1] * random.uniform(0.5, 1.5)
