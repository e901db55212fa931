"""`run`: a command's work, with a connection made as this command line says.

```python
streams = run(lambda api: api.streams())
```

A refusal ends the command with exit code 1 and one line on standard error: `jetlake stream ls: …`.

Invariant: work has ended, with all that it does when it is cancelled, before its connection is closed.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn, TypeVar

import msgspec
import typer

from jetlake.cli.invocation import current
from jetlake.cli.readers import PipeClosedError, drop_output, outlive_readers, watch_reader
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


def run(work: "Callable[[Api], Awaitable[T]]", *, reconnect: bool = False, while_read: bool | None = None) -> T:
    """Connect, do the work, and return what it returns. With `reconnect` it outlives its connection.

    Work that changes something is done to its end, whether its output is read or not. With `while_read` it ends with
    its reader; unless told otherwise so does work that outlives its connection, as commands that wait for messages do.
    """
    is_ended_by_reader = reconnect if while_read is None else while_read

    async def connected() -> T:
        from jetlake.client.api import open_api

        async with open_api(current().access(), reconnect=reconnect) as api:
            if current().trace:
                api.on_exchange = _print_exchange
            try:
                return await _ended(work(api), while_read=is_ended_by_reader)
            except ApiError as error:
                from jetlake.cli.explain import explained

                raise await explained(api, error) from error

    with refusals():
        if not is_ended_by_reader:
            outlive_readers()
        result = asyncio.run(connected())
    # The rest is told of what was done, and decides about the exit code.
    outlive_readers()
    return result


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
        drop_output(sys.stdout.fileno())
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


async def _ended(work: Awaitable[T], *, while_read: bool) -> T:
    """Do work in a task, which has ended when this returns or raises.

    With `while_read` it ends when the reader of standard output goes, with `PipeClosedError`: a command that waits for
    messages would not notice before it prints the next one.
    """
    task = asyncio.ensure_future(work)
    is_closed = watch_reader() if while_read else None
    try:
        while not task.done():
            await asyncio.wait({task}, timeout=None if is_closed is None else LOOK_S)
            if is_closed is not None and not task.done() and is_closed():
                raise PipeClosedError
        return task.result()
    finally:
        await cancel(task)
        if not task.cancelled():
            # What it fails with while it is cancelled is nobody's concern any more.
            task.exception()


def _print_exchange(subject: str, request: bytes, answer: bytes) -> None:
    typer.echo(f">>> {subject}\n{request.decode(errors='replace')}", err=True)
    typer.echo(f"<<< {subject}\n{answer.decode(errors='replace')}\n", err=True)
