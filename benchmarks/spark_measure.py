"""What is measured of Spark: reading, small batches, writing, memory. One run each, wall time and CPU side by side.

The machine is shared by Spark and the server, so the CPU per row, of Spark's processes and of the server, is the
sturdier figure. Rows have some 200 bytes of JSON, all different; Parquet files of the same rows are read in the same
way. What is measured has run once before, so that nobody's start is in it.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from benchmarks.servers import JETLAKE
from benchmarks.stream_servers import STREAM, SUBJECT, StreamServer, create_stream, purge_stream, stream_state
from jetlake.client.raw_connection import ConnectionSettings, RawConnection

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BATCH_ROWS = 1_000
WARM_BATCHES = 3
FEW_ROWS = 1_000_000
FILL_ROWS = 5_000
"""Messages that are sent before the next answer is waited for."""

TARGET = "COPY"
COPIED_ROWS_PER_BATCH = 500_000

COUNTRIES = (b"at", b"br", b"ch", b"de", b"es", b"fr", b"in", b"us")
STATES = (b"new", b"paid", b"sent", b"closed")

NARROW = "sequence BIGINT"
FULL = (
    "stream STRING, subject STRING, sequence BIGINT, timestamp TIMESTAMP, headers MAP<STRING, ARRAY<STRING>>, "
    "data BINARY"
)


@dataclass(frozen=True)
class Aim:
    """What we want to reach: a bound on a figure of a measurement."""

    figure: str
    relation: Literal["at least", "at most"]
    bound: float

    def is_met_by(self, value: float) -> bool:
        return value >= self.bound if self.relation == "at least" else value <= self.bound


@dataclass
class Measurement:
    """One thing that was measured, with its figures by name."""

    name: str
    title: str
    figures: dict[str, float] = field(default_factory=dict)
    aims: list[Aim] = field(default_factory=list)


UNITS = {
    "rows_per_s": "rows/s",
    "cpu_us_per_row": "µs of Spark's CPU per row",
    "server_us_per_row": "µs of the server's CPU per row",
    "of_few": "times the rate of a million rows",
    "of_parquet": "times the rate of Parquet",
    "p50_ms": "ms, median of a batch",
    "p90_ms": "ms, 90th percentile of a batch",
    "memory_mb": "MB of Spark's processes",
}


class SparkBench:
    """A session and a folder; each method measures one thing."""

    def __init__(self, spark: SparkSession, folder: Path, rows: int, batches: int) -> None:
        self._spark = spark
        self._folder = folder
        self._rows = rows
        self._batches = batches

    def first_query(self, server: StreamServer) -> Measurement:
        """The memory of a session after its first query; to be measured before anything else."""
        self.table(server, NARROW).limit(1).collect()
        figures = {"memory_mb": tree_memory_bytes(os.getpid()) / 1e6}
        return Measurement("memory", "memory after the first query", figures, [Aim("memory_mb", "at most", 1_500)])

    def read(self, server: StreamServer) -> Iterator[Measurement]:
        """Full and narrow reads of a server; of ours beside Parquet of the same rows."""
        files = self._folder / "rows.parquet"
        if server.name == JETLAKE:
            self.table(server, FULL).write.mode("overwrite").option("compression", "zstd").parquet(str(files))
        for kind, schema in (("full", FULL), ("narrow", NARROW)):
            figures = self.rate(server, lambda schema=schema: self.table(server, schema), kind, self._rows)
            aims = []
            if server.name == JETLAKE:
                parquet = self.rate(server, lambda: self._spark.read.parquet(str(files)), kind, self._rows)
                yield Measurement(f"parquet-{kind}", f"Parquet of the same rows, {kind}", parquet)
                figures["of_parquet"] = figures["rows_per_s"] / parquet["rows_per_s"]
                aims = [Aim("of_parquet", "at least", 0.8)]
            elif kind == "full":
                aims = [Aim("rows_per_s", "at least", 400_000)]
            yield Measurement(f"{server.name}-{kind}", f"read from {server.name}, {kind}", figures, aims)

    def flat(self, server: StreamServer) -> Measurement:
        """The rate of everything beside that of a million rows: what is read later must not be slower."""
        few = min(FEW_ROWS, self._rows)
        rates = []
        for rows in (few, self._rows):
            load = self.table(server, FULL, endingSequence=rows)
            rates.append(self.rate(server, lambda load=load: load, "full", rows)["rows_per_s"])
        figures = {"rows_per_s": rates[1], "of_few": rates[1] / rates[0]}
        title = f"read {self._rows:,} rows, beside {few:,}"
        return Measurement("flat", title, figures, [Aim("of_few", "at least", 0.9)])

    def small_batches(self, server: StreamServer) -> Measurement:
        """The time of micro-batches of a thousand rows."""
        folder = self._folder / f"checkpoint-{time.time_ns()}"
        query = (
            self._spark.readStream.format("jetlake")
            .options(url=server.address, stream=STREAM, startingSequence="earliest")
            .option("maxRowsPerTrigger", BATCH_ROWS)
            .load()
            .writeStream.format("noop")
            .option("checkpointLocation", str(folder))
            .start()
        )
        times_ms: dict[int, float] = {}
        try:
            while len(times_ms) < self._batches + WARM_BATCHES:
                for progress in query.recentProgress:
                    if progress.numInputRows:
                        times_ms[progress.batchId] = progress.batchDuration
                time.sleep(0.1)
        finally:
            query.stop()
        measured = [times_ms[batch] for batch in sorted(times_ms)][WARM_BATCHES:]
        figures = {"p50_ms": statistics.median(measured), "p90_ms": statistics.quantiles(measured, n=10)[-1]}
        return Measurement(
            "small-batches", f"micro-batches of {BATCH_ROWS:,} rows", figures, [Aim("p50_ms", "at most", 150)]
        )

    def write(self, server: StreamServer, rows: int) -> Measurement:
        """The sink of a batch write, exactly once by ids."""
        frame = self._spark.range(rows).selectExpr(
            f"'{SUBJECT}' AS subject", "CAST(concat(CAST(id AS STRING), repeat('x', 190)) AS BINARY) AS data"
        )
        measured: dict[str, float] = {}
        for _ in range(2):
            purge_stream(server)
            with timed(rows, server) as figures:
                frame.write.format("jetlake").mode("append").options(
                    url=server.address, stream=STREAM, duplicateWindow="ignore"
                ).save()
            stored = stream_state(server)["messages"]
            assert stored == rows, f"{stored} of {rows} rows were stored"
            measured = figures
        return Measurement("write", f"write {rows:,} rows", measured, [Aim("rows_per_s", "at least", 300_000)])

    def copy(self, server: StreamServer, rows: int) -> Measurement:
        """A query that copies what `write` has stored, each batch at once: the source and the sink together."""
        with server.api() as api:
            api.ask(f"STREAM.CREATE.{TARGET}", {"name": TARGET, "subjects": ["copy"]})
        measured: dict[str, float] = {}
        for _ in range(2):
            with server.api() as api:
                api.ask(f"STREAM.PURGE.{TARGET}", {})
            reader = self._spark.readStream.format("jetlake").options(url=server.address, stream=STREAM)
            source = reader.options(startingSequence="earliest", maxRowsPerTrigger=COPIED_ROWS_PER_BATCH)
            with timed(rows, server) as figures:
                query = (
                    source.schema("data BINARY")
                    .load()
                    .writeStream.format("jetlake")
                    .options(url=server.address, subject="copy")
                    .option("checkpointLocation", str(self._folder / f"checkpoint-{time.time_ns()}"))
                    .trigger(availableNow=True)
                    .start()
                )
                query.awaitTermination()
            with server.api() as api:
                stored = api.ask(f"STREAM.INFO.{TARGET}", {})["state"]["messages"]
            assert stored == rows, f"{stored} of {rows} rows were stored"
            measured = figures
        title = f"copy {rows:,} rows by a query"
        return Measurement("copy", title, measured, [Aim("rows_per_s", "at least", 300_000)])

    def table(self, server: StreamServer, schema: str, **options: int) -> DataFrame:
        reader = self._spark.read.format("jetlake").options(url=server.address, stream=STREAM, **options)
        return reader.schema(schema).load()

    def rate(self, server: StreamServer, load: Callable[[], DataFrame], kind: str, rows: int) -> dict[str, float]:
        """Read everything once to warm up and once to measure."""
        measured: dict[str, float] = {}
        for _ in range(2):
            with timed(rows, server) as figures:
                if kind == "full":
                    load().write.format("noop").mode("overwrite").save()
                else:
                    load().selectExpr("max(sequence)").collect()
            measured = figures
        return measured


def fill(server: StreamServer, rows: int) -> None:
    """Store so many messages."""
    create_stream(server)
    with RawConnection(ConnectionSettings(url=f"nats://{server.address}")) as connection:
        for first in range(0, rows, FILL_ROWS):
            payloads = [payload(number) for number in range(first, min(first + FILL_ROWS, rows))]
            connection.send(
                b"".join(b"PUB %s %d\r\n%s\r\n" % (SUBJECT.encode(), len(one), one) for one in payloads[:-1])
            )
            # The last one is answered, and with it those before.
            assert "error" not in connection.request(SUBJECT, payloads[-1]).json()
    assert stream_state(server)["messages"] == rows


def payload(number: int) -> bytes:
    """Return an order, some 200 bytes that are not those of any other."""
    mixed = number * 2654435761 % 2**32
    return (
        b'{"order":%d,"customer":"c%08x","country":"%s","items":[{"sku":"sku-%06d","quantity":%d,"price":%d.%02d}],'
        b'"status":"%s","note":"%016x%016x"}'
        % (
            number,
            mixed,
            COUNTRIES[mixed % 8],
            mixed % 500_000,
            mixed % 9 + 1,
            mixed % 400,
            mixed % 100,
            STATES[number % 4],
            mixed * 40503,
            (mixed ^ number) * 2246822519 % 2**64,
        )
    )


@contextmanager
def timed(rows: int, server: StreamServer) -> Iterator[dict[str, float]]:
    """Fill in the rate and the CPU per row of what runs in the block."""
    figures: dict[str, float] = {}
    all_before, server_before, start = tree_cpu_s(os.getpid()), tree_cpu_s(server.pid), time.monotonic()
    yield figures
    duration_s = time.monotonic() - start
    figures["rows_per_s"] = rows / duration_s
    server_s = tree_cpu_s(server.pid) - server_before
    # A Python worker that ends in between takes its CPU along: the figure is then too small, never too large.
    spark_s = max(tree_cpu_s(os.getpid()) - all_before - server_s, 0)
    figures["cpu_us_per_row"] = spark_s / rows * 1e6
    figures["server_us_per_row"] = server_s / rows * 1e6


def tree_of(pid: int) -> list[int]:
    """Return a process and everything below it."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            children.setdefault(int(fields[1]), []).append(int(folder.name))
    found, waiting = [], [pid]
    while waiting:
        one = waiting.pop()
        found.append(one)
        waiting += children.get(one, [])
    return found


def tree_cpu_s(pid: int) -> float:
    """Return the CPU seconds of a process and everything below it, ended children included."""
    ticks = 0
    for one in tree_of(pid):
        try:
            fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += sum(int(field) for field in fields[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def tree_memory_bytes(pid: int) -> int:
    """Return the memory of a process and everything below it; what they share is counted once."""
    total = 0
    for one in tree_of(pid):
        try:
            lines = Path(f"/proc/{one}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
    return total
