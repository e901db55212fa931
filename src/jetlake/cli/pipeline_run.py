"""What `jetlake pipeline run` does and shows: streams checked, Spark started, queries watched, rows counted.

On a terminal a bar says which phase is running and then a table how the queries do; in a pipe there is a line whenever
something changes. What Java prints goes to `_pipelines/spark.log` of the lake.
"""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import msgspec
import typer
from rich.console import Console
from rich.live import Live
from rich.table import Table

from jetlake.cli.interrupts import ended_by_interrupt
from jetlake.cli.output import console
from jetlake.cli.run import INTERRUPTED
from jetlake.cli.spark_options import connection_options
from jetlake.errors import ClientError, ConfigurationError, MissingDependencyError

if TYPE_CHECKING:
    from rich.progress import Progress

    from jetlake.spark.lake.folder import Lake
    from jetlake.spark.pipelines.model import Pipeline
    from jetlake.spark.pipelines.state import RunState

LINE_S = 1.0
"""Between two lines about a pipeline that goes on as before, where there is no terminal."""

SMALL_MESSAGES_MAX = 200_000
"""With fewer messages to read once, a Java that starts fast is done before one that computes fast."""

PHASES = 3

STATUS_COLUMNS = ("pipeline", "state", "pid", "query", "batch", "rows", "rows/s", "lag", "batch ms", "restarts")


class Phases:
    """A bar on standard error that says what is being done; only on a terminal."""

    def __init__(self, count: int) -> None:
        self._bar: Progress | None = None
        self._count = count
        self._begun = 0

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

            columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
            self._bar = Progress(*columns, console=console(stderr=True), transient=True)
            self._bar.add_task("checking streams", total=self._count + 1, completed=0)
            self._bar.start()
        return self

    def begin(self, phase: str) -> None:
        """Show that the next phase has begun."""
        self._begun += 1
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], description=phase, completed=self._begun)

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()


def check_pyspark() -> None:
    """Refuse, in one line, what cannot run without PySpark. Raises `MissingDependencyError`."""
    from importlib.util import find_spec

    try:
        is_there = find_spec("pyspark") is not None
    except ValueError:
        is_there = False
    if not is_there:
        raise MissingDependencyError("pipelines need PySpark: run `pip install 'jetlake[spark]'`")


def run_pipelines(
    pipelines: "Sequence[Pipeline]",
    lake: "Lake",
    master: str,
    spark_settings: dict[str, str],
    *,
    once: bool,
    as_json: bool,
) -> "list[RunState]":
    """Run pipelines until they end, and return how. Raises `JetlakeError`."""
    with ended_by_interrupt(), Phases(PHASES) as phases:
        connection = connection_options()
        messages = count_messages(pipelines, connection)
        phases.begin("starting Spark")
        import jetlake.spark
        from jetlake.spark.pipelines.state import FOLDER

        spark = jetlake.spark.session(
            "jetlake-pipelines",
            master=master,
            config=spark_settings,
            small=once and messages <= SMALL_MESSAGES_MAX,
            log=lake.folder / FOLDER / "spark.log",
        )
        spark.sparkContext.setLogLevel("ERROR")
        phases.begin("starting queries")
        from jetlake.spark.pipelines.runner import Runner

    with display(as_json=as_json) as tell:
        server = connection.pop("url")
        runner = Runner(spark, lake, server, once=once, on_change=tell, connection=connection)
        asked = 0

        def on_signal(_number: int, _frame: object) -> None:
            nonlocal asked
            asked += 1
            if asked > 1:
                # What was not committed is read again.
                os._exit(INTERRUPTED)
            runner.request_stop()

        # Spark has put a handler of its own here, which would end the batch at hand.
        before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            states = runner.run(pipelines)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            spark.stop()
    if not as_json:
        for state in states:
            typer.echo(written_line(state))
    return states


def written_line(state: "RunState") -> str:
    """Return how many rows reached each table of a pipeline, and how many were set aside."""
    bad = f"{state.pipeline}_bad"
    parts = [f"{table} {rows:,}" for table, rows in state.written.items() if table != bad]
    parts.append(f"{bad} {state.written.get(bad, 0):,}")
    return f"{state.pipeline} {state.state}, rows written: {', '.join(parts)}"


def count_messages(pipelines: "Sequence[Pipeline]", connection: Mapping[str, str]) -> int:
    """Return how many messages the streams of pipelines hold; refuse those that are missing, before Spark starts."""
    from jetlake.spark.connecting import connect
    from jetlake.spark.naming import to_connect
    from jetlake.spark.options import parse
    from jetlake.spark.pipelines.stream_names import check_streams

    inputs = [given for made in pipelines for given in made.streams.values()]
    if not inputs:
        return 0
    streams = connect(parse(to_connect(dict(connection)), "read"))
    try:
        names = streams.names()
        for made in pipelines:
            if problems := check_streams(made, names):
                raise ConfigurationError(f"pipeline {made.name}: {'; '.join(problems)}")
        if any(given.pattern for given in inputs):
            return SMALL_MESSAGES_MAX + 1
        return sum(streams.state(name).messages for name in {given.stream for given in inputs})
    finally:
        with contextlib.suppress(ClientError):
            streams.connection.close()


def status_rows(state: "RunState") -> list[tuple[str, ...]]:
    """Return the queries of a pipeline as rows of `STATUS_COLUMNS`."""
    head = (state.pipeline, state.state, str(state.pid))
    if not state.queries:
        return [(*head, "", "", "", "", "", "", "")]
    return [
        (
            *head,
            query.name,
            str(query.batch) if query.batch >= 0 else "",
            f"{query.rows:,}",
            f"{query.rows_per_second:,.0f}",
            "" if query.lag is None else f"{query.lag:,}",
            str(query.batch_ms),
            str(query.restarts),
        )
        for query in state.queries
    ]


@contextlib.contextmanager
def display(*, as_json: bool) -> Iterator[Any]:
    """Yield a function that shows the state of a pipeline: as JSON, as a table that stays, or as lines."""
    screen = Console(file=sys.stdout)
    states: dict[str, RunState] = {}
    last: dict[str, tuple[str, float]] = {}

    def as_line(state: "RunState") -> None:
        before, at = last.get(state.pipeline, ("", 0.0))
        if state.state == before and time.monotonic() - at < LINE_S:
            return
        last[state.pipeline] = (state.state, time.monotonic())
        if as_json:
            typer.echo(msgspec.json.encode(state).decode())
            return
        for row in status_rows(state):
            facts = zip(STATUS_COLUMNS[3:], row[3:], strict=True)
            typer.echo(" ".join([*row[:2], *(f"{key}={value}" for key, value in facts if value)]))

    if as_json or not screen.is_terminal:
        yield as_line
        return
    with Live(console=screen, refresh_per_second=4) as live:

        def as_table(state: "RunState") -> None:
            states[state.pipeline] = state
            live.update(table_of(STATUS_COLUMNS, [row for known in states.values() for row in status_rows(known)]))

        yield as_table


def table_of(columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Table:
    """Return rows as a table for a terminal."""
    from rich.text import Text

    table = Table(*columns)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table
