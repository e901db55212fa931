"""The device event bus: `python -m benchmarks.devices`, part of `make bench`.

Measured are events per second of one Python process: decoding, encoding, and the whole way of encoding, publishing and
waiting for every acknowledgement, at our server and at nats-server. A publisher has one connection and one thread; the
server has the other core. Each figure is the best of its repeats: what else the machine does only makes it smaller.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from benchmarks import report
from benchmarks.run import version_of
from benchmarks.servers import JETLAKE, REFERENCE, BenchmarkError, commands, cpu_us
from benchmarks.store import StoreGoal
from benchmarks.stream_servers import StreamServer
from benchmarks.streams import FOLDER
from jetlake.client.load import build_profile, engine_version
from jetlake.client.raw_connection import ConnectionSettings, RawConnection
from jetlake.devices.bulk import BulkPublisher
from jetlake.devices.codec import EventCodec
from jetlake.devices.protos import events_2025_pb2 as events
from jetlake.devices.stream import stream_config

EVENTS = 200_000
QUICK_EVENTS = 20_000
REPEATS = 5
DEVICES = 2000
RESOURCES = ("/oic/d", "/light/1", "/temperature", "/humidity", "/power")

GOALS = (
    StoreGoal("decode", "events/s decoded: envelope, snappy, event", "at least", 100_000),
    StoreGoal("encode", "events/s made and encoded", "at least", 50_000),
    StoreGoal("stored_jetlake", "events/s made, encoded, published, acknowledged: Jetlake", "at least", 20_000),
)


COMPARED = ("stored_nats", "events/s made, encoded, published, acknowledged: nats-server")
"""Measured for comparison; it has no goal."""


def changes(count: int) -> Iterator[Any]:
    """Yield notifications of many devices, each made as an aggregate makes it."""
    ids = [f"{number:08x}-0000-4000-8000-{number:012x}" for number in range(DEVICES)]
    for number in range(count):
        yield events.ResourceChanged(
            resource_id=events.ResourceId(device_id=ids[number % DEVICES], href=RESOURCES[number // DEVICES % 5]),
            content=events.Content(
                data=b"\xa1kdimmingLevel" + bytes((0x18, number & 255)),
                content_type="application/vnd.ocf+cbor",
                coap_content_format=10_000,
            ),
            status=events.OK,
            audit_context=events.AuditContext(user_id="benchmark", owner="benchmark"),
            event_metadata=events.EventMetadata(
                version=number // (DEVICES * 5),
                timestamp=1_700_000_000_000_000_000 + number,
                connection_id="c",
                sequence=1,
            ),
        )


def encode(count: int) -> float:
    """Return events per second that are made and encoded."""
    codec = EventCodec()
    started_s = time.perf_counter()
    for message in changes(count):
        codec.encode(message)
    return count / (time.perf_counter() - started_s)


def decode(count: int) -> float:
    """Return events per second that are decoded, with their subjects checked."""
    codec = EventCodec()
    encoded = [codec.encode(message) for message in changes(min(count, 20_000))]
    started_s = time.perf_counter()
    for number in range(count):
        event = encoded[number % len(encoded)]
        codec.decode(event.payload, subject=event.subject)
    return count / (time.perf_counter() - started_s)


def store(name: str, command: list[str], folder: Path, count: int) -> tuple[float, float]:
    """Return events per second that a stream has acknowledged, and the server's microseconds of CPU for each."""
    shutil.rmtree(folder, ignore_errors=True)
    with StreamServer(name, command, folder) as server:
        settings = ConnectionSettings(url=f"nats://{server.address}")
        with RawConnection(settings) as connection:
            connection.request("$JS.API.STREAM.CREATE.EVENTS", json.dumps(stream_config()).encode())
        with BulkPublisher(settings, stream="EVENTS") as publisher:
            before_us = cpu_us(server.pid)
            done = publisher.publish(changes(count))
            used_us = cpu_us(server.pid) - before_us
    shutil.rmtree(folder, ignore_errors=True)
    assert (done.stored, done.duplicates, done.last_sequence) == (count, 0, count)
    return count / done.duration_s, used_us / count


def best(measure: Callable[[], float], repeats: int) -> float:
    return max(measure() for _ in range(repeats))


def table(figures: dict[str, float]) -> Table:
    """Return the figures, each with its goal."""
    shown = Table(box=SIMPLE)
    for column in ("what", "value", "goal"):
        shown.add_column(column, justify="right" if column == "value" else "left")
    for goal in GOALS:
        word = "[green]reached[/green]" if goal.is_reached(figures[goal.name]) else "[red]not reached[/red]"
        shown.add_row(goal.what, f"{figures[goal.name]:,.0f}", f"{word}: {goal.relation} {goal.bound:,g}")
    name, what = COMPARED
    shown.add_row(what, f"{figures[name]:,.0f}", "to compare")
    return shown


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.devices", description=__doc__)
    parser.add_argument("--events", type=int, default=EVENTS, help=f"events of one measurement; {EVENTS:,} unless told")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--quick", action="store_true", help="short and once: a look, not a measurement")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="on the disk to measure")
    parser.add_argument("--debug", action="store_true", help="take a debug build, to see whether everything runs")
    options = parser.parse_args()
    if build_profile != "release" and not options.debug:
        print("benchmarks: the engine is a debug build and would be slow; run `make engine-release`", file=sys.stderr)
        return 1
    count, repeats = (QUICK_EVENTS, 1) if options.quick else (options.events, options.repeats)
    try:
        starters = commands()
    except BenchmarkError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 1
    console = Console(width=None if sys.stdout.isatty() else report.PLAIN_COLUMNS)
    setting = report.Setting.now(
        build_profile=build_profile,
        jetlake=engine_version,
        reference=version_of(starters[REFERENCE]),
        repeats=repeats,
        seconds=0,
    )
    for line in setting.lines():
        console.print(line, highlight=False)
    figures = {"decode": best(lambda: decode(count), repeats), "encode": best(lambda: encode(count), repeats)}
    used_us = {}
    for name, key in ((JETLAKE, "stored_jetlake"), (REFERENCE, "stored_nats")):
        runs = [store(name, starters[name], options.folder / "devices", count) for _ in range(repeats)]
        figures[key], used_us[name] = max(runs)
    console.print(table(figures))
    for name, each in used_us.items():
        console.print(f"{name}: {each:.1f} µs of CPU for each event", highlight=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
