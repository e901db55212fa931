"""`Background`: an event loop in a thread of its own, for the blocking forms of asynchronous libraries.

```python
background = Background()
entry = background.run(bucket.get("key"))
background.close()
```

Invariant: a coroutine given to `run` has ended when `run` returns or raises, and is cancelled if the caller is
interrupted. After `close` the thread has ended, and everything that was entered has been left.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Coroutine, Iterator
from concurrent.futures import CancelledError
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from typing import Any, TypeVar

from jetlake.errors import ClientError
from jetlake.shared.cancellation import cancel

__all__ = ["Background"]

T = TypeVar("T")


class Background:
    """Runs coroutines for threads that know nothing of event loops."""

    def __init__(self, name: str = "jetlake-background") -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()
        self._stack = AsyncExitStack()

    def run(self, work: Awaitable[T]) -> T:
        """Wait for a coroutine and return what it returns; what it raises is raised here."""
        if threading.current_thread() is self._thread:
            raise RuntimeError("the blocking form is called inside an event loop: use the asynchronous one there")
        if self._loop.is_closed():
            if isinstance(work, Coroutine):
                work.close()
            raise ClientError(f"{self._thread.name} is closed: use it in a `with` statement")

        async def wait() -> T:
            return await work

        coroutine: Coroutine[Any, Any, T] = wait()
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except BaseException:
            if not future.done():
                # Ctrl-C ends the wait; the work must not continue afterwards, nor be left half done.
                future.cancel()
                with suppress(CancelledError, Exception):
                    future.result()
            raise

    def enter(self, context: AbstractAsyncContextManager[T]) -> T:
        """Enter a context, which `close` leaves."""
        return self.run(self._stack.enter_async_context(context))

    def iterate(self, items: AsyncIterator[T]) -> Iterator[T]:
        """Yield what an asynchronous iterator yields."""
        while True:
            try:
                item = self.run(anext(items))
            except StopAsyncIteration:
                return
            yield item

    def close(self) -> None:
        """Leave everything that was entered, and end the thread."""
        if self._loop.is_closed():
            return
        try:
            self.run(self._stack.aclose())
            self.run(_finish())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()


async def _finish() -> None:
    """Cancel the tasks that libraries have left."""
    left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    await cancel(*left)
    # Nobody is left to whom their failures could matter.
    await asyncio.gather(*left, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()
