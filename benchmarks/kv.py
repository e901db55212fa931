"""Buckets and object stores: our library beside nats-py's own, `python -m benchmarks.kv`.

Both libraries speak to the same server, in this process, and take turns: each repeat measures ours and then theirs, and
the ratio is taken within a repeat. What is printed is the median. Both servers are measured, one after the other.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import nats
from nats.js.kv import KeyValue
from nats.js.object_store import ObjectStore as TheirStore

from benchmarks.servers import BenchmarkError, commands
from benchmarks.stream_servers import StreamServer
from jetlake import kv, objects
from jetlake.client.load import build_profile

KEYS = 100_000
VALUE = b"x" * 64
OPERATIONS = 2_000
OBJECT_BYTES = 64 * 1024 * 1024
REPEATS = 7
QUICK_REPEATS = 3

FILLING = 1_000
"""Puts under way while the bucket is filled."""

HEADING = "| workload | ours | nats-py | ratio | goal | |\n|---|---|---|---|---|---|"


class Workload(NamedTuple):
    """One comparison: what is measured, in which unit, and how many times as fast ours should be."""

    name: str
    unit: str
    amount: float
    goal: float


WORKLOADS = (
    Workload(f"list {KEYS:,} keys", "keys/s", KEYS, 5.0),
    Workload(f"watch {KEYS:,} keys", "entries/s", KEYS, 5.0),
    Workload("put, one after the other", "puts/s", OPERATIONS, 1.0),
    Workload("get, one after the other", "gets/s", OPERATIONS, 1.0),
    Workload("object put, 64 MiB file", "MiB/s", OBJECT_BYTES / 2**20, 3.0),
    Workload("object get, 64 MiB into a file", "MiB/s", OBJECT_BYTES / 2**20, 3.0),
    Workload("object put, 64 MiB of memory", "MiB/s", OBJECT_BYTES / 2**20, 3.0),
    Workload("object get, 64 MiB into memory", "MiB/s", OBJECT_BYTES / 2**20, 3.0),
)


class Contestants(NamedTuple):
    """The same bucket and the same store, as each library has them."""

    bucket: kv.Bucket[bytes]
    their_bucket: KeyValue
    store: objects.ObjectStore
    their_store: TheirStore
    file: Path
    data: bytes


async def list_keys(each: Contestants, *, ours: bool) -> None:
    found = await (each.bucket.keys() if ours else each.their_bucket.keys())
    assert len(found) == KEYS


async def watch(each: Contestants, *, ours: bool) -> None:
    count = 0
    if ours:
        async with each.bucket.watch() as watcher:
            async for entry in watcher:
                if entry is None:
                    break
                count += 1
    else:
        their_watcher = await each.their_bucket.watchall()
        async for their_entry in their_watcher:
            if their_entry is None:
                break
            count += 1
        await their_watcher.stop()  # type: ignore[no-untyped-call]
    assert count == KEYS


async def put(each: Contestants, *, ours: bool) -> None:
    bucket = each.bucket if ours else each.their_bucket
    for number in range(OPERATIONS):
        await bucket.put(f"key.{number}", VALUE)


async def get(each: Contestants, *, ours: bool) -> None:
    bucket = each.bucket if ours else each.their_bucket
    for number in range(OPERATIONS):
        entry = await bucket.get(f"key.{number}")
        assert entry.value == VALUE


async def put_file(each: Contestants, *, ours: bool) -> None:
    with each.file.open("rb") as file:
        await (each.store if ours else each.their_store).put("file", file)


async def get_file(each: Contestants, *, ours: bool) -> None:
    with each.file.with_suffix(".copy").open("wb") as file:
        if ours:
            await each.store.get_into("file", file)
        else:
            await each.their_store.get("file", writeinto=file)
        assert file.tell() == OBJECT_BYTES


async def put_memory(each: Contestants, *, ours: bool) -> None:
    await (each.store if ours else each.their_store).put("file", each.data)


async def get_memory(each: Contestants, *, ours: bool) -> None:
    data = await each.store.get("file") if ours else (await each.their_store.get("file")).data
    assert data is not None
    assert len(data) == OBJECT_BYTES


MEASURES = (list_keys, watch, put, get, put_file, get_file, put_memory, get_memory)


async def fill(bucket: kv.Bucket[bytes]) -> None:
    """Put all keys, many at once."""
    for start in range(0, KEYS, FILLING):
        await asyncio.gather(*(bucket.put(f"key.{number}", VALUE) for number in range(start, start + FILLING)))


async def measure(
    url: str, folder: Path, chosen: list[Workload], repeats: int
) -> list[tuple[Workload, list[float], list[float]]]:
    """Return the seconds of both libraries for each workload, repeat by repeat."""
    results = []
    connection = await nats.connect(url)
    jetstream = connection.jetstream()
    async with kv.connect(url) as buckets, objects.connect(url) as stores:
        bucket = await buckets.create("BENCH")
        store = await stores.create("OURS")
        await stores.create("THEIRS")
        file = folder / "object"
        data = os.urandom(OBJECT_BYTES)
        file.write_bytes(data)
        each = Contestants(
            bucket, await jetstream.key_value("BENCH"), store, await jetstream.object_store("THEIRS"), file, data
        )
        await fill(bucket)
        for both in (store, each.their_store):
            await both.put("file", io.BytesIO(data))
        for workload, work in zip(WORKLOADS, MEASURES, strict=True):
            if workload not in chosen:
                continue
            ours: list[float] = []
            theirs: list[float] = []
            for _ in range(repeats):
                for seconds, is_ours in ((ours, True), (theirs, False)):
                    begin = time.perf_counter()
                    await work(each, ours=is_ours)
                    seconds.append(time.perf_counter() - begin)
            results.append((workload, ours, theirs))
            print(line(workload, ours, theirs), flush=True)
    await connection.close()
    return results


def line(workload: Workload, ours: list[float], theirs: list[float]) -> str:
    """Return one row: both rates, the ratio, and whether the goal is reached."""
    ratio = statistics.median(other / own for own, other in zip(ours, theirs, strict=True))
    rates = [workload.amount / statistics.median(seconds) for seconds in (ours, theirs)]
    verdict = "reached" if ratio >= workload.goal else "missed"
    return (
        f"| {workload.name} | {rates[0]:,.0f} {workload.unit} | {rates[1]:,.0f} {workload.unit} | {ratio:.1f} "
        f"| {workload.goal:g} | {verdict} |"
    )


def main() -> int:
    options = read_options()
    if build_profile != "release" and not options.debug:
        print("benchmarks: the engine is a debug build and would be slow; run `make engine-release`", file=sys.stderr)
        return 1
    chosen = [each for each in WORKLOADS if not options.only or any(word in each.name for word in options.only)]
    if not chosen:
        print(f"benchmarks: no workload is named {', '.join(options.only)}", file=sys.stderr)
        return 1
    try:
        starters = commands()
    except BenchmarkError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 1
    repeats = options.repeats or (QUICK_REPEATS if options.quick else REPEATS)
    missed = False
    with tempfile.TemporaryDirectory(dir=options.folder) as text:
        folder = Path(text)
        for name, command in starters.items():
            if options.server not in ("", name):
                continue
            print(f"\n{name}, {repeats} repeats, medians\n\n{HEADING}")
            with StreamServer(name, command, folder / name) as server:
                found = asyncio.run(measure(f"nats://127.0.0.1:{server.port}", folder, chosen, repeats))
            missed |= any("missed" in line(*each) for each in found)
    return 1 if missed else 0


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.kv", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, help=f"repeats per workload; {REPEATS} unless told")
    parser.add_argument("--quick", action="store_true", help="few repeats: a look, not a measurement")
    parser.add_argument(
        "--only", action="append", default=[], metavar="WORD", help="workloads whose name has this word"
    )
    parser.add_argument("--server", default="", help="only this one: jetlake or nats-server")
    parser.add_argument("--folder", type=Path, default=None, help="on the disk to measure; needs 2 GB")
    parser.add_argument("--debug", action="store_true", help="take a debug build, to see whether everything runs")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
