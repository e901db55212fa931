"""`run`: a command's work, with a connection made as this command line says.

```python
streams = run(lambda api: api.streams())
```

A refusal ends the command with exit code 1 and one line on standard error: `jetlake stream ls: …`.
"""

import asyncio
import os
import select
import stat
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn, TypeVar

import msgspec
import typer

from jetlake.cli.invocation import current
from jetlake.errors import ApiError, JetlakeError
from jetlake.shared.cancellation import cancel

if TYPE_CHECKING:
    from jetlake.client.api import Api

REFUSED = 1
"""The exit code when a server refuses, or cannot be reached."""

INTERRUPTED = 130
"""The exit code after Ctrl-C, as shells have it."""

LOOK_S = 0.2
"""How often a command that waits checks whether its reader is still there."""

T = TypeVar("T")


def run(work: "Callable[[Api], Awaitable[T]]", *, reconnect: bool = False) -> T:
    """Connect, do the work, and return what it returns. With `reconnect` it outlives its connection."""

    async def connected() -> T:
        from jetlake.client.api import open_api

        async with open_api(current().access(), reconnect=reconnect) as api:
            if current().trace:
                api.on_exchange = _print_exchange
            try:
                return await until_closed(work(api))
            except ApiError as error:
                from jetlake.cli.explain import explained

                raise await explained(api, error) from error

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
    except (BrokenPipeError, PipeClosedError) as error:
        # The reader has enough, as `head` has. Nothing can be written any more, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from error
    except Exception as error:
        # Imported by now if it is one of theirs; a command that never connects does not load the library.
        library = sys.modules.get("nats.errors")
        if library is None or not isinstance(error, library.Error):
            raise
        fail(str(error) or type(error).__name__, error)


def fail(message: str, cause: BaseException | None = None) -> NoReturn:
    """Print what went wrong and end the command; with --json as JSON, also on standard error."""
    command = " ".join(("jetlake", *current().command))
    if current().json_errors:
        facts: dict[str, object] = {"command": command, "message": message}
        if isinstance(cause, ApiError):
            facts |= {"code": cause.code, "error_code": cause.error_code}
        typer.echo(msgspec.json.encode({"error": facts}).decode(), err=True)
    else:
        typer.echo(f"{command}: {message}", err=True)
    raise typer.Exit(REFUSED) from cause


class PipeClosedError(Exception):
    """Is raised when the reader of standard output has gone."""


async def until_closed(work: Awaitable[T]) -> T:
    """Do work; if standard output is a pipe, only while its reader is there. Raises `PipeClosedError`.

    A command that waits for messages would not notice before it prints the next one.
    """
    if not _is_pipe():
        return await work
    task = asyncio.ensure_future(work)
    poll = select.poll()
    # Errors are always reported; no other event is of interest.
    poll.register(sys.stdout.fileno(), 0)
    while True:
        done, _ = await asyncio.wait({task}, timeout=LOOK_S)
        if done:
            return task.result()
        if poll.poll(0):
            await cancel(task)
            raise PipeClosedError


def _is_pipe() -> bool:
    try:
        return hasattr(select, "poll") and stat.S_ISFIFO(os.fstat(sys.stdout.fileno()).st_mode)
    except (OSError, ValueError):
        # Something else than a file is in its place, as in tests.
        return False


def _print_exchange(subject: str, request: bytes, answer: bytes) -> None:
    typer.echo(f">>> {subject}\n{request.decode(errors='replace')}", err=True)
    typer.echo(f"<<< {subject}\n{answer.decode(errors='replace')}\n", err=True)
