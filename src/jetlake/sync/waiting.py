"""`Waiting`: runs coroutines for a blocking client, and turns what nats-py raises into errors of ours.

Invariant: a caller sees `ClientError` and its kinds only.
"""

from collections.abc import AsyncGenerator, Awaitable, Iterator
from typing import TypeVar

from jetlake.client.blocking import Background
from jetlake.errors import ClientError

__all__ = ["Waiting"]

T = TypeVar("T")


class Waiting:
    """The thread of one client."""

    def __init__(self, background: Background) -> None:
        self.background = background

    def run(self, work: Awaitable[T], *, what: str) -> T:
        """Wait for a coroutine; `what` says in errors what was being done, such as `publish to 'a'`."""
        from nats.errors import ConnectionClosedError, Error, NoRespondersError

        try:
            return self.background.run(work)
        except NoRespondersError as error:
            raise ClientError(f"cannot {what}: no service is listening on this subject") from error
        except ConnectionClosedError as error:
            raise ClientError(f"cannot {what}: the connection is closed; connect again") from error
        except TimeoutError as error:
            raise ClientError(f"cannot {what}: no answer came in time; give a larger timeout_s") from error
        except Error as error:
            raise ClientError(f"cannot {what}: {str(error) or type(error).__name__}") from error

    def iterate(self, items: AsyncGenerator[T, None], *, what: str) -> Iterator[T]:
        """Yield what an asynchronous generator yields, and close it at the end or when the caller stops."""

        async def following() -> tuple[T] | None:
            try:
                return (await anext(items),)
            except StopAsyncIteration:
                return None

        try:
            while (item := self.run(following(), what=what)) is not None:
                yield item[0]
        finally:
            self.run(items.aclose(), what=what)
