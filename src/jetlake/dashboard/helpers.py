"""`Helpers`: what costs memory or time, such as a query, is done by a process that ends with its answer.

```python
answer = await request.app[HELPERS].ask(SqlTask(query="SELECT 1", options=options_of(access), lake="lake"))
```

A process and not a thread: DuckDB and Arrow would double the memory of the dashboard for good, and a query that takes
too long can be ended at any point. `helper_process` is its other end.

Invariant: at most `PROCESSES_MAX` helpers run. One that has not answered after `TIME_S_MAX` is killed, and so is one
whose dashboard ends; its temporary files are removed.
"""

import asyncio
import contextlib
import logging
import os
import sys
import tempfile
from typing import TypeAlias

import msgspec

from jetlake.errors import ClientError, ConfigurationError, JetlakeError, MissingDependencyError

__all__ = [
    "Column",
    "FleetTask",
    "HelperAnswer",
    "Helpers",
    "ReportTask",
    "SqlTask",
    "TableFacts",
    "TablesTask",
    "Task",
]

PROCESSES_MAX = 2
"""Helpers at once: each may use 256 MB and two cores."""

WAITING_MAX = 16
"""Questions that wait for a helper; above this, callers are told to try again."""

TIME_S_MAX = 30.0
"""From its start: longer than anybody looks at an empty page."""

ERROR_BYTES_MAX = 4_000
"""Of what a helper that failed has said, for the log."""

LOG = logging.getLogger("jetlake.dashboard")


class SqlTask(msgspec.Struct, frozen=True, kw_only=True, tag="sql"):
    """One query over streams and lake tables; `options` are those of the format `jetlake`, with the user's login."""

    query: str
    options: dict[str, str]
    # Empty: there is none.
    lake: str = ""


class TablesTask(msgspec.Struct, frozen=True, kw_only=True, tag="tables"):
    """Rows and sizes of lake tables."""

    lake: str
    names: list[str]


class ReportTask(msgspec.Struct, frozen=True, kw_only=True, tag="report"):
    """The page that `jetlake pipeline show` writes."""

    lake: str
    pipeline: str


class FleetTask(msgspec.Struct, frozen=True, kw_only=True, tag="fleet"):
    """One page of the tables that the pipeline `fleet` writes; `fleet_query` makes the query."""

    lake: str
    prefix: str
    # nodes, checks or machines.
    view: str
    text: str
    offset: int
    rows_max: int


Task: TypeAlias = SqlTask | TablesTask | ReportTask | FleetTask


class Column(msgspec.Struct, frozen=True):
    """A column of an answer; `kind` is number, time or text."""

    name: str
    kind: str


class HelperAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a query returns, cut: numbers are numbers, everything else is text."""

    columns: list[Column]
    rows: list[list[str | int | float | None]]
    # Whether rows were left out.
    has_more: bool = False


class TableFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One lake table in numbers."""

    name: str
    version: int
    rows: int
    files: int
    size_bytes: int


class HelperReply(msgspec.Struct, frozen=True, kw_only=True):
    """What comes back from a helper: one of these."""

    answer: HelperAnswer | None = None
    tables: list[TableFacts] | None = None
    page: str | None = None
    error: str = ""
    error_kind: str = ""


_ERRORS: dict[str, type[JetlakeError]] = {
    "MissingDependencyError": MissingDependencyError,
    "ConfigurationError": ConfigurationError,
}


class Helpers:
    """The helpers of one dashboard."""

    def __init__(self) -> None:
        self._gate = asyncio.Semaphore(PROCESSES_MAX)
        self._waiting = 0

    async def answer(self, task: SqlTask | FleetTask) -> HelperAnswer:
        """Have a query answered. Raises `ConfigurationError`, `ClientError`."""
        found = (await self._ask(task)).answer
        assert found is not None, "a query is answered by rows"
        return found

    async def tables(self, task: TablesTask) -> list[TableFacts]:
        """Have tables counted; those that are not there are left out."""
        return (await self._ask(task)).tables or []

    async def report(self, task: ReportTask) -> str:
        """Have a report written, as HTML."""
        return (await self._ask(task)).page or ""

    async def _ask(self, task: Task) -> HelperReply:
        if self._waiting >= WAITING_MAX:
            raise ClientError(f"{WAITING_MAX} questions are waiting to be answered: try again in a moment")
        self._waiting += 1
        try:
            async with self._gate:
                reply = await _run(task)
        finally:
            self._waiting -= 1
        if reply.error:
            raise _ERRORS.get(reply.error_kind, ClientError)(reply.error)
        return reply


async def _run(task: Task) -> HelperReply:
    # The process cannot remove its files when it is killed.
    with tempfile.TemporaryDirectory(prefix="jetlake-dashboard-", ignore_cleanup_errors=True) as folder:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "jetlake.dashboard.helper_process",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "TMPDIR": folder},
            # Ctrl-C at the terminal is for the dashboard.
            start_new_session=True,
        )
        try:
            # Over the pipe and not in arguments: it holds the user's login.
            output, errors = await asyncio.wait_for(process.communicate(msgspec.json.encode(task)), TIME_S_MAX)
        except TimeoutError:
            raise ConfigurationError(
                f"the answer took longer than {TIME_S_MAX:g} s and was given up: ask for less, such as WHERE "
                "sequence > 1000, or use the command line, which waits"
            ) from None
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
    try:
        return msgspec.json.decode(output, type=HelperReply)
    except msgspec.MsgspecError:
        LOG.warning(
            "a helper ended with %s: %s", process.returncode, errors[-ERROR_BYTES_MAX:].decode(errors="replace")
        )
        raise ConfigurationError("the question needs more memory than it may have: ask for less") from None
