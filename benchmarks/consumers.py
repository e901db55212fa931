"""Consumers: Jetlake and nats-server in one run, `python -m benchmarks.consumers`, part of `make bench`.

Both servers hold the same streams on the same disk. Each repeat measures our server and then nats-server; the ratio is
taken within a repeat. `benchmarks/consumer_workloads.py` says what is measured and what we want to reach.
"""

from __future__ import annotations

import argparse
import signal
import sys
from functools import partial
from pathlib import Path

from benchmarks import report
from benchmarks.consumer_measure import ConsumerBench
from benchmarks.consumer_workloads import CONSUMER_WORKLOADS, MESSAGES, QUICK_MESSAGES, named
from benchmarks.run import QUICK_REPEATS, REPEATS, SECONDS, version_of
from benchmarks.servers import REFERENCE, BenchmarkError, commands, raise_open_file_limit
from benchmarks.streams import FOLDER, QUICK_SECONDS
from benchmarks.turns import take_turns
from jetlake.client.load import build_profile, engine_version


def main() -> int:
    options = read_options()
    if build_profile != "release" and not options.debug:
        print("benchmarks: the engine is a debug build and would be slow; run `make engine-release`", file=sys.stderr)
        return 1
    try:
        chosen = named(options.only)
        starters = commands()
    except (ValueError, BenchmarkError) as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 1
    repeats = options.repeats or (QUICK_REPEATS if options.quick else REPEATS)
    seconds = QUICK_SECONDS if options.quick else SECONDS
    setting = report.Setting.now(
        build_profile=build_profile,
        jetlake=engine_version,
        reference=version_of(starters[REFERENCE]),
        repeats=repeats,
        seconds=seconds,
    )
    raise_open_file_limit()
    # Servers and folders are left by leaving their blocks, which a plain SIGTERM would not do.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    messages = options.messages or (QUICK_MESSAGES if options.quick else MESSAGES)
    results = []
    with ConsumerBench(starters, options.folder, seconds=seconds, messages=messages) as bench:
        for workload in chosen:
            result = take_turns(workload, list(starters), repeats, partial(bench.measure, workload))
            if result is None:
                continue
            results.append(result)
            if options.json is not None:
                # What is measured stays, whatever becomes of the rest.
                options.json.write_text(report.to_json(setting, results), encoding="utf-8")
    report.show(setting, results)
    return 0 if len(results) == len(chosen) else 1


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.consumers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = ", ".join(workload.name for workload in CONSUMER_WORKLOADS)
    parser.add_argument("--repeats", type=int, help=f"repeats per workload; {REPEATS} unless told")
    parser.add_argument("--quick", action="store_true", help="short and few repeats: a look, not a measurement")
    parser.add_argument("--messages", type=int, help=f"what the stream has; {MESSAGES:,} unless told")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help=f"one workload of: {names}")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every measurement into this file")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="on the disk to measure; needs 6 GB")
    parser.add_argument("--debug", action="store_true", help="take a debug build, to see whether everything runs")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
