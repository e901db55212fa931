"""The pipeline `devices` at speed, and the decoder before it: `python -m benchmarks.device_pipeline`.

Simulated devices fill a stream, then the pipeline reads it from the first sequence on, as `jetlake pipeline run devices
--once` does. Spark and the server share the machine, so the CPU per event, of Spark's processes, is the sturdier
figure. The session has run the pipeline once before, so that nobody's start is in it. The decoder is measured by
itself, in the CPU time of one process, best of its repeats.

| aim                                    | bound              |
|----------------------------------------|--------------------|
| backfill on two cores                  | ≥ 100,000 events/s |
| cost per event as the stream gets long | flat               |
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.pipelines import Results, measure, show
from benchmarks.servers import BenchmarkError
from benchmarks.spark_measure import timed, tree_memory_bytes
from benchmarks.stream_servers import StreamServer
from benchmarks.streams import FOLDER
from jetlake.client.raw_connection import ConnectionSettings, RawConnection
from jetlake.client.raw_streams import Streams
from jetlake.devices.bulk import BulkPublisher
from jetlake.devices.codec import EventCodec
from jetlake.devices.simulator.simulation import Simulation, SimulationOptions
from jetlake.spark.lake.folder import Lake
from jetlake.spark.pipelines import catalog
from jetlake.spark.pipelines.device_packs import CHANGE_FIELDS, CHANGE_TYPES
from jetlake.spark.pipelines.runner import Runner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVENTS = (1_000_000,)
WARM_EVENTS = 5_000
DEVICES = 2_000
EVENTS_PER_DEVICE_AND_S = 0.18
"""What a simulated device publishes, with its snapshots; the first connection comes on top."""

BATCH_EVENTS = 8_192
DECODED_EVENTS = 5 * BATCH_EVENTS
REPEATS = 5


def simulated(events: int) -> Iterator[Any]:
    """Yield about this many events."""
    seconds = max(10.0, events / DEVICES / EVENTS_PER_DEVICE_AND_S * 1.2)
    start_ns = time.time_ns() - round(seconds * 1e9)
    simulation = Simulation(SimulationOptions(devices=DEVICES, seconds=seconds, seed=11, start_ns=start_ns))
    for number, timed_event in enumerate(simulation.timed_events()):
        if number >= events:
            return
        yield timed_event.message


def fill(url: str, events: int) -> int:
    """Make the stream anew with about this many events; return the exact number."""
    connection = RawConnection(ConnectionSettings(url=url, name="benchmark"))
    streams = Streams(connection)
    if "EVENTS" in streams.names():
        streams.ask("STREAM.DELETE.EVENTS")
    streams.ask("STREAM.CREATE.EVENTS", {"name": "EVENTS", "subjects": ["events.>"]})
    connection.close()
    with BulkPublisher(ConnectionSettings(url=url, name="benchmark"), stream="EVENTS") as publisher:
        return publisher.publish(simulated(events)).stored


def backfill(spark: SparkSession, server: StreamServer, lake: Lake, events: int) -> dict[str, float]:
    """Read everything once into new tables."""
    pipeline = catalog.shipped("devices", "devices", {})
    url = f"nats://127.0.0.1:{server.port}"
    with timed(events, server) as figures:
        (state,) = Runner(spark, lake, url, once=True).run([pipeline])
    if state.state != "finished":
        raise BenchmarkError(f"the pipeline {state.state}: {state.error}")
    figures["memory_bytes"] = float(tree_memory_bytes(os.getpid()))
    figures["changes"] = float(lake.existing("device_changes").snapshot().rows)
    return figures


def decode() -> dict[str, float]:
    """Return what decoding costs, with the columns of the changes and by the codec alone, in µs of CPU per event."""
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_type
    from pyspark.sql.types import StructType

    from jetlake.devices.columns import EVENTS as DECODER

    kind = to_arrow_type(
        StructType.fromDDL(", ".join(f"{name} {kind}" for name, kind in CHANGE_FIELDS.items())), timezone="UTC"
    )
    codec = EventCodec()
    encoded = [codec.encode(message)[:2] for message in simulated(DECODED_EVENTS)]
    # The part that has the most of them.
    encoded = [each for each in encoded if each[0].endswith(CHANGE_TYPES)]
    batches = []
    for start in range(0, len(encoded), BATCH_EVENTS):
        subjects, payloads = zip(*encoded[start : start + BATCH_EVENTS], strict=True)
        batches.append(pa.record_batch({"subject": pa.array(subjects), "data": pa.array(payloads, pa.binary())}))

    def cost_us(work: Any) -> float:
        started_s = time.process_time()
        work()
        return (time.process_time() - started_s) * 1e6 / len(encoded)

    return {
        "columns_us": min(cost_us(lambda: [DECODER.decode(batch, kind) for batch in batches]) for _ in range(REPEATS)),
        "codec_us": min(
            cost_us(lambda: [codec.decode(payload, subject=subject) for subject, payload in encoded])
            for _ in range(REPEATS)
        ),
    }


def main() -> int:
    options = read_options()

    def work(spark: SparkSession, server: StreamServer, folder: Path, results: Results) -> None:
        show(results, "decoding one event", decode())
        url = f"nats://127.0.0.1:{server.port}"
        fill(url, WARM_EVENTS)
        backfill(spark, server, Lake(folder / "warm"), WARM_EVENTS)
        for events in options.events:
            sent = fill(url, events)
            lake = Lake(folder / f"lake{events}")
            show(results, f"backfill of {sent:,} events", backfill(spark, server, lake, sent))

    return measure(options, work)


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.device_pipeline",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--events", type=int, nargs="*", default=EVENTS, help="sizes of the backfills")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures into this file")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="on the disk to measure")
    parser.add_argument("--debug", action="store_true", help="take a debug build, to see whether everything runs")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
