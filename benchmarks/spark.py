"""Spark: reading and writing streams, beside Parquet and nats-server, `python -m benchmarks.spark`.

One run each: a run of ten million rows takes minutes and the figures of interest differ by more than the noise.
`benchmarks/spark_measure.py` says what is measured and what we want to reach.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from benchmarks import report, spark_report
from benchmarks.run import version_of
from benchmarks.servers import JETLAKE, REFERENCE, BenchmarkError, commands
from benchmarks.spark_measure import Measurement, SparkBench, fill
from benchmarks.stream_servers import StreamServer
from jetlake.client.load import build_profile, engine_version

FOLDER = Path(__file__).parent.parent / "build" / "benchmarks"

ROWS = 10_000_000
REFERENCE_ROWS = 1_000_000
"""nats-server is an order of magnitude slower to read; a tenth of the rows says the same."""

PARQUET_ROWS_MAX = 20_000_000
"""With more rows only their own rate is of interest, and Parquet files of them would fill the disk."""

WRITTEN_ROWS = 1_000_000
BATCHES = 100
QUICK_DIVISOR = 100
QUICK_BATCHES = 5


def main() -> int:
    options = read_options()
    if build_profile != "release" and not options.debug:
        print("benchmarks: the engine is a debug build and would be slow; run `make engine-release`", file=sys.stderr)
        return 1
    try:
        starters = commands()
    except BenchmarkError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 1
    import jetlake.spark

    divisor = QUICK_DIVISOR if options.quick else 1
    setting = report.Setting.now(
        build_profile=build_profile,
        jetlake=engine_version,
        reference=version_of(starters[REFERENCE]),
        repeats=1,
        seconds=0,
    )
    options.folder.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=options.folder))
    measurements: list[Measurement] = []
    spark = jetlake.spark.session("benchmarks", master="local[2]", driver_memory="4g")
    spark.sparkContext.setLogLevel("ERROR")
    try:
        for name, rows in ((JETLAKE, options.rows // divisor), (REFERENCE, REFERENCE_ROWS // divisor)):
            bench = SparkBench(spark, folder, rows, QUICK_BATCHES if options.quick else BATCHES)
            with StreamServer(name, starters[name], folder / name) as server:
                fill(server, rows)
                if name == JETLAKE:
                    measurements.append(bench.first_query(server))
                if rows <= PARQUET_ROWS_MAX:
                    measurements += bench.read(server)
                if name == JETLAKE:
                    measurements.append(bench.flat(server))
                    measurements.append(bench.small_batches(server))
                    measurements.append(bench.write(server, WRITTEN_ROWS // divisor))
                    measurements.append(bench.copy(server, WRITTEN_ROWS // divisor))
            if options.json is not None:
                # What is measured stays, whatever becomes of the rest.
                options.json.write_text(spark_report.to_json(setting, measurements), encoding="utf-8")
    finally:
        spark.stop()
        shutil.rmtree(folder)
    spark_report.show(setting, measurements)
    if options.page is not None:
        options.page.write_text(spark_report.page(setting, measurements), encoding="utf-8")
    return 0


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.spark", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--rows",
        type=int,
        default=ROWS,
        help=f"rows of the stream at our server; {ROWS:,} unless told; beyond 20 million without Parquet",
    )
    parser.add_argument("--quick", action="store_true", help="a hundredth of everything: a look, not a measurement")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every measurement into this file")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write a page with a chart into this file")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="on the disk to measure; needs 10 GB")
    parser.add_argument("--debug", action="store_true", help="take a debug build, to see whether everything runs")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
