"""`run`: a command's work, with a connection made as this command line says.

```python
streams = run(lambda api: api.streams())
```

A refusal ends the command with exit code 1 and one line on standard error: `jetlake stream ls: …`.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn, TypeVar

import typer

from jetlake.cli.invocation import current
from jetlake.errors import JetlakeError

if TYPE_CHECKING:
    from jetlake.client.api import Api

REFUSED = 1
"""The exit code when a server refuses, or cannot be reached."""

INTERRUPTED = 130
"""The exit code after Ctrl-C, as shells have it."""

T = TypeVar("T")


def run(work: "Callable[[Api], Awaitable[T]]", *, reconnect: bool = False) -> T:
    """Connect, do the work, and return what it returns. With `reconnect` it outlives its connection."""

    async def connected() -> T:
        from jetlake.client.api import open_api

        async with open_api(current().access(), reconnect=reconnect) as api:
            return await work(api)

    with refusals():
        return asyncio.run(connected())


@contextmanager
def refusals() -> Iterator[None]:
    """Turn what Jetlake raises on purpose, and what the client library does, into the end of the command."""
    try:
        yield
    except JetlakeError as error:
        fail(str(error), error)
    except KeyboardInterrupt as error:
        raise typer.Exit(INTERRUPTED) from error
    except Exception as error:
        # Imported by now if it is one of theirs; a command that never connects does not load the library.
        library = sys.modules.get("nats.errors")
        if library is None or not isinstance(error, library.Error):
            raise
        fail(str(error) or type(error).__name__, error)


def fail(message: str, cause: BaseException | None = None) -> NoReturn:
    """Print what went wrong and end the command."""
    typer.echo(f"{' '.join(('jetlake', *current().command))}: {message}", err=True)
    raise typer.Exit(REFUSED) from cause
