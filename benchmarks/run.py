"""`make bench`: both servers take turns on every workload.

Each repeat measures our server and then nats-server, so that whatever else the machine does hits both; the ratio is
taken within a repeat. Every measurement lasts about as long at either server: a short first run finds out how many
messages that takes.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from benchmarks import plot, report, workloads
from benchmarks.figures import Result
from benchmarks.measure import Bench
from benchmarks.servers import REFERENCE, BenchmarkError, commands, raise_open_file_limit
from jetlake.client.load import build_profile, engine_version

PAGE = Path(__file__).parent.parent / "build" / "benchmarks" / "index.html"

REPEATS = 5
SECONDS = 1.0
QUICK_REPEATS = 3
QUICK_SECONDS = 0.3


def main() -> int:
    options = read_options()
    if build_profile != "release":
        print("benchmarks: the engine is a debug build and would be slow; run `make engine-release`", file=sys.stderr)
        return 1
    try:
        chosen = workloads.named(options.only)
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
    results = measure_all(chosen, starters, repeats, seconds)
    report.show(setting, results)
    plot.write(options.page, setting, results)
    print(f"page: {options.page}")
    if options.json is not None:
        options.json.write_text(report.to_json(setting, results), encoding="utf-8")
    return 0


def version_of(command: list[str]) -> str:
    return subprocess.run([*command, "-v"], check=True, capture_output=True, text=True).stdout.strip()


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.run", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = ", ".join(workload.name for workload in workloads.WORKLOADS)
    parser.add_argument("--repeats", type=int, help=f"repeats per workload; {REPEATS} unless told")
    parser.add_argument("--quick", action="store_true", help="short and few repeats: a look, not a measurement")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help=f"one workload of: {names}")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every measurement into this file")
    parser.add_argument("--page", type=Path, metavar="FILE", default=PAGE, help="where the page with pictures goes")
    return parser.parse_args()


def measure_all(
    chosen: list[workloads.Workload], starters: dict[str, list[str]], repeats: int, seconds: float
) -> list[Result]:
    open_files_max = raise_open_file_limit()
    results = []
    for workload in chosen:
        print(f"{workload.title} ...", file=sys.stderr, flush=True)
        result = Result(workload)
        with Bench(workload, starters, seconds, open_files_max) as bench:
            for _ in range(repeats):
                for name in starters:
                    result.add(name, bench.measure(name))
        results.append(result)
    return results


if __name__ == "__main__":
    sys.exit(main())
