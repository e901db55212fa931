"""`Governor`: get a slot, do the work, give it back.

```python
async with Governor(server, "PUPPET") as governor:
    async with governor.slot(holder="web1.example.net", max_wait_s=1200) as lease:
        ...
```

The slot is given back when the block ends, by an exception or a cancellation too, and after SIGTERM, which ends the
block unless the program handles that signal itself. A program that is killed keeps its slot until the lease expires.
"""

import asyncio
import logging
import signal
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from types import TracebackType
from typing import Self

from jetlake.client.access import Access
from jetlake.client.api import Api, open_api
from jetlake.client.backoff import TWENTY_SECONDS_MS, BackOff, table
from jetlake.client.connection import HasUrl
from jetlake.client.uninterrupted import finish
from jetlake.errors import ClientError
from jetlake.governor import catalog, events
from jetlake.governor.campaign import Campaign, NoSlotError
from jetlake.governor.layout import DEFAULT_COLLECTIVE, GovernorSettings, check_collective, check_holder, check_name
from jetlake.governor.lease import Lease

LIBRARY = "Jetlake"
"""The component that events of programs name unless they say another."""

TERMINATED = 128 + signal.SIGTERM
"""The exit code of a program that SIGTERM has ended, as shells have it."""

_log = logging.getLogger(__name__)


class Governor:
    """One governor of a server. Every method raises `ClientError`.

    | usage                                    | effect                                                     |
    |------------------------------------------|------------------------------------------------------------|
    | `Governor(server, "PUPPET")`             | a server, its address, or an `Access`                      |
    | `Governor(api, "PUPPET")`                | an `Api` that is open already, and stays so                |
    | `Governor(server, "A", collective="eu")` | the governor of another collective than `mcollective`      |
    | `Governor(…, connect_wait_s=60)`         | a server that cannot be reached is retried for this long   |
    """

    def __init__(
        self,
        server: Api | Access | str | HasUrl,
        name: str,
        *,
        collective: str = DEFAULT_COLLECTIVE,
        connect_wait_s: float = 0.0,
    ) -> None:
        self.name = check_name(name)
        self.collective = check_collective(collective)
        self._server = server
        self._connect_wait_s = connect_wait_s
        self._opened = AsyncExitStack()
        self._api: Api | None = None
        # What nobody has released when the block ends is released then.
        self._leases: set[Lease] = set()

    async def __aenter__(self) -> Self:
        self._api = self._server if isinstance(self._server, Api) else await self._connect(self._server)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for lease in list(self._leases):
            await self._release_after_error(lease)
        await self._opened.aclose()
        self._api = None

    @property
    def api(self) -> Api:
        """The connection. Raises `ClientError` outside of `async with`."""
        if self._api is None:
            raise ClientError(f"governor {self.name} is not open: use it in `async with`")
        return self._api

    async def view(self) -> catalog.GovernorView:
        """Return what the governor is, and its leases."""
        return await catalog.view(self.api, self.name)

    @asynccontextmanager
    async def slot(
        self,
        *,
        holder: str = "",
        max_wait_s: float | None = None,
        back_off: BackOff | None = None,
        renew: bool = False,
        keep_until_expiry: bool = False,
        component: str = LIBRARY,
        identity: str = "",
        end_on_sigterm: bool = True,
    ) -> AsyncIterator[Lease]:
        """Get a slot, and give it back when the block ends. Raises `NoSlotError` after `max_wait_s`.

        `holder` is the name others see, this machine's unless given; events name `identity`, or else the holder. With
        `renew` the lease is renewed for as long as the block runs. With `keep_until_expiry` the slot stays taken until
        the lease expires, which limits how often something is done in that time rather than how many do it at once.
        """
        lease: Lease | None = None
        with _ends_on_sigterm(end_on_sigterm) as ended:
            try:
                lease = await self.enter(
                    holder=holder,
                    max_wait_s=max_wait_s,
                    back_off=back_off,
                    renew=renew,
                    keep_until_expiry=keep_until_expiry,
                    component=component,
                    identity=identity,
                )
                yield lease
            except BaseException:
                if lease is not None:
                    await self._release_after_error(lease)
                if ended():
                    raise SystemExit(TERMINATED) from None
                raise
            await finish(lease.release())

    async def enter(
        self,
        *,
        holder: str = "",
        max_wait_s: float | None = None,
        back_off: BackOff | None = None,
        renew: bool = False,
        keep_until_expiry: bool = False,
        component: str = LIBRARY,
        identity: str = "",
    ) -> Lease:
        """Get a slot, and return the lease, which the caller must release; the end of this block does it otherwise."""
        holder = check_holder(holder or socket.getfqdn())
        identity = identity or holder
        settings = await self._settings(max_wait_s)
        campaign = Campaign(self.api, self.name, settings.subject, holder, back_off=back_off, max_wait_s=max_wait_s)
        try:
            sequence = await campaign.run()
        except NoSlotError:
            if not keep_until_expiry:
                await self._tell("timeouts", identity, component)
            raise
        lease = Lease(
            self.api,
            settings,
            sequence,
            holder=holder,
            identity=identity,
            component=component,
            renew=renew,
            keep_until_expiry=keep_until_expiry,
            on_released=self._leases.discard,
        )
        self._leases.add(lease)
        try:
            await self._tell("enter", identity, component, sequence)
        except BaseException:
            # A caller that is cancelled here does not get the lease, so it could not release it.
            await finish(lease.release())
            raise
        return lease

    async def _settings(self, max_wait_s: float | None) -> GovernorSettings:
        """Return what the governor is; a server that does not answer at this moment is asked again."""
        begin_s, delay_s = time.monotonic(), table()
        for tries in range(1, ASK_TRIES_MAX + 1):
            try:
                settings = await catalog.find(self.api, self.name)
            except ClientError:
                waited_s = time.monotonic() - begin_s
                if tries == ASK_TRIES_MAX or (max_wait_s is not None and waited_s >= max_wait_s):
                    raise
                await asyncio.sleep(delay_s(tries))
                continue
            if settings is None:
                raise catalog.unknown(self.name)
            if settings.collective != self.collective:
                raise ClientError(
                    f"governor {self.name} belongs to the collective {settings.collective!r}, not to "
                    f"{self.collective!r}: give --collective {settings.collective}"
                )
            return settings
        raise AssertionError("the last try returns or raises")

    async def _tell(self, kind: events.EventType, identity: str, component: str, sequence: int = 0) -> None:
        await events.publish(
            self.api.connection, kind, governor=self.name, identity=identity, component=component, sequence=sequence
        )

    async def _release_after_error(self, lease: Lease) -> None:
        try:
            await finish(lease.release())
        except ClientError as error:
            # The error of the work is the better one to see.
            _log.warning("%s", error)

    async def _connect(self, server: Access | str | HasUrl) -> Api:
        deadline_s, delay_s, tries = time.monotonic() + self._connect_wait_s, table(TWENTY_SECONDS_MS), 0
        while True:
            tries += 1
            try:
                return await self._opened.enter_async_context(open_api(server, reconnect=True))
            except ClientError:
                left_s = deadline_s - time.monotonic()
                if left_s <= 0:
                    raise
                await asyncio.sleep(min(delay_s(tries), left_s))


ASK_TRIES_MAX = 12
"""How often a governor is looked up while its server does not answer; with the back-off that is half a minute."""


@contextmanager
def _ends_on_sigterm(wanted: bool) -> Iterator[Callable[[], bool]]:
    """Let SIGTERM cancel the current task, unless the program handles it; what is yielded tells whether it came."""
    task = asyncio.current_task()
    came = False

    def end() -> None:
        nonlocal came
        came = True
        if task is not None:
            task.cancel()

    is_ours = (
        wanted
        and threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    )
    if not is_ours:
        yield lambda: False
        return
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, end)
    try:
        yield lambda: came
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
