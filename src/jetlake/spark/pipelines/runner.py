"""Runs many pipelines in one session: starts their queries, watches them, tells others, stops when asked.

One session, because the first query of a process takes more than a gigabyte and every further one some seventy
megabytes. Each pipeline has its own temporary views and settings (a session of Spark that shares everything else).

A query that fails is restarted, `RESTARTS_MAX` times in a row with longer and longer pauses: a server that is down for
a while must not cost a pipeline. One pipeline that fails for good does not stop the others.
"""

import os
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from jetlake.errors import JetlakeError
from jetlake.spark.lake.folder import Lake
from jetlake.spark.pipelines.flows import Flow, Setting, plan
from jetlake.spark.pipelines.model import ONCE, Pipeline
from jetlake.spark.pipelines.progress import BatchListener, BatchProgress
from jetlake.spark.pipelines.refresh import Refresh
from jetlake.spark.pipelines.state import HEARTBEAT_S, PipelineFiles, QueryState, RunState, now_ms
from jetlake.spark.pipelines.steps import quieten
from jetlake.spark.sessions import new_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from jetlake.spark.pipelines.flows import Reader

POLL_S = 0.1
RESTARTS_MAX = 5
RESTARTS_ONCE_MAX = 4
"""For a single run: the user who waits for it can run it again."""

RESTART_S_FIRST = 1.0
"""Pause before a query is started again; it doubles each time."""

START_S_MAX = 30.0
INITIALIZING = "Initializing"
"""How Spark's word for what a query does begins until its sources are there."""

NUMBERS_S_MAX = 5.0
"""How long to wait for the last report on a query that has ended; its last numbers are not essential."""

STOP_S_MAX = 60.0
"""How long the batch at hand may take when a pipeline is to stop; then it is cut off, which loses nothing."""

SETTINGS = {
    # A value that cannot be cast or divided is NULL instead of an end of the pipeline; `expect` finds it.
    "spark.sql.ansi.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    # A batch that several tables take is held for seconds: compressing it takes longer than it lives.
    "spark.sql.inMemoryColumnarStorage.compressed": "false",
}


@dataclass
class RunningQuery:
    """One query, and when to start it again."""

    flow: Flow
    state: QueryState
    query: "StreamingQuery | Refresh | None" = None
    restarts: int = 0
    again_at: float = 0.0


@dataclass
class Job:
    """One pipeline of a run."""

    pipeline: Pipeline
    files: PipelineFiles
    state: RunState
    running: list[RunningQuery] = field(default_factory=list)
    changed: bool = True
    forget: Callable[[], None] = lambda: None
    """Ends what Spark tells about the queries."""

    @property
    def is_over(self) -> bool:
        return self.state.state in ("stopped", "finished", "failed")


class Runner:
    """See the module. `on_change` is called with the state of a pipeline whenever it changes."""

    def __init__(
        self,
        spark: "SparkSession",
        lake: Lake,
        url: str,
        *,
        once: bool = False,
        on_change: Callable[[RunState], None] | None = None,
        reader: "Reader | None" = None,
        connection: Mapping[str, str] | None = None,
    ) -> None:
        self._spark = spark
        self._lake = lake
        self._url = url
        self._once = once
        self._on_change = on_change
        self._reader = reader
        # How to connect besides the address: credentials, TLS, as options of the format.
        self._connection = dict(connection or {})
        self._asked = threading.Event()
        self._ended = threading.Event()
        # Numbers come from Spark's thread, heartbeats from another, everything else from the one that runs.
        self._changes = threading.RLock()

    def request_stop(self) -> None:
        """Have every pipeline end after the batch at hand. May be called from a signal handler."""
        self._asked.set()

    def run(self, pipelines: Sequence[Pipeline]) -> list[RunState]:
        """Run until all have ended, and return how. Raises `ConfigurationError` when one is running already."""
        quieten()
        jobs: list[Job] = []
        try:
            jobs.extend(self._admit(pipeline) for pipeline in pipelines)
            heart = threading.Thread(target=self._beat, args=(jobs,), name="pipeline-heartbeat", daemon=True)
            heart.start()
            for job in jobs:
                self._begin(job)
            while not all(job.is_over for job in jobs):
                for job in jobs:
                    self._watch(job)
                time.sleep(POLL_S)
        finally:
            self._ended.set()
            for job in jobs:
                self._end(job)
        return [job.state for job in jobs]

    def _admit(self, pipeline: Pipeline) -> Job:
        files = PipelineFiles(self._lake.folder, pipeline.name)
        files.acquire()
        state = RunState(
            pipeline=pipeline.name,
            state="starting",
            pid=os.getpid(),
            host=socket.gethostname(),
            started_ms=now_ms(),
            heartbeat_ms=now_ms(),
            tables=pipeline.table_names(),
            about=pipeline.about,
            shipped=pipeline.shipped,
        )
        files.write(state)
        return Job(pipeline, files, state)

    def _begin(self, job: Job) -> None:
        with new_session(self._spark, SETTINGS) as session:
            self._begin_in(session, job)
        job.changed = True

    def _begin_in(self, session: "SparkSession", job: Job) -> None:
        listener = BatchListener(lambda progress: self._note(job, progress), lambda query: self._rest(job, query))
        session.streams.addListener(listener)
        job.forget = lambda: session.streams.removeListener(listener)
        try:
            setting = Setting(session, self._lake, self._url, job.files, self._once, self._reader, self._connection)
            for flow in plan(job.pipeline, setting):
                job.running.append(RunningQuery(flow, QueryState(name=flow.name)))
            job.state.queries = [running.state for running in job.running]
            for running in job.running:
                self._start(job, running)
            job.state.state = "running"
        except JetlakeError as error:
            self._fail(job, str(error))
        except Exception as error:  # noqa: BLE001  # of Spark; the other pipelines go on
            self._fail(job, reason(error))

    def _start(self, job: Job, running: RunningQuery) -> None:
        query = running.flow.start()
        if isinstance(query, Refresh):
            query.on_batch = lambda name, number, rows, batch_ms: self._note(
                job, BatchProgress(name, number, rows, rows * 1000 / max(batch_ms, 1), batch_ms, None, "")
            )
            query.begin()
        running.query = query
        running.state.id = str(query.id)
        self._wait_for_sources(query)

    def _wait_for_sources(self, query: "StreamingQuery | Refresh") -> None:
        """Let one query come up before the next is started.

        Each starts a Python process for its source, which Spark gives up on after ten seconds: many at once on a
        small machine would all be late.
        """
        deadline = time.monotonic() + START_S_MAX
        while query.isActive and time.monotonic() < deadline and not self._asked.is_set():
            if not str(query.status.get("message", "")).startswith(INITIALIZING):
                return
            time.sleep(POLL_S / 2)

    def _watch(self, job: Job) -> None:
        if job.is_over:
            return
        if self._asked.is_set() or job.files.is_asked_to_stop():
            self._stop(job)
        else:
            self._look_after(job)
        self._tell(job)

    def _look_after(self, job: Job) -> None:
        """Start again what failed, and see whether everything has come to its end."""
        ended = 0
        for running in job.running:
            if running.query is None:
                if time.monotonic() >= running.again_at:
                    self._start_again(job, running)
                continue
            if running.query.isActive:
                continue
            error = running.query.exception()
            if error is None:
                ended += 1
                continue
            self._failed(job, running, reason(error))
            if job.is_over:
                return
        if ended == len(job.running):
            for running in job.running:
                wait_for_numbers(running)
                tidy(running)
            job.state.state = "finished"
            job.changed = True

    def _failed(self, job: Job, running: RunningQuery, error: str) -> None:
        running.state.error = error
        job.changed = True
        once = self._once or job.pipeline.trigger == ONCE
        if running.restarts >= (RESTARTS_ONCE_MAX if once else RESTARTS_MAX):
            self._fail(job, f"query {running.flow.name}: {error}")
            return
        running.again_at = time.monotonic() + RESTART_S_FIRST * 2**running.restarts
        running.restarts += 1
        running.state.restarts += 1
        running.query = None

    def _start_again(self, job: Job, running: RunningQuery) -> None:
        try:
            self._start(job, running)
        except Exception as error:  # noqa: BLE001  # of Spark; counts as a failure of the query
            self._failed(job, running, reason(error))

    def _stop(self, job: Job) -> None:
        job.state.state = "stopping"
        job.changed = True
        self._tell(job)
        deadline = time.monotonic() + STOP_S_MAX
        for running in job.running:
            self._stop_query(running, deadline)
            wait_for_numbers(running)
            tidy(running)
        job.state.state = "stopped"
        job.changed = True

    def _stop_query(self, running: RunningQuery, deadline: float) -> None:
        query = running.query
        if query is None:
            return
        while query.isActive and query.status["isTriggerActive"] and time.monotonic() < deadline:
            time.sleep(POLL_S / 10)
        query.stop()

    def _fail(self, job: Job, error: str) -> None:
        for running in job.running:
            if running.query is not None and running.query.isActive:
                running.query.stop()
        job.state.state = "failed"
        job.state.error = error
        job.changed = True
        self._tell(job)

    def _end(self, job: Job) -> None:
        """Leave nothing that runs or looks as if it did."""
        if not job.is_over:
            self._stop(job)
        self._tell(job)
        job.forget()
        job.files.release()

    def _note(self, job: Job, progress: BatchProgress) -> None:
        with self._changes:
            for running in job.running:
                if running.flow.name != progress.query:
                    continue
                state = running.state
                state.batch, state.batch_ms = progress.batch, progress.batch_ms
                state.rows += progress.rows
                state.rows_per_second = round(progress.rows_per_second, 1)
                state.lag = progress.lag
                state.error = ""
                running.restarts = 0
                job.files.note(msgspec.to_builtins(progress) | {"at_ms": now_ms()})
                job.changed = True

    def _rest(self, job: Job, query: str) -> None:
        for running in job.running:
            if running.state.id == query and running.state.rows_per_second:
                running.state.rows_per_second = 0.0
                job.changed = True

    def _tell(self, job: Job) -> None:
        if not job.changed:
            return
        with self._changes:
            job.changed = False
            job.state.written = written(job)
            job.files.write(job.state)
        if self._on_change is not None:
            self._on_change(job.state)

    def _beat(self, jobs: list[Job]) -> None:
        """Say now and then that this process lives, also while a query takes long to start or to stop."""
        while not self._ended.wait(HEARTBEAT_S):
            with self._changes:
                for job in jobs:
                    if not job.is_over:
                        job.files.write(job.state)


def written(job: Job) -> dict[str, int]:
    """Return how many rows reached each table of a pipeline, in the order of its outputs; 0 for those with none."""
    counts: dict[str, int] = {}
    for running in job.running:
        if running.flow.writer is not None:
            # Batches run in threads of Spark, and may add a table meanwhile.
            for table, rows in list(running.flow.writer.written.items()):
                counts[table] = counts.get(table, 0) + rows
    return {table: counts[table] for table in job.pipeline.table_names() if table in counts}


def wait_for_numbers(running: RunningQuery) -> None:
    """Wait until the listener has reported the last batch of a query that has ended: Spark notifies it a bit later."""
    if running.query is None or isinstance(running.query, Refresh):
        return
    last = running.query.lastProgress
    deadline = time.monotonic() + NUMBERS_S_MAX
    while last is not None and running.state.batch < last.batchId and time.monotonic() < deadline:
        time.sleep(POLL_S / 10)


def tidy(running: RunningQuery) -> None:
    """Tidy the tables of a query that has come to its end."""
    if running.flow.writer is not None:
        running.flow.writer.tidy()


def reason(error: Any) -> str:
    """Return why a query failed, without the way through Spark on which the reason came."""
    text = str(error).strip()
    for mark in ("jetlake.errors.", "ConfigurationError: ", "ClientError: "):
        if mark in text:
            tail = text.rpartition(mark)[2]
            return tail.splitlines()[0].removeprefix("ConfigurationError: ").removeprefix("ClientError: ")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
