"""The pipeline `fleet` at speed: backfill, cost as history grows, freshness, memory, `python -m benchmarks.pipelines`.

A simulated fleet fills the streams, then the pipeline reads them from the first sequence on, as `jetlake pipeline run
fleet --once` does. The machine is shared by Spark and the server, so the CPU per event, of Spark's processes, is the
sturdier figure; a session that has run the pipeline once before is measured, so that nobody's start is in it.

| aim                              | bound               |
|----------------------------------|---------------------|
| backfill on two cores            | ≥ 100,000 events/s  |
| cost per event from 10⁶ to 10⁷   | flat                |
| freshness at 5,000 events/s, p95 | ≤ 3 s               |
| memory of the session            | ≤ 2.5 GB            |
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from benchmarks.servers import JETLAKE, BenchmarkError, commands
from benchmarks.spark_measure import timed, tree_memory_bytes
from benchmarks.stream_servers import StreamServer
from jetlake.client.load import build_profile
from jetlake.client.raw_connection import ConnectionSettings, RawConnection
from jetlake.client.raw_streams import Streams
from jetlake.simulation.fleet import Fleet, FleetOptions
from jetlake.simulation.publisher import publish
from jetlake.spark.lake.folder import Lake
from jetlake.spark.pipelines import catalog
from jetlake.spark.pipelines.runner import Runner
from jetlake.spark.pipelines.state import PipelineFiles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

    from jetlake.simulation.fleet import SimulatedEvent

FOLDER = Path(__file__).parent.parent / "build" / "benchmarks"
EVENTS = (1_000_000, 10_000_000)
WARM_EVENTS = 20_000
NODES = 10_000
EVENTS_PER_NODE_AND_S = 0.063
"""What a simulated node publishes: three checks a minute, and the rest."""

Results: TypeAlias = dict[str, dict[str, float]]

LIVE_EVENTS_PER_S = 5_000
LIVE_S = 60
STREAMS = {
    "CHORIA_EVENTS": "choria.lifecycle.>",
    "CHORIA_MACHINE": "choria.machine.>",
    "CHORIA_REGISTRATION": "choria.discovery",
}
STORED_S_MAX = 600.0


class Bench:
    """One server with its streams, and a session."""

    def __init__(self, spark: SparkSession, server: StreamServer, folder: Path) -> None:
        self.spark = spark
        self.server = server
        self.folder = folder
        self.connection = RawConnection(ConnectionSettings(url=self.url, name="benchmark"))
        self.lakes = 0

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.server.port}"

    def fill(self, events: int) -> int:
        """Make the streams anew with about this many events; return the exact number."""
        streams = Streams(RawConnection(ConnectionSettings(url=self.url, name="benchmark")))
        there = streams.names()
        for name, subject in STREAMS.items():
            if name in there:
                streams.ask(f"STREAM.DELETE.{name}")
            streams.ask(f"STREAM.CREATE.{name}", {"name": name, "subjects": [subject], "allow_direct": True})
        fleet = simulated(events)
        connection = RawConnection(ConnectionSettings(url=self.url, name="benchmark"))
        sent = publish(limited(fleet.events(), events), connection, speed=0)
        connection.close()
        deadline = time.monotonic() + STORED_S_MAX
        while (stored := sum(streams.state(name).messages for name in STREAMS)) < sent:
            if time.monotonic() > deadline:
                raise BenchmarkError(f"{stored:,} of {sent:,} events were stored")
            time.sleep(0.2)
        return sent

    def backfill(self, events: int) -> dict[str, float]:
        """Read everything once into new tables."""
        lake = self.new_lake()
        pipeline = catalog.shipped("fleet", "fleet", {})
        with timed(events, self.server) as figures:
            (state,) = Runner(self.spark, lake, self.url, once=True).run([pipeline])
        if state.state != "finished":
            raise BenchmarkError(f"the pipeline {state.state}: {state.error}")
        figures["memory_bytes"] = float(tree_memory_bytes(os.getpid()))
        figures["batches"] = float(len(PipelineFiles(lake.folder, "fleet").progress()))
        return figures

    def live(self, seconds: int) -> dict[str, float]:
        """Publish at a fixed rate while the pipeline runs; return how fresh its tables are."""
        self.fill(1)
        lake = self.new_lake()
        runner = Runner(self.spark, lake, self.url)
        thread = threading.Thread(target=runner.run, args=([catalog.shipped("fleet", "fleet", {})],))
        thread.start()
        files = PipelineFiles(lake.folder, "fleet")
        while not files.progress():
            time.sleep(0.2)
        connection = RawConnection(ConnectionSettings(url=self.url, name="benchmark"))
        began_ms = time.time() * 1000
        publish(paced(seconds), connection, speed=1)
        connection.close()
        time.sleep(10)
        runner.request_stop()
        thread.join()
        lines = [line for line in files.progress() if line["at_ms"] >= began_ms and line["rows"]]
        return freshness(lines) | {"memory_bytes": float(tree_memory_bytes(os.getpid()))}

    def new_lake(self) -> Lake:
        self.lakes += 1
        return Lake(self.folder / f"lake{self.lakes}")


def simulated(events: int) -> Fleet:
    seconds = max(60, int(events / NODES / EVENTS_PER_NODE_AND_S * 1.1))
    return Fleet(FleetOptions(nodes=NODES, seconds=seconds, seed=11, start_s=1_767_225_600))


def limited(events: Iterator[SimulatedEvent], count: int) -> Iterator[SimulatedEvent]:
    """Yield the first events."""
    for number, event in enumerate(events):
        if number >= count:
            return
        yield event


def paced(seconds: int) -> Iterator[SimulatedEvent]:
    """Yield events so that their time goes at the rate of the live measurement."""
    count = seconds * LIVE_EVENTS_PER_S
    for number, event in enumerate(limited(simulated(count).events(), count)):
        yield type(event)(number // LIVE_EVENTS_PER_S, event.subject, event.payload)


def freshness(lines: list[dict[str, Any]]) -> dict[str, float]:
    """Return how old an event is when the tables have it: it came after the batch before its own had begun."""
    ages: list[float] = []
    for before, line in itertools.pairwise(lines):
        ended, began = line["at_ms"], line["at_ms"] - line["batch_ms"]
        waited_since = before["at_ms"] - before["batch_ms"]
        steps = 20
        ages += [(ended - began + (began - waited_since) * step / steps) / 1000 for step in range(steps)]
    ages.sort()
    if not ages:
        raise BenchmarkError("there were fewer than two batches; publish for longer")
    batch_ms = sorted(line["batch_ms"] for line in lines)
    return {
        "freshness_p50_s": ages[len(ages) // 2],
        "freshness_p95_s": ages[int(len(ages) * 0.95)],
        "batch_ms_p50": float(batch_ms[len(batch_ms) // 2]),
    }


def measure(options: argparse.Namespace, work: Callable[[SparkSession, StreamServer, Path, Results], None]) -> int:
    """Have `work` measure with a session and a server of its own, and write what it has found; return the exit code."""
    if build_profile != "release" and not options.debug:
        print("benchmarks: the engine is a debug build and would be slow; run `make engine-release`", file=sys.stderr)
        return 1
    import jetlake.spark

    options.folder.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=options.folder))
    spark = jetlake.spark.session("benchmarks", master="local[2]")
    spark.sparkContext.setLogLevel("ERROR")
    results: Results = {}
    try:
        with StreamServer(JETLAKE, commands()[JETLAKE], folder / "store") as server:
            work(spark, server, folder, results)
    except BenchmarkError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 1
    finally:
        spark.stop()
        shutil.rmtree(folder)
    if options.json is not None:
        options.json.write_text(json.dumps(results, indent=1), encoding="utf-8")
    return 0


def main() -> int:
    options = read_options()

    def work(spark: SparkSession, server: StreamServer, folder: Path, results: Results) -> None:
        bench = Bench(spark, server, folder)
        bench.fill(WARM_EVENTS)
        bench.backfill(WARM_EVENTS)
        for events in options.events:
            sent = bench.fill(events)
            show(results, f"backfill of {sent:,} events", bench.backfill(sent))
        if options.live:
            show(results, f"live, {LIVE_EVENTS_PER_S:,} events/s", bench.live(options.live))

    return measure(options, work)


def show(results: Results, name: str, figures: dict[str, float]) -> None:
    """Print figures as soon as they are there."""
    results[name] = figures
    print(name, *(f"  {key}: {value:,.2f}" for key, value in figures.items()), sep="\n", flush=True)


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.pipelines", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--events", type=int, nargs="*", default=EVENTS, help="sizes of the backfills")
    parser.add_argument("--live", type=int, default=LIVE_S, metavar="SECONDS", help="0 leaves it out")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures into this file")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="on the disk to measure; needs 20 GB")
    parser.add_argument("--debug", action="store_true", help="take a debug build, to see whether everything runs")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
