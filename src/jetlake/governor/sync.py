"""`Governor` for programs without asyncio: the same, in plain `with` statements.

```python
from jetlake.governor.sync import Governor

with Governor("nats://127.0.0.1:4222", "PUPPET") as governor, governor.slot(max_wait_s=60) as lease:
    ...
```

An event loop in a thread of its own does the work, so that leases are renewed while the program computes.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Self

from jetlake.client.access import Access
from jetlake.client.blocking import Background
from jetlake.client.connection import HasUrl
from jetlake.errors import ClientError
from jetlake.governor import catalog, governor
from jetlake.governor.governor import LIBRARY, TERMINATED
from jetlake.governor.layout import DEFAULT_COLLECTIVE
from jetlake.governor.lease import Lease


class Governor:
    """One governor of a server; see `jetlake.governor.Governor` for the arguments."""

    def __init__(
        self,
        server: Access | str | HasUrl,
        name: str,
        *,
        collective: str = DEFAULT_COLLECTIVE,
        connect_wait_s: float = 0.0,
    ) -> None:
        self._inner = governor.Governor(server, name, collective=collective, connect_wait_s=connect_wait_s)
        self._background: Background | None = None

    def __enter__(self) -> Self:
        if self._background is not None:
            raise ClientError(f"governor {self._inner.name} is open already: leave its block before you enter it again")
        self._background = Background(f"jetlake-governor-{self._inner.name}")
        try:
            self._background.enter(self._inner)
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._close()

    def view(self) -> catalog.GovernorView:
        """Return what the governor is, and its leases."""
        return self._opened.run(self._inner.view())

    @property
    def _opened(self) -> Background:
        if self._background is None:
            raise ClientError(f"governor {self._inner.name} is not open: use it in a `with` statement")
        return self._background

    def _close(self) -> None:
        background, self._background = self._background, None
        if background is not None:
            background.close()

    @contextmanager
    def slot(
        self,
        *,
        holder: str = "",
        max_wait_s: float | None = None,
        renew: bool = False,
        keep_until_expiry: bool = False,
        component: str = LIBRARY,
        end_on_sigterm: bool = True,
    ) -> Iterator[Lease]:
        """Get a slot, and give it back when the block ends. Raises `NoSlotError` after `max_wait_s`.

        Of the lease that is given only the properties can be used here; the end of the block releases it.
        """
        background = self._opened
        with _raises_on_sigterm(end_on_sigterm):
            entering = self._inner.enter(
                holder=holder,
                max_wait_s=max_wait_s,
                renew=renew,
                keep_until_expiry=keep_until_expiry,
                component=component,
            )
            lease = background.run(entering)
            try:
                yield lease
            finally:
                background.run(lease.release())


@contextmanager
def _raises_on_sigterm(wanted: bool) -> Iterator[None]:
    """Let SIGTERM raise `SystemExit` instead of ending the process on the spot, unless the program handles it."""
    is_ours = (
        wanted
        and threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    )
    if not is_ours:
        yield
        return

    def end(_number: int, _frame: FrameType | None) -> Any:
        # A second one must not interrupt the release.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise SystemExit(TERMINATED)

    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
